"""Holds tenants to their quotas, and counts what they have had translated today.

Knows: quotas by tenant, days and minutes of UTC. Must not know: sessions, sockets, which engine it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from gateway import metrics
from gateway.domain.errors import DailyQuotaExceeded
from gateway.domain.quotas import NO_QUOTA, DayOfTenant, Quota, check_quota

__all__ = ["Quotas"]

_DAY_S = 86_400
_MINUTE_S = 60

# A client that asks again after this time finds out that the operator has raised a quota.
_MOST_RETRY_S = 60.0


class Quotas:
    """Every tenant's quota, and its day."""

    def __init__(
        self,
        # Tenant → what it may use.
        of: Callable[[str], Quota] = lambda _: NO_QUOTA,
        *,
        # Seconds since 1970.
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.of = of
        self._wall_clock = wall_clock
        self._days: dict[str, DayOfTenant] = {}
        # Meetings and languages that this minute is counted for already.
        self._minute = 0
        self._counted: set[tuple[str, str]] = set()

    # ------------------------------------------------------------ checks

    def check_day(self, tenant: str, meeting: str) -> None:
        """Whether more of a meeting may be translated today. meeting: empty for a call over HTTP, as below.

        Raises `DailyQuotaExceeded`.
        """
        quota, today = self.of(tenant), self.today(tenant)
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
        check_quota(name, getattr(self.of(tenant), name), count, more)

    # ------------------------------------------------------------ usage

    def translated(self, tenant: str, meeting: str, lang: str, characters: int) -> None:
        """A text is translated. A call over HTTP takes no minutes."""
        today = self.today(tenant)
        today.characters += characters
        metrics.TENANT_CHARACTERS.labels(tenant).inc(characters)
        minute = int(self._wall_clock() // _MINUTE_S)
        if minute != self._minute:
            self._minute, self._counted = minute, set()
        if meeting and (meeting, lang) not in self._counted:
            self._counted.add((meeting, lang))
            today.minutes += 1
            metrics.TENANT_MINUTES.labels(tenant).inc()

    def today(self, tenant: str) -> DayOfTenant:
        """What the tenant has had translated today; it goes on counting."""
        day = int(self._wall_clock() // _DAY_S)
        today = self._days.get(tenant)
        if today is None or today.day != day:
            today = self._days[tenant] = DayOfTenant(tenant=tenant, day=day)
        return today

    def tenants(self) -> set[str]:
        """Those that have had something translated today."""
        day = int(self._wall_clock() // _DAY_S)
        self._days = {tenant: today for tenant, today in self._days.items() if today.day == day}
        return set(self._days)

    def kept(self) -> tuple[DayOfTenant, ...]:
        """For another process."""
        return tuple(self._days.values())

    def restore(self, days: tuple[DayOfTenant, ...]) -> None:
        """What another process counted; it is forgotten if its day is over."""
        self._days |= {each.tenant: each for each in days}
