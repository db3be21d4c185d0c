"""Which pages may use the gateway: over HTTP with CORS, over a WebSocket that is closed with a reason."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import httpx
import pytest
from prometheus_client import REGISTRY
from starlette.requests import HTTPConnection
from websockets.exceptions import ConnectionClosed

from gateway.config import Settings
from gateway.domain.errors import ForeignOrigin
from gateway.server.guard.origins import CLOSE_REASON, Origins
from tests.gateways import Running, running
from tests.over_http import NO_TLS

MEET = "https://meet.example.com"
EVIL = "https://evil.example.com"
PREFLIGHT = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type",
}
BODY = {"text": "hi", "source_lang": "en", "target_lang": "ja"}


async def call(gateway: Running, method: str, path: str, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(timeout=None, verify=NO_TLS) as client:  # noqa: S113
        url = f"http://127.0.0.1:{gateway.port}{path}"
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await client.request(method, url, headers=named, json=BODY if method == "POST" else None)


@pytest.fixture
async def gateway() -> AsyncIterator[Running]:
    async with running(Settings(allowed_origins=(MEET, "https://b.example.com"))) as gateway:
        yield gateway


# ---------------------------------------------------------------- over HTTP


async def test_a_page_that_is_allowed_may_call_and_read(gateway: Running) -> None:
    asked = await call(gateway, "OPTIONS", "/v1/translate", Origin=MEET, **PREFLIGHT)
    assert asked.status_code == 200
    assert asked.headers["access-control-allow-origin"] == MEET
    assert "Origin" in asked.headers["vary"]
    assert {"authorization", "content-type"} <= {
        name.strip().lower() for name in asked.headers["access-control-allow-headers"].split(",")
    }
    assert "POST" in asked.headers["access-control-allow-methods"]
    answer = await call(gateway, "POST", "/v1/translate", Origin=MEET)
    assert answer.json()["translation"] == "[ja] hi"
    assert answer.headers["access-control-allow-origin"] == MEET
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize("path", ["/v1/languages", "/v1/nothing", "/v1/meetings/m/transcript.json"])
async def test_errors_can_be_read_as_well(gateway: Running, path: str) -> None:
    assert (await call(gateway, "GET", path, Origin=MEET)).headers["access-control-allow-origin"] == MEET


async def test_a_page_that_is_not_allowed_reads_nothing(gateway: Running) -> None:
    asked = await call(gateway, "OPTIONS", "/v1/translate", Origin=EVIL, **PREFLIGHT)
    assert asked.status_code == 400
    assert "access-control-allow-origin" not in asked.headers
    answer = await call(gateway, "POST", "/v1/translate", Origin=EVIL)
    assert "access-control-allow-origin" not in answer.headers
    # A cache must not give one page the answer to another.
    assert answer.headers["vary"] == "Origin"
    assert (await call(gateway, "GET", "/v1/languages")).headers["vary"] == "Origin"


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("DELETE", PREFLIGHT | {"Access-Control-Request-Method": "DELETE"}),
        ("POST", PREFLIGHT | {"Access-Control-Request-Headers": "x-anything"}),
    ],
)
async def test_a_preflight_for_more_than_the_api_takes(
    gateway: Running, method: str, headers: dict[str, str]
) -> None:
    assert (await call(gateway, "OPTIONS", "/v1/translate", Origin=MEET, **headers)).status_code == 400


@pytest.mark.parametrize("path", ["/readyz", "/metrics", "/"])
async def test_only_the_api_is_for_other_pages(gateway: Running, path: str) -> None:
    assert "access-control-allow-origin" not in (await call(gateway, "GET", path, Origin=MEET)).headers


async def test_any_page_and_none() -> None:
    async with running(Settings(allowed_origins=("*",))) as gateway:
        answer = await call(gateway, "POST", "/v1/translate", Origin=EVIL)
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in answer.headers
    async with running() as gateway:
        answer = await call(gateway, "POST", "/v1/translate", Origin=MEET)
        assert answer.status_code == 200
        assert "access-control-allow-origin" not in answer.headers
        assert (await call(gateway, "OPTIONS", "/v1/translate", Origin=MEET, **PREFLIGHT)).status_code == 405


# ---------------------------------------------------------------- over a WebSocket


async def test_a_refused_page_is_told_why(gateway: Running) -> None:
    def refused() -> float:
        return REGISTRY.get_sample_value("gateway_errors_total", {"code": "foreign_origin"}) or 0.0

    before = refused()
    async with gateway.peer(origin=EVIL) as peer:
        with pytest.raises(ConnectionClosed) as caught:
            await peer.connection.recv()
    assert caught.value.rcvd is not None
    assert (caught.value.rcvd.code, caught.value.rcvd.reason) == (4504, CLOSE_REASON)
    assert refused() == before + 1
    assert gateway.gateway.stream.open_sessions == 0
    assert len(CLOSE_REASON.encode()) <= 123


async def test_what_a_refused_page_sends_is_not_read(gateway: Running) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(
        f"GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{gateway.port}\r\nOrigin: {EVIL}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
        # A message before any answer, and no reply to the close.
        + b"\x81\x80\x00\x00\x00\x00"
    )
    # Until the gateway ends the connection by itself; the suite's timeout is the bound.
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 101")
    assert CLOSE_REASON.encode() in answer
    writer.close()


def asking(origin: str | None, host: str = "gateway.example") -> HTTPConnection:
    headers = [(b"host", host.encode("latin-1"))]
    if origin is not None:
        headers.append((b"origin", origin.encode("latin-1")))
    return HTTPConnection({"type": "websocket", "headers": headers})


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        (None, True),
        (MEET, True),
        ("https://gateway.example", True),
        ("http://gateway.example:8000", False),
        (EVIL, False),
        ("null", False),
        ("", False),
        ("http://[", False),
    ],
)
def test_which_origins_are_allowed(origin: str | None, allowed: bool) -> None:
    origins = Origins([MEET])
    if allowed:
        origins.check(asking(origin))
    else:
        with pytest.raises(ForeignOrigin):
            origins.check(asking(origin))
    Origins(["*"]).check(asking(origin))


@pytest.mark.parametrize(
    ("host", "origin", "equal"),
    [
        ("gateway.example:443", "https://gateway.example", True),
        ("gateway.example:80", "http://gateway.example", True),
        ("[::1]:443", "https://[::1]", True),
        ("gateway.example", "https://gateway.example:443", True),
        ("Gateway.Example:443", "https://gateway.example", True),
        ("gateway.example:443", "http://gateway.example", False),
        ("gateway.example:80", "https://gateway.example", False),
        ("gateway.example:8443", "https://gateway.example", False),
        ("gateway.example:4430", "https://gateway.example:443", False),
        ("gateway.example:443", "https://gateway.example:8443", False),
        ("", "https://:443", False),
        (":443", "https://", False),
        ("evil.example:443", "https://gateway.example", False),
    ],
)
def test_own_port_of_a_scheme_may_be_named(host: str, origin: str, equal: bool) -> None:
    if equal:
        Origins().check(asking(origin, host))
    else:
        with pytest.raises(ForeignOrigin):
            Origins().check(asking(origin, host))


def test_each_origin_is_logged_once_and_not_without_end(caplog: pytest.LogCaptureFixture) -> None:
    origins = Origins()
    with caplog.at_level(logging.WARNING):
        for n in range(300):
            for _ in range(2):
                with pytest.raises(ForeignOrigin):
                    origins.check(asking(f"https://{n}.example\x1b[31m" + "x" * 1_000))
    assert len(caplog.messages) == 100
    assert "https://0.example" in caplog.messages[0]
    assert "\x1b" not in "".join(caplog.messages)
    assert max(map(len, caplog.messages)) < 400
    assert caplog.messages[-1].endswith("no more origins are logged")
