"""`/v1/stream` on a real socket: who is let in, and how everybody is told that the gateway leaves."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path

import pytest
from prometheus_client import REGISTRY
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.typing import Origin

from gateway.config import AuthSettings, Settings
from gateway.domain.grants import Revocation
from gateway.engines.simulated import Script
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Caption,
    Error,
    Ping,
    SessionDraining,
    SessionStart,
    SessionStarted,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
    UtteranceCancel,
)
from gateway.server import websocket
from gateway.sessions.local_session import key_of
from tests.clocks import swiftly
from tests.gateways import running
from tests.keys import Keyring
from tests.meetings import START, close_of, joined, say

OPEN_TO_ALL = AuthSettings(insecure_open=True)


async def test_unknown_subprotocols_are_refused_before_the_handshake() -> None:
    async with running() as gateway:
        with pytest.raises(InvalidStatus) as caught:
            async with connect(gateway.url, subprotocols=["chat"]):  # type: ignore[list-item]
                pass
    assert caught.value.response.status_code == 400
    assert b"translation.v1.json" in caught.value.response.body


async def test_a_foreign_web_page_is_refused_unless_allowed() -> None:
    async with running(Settings(allowed_origins=("https://meet.example.com",))) as gateway:
        for origin, opens in {
            "https://evil.example.com": False,
            f"http://localhost:{gateway.port}": False,
            "null": False,
            "http://[": False,
            f"http://127.0.0.1:{gateway.port}": True,
            "https://meet.example.com": True,
        }.items():
            if opens:
                async with gateway.peer(origin=origin) as peer:
                    await peer.send(START)
                    await peer.until(SessionStarted)
            else:
                async with gateway.peer(origin=origin) as peer:
                    assert await close_of(peer) == (4504, None)
    async with (
        running(Settings(allowed_origins=("*",))) as gateway,
        gateway.peer(origin="https://a.example") as peer,
    ):
        await peer.send(START)
        await peer.until(SessionStarted)


async def test_notices_to_foreign_pages_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    # However slow this machine is, no time passes for it.
    monkeypatch.setattr(websocket, "_FOREIGN_PAGES", (1e-9, FOREIGN))
    origin = Origin("https://evil.example.com")
    async with running() as gateway, contextlib.AsyncExitStack() as told:
        for _ in range(FOREIGN):
            # None of them answers the close.
            page = await told.enter_async_context(gateway.peer(origin=origin, close_timeout=0))
            assert await close_of(page) == (4504, None)
        with pytest.raises(InvalidStatus) as caught:
            await told.enter_async_context(gateway.peer(origin=origin))
        assert caught.value.response.status_code == 403
        assert b"allowed_origins" in (caught.value.response.body or b"")
        # Others of the same address do not suffer for it.
        async with gateway.peer() as peer:
            await peer.send(START)
            await peer.until(SessionStarted)


async def test_foreign_page_over_its_addresss_bound_gets_403() -> None:
    settings = Settings(trusted_proxies=("127.0.0.1",), max_connections_per_address=1)
    header, origin = {"X-Forwarded-For": "192.0.2.1"}, Origin("https://evil.example.com")
    async with running(settings) as gateway, gateway.peer(additional_headers=header) as peer:
        await peer.send(START)
        await peer.until(SessionStarted)
        with pytest.raises(InvalidStatus) as caught:
            async with gateway.peer(additional_headers=header, origin=origin):
                pass
        assert caught.value.response.status_code == 403


async def test_rebound_host_name_is_refused() -> None:
    # DNS rebinding: the page's own origin and the host it asks for are the same foreign name.
    for settings, host, status in [
        (Settings(), "evil.example.com", 421),
        (Settings(), "192.168.1.5", 421),
        (Settings(), "localhost", 101),
        (Settings(host="0.0.0.0", auth=OPEN_TO_ALL), "evil.example.com", 421),
        (Settings(host="0.0.0.0", auth=OPEN_TO_ALL), "192.168.1.5", 101),
        (Settings(host="0.0.0.0", auth=OPEN_TO_ALL, allowed_hosts=("meet.example.com",)), "meet.example.com", 101),
    ]:
        async with running(settings) as gateway:
            page = Origin(f"http://{host}:{gateway.port}")
            opening = connect(f"ws://{host}:{gateway.port}/v1/stream", host="127.0.0.1", origin=page)
            if status == 101:
                async with opening:
                    continue
            with pytest.raises(InvalidStatus) as caught:
                await opening
            assert caught.value.response.status_code == status


@swiftly
async def test_drain_turns_new_sessions_away_and_finishes_accepted_work() -> None:
    async with running() as gateway, gateway.peer() as peer:
        await peer.send(START, say("u1", "STALL"))
        await peer.until(Caption)
        draining = asyncio.create_task(gateway.gateway.drain())
        assert (await peer.until(SessionDraining))[-1].deadline_ms == 30_000
        async with gateway.peer() as late:
            code, error = await close_of(late)
            assert (code, error and error.code) == (4012, "draining")
        await peer.send(say("u2"))
        assert (await peer.until(Error))[-1].code == "draining"
        await peer.send(UtteranceCancel(id="u1"))
        assert (await peer.until(TranslationFailed))[-1].utterance == "u1"
        code, error = await close_of(peer)
        assert (code, error and error.code) == (1012, "draining")
        assert error is not None
        assert error.retry_after_ms == 1_000, "nobody else has the session"
        await draining


@swiftly
async def test_drain_gives_up_at_its_deadline_and_says_so() -> None:
    async with running(Settings(drain_s=0.05)) as gateway, gateway.peer() as peer:
        await peer.send(START, say("u1", "STALL"))
        await peer.until(Caption)
        await gateway.gateway.drain()
        assert (await peer.until(TranslationFailed))[-1].code == "draining"
        code, error = await close_of(peer)
        assert (code, error and error.code) == (1012, "draining")


def translated() -> float:
    return REGISTRY.get_sample_value("gateway_translations_total", {"outcome": "final", "lang": "ja"}) or 0.0


@swiftly
async def test_lagging_reader_gets_everything_before_the_drain_ends() -> None:
    script = Script(first_token_s=0.0, token_s=0.0, max_running=64)
    # More bytes than the sockets' buffers hold, in few tokens.
    text = f"{'w' * 299} " * 10
    limits = Limits(utterances_in_flight=2_000, messages_burst=2_000, text_chars=2 * len(text))
    settings = Settings(limits=limits, segment_chars=len(text), outbox_bytes=2**28, max_waiting=10_000)
    async with running(settings, script=script) as gateway, gateway.peer(max_queue=1) as peer:
        await peer.send(START)
        started = (await peer.until(SessionStarted))[-1]
        feed = gateway.gateway.sessions.local._sessions[key_of(started.session)].member.feed
        assert feed is not None
        peer.connection.transport.pause_reading()
        goal = translated() + 1_000
        for n in range(1_000):
            await peer.send(say(f"u{n}", text))
        while translated() < goal:
            await asyncio.sleep(0.01)
        assert feed.outbox.bytes, "it has not everything yet"
        leaving = asyncio.create_task(gateway.gateway.drain())
        (served,) = gateway.gateway.stream._connections
        while served._writer.close_code is None:
            await asyncio.sleep(0.005)
        for _ in range(20):
            await asyncio.sleep(0)
        assert not leaving.done(), "the gateway waits for a reader that is slow, not gone"
        peer.connection.transport.resume_reading()
        accepted, final = set(), set()
        try:
            while True:
                message = await peer.receive()
                if isinstance(message, UtteranceAccepted):
                    accepted.add(message.id)
                elif isinstance(message, TranslationFinal):
                    final.add(message.utterance)
        except ConnectionClosed as closed:
            assert closed.rcvd is not None
            assert closed.rcvd.code == 1012
        assert len(accepted) == 1_000
        assert accepted == final
        await leaving


# ---------------------------------------------------------------- idle connections


@swiftly
async def test_silent_connection_is_closed_and_session_kept() -> None:
    settings = Settings(limits=Limits(idle_s=1))
    async with running(settings) as gateway, joined(gateway, reads=["ja"]) as bo:
        assert await bo.closed() == 4010
        assert bo.received[-1].code == "session_idle"
        async with joined(gateway, reads=["ja"], resume=bo.resume()) as again:
            assert again.started.recovered is True


async def test_proxied_addresses_have_their_share_of_connections() -> None:
    settings = Settings(trusted_proxies=("127.0.0.1",), max_connections_per_address=2)
    one, another = {"X-Forwarded-For": "192.0.2.1"}, {"X-Forwarded-For": "192.0.2.2"}
    async with running(settings) as gateway, contextlib.AsyncExitStack() as open_ones:
        for _ in range(2):
            await open_ones.enter_async_context(connect(gateway.url, additional_headers=one))
        async with connect(gateway.url, additional_headers=one) as third:
            refusal = json.loads(await third.recv())
            assert (refusal["type"], refusal["code"]) == ("error", "rate_limited")
            await third.wait_closed()
            assert third.close_code == 4509
        async with connect(gateway.url, additional_headers=another) as other:
            await other.send(json.dumps({"type": "session.start", "reads": []}))
            assert json.loads(await other.recv())["type"] == "session.started"


async def test_who_is_no_trusted_proxy_names_nobody_else() -> None:
    settings = Settings(max_connections_per_address=2)
    async with running(settings) as gateway, contextlib.AsyncExitStack() as open_ones:
        for n in range(2):
            header = {"X-Forwarded-For": f"192.0.2.{n}"}
            await open_ones.enter_async_context(connect(gateway.url, additional_headers=header))
        before = gateway.gateway.stream.open_sessions
        with contextlib.suppress(WebSocketException, OSError):  # closed before it is a WebSocket, or right after
            async with connect(gateway.url, additional_headers={"X-Forwarded-For": "192.0.2.9"}) as third:
                await third.wait_closed()
        assert gateway.gateway.stream.open_sessions == before == 2


# ---------------------------------------------------------------- tokens

# Pages of an address that are told at once that they may not use the gateway.
FOREIGN = 8
ANONYMOUS = 64

LONG = {"ja": {f"{n} {'x' * 70}": "y" for n in range(60)}}


@pytest.mark.parametrize(
    "header",
    ["Bearer nonsense", "Bearer", "Basic YW5hOmFuYQ==", "expired", "of another gateway", "revoked", "API key"],
)
async def test_a_bad_token_is_refused_with_the_handshake(header: str, tmp_path: Path) -> None:
    keys = Keyring(tmp_path)
    (tmp_path / "other").mkdir()
    other = Keyring(tmp_path / "other")
    headers = {
        "expired": keys.bearer(age_s=10_000),
        "of another gateway": other.bearer(),
        "revoked": keys.bearer(subject="revoked"),
        "API key": {"Authorization": f"Bearer {other.api_key}"},
    }.get(header, {"Authorization": header})
    async with running(keys.settings()) as gateway:
        await gateway.gateway.sessions.revoke(Revocation(tenant="acme", before_s=1e12, subject="revoked"))
        with pytest.raises(InvalidStatus) as caught:
            async with gateway.peer(additional_headers=headers):
                pass
    response = caught.value.response
    assert (response.status_code, response.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert response.headers["Content-Type"].startswith("text/plain")
    assert response.body == b"This gateway needs a valid token.", "the same for every reason"


async def test_good_token_or_api_key_opens_the_handshake(tmp_path: Path) -> None:
    keys = Keyring(tmp_path)
    async with running(keys.settings()) as gateway:
        for headers in (keys.bearer(), {"Authorization": f"bearer {keys.api_key}"}):
            async with gateway.peer(additional_headers=headers) as peer:
                # More than whoever is unknown may send.
                await peer.send(SessionStart(reads=["ja"], meeting="m", context="x" * 1_000, glossary=LONG))
                assert (await peer.until(SessionStarted))[-1].meeting == "m"
                await peer.send(say("u1"))


@pytest.mark.parametrize("header", ["Bearer nonsense", "Bearer", "Basic YW5hOmFuYQ=="])
async def test_a_gateway_without_keys_ignores_the_header(header: str) -> None:
    async with running() as gateway, gateway.peer(additional_headers={"Authorization": header}) as peer:
        await peer.send(START)
        await peer.until(SessionStarted)


@swiftly
async def test_unknown_connections_of_one_address_are_bounded(tmp_path: Path) -> None:
    keys = Keyring(tmp_path)
    start = SessionStart(reads=["ja"], meeting="m", token=keys.token())
    async with running(keys.settings()) as gateway, contextlib.AsyncExitStack() as open_ones:
        # Those of which it is known do not count.
        for _ in range(3):
            await open_ones.enter_async_context(gateway.peer(additional_headers=keys.bearer()))
        unknown = [await open_ones.enter_async_context(gateway.peer()) for _ in range(ANONYMOUS)]
        async with gateway.peer() as one_too_many:
            code, error = await close_of(one_too_many)
            assert (code, error and error.code) == (4509, "rate_limited")
        async with gateway.peer(additional_headers=keys.bearer()) as known:
            await known.send(Ping("x"))
            assert (await known.until(Error))[-1].code == "session_not_started"
        await unknown[0].send(start)
        await unknown[0].until(SessionStarted)
        async with gateway.peer() as in_its_place:
            await in_its_place.send(start)
            await in_its_place.until(SessionStarted)


@swiftly
async def test_unknown_client_is_closed_soon(tmp_path: Path) -> None:
    keys = Keyring(tmp_path)
    async with running(keys.settings(limits=Limits(start_timeout_s=100))) as gateway:
        for headers, seconds in (({}, "5 s"), (keys.bearer(), "100 s")):
            async with gateway.peer(additional_headers=headers) as peer:
                code, error = await close_of(peer)
            assert (code, error and error.code) == (4010, "start_timeout")
            assert error is not None
            assert error.message == f"No session.start within {seconds}."


async def test_failed_resume_gets_only_known_languages() -> None:
    start = {"type": "session.start", "resume": {"session": "s" * 32, "epoch": "e", "offset": 0}}
    async with running() as gateway, connect(f"ws://127.0.0.1:{gateway.port}/v1/stream") as socket:
        for field, value in (("reads", ["tlh"]), ("speaks", "tlh")):
            await socket.send(json.dumps({**start, "reads": ["ja"], field: value}))
            error = json.loads(await socket.recv())
            assert (error["type"], error["code"]) == ("error", "unsupported_language")
        await socket.send(json.dumps({**start, "reads": ["ja"]}))
        assert json.loads(await socket.recv())["recovered"] is False


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/streams", "/v1/translate", "/client/client.js"])
async def test_no_websocket_at_another_address(path: str) -> None:
    async with running() as gateway:
        with pytest.raises(InvalidStatus) as refused:
            async with connect(gateway.url.replace("/v1/stream", path)):
                pass
    assert refused.value.response.status_code == 404
    assert b"/v1/stream" in (refused.value.response.body or b"")
