#!/bin/sh
# openai 3.57.0 (PyPI) and 6.49.0 (npm) do not look at the name of a server-sent event in a stream of chat completions:
# a keep-alive `event: ping` arrives as a chunk without `choices` (None, undefined), at which the usual loop breaks; and
# `event: error` is such a chunk too, so the failure is not raised and a cut translation looks finished. They raise only
# for data with an "error" in it.
# Guess before: pings are ignored, errors are raised.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check openai==3.57.0
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" openai@6.49.0 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import OpenAI from "openai";
for (const name of ["ping", "error", "inside"]) {
  const client = new OpenAI({ apiKey: "x", baseURL: `${process.argv[2]}/${name}`, maxRetries: 0 });
  const seen = [];
  try {
    for await (const part of await client.chat.completions.create({ model: "m", messages: [], stream: true })) {
      seen.push(part.choices?.[0].delta.content);
    }
  } catch (error) {
    seen.push(error.constructor.name);
  }
  console.log("npm", name, seen);
}
JAVASCRIPT
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import http.server
import json
import threading

chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
chunk["choices"] = [{"index": 0, "delta": {"content": "Hallo"}, "finish_reason": None}]
hallo = f"data: {json.dumps(chunk)}\n\n"
bodies = {
    "ping": hallo + "event: ping\ndata: {}\n\ndata: [DONE]\n\n",
    "error": hallo + 'event: error\ndata: {"message": "engine is gone"}\n\ndata: [DONE]\n\n',
    "inside": hallo + 'data: {"error": {"message": "engine is gone"}}\n\ndata: [DONE]\n\n',
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

import openai

for name in bodies:
    client = openai.OpenAI(api_key="x", base_url=f"{address}/{name}", max_retries=0)
    seen = []
    try:
        for part in client.chat.completions.create(model="m", messages=[], stream=True):
            seen.append(part.choices and part.choices[0].delta.content)
    except openai.APIError as error:
        seen.append(type(error).__name__)
    print("PyPI", name, seen, flush=True)
print(subprocess.run(["node", "look.mjs", address], capture_output=True, text=True, check=True).stdout.strip())
PYTHON
)
expected=$(cat <<'SEEN'
PyPI ping ['Hallo', None]
PyPI error ['Hallo', None]
PyPI inside ['Hallo', 'APIError']
npm ping [ 'Hallo', undefined ]
npm error [ 'Hallo', undefined ]
npm inside [ 'Hallo', 'APIError' ]
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
