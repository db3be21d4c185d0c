"""The writing half of a connection on a real socket: what cannot be encoded, and readers that do not keep up."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest
from starlette.websockets import WebSocket

from gateway.config import EventLogSettings, Settings
from gateway.domain.log import Utterance
from gateway.engines.simulated import Rule, Script
from gateway.protocol.codec import MSGPACK
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Caption,
    SessionStart,
    SessionStarted,
    TranslationFinal,
)
from gateway.sessions.local_session import key_of
from tests.clocks import swiftly
from tests.gateways import running
from tests.meetings import START, away, joined, say


@pytest.mark.parametrize("when", ["live", "replayed"])
@swiftly
async def test_message_one_encoding_cannot_carry_is_left_out(when: str) -> None:
    async with running() as gateway, gateway.peer(MSGPACK) as reader:
        said = Utterance("0", 2**70, "broken", "en", "p", "Ana", final=True)
        if when == "replayed":
            await gateway.gateway.log.accept("m", said)
        await reader.send(SessionStart(reads=["ja", "en"], speaks="en", meeting="m"))
        await reader.until(SessionStarted)
        if when == "live":
            await gateway.gateway.log.accept("m", said)
        await reader.send(say("u1", "whole"))
        received = await reader.until(TranslationFinal)
    assert [m.text for m in received if isinstance(m, Caption)] == ["whole"]


@swiftly
async def test_direct_write_bypasses_asgi(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    through_asgi: list[str] = []
    send = WebSocket.send

    async def noting(self: WebSocket, message: MutableMapping[str, Any]) -> None:
        through_asgi.append(message["type"])
        await send(self, message)

    monkeypatch.setattr(WebSocket, "send", noting)
    async with running() as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        await ana.peer.send(say("u1", "whole"))
        await ana.until(TranslationFinal)
    assert "websocket.send" not in through_asgi
    assert "websocket.accept" in through_asgi


async def test_stalled_reader_is_cut_off_alone() -> None:
    script = Script(first_token_s=0.001, token_s=0.0, max_running=64, rules=(Rule("LONG", repeat=3_000),))
    settings = Settings(outbox_bytes=65_536, limits=Limits(utterances_in_flight=10_000, messages_burst=100_000))
    async with running(settings, script=script) as gateway:  # noqa: SIM117 -- the comment belongs here
        # A client that reads nothing: the kernel's buffers take some, the outbox its bound.
        async with gateway.peer(max_queue=1) as stuck, gateway.peer() as reader:
            await stuck.send(START)
            await stuck.until(SessionStarted)
            await reader.send(START)
            stuck.connection.transport.pause_reading()
            for n in range(400):
                await stuck.send(say(f"u{n}", f"LONG {'x' * 1_900}"))
                if not gateway.gateway.stream.open_sessions > 1:
                    break
            await reader.send(say("alive"))
            assert (await reader.until(TranslationFinal))[-1].utterance == "alive"
            while gateway.gateway.stream.open_sessions > 1:
                await asyncio.sleep(0.01)
            stuck.connection.transport.abort()


async def test_a_reader_past_its_bound_resumes_and_gets_everything() -> None:
    script = Script(first_token_s=0.0, token_s=0.0)
    # Long enough to fill the sockets' buffers soon; whatever these hold, the log keeps all of it.
    text = f"{'w' * 999} " * 20
    limits = Limits(messages_burst=100_000, text_chars=2 * len(text))
    log = EventLogSettings(max_bytes=2**40)
    settings = Settings(limits=limits, segment_chars=len(text), outbox_bytes=200_000, event_log=log)
    async with running(settings, script=script) as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        async with joined(gateway, reads=["ja"]) as slow:
            slow.peer.connection.transport.pause_reading()
            feed = gateway.gateway.sessions.local._sessions[key_of(slow.started.session)].member.feed
            assert feed is not None
            count = 0
            while not feed.outbox.overflowed:
                count += 1
                await ana.peer.send(say(str(count), text))
                await ana.until(TranslationFinal, count)
            slow.lose()
        await away(gateway)
        async with joined(gateway, reads=["ja"], resume=slow.resume()) as again:
            assert again.started.recovered is True
            await again.until(TranslationFinal, count)
            offsets = [m.offset for m in again.received if isinstance(m, TranslationFinal)]
            assert offsets == sorted(set(offsets))
            assert len(await again.until(TranslationFinal)) == count
