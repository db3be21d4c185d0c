"""A receiver of webhooks: a real HTTP server."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Received(NamedTuple):
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def type(self) -> str:
        return str(self.event["type"])


class Receiver(NamedTuple):
    """url: where it is. received: all requests so far, which threads append to."""

    url: str
    received: list[Received]

    def of(self, type: str) -> list[Received]:
        return [each for each in self.received if each.type == type]


@contextmanager
def receiver(answer: Callable[[Received], int] = lambda _: 200, *, retry_after: str = "") -> Iterator[Receiver]:
    """answer: the status that a request is answered with; may block. retry_after: a header of every answer."""
    received: list[Received] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append(one := Received(self.path, dict(self.headers.items()), body))
            status = answer(one)
            try:
                self.send_response(status)
                self.send_header("Location", "/elsewhere")
                if retry_after:
                    self.send_header("Retry-After", retry_after)
                self.send_header("Content-Length", "0")
                self.end_headers()
            except OSError:
                pass  # whoever has sent it is gone

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield Receiver(f"http://127.0.0.1:{server.server_port}/hook", received)
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
