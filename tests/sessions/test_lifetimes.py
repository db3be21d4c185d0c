"""How long sessions may last: warnings, refreshes, the end of a token's time, revocations."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import GatewayError, TokenExpired, Unauthenticated
from gateway.domain.grants import OPEN, Grant, Revocation, meeting_key
from gateway.domain.log import Said, Translated
from gateway.meeting.feed import Feed
from gateway.meeting.members import Member
from gateway.meeting.room import Room
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Error,
    SessionEnd,
    SessionStart,
    SessionUpdate,
    TokenExpiring,
    TranslationFinal,
    UtteranceFinal,
)
from gateway.sessions.lifetimes import Lifetimes
from gateway.sessions.local_session import LocalSession
from gateway.sessions.machine import Accept, Reply, State
from gateway.stores.memory_log import MemoryEventLog, MemoryStore
from tests.sessions import desk as desk_tests
from tests.sessions.desk import Connection, desk, joined
from tests.sessions.talk import only
from tests.translation.stage import until
from tests.usual import usual

NOW_S = 1_000_000.0
ANA = replace(desk_tests.ANA, issued_s=NOW_S, expires_s=NOW_S + 600)


class Watch:
    """Lifetimes, both of their clocks, and the sessions that they bound."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.keys_gone: set[str] = set()
        self.lifetimes = Lifetimes(
            clock=lambda: self.now_s,
            wall_clock=lambda: NOW_S + self.now_s,
            stands=lambda grant: grant.subject not in self.keys_gone,
        )
        self.local: list[LocalSession] = []

    def begun(self, grant: Grant = ANA, participant: str = "p", **start: Any) -> tuple[LocalSession, Connection]:
        connection = Connection(Limits())
        connection.state.grant = grant
        connection.send(SessionStart(**{"reads": ["de"], "speaks": "en", "meeting": grant.meeting, **start}))
        state = connection.state
        session = LocalSession(
            secret=participant,
            room=Room(
                meeting_key(grant.tenant, "m"),
                MemoryEventLog(usual(MemoryStore, max_publications=9, keep_s=60, max_bytes=10**6)),
                private=False,
                snapshot=1,
            ),
            member=Member(
                participant=participant,
                name="Ana",
                speaks=state.speaks,
                reads=state.reads,
                stability="live",
                originals=state.originals,
            ),
            state=state,
        )
        self.lifetimes.begin(session, grant)
        feed = Feed(connection.outbox, 0, participant=participant, wants=session.member.wants)
        session.connect(feed, state, connection.finish)
        self.local.append(session)
        return session, connection

    def at(self, now_s: float) -> list[LocalSession]:
        """Sweep at this time; the sessions that end for good."""
        self.now_s = now_s
        return self.lifetimes.sweep(self.local)


# ---------------------------------------------------------------- how long


@pytest.mark.parametrize(
    ("fields", "left_s"),
    [
        ({}, 600.0),
        ({"max_s": 3_600.0}, 3_600.0),
        ({"max_s": 10.0}, 10.0),
        ({"expires_s": None}, None),
        ({"expires_s": None, "max_s": 60.0}, 60.0),
        # Verified although its time is over: clocks may differ.
        ({"expires_s": NOW_S - 5}, 0.0),
    ],
)
def test_session_lasts_as_its_token_says(fields: dict[str, Any], left_s: float | None) -> None:
    watch = Watch()
    watch.now_s = 0.0
    session, _ = watch.begun(replace(ANA, **fields))
    assert session.until_s == left_s
    assert watch.lifetimes.begin(session, replace(ANA, **fields)) == left_s


@pytest.mark.parametrize("fields", [{}, {"max_s": 3_600.0}, {"once": True}])
def test_a_token_opens_nothing_long_after_its_time(fields: dict[str, Any]) -> None:
    watch = Watch()
    late = replace(ANA, expires_s=NOW_S - 61, **fields)
    with pytest.raises(Unauthenticated):
        watch.begun(late)


async def test_where_nobody_needs_a_token_nothing_ends() -> None:
    watch = Watch()
    session, connection = watch.begun(OPEN)
    assert watch.at(1e9) == []
    assert await connection.received() == []
    assert (connection.closed, session.until_s) == ([], None)


# ---------------------------------------------------------------- the warning


async def test_the_client_is_told_a_minute_before_and_once() -> None:
    watch = Watch()
    _, connection = watch.begun()
    for now_s, told in (
        (539.9, []),
        (540.0, [TokenExpiring(expires_in_ms=60_000)]),
        (541.0, []),
        (599.9, []),
    ):
        watch.at(now_s)
        assert await connection.received() == told, now_s
    assert connection.closed == []


async def test_a_short_time_is_told_in_its_middle() -> None:
    """Told at once, a client that gets a new token asks for the next at once, without end."""
    watch = Watch()
    _, connection = watch.begun(replace(ANA, max_s=20.0))
    watch.at(9.9)
    assert await connection.received() == []
    watch.at(10.0)
    assert await connection.received() == [TokenExpiring(expires_in_ms=10_000)]


async def test_who_was_away_is_told_once_connected_again() -> None:
    watch = Watch()
    session, connection = watch.begun()
    session.disconnect()
    watch.at(550.0)
    assert not session.warned
    feed = Feed(connection.outbox, 0, participant="p", wants=session.member.wants)
    session.connect(feed, connection.state, connection.finish)
    watch.at(551.0)
    assert await connection.received() == [TokenExpiring(expires_in_ms=49_000)]


# ---------------------------------------------------------------- refreshes


async def test_refresh_gives_new_time_and_warning() -> None:
    watch = Watch()
    session, connection = watch.begun()
    watch.at(550.0)
    newer = replace(ANA, token_id="t2", expires_s=NOW_S + 1_150, roles=frozenset({"read", "speak", "admin"}))
    assert watch.lifetimes.refresh(session, newer) == 600.0
    assert (session.grant, session.until_s) == (newer, 1_150.0)
    watch.at(1_089.0)
    assert connection.closed == []
    assert await connection.received() == [TokenExpiring(expires_in_ms=50_000)], "of before"
    watch.at(1_090.0)
    assert await connection.received() == [TokenExpiring(expires_in_ms=60_000)]


def test_same_token_gives_no_more_time() -> None:
    watch = Watch()
    ana = replace(ANA, max_s=100.0)
    session, _ = watch.begun(ana)
    watch.at(60.0)
    assert watch.lifetimes.refresh(session, ana) == 40.0
    assert watch.lifetimes.begin(session, ana) == 40.0
    watch.now_s = 101.0
    with pytest.raises(Unauthenticated):
        watch.lifetimes.begin(session, ana)
    assert watch.lifetimes.begin(session, replace(ana, token_id="t2")) == 100.0


def test_a_refresh_that_comes_too_late_is_told_so() -> None:
    watch = Watch()
    session, connection = watch.begun()
    connection.send(UtteranceFinal("1", 1, "Still to be delivered."))
    watch.at(600.0)
    with pytest.raises(TokenExpired):
        watch.lifetimes.refresh(session, replace(ANA, token_id="t2", expires_s=NOW_S + 9_000))
    assert session.until_s == 600.0


def test_revoked_session_takes_nothing_while_closing() -> None:
    watch = Watch()
    _, connection = watch.begun()
    watch.lifetimes.revoke(Revocation(tenant="acme", before_s=0.0, subject="ana"), watch.local)
    assert connection.closed == [CloseCode.TOKEN_REVOKED]
    assert connection.send(UtteranceFinal("1", 1, "One more thing.")) == []


@pytest.mark.parametrize(
    ("fields", "code", "field"),
    [
        ({"subject": "bo"}, "forbidden", "token"),
        ({"subject": "api-key:ana"}, "forbidden", "token"),
        ({"tenant": "other"}, "forbidden", "token"),
        ({"tenant": "default"}, "forbidden", "token"),
        ({"meeting": "n"}, "forbidden", "token"),
        ({"meeting": None}, "forbidden", "token"),
        ({"meeting": None, "any_meeting": True}, "forbidden", "token"),
        ({"any_meeting": True}, "forbidden", "token"),
        # Nothing that makes somebody a part of a meeting.
        ({"roles": frozenset({"transcript", "admin"})}, "forbidden", None),
        # Not what the session reads and speaks.
        ({"roles": frozenset({"speak"})}, "forbidden", "reads"),
        ({"roles": frozenset({"read"})}, "forbidden", "speaks"),
        ({"langs": frozenset({"fr"})}, "forbidden", "reads[0]"),
        ({"langs": frozenset({"de"})}, "forbidden", "originals"),
        ({"speaks": frozenset({"de"})}, "forbidden", "speaks"),
        ({"token_id": "revoked"}, "unauthenticated", None),
    ],
)
def test_a_refresh_that_is_refused_changes_nothing(fields: dict[str, Any], code: str, field: str | None) -> None:
    watch = Watch()
    watch.lifetimes.revocations.revoke(Revocation(tenant="acme", before_s=NOW_S, token_id="revoked"))
    session, connection = watch.begun(originals=True)
    watch.at(550.0)
    with pytest.raises(GatewayError) as refused:
        watch.lifetimes.refresh(session, replace(ANA, **{"expires_s": NOW_S + 9_000, **fields}))
    assert (refused.value.code, refused.value.field) == (code, field)
    assert (session.grant, session.until_s, session.warned) == (ANA, 600.0, True)
    watch.at(600.0)
    assert connection.closed == [CloseCode.TOKEN_EXPIRED]


@pytest.mark.parametrize("roles", [{"speak"}, {"read"}])
def test_unused_roles_are_not_needed_for_a_refresh(roles: set[Any]) -> None:
    watch = Watch()
    can: dict[str, Any] = {
        "reads": ["de"] if "read" in roles else [],
        "speaks": "en" if "speak" in roles else None,
    }
    session, _ = watch.begun(**can)
    assert watch.lifetimes.refresh(session, replace(ANA, roles=frozenset(roles))) == 600.0
    assert session.grant.roles == roles


# ---------------------------------------------------------------- the end of its time


def accepted(connection: Connection, utterance: str = "u") -> Accept:
    accept = only(Accept, connection.send(UtteranceFinal(utterance, 1, "One.")))
    return accept


def finished(session: LocalSession, utterance: str = "u") -> None:
    on_finished: Any = session.member.on_finished
    on_finished(utterance, False)


@pytest.mark.parametrize("left", [0.0, 5.0])
def test_idle_session_closes_when_its_time_is_over(left: float) -> None:
    watch = Watch()
    session, connection = watch.begun()
    accepted(connection)
    finished(session)
    watch.at(599.9)
    assert connection.closed == []
    assert watch.at(600.0 + left) == [], "it can be resumed"
    assert connection.closed == [CloseCode.TOKEN_EXPIRED]
    assert [reason.code for reason in connection.reasons if reason] == ["token_expired"]


def test_accepted_work_is_awaited_new_work_refused() -> None:
    watch = Watch()
    session, connection = watch.begun()
    for utterance in ("u", "v"):
        accepted(connection, utterance)
    for now_s in (600.0, 601.0, 629.9):
        watch.at(now_s)
        for message in (UtteranceFinal("w", 1, "Two."), SessionUpdate(reads=[]), SessionEnd()):
            reply = only(Reply, connection.send(message))
            assert isinstance(reply.message, Error)
            assert reply.message.code == "token_expired"
        finished(session, "u")
        assert connection.closed == []
    finished(session, "v")
    assert connection.closed == [CloseCode.TOKEN_EXPIRED]
    [reason] = connection.reasons
    assert reason is not None
    assert (reason.code, reason.utterance) == ("token_expired", None), "it is about no utterance"


def test_half_a_minute_later_it_closes_anyway() -> None:
    watch = Watch()
    _, connection = watch.begun()
    accepted(connection)
    watch.at(600.0)
    watch.at(629.9)
    assert connection.closed == []
    assert watch.at(630.0) == []
    assert connection.closed == [CloseCode.TOKEN_EXPIRED]


def test_a_session_that_is_away_is_not_closed() -> None:
    watch = Watch()
    session, connection = watch.begun()
    session.disconnect()
    for now_s in (600.0, 10_000.0):
        assert watch.at(now_s) == []
    assert connection.closed == []
    assert session.state.state is State.OPEN


LASTING = replace(ANA, max_s=600.0, expires_s=1e12)


async def test_what_was_accepted_is_delivered_before_it_closes() -> None:
    async with desk() as d:
        entry, ana = await joined(d, LASTING, speaks="en", reads=["de"])
        await d.sessions.accept(entry.session, accepted(ana))
        await until(d.core.engine.pending)
        d.now_s = 600.0
        await d.sessions.sweep()
        assert ana.closed == []
        d.core.engine.says("Eins.")
        await until(lambda: ana.closed)
        assert ana.closed == [CloseCode.TOKEN_EXPIRED]
        assert [m.text for m in await ana.received() if isinstance(m, TranslationFinal)] == ["Eins."]
        events = [p.event for p in (await d.core.log.read("acme/m", 0)).publications]
        assert [type(event) for event in events] == [Said, Translated]


# ---------------------------------------------------------------- revocations


@pytest.mark.parametrize(
    ("participant", "ended", "code", "why"),
    [
        (None, ["p", "q"], CloseCode.MEETING_ENDED, "The operator has ended this meeting."),
        ("q", ["q"], CloseCode.TOKEN_REVOKED, "The operator has removed you from this meeting."),
    ],
)
def test_an_operator_ends_sessions_whatever_has_opened_them(
    participant: str | None, ended: list[str], code: CloseCode, why: str
) -> None:
    watch = Watch()
    watch.begun()
    _, to_backend = watch.begun(Grant(tenant="acme", subject="api-key:k", any_meeting=True), "q")
    subject = participant and "api-key:k"
    by_operator = Revocation(
        tenant="acme", before_s=NOW_S, meeting="m", subject=subject, by_operator=True, participant=participant
    )
    elsewhere = replace(by_operator, meeting="n")
    assert watch.lifetimes.revoke(elsewhere, watch.local) == []
    revoked = watch.lifetimes.revoke(by_operator, watch.local)
    assert sorted(session.member.participant for session in revoked) == ended
    assert to_backend.closed == [code]
    assert [reason.message for reason in to_backend.reasons if reason] == [why]


def test_after_a_refresh_the_newer_token_counts() -> None:
    watch = Watch()
    session, _ = watch.begun()
    watch.lifetimes.refresh(session, replace(ANA, token_id="t2"))
    assert watch.lifetimes.revoke(Revocation(tenant="acme", before_s=NOW_S, token_id="t1"), watch.local) == []
    assert watch.lifetimes.revoke(Revocation(tenant="acme", before_s=NOW_S, token_id="t2"), watch.local) == [
        session
    ]


async def test_sessions_of_a_removed_api_key_end() -> None:
    watch = Watch()
    key = Grant(tenant="acme", subject="api-key:k", roles=OPEN.roles, any_meeting=True, issued_s=float("inf"))
    live, connection = watch.begun(key)
    away, _ = watch.begun(key, "q")
    away.disconnect()
    other, to_other = watch.begun(replace(key, subject="api-key:l"), "r")
    assert watch.at(1.0) == []
    watch.keys_gone.add("api-key:k")
    assert watch.at(2.0) == [live, away]
    assert (connection.closed, to_other.closed) == ([CloseCode.TOKEN_REVOKED], [])
    async with desk() as d:
        for each in (key, other.grant):
            await joined(d, each, meeting="m")
        d.keys_gone.add("api-key:k")
        await d.sessions.sweep()
        assert [kept.grant.subject for kept in d.sessions.kept_sessions()] == ["api-key:l"]
