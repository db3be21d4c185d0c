"""A collector of traces: takes what is sent over OTLP/HTTP, and decodes it with OpenTelemetry's own messages."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from msgspec import Struct
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Seen(Struct):
    """One span. Times are in nanoseconds."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    begins: int
    ends: int
    about: dict[str, object]
    events: list[tuple[str, dict[str, object]]]
    # Whether its status is an error.
    failed: bool
    # What is told of the process.
    resource: dict[str, object]


class Collector:
    """What has come so far. endpoint: for `OTEL_EXPORTER_OTLP_ENDPOINT`."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.spans: list[Seen] = []
        # Everything as it came.
        self.raw = b""
        self._changed = threading.Condition()

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        with self._changed:
            self.raw += body
            for of_process in request.resource_spans:
                resource = _values(of_process.resource.attributes)
                for scope in of_process.scope_spans:
                    for span in scope.spans:
                        self.spans.append(
                            Seen(
                                span.name,
                                span.trace_id.hex(),
                                span.span_id.hex(),
                                span.parent_span_id.hex(),
                                span.kind,
                                span.start_time_unix_nano,
                                span.end_time_unix_nano,
                                _values(span.attributes),
                                [(event.name, _values(event.attributes)) for event in span.events],
                                span.status.code == 2,
                                resource,
                            )
                        )
            self._changed.notify_all()

    def wait_for(self, is_there: Callable[[list[Seen]], bool]) -> list[Seen]:
        """All spans, once what is wanted is among them. The suite's timeout is the bound."""
        with self._changed:
            while not is_there(self.spans):
                self._changed.wait(1)
            return list(self.spans)

    def named(self, name: str, trace_id: str | None = None) -> list[Seen]:
        return [each for each in self.spans if each.name == name and trace_id in (None, each.trace_id)]


def _values(attributes: object) -> dict[str, object]:
    return {
        each.key: getattr(each.value, each.value.WhichOneof("value"))
        for each in attributes  # type: ignore[attr-defined]
    }


@contextmanager
def collector() -> Iterator[Collector]:
    """One on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.path == "/v1/traces"
            found.take(body)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Collector(f"http://127.0.0.1:{server.server_port}")
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
