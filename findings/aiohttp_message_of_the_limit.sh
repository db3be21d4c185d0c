#!/bin/sh
# aiohttp 3.14.5 refuses a WebSocket message of exactly `max_msg_size` bytes ("Message size 1000 exceeds limit 1000",
# code 1009); websockets 17.4 and tornado 6.6.1 take it. So two sides that agree on a limit do not agree.
# Guess before: a message of the limit passes, as its error text says.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check aiohttp==3.14.5 websockets==17.4 tornado==6.6.1
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import asyncio

import aiohttp
import tornado.websocket
import websockets
from websockets.asyncio.server import serve


async def send(peer):
    await peer.send("x" * int(peer.request.path[1:]))
    await peer.wait_closed()


async def look():
    async with serve(send, "127.0.0.1", 0) as server:
        address = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        for size in (999, 1000, 1001):
            async with aiohttp.ClientSession() as session, session.ws_connect(address + str(size), max_msg_size=1000) as socket:
                print(size, "aiohttp", (await socket.receive()).type.name)
            async with websockets.connect(address + str(size), max_size=1000) as socket:
                try:
                    print(size, "websockets", len(await socket.recv()))
                except websockets.ConnectionClosed as error:
                    print(size, "websockets", error.sent.code)
            socket = await tornado.websocket.websocket_connect(address + str(size), max_message_size=1000)
            print(size, "tornado", bool(await socket.read_message()))
            socket.close()


asyncio.run(look())
PYTHON
)
expected=$(cat <<'SEEN'
999 aiohttp TEXT
999 websockets 999
999 tornado True
1000 aiohttp ERROR
1000 websockets 1000
1000 tornado True
1001 aiohttp ERROR
1001 websockets 1009
1001 tornado False
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
