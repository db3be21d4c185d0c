"""What operators read: `/metrics`.

Knows: Prometheus' text format. Must not know: where it is served.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from gateway import metrics
from gateway.domain.ports import Engine
from gateway.server.http import bodies
from gateway.server.http.responses import Resource, problem_response

__all__ = ["routes", "routes_elsewhere"]


def routes(engine: Engine) -> list[BaseRoute]:
    """`/metrics`: the gateway's and the engine's."""
    return [Route("/metrics", Resource(GET=_Metrics(engine).page))]


def routes_elsewhere() -> list[BaseRoute]:
    """`/metrics` where it is not served."""
    return [Route("/metrics", Resource(GET=_elsewhere))]


class _Metrics:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._scraping = asyncio.Lock()

    async def page(self, request: Request) -> ASGIApp:
        # In a thread: a thousand series would hold up the event loop, and with it everybody's next token.
        # One at a time: several such threads would slow the event loop down.
        names = request.query_params.getlist("name[]")
        async with self._scraping:
            page = await asyncio.to_thread(metrics.exposition, names) + await self._engine.metrics(names)
        return Response(page, headers={"Content-Type": metrics.CONTENT_TYPE_LATEST})


async def _elsewhere(_request: Request) -> ASGIApp:
    detail = "Metrics are served on an address of their own, which the operator sets (admin_port)."
    return problem_response(bodies.status_problem(HTTPStatus.NOT_FOUND, detail))
