"""The HTTP side: health, readiness, languages, metrics.

Knows: HTTP requests and responses. Must not know: sessions, sockets, which engine it is.
"""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway import metrics
from gateway.errors import GatewayError
from gateway.events import EngineState
from gateway.languages import language_name
from gateway.messages import Limits
from gateway.ports import Engine
from gateway.scheduler import Scheduler

__all__ = ["routes"]


def routes(*, scheduler: Scheduler, engine: Engine, limits: Limits, batch_texts: int = 64) -> list[BaseRoute]:
    """Every HTTP route of the gateway."""

    async def healthz(_request: Request) -> Response:
        return _json({"status": "alive"})

    async def readyz(_request: Request) -> Response:
        health = engine.health()
        if scheduler.draining:
            return _json({"status": "draining", "reason": "the gateway is shutting down"}, 503)
        if health.state is not EngineState.READY:
            return _json({"status": health.state.value, "reason": health.reason}, 503)
        return _json({"status": "ready"})

    async def languages(_request: Request) -> Response:
        try:
            profile = engine.profile()
        except GatewayError as error:
            return _json({"title": error.message, "code": error.code}, error.http_status)
        return _json(
            {
                "languages": [{"tag": tag, "name": language_name(tag)} for tag in profile.languages],
                "options": sorted(profile.options),
                "model": profile.model,
                "family": profile.family,
            }
        )

    async def exposition(_request: Request) -> Response:
        return Response(metrics.exposition(), media_type=metrics.CONTENT_TYPE_LATEST)

    return [
        Route("/healthz", healthz),
        Route("/readyz", readyz),
        Route("/metrics", exposition),
        Route("/v1/languages", languages),
    ]


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")
