// Drives the JavaScript client in the conformance kit (docs/write-a-client.md): reads commands as lines of JSON from
// stdin, does them with the client, and prints what the client gives it.
//
//     gateway conformance -- node examples/conformance/driver.mjs

import { createInterface } from "node:readline";
import { GatewayClient } from "translation-gateway-client";

const show = (event) => console.log(JSON.stringify(event));
let client;

function connect({ address, options, tokens = [] }) {
  // Each is asked for once; the last one again and again.
  const token = tokens.length > 0 ? () => (tokens.length > 1 ? tokens.shift() : tokens[0]) : undefined;
  client = new GatewayClient(address, { ...options, ...(token && { token }) });
  client.listen((event) => show(event.type === "state" && event.state === "closed" ? { type: "closed" } : event));
  client.connect();
}

const commands = {
  connect,
  partial: ({ id, text }) => client.partial({ id, text }),
  final: ({ id, text, replaces }) => client.final({ id, text, replaces }),
  cancel: ({ id }) => client.cancel(id),
  update: ({ reads }) => client.read(reads),
  end: () => client.close(),
};

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  commands[command.do](command);
}
