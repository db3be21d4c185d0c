"""One connection on a real socket: what is read, written and refused, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from gateway import metrics
from gateway.config import EngineSettings, EventLogSettings, Settings
from gateway.domain.log import Said, Utterance
from gateway.engines.simulated import Rule, Script
from gateway.protocol.codec import JSON, MSGPACK, Codec
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Caption,
    Error,
    Ping,
    Pong,
    Resume,
    SessionDraining,
    SessionEnd,
    SessionStart,
    SessionStarted,
    SessionUpdate,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
    UtteranceCancel,
)
from tests.clocks import swiftly
from tests.gateways import Peer, Running, running
from tests.meetings import START, away, close_of, joined, say


async def idle(gateway: Running) -> None:
    """Until nothing waits or runs, neither here nor in the engine; the suite's timeout is the bound."""
    scheduler, engine = gateway.gateway.scheduler, gateway.gateway.engine
    while scheduler.running or scheduler.waiting or engine.capacity().running:
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("codec", [JSON, MSGPACK], ids=["json", "msgpack"])
@swiftly
async def test_deltas_add_up_to_the_final_in_both_encodings(codec: Codec) -> None:
    async with running(Settings(delta_interval_s=0)) as gateway, gateway.peer(codec) as peer:
        assert peer.connection.subprotocol == codec.subprotocol
        await peer.send(START, say("u1"))
        received = await peer.until(TranslationFinal)
    assert [type(m) for m in received[:3]] == [SessionStarted, UtteranceAccepted, Caption]
    deltas = [m.committed for m in received if isinstance(m, TranslationDelta)]
    # The final replaces a delta that was not sent yet.
    assert received[-1].text == "[ja] good morning"
    assert received[-1].text.startswith("".join(deltas))
    assert len(deltas) > 1, "tokens arrive as they are generated"


@pytest.mark.parametrize("when", ["live", "replayed"])
@swiftly
async def test_an_entry_that_one_encoding_cannot_carry_is_left_out_and_nothing_else(when: str) -> None:
    async with running() as gateway, gateway.peer(MSGPACK) as reader:
        said = Utterance("0", 2**70, "broken", "en", "p", "Ana", final=True)
        if when == "replayed":
            await gateway.gateway.log.append("m", Said(said))
        await reader.send(SessionStart(reads=["ja", "en"], speaks="en", meeting="m"))
        await reader.until(SessionStarted)
        if when == "live":
            await gateway.gateway.log.append("m", Said(said))
        await reader.send(say("u1", "whole"))
        received = await reader.until(TranslationFinal)
    assert [m.text for m in received if isinstance(m, Caption)] == ["whole"]


async def test_sessions_get_their_own_translations_only() -> None:
    async with running() as gateway:

        async def one(name: str) -> list[Any]:
            async with gateway.peer() as peer:
                await peer.send(START, *(say(f"{name}{n}", f"text {name} {n}") for n in range(4)))
                received = await peer.until(TranslationFinal, 4)
            assert all(name in m.text for m in received if isinstance(m, TranslationFinal))
            return received

        await asyncio.gather(*(one(name) for name in "abcdefgh"))


async def test_a_late_joiner_gets_tokens_while_another_text_is_being_generated() -> None:
    async with running() as gateway, gateway.peer() as long, gateway.peer() as late:
        await long.send(START, say("long", "LONG text that goes on"))
        await long.until(TranslationDelta)
        await late.send(START, say("late"))
        await late.until(TranslationFinal)
        assert gateway.gateway.engine.capacity().running == 1, "the long one is still being generated"
        await long.until(TranslationFinal)


@pytest.mark.parametrize("how", ["cancel", "disconnect", "abrupt"])
async def test_what_nobody_waits_for_is_aborted_in_the_engine(how: str) -> None:
    async with running() as gateway:
        async with gateway.peer() as peer:
            await peer.send(START, *(say(f"u{n}", "LONG text") for n in range(20)))
            await peer.until(TranslationDelta)
            assert gateway.gateway.scheduler.running > 0
            if how == "cancel":
                await peer.send(*(UtteranceCancel(id=f"u{n}") for n in range(20)))
                failed = [m for m in await peer.until(TranslationFailed, 20) if isinstance(m, TranslationFailed)]
                assert {m.code for m in failed} == {"cancelled"}
                await peer.send(SessionEnd())
                assert await close_of(peer) == (1000, None)
            elif how == "abrupt":
                peer.connection.transport.abort()
        await idle(gateway)
        async with gateway.peer() as peer:
            await peer.send(START, say("after"))
            assert (await peer.until(TranslationFinal))[-1].text == "[ja] good morning"


async def test_a_frame_too_large_is_an_error_and_far_too_large_a_close() -> None:
    settings = Settings(limits=Limits(message_bytes=1_000))
    async with running(settings) as gateway, gateway.peer() as peer:
        await peer.send(START, say("u1", "x" * 2_000), Ping("still here"))
        received = await peer.until(Pong)
        assert [m.code for m in received if isinstance(m, Error)] == ["message_too_large"]
        await peer.send(say("u2", "x" * 10_000))
        assert (await close_of(peer))[0] == 1009


@swiftly
async def test_a_flood_is_rate_limited_and_the_session_lives_on() -> None:
    settings = Settings(limits=Limits(messages_per_s=10, messages_burst=5))
    async with running(settings) as gateway, gateway.peer() as peer:
        # Once the session has begun, each ping is answered; before, the newest.
        await peer.send(START, Ping("begun"))
        await peer.until(Pong)
        await peer.send(*(Ping(str(n)) for n in range(200)))
        errors = [await peer.receive() for _ in range(200)]
        limited = [m for m in errors if isinstance(m, Error)]
        assert limited
        assert {m.code for m in limited} == {"rate_limited"}
        answer = errors[-1]
        while not isinstance(answer, Error):  # what a refusal says holds until something else is sent
            await peer.send(Ping("again"))
            answer = await peer.receive()
        assert answer.retry_after_ms is not None
        await asyncio.sleep(answer.retry_after_ms / 1000)  # as the error asks
        await peer.send(Ping("late"))
        assert await peer.receive() == Pong("late")


@swiftly
async def test_who_says_nothing_is_closed_with_a_reason() -> None:
    settings = Settings(limits=Limits(start_timeout_s=1))
    async with running(settings) as gateway, gateway.peer() as peer:
        code, error = await close_of(peer)
    assert code == 4010
    assert error is not None
    assert error.code == "start_timeout"


@swiftly
async def test_a_late_start_is_no_start() -> None:
    settings = Settings(limits=Limits(start_timeout_s=1))
    async with running(settings) as gateway, gateway.peer() as peer:
        await peer.send(Ping("I am here"))
        code, error = await close_of(peer)
    assert (code, error and error.code) == (4010, "start_timeout")


@swiftly
async def test_who_waits_for_the_engine_is_not_late() -> None:
    settings = Settings(limits=Limits(start_timeout_s=1))
    async with running(settings, script=Script(load_s=1.6)) as gateway, gateway.peer() as peer:
        while not isinstance(answer := await ask(peer, START), SessionStarted):
            assert answer.code == "engine_unavailable"
            await asyncio.sleep(0.2)


async def ask(peer: Peer, message: Any) -> Any:
    await peer.send(message)
    return await peer.receive()


async def test_a_full_gateway_turns_sessions_away() -> None:
    async with running(Settings(max_sessions=1)) as gateway, gateway.peer() as first:
        await first.send(START)
        await first.until(SessionStarted)
        async with gateway.peer() as second:
            await second.send(START)
            code, error = await close_of(second)
        assert code == 4509
        assert error is not None
        assert error.code == "too_many_sessions"
        await first.send(Ping("x"))
        assert await first.receive() == Pong("x")


async def test_a_full_queue_refuses_and_the_same_utterance_may_be_sent_again() -> None:
    script = Script(first_token_s=0.001, token_s=0.001, max_running=1, rules=(Rule("STALL", stall_after=0),))
    async with running(Settings(max_waiting=0), script=script) as gateway, gateway.peer() as peer:
        # One place in the engine and two of lookahead.
        await peer.send(START, *(say(f"u{n}", "STALL") for n in range(3)), say("u3"))
        error = (await peer.until(Error))[-1]
        assert (error.code, error.retryable, error.utterance) == ("overloaded", True, "u3")
        await peer.send(UtteranceCancel(id="u0"))
        await peer.until(TranslationFailed)
        await peer.send(say("u3"), UtteranceCancel(id="u1"), UtteranceCancel(id="u2"))
        assert (await peer.until(TranslationFinal))[-1].utterance == "u3"


async def test_update_holds_from_the_next_utterance() -> None:
    async with running() as gateway, gateway.peer() as peer:
        await peer.send(START, say("u1", "LONG first"))
        await peer.until(TranslationDelta)
        await peer.send(SessionUpdate(reads=["de", "fr"]), say("u2"))
        finals = [m for m in await peer.until(TranslationFinal, 3) if isinstance(m, TranslationFinal)]
        assert {(m.utterance, m.lang) for m in finals} == {("u1", "ja"), ("u2", "de"), ("u2", "fr")}


async def test_a_reader_that_stops_reading_is_cut_off_and_harms_nobody() -> None:
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


async def test_an_engine_that_dies_for_good_fails_what_runs_and_refuses_what_comes() -> None:
    settings = Settings(engine=EngineSettings(max_restarts=0, restart_backoff_max_s=3_600))
    async with running(settings) as gateway, gateway.peer() as peer:
        await peer.send(START, say("u1", "LONG text"))
        await peer.until(TranslationDelta)
        gateway.kill_engine()
        failed = (await peer.until(TranslationFailed))[-1]
        assert (failed.utterance, failed.code) == ("u1", "engine_failed")
        await peer.send(say("u2"))
        while (error := (await peer.until(Error))[-1]).utterance is None:
            assert error.code == "engine_unavailable", "the news for everybody"
        assert (error.code, error.utterance) == ("engine_unavailable", "u2")
        assert b'gateway_engine_ready{engine="default"} 0.0' in metrics.exposition()


@pytest.mark.parametrize("leave", ["session.end", "close", "abort"])
@swiftly
async def test_what_was_said_is_freed_with_the_meeting_not_with_the_next_garbage(leave: str) -> None:
    settings = Settings(limits=Limits(keep_s=1))
    async with running(settings) as gateway:
        gc.disable()
        try:
            async with gateway.peer() as peer:
                await peer.send(SessionStart(meeting="m", speaks="en", reads=["ja"]), say("u1"))
                await peer.until(TranslationFinal)
                meeting = weakref.ref(gateway.gateway.registry._rooms["m"])
                match leave:
                    case "session.end":
                        await peer.send(SessionEnd())
                        await close_of(peer)
                    case "close":
                        await peer.connection.close()
                    case "abort":
                        peer.connection.transport.abort()
            while gateway.gateway.registry.meetings:
                await asyncio.sleep(0.01)
            assert meeting() is None
        finally:
            gc.enable()


# ---------------------------------------------------------------- idle and slow connections


@swiftly
async def test_a_peer_that_answers_no_ping_is_found_and_its_session_kept() -> None:
    settings = Settings(ping_interval_s=0.1, ping_timeout_s=0.1)
    async with running(settings) as gateway, joined(gateway, reads=["ja"]) as bo:
        bo.peer.connection.transport.pause_reading()
        await away(gateway)
        async with joined(gateway, reads=["ja"], resume=bo.resume()) as again:
            assert again.started.recovered is True


async def test_a_reader_past_its_bound_resumes_and_gets_everything() -> None:
    script = Script(first_token_s=0.0, token_s=0.0)
    # Long enough to fill the sockets' buffers soon; whatever these hold, the log keeps all of it.
    text = f"{'w' * 999} " * 20
    limits = Limits(messages_burst=100_000, text_chars=len(text))
    settings = Settings(limits=limits, outbox_bytes=200_000, event_log=EventLogSettings(max_bytes=2**40))
    async with running(settings, script=script) as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        async with joined(gateway, reads=["ja"]) as slow:
            slow.peer.connection.transport.pause_reading()
            feed = gateway.gateway.registry._seats[slow.started.session].member.feed
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


# ---------------------------------------------------------------- acknowledgements, replaced connections, draining


async def test_an_acknowledgement_during_the_replay_does_not_run_ahead_of_it() -> None:
    limits = Limits(utterances_in_flight=1_000, messages_burst=10_000)
    settings = Settings(limits=limits, outbox_bytes=200_000)
    async with running(settings) as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        await ana.peer.send(*(say(str(n), "x" * 1_500) for n in range(100)))
        await ana.until(TranslationFinal, 100)
        resume = Resume(ana.started.session, ana.started.epoch, 0)
        async with joined(gateway, speaks="en", reads=["ja"], resume=resume) as again:
            await again.peer.send(say("0", "x" * 1_500))
            await again.until(TranslationFinal, 100)
            received = await again.everything()
        for index, message in enumerate(received):
            if isinstance(message, UtteranceAccepted):
                passed = [m.offset or 0 for m in received[:index] if isinstance(m, Caption | TranslationFinal)]
                assert message.offset <= max(passed, default=0) + 1
        assert len([m for m in received if isinstance(m, UtteranceAccepted)]) == 101


async def test_a_replaced_connection_has_no_say_any_more() -> None:
    async with running() as gateway, joined(gateway, reads=["ja"]) as first:
        first.peer.connection.transport.pause_reading()
        async with joined(gateway, reads=["de"], resume=first.resume()) as second:
            with contextlib.suppress(ConnectionClosed):
                await first.peer.send(SessionUpdate(reads=["fr"]))
            await second.everything()
            assert gateway.gateway.registry._seats[second.started.session].member.reads == ("de",)


async def test_no_session_begins_while_the_gateway_drains() -> None:
    async with running() as gateway, gateway.peer() as early, joined(gateway, speaks="en", reads=["ja"]) as ana:
        await ana.peer.send(say("1", "STALL"))
        await ana.until(Caption)
        draining = asyncio.create_task(gateway.gateway.drain())
        assert (await early.until(SessionDraining))[-1].deadline_ms == 30_000
        await early.send(SessionStart(reads=["ja"]))
        assert (await early.receive()).code == "draining"  # type: ignore[union-attr]
        await ana.peer.send(UtteranceCancel("1"))
        await draining
