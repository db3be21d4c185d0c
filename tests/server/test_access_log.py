"""What the log tells of requests and WebSockets, on real sockets."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket
from websockets.exceptions import InvalidStatus

from gateway.config import Settings
from gateway.domain.errors import GatewayError
from gateway.domain.grants import hash_of_meeting
from gateway.protocol.limits import Limits
from gateway.protocol.messages import SessionEnd, SessionStart, TranslationFinal
from gateway.protocol.rate_limit import TokenBucket
from gateway.server import access_log
from gateway.server.access_log import AccessLog, Traced
from gateway.tracing import spans
from tests.gateways import running
from tests.keys import Keyring
from tests.meetings import joined, say
from tests.over_http import serving
from tests.patience import until
from tests.tracing.recorder import recording

TEXT = {"text": "good morning", "source_lang": "en", "target_lang": "de"}

Ended = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def ended(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Ended:
    """The fields of all lines of an event, at `info` and above unless given."""
    # Other tests of this process have used theirs up.
    for name in ("_refused", "_answered"):
        monkeypatch.setattr(access_log, name, access_log._Lines(0.001, 5))
    caplog.set_level(logging.DEBUG, "gateway.server.access_log")

    def found(event: str, level: int = logging.INFO) -> list[dict[str, Any]]:
        records = [record for record in caplog.records if record.name == "gateway.server.access_log"]
        fields = [(record, vars(record)["fields"]) for record in records if record.levelno >= level]
        return [{**of, "level": record.levelname} for record, of in fields if of["event"] == event]

    return found


async def test_websockets_end_is_logged_with_its_traffic(ended: Ended) -> None:
    headers = {"User-Agent": "captions/1.0", "X-Request-Id": "from-the-proxy"}
    async with running() as gateway:
        async with joined(gateway, meeting="standup", speaks="en", reads=["de"]) as ana:
            await ana.peer.send(say("1", "good morning"))
            await ana.until(TranslationFinal)
            await ana.peer.send(SessionEnd())
            await ana.closed()
        async with gateway.peer(additional_headers=headers) as peer:
            await peer.connection.close(1001)
        await until(lambda: len(ended("websocket")) == 2)
    first, second = ended("websocket")
    assert (first["close_code"], first["reason"], first["level"]) == (1000, "normal", "INFO")
    assert first["address"] == "127.0.0.1"
    assert first["meeting"] == hash_of_meeting("default", "standup")
    assert re.fullmatch("[0-9a-f]{12}", first["session"])
    assert first["session"] not in ana.started.session
    assert first["participant"] == ana.started.participant
    # session.start, utterance.final, session.end; at least session.started, accepted, caption, final.
    assert first["received_frames"] == 3
    assert first["sent_frames"] >= 4
    assert first["sent_bytes"] > first["received_bytes"] > 100
    assert first["duration_s"] > 0
    assert first["lag_bytes"] >= first["lag_merged"] >= 0
    assert re.fullmatch("[0-9a-f]{16}", first["request_id"])
    assert (second["close_code"], second["reason"]) == (1001, "lost")
    assert (second["request_id"], second["user_agent"]) == ("from-the-proxy", "captions/1.0")
    assert "session" not in second


async def test_why_the_gateway_closed_it(ended: Ended) -> None:
    async with running(Settings(limits=Limits(start_timeout_s=1))) as gateway, gateway.peer() as peer:
        await peer.connection.wait_closed()
        await until(lambda: ended("websocket"))
    [late] = ended("websocket")
    assert (late["close_code"], late["reason"]) == (4010, "start_timeout")


async def test_request_line_names_the_answer_not_the_meeting(ended: Ended) -> None:
    async with serving() as (_, client):
        answer = await client.post("/v1/translate", json=TEXT, headers={"X-Request-Id": "a b"})
        await client.get("/v1/meetings/m/transcript.txt")
        await client.get("/v1/secret-address")
        await client.get("/secret")
        await client.get("/readyz", headers={"X-Request-Id": "probe"})
        await client.head("/")
        await client.get("/languages")
    translate, transcript, missing, languages = ended("request")
    assert (translate["method"], translate["route"], translate["status"]) == ("POST", "/v1/translate", 200)
    assert translate["request_id"] == answer.headers["x-request-id"] != "a b"
    assert translate["sent_bytes"] == len(answer.content)
    assert (transcript["route"], transcript["status"]) == ("/v1/meetings/{meeting}/transcript.{format}", 404)
    assert (missing["route"], missing["status"]) == ("/v1/{rest}", 404)
    assert (languages["route"], languages["status"]) == ("/languages", 200)
    assert "secret" not in str(ended("request", logging.DEBUG))
    # Health checks would hide everything else.
    [probe] = [each for each in ended("request", logging.DEBUG) if each["request_id"] == "probe"]
    assert (probe["route"], probe["level"]) == ("/readyz", "DEBUG")


async def test_text_counts_in_bytes(ended: Ended) -> None:
    async with running() as gateway, gateway.peer() as peer:
        await peer.connection.send("日本")
        await peer.receive()
        await peer.connection.close()
        await until(lambda: ended("websocket"))
    [line] = ended("websocket")
    assert line["received_bytes"] == 6


async def test_a_page_of_another_site_leaves_a_line(ended: Ended) -> None:
    async with running() as gateway, gateway.peer(origin="https://evil.example.com") as peer:
        await peer.connection.wait_closed()
        await until(lambda: ended("websocket"))
    assert [each["close_code"] for each in ended("websocket")] == [4504]


async def test_log_says_why_a_token_is_refused(
    ended: Ended, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = Keyring(tmp_path)
    old, good = keys.token(age_s=700), keys.token()
    presented = {"expired": old, "bad_signature": f"{good[:-4]}AAAA", "missing": None}
    async with serving(settings=keys.settings()) as (gateway, client):
        told = set()
        for token in presented.values():
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            answer = await client.post("/v1/translate", json=TEXT, headers=headers)
            told.add((answer.status_code, answer.text))
        assert len(told) == 1
        with pytest.raises(InvalidStatus):
            async with gateway.peer(additional_headers={"Authorization": f"Bearer {old}"}):
                pass
        async with gateway.peer() as peer:
            await peer.send(SessionStart(reads=[], token=old))
            await peer.connection.wait_closed()
        await until(lambda: ended("websocket"))
    assert [line["why"] for line in ended("request")] == [*presented, "expired"]
    assert [(line["reason"], line["why"]) for line in ended("websocket")] == [("unauthenticated", "expired")]
    assert "401 (expired) after" in caplog.text
    assert old not in caplog.text


async def test_a_bug_further_in_is_an_error(ended: Ended) -> None:
    async def broken(*_: Any) -> None:
        raise ZeroDivisionError

    scope = {"type": "http", "headers": [], "path": "/", "app": Starlette(), "method": "POST", "client": None}
    with pytest.raises(ZeroDivisionError):
        await AccessLog(broken)(scope, broken, broken)  # type: ignore[arg-type]
    assert [(each["status"], each["level"]) for each in ended("request")] == [(500, "ERROR")]


async def test_many_refusals_make_few_lines_with_a_count(ended: Ended, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as (gateway, client):
        for _ in range(12):
            await client.post("/v1/translate", json={})
        for _ in range(2):
            async with gateway.peer() as peer:
                await peer.connection.close()
        await client.post("/v1/translate", json=TEXT)
        refused = [line for line in ended("request") if line["status"] != 200]
        assert len(refused) == 5
        # What was answered has a rate of its own.
        assert [line["status"] for line in ended("request")][5:] == [200]
        await until(lambda: access_log._refused._left_out == 9)
        assert ended("websocket") == []
        monkeypatch.setattr(access_log._refused, "_bucket", TokenBucket(1, 1))
        await client.post("/v1/translate", json={})
    assert ended("request")[-1]["left_out"] == 9


async def test_a_fault_is_an_error(ended: Ended, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as (gateway, client):

        async def broken(*_: Any, **__: Any) -> Any:
            raise GatewayError("A bug.")

        monkeypatch.setattr(gateway.gateway.log, "read", broken)
        await client.get("/v1/meetings/m/transcript.txt")
    assert [(each["status"], each["level"]) for each in ended("request")] == [(500, "ERROR")]


async def test_a_websocket_that_is_refused_is_a_request(ended: Ended) -> None:
    async with running() as gateway:
        with pytest.raises(InvalidStatus):
            async with gateway.peer(additional_headers={"Host": "a second one"}):
                pass
    [refused] = ended("request")
    assert refused["status"] == 400
    assert ended("websocket") == []


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


def test_request_joins_the_clients_trace(client: TestClient) -> None:
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


def test_websocket_spans_join_the_handshakes_trace(client: TestClient) -> None:
    with recording() as seen, client.websocket_connect("/v1/stream", headers={"traceparent": THEIRS}) as websocket:
        assert websocket.receive_text() == THEIRS
    assert seen == []
