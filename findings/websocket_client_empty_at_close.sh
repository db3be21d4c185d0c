#!/bin/sh
# websocket-client 1.9.2: the `recv()` in which the server's close arrives returns "" instead of raising, which is also
# what it returns for an empty message. The close code is nowhere on the object. Only the next `recv()` raises.
# Guess before: it raises WebSocketConnectionClosedException with the code, at once.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check websocket-client==1.9.2 websockets==17.4
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import asyncio
import threading
from websockets.asyncio.server import serve

async def speak(connection):
    await connection.send("hello")
    await connection.send("")
    await connection.close(4001, "bye")

def run():
    async def main():
        async with serve(speak, "127.0.0.1", 0) as server:
            ports.append(server.sockets[0].getsockname()[1])
            started.set()
            await asyncio.Future()

    asyncio.run(main())

ports, started = [], threading.Event()
threading.Thread(target=run, daemon=True).start()
started.wait()

import websocket

client = websocket.create_connection(f"ws://127.0.0.1:{ports[0]}", timeout=10)
for _ in range(4):
    try:
        print(repr(client.recv()))
    except websocket.WebSocketException as error:
        print(type(error).__name__, "4001" in str(error))
PYTHON
)
expected=$(cat <<'SEEN'
'hello'
''
''
WebSocketConnectionClosedException False
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
