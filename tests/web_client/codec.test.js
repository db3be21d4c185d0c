// The codec that a user of the JavaScript client brings.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

import { GatewayClient } from "../../web_demo/client/gateway_client.js";

const msgpack = createRequire(new URL("../../.venv/node/package.json", import.meta.url))("@msgpack/msgpack");
const json = {
  encode: (message) => new TextEncoder().encode(JSON.stringify(message)),
  decode: (frame) => JSON.parse(new TextDecoder().decode(frame)),
};

test("a codec that can never open is refused at once", () => {
  for (const codec of [
    {},
    json,
    { ...msgpack, encode: () => "text" },
    { ...msgpack, encode: () => [0x81] },
    { ...msgpack, decode: (frame) => new Map(Object.entries(msgpack.decode(frame))) },
    { ...msgpack, decode: () => undefined },
  ]) {
    assert.throws(() => new GatewayClient("http://127.0.0.1:8000", { codec }), /codec.*msgpack/);
  }
  new GatewayClient("http://127.0.0.1:8000", { codec: msgpack });
});
