"""A hub on this machine that serves folders as models, by the routes of the real one's API."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from msgspec import Struct, field

_SHA = "0123456789abcdef0123456789abcdef01234567"


class HubFolder(Struct):
    """A model. card: what its page says of it. gated: its terms are to be accepted first."""

    folder: Path
    card: dict[str, str] = field(default_factory=dict)
    gated: bool = False


class Hub(Struct):
    """url: for `HF_ENDPOINT`. models: by name. cut: how many bytes of a file come before a connection is lost."""

    url: str
    models: dict[str, HubFolder]
    cut: int | None = None
    # Files that were downloaded.
    given: list[str] = field(default_factory=list)


@contextmanager
def running_hub(**models: HubFolder) -> Iterator[Hub]:
    """models: `owner__name` stands for `owner/name`."""
    hub = Hub("", {name.replace("__", "/"): model for name, model in models.items()})

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            _answer(self, hub)

        def do_HEAD(self) -> None:
            _answer(self, hub)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _answer(ask: BaseHTTPRequestHandler, hub: Hub) -> None:
    path = ask.path.partition("?")[0].removeprefix("/")
    name = "/".join(path.removeprefix("api/models/").split("/")[:2])
    model = hub.models.get(name)
    if model is None:
        return _say(ask, 401, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})
    files = {file.name: file for file in sorted(model.folder.iterdir())}
    if path.startswith("api/") and "/tree/" in path:
        return _say(ask, 200, [_entry(file) for file in files.values()])
    if path.startswith("api/"):
        siblings = [{"rfilename": name, "size": file.stat().st_size} for name, file in files.items()]
        about = {"id": name, "sha": _SHA, "gated": model.gated, "cardData": model.card, "siblings": siblings}
        return _say(ask, 200, about)
    if model.gated:
        return _say(ask, 403, {"error": "Access is restricted"}, {"X-Error-Code": "GatedRepo"})
    file = files.get(path.rpartition("/")[2])
    if file is None:
        return _say(ask, 404, {"error": "Entry not found"}, {"X-Error-Code": "EntryNotFound"})
    content = file.read_bytes()
    ask.send_response(200)
    ask.send_header("Content-Length", str(len(content)))
    ask.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')  # noqa: S324 -- a name, as Git's
    ask.send_header("X-Repo-Commit", _SHA)
    ask.end_headers()
    if ask.command == "GET":
        hub.given.append(file.name)
        ask.wfile.write(content[: hub.cut])
        ask.close_connection |= hub.cut is not None


def _entry(file: Path) -> dict[str, Any]:
    oid = hashlib.sha1(file.read_bytes()).hexdigest()  # noqa: S324 -- a name, as Git's
    return {"type": "file", "path": file.name, "size": file.stat().st_size, "oid": oid}


def _say(ask: BaseHTTPRequestHandler, status: int, body: object, headers: dict[str, str] | None = None) -> None:
    content = json.dumps(body).encode()
    ask.send_response(status)
    ask.send_header("Content-Type", "application/json")
    ask.send_header("Content-Length", str(len(content)))
    for header, value in (headers or {}).items():
        ask.send_header(header, value)
    ask.end_headers()
    if ask.command == "GET":
        ask.wfile.write(content)
