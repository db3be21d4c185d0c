"""Which requests have a span, whose trace it is in, and when it is a failure."""

from __future__ import annotations

from functools import partial

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket

from gateway.server.tracing import Traced
from gateway.tracing import spans
from tests.tracing.recorder import recording

THEIRS = f"00-{7:032x}-{7:016x}-01"


async def answer(request: Request) -> Response:
    return PlainTextResponse(spans.current().traceparent, int(request.query_params.get("status", 200)))


async def stream(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.send_text(spans.current().traceparent)
    await websocket.close()


@pytest.fixture
def client() -> TestClient:
    paths = ("/", "/healthz", "/v1/things/{id}", "/translate")
    # Each has an endpoint of its own, as a route is known by it.
    routes = [Route(path, partial(answer), methods=["GET", "POST"]) for path in paths]
    app = Starlette(routes=[*routes, WebSocketRoute("/v1/stream", stream)])
    app.add_middleware(Traced)
    return TestClient(app)


def test_a_request_is_in_the_clients_trace_and_what_is_behind_it_works_for_it(client: TestClient) -> None:
    with recording() as seen:
        answered = client.post("/v1/things/secret", headers={"traceparent": THEIRS})
    [span] = seen
    assert (span.name, span.parent, span.is_over) == ("POST /v1/things/{id}", THEIRS, True)
    assert answered.text == span.traceparent
    assert (span.fields["route"], span.fields["status"], span.code) == ("/v1/things/{id}", 200, "")


@pytest.mark.parametrize(("status", "code"), [(422, ""), (429, ""), (500, "500"), (503, "503")])
def test_only_what_the_gateway_cannot_do_is_a_failure(client: TestClient, status: int, code: str) -> None:
    with recording() as seen:
        client.get(f"/v1/things/1?status={status}")
    assert [span.code for span in seen] == [code]


def test_reading_the_page_and_health_has_no_span(client: TestClient) -> None:
    with recording() as seen:
        for path in ("/", "/healthz", "/nowhere"):
            client.get(path)
        client.post("/translate")
    assert [span.name for span in seen] == ["POST /translate"]


def test_what_a_websocket_begins_is_in_the_trace_of_its_handshake(client: TestClient) -> None:
    with recording() as seen, client.websocket_connect("/v1/stream", headers={"traceparent": THEIRS}) as websocket:
        assert websocket.receive_text() == THEIRS
    assert seen == []
