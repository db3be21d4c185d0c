"""What tenants have had translated today, in this process's memory. It ends with the process unless handed over.

Knows: today's totals of every tenant, which minutes are counted, what waits at each gateway.
Must not know: quotas, files. Nothing here awaits, so every operation is atomic.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from gateway.domain.ports import LEASE_S
from gateway.domain.quotas import DayOfTenant, Metered, MinuteOfMeeting, Totals

# For how long minutes are known to be counted.
_REMEMBERED_MINUTES = 10


class MemoryMeterStore:
    """What the gateways of one process share. earlier: what another process counted."""

    def __init__(
        self, earlier: Iterable[DayOfTenant] = (), *, wall_clock: Callable[[], float] = time.time
    ) -> None:
        # Unix time in seconds.
        self.wall_clock = wall_clock
        # Day → tenant → what it has had translated.
        self.days: dict[int, dict[str, DayOfTenant]] = {}
        for each in earlier:
            self.days.setdefault(each.day, {})[each.tenant] = each
        # Minute → those that are counted.
        self.minutes: dict[int, set[MinuteOfMeeting]] = {}
        # Gateway → when it was last heard of, and what waits there.
        self.waiting: dict[MemoryMeter, tuple[float, Mapping[str, int]]] = {}

    def of_day(self, day: int) -> dict[str, DayOfTenant]:
        """The totals of a day. Those before the one before it are forgotten."""
        self.days = {each: of_day for each, of_day in self.days.items() if each >= day - 1}
        return self.days.setdefault(day, {})

    def add(self, metered: Metered) -> None:
        minutes: Counter[str] = Counter()
        for each in metered.minutes:
            counted = self.minutes.setdefault(each.minute, set())
            minutes[each.tenant] += each not in counted
            counted.add(each)
        newest = max(self.minutes, default=0)
        self.minutes = {
            minute: counted for minute, counted in self.minutes.items() if minute > newest - _REMEMBERED_MINUTES
        }
        of_day = self.of_day(metered.day)
        for tenant in {*metered.characters, *minutes}:
            before = of_day.get(tenant, DayOfTenant(tenant=tenant, day=metered.day))
            of_day[tenant] = DayOfTenant(
                tenant=tenant,
                day=metered.day,
                characters=before.characters + metered.characters.get(tenant, 0),
                minutes=before.minutes + minutes[tenant],
            )


class MemoryMeter:
    """One gateway's access to a store."""

    def __init__(self, store: MemoryMeterStore | None = None) -> None:
        self._store = store or MemoryMeterStore()
        # Number of the newest that is counted.
        self._told = 0

    async def record(self, metered: Metered) -> Totals:
        store, now_s = self._store, self._store.wall_clock()
        if metered.number > self._told:
            self._told = metered.number
            store.add(metered)
        store.waiting[self] = (now_s, metered.waiting)
        elsewhere: Counter[str] = Counter()
        for gateway, (heard_s, waiting) in list(store.waiting.items()):
            if heard_s + LEASE_S <= now_s:
                del store.waiting[gateway]
            elif gateway is not self:
                elsewhere.update(waiting)
        return Totals(tuple(store.of_day(metered.day).values()), elsewhere)

    def kept_days(self) -> tuple[DayOfTenant, ...]:
        """For the next process."""
        return tuple(each for of_day in self._store.days.values() for each in of_day.values())
