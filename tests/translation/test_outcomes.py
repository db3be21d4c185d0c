"""Outcomes on their way to the log."""

from __future__ import annotations

import asyncio

import pytest

from gateway.domain.errors import EngineFailed
from gateway.translation.outcomes import Outcomes, untranslated
from gateway.translation.owned import Owned
from tests.translation.stage import said, stage, until

ONE = said("One.", 1, "u", "ana", final=True)


async def test_what_is_handed_in_is_not_owned_any_more_and_keeps_its_meeting_until_it_is_written() -> None:
    async with stage() as r:
        work = await r.left("One.", "de", "fr")
        owned = Owned()
        owned.add(r.room, ONE, work.said, work.languages)
        outcomes = Outcomes(owned)
        r.log.open.clear()
        failed = EngineFailed("It failed.")
        writing = [
            asyncio.create_task(outcomes.write(r.room, untranslated(ONE, work.said, "de", failed))),
            asyncio.create_task(outcomes.leave_out(r.room, ONE, work.said, ["fr"], failed)),
        ]
        await until(lambda: r.room not in owned)
        assert r.room in outcomes
        r.log.open.set()
        await outcomes.quiet()
        assert r.room not in outcomes
        assert r.room.offset == 3
        await asyncio.gather(*writing)


async def test_whoever_leaves_does_not_wait_for_a_log_that_takes_nothing() -> None:
    async with stage() as r:
        outcomes = Outcomes(Owned())
        r.log.refuses = lambda _: True
        outcomes.leave()
        await outcomes.write(r.room, untranslated(ONE, 1, "de", EngineFailed("It failed.")))
        assert r.room not in outcomes


async def test_who_waits_for_the_log_learns_of_it_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.translation.outcomes._RETRIES_S", (0.0, 0.0))
    async with stage() as r:
        work = await r.left("One.", "de", "fr")
        outcomes, delays = Outcomes(Owned()), []
        r.log.refuses = lambda _: len(r.log.refused) < 2
        failed = EngineFailed("It failed.")
        await outcomes.write(r.room, untranslated(ONE, work.said, "de", failed), lambda: delays.append("de"))
        await outcomes.write(r.room, untranslated(ONE, work.said, "fr", failed), lambda: delays.append("fr"))
        assert delays == ["de", "de"]
