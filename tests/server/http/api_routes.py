"""The HTTP routes of a gateway without a socket."""

from __future__ import annotations

from starlette.routing import BaseRoute

from gateway.domain.ports import Engine, EventLog
from gateway.engines.simulated import SimulatedEngine
from gateway.protocol.limits import Limits
from gateway.server.guard.audit import Audit
from gateway.server.guard.identity import Identity
from gateway.server.http import api
from gateway.server.http.readiness import Whole
from gateway.server.translate.call import Translator
from gateway.stores.memory_log import MemoryEventLog, MemoryStore
from gateway.stores.memory_session_store import MemorySessions, MemorySessionStore
from gateway.translation.scheduling.scheduler import Scheduler
from tests.usual import usual


def api_routes(
    engine: Engine | None = None, log: EventLog | None = None, limits: Limits | None = None
) -> list[BaseRoute]:
    """Those of `api.routes`, over a simulated engine that is not started, where none is given."""
    engine = engine or SimulatedEngine()
    calls = usual(
        api.Api,
        translator=usual(Translator, usual(Scheduler, engine, max_waiting=1), engine, limits or Limits()),
        identity=Identity(),
        audit=Audit(),
        whole=lambda: Whole(0, 0),
    )
    session_store = MemorySessionStore(usual(MemorySessions))
    return api.routes(calls, log or MemoryEventLog(usual(MemoryStore)), session_store)
