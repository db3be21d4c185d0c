"""One connection on a real socket: what is read, written and refused, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import time
import weakref
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace
from websockets.exceptions import ConnectionClosed, InvalidStatus

from gateway import metrics
from gateway.config import AuthSettings, EngineSettings, Settings
from gateway.domain.engine import EngineProfile
from gateway.domain.grants import Revocation, meeting_of_host_key
from gateway.engines.simulated import Rule, Script, SimulatedEngine
from gateway.protocol.codec import JSON, MSGPACK, Codec
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Caption,
    ClientMessage,
    Error,
    MeetingEnd,
    ParticipantLeft,
    ParticipantRemove,
    Ping,
    Pong,
    Resume,
    SessionDraining,
    SessionEnd,
    SessionRefresh,
    SessionRefreshed,
    SessionStart,
    SessionStarted,
    SessionUpdate,
    SessionUpdated,
    TokenExpiring,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
    UtteranceCancel,
    UtteranceFinal,
    UtterancePartial,
)
from gateway.sessions.local_session import key_of
from tests.clocks import swiftly
from tests.gateways import SCRIPT, Peer, running, until_idle
from tests.keys import Keyring
from tests.meetings import START, away, close_of, joined, say


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


class EnglishIntoGerman(SimulatedEngine):
    """Translates nothing else."""

    def profile(self) -> EngineProfile:
        return replace(super().profile(), pairs=frozenset({("en", "de")}))


async def test_session_is_told_possible_languages_and_refusals() -> None:
    async with (
        running(engine=EnglishIntoGerman(SCRIPT)) as gateway,
        joined(gateway, reads=["de", "ja"], speaks="en") as ana,
    ):
        assert ana.started.languages == ["en", "ja", "es", "de", "fr", "zh"]
        assert ana.started.targets == {"en": ["de"]}
        await ana.peer.send(say("u1"))
        [failed] = await ana.until(TranslationFailed)
        [final] = await ana.until(TranslationFinal)
    assert (failed.lang, failed.code, final.lang) == ("ja", "unsupported_language", "de")


async def test_nothing_is_told_before_the_session_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as gateway, gateway.peer() as ana:
        sessions = gateway.gateway.sessions
        join = sessions.join

        async def joined_and_told(*arguments: Any) -> Any:
            entry = await join(*arguments)
            # As others may while what has begun it is still under way.
            sessions.tell_everybody(Error("engine_restarting", "Wait.", retryable=True))
            await asyncio.sleep(0.01)
            return entry

        monkeypatch.setattr(sessions, "join", joined_and_told)
        await ana.send(START)
        assert [type(message) for message in await ana.until(Error)] == [SessionStarted, Error]


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
        await until_idle(gateway)
        async with gateway.peer() as peer:
            await peer.send(START, say("after"))
            assert (await peer.until(TranslationFinal))[-1].text == "[ja] good morning"


async def test_large_frame_is_an_error_huge_one_a_close() -> None:
    settings = Settings(limits=Limits(message_bytes=1_000))
    async with running(settings) as gateway, gateway.peer() as peer:
        await peer.send(START, say("u1", "x" * 2_000), Ping("still here"))
        received = await peer.until(Pong)
        assert [m.code for m in received if isinstance(m, Error)] == ["message_too_large"]
        await peer.send(say("u2", "x" * 10_000))
        assert (await close_of(peer))[0] == 1009


@swiftly
async def test_flood_is_rate_limited_session_survives() -> None:
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


@pytest.mark.parametrize("said", [(), (Ping("I am here"),)], ids=["nothing", "no start"])
@swiftly
async def test_who_starts_nothing_is_closed_with_a_reason(said: tuple[ClientMessage, ...]) -> None:
    settings = Settings(limits=Limits(start_timeout_s=1))
    async with running(settings) as gateway, gateway.peer() as peer:
        await peer.send(*said)
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


async def test_full_queue_refuses_and_a_retry_works() -> None:
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


async def test_dead_engine_fails_running_and_refuses_new() -> None:
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
async def test_meeting_is_freed_without_garbage_collection(leave: str) -> None:
    settings = Settings(limits=Limits(keep_s=1))
    async with running(settings) as gateway:
        gc.disable()
        try:
            async with gateway.peer() as peer:
                await peer.send(SessionStart(meeting="m", speaks="en", reads=["ja"]), say("u1"))
                await peer.until(TranslationFinal)
                meeting = weakref.ref(next(iter(gateway.gateway.sessions.rooms)))
                match leave:
                    case "session.end":
                        await peer.send(SessionEnd())
                        await close_of(peer)
                    case "close":
                        await peer.connection.close()
                    case "abort":
                        peer.connection.transport.abort()
            while len(gateway.gateway.sessions.rooms):
                await asyncio.sleep(0.01)
            assert meeting() is None
        finally:
            gc.enable()


# ---------------------------------------------------------------- idle and slow connections


@swiftly
async def test_unresponsive_peer_is_found_and_session_kept() -> None:
    settings = Settings(ping_interval_s=0.1, ping_timeout_s=0.1)
    async with running(settings) as gateway, joined(gateway, reads=["ja"]) as bo:
        bo.peer.connection.transport.pause_reading()
        await away(gateway)
        async with joined(gateway, reads=["ja"], resume=bo.resume()) as again:
            assert again.started.recovered is True


# ---------------------------------------------------------------- acknowledgements, replaced connections, draining


async def test_acknowledgements_do_not_overtake_the_replay() -> None:
    limits = Limits(utterances_in_flight=1_000, messages_burst=10_000, text_chars=3_000)
    settings = Settings(limits=limits, segment_chars=1_500, outbox_bytes=200_000)
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
            assert gateway.gateway.sessions.local._sessions[key_of(second.started.session)].member.reads == ("de",)


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


# ---------------------------------------------------------------- tokens


async def refused(peer: Peer, *messages: Any) -> tuple[int, str | None]:
    """The close code, and the code of the error before it."""
    await peer.send(*messages)
    code, error = await close_of(peer)
    return code, None if error is None else error.code


async def test_without_a_valid_token_no_session_begins(tmp_path: Path) -> None:
    keys = Keyring(tmp_path)
    async with running(keys.settings()) as gateway:
        for token in (None, "", "nonsense", "gk_nonsense", keys.token(age_s=10_000)):
            async with gateway.peer() as peer:
                start = SessionStart(reads=["ja"], meeting="m", token=token)
                assert await refused(peer, start) == (4501, "unauthenticated")
        async with gateway.peer(additional_headers=keys.bearer()) as peer:
            start = SessionStart(reads=["ja"], meeting="m", token="nonsense")
            assert await refused(peer, start) == (4501, "unauthenticated"), "the token of the message counts"
        once = keys.token(once=True)
        async with joined(gateway, token=once), gateway.peer() as peer:
            assert await refused(peer, SessionStart(reads=[], token=once)) == (4501, "unauthenticated")
        assert len(gateway.gateway.sessions.local.all) == 0


async def test_token_in_the_message_binds_the_session(tmp_path: Path) -> None:
    keys = Keyring(tmp_path)
    async with running(keys.settings()) as gateway, gateway.peer() as peer:
        token = keys.token(roles=frozenset({"read"}), name="Ana")
        elsewhere = SessionStart(reads=["ja"], meeting="other", token=token)
        await peer.send(elsewhere, replace(elsewhere, meeting="m", name="Eve"))
        refusal, started = await peer.receive(), await peer.receive()
        assert isinstance(refusal, Error)
        assert (refusal.code, refusal.field) == ("forbidden", "meeting")
        assert isinstance(started, SessionStarted)
        assert started.meeting == "m", "as its tenant knows it"
        await peer.send(say("u1"), SessionUpdate(speaks="en"), Ping("x"))
        errors = [m for m in await peer.until(Pong) if isinstance(m, Error)]
        assert [(m.code, m.field, m.utterance) for m in errors] == [
            ("forbidden", "id", "u1"),
            ("forbidden", "speaks", None),
        ]
        async with joined(gateway, token=keys.token(subject="bo")) as bo:
            assert [p.name for p in bo.started.participants] == ["Ana"]


@pytest.mark.parametrize("size", [4_096, 4_097])
async def test_whoever_is_unknown_sends_small_frames(size: int, tmp_path: Path) -> None:
    keys = Keyring(tmp_path)
    start = SessionStart(reads=["ja"], meeting="m", token=keys.token(), name="")
    terms = {"x": "y" * (size - len(JSON.encode(replace(start, glossary={"ja": {"x": ""}}))))}
    limits = Limits(term_chars=5_000)
    async with running(keys.settings(limits=limits)) as gateway, gateway.peer() as peer:
        await peer.send(replace(start, glossary={"ja": terms}), Ping("x"))
        answer = await peer.receive()
        if size > 4_096:
            assert isinstance(answer, Error)
            assert (answer.code, "4096" in answer.message) == ("message_too_large", True)
            await peer.send(start)
        assert isinstance(answer, SessionStarted) is (size <= 4_096)
        await peer.until(SessionStarted if size > 4_096 else Pong)
        await peer.send(SessionUpdate(glossary={"ja": {**terms, "z": "y"}}))
        await peer.until(SessionUpdated)


@swiftly
async def test_a_session_lasts_as_long_as_its_tokens(tmp_path: Path) -> None:
    keys = Keyring(tmp_path)
    async with running(keys.settings()) as gateway:
        async with joined(gateway, token=keys.token(max_s=100), speaks="en", reads=["ja"]) as ana:
            [expiring] = await ana.until(TokenExpiring)
            assert 0 < expiring.expires_in_ms <= 60_000
            refused = (("nonsense", "unauthenticated"), (keys.token(subject="bo"), "forbidden"))
            for token, code in refused:
                await ana.peer.send(SessionRefresh(token))
                assert (await ana.until(Error))[-1].code == code
                ana.received.clear()
            await ana.peer.send(SessionRefresh(keys.token(max_s=200)))
            assert await ana.until(SessionRefreshed) == [SessionRefreshed(expires_in_ms=200_000)]
            begun_s = time.monotonic()
            assert await ana.closed() == 4401
            assert time.monotonic() - begun_s > 190, "by the clock of the test"
            kinds = [type(m) for m in ana.received]
            assert kinds.count(TokenExpiring) == 1
            assert ana.received[-1].code == "token_expired"
        async with joined(gateway, token=keys.token(subject="bo")) as bo, gateway.peer() as peer:
            await peer.send(SessionStart(reads=[], token=keys.token(subject="bo"), resume=ana.resume()))
            refusal = await peer.receive()
            assert isinstance(refusal, Error)
            assert (refusal.code, refusal.field) == ("forbidden", "resume.session")
            assert [p.participant for p in bo.started.participants] == [ana.started.participant], "it is kept"
        async with joined(gateway, token=keys.token(), reads=["ja"], resume=ana.resume()) as again:
            assert (again.started.session, again.started.recovered) == (ana.started.session, True)


async def test_a_session_without_an_end_says_so(tmp_path: Path) -> None:
    keys = Keyring(tmp_path)
    async with running(keys.settings()) as gateway, joined(gateway, token=keys.api_key) as ana:
        await ana.peer.send(SessionRefresh(keys.api_key))
        assert await ana.until(SessionRefreshed) == [SessionRefreshed(expires_in_ms=None)]
    async with running() as gateway, joined(gateway, token="ignored") as bo:
        await bo.peer.send(SessionRefresh("ignored as well"))
        assert await bo.until(SessionRefreshed) == [SessionRefreshed(expires_in_ms=None)]


@pytest.mark.parametrize("how", ["revoked", "key taken away"])
@swiftly
async def test_revoked_session_is_closed_for_good(how: str, tmp_path: Path) -> None:
    keys = Keyring(tmp_path)
    async with running(keys.settings()) as gateway:
        mine = keys.api_key if how == "key taken away" else keys.token()
        async with joined(gateway, token=mine) as ana, joined(gateway, token=keys.token(subject="bo")) as bo:
            if how == "revoked":
                await gateway.gateway.sessions.revoke(Revocation(tenant="acme", before_s=1e12, subject="ana"))
            else:
                keys.take_api_key_away()
            assert await ana.closed() == 4503
            assert ana.received[-1].code == "token_revoked"
            assert [m.participant for m in await bo.until(ParticipantLeft)] == [ana.started.participant]
            async with gateway.peer() as peer:
                await peer.send(SessionStart(reads=[], meeting="m", token=mine, resume=ana.resume()))
                code, error = await close_of(peer)
                assert (code, error and error.code) == (4501, "unauthenticated")


async def test_host_by_token_removes_and_the_secret_of_an_id_means_nothing(tmp_path: Path) -> None:
    keys = Keyring(tmp_path)
    secret = "correct horse battery staple"
    elsewhere = keys.token(subject="eve", meeting=meeting_of_host_key(secret))
    host = keys.token(roles=frozenset({"speak", "read", "host"}))
    settings = Settings(auth=AuthSettings(keys_file=str(keys.path), audit_file=str(tmp_path / "audit.jsonl")))
    async with (
        running(settings) as gateway,
        joined(gateway, token=host) as ana,
        joined(gateway, meeting=None, token=elsewhere, host=secret) as eve,
        joined(gateway, token=keys.token(subject="cy")) as cy,
    ):
        assert (ana.started.host, eve.started.host, cy.started.host) == (True, UNSET, UNSET)
        await eve.peer.send(MeetingEnd())
        assert (await eve.until(Error))[-1].code == "forbidden"
        await ana.peer.send(ParticipantRemove(eve.started.participant))  # in another meeting
        assert (await ana.until(Error))[-1].field == "participant"
        await ana.peer.send(ParticipantRemove(cy.started.participant))
        assert await cy.closed() == 4503
        assert cy.received[-1].code == "removed"
        await ana.peer.send(MeetingEnd())
        assert await ana.closed() == 4505
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    done = [(each["outcome"], each["detail"]) for each in lines if each["action"] == "host"]
    removed = [f"remove {each.started.participant}" for each in (eve, cy)]
    assert done == [("invalid_value", removed[0]), ("ok", removed[1]), ("ok", "end")]


async def test_nobody_cancels_in_another_meeting(tmp_path: Path) -> None:
    """Neither in one of the tenant's nor in another tenant's of the same name."""
    keys = Keyring(tmp_path)
    async with (
        running(keys.settings()) as gateway,
        joined(gateway, token=keys.token(), speaks="en", reads=["ja"]) as ana,
        joined(gateway, token=keys.token(subject="bo", tenant="other")) as other,
        joined(gateway, token=keys.token(subject="cy", meeting="n"), meeting="n") as near,
    ):
        await ana.peer.send(say("1", "LONG text"))
        await ana.until(TranslationDelta)
        for somebody in (other, near):
            await somebody.peer.send(UtteranceCancel("1"))
            [error] = await somebody.until(Error)
            assert error.code == "unknown_utterance"
        await ana.until(TranslationFinal)


async def test_secrets_are_in_no_log_and_no_metric(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As `runtime.log_to` sets it; the other is the test's own client.
    for theirs in ("uvicorn.error", "websockets.client"):
        caplog.set_level(logging.WARNING, theirs)
    caplog.set_level(logging.DEBUG)
    keys = Keyring(tmp_path)
    meeting, sentence = "canary-meeting", "The canary sings."
    tokens = [keys.token(meeting=meeting, subject=f"canary-{n}", name="Canary") for n in range(5)]
    audit_file = tmp_path / "audit.jsonl"
    auth = AuthSettings(keys_file=str(keys.path), audit_file=str(audit_file))
    async with running(Settings(auth=auth)) as gateway:
        sessions: Any = gateway.gateway.sessions

        def broken(*_: Any, **__: Any) -> Any:
            raise ZeroDivisionError

        async with joined(gateway, meeting=meeting, token=tokens[0], speaks="en", reads=["ja"]) as ana:
            await ana.peer.send(say("1", sentence), SessionRefresh(tokens[0]), SessionRefresh(tokens[1]))
            await ana.until(TranslationFinal)
            await ana.until(SessionRefreshed)
            await ana.until(Error)
            with monkeypatch.context() as bug:
                bug.setattr(gateway.gateway.finals, "accept", broken)
                await ana.peer.send(say("2", sentence))
                await ana.until(Error, 2)
            with monkeypatch.context() as bug:
                bug.setattr(sessions.lifetimes, "refresh", broken)
                await ana.peer.send(SessionRefresh(tokens[0]))
                assert await ana.closed() == 1011
        for token in (f"{tokens[2]}x", tokens[2]):
            headers = {"Authorization": f"Bearer {token}"}
            with contextlib.suppress(InvalidStatus):
                async with gateway.peer(additional_headers=headers) as peer:
                    bad = SessionStart(reads=["ja"], meeting=meeting, token=f"{tokens[3]}x")
                    assert await refused(peer, bad) == (4501, "unauthenticated")
        with monkeypatch.context() as bug:
            bug.setattr(sessions.lifetimes.revocations, "used", broken)
            async with gateway.peer() as peer:
                start = SessionStart(reads=["ja"], meeting=meeting, token=tokens[3], context=sentence)
                assert await refused(peer, start) == (1011, "internal")
        async with joined(gateway, meeting=meeting, token=tokens[4]) as bo:
            await sessions.revoke(Revocation(tenant="acme", before_s=1e12, subject="canary-4"))
            assert await bo.closed() == 4503
        exposed = metrics.exposition().decode()
    logged, audited = caplog.text, audit_file.read_text("utf-8")
    assert audited.count('"join","outcome":"ok"') == 2
    assert sum(record.exc_info is not None for record in caplog.records) == 3, "what a bug leaves is looked at"
    assert "is revoked" in logged
    for secret in (*tokens, *(part for token in tokens for part in token.split(".")[1:]), meeting, sentence):
        assert secret not in logged
        assert secret not in exposed
        assert secret not in audited
    assert "canary" not in logged.lower() + exposed.lower() + audited.lower().replace('"canary-', "")


async def test_next_final_is_accepted_after_the_last_translation() -> None:
    """What is in flight is counted down before anybody is told that it is finished."""
    limits = Limits(utterances_in_flight=1, messages_per_s=10_000, messages_burst=10_000)
    async with (
        running(Settings(limits=limits)) as gateway,
        joined(gateway, speaks="en", reads=["ja", "de"]) as ana,
    ):
        for number in range(20):
            await ana.peer.send(say(str(number)))
            while len([m for m in ana.received if isinstance(m, TranslationFinal)]) < 2 * (number + 1):
                assert not isinstance(message := await ana.receive(), Error), message


@pytest.mark.parametrize(
    ("message", "loads"),
    [
        (SessionStart(reads=[], speaks="auto"), True),
        (SessionStart(reads=[], speaks="AUTO"), True),
        (SessionStart(reads=[], speaks="en"), False),
        (SessionStart(reads=["auto"]), False),
        (SessionUpdate(speaks="auto"), True),
        (SessionUpdate(), False),
        (UtterancePartial("u", 1, "hi", lang="auto"), True),
        (UtteranceFinal("u", 1, "hi", lang="auto"), True),
        (UtteranceFinal("u", 1, "auto"), False),
        (Ping("auto"), False),
    ],
)
async def test_detector_loads_before_it_is_needed(
    message: ClientMessage, loads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running() as gateway:
        core = gateway.gateway.stream._core
        loaded: list[Any] = []

        async def load() -> None:
            loaded.append(message)

        monkeypatch.setattr(core.detector, "load", load)
        await core.prepare(message)
    assert loaded == [message] * loads
