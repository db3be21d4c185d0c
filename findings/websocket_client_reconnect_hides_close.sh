#!/bin/sh
# websocket-client 1.9.2: `run_forever(reconnect=...)` comes back after every close code, and does not call `on_close`
# nor `on_error` while it does: not for 1000, with which a server ends a session, and not for 4401. `on_open` is called
# again, so a program begins a new session without having heard that the old one is over, or why.
# Guess before, not written down: it comes back, and `on_close` is called each time with code and reason.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check websocket-client==1.9.2 websockets==17.4
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import logging
import threading

import websocket
from websockets.sync.server import serve

logging.disable()
for code in (1000, 4401):
    peers = []

    def close(peer, code=code, peers=peers):
        peers.append(peer)
        if len(peers) < 3:
            peer.close(code, "over")
        else:
            peer.recv()

    with serve(close, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        opened, closed, errors = [], [], []

        def on_open(app, code=code, opened=opened, closed=closed, errors=errors):
            opened.append(True)
            if len(opened) == 3:
                print(code, "opened 3 times, on_close", closed, "on_error", errors)
                app.close()

        app = websocket.WebSocketApp(
            f"ws://127.0.0.1:{server.socket.getsockname()[1]}/",
            on_open=on_open,
            on_close=lambda app, *told, closed=closed: closed.append(told),
            on_error=lambda app, error, errors=errors: errors.append(str(error)),
        )
        app.run_forever(reconnect=0.1)
        server.shutdown()
PYTHON
)
expected=$(cat <<'SEEN'
1000 opened 3 times, on_close [] on_error []
4401 opened 3 times, on_close [] on_error []
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
