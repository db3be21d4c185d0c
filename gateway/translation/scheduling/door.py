"""The scheduler's door: lets newcomers in or says why not, before they are read where that can be told.

Knows: quotas, each line's admission, which lanes have room. Must not know: tickets, what newcomers say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gateway.domain.engine import EngineState
from gateway.domain.errors import Overloaded
from gateway.domain.grants import tenant_of_account
from gateway.translation.scheduling.lanes import Lane, Lanes, Route
from gateway.translation.scheduling.lines import Lines
from gateway.translation.scheduling.quotas import Quotas
from gateway.translation.scheduling.ticket import FINAL


class Door:
    """clock: as the scheduler's. lag_s: how late the event loop is, seconds."""

    def __init__(
        self, lanes: Lanes, lines: Lines, quotas: Quotas, clock: Callable[[], float], lag_s: Callable[[], float]
    ) -> None:
        self._lanes = lanes
        self._lines = lines
        self._quotas = quotas
        self._clock = clock
        self._lag_s = lag_s

    def check(self, account: str, meeting: str, priority: int, counts: Mapping[Route, int]) -> None:
        """Raises `Overloaded` or `QuotaExceeded` unless all may come in. counts: how many for which lanes."""
        tenant = tenant_of_account(account)
        self._quotas.check_day(tenant, meeting)
        rooms = {route: self._room(route) for route in counts}
        if (more := sum(counts.values()) - sum(rooms.values())) > 0:
            self._quotas.check_waiting(tenant, self._lines.ahead_of_account(priority, account), more)
        for route, count in counts.items():
            self._check(route, account, meeting, priority, count, rooms[route])

    def check_promised(self, account: str, meeting: str, priority: int, counts: Mapping[Route, int]) -> None:
        """As `check`, of what was accepted before: it may have to wait for long, and quotas do not matter."""
        for route, count in counts.items():
            self._check(route, account, meeting, priority, count, self._room(route), promised=True)

    def check_unread(self, account: str) -> None:
        """Raises `Overloaded` where no final of an account may come in, whatever it says."""
        refused: Overloaded | None = None
        # Those of lanes, too, for which nobody has asked so far.
        for route in {line.route for line in self._lines} | {lane.route for lane in self._lanes}:
            try:
                return self._check(route, account, "", FINAL, 1, self._room(route))
            except Overloaded as error:
                refused = error
        if refused is not None:
            raise refused

    def free(self, lane: Lane, *, best_effort: bool = False) -> int:
        """How many turns may be given now; see `Lane.free`."""
        return lane.free(quarantined=self._lines.suspects_of(lane.route), best_effort=best_effort)

    def _room(self, route: Route) -> int:
        return sum(map(self.free, self._lanes.some(route)))

    def _check(
        self,
        route: Route,
        account: str,
        meeting: str,
        priority: int,
        count: int,
        free: int,
        *,
        promised: bool = False,
    ) -> None:
        line = self._lines.of(route)
        # While nobody could be served sooner, nobody is sent away for having to wait.
        nobody_served = not free and all(lane.state is not EngineState.READY for lane in self._lanes.some(route))
        line.admission.check(
            *(line.queue, account, meeting, priority, count),
            free=free,
            now_s=self._clock(),
            late_s=self._lag_s(),
            exempt=promised or nobody_served,
        )
