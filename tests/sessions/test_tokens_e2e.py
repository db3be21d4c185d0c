"""Sessions with tokens, in one gateway with a log: whose meeting it is, who resumes what, what opens one only."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import (
    Forbidden,
    GatewayError,
    InvalidValue,
    LimitExceeded,
    TooManySessions,
    Unauthenticated,
)
from gateway.domain.grants import OPEN, Grant, Revocation
from gateway.domain.log import Page
from gateway.domain.sessions import Handover
from gateway.meeting.room import Room
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Caption,
    Participant,
    ParticipantJoined,
    ParticipantLeft,
    ParticipantUpdated,
    Resume,
    TranslationDelta,
    TranslationFinal,
    UtteranceCancelled,
    UtteranceFinal,
)
from gateway.sessions.entrance import Entry
from gateway.sessions.local_session import LocalSession
from gateway.sessions.machine import Accept, Update
from gateway.stores import handover_file
from gateway.stores.memory_session_store import MemorySessionStore
from tests.sessions.desk import ANA, Connection, Desk, desk, resume_of
from tests.sessions.desk import joined as desk_joined
from tests.sessions.talk import only
from tests.translation.stage import Log, idle, said, until

BO = replace(ANA, subject="bo", token_id="t2")
ONCE = replace(ANA, token_id="once", once=True)
API_KEY = Grant(
    tenant="acme",
    subject="api-key:k",
    token_id="api-key:k",
    roles=OPEN.roles,
    any_meeting=True,
    issued_s=float("inf"),
)


async def joined(d: Desk, grant: Grant, **fields: Any) -> tuple[Entry, Connection]:
    """In the meeting that the token names, with what there was."""
    return await desk_joined(d, grant, **{"meeting": grant.meeting, **fields})


async def says(d: Desk, entry: Entry, connection: Connection, text: str, outcomes: int) -> None:
    """Accepted, and translated into as many languages as are read."""
    accept = only(Accept, connection.send(UtteranceFinal(text, 1, text)))
    await d.sessions.accept(entry.session, accept)
    before = entry.session.room.offset
    while entry.session.room.offset < before + outcomes:
        for request in d.core.engine.pending():
            d.core.engine.end(request, f"[{request.target}] {request.text}")
        await asyncio.sleep(0)


# ---------------------------------------------------------------- whose meeting it is

OTHER_TENANTS = [
    pytest.param(ANA, replace(ANA, tenant="other"), id="two tenants"),
    pytest.param(ANA, replace(ANA, tenant="default"), id="the default one"),
    pytest.param(replace(ANA, tenant="default"), API_KEY, id="an API key"),
    pytest.param(ANA, replace(ANA, meeting="m.n"), id="two meetings"),
]


def others(session: LocalSession, room: Room | None = None) -> list[Participant]:
    """Who else is announced in this room, or in that of the session."""
    return (room or session.room).presence.participants(but=session.member.participant)


@pytest.mark.parametrize(("one", "another"), OTHER_TENANTS)
async def test_meetings_hear_nothing_of_each_other(one: Grant, another: Grant) -> None:
    async with desk() as d:
        everything = {"speaks": "en", "reads": ["de", "en"], "originals": True}
        listener, listening = await joined(d, replace(one, subject="bo"), **everything)
        _, elsewhere = await joined(d, another, **{**everything, "meeting": another.meeting or "m"})
        entry, ana = await joined(d, one, name="Ana", **everything)
        room, participant = entry.session.room, entry.session.member.participant
        # What waits is merged, so that it is read after every step.
        heard = await listening.received()
        d.core.partials.hear(room, said("Well, I was going to", 1, "u", participant, final=False))
        await until(d.core.engine.pending)
        heard += await listening.received()
        [request] = d.core.engine.pending()
        assert request.cache_scope == room.id
        d.core.engine.end(request, "Nun, ich wollte gerade")
        await until(lambda: listening.outbox.bytes)
        await idle()
        heard += await listening.received()
        d.core.partials.withdraw(room, (participant, "u"))
        await d.sessions.update(entry.session, Update("de", ("de", "en"), "live", originals=True))
        await says(d, entry, ana, "One.", outcomes=1)
        heard += await listening.received()
        d.sessions.local.end(entry.session)
        await idle()
        heard += await listening.received()
        told = {ParticipantJoined, ParticipantUpdated, ParticipantLeft}
        expected = {Caption, TranslationDelta, TranslationFinal, UtteranceCancelled, *told}
        assert {type(message) for message in heard} >= expected, "in the meeting"
        assert await elsewhere.received() == []
        rooms = {session.room for session in d.sessions.local.all}
        assert len(rooms) == 2
        for room in rooms:
            events = (await d.core.log.read(room.id, 0)).publications
            assert bool(events) is (room is listener.session.room)
            assert len(others(entry.session, room)) == 1


async def test_without_a_meeting_a_token_opens_private_ones() -> None:
    async with desk() as d:
        alone = replace(ANA, meeting=None)
        with pytest.raises(Forbidden):
            await d.join(grant=alone, meeting="m")
        first, _ = await joined(d, alone)
        second, _ = await joined(d, alone)
        assert first.session.room.id != second.session.room.id
        for entry in (first, second):
            assert entry.session.room.private
            assert entry.session.room.id.startswith("acme/")
        again, _ = await joined(d, replace(alone, token_id="t9"), resume=resume_of(first))
        assert (again.session, again.recovered) == (first.session, True)


# ---------------------------------------------------------------- resuming


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"subject": "bo"}, Forbidden),
        ({"tenant": "other"}, Forbidden),
        ({"tenant": "default"}, Forbidden),
        ({"meeting": "n"}, InvalidValue),
        # Only private meetings.
        ({"meeting": None}, Forbidden),
        ({"subject": "api-key:k", "any_meeting": True}, Forbidden),
        ({"token_id": "revoked"}, Unauthenticated),
        ({"token_id": "used", "once": True}, Unauthenticated),
    ],
)
async def test_session_is_resumed_only_by_its_person_and_meeting(
    fields: dict[str, Any], error: type[GatewayError]
) -> None:
    async with desk() as d:
        await d.sessions.revoke(Revocation(tenant="acme", before_s=1e9, token_id="revoked"))
        await joined(d, replace(BO, token_id="used", once=True))
        entry, ana = await joined(d, ANA, name="Ana")
        with pytest.raises(error):
            await joined(d, replace(ANA, **fields), name="Eve", resume=resume_of(entry))
        assert (ana.closed, entry.session.grant, entry.session.member.name) == ([], ANA, "Ana")
        assert len(d.sessions.local.all) == 2
        again, _ = await joined(d, replace(ANA, token_id="t9"), resume=resume_of(entry))
        assert (again.session, again.recovered, ana.closed) == (entry.session, True, [CloseCode.REPLACED])


async def test_the_right_person_without_the_secret_begins_anew() -> None:
    async with desk() as d:
        entry, _ = await joined(d, ANA)
        again, _ = await joined(
            d, ANA, resume=Resume(entry.session.member.participant, entry.session.room.epoch, 0)
        )
        assert (again.session is entry.session, again.recovered) == (False, False)


@pytest.mark.parametrize(
    ("fields", "reads", "missed"),
    [
        ({}, ["de", "fr"], ["[de] One.", "[fr] One."]),
        ({}, [], ["[de] One.", "[fr] One."]),
        ({"langs": frozenset({"fr"})}, ["fr"], ["[fr] One."]),
        ({"langs": frozenset({"ja"})}, [], []),
        ({"roles": frozenset({"speak"})}, [], []),
    ],
)
async def test_who_may_read_less_than_before_misses_the_rest(
    fields: dict[str, Any], reads: list[str], missed: list[str]
) -> None:
    async with desk() as d:
        speaker, speaking = await joined(d, ANA, speaks="en")
        entry, _ = await joined(d, BO, reads=["de", "fr"])
        d.sessions.local.away(entry.session, entry.feed)
        await says(d, speaker, speaking, "One.", outcomes=2)
        _, bo = await joined(d, replace(BO, **fields), reads=reads, resume=resume_of(entry))
        texts = [m.text for m in await bo.received() if isinstance(m, TranslationFinal)]
        assert sorted(texts) == missed


# ---------------------------------------------------------------- tokens that open one session


class Slow:
    """Whoever joins waits in the log until `go_on`."""

    def __init__(self, d: Desk) -> None:
        self.waiting = 0
        self.go_on = asyncio.Event()
        self._read = d.core.log.read
        d.core.log.read = self._wait  # type: ignore[method-assign, assignment]

    async def _wait(self, *args: Any) -> Page:
        self.waiting += 1
        await self.go_on.wait()
        return await self._read(*args)


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("rooms", ["one", "two"])
async def test_of_two_who_use_it_one_is_let_in(at_once: bool, rooms: str) -> None:
    async with desk() as d:
        # A private meeting is another one for each.
        token = ONCE if rooms == "one" else replace(ONCE, meeting=None)
        slow = Slow(d)
        if not at_once:
            slow.go_on.set()
        joining = [asyncio.create_task(d.join(grant=token, meeting=None)) for _ in range(2)]
        if at_once:
            await until(lambda: slow.waiting)
            await idle()
            assert len(d.sessions.local.all) == 0
            slow.go_on.set()
        outcomes = await asyncio.gather(*joining, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes].count(Unauthenticated) == 1
        [(entry, connection)] = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
        assert (len(d.sessions.local.all), connection.closed) == (1, [])
        again, _ = await d.join(grant=token, meeting=None, resume=resume_of(entry))
        assert (again.session, again.recovered) == (entry.session, True), "its own session goes on with it"
        d.sessions.local.end(entry.session)
        with pytest.raises(Unauthenticated):
            await d.join(grant=token, meeting=None, resume=resume_of(entry))
        assert len(d.sessions.local.all) == 0


async def test_a_join_that_fails_does_not_use_it_up() -> None:
    async with desk(Limits(meeting_languages=1), max_sessions=2) as d:
        await joined(d, BO, reads=["de"])
        other, _ = await joined(d, BO)
        with pytest.raises(LimitExceeded):
            await joined(d, ONCE, reads=["fr"])
        with pytest.raises(TooManySessions):
            await joined(d, ONCE)
        d.sessions.local.end(other.session)
        await joined(d, ONCE)


async def test_used_up_token_ends_nobodys_session() -> None:
    async with desk(max_sessions=2) as d:
        entry, _ = await joined(d, ONCE)
        kept, _ = await joined(d, BO)
        d.sessions.local.away(kept.session, kept.feed)
        with pytest.raises(Unauthenticated):
            await joined(d, ONCE)
        assert {session.grant.subject for session in d.sessions.kept_sessions()} == {"ana", "bo"}
        await joined(d, ANA)
        assert [session.grant.subject for session in d.sessions.kept_sessions()] == ["ana", "ana"], (
            "a valid one's does"
        )
        assert entry.session.connected


async def test_join_is_refused_once_its_token_is_revoked() -> None:
    async with desk() as d:
        slow = Slow(d)
        joining = asyncio.create_task(d.join(grant=ANA))
        await until(lambda: slow.waiting)
        assert await d.sessions.revoke(Revocation(tenant="acme", before_s=1e9, subject="ana")) == 0
        slow.go_on.set()
        with pytest.raises(Unauthenticated):
            await joining
        assert len(d.sessions.local.all) == 0
        await d.sessions.sweep()
        assert len(d.sessions.rooms) == 0


# ---------------------------------------------------------------- the next process


async def test_handover_keeps_revocations_used_tokens_and_owners(tmp_path: Path) -> None:
    file = tmp_path / "handover"
    key, limits = API_KEY, Limits(keep_s=60)
    async with desk(limits) as d:
        entry, ana = await joined(d, ONCE, speaks="en")
        await says(d, entry, ana, "One.", outcomes=0)
        with_key, _ = await joined(d, key, meeting="m")
        await joined(d, BO)
        assert await d.sessions.revoke(Revocation(tenant="acme", before_s=1e9, subject="bo")) == 1
        for each in (entry, with_key):
            d.sessions.local.away(each.session, each.feed)
        left = Handover(
            meetings=d.core.log.kept_meetings(),
            sessions=d.sessions.kept_sessions(),
            revocations=d.sessions.lifetimes.revocations.kept_revocations(),
            used_tokens=cast(MemorySessionStore, d.session_store).kept_tokens(),
        )
        handover_file.write(file, left)
    assert handover_file.read(file) == left
    async with desk(limits, log=Log(left.meetings)) as d:
        await d.sessions.restore(left)
        d.sessions.engine_ready()
        for grant in (BO, replace(BO, token_id="t9")):
            with pytest.raises(Unauthenticated):
                await joined(d, grant)
        await joined(d, replace(BO, issued_s=2e9))
        with pytest.raises(Unauthenticated):
            await joined(d, ONCE)
        with pytest.raises(Forbidden):
            await joined(d, replace(BO, issued_s=2e9), resume=resume_of(entry))
        again, _ = await joined(d, ONCE, resume=resume_of(entry))
        assert again.recovered
        assert again.session.member.participant == entry.session.member.participant
        with_it, _ = await joined(d, key, meeting="m", resume=resume_of(with_key))
        assert with_it.recovered


async def test_without_tokens_again_sessions_of_before_are_nobodys(tmp_path: Path) -> None:
    for before, after in ((ANA, replace(OPEN, tenant="acme")), (replace(OPEN), replace(ANA, tenant="default"))):
        async with desk() as d:
            entry, _ = await joined(d, before, meeting="m")
            d.sessions.local.away(entry.session, entry.feed)
            earlier = Handover(meetings=d.core.log.kept_meetings(), sessions=d.sessions.kept_sessions())
        async with desk(log=Log(earlier.meetings)) as d:
            await d.sessions.restore(earlier)
            d.sessions.engine_ready()
            with pytest.raises(Forbidden):
                await joined(d, after, meeting="m", resume=resume_of(entry))


# ---------------------------------------------------------------- accounts


async def test_the_tenant_is_charged_from_whatever_address() -> None:
    async with desk() as d:
        charged: dict[str, str] = {}
        subscribe: Any = d.core.log.subscribe

        def noted(meeting: str, deliver: Any, *, account: str = "", **more: Any) -> Any:
            charged[meeting] = account
            return subscribe(meeting, deliver, account=account, **more)

        d.core.log.subscribe = noted  # type: ignore[method-assign]
        for address, grant, account in (
            ("192.0.2.1", ANA, "tenant:acme"),
            ("192.0.2.2", replace(ANA, tenant="other"), "tenant:other"),
            ("192.0.2.1", replace(ANA, tenant="default"), "tenant:default"),
        ):
            entry, _ = await d.join(address, grant)
            assert (entry.session.account, charged[entry.session.room.id]) == (account, account)
            again, _ = await d.join("192.0.2.9", grant, resume=resume_of(entry))
            assert again.session.account == account
        entry, _ = await d.join("192.0.2.1", meeting="open")
        assert (entry.session.account, charged["open"]) == ("192.0.2.1", "192.0.2.1")
