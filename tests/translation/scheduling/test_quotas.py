"""What a tenant has had translated today, and what it is refused for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import metrics
from gateway.domain.errors import DailyQuotaExceeded, LogUnavailable, QuotaExceeded
from gateway.domain.quotas import NO_QUOTA, DayOfTenant, Metered, Quota, Totals
from gateway.stores.memory_meter import MemoryMeter, MemoryMeterStore
from gateway.translation.scheduling.quotas import Quotas

DAY_S = 86_400.0


class Tenants:
    """Quotas with a clock, and with a quota for `acme` alone."""

    def __init__(self, quota: Quota = NO_QUOTA) -> None:
        self.now_s = 1_000 * DAY_S
        self.quota = quota
        self.quotas = Quotas(
            lambda tenant: self.quota if tenant == "acme" else NO_QUOTA, wall_clock=lambda: self.now_s
        )

    def used(self, tenant: str = "acme") -> tuple[int, int]:
        today = self.quotas.today(tenant)
        return today.characters, today.minutes


def test_characters_count_once_for_each_translation() -> None:
    tenants = Tenants()
    for lang in ("ja", "de"):
        tenants.quotas.translated("acme", "acme/m", lang, 7)
    tenants.quotas.translated("acme", "", "ja", 5)
    assert tenants.used() == (19, 2)
    assert tenants.used("other") == (0, 0)


def test_metrics_count_seconds_of_meetings() -> None:
    tenants = Tenants()
    for meeting in ("measured/m", "measured/m", "measured/n"):
        tenants.quotas.translated("measured", meeting, "ja", 1)
    page = metrics.exposition().decode()
    assert 'gateway_tenant_translated_seconds_total{tenant="measured"} 120.0' in page
    # Its name in earlier versions.
    assert 'gateway_tenant_minutes_total{tenant="measured"} 2.0' in page


def test_a_minute_counts_once_for_each_meeting_and_language() -> None:
    tenants = Tenants()
    for meeting in ("acme/m", "acme/n", "acme/m"):
        tenants.quotas.translated("acme", meeting, "ja", 1)
    tenants.now_s += 59.9
    tenants.quotas.translated("acme", "acme/m", "ja", 1)
    assert tenants.used() == (4, 2)
    tenants.now_s += 0.1
    tenants.quotas.translated("acme", "acme/m", "ja", 1)
    assert tenants.used() == (5, 3)


@pytest.mark.parametrize("name", ["characters", "minutes"])
def test_used_up_day_refuses_until_midnight(name: str) -> None:
    tenants = Tenants(Quota(**{name: 1}))
    tenants.now_s += DAY_S - 30
    tenants.quotas.check_day("acme", "acme/m")
    tenants.quotas.translated("acme", "acme/m", "ja", 9)
    tenants.quotas.check_day("other", "other/m")
    with pytest.raises(QuotaExceeded, match=f"before 00:00 UTC: this tenant's quota {name} is 1.") as refused:
        tenants.quotas.check_day("acme", "acme/m")
    assert refused.value.retry_after_ms == 30_000
    tenants.now_s += 30
    tenants.quotas.check_day("acme", "acme/m")
    assert tenants.used() == (0, 0)


def test_retry_is_within_a_minute() -> None:
    tenants = Tenants(Quota(characters=0))
    with pytest.raises(QuotaExceeded) as refused:
        tenants.quotas.check_day("acme", "acme/m")
    assert refused.value.retry_after_ms == 60_000
    tenants.quota = Quota(characters=1)
    tenants.quotas.check_day("acme", "acme/m")


def test_http_call_uses_no_minutes() -> None:
    tenants = Tenants(Quota(minutes=0))
    tenants.quotas.check_day("acme", "")
    tenants.quota = Quota(characters=0)
    with pytest.raises(DailyQuotaExceeded):
        tenants.quotas.check_day("acme", "")


def test_what_leaves_no_room_for_more_is_refused() -> None:
    tenants = Tenants(Quota(sessions=3))
    tenants.quotas.check("acme", "sessions", 1, 2)
    tenants.quotas.check("acme", "meetings", 10**9)
    tenants.quotas.check("other", "sessions", 10**9)
    with pytest.raises(QuotaExceeded, match="There are 3 already: this tenant's quota sessions is 3") as refused:
        tenants.quotas.check("acme", "sessions", 3)
    assert refused.value.retry_after_ms


def test_what_is_counted_today_ends_with_the_day() -> None:
    tenants = Tenants()
    tenants.quotas.translated("acme", "acme/m", "ja", 10)
    assert tenants.quotas.tenants() == {"acme"}
    tenants.now_s += DAY_S
    assert tenants.quotas.tenants() == set()
    tenants.quotas.translated("other", "other/m", "ja", 1)
    assert (tenants.used(), tenants.used("other")) == ((0, 0), (1, 1))


# ---------------------------------------------------------------- several gateways


class Told:
    """A meter whose answers are lost, or wait, when the test says so."""

    def __init__(self, store: MemoryMeterStore) -> None:
        self._meter = MemoryMeter(store)
        self.metered: list[Metered] = []
        self.loses_answers = False
        self.fails: Exception | None = None
        self.answers = asyncio.Event()
        self.answers.set()

    async def record(self, metered: Metered) -> Totals:
        self.metered.append(metered)
        if self.fails is not None:
            raise self.fails
        totals = await self._meter.record(metered)
        await self.answers.wait()
        if self.loses_answers:
            raise LogUnavailable("The test says so.")
        return totals

    def kept(self) -> tuple[DayOfTenant, ...]:
        return self._meter.kept_days()


class Gateways:
    """Several on one store, with one clock."""

    def __init__(self, count: int = 2, quota: Quota = NO_QUOTA) -> None:
        store = MemoryMeterStore(wall_clock=lambda: self.all[0].now_s)
        self.all = [Tenants(quota) for _ in range(count)]
        self.meters = [Told(store) for _ in self.all]

    async def tell(self, *numbers: int, waiting: Mapping[str, int] | None = None) -> None:
        for number in numbers or range(len(self.all)):
            await self.all[number].quotas.report_usage(self.meters[number], waiting or {})

    def used(self, tenant: str = "acme") -> list[tuple[int, int]]:
        return [each.used(tenant) for each in self.all]


async def test_used_up_day_counts_at_every_gateway() -> None:
    gateways = Gateways(quota=Quota(characters=10))
    here, there = gateways.all
    here.quotas.translated("acme", "acme/m", "ja", 10)
    there.quotas.check_day("acme", "acme/m")
    await gateways.tell()
    for each in (here, there):
        with pytest.raises(DailyQuotaExceeded, match="quota characters is 10"):
            each.quotas.check_day("acme", "acme/m")
    assert there.quotas.tenants() == {"acme"}


async def test_a_day_goes_on_in_another_process() -> None:
    earlier, [later] = Gateways(1), Gateways(1, Quota(characters=10)).all
    earlier.all[0].quotas.translated("acme", "acme/m", "ja", 10)
    await earlier.tell()
    await later.quotas.report_usage(MemoryMeter(MemoryMeterStore(earlier.meters[0].kept())), {})
    assert later.used() == (10, 1)
    with pytest.raises(DailyQuotaExceeded):
        later.quotas.check_day("acme", "acme/m")


async def test_local_usage_counts_at_once() -> None:
    gateways = Gateways(1)
    [here], [meter] = gateways.all, gateways.meters
    here.quotas.translated("acme", "acme/m", "ja", 10)
    meter.answers.clear()
    telling = asyncio.create_task(gateways.tell())
    await asyncio.sleep(0)
    here.quotas.translated("acme", "acme/m", "de", 1)
    assert here.used() == (11, 2)
    assert here.quotas.tenants() == {"acme"}
    meter.answers.set()
    await telling
    assert here.used() == (11, 2)
    await gateways.tell()
    assert here.used() == (11, 2)


async def test_unanswered_report_counts_once() -> None:
    gateways = Gateways()
    here, _ = gateways.all
    for meter in gateways.meters:
        meter.loses_answers = True
    here.quotas.translated("acme", "acme/m", "ja", 10)
    await gateways.tell()
    here.quotas.translated("acme", "acme/m", "de", 1)
    assert gateways.used() == [(11, 2), (0, 0)]
    for meter in gateways.meters:
        meter.loses_answers = False
    await gateways.tell()
    assert gateways.used() == [(11, 2), (10, 1)]
    await gateways.tell()
    assert gateways.used() == [(11, 2), (11, 2)]


async def test_a_minute_at_two_gateways_is_one() -> None:
    gateways = Gateways()
    for each in gateways.all:
        each.quotas.translated("acme", "acme/m", "ja", 1)
    await gateways.tell()
    await gateways.tell()
    assert gateways.used() == [(2, 1), (2, 1)]


async def test_late_report_of_yesterday_is_ignored() -> None:
    gateways = Gateways()
    here, there = gateways.all
    gateways.meters[0].loses_answers = True
    here.quotas.translated("acme", "acme/m", "ja", 10)
    await gateways.tell(0)
    for each in gateways.all:
        each.now_s += DAY_S
    here.quotas.translated("acme", "acme/m", "ja", 1)
    there.quotas.translated("acme", "acme/n", "ja", 2)
    gateways.meters[0].loses_answers = False
    for _ in range(3):
        await gateways.tell()
    assert gateways.used() == [(3, 2), (3, 2)]


async def test_waiting_quota_counts_all_gateways() -> None:
    gateways = Gateways(quota=Quota(waiting=3))
    here, there = gateways.all
    await gateways.tell(0, waiting={"acme": 2, "other": 9})
    await gateways.tell(1)
    assert [there.quotas.waiting_elsewhere(tenant) for tenant in ("acme", "other")] == [2, 9]
    there.quotas.check_waiting("acme", 0, 1)
    with pytest.raises(QuotaExceeded, match="There are 3 already: this tenant's quota waiting is 3"):
        there.quotas.check_waiting("acme", 1, 1)
    there.quotas.check_waiting("acme", 5, 0)  # they run at once
    here.quotas.check_waiting("acme", 2, 1)
    gateways.meters[1].loses_answers = True
    await gateways.tell(1)
    assert there.quotas.waiting_elsewhere("acme") == 0, "who knows what waits there now?"


async def test_broken_meter_does_not_stop_the_gateway(caplog: pytest.LogCaptureFixture) -> None:
    gateways = Gateways(1)
    gateways.all[0].quotas.translated("acme", "acme/m", "ja", 10)
    gateways.meters[0].fails = ValueError("a bug")
    await gateways.tell()
    assert "could not be added up" in caplog.text
    gateways.meters[0].fails = None
    await gateways.tell()
    assert gateways.used() == [(10, 1)]


# One of three gateways translates so many characters, or tells.
STEPS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.one_of(st.integers(1, 9), st.sampled_from(["answered", "not asked", "not answered"])),
        st.sampled_from(["ja", "de"]),
    ),
    max_size=40,
)


@given(STEPS)
async def test_whatever_is_lost_on_the_way_everything_counts_once(steps: list[tuple[int, int | str, str]]) -> None:
    gateways = Gateways(3)
    characters, minutes = 0, set()
    for number, step, lang in steps:
        if isinstance(step, str):
            meter = gateways.meters[number]
            meter.loses_answers = step == "not answered"
            meter.fails = LogUnavailable("The test says so.") if step == "not asked" else None
            await gateways.tell(number)
        else:
            gateways.all[number].quotas.translated("acme", "acme/m", lang, step)
            characters += step
            minutes.add(lang)
        assert all(0 <= used <= characters for used, _ in gateways.used())
    for meter in gateways.meters:
        meter.loses_answers, meter.fails = False, None
    for _ in range(3):  # what had no answer, what came since, and what that is at the others
        await gateways.tell()
    assert gateways.used() == [(characters, len(minutes))] * 3
