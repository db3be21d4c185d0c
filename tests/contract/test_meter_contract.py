"""The duties of every adapter of the Meter port: what is told counts once, for all gateways of a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.domain.ports import Meter
from gateway.domain.quotas import DayOfTenant, Metered, MinuteOfMeeting, Totals
from gateway.stores import memory_meter
from gateway.stores.redis import meter as redis_meter
from tests.contract.stores import STORES, OpenStore, Store

DAY = 20_000
# The first of the day.
MINUTE = DAY * 1_440


class Gateway:
    """What one gateway tells, and what it knows by that."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.number = 0
        self.known: dict[str, DayOfTenant] = {}

    async def tell(
        self,
        characters: Mapping[str, int] | None = None,
        *minutes: MinuteOfMeeting,
        waiting: Mapping[str, int] | None = None,
        day: int = DAY,
        again: bool = False,
    ) -> Totals:
        self.number += not again
        metered = Metered(
            number=self.number, day=day, characters=characters or {}, minutes=minutes, waiting=waiting or {}
        )
        totals = await self.meter.record(metered)
        assert {each.day for each in totals.days} <= {day}
        self.known |= {each.tenant: each for each in totals.days}
        return totals

    def used(self, tenant: str = "acme") -> tuple[int, int]:
        known = self.known[tenant]
        return known.characters, known.minutes


class Two(NamedTuple):
    store: Store
    here: Gateway
    there: Gateway


@pytest.fixture(params=list(STORES))
def open_store(request: pytest.FixtureRequest) -> OpenStore:
    return STORES[request.param]


@pytest.fixture
async def two(open_store: OpenStore) -> AsyncIterator[Two]:
    async with open_store() as store:
        yield Two(store, Gateway(await store.meter()), Gateway(await store.meter()))


def minute(lang: str = "ja", meeting: str = "acme/m", at: int = MINUTE) -> MinuteOfMeeting:
    return MinuteOfMeeting("acme", meeting, lang, at)


async def test_usage_is_summed_and_known_to_all_gateways(two: Two) -> None:
    await two.here.tell({"acme": 3, "other": 1}, minute())
    await two.there.tell({"acme": 4}, minute("de"))
    assert (two.there.used(), two.there.used("other")) == ((7, 2), (1, 0))
    await two.here.tell()
    assert two.here.used() == (7, 2)
    await two.there.tell({"other": 2})
    await two.here.tell()
    assert (two.here.used(), two.here.used("other")) == ((7, 2), (3, 0))


async def test_what_is_told_again_counts_once(two: Two) -> None:
    for again in (False, True, True):
        await two.here.tell({"acme": 3}, minute(), again=again)
    assert two.here.used() == (3, 1)
    await two.here.tell({"acme": 3}, minute(at=MINUTE + 1))
    await two.there.tell()
    assert two.there.used() == (6, 2)


async def test_a_language_minute_counts_once_across_gateways(two: Two) -> None:
    """Each minute of a meeting and a language counts once."""
    await two.here.tell({}, minute(), minute("de"), minute(meeting="acme/n"))
    await two.there.tell({}, minute(), minute("fr"), minute(at=MINUTE + 1))
    assert two.there.used() == (0, 5)


async def test_new_day_starts_at_zero_accepting_old_reports(two: Two) -> None:
    """The day before can still be told."""
    await two.here.tell({"acme": 3}, minute())
    assert (await two.here.tell(day=DAY + 1)).days == ()
    await two.here.tell({"acme": 1}, minute(at=MINUTE + 1_440), day=DAY + 1)
    assert two.here.used() == (1, 1)
    await two.there.tell({"acme": 5})
    assert two.there.used() == (8, 1)
    await two.there.tell(day=DAY + 1)
    assert two.there.used() == (1, 1)


async def test_a_gateway_that_comes_later_knows_the_day(two: Two) -> None:
    await two.here.tell({"acme": 3}, minute())
    later = Gateway(await two.store.meter())
    await later.tell()
    assert later.used() == (3, 1)
    await later.tell({"acme": 1})
    assert later.used() == (4, 1)


async def test_a_gateway_knows_what_waits_at_the_others(two: Two) -> None:
    third = Gateway(await two.store.meter())
    assert (await two.here.tell(waiting={"acme": 3, "other": 1})).waiting_elsewhere == {}
    assert (await third.tell(waiting={"acme": 2})).waiting_elsewhere == {"acme": 3, "other": 1}
    assert (await two.there.tell()).waiting_elsewhere == {"acme": 5, "other": 1}
    await two.here.tell(waiting={"acme": 1})
    await third.tell()
    assert (await two.there.tell()).waiting_elsewhere == {"acme": 1}


async def test_waiting_at_a_lost_gateway_does_not_count(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (redis_meter, memory_meter):
        monkeypatch.setattr(module, "LEASE_S", 0.3)
    await two.here.tell(waiting={"acme": 3})
    await two.store.pass_time(0.3)
    assert (await two.there.tell()).waiting_elsewhere == {}


# Characters of a tenant, and minutes of its only meeting, at one of two gateways; and how often that is told.
TOLD = st.tuples(
    st.integers(0, 1),
    st.dictionaries(st.sampled_from(["acme", "other"]), st.integers(1, 9)),
    st.sets(st.integers(MINUTE, MINUTE + 5)),
    st.integers(1, 3),
)


@given(st.lists(TOLD, max_size=12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
async def test_whatever_is_told_in_whatever_order_counts_once(
    open_store: OpenStore, told: list[tuple[int, dict[str, int], set[int], int]]
) -> None:
    async with open_store() as store:
        gateways = [Gateway(await store.meter()) for _ in range(2)]
        characters: Counter[str] = Counter()
        minutes: set[int] = set()
        for at, of_tenants, in_minutes, times in told:
            for again in range(times):
                each = [minute(at=number) for number in in_minutes]
                await gateways[at].tell(of_tenants, *each, again=again > 0)
            characters.update(of_tenants)
            minutes |= in_minutes
        for gateway in gateways:
            await gateway.tell()
            used = {name: (each.characters, each.minutes) for name, each in gateway.known.items()}
            expected = {tenant: (count, 0) for tenant, count in characters.items()}
            if minutes:
                expected["acme"] = (characters["acme"], len(minutes))
            assert used == expected
