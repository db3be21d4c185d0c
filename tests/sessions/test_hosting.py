"""What a host does holds at every gateway, and takes nothing that was said."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import InvalidValue, LogUnavailable, MeetingLocked, RateLimited, Unauthenticated
from gateway.domain.grants import OPEN, Grant
from gateway.domain.log import Title
from gateway.protocol import messages
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Error,
    MeetingTitled,
    ParticipantUpdated,
    SessionMuted,
    UtteranceCancelled,
    UtteranceFinal,
    UtterancePartial,
)
from gateway.sessions import grants
from gateway.sessions.entrance import Entry
from gateway.sessions.machine import Acknowledge, Effect, Reply, Show
from tests.sessions.desk import ANA, desk, joined, resume_of
from tests.sessions.faulty_session_store import FaultySessionStore
from tests.sessions.talk import only
from tests.sessions.two_gateways import says, translated, two
from tests.translation.stage import idle, until

HOST = replace(ANA, roles=ANA.roles | {"host"})
BO = replace(ANA, subject="bo", token_id="t2")
# Where no tokens are needed.
OPEN_HOST = replace(OPEN, roles=OPEN.roles | {"host"})


def why(connection: Any) -> list[tuple[CloseCode, str, str]]:
    return [
        (code, error.code, error.message)
        for code, error in zip(connection.closed, connection.reasons, strict=True)
        if error is not None
    ]


def who(entry: Entry) -> str:
    return entry.session.member.participant


@pytest.mark.parametrize("host", [HOST, OPEN_HOST])
async def test_ended_meeting_ends_everywhere_and_what_was_accepted_is_translated(host: Grant) -> None:
    guest = replace(BO, roles=host.roles - {"host"}) if host is HOST else OPEN
    async with two() as g:
        ana, host_connection = await joined(g.here, grant=host)
        _, bo = await joined(g.there, grant=guest, reads=["de"], speaks="en")
        _, elsewhere = await joined(g.there, grant=replace(guest, meeting="n"), meeting="n")
        speaker, cy = await joined(g.there, grant=guest, speaks="en")
        await says(g.there, speaker, cy, "One.")
        await g.here.sessions.hosting.end_meeting(ana.session)
        told = [(CloseCode.MEETING_ENDED, "meeting_ended", "The host has ended this meeting.")]
        assert [why(each) for each in (host_connection, bo, cy, elsewhere)] == [told, told, told, []]
        await until(g.there.core.engine.pending)
        g.there.core.engine.says("Eins.")
        await g.there.core.finals.quiet()
        assert await translated(g.there, ana.session.room.id) == [("One.", "de")]


async def test_removed_participant_stays_out_with_the_same_token() -> None:
    async with two() as g:
        ana, _ = await joined(g.here, grant=HOST)
        bo, connection = await joined(g.there, grant=BO)
        _, cy = await joined(g.there, grant=replace(BO, subject="cy", token_id="t3"))
        await g.here.sessions.hosting.remove(ana.session, who(bo))
        assert why(connection) == [
            (CloseCode.TOKEN_REVOKED, "removed", "The host has removed you from this meeting.")
        ]
        assert why(cy) == []
        for gateway in (g.here, g.there):
            with pytest.raises(Unauthenticated):
                await joined(gateway, grant=BO)
            with pytest.raises(Unauthenticated):
                await joined(gateway, grant=BO, resume=resume_of(bo))
        others = ana.session.room.presence
        await until(lambda: who(bo) not in {each.participant for each in others.participants(but=who(ana))})
        with pytest.raises(InvalidValue, match="no such participant"):
            await g.here.sessions.hosting.remove(ana.session, who(bo))


async def test_without_tokens_a_removed_session_is_not_resumed_and_nothing_is_kept_of_it() -> None:
    async with two() as g:
        ana, _ = await joined(g.here, grant=OPEN_HOST)
        bo, connection = await joined(g.there)
        await g.here.sessions.hosting.remove(ana.session, who(bo))
        assert connection.closed == [CloseCode.TOKEN_REVOKED]
        again, _ = await joined(g.there, resume=resume_of(bo))
        assert who(again) != who(bo)
        await g.pass_time(1, g.here, g.there)
        for gateway in (g.here, g.there):
            assert gateway.sessions.lifetimes.revocations.kept_revocations() == ()


async def test_locked_meeting_lets_in_hosts_and_those_who_come_back() -> None:
    async with two() as g:
        ana, _ = await joined(g.here, grant=OPEN_HOST)
        bo, _ = await joined(g.there)
        hosting = g.here.sessions.hosting
        await hosting.lock(ana.session, True)
        await until(lambda: bo.session.room.presence.is_locked)
        with pytest.raises(MeetingLocked):
            await joined(g.there)
        await joined(g.there, grant=OPEN_HOST)
        resumed, _ = await joined(g.here, resume=resume_of(bo))
        assert who(resumed) == who(bo)
        await hosting.lock(ana.session, False)
        await joined(g.there)


async def test_everybody_follows_the_lock_each_once() -> None:
    async with two() as g:
        (ana, anas), (cy, cys) = await joined(g.here, grant=OPEN_HOST), await joined(g.there, grant=OPEN_HOST)
        _, bos = await joined(g.there)
        told = (anas, bos, cys)
        for connection in told:
            await connection.received()
        for host, locked in ((ana, True), (cy, False)):
            await g.here.sessions.hosting.lock(host.session, locked)
            for connection in told:
                await until(partial(getattr, connection.outbox, "bytes"))
                assert await connection.received() == [messages.MeetingLocked(locked)]
        await g.here.sessions.hosting.lock(ana.session, False)  # nothing changes, and the host waits for an answer
        assert await anas.received() == [messages.MeetingLocked(False)]
        assert bos.outbox.bytes == 0


async def muted(entry: Entry, expected: bool = True) -> None:
    """Waits until it is so."""
    room = entry.session.room
    await until(lambda: room.presence.is_muted(entry.session.member) == expected)


def refusals(effects: list[Effect]) -> list[tuple[str, str | None]]:
    return [
        (effect.message.code, effect.message.utterance)
        for effect in effects
        if isinstance(effect, Reply) and isinstance(effect.message, Error)
    ]


async def test_what_a_muted_participant_says_is_refused_until_that_is_undone() -> None:
    async with two(live=True) as g:
        ana, host = await joined(g.here, grant=HOST, reads=["en"])
        bo, connection = await joined(g.there, grant=BO, speaks="en")
        cy, _ = await joined(g.there, grant=replace(BO, subject="cy", token_id="t3"), speaks="en")
        await says(g.there, bo, connection, "One.")
        await g.there.sessions.hear(bo.session, only(Show, connection.send(UtterancePartial("u2", 1, "Two"))))
        await until(lambda: len(list(ana.session.room.live.captions)) == 1)
        await host.received()
        await connection.received()
        await g.here.sessions.hosting.mute(ana.session, who(bo), True)
        await muted(bo)
        assert not cy.session.room.presence.is_muted(cy.session.member)
        assert [m for m in await connection.received() if isinstance(m, SessionMuted)] == [SessionMuted(True)]
        for message in (UtterancePartial("u2", 2, "Two more"), UtteranceFinal("u3", 1, "Three.")):
            assert refusals(connection.send(message)) == [("muted", message.id)]
        [acknowledged] = connection.send(UtteranceFinal("One.", 1, "One."))  # what was accepted stays
        assert isinstance(acknowledged, Acknowledge)
        await until(lambda: list(ana.session.room.live.captions) == [])
        others = ana.session.room.presence
        await until(lambda: [each.muted for each in others.participants(but=who(ana))] == [True, UNSET])
        told = [type(message) for message in await host.received()]
        assert told.count(UtteranceCancelled) == 1
        assert told.count(ParticipantUpdated) == 1

        await g.here.sessions.hosting.mute(ana.session, who(bo), False)
        await muted(bo, False)
        assert await connection.received() == [UtteranceCancelled(who(bo), "u2"), SessionMuted(False)][1:]
        assert isinstance(connection.send(UtterancePartial("u2", 3, "Two again"))[0], Show)


@pytest.mark.parametrize("grant", [BO, OPEN], ids=["token", "guest"])
async def test_muted_person_stays_so_in_another_session(grant: Grant) -> None:
    host = HOST if grant is BO else OPEN_HOST
    async with two() as g:
        ana, _ = await joined(g.here, grant=host, guest="ana")
        bo, _ = await joined(g.there, grant=grant, guest="bo")
        await g.here.sessions.hosting.mute(ana.session, who(bo), True)
        await muted(bo)
        resumed, connection = await joined(g.here, grant=grant, resume=resume_of(bo), speaks="en")
        assert refusals(connection.send(UtteranceFinal("u1", 1, "One."))) == [("muted", "u1")]
        g.here.sessions.local.end(resumed.session)
        another, connection = await joined(g.there, grant=replace(grant, token_id="t9"), guest="bo", speaks="en")
        assert who(another) != who(bo)
        assert refusals(connection.send(UtteranceFinal("u1", 1, "One."))) == [("muted", "u1")]
        cy, _ = await joined(g.there, grant=grant if grant is OPEN else replace(grant, subject="cy"), guest="cy")
        assert not cy.session.room.presence.is_muted(cy.session.member)
        await g.here.sessions.hosting.mute(ana.session, who(another), False)
        await muted(another, False)


async def test_host_mutes_another_session_of_their_own_alone() -> None:
    async with two() as g:
        ana, _ = await joined(g.here, grant=HOST)
        other, _ = await joined(g.there, grant=HOST)
        await g.here.sessions.hosting.mute(ana.session, who(other), True)
        await muted(other)
        assert not ana.session.room.presence.is_muted(ana.session.member)
        with pytest.raises(InvalidValue, match="no such participant"):
            await g.here.sessions.hosting.mute(ana.session, "nobody", True)


async def test_what_waits_for_its_turn_is_not_shown_once_its_speaker_is_muted() -> None:
    async with two() as g:
        ana, _ = await joined(g.here, grant=HOST)
        bo, connection = await joined(g.here, grant=BO, speaks="en")
        bo.session.put_late(only(Show, connection.send(UtterancePartial("u1", 1, "One"))))
        await g.here.sessions.hosting.mute(ana.session, who(bo), True)
        assert bo.session.late == {}


async def test_all_are_told_what_the_meeting_is_called() -> None:
    async with two() as g:
        ana, host = await joined(g.here, grant=OPEN_HOST, name="Ana", title="Weekly")
        assert ana.session.room.title == Title("Weekly", "Ana")
        bo, connection = await joined(g.there, title="Another")
        assert bo.session.room.title == Title("Weekly", "Ana")
        for each in (host, connection):
            await each.received()
        await g.here.sessions.hosting.entitle(ana.session, "Daily")
        await until(lambda: bo.session.room.title == Title("Daily", "Ana"))
        for each in (host, connection):
            assert await each.received() == [MeetingTitled("Daily", "Ana")]
        assert (await g.there.core.log.read("m", 0)).title == Title("Daily", "Ana")
        # A host who comes back says again what it was called at first.
        await joined(g.there, grant=OPEN_HOST, name="Ana", title="Weekly")
        assert ana.session.room.title == Title("Daily", "Ana")


async def test_host_who_comes_back_does_not_bring_back_a_title() -> None:
    async with two() as g:
        ana, _ = await joined(g.here, grant=OPEN_HOST, title="Weekly")
        await g.here.sessions.hosting.entitle(ana.session, "")
        again, _ = await joined(g.there, grant=OPEN_HOST, resume=resume_of(ana), title="Weekly")
        assert (again.recovered, again.session.room.title) == (True, Title())


async def test_host_is_answered_also_if_nothing_changes() -> None:
    async with two() as g:
        ana, host = await joined(g.here, grant=HOST, name="Ana")
        bo, connection = await joined(g.here, grant=BO, speaks="en")
        presence = ana.session.room.presence
        await g.here.sessions.hosting.entitle(ana.session, "Weekly")
        await g.here.sessions.hosting.mute(ana.session, who(bo), True)
        await until(lambda: [each.muted for each in presence.participants(but=who(ana))] == [True])
        for each in (host, connection):
            await each.received()
        await g.here.sessions.hosting.entitle(ana.session, "Weekly")
        await g.here.sessions.hosting.mute(ana.session, who(bo), True)
        titled, updated = await host.received()
        assert titled == MeetingTitled("Weekly", "Ana")
        assert isinstance(updated, ParticipantUpdated)
        assert (updated.participant, updated.muted) == (who(bo), True)
        assert await connection.received() == []


async def test_first_one_names_a_meeting_without_a_title() -> None:
    async with two() as g:
        first, _ = await joined(g.here, title="Weekly")
        assert first.session.room.title == Title("Weekly")
        one, connection = await joined(g.here, meeting="n", speaks="en")
        await joined(g.there, meeting="n", title="Late")  # somebody was there
        await says(g.here, one, connection, "One.")
        g.here.sessions.local.end(one.session)
        assert one.session.room.title == Title()


async def test_title_is_where_it_was_when_all_come_back() -> None:
    async with two() as g:
        first, _ = await joined(g.here, name="Ana", title="Weekly", speaks="en")
        g.here.sessions.local.end(first.session)
        again, _ = await joined(g.there)
        assert again.session.room.title == Title("Weekly", "Ana")


async def test_host_is_told_where_the_store_is_away_and_nothing_has_changed() -> None:
    store = FaultySessionStore()
    async with desk(session_store=store) as d:
        ana, host = await joined(d, grant=OPEN_HOST)
        store.down.add("revoke")
        with pytest.raises(LogUnavailable):
            await d.sessions.hosting.end_meeting(ana.session)
        assert host.closed == []
        store.down.clear()
        await d.sessions.hosting.end_meeting(ana.session)
        assert host.closed == [CloseCode.MEETING_ENDED]


async def test_ending_is_carried_through_though_the_hosts_connection_is_gone() -> None:
    store = FaultySessionStore()
    async with desk(session_store=store) as d:
        ana, _ = await joined(d, grant=OPEN_HOST)
        _, bo = await joined(d)
        store.go_on.clear()
        hosting = d.sessions.hosting
        ending = asyncio.create_task(hosting.carry_through(hosting.end_meeting(ana.session)))
        while "revoke" not in store.asked:
            await idle()
        ending.cancel()
        store.go_on.set()
        await until(lambda: bo.closed == [CloseCode.MEETING_ENDED])


async def test_participant_whose_gateway_is_gone_is_removed_and_does_not_hold_an_ended_meeting() -> None:
    async with two(Limits(keep_s=60, participants_shown=1)) as g:
        ana, _ = await joined(g.here, grant=OPEN_HOST)
        bo, bo_connection = await joined(g.there)
        cy, cy_connection = await joined(g.there)
        for entry, connection in ((bo, bo_connection), (cy, cy_connection)):
            g.there.sessions.local.away(entry.session, entry.feed)
            assert connection.closed == []
        await idle()
        await g.there.session_store.close()
        hosting = g.here.sessions.hosting
        await hosting.lock(ana.session, True)
        await hosting.remove(ana.session, who(bo))  # who was not announced
        await idle()
        with pytest.raises(MeetingLocked):
            await joined(g.here, resume=resume_of(bo))
        await hosting.end_meeting(ana.session)
        await idle()
        assert await g.here.session_store.sessions() == ()
        again, _ = await joined(g.here, resume=resume_of(cy))
        assert who(again) != who(cy)


async def test_removed_token_of_an_issuer_whose_clock_is_ahead_opens_nothing() -> None:
    async with two() as g:
        ana, _ = await joined(g.here, grant=HOST)
        ahead = replace(BO, issued_s=time.time() + 25)
        bo, _ = await joined(g.there, grant=ahead)
        await g.here.sessions.hosting.remove(ana.session, who(bo))
        with pytest.raises(Unauthenticated):
            await joined(g.there, grant=ahead)
        other = replace(ahead, subject="cy", token_id="t3")
        await g.here.sessions.hosting.end_meeting(ana.session)
        with pytest.raises(Unauthenticated):
            await joined(g.there, grant=other)


async def test_host_who_removes_another_session_of_theirs_stays() -> None:
    async with two() as g:
        ana, here = await joined(g.here, grant=HOST)
        other, there = await joined(g.there, grant=HOST)
        await g.here.sessions.hosting.remove(ana.session, who(other))
        assert [each for each, *_ in why(there)] == [CloseCode.TOKEN_REVOKED]
        assert why(here) == []
        await joined(g.there, grant=HOST)


async def test_removed_participant_leaves_with_all_their_sessions_in_the_meeting() -> None:
    async with two() as g:
        ana, _ = await joined(g.here, grant=HOST)
        bo, first = await joined(g.there, grant=BO)
        _, second = await joined(g.here, grant=BO)
        _, cy = await joined(g.here, grant=replace(BO, subject="cy", token_id="t3"))
        await g.here.sessions.hosting.remove(ana.session, who(bo))
        codes = [[code for code, *_ in why(each)] for each in (first, second, cy)]
        assert codes == [[CloseCode.TOKEN_REVOKED], [CloseCode.TOKEN_REVOKED], []]


async def test_host_is_bound_by_how_many_revocations_a_tenant_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grants, "_MOST_REVOCATIONS", 1)
    async with two() as g:
        ana, _ = await joined(g.here, grant=HOST)
        bo, _ = await joined(g.there, grant=BO)
        cy, connection = await joined(g.there, grant=replace(BO, subject="cy", token_id="t3"))
        await g.here.sessions.hosting.remove(ana.session, who(bo))
        with pytest.raises(RateLimited):
            await g.here.sessions.hosting.remove(ana.session, who(cy))
        assert connection.closed == []
