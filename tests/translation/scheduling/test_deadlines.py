"""Deadlines: each translation has the same time, and one timer watches all of them."""

from __future__ import annotations

import asyncio

from gateway.domain.engine import TranslationRequest
from gateway.translation.scheduling.deadlines import Deadlines
from gateway.translation.scheduling.ticket import Ticket
from tests.clocks import swiftly


def ticket(serial: int) -> Ticket:
    request = TranslationRequest(id=str(serial), text="x", source="en", target="ja")
    return Ticket(serial, "m", request, 0.0)


@swiftly
async def test_each_is_told_of_when_its_own_time_is_over() -> None:
    told: list[tuple[int, float]] = []
    loop = asyncio.get_running_loop()
    begun_s = loop.time()

    def expire(late: Ticket) -> None:
        told.append((late.serial, round(loop.time() - begun_s, 2)))
        deadlines.remove(late)

    deadlines = Deadlines(10.0, expire)
    for serial in range(3):
        deadlines.add(ticket(serial))
        await asyncio.sleep(4)
    await asyncio.sleep(60)
    assert told == [(0, 10.0), (1, 14.0), (2, 18.0)]
    deadlines.add(ticket(3))
    await asyncio.sleep(60)
    assert told[3:] == [(3, 82.0)], "also of one that comes once all were gone"


@swiftly
async def test_of_what_has_ended_nobody_is_told() -> None:
    told: list[Ticket] = []
    deadlines = Deadlines(10.0, told.append)
    first, second = ticket(1), ticket(2)
    deadlines.add(first)
    await asyncio.sleep(5)
    deadlines.add(second)
    deadlines.remove(first)
    deadlines.remove(first)
    await asyncio.sleep(7)
    assert (told, len(deadlines)) == ([], 1)
    await asyncio.sleep(4)
    assert told == [second]
