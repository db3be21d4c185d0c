#!/bin/sh
# A server-sent block without data is no event by the standard: `retry:` alone, or a comment that keeps a connection
# open. httpx-sse 0.4.3 makes an event with empty data of `retry:`, @microsoft/fetch-event-source 2.0.1 of both, so
# `JSON.parse` of it fails. openai 3.57.0 ends a stream with a JSONDecodeError at `retry:`, before the first word.
# sseclient-py 1.9.0 and eventsource-parser 3.1.1 follow the standard.
# Guess before, written down for comments alone: no event, and the delay is taken.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check httpx==0.28.1 httpx-sse==0.4.3 requests==2.34.2 sseclient-py==1.9.0 openai==3.57.0
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" @microsoft/fetch-event-source@2.0.1 eventsource-parser@3.1.1 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { fetchEventSource } from "@microsoft/fetch-event-source";
import { createParser } from "eventsource-parser";
globalThis.window = globalThis;
globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} };
const seen = [];
await fetchEventSource(process.argv[2], { onmessage: (event) => seen.push(event.data.slice(0, 6)) });
console.log("fetch-event-source", JSON.stringify(seen));
const parsed = [];
const parser = createParser({ onEvent: (event) => parsed.push(event.data.slice(0, 6)) });
parser.feed(await (await fetch(process.argv[2])).text());
console.log("eventsource-parser", JSON.stringify(parsed));
JAVASCRIPT
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import http.server
import json
import threading

chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
chunk["choices"] = [{"index": 0, "delta": {"content": "Hallo"}, "finish_reason": None}]
hallo = f"data: {json.dumps(chunk)}\n\n"
bodies = {
    "retry": "retry: 1000\n\n" + hallo + "data: [DONE]\n\n",
    "comment": ": keep-alive\n\n" + hallo + "data: [DONE]\n\n",
}


class Server(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(bodies[self.path.split("/")[1]].encode())

    do_GET = do_POST

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}"
import subprocess

import httpx
import httpx_sse
import openai
import requests
import sseclient

for name in bodies:
    with httpx.Client() as client, httpx_sse.connect_sse(client, "GET", f"{address}/{name}") as source:
        print(name, "httpx-sse", [event.data[:6] for event in source.iter_sse()])
    with requests.get(f"{address}/{name}", stream=True) as answer:
        print(name, "sseclient-py", [event.data[:6] for event in sseclient.SSEClient(answer).events()])
    client = openai.OpenAI(api_key="x", base_url=f"{address}/{name}", max_retries=0)
    try:
        stream = client.chat.completions.create(model="m", messages=[], stream=True)
        print(name, "openai", [part.choices[0].delta.content for part in stream])
    except ValueError as error:
        print(name, "openai", type(error).__name__)
    done = subprocess.run(["node", "look.mjs", f"{address}/{name}"], capture_output=True, text=True, check=True)
    print("\n".join(f"{name} {line}" for line in done.stdout.splitlines()))
PYTHON
)
expected=$(cat <<'SEEN'
retry httpx-sse ['', '{"id":', '[DONE]']
retry sseclient-py ['{"id":', '[DONE]']
retry openai JSONDecodeError
retry fetch-event-source ["","{\"id\":","[DONE]"]
retry eventsource-parser ["{\"id\":","[DONE]"]
comment httpx-sse ['{"id":', '[DONE]']
comment sseclient-py ['{"id":', '[DONE]']
comment openai ['Hallo']
comment fetch-event-source ["","{\"id\":","[DONE]"]
comment eventsource-parser ["{\"id\":","[DONE]"]
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
