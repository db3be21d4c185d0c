"""The administration of a gateway that is one process: the application at its admin address.

Knows: who needs whom. Must not know: what any of them does.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence

from starlette.applications import Starlette

from gateway.app import Gateway
from gateway.config import LaneSettings
from gateway.domain.engine import EngineHealth
from gateway.domain.errors import InvalidValue, StartupError
from gateway.keys import operators_of
from gateway.runtime import log_from, log_level
from gateway.server import page
from gateway.server.administration import meetings, processes, webhooks
from gateway.server.administration.processes import Worker
from gateway.server.http import admin
from gateway.server.http.readiness import Whole

_log = logging.getLogger(__name__)


def admin_app(gateway: Gateway) -> Starlette:
    """What is served at the admin address. Raises `StartupError` if the operators' keys cannot be used."""
    settings = gateway.settings
    more = []
    if (allowed := operators_of(settings)) is not None:
        more += meetings.routes(allowed, gateway.log, gateway.session_store, gateway.sessions.revoke)
        more += processes.routes(allowed, _OneProcess(gateway))
        more += webhooks.routes(allowed, lambda: settings.webhooks, gateway.store.webhooks, gateway.webhooks.ping)
        more += page.admin_routes()
    read = admin.own_metrics(gateway.engine)
    return admin.app(settings.admin_host, settings.allowed_hosts, read, more=more)


class _OneProcess:
    """`Processes` where there is one."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        # Tasks of lanes that are drained, kept until the lanes are gone.
        self._draining: set[asyncio.Task[None]] = set()

    @property
    def log_level(self) -> str:
        return log_level()

    def health(self) -> EngineHealth:
        return self._gateway.engine.health()

    def whole(self) -> Whole:
        return self._gateway.whole()

    def workers(self) -> Sequence[Worker]:
        whole = self.whole()
        return [
            Worker(
                number=None,
                pid=os.getpid(),
                status="draining" if whole.draining else "serving",
                running=whole.running,
                waiting=whole.waiting,
            )
        ]

    def drain_worker(self, number: int) -> bool:
        raise InvalidValue("This gateway is one process, without workers; SIGTERM drains and ends it.")

    def drain_lane(self, name: str) -> None:
        check_others(self._gateway.lanes, name)

        async def drain() -> None:
            try:
                # Reads the lanes when its turn comes: others may have gone, or come, by then.
                await self._gateway.change_engines(lambda lanes: lanes_without(lanes, name))
            except StartupError as error:
                _log.error("lane %s stays: %s", name, error.message)

        self._draining.add(task := asyncio.create_task(drain()))
        task.add_done_callback(self._draining.discard)

    def log_from(self, level: str) -> None:
        log_from(level)


def lanes_without(lanes: Sequence[LaneSettings], name: str) -> tuple[LaneSettings, ...]:
    """All but one. Raises `StartupError` where no other is left."""
    if left := tuple(lane for lane in lanes if lane.name != name):
        return left
    raise StartupError(f"{name} is the only lane; without it nothing would be translated.")


def check_others(lanes: Sequence[LaneSettings], name: str) -> None:
    """Raises `InvalidValue`, for the client, where no other lane is left."""
    try:
        lanes_without(lanes, name)
    except StartupError as error:
        raise InvalidValue(error.message) from None
