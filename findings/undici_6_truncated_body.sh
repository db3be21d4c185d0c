#!/bin/sh
# undici 6.24.1, which is what `fetch` of Node 20.20 is, ends a chunked body that breaks off in the middle as if it were
# complete, if the response said `Connection: close`; 6.29.1 and 7.30.2 raise. With the same server openai 6.49.0 (npm)
# gives half of a translation and no error when it is handed this fetch.
# Guess before: `terminated`, as without that header.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" openai@6.49.0 old@npm:undici@6.24.1 six@npm:undici@6.29.1 seven@npm:undici@7.30.2 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import net from "node:net";
import OpenAI from "openai";
import * as old from "old";
import * as six from "six";
import * as seven from "seven";
const chunk = { id: "1", object: "chat.completion.chunk", created: 1, model: "m" };
chunk.choices = [{ index: 0, delta: { content: "Guten" }, finish_reason: null }];
const event = `data: ${JSON.stringify(chunk)}\n\n`;
const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n";
const server = net.createServer((socket) => {
  socket.on("error", () => {});
  socket.once("data", (request) => {
    const close = request.toString().includes(" /close") ? "Connection: close\r\n" : "";
    socket.write(`${head}${close}\r\n${event.length.toString(16)}\r\n${event}\r\n`);
    setTimeout(() => socket.end(), 50);
  });
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const address = `http://127.0.0.1:${server.address().port}`;
for (const [name, { fetch, Agent }] of Object.entries({ "6.24.1": old, "6.29.1": six, "7.30.2": seven })) {
  for (const path of ["/keep", "/close"]) {
    try {
      console.log(name, path, (await (await fetch(address + path, { dispatcher: new Agent() })).text()).length === event.length ? "ends" : "?");
    } catch (error) {
      console.log(name, path, error.message);
    }
  }
}
const oldFetch = (url, options) => old.fetch(url, { ...options, dispatcher: new old.Agent() });
const client = new OpenAI({ apiKey: "x", baseURL: `${address}/close`, maxRetries: 0, fetch: oldFetch });
const words = [];
for await (const part of await client.chat.completions.create({ model: "m", messages: [], stream: true })) {
  words.push(part.choices[0].delta.content);
}
console.log("openai", words.join(""), "and no error");
process.exit();
JAVASCRIPT
seen=$(node look.mjs)
expected=$(cat <<'SEEN'
6.24.1 /keep terminated
6.24.1 /close ends
6.29.1 /keep terminated
6.29.1 /close terminated
7.30.2 /keep terminated
7.30.2 /close terminated
openai Guten and no error
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
