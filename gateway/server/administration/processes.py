"""The processes of one gateway and its engines: to see them, to let one finish and go, to log more or less.

Knows: what may be asked of them. Must not know: how a process or an engine is started and ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Literal, Protocol

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from gateway.domain.engine import EngineHealth, LaneHealth
from gateway.server.administration.operators import Operators, note
from gateway.server.http.bodies import EngineReadiness
from gateway.server.http.readiness import Whole, engine_readiness
from gateway.server.http.request_bodies import decoded, read_json
from gateway.server.http.responses import Resource, StatusError, json_response


class LanesAnswer(Struct, frozen=True):
    lanes: list[EngineReadiness]


class Worker(Struct, frozen=True, kw_only=True):
    """A process that serves. The numbers are translations."""

    # None: the only process.
    number: int | None
    pid: int
    status: Literal["serving", "starting", "frozen", "draining"]
    running: int
    waiting: int


class WorkersAnswer(Struct, frozen=True):
    workers: list[Worker]


class LogLevel(Struct, frozen=True, forbid_unknown_fields=True):
    level: Literal["debug", "info", "warning", "error"]


_LEVEL = msgspec.json.Decoder(LogLevel)
_BODY_BYTES = 1_024


class Processes(Protocol):
    """One gateway, in one process or several."""

    @property
    def log_level(self) -> str:
        """As in the settings."""

    def health(self) -> EngineHealth:
        """Health of its engine, or of all its engines together."""

    def whole(self) -> Whole: ...

    def workers(self) -> Sequence[Worker]: ...

    def drain_worker(self, number: int) -> bool:
        """Another process takes its place, then it finishes what it has and ends. False: there is none."""

    def drain_lane(self, name: str) -> None:
        """It finishes what it has and goes. Raises `InvalidValue` if it is the only one."""

    def log_from(self, level: str) -> None:
        """Log what is at least so severe, in every process."""


def routes(operators: Operators, processes: Processes) -> list[BaseRoute]:
    """`/admin/lanes`, `/admin/workers`, `/admin/log-level`."""
    of = _Processes(processes)
    only = operators.only
    return [
        Route("/admin/lanes", Resource(GET=only(of.lanes))),
        Route("/admin/lanes/{name}/drain", Resource(POST=only(of.drain_lane))),
        Route("/admin/workers", Resource(GET=only(of.workers))),
        Route("/admin/workers/{number:int}/drain", Resource(POST=only(of.drain_worker))),
        Route("/admin/log-level", Resource(GET=only(of.log_level), PUT=only(of.set_log_level))),
    ]


class _Processes(Struct, frozen=True):
    processes: Processes

    async def lanes(self, _request: Request) -> ASGIApp:
        return json_response(LanesAnswer(self._lanes()))

    def _lanes(self) -> list[EngineReadiness]:
        health, whole = self.processes.health(), self.processes.whole()
        if whole.lanes:
            return [engine_readiness(lane) for lane in whole.lanes]
        only = LaneHealth("default", health.state, health.reason, running=whole.running, waiting=whole.waiting)
        return [engine_readiness(only)]

    async def drain_lane(self, request: Request) -> ASGIApp:
        name = request.path_params["name"]
        if name not in [lane.name for lane in self._lanes()]:
            raise StatusError(HTTPStatus.NOT_FOUND, "There is no lane of this name.")
        self.processes.drain_lane(name)
        note(request, "lane is to be drained", lane=name)
        return json_response(LanesAnswer(self._lanes()), 202)

    async def workers(self, _request: Request) -> ASGIApp:
        return json_response(WorkersAnswer([*self.processes.workers()]))

    async def drain_worker(self, request: Request) -> ASGIApp:
        number = request.path_params["number"]
        if not self.processes.drain_worker(number):
            raise StatusError(HTTPStatus.NOT_FOUND, "There is no worker of this number.")
        note(request, "worker is to be drained", worker=number)
        return json_response(WorkersAnswer([*self.processes.workers()]), 202)

    async def log_level(self, _request: Request) -> ASGIApp:
        return json_response({"level": self.processes.log_level})

    async def set_log_level(self, request: Request) -> ASGIApp:
        level = decoded(_LEVEL, await read_json(request, _BODY_BYTES)).level
        self.processes.log_from(level)
        note(request, "log level changed", level=level)
        return json_response(LogLevel(level))
