"""One session's presence in a meeting: what outlives a connection, and who is told that it is over."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from gateway.domain.close_codes import CloseCode
from gateway.meeting.feed import Feed
from gateway.meeting.members import Member
from gateway.meeting.room import Room
from gateway.protocol.limits import Limits
from gateway.protocol.messages import SessionEnd, SessionStart, UtteranceFinal
from gateway.sessions.effects import Accept, Acknowledge
from gateway.sessions.seat import Seat
from gateway.stores.memory_log import MemoryEventLog, MemoryStore
from tests.sessions.desk import Connection


def started() -> Connection:
    connection = Connection(Limits())
    connection.send(SessionStart(reads=["de"], speaks="en"))
    return connection


def said(connection: Connection, utterance: str = "u") -> Accept:
    [accept] = connection.send(UtteranceFinal(utterance, 1, "One."))
    assert isinstance(accept, Accept)
    return accept


def seated(connection: Connection) -> Seat:
    log = MemoryEventLog(MemoryStore(max_publications=10, keep_s=60, max_bytes=10**6))
    seat = Seat(
        secret="s",
        room=Room("m", log, private=False, snapshot=1),
        member=Member(participant="ana", name="Ana", speaks="en", reads=("de",), stability="live"),
        state=connection.state,
    )
    connect(seat, connection)
    return seat


def connect(seat: Seat, connection: Connection) -> Feed:
    feed = Feed(connection.outbox, 0, participant="ana", wants=seat.member.wants)
    seat.connect(feed, connection.state, connection.finish)
    return feed


def finished(seat: Seat, utterance: str = "u", *, failed: bool = False) -> None:
    """What the room does once every promised language has an outcome."""
    on_finished: Any = seat.member.on_finished
    on_finished(utterance, failed)


def test_a_connection_is_told_who_it_is_in_the_meeting() -> None:
    seat = seated(connection := started())
    assert connection.state.participant == "ana"
    assert seat.connected


def test_without_a_connection_the_session_is_there_and_nobody_is_sent_anything() -> None:
    seat = seated(started())
    seat.disconnect()
    seat.away_since_s = 1.0
    assert not seat.connected
    assert seat.finish is None
    connect(seat, started())
    assert seat.connected
    assert seat.away_since_s is None, "it is not away any more"


def test_a_session_that_said_goodbye_is_closed_with_its_last_utterance() -> None:
    seat = seated(connection := started())
    said(connection, "u")
    said(connection, "v")
    connection.send(SessionEnd())
    finished(seat, "u")
    assert connection.closed == []
    finished(seat, "v")
    assert connection.closed == [CloseCode.NORMAL]


def test_a_refused_final_closes_a_session_that_waits_for_nothing_else() -> None:
    seat = seated(connection := started())
    accept = said(connection)
    connection.send(SessionEnd())
    seat.refused(accept)
    assert connection.closed == [CloseCode.NORMAL]


def test_what_failed_may_be_sent_again_and_what_did_not_is_only_acknowledged() -> None:
    seat = seated(connection := started())
    for utterance, failed, answer in (("u", True, Accept), ("v", False, Acknowledge)):
        said(connection, utterance)
        finished(seat, utterance, failed=failed)
        [effect] = connection.send(UtteranceFinal(utterance, 1, "One."))
        assert isinstance(effect, answer)


def test_the_newest_connection_is_told_what_became_of_an_utterance() -> None:
    seat = seated(earlier := started())
    said(earlier)
    newer = started()
    newer.state.inherit(earlier.state)
    connect(seat, newer)
    newer.send(SessionEnd())
    finished(seat)
    assert (earlier.closed, newer.closed) == ([], [CloseCode.NORMAL])


def test_what_is_finished_while_nobody_is_connected_is_remembered() -> None:
    seat = seated(connection := started())
    said(connection)
    connection.send(SessionEnd())
    seat.disconnect()
    finished(seat)
    assert connection.state.in_flight == 0
    assert connection.closed == []


def test_a_session_that_has_ended_is_freed_although_its_member_is_still_known() -> None:
    seat = seated(started())
    member, freed = seat.member, weakref.ref(seat)
    gc.disable()
    try:
        seat.leave()
        del seat
        assert freed() is None
    finally:
        gc.enable()
    assert member.feed is None
