"""The sessions of a gateway: how they end, and how they go to another gateway; nothing raises out of that."""

from __future__ import annotations

import pytest

from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import LogUnavailable
from gateway.domain.grants import Revocation
from gateway.protocol.limits import Limits
from gateway.protocol.messages import UtteranceFinal
from gateway.sessions.effects import Update
from tests.sessions.desk import desk
from tests.sessions.faulty_register import FaultyRegister
from tests.sessions.two_gateways import resume_of
from tests.translation.stage import idle


async def test_a_session_that_was_moved_takes_nothing_more_and_ends_nothing() -> None:
    register = FaultyRegister()
    async with desk(register=register) as d:
        entry, ana = await d.join(name="Ana", speaks="en")
        d.registry._seats.moved(entry.seat.key, elsewhere=True)
        d.registry._seats.moved(entry.seat.key, elsewhere=True)
        assert ana.closed == [CloseCode.REPLACED]
        assert ana.send(UtteranceFinal("u", 1, "One.")) == []
        # Its connection closes only now.
        d.registry.away(entry.seat, entry.feed)
        d.registry.end(entry.seat)
        await idle()
        assert d.registry.sessions == 0
        assert (await register.counts("default")).sessions == 1, "the other gateway has it"


async def test_a_session_that_has_ended_elsewhere_is_to_come_again() -> None:
    async with desk() as d:
        entry, ana = await d.join()
        d.registry._seats.moved(entry.seat.key, elsewhere=False)
        assert ana.closed == [CloseCode.RESTART]
        assert isinstance(ana.reasons[0], LogUnavailable)


async def test_what_happens_while_the_store_is_away_is_told_later() -> None:
    register = FaultyRegister()
    async with desk(Limits(keep_s=60), register=register) as d:
        away, _ = await d.join(name="Ana")
        gone, _ = await d.join(name="Bo")
        changed, _ = await d.join(name="Cy")
        register.down |= {"save", "end", "release"}
        d.registry.away(away.seat, away.feed)
        d.registry.end(gone.seat)
        with pytest.raises(LogUnavailable):
            await d.registry.update(changed.seat, Update("de", ("fr",)))
        assert (changed.seat.member.speaks, changed.seat.member.reads) == (None, ())
        d.now_s = 30.0
        await d.registry.sweep()
        await idle()
        assert (await register.counts("default")).sessions == 3
        register.down.clear()
        await d.registry.sweep()
        await idle()
        assert (await register.counts("default")).sessions == 2
        [session] = [each for each in register.store.sessions.values() if each.record.name == "Ana"]
        assert session.away_s == pytest.approx(register.store.wall_clock() - 30.0, abs=10.0)
        held = await register.find(changed.seat.key)
        assert held is not None
        assert held.record.reads == ()


async def test_a_revocation_that_others_may_not_know_is_to_be_repeated() -> None:
    register = FaultyRegister()
    async with desk(register=register) as d:
        register.down.add("revoke")
        with pytest.raises(LogUnavailable):
            await d.registry.revoke(Revocation(tenant="acme", before_s=1.0, subject="ana"))
        assert d.registry.lifetimes.spent.kept(), "here it counts at once"
        register.down.clear()
        await d.registry.revoke(Revocation(tenant="acme", before_s=1.0, subject="ana"))
        assert register.store.revocations


async def test_with_a_register_that_outlives_the_process_there_is_nothing_to_hand_over() -> None:
    register = FaultyRegister()
    async with desk(register=register) as d:
        entry, _ = await d.join()
        [kept] = d.registry.kept()
        assert kept.session == entry.seat.secret
        register.outlives = True
        assert d.registry.kept() == ()
        assert (await d.join(resume=resume_of(entry)))[0].recovered
