"""The administration of a gateway with workers: its parent asks their store, and sees to the workers.

Knows: the parent, the store that the workers share. Must not know: how a worker is replaced, what is served where.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace
from starlette.routing import BaseRoute

from gateway.administration import check_others, lanes_without
from gateway.config import Settings
from gateway.domain.engine import EngineHealth
from gateway.domain.grants import Revocation
from gateway.runtime import log_from, log_level
from gateway.server import page
from gateway.server.administration import meetings, processes, webhooks
from gateway.server.administration.operators import Operators
from gateway.server.administration.processes import Worker
from gateway.server.http.readiness import Whole
from gateway.store import Store
from gateway.webhooks.deliveries import Deliveries
from gateway.workers.parent import Parent
from gateway.workers.process import WorkerProcess


def routes(operators: Operators, store: Store, parent: Parent) -> list[BaseRoute]:
    """store: that of the workers, which is to be reached before anything is asked for."""

    async def revoke(revocation: Revocation) -> int:
        meant = await store.session_store.count_revoked_by(revocation, ())
        await store.session_store.revoke(revocation)  # the workers are told by the store
        return meant

    ping = Deliveries(parent.settings.webhooks, store.webhooks).ping
    return [
        *meetings.routes(operators, store.log, store.session_store, revoke),
        *processes.routes(operators, _Workers(parent)),
        *webhooks.routes(operators, lambda: parent.settings.webhooks, store.webhooks, ping),
        *page.admin_routes(),
    ]


class _Workers:
    """`Processes` of a parent."""

    def __init__(self, parent: Parent) -> None:
        self._parent = parent

    @property
    def log_level(self) -> str:
        return log_level()

    def health(self) -> EngineHealth:
        return self._parent.engine.health()

    def whole(self) -> Whole:
        return self._parent.whole()

    def workers(self) -> Sequence[Worker]:
        return [_worker(each) for each in self._parent.workers()]

    def drain_worker(self, number: int) -> bool:
        is_there = any(each.number == number for each in self._parent.workers())
        if is_there:
            self._parent.renew(number)
        return is_there

    def drain_lane(self, name: str) -> None:
        check_others(self._parent.settings.engines, name)

        def load() -> Settings:
            # Read when its turn comes: other lanes may have come or gone by then.
            settings = self._parent.settings
            return replace(settings, engines=lanes_without(settings.engines, name))

        self._parent.reload(load)

    def log_from(self, level: str) -> None:
        log_from(level)
        self._parent.log_from(level)


def _worker(process: WorkerProcess) -> Worker:
    absent: Literal["frozen", "starting"] = "frozen" if process.is_shut else "starting"
    return Worker(
        number=process.number,
        pid=process.pid,
        status="draining" if process.draining else "serving" if process.available else absent,
        running=process.report.running,
        waiting=process.report.waiting,
    )
