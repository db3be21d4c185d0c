#!/bin/sh
# Server-sent events are UTF-8 and say no charset. sseclient 0.0.27 reads them as Latin-1 then: "é" becomes two letters, and
# all of Japanese is lost. aiohttp-sse-client 0.2.1 takes all blanks off the front of data, where the standard takes one:
# a stream of words is glued together. httpx-sse 0.4.3 reads both rightly.
# Guess before: letters and all but one blank arrive, in all three.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check sseclient==0.0.27 aiohttp-sse-client==0.2.1 aiohttp==3.14.5 httpx==0.28.1 httpx-sse==0.4.3
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import asyncio
import http.server
import threading

import httpx
import httpx_sse
import sseclient
from aiohttp_sse_client.client import EventSource


class Captions(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = "data: café\n\ndata:  日本\n\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


async def by_aiohttp(url):
    async with EventSource(url) as source:
        return [(await anext(source)).data for _ in range(2)]


with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Captions) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    source = sseclient.SSEClient(url)
    print("sseclient", ascii([next(source).data for _ in range(2)]))
    print("aiohttp-sse-client", asyncio.run(by_aiohttp(url)))
    with httpx.Client() as client, httpx_sse.connect_sse(client, "GET", url) as events:
        print("httpx-sse", [event.data for event in events.iter_sse()])
    server.shutdown()
PYTHON
)
expected=$(cat <<'SEEN'
sseclient ['caf\xc3\xa9', ' \xe6\x97\xa5\xe6\x9c\xac']
aiohttp-sse-client ['café', '日本']
httpx-sse ['café', ' 日本']
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
