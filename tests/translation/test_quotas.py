"""What a tenant has had translated today, and what it is refused for."""

from __future__ import annotations

import pytest

from gateway.domain.errors import DailyQuotaExceeded, QuotaExceeded
from gateway.domain.quotas import NO_QUOTA, Quota
from gateway.translation.quotas import Quotas

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
def test_nothing_more_is_taken_on_once_a_day_is_used_up_until_the_next(name: str) -> None:
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


def test_a_client_asks_again_within_a_minute_because_a_quota_may_be_raised() -> None:
    tenants = Tenants(Quota(characters=0))
    with pytest.raises(QuotaExceeded) as refused:
        tenants.quotas.check_day("acme", "acme/m")
    assert refused.value.retry_after_ms == 60_000
    tenants.quota = Quota(characters=1)
    tenants.quotas.check_day("acme", "acme/m")


def test_a_call_over_http_takes_no_minutes_and_needs_none() -> None:
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


def test_a_day_goes_on_in_another_process_and_ends_there() -> None:
    earlier, later = Tenants(), Tenants(Quota(characters=10))
    earlier.quotas.translated("acme", "acme/m", "ja", 10)
    later.quotas.restore(earlier.quotas.kept())
    assert later.used() == (10, 1)
    assert later.quotas.tenants() == {"acme"}
    with pytest.raises(QuotaExceeded):
        later.quotas.check_day("acme", "acme/m")
    later.now_s += DAY_S
    later.quotas.check_day("acme", "acme/m")
    assert later.quotas.tenants() == {"acme"}, "it is asked about"
    later.now_s += DAY_S
    assert later.quotas.tenants() == set()
