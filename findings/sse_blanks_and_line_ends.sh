#!/bin/sh
# Three readers of server-sent events (npm) lose what the standard keeps, without an error. fetch-event-stream 0.1.6 takes
# all blanks off the front of data, where the standard takes one: a stream of words ("Good", " morning") is glued
# together. parse-sse 0.1.0 makes two events of one with two lines, if a CR and its LF arrive in two pieces.
# launchdarkly-eventsource 2.2.0 loses all events that end with LF if they arrive together with a keep-alive that ends
# with CR LF, as a server's library and the program that uses it may write. eventsource-parser 4.1.3 is right each time.
# Guess before: all follow the standard, wherever a stream is cut.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" fetch-event-stream@0.1.6 parse-sse@0.1.0 launchdarkly-eventsource@2.2.0 eventsource-parser@4.1.3 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import http from "node:http";
import { createParser } from "eventsource-parser";
import { events } from "fetch-event-stream";
import launchdarkly from "launchdarkly-eventsource";
import { parseServerSentEvents } from "parse-sse";
const CASES = {
  words: ["data: Good\n\ndata:  morning\n\nevent: done\ndata: .\n\n"],
  "CR | LF": ["data: Good\r", "\ndata: morning\r\n\r\nevent: done\r\ndata: .\r\n\r\n"],
  "keep-alive": [": ping\r\n\r\ndata: Good\n\ndata: morning\n\nevent: done\ndata: .\n\n"],
};
const response = (parts) => {
  const body = new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(new TextEncoder().encode(part));
      controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
};
const all = async (stream) => {
  const found = [];
  for await (const event of stream) found.push(event.data);
  return found;
};
const byLaunchdarkly = async (parts) => {
  const server = http.createServer((_, reply) => reply.writeHead(200, { "content-type": "text/event-stream" }).end(parts.join("")));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const found = [];
  await new Promise((resolve) => {
    const source = new launchdarkly.EventSource(`http://127.0.0.1:${server.address().port}/`);
    source.onmessage = (event) => found.push(event.data);
    source.addEventListener("done", (event) => found.push(event.data));
    source.addEventListener("end", () => (source.close(), resolve()));
  });
  server.closeAllConnections();
  server.close();
  return found;
};
for (const [name, parts] of Object.entries(CASES)) {
  const found = [];
  const parser = createParser({ onEvent: (event) => found.push(event.data) });
  for (const part of parts) parser.feed(part);
  const show = (library, data) => console.log(name, library, JSON.stringify(data));
  show("eventsource-parser", found);
  if (name === "words") show("fetch-event-stream", await all(events(response(parts))));
  if (name === "CR | LF") show("parse-sse", await all(parseServerSentEvents(response(parts))));
  if (name === "keep-alive") show("launchdarkly-eventsource", await byLaunchdarkly(parts));
}
JAVASCRIPT
seen=$(node look.mjs)
expected=$(cat <<'SEEN'
words eventsource-parser ["Good"," morning","."]
words fetch-event-stream ["Good","morning","."]
CR | LF eventsource-parser ["Good\nmorning","."]
CR | LF parse-sse ["Good","morning","."]
keep-alive eventsource-parser ["Good","morning","."]
keep-alive launchdarkly-eventsource []
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
