#!/bin/sh
# websockets 17.4 sends a message that is given as an iterable of n parts in n + 1 frames: the last one is an empty
# continuation, as it cannot know which part is the last. A peer that handles frames itself (picows 2.3.1 here) must not
# take the end of the parts for the end of the message, nor an empty frame for a keep-alive.
# Guess before: n frames, the last of them final.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check websockets==17.4 picows==2.3.1
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import asyncio
import threading
from websockets.asyncio.server import serve

async def speak(connection):
    await connection.send(["a", "b", "c"])
    await connection.wait_closed()

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

import picows


class Listener(picows.WSListener):
    def on_ws_frame(self, transport, frame):
        print(frame.msg_type.name, bool(frame.fin), frame.get_payload_as_bytes())
        if frame.fin:
            transport.disconnect()


async def main():
    transport, _ = await picows.ws_connect(Listener, f"ws://127.0.0.1:{ports[0]}")
    await transport.wait_disconnected()


asyncio.run(main())
PYTHON
)
expected=$(cat <<'SEEN'
TEXT False b'a'
CONTINUATION False b'b'
CONTINUATION False b'c'
CONTINUATION True b''
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
