// Holds a session with each WebSocket library of npm, as its documentation says, and with Node's own WebSocket where it
// has one: node websocket_libraries.mjs ADDRESS
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const url = `${process.argv[2].replace("http", "ws")}/v1/stream`;
const PROTOCOL = "translation.v1.json";
const STEPS = {
  "": { type: "session.start", speaks: "en", reads: ["de"] },
  "session.started": { type: "utterance.final", id: "u1", rev: 1, text: "Good morning." },
  "translation.final": { type: "session.end" },
};

/** With the interface of browsers. */
const standard = (WebSocket) => (say, ended) => {
  const socket = new WebSocket(url, [PROTOCOL]);
  socket.onopen = () => socket.send(say(""));
  socket.onmessage = ({ data }) => {
    const answer = say(data);
    if (answer) socket.send(answer);
  };
  socket.onclose = ({ code }) => ended(code);
};

const LIBRARIES = {
  ws: standard(require("ws").WebSocket),
  undici: standard(require("undici").WebSocket),
  "faye-websocket": standard(require("faye-websocket").Client),
  websocket: (say, ended) => {
    const client = new (require("websocket").client)();
    client.on("connectFailed", (error) => ended(error.message));
    client.on("connect", (connection) => {
      connection.on("message", ({ utf8Data }) => {
        const answer = say(utf8Data);
        if (answer) connection.sendUTF(answer);
      });
      connection.on("close", ended);
      connection.sendUTF(say(""));
    });
    client.connect(url, PROTOCOL);
  },
  ...(globalThis.WebSocket && { node: standard(globalThis.WebSocket) }),
};

let failed = 0;
for (const [name, library] of Object.entries(LIBRARIES)) {
  const came = [];
  const say = (text) => {
    const kind = text ? JSON.parse(text).type : "";
    came.push(kind);
    return kind in STEPS ? JSON.stringify(STEPS[kind]) : null;
  };
  const code = await Promise.race([
    new Promise((ended) => library(say, ended)),
    new Promise((late) => setTimeout(late, 60_000, "nothing").unref()),
  ]);
  const done = code === 1000 && came.includes("translation.final");
  const version = name === "node" ? process.version : require(`${name}/package.json`).version;
  console.log(`${name} ${version}: ${done ? "ok" : `closed with ${code} after ${came.join(" ")}`}`);
  failed += done ? 0 : 1;
}
console.log(`${Object.keys(LIBRARIES).length - failed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
