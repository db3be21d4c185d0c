"""One session's presence in a meeting: what outlives a connection, and who is told that it is over."""

from __future__ import annotations

import gc
import hashlib
import weakref
from typing import Any

import pytest

from gateway.domain.close_codes import CloseCode
from gateway.domain.grants import OPEN, Grant
from gateway.domain.log import LoggedEvent, Said, Timings, Translated, Untranslated, Utterance
from gateway.domain.sessions import SessionRecord
from gateway.meeting.feed import Feed
from gateway.meeting.members import Member
from gateway.meeting.room import Room
from gateway.protocol.limits import Limits
from gateway.protocol.messages import SessionEnd, SessionStart, UtteranceFinal
from gateway.sessions.local_session import LocalSession, key_of, recalled, restored
from gateway.sessions.machine import Accept, Acknowledge, State
from gateway.stores.memory_log import MemoryEventLog, MemoryStore
from tests.logs import append
from tests.sessions.desk import Connection
from tests.sessions.talk import only
from tests.usual import usual


def started() -> Connection:
    connection = Connection(Limits())
    connection.send(SessionStart(reads=["de"], speaks="en"))
    return connection


def said(connection: Connection, utterance: str = "u") -> Accept:
    accept = only(Accept, connection.send(UtteranceFinal(utterance, 1, "One.")))
    return accept


def seated(connection: Connection) -> LocalSession:
    log = MemoryEventLog(usual(MemoryStore, max_publications=10, keep_s=60, max_bytes=10**6))
    session = LocalSession(
        secret="s",
        room=Room("m", log, private=False, snapshot=1),
        member=Member(participant="ana", name="Ana", speaks="en", reads=("de",), stability="live"),
        state=connection.state,
    )
    connect(session, connection)
    return session


def connect(session: LocalSession, connection: Connection) -> Feed:
    feed = Feed(connection.outbox, 0, participant="ana", wants=session.member.wants)
    session.connect(feed, connection.state, connection.finish)
    return feed


def finished(session: LocalSession, utterance: str = "u", *, failed: bool = False) -> None:
    """What the room does once every promised language has an outcome."""
    on_finished: Any = session.member.on_finished
    on_finished(utterance, failed)


def test_connection_is_told_its_participant() -> None:
    session = seated(connection := started())
    assert connection.state.participant == "ana"
    assert session.connected


def test_disconnected_session_stays_and_is_sent_nothing() -> None:
    session = seated(started())
    session.disconnect()
    session.away_since_s = 1.0
    assert not session.connected
    assert session.finish is None
    connect(session, started())
    assert session.connected
    assert session.away_since_s is None, "it is not away any more"


def test_goodbye_closes_with_the_last_utterance() -> None:
    session = seated(connection := started())
    said(connection, "u")
    said(connection, "v")
    connection.send(SessionEnd())
    finished(session, "u")
    assert connection.closed == []
    finished(session, "v")
    assert connection.closed == [CloseCode.NORMAL]


def test_refused_last_final_closes_the_ending_session() -> None:
    session = seated(connection := started())
    accept = said(connection)
    connection.send(SessionEnd())
    session.refused(accept, in_part=False)
    assert connection.closed == [CloseCode.NORMAL]


def test_failed_finals_may_be_resent_others_are_acknowledged() -> None:
    session = seated(connection := started())
    for utterance, failed, answer in (("u", True, Accept), ("v", False, Acknowledge)):
        said(connection, utterance)
        finished(session, utterance, failed=failed)
        only(answer, connection.send(UtteranceFinal(utterance, 1, "One.")))


def test_newest_connection_learns_an_utterances_outcome() -> None:
    session = seated(earlier := started())
    said(earlier)
    newer = started()
    newer.state.inherit(earlier.state)
    connect(session, newer)
    newer.send(SessionEnd())
    finished(session)
    assert (earlier.closed, newer.closed) == ([], [CloseCode.NORMAL])


def test_outcomes_without_connection_are_remembered() -> None:
    session = seated(connection := started())
    said(connection)
    connection.send(SessionEnd())
    session.disconnect()
    finished(session)
    assert connection.state.in_flight == 0
    assert connection.closed == []


def test_ended_session_is_freed_before_its_member() -> None:
    session = seated(started())
    member, freed = session.member, weakref.ref(session)
    gc.disable()
    try:
        session.leave()
        del session
        assert freed() is None
    finally:
        gc.enable()
    assert member.feed is None


# ---------------------------------------------------------------- had by another gateway or process before

ANA = Grant(tenant="acme", subject="ana", roles=frozenset({"speak"}), meeting="m", speaks=frozenset({"en"}))


def uttered(id: str, *languages: str, participant: str = "ana") -> Said:
    return Said(Utterance(id, 1, f"{id}.", "en", participant, "Ana", final=True), languages)


def done(id: str, lang: str, participant: str = "ana") -> Translated:
    return Translated(participant, id, "Ana", lang, 1, "…", Timings(0.0, 0.0, 0.0), tokens=1, said=1)


def failed(id: str, lang: str) -> Untranslated:
    return Untranslated("ana", id, "Ana", lang, 1, "engine_failed", "The engine failed.", said=1)


def kept(grant: Grant = OPEN) -> SessionRecord:
    return SessionRecord("ana", "m", False, "Ana", "en", ("de",), grant=grant)


async def state_after(*events: LoggedEvent, grant: Grant = OPEN) -> Connection:
    log = MemoryEventLog(usual(MemoryStore, max_publications=99, keep_s=60, max_bytes=10**6))
    for event in events:
        await append(log, "m", event)
    room = Room("m", log, private=False, snapshot=1)
    await room.open()
    connection = Connection(Limits())
    connection.state = recalled(room, kept(grant), Limits())
    await room.close()
    return connection


async def test_the_session_is_the_one_that_was_kept() -> None:
    state = (await state_after(grant=ANA)).state
    assert (state.participant, state.grant, state.state) == ("ana", ANA, State.AWAITING_START)


@pytest.mark.parametrize(
    ("events", "in_flight", "is_failed"),
    [
        ([uttered("u", "de", "fr")], True, False),
        ([uttered("u", "de", "fr"), done("u", "de")], True, False),
        ([uttered("u", "de", "fr"), done("u", "de"), done("u", "fr")], False, False),
        ([uttered("u", "de", "fr"), done("u", "de"), failed("u", "fr")], False, True),
        # What failed in one language and is open in another has not failed yet.
        ([uttered("u", "de", "fr"), failed("u", "de")], True, False),
        ([uttered("u", "de"), failed("u", "de"), done("u", "de")], False, False),
        ([uttered("u")], False, False),
    ],
)
async def test_what_became_of_an_utterance(events: list[Any], in_flight: bool, is_failed: bool) -> None:
    state = (await state_after(*events)).state
    utterance = state._known.get("u")
    assert utterance is not None
    assert utterance.is_final_as("u.")
    assert (state.in_flight, utterance.failed) == (int(in_flight), is_failed)


async def test_what_others_said_is_not_the_sessions() -> None:
    others: list[LoggedEvent] = [
        uttered("u", "de", participant="bo"),
        done("u", "de", participant="bo"),
        uttered("v", participant="bo"),
    ]
    state = (await state_after(*others)).state
    assert (state._known.get("u"), state._known.get("v"), state.in_flight) == (None, None, 0)


async def test_session_of_another_gateway_is_restored() -> None:
    ana = SessionRecord(
        *("ana", "m", True, "Ana", "en", ("de",)),
        since=3,
        stopped={"fr": 5},
        stability="stable",
        originals=True,
        account="tenant:acme",
        grant=ANA,
        until_s=1e9,
        recorded=True,
    )
    room = Room("m", MemoryEventLog(usual(MemoryStore)), private=True, snapshot=1)
    session = restored(room, ana, "secret", Limits(), fence=7)
    assert (session.record(until_s=1e9), session.secret, session.fence, session.connected) == (
        ana,
        "secret",
        7,
        False,
    )
    kept = session.kept(30.0)
    assert (kept.session, kept.left_s, kept.grant) == ("secret", 30.0, ANA)
    session.member.stopped["ja"] = 9
    assert kept.stopped == {"fr": 5}


def test_store_key_does_not_reveal_the_secret() -> None:
    assert key_of("secret") == hashlib.sha256(b"secret").digest()
    assert len(key_of("\ud800")) == 32
