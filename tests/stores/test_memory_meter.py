"""The meter in memory: what is its own; what holds for every store is in `tests/contract/`."""

from __future__ import annotations

from gateway.domain.quotas import DayOfTenant, Metered, MinuteOfMeeting
from gateway.stores.memory_meter import MemoryMeter, MemoryMeterStore

MINUTE = 20_000 * 1_440


def told(number: int, day: int, characters: int, *minutes: int) -> Metered:
    of_meetings = tuple(MinuteOfMeeting("acme", "acme/m", "ja", minute) for minute in minutes)
    return Metered(number=number, day=day, characters={"acme": characters}, minutes=of_meetings)


async def test_a_day_goes_on_in_the_next_process() -> None:
    earlier = MemoryMeter()
    await earlier.record(told(1, 20_000, 3, MINUTE))
    kept = earlier.kept_days()
    assert kept == (DayOfTenant(tenant="acme", day=20_000, characters=3, minutes=1),)
    later = MemoryMeter(MemoryMeterStore(kept))
    assert (await later.record(told(1, 20_000, 4, MINUTE + 1))).days == (
        DayOfTenant(tenant="acme", day=20_000, characters=7, minutes=2),
    )


async def test_what_is_over_is_forgotten() -> None:
    store = MemoryMeterStore()
    meter = MemoryMeter(store)
    for number in range(1, 30):
        await meter.record(told(number, 20_000 + number // 10, 1, MINUTE + number))
    assert {*store.days} == {20_001, 20_002}
    assert len(store.minutes) == 10
