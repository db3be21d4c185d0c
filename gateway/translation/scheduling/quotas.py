"""Holds tenants to their quotas, and counts what they have had translated today.

A check asks no other gateway: what other gateways count is learned every second, with what is told to them.

Knows: quotas by tenant, days and minutes of UTC.
Must not know: sessions, sockets, which engine it is, where totals are kept.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache

from msgspec.structs import replace

from gateway import metrics
from gateway.domain.errors import DailyQuotaExceeded, LogUnavailable
from gateway.domain.ports import Meter
from gateway.domain.quotas import NO_QUOTA, DayOfTenant, Metered, MinuteOfMeeting, Quota, check_quota

_log = logging.getLogger(__name__)

# A tenant's counter. Looking it up takes longer than counting.
_characters = cache(metrics.TENANT_CHARACTERS.labels)

_DAY_S = 86_400
_MINUTE_S = 60

# A client that asks again after this time finds out that the operator has raised a quota.
_MOST_RETRY_S = 60.0


class Quotas:
    """Every tenant's quota, and what it uses of those that every gateway counts for all."""

    def __init__(
        self,
        # Tenant → what it may use.
        quota_of: Callable[[str], Quota] = lambda _: NO_QUOTA,
        *,
        # Seconds since 1970.
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.quota_of = quota_of
        self._wall_clock = wall_clock
        # Tenant → what is counted at all gateways; maybe of yesterday.
        self._totals: dict[str, DayOfTenant] = {}
        self._batch = _Batch(1, self._day())
        # What was told, and may be in the totals or not.
        self._unanswered: _Batch | None = None
        self._telling = asyncio.Lock()
        self._waiting_elsewhere: Mapping[str, int] = {}
        # Meetings and languages that this minute is counted for already.
        self._minute = 0
        self._counted: set[tuple[str, str]] = set()

    # ------------------------------------------------------------ checks

    def check_day(self, tenant: str, meeting: str) -> None:
        """Raises `DailyQuotaExceeded` if a tenant's day is used up. meeting: empty for a call over HTTP."""
        quota = self.quota_of(tenant)
        if quota.characters is None and quota.minutes is None:
            return
        today = self.today(tenant)
        used = [("characters", today.characters, quota.characters)]
        if meeting:
            used.append(("minutes", today.minutes, quota.minutes))
        for name, count, most in used:
            if most is not None and count >= most:
                left_s = _DAY_S - self._wall_clock() % _DAY_S
                raise DailyQuotaExceeded(
                    f"Nothing more is translated before 00:00 UTC: this tenant's quota {name} is {most}.",
                    retry_after_ms=max(1, round(min(_MOST_RETRY_S, left_s) * 1_000)),
                )

    def check(self, tenant: str, name: str, count: int, more: int = 1) -> None:
        """Raises `QuotaExceeded` if `count` of something leave no room for `more`. name: of the quota."""
        check_quota(name, getattr(self.quota_of(tenant), name), count, more)

    def check_waiting(self, tenant: str, here: int, more: int) -> None:
        """Raises `QuotaExceeded` if `more` cannot wait, besides those that wait here and at other gateways."""
        if more > 0:
            self.check(tenant, "waiting", here + self.waiting_elsewhere(tenant), more)

    # ------------------------------------------------------------ usage

    def translated(self, tenant: str, meeting: str, lang: str, characters: int) -> None:
        """A text is translated. A call over HTTP takes no minutes."""
        if self._batch.day != (day := self._day()):
            # What is left of yesterday does not matter.
            self._batch = _Batch(self._batch.number, day)
        self._batch.characters[tenant] += characters
        _characters(tenant).inc(characters)
        minute = int(self._wall_clock() // _MINUTE_S)
        if minute != self._minute:
            self._minute, self._counted = minute, set()
        if meeting and (meeting, lang) not in self._counted:
            self._counted.add((meeting, lang))
            self._batch.minutes[tenant] += 1
            self._batch.minutes_of_meetings.append(MinuteOfMeeting(tenant, meeting, lang, minute))
            metrics.TENANT_TRANSLATED_S.labels(tenant).inc(_MINUTE_S)
            metrics.TENANT_MINUTES.labels(tenant).inc()

    def today(self, tenant: str) -> DayOfTenant:
        """What the tenant has had translated today; at other gateways as far as they have told."""
        day = self._day()
        today = self._totals.get(tenant)
        if today is None or today.day != day:
            today = DayOfTenant(tenant=tenant, day=day)
        for batch in self._not_in_totals():
            today = replace(
                today,
                characters=today.characters + batch.characters[tenant],
                minutes=today.minutes + batch.minutes[tenant],
            )
        return today

    def tenants(self) -> set[str]:
        day = self._day()
        self._totals = {tenant: total for tenant, total in self._totals.items() if total.day == day}
        return {*self._totals, *(tenant for batch in self._not_in_totals() for tenant in batch.characters)}

    def waiting_elsewhere(self, tenant: str) -> int:
        """Translations of the tenant that wait at other gateways, as far as they have told."""
        return self._waiting_elsewhere.get(tenant, 0)

    async def report_usage(self, meter: Meter, waiting: Mapping[str, int]) -> None:
        """Tell the others what was translated here, and learn what they told; to be called every second.

        waiting: tenant → its translations that wait here. Without an answer the same is told the next time. Never
        raises.
        """
        async with self._telling:
            if self._unanswered is None:
                self._unanswered, self._batch = self._batch, _Batch(self._batch.number + 1, self._day())
            try:
                totals = await meter.record(self._unanswered.metered(waiting))
            except LogUnavailable:
                self._waiting_elsewhere = {}
                return
            except Exception:
                _log.exception("what tenants use could not be added up")
                return
            self._unanswered = None
            day = self._day()
            self._totals |= {each.tenant: each for each in totals.days if each.day == day}
            self._waiting_elsewhere = totals.waiting_elsewhere

    def _day(self) -> int:
        return int(self._wall_clock() // _DAY_S)

    def _not_in_totals(self) -> list[_Batch]:
        """What was translated here today and is not known to be in the totals."""
        day = self._day()
        return [batch for batch in (self._unanswered, self._batch) if batch is not None and batch.day == day]


class _Batch:
    """What was translated here between two times at which it is told."""

    def __init__(self, number: int, day: int) -> None:
        self.number = number
        self.day = day
        # By tenant.
        self.characters: Counter[str] = Counter()
        self.minutes: Counter[str] = Counter()
        self.minutes_of_meetings: list[MinuteOfMeeting] = []

    def metered(self, waiting: Mapping[str, int]) -> Metered:
        return Metered(
            number=self.number,
            day=self.day,
            characters=self.characters,
            minutes=tuple(self.minutes_of_meetings),
            waiting=waiting,
        )
