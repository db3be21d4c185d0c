#!/bin/sh
# Clients that come back do not agree when to. reconnecting-websocket 4.4.0, partysocket 1.3.0 and websocket-ts 2.3.0
# come back after every code, also after 1000, with which a server ends a session: each of them meets the closing server
# again, for ever. sockette 2.0.6 does not come back after 1001, which a server sends that goes away to be started
# again. rxjs 7.8.2 calls a connection that was closed with any code complete, so `retry` does nothing. None looks at
# 4000 to 4999.
# Guess before: none comes back after 1000, all after 1001 and 1012.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" ws@8.23.0 reconnecting-websocket@4.4.0 partysocket@1.3.0 websocket-ts@2.3.0 sockette@2.0.6 rxjs@7.8.2 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { createRequire } from "node:module";
import { WebSocket, WebSocketServer } from "ws";
const require = createRequire(import.meta.url);
globalThis.WebSocket = WebSocket;
globalThis.window = globalThis;
const Reconnecting = require("reconnecting-websocket");
const { default: Party } = await import("partysocket/ws");
const { WebsocketBuilder, ConstantBackoff } = require("websocket-ts");
const sockette = require("sockette");
const { webSocket } = require("rxjs/webSocket");
const { retry } = require("rxjs/operators");

const fast = { WebSocket, minReconnectionDelay: 20, maxReconnectionDelay: 20 };
const clients = {
  "reconnecting-websocket": (address) => new Reconnecting(address, [], fast),
  partysocket: (address) => new Party(address, [], fast),
  "websocket-ts": (address) => new WebsocketBuilder(address).withBackoff(new ConstantBackoff(20)).build(),
  sockette: (address) => sockette(address, { timeout: 20 }),
  rxjs: (address) => webSocket({ url: address, WebSocketCtor: WebSocket }).pipe(retry(5)).subscribe(),
};
for (const [name, open] of Object.entries(clients)) {
  const answers = [];
  for (const code of [1000, 1001, 1012, 4401]) {
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    await new Promise((listening) => server.once("listening", listening));
    const again = await new Promise((seen) => {
      let count = 0;
      server.on("connection", (socket) => {
        socket.close(code);
        if (++count === 2) seen(true);
        if (count === 1) setTimeout(() => seen(false), 3000);
      });
      open(`ws://127.0.0.1:${server.address().port}/`);
    });
    answers.push(`${code} ${again ? "again" : "over"}`);
  }
  console.log(name, answers.join(", "));
}
process.exit();
JAVASCRIPT
seen=$(node look.mjs)
expected=$(cat <<'SEEN'
reconnecting-websocket 1000 again, 1001 again, 1012 again, 4401 again
partysocket 1000 again, 1001 again, 1012 again, 4401 again
websocket-ts 1000 again, 1001 again, 1012 again, 4401 again
sockette 1000 over, 1001 over, 1012 again, 4401 again
rxjs 1000 over, 1001 over, 1012 over, 4401 over
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
