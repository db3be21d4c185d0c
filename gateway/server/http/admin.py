"""What operators read: `/metrics`, and beside it `/readyz`.

Knows: Prometheus' text format. Must not know: where it is served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from gateway import metrics
from gateway.domain.ports import Engine
from gateway.exposition import OPEN_METRICS_TYPE, as_open_metrics, as_text, from_open_metrics, has_examples
from gateway.server.guard.hosts import only_for
from gateway.server.http.bodies import Readiness
from gateway.server.http.readiness import readyz
from gateway.server.http.responses import Endpoint, Resource, StatusError
from gateway.tracing import spans

# Gives the metrics as `exposition` says: all, or only the samples with these names.
Metrics = Callable[[Sequence[str]], Awaitable[bytes]]


def routes(read: Metrics) -> list[BaseRoute]:
    """`/metrics`."""

    async def page(request: Request) -> ASGIApp:
        page = await read(request.query_params.getlist("name[]"))
        # Only where there are examples: all else is the same in both formats.
        if has_examples(page) and "application/openmetrics-text" in request.headers.get("accept", ""):
            return Response(as_open_metrics(page), headers={"Content-Type": OPEN_METRICS_TYPE})
        return Response(as_text(page), headers={"Content-Type": metrics.CONTENT_TYPE_LATEST})

    return [Route("/metrics", Resource(GET=page))]


def app(
    host: str,
    allowed_hosts: Collection[str],
    read: Metrics,
    ready: Callable[[], Readiness] | None = None,
    more: Sequence[BaseRoute] = (),
) -> Starlette:
    """What has an address of its own: `/metrics`, `/readyz` of several workers, and `more`, the administration."""
    absent = _absent("There is nothing at this address; the administration is there once admin_keys_file is set.")
    nothing = Resource(GET=absent, POST=absent, PUT=absent, DELETE=absent)
    pages = [*routes(read), *more, Route("/admin/{path:path}", nothing)]
    if ready is not None:
        answer = ready

        async def page(request: Request) -> ASGIApp:
            return readyz(answer(), request)

        pages.append(Route("/readyz", Resource(GET=page)))
    return Starlette(routes=pages, middleware=only_for(host, allowed_hosts))


def routes_elsewhere() -> list[BaseRoute]:
    """`/metrics` where it is not served."""
    detail = "Metrics are served on an address of their own, which the operator sets (admin_port)."
    return [Route("/metrics", Resource(GET=_absent(detail)))]


def _absent(detail: str) -> Endpoint:
    async def absent(_request: Request) -> ASGIApp:
        raise StatusError(HTTPStatus.NOT_FOUND, detail)

    return absent


def own_metrics(engine: Engine | None) -> Metrics:
    """Those of this process and its engine, if it has one."""
    scraping = asyncio.Lock()

    async def read(names: Sequence[str]) -> bytes:
        # In a thread: a thousand series would hold up the event loop, and with it everybody's next token.
        # One at a time: several such threads would slow the event loop down.
        async with scraping:
            own = await asyncio.to_thread(_own, names)
            return own if engine is None else own + await engine.metrics(names)

    return read


def _own(names: Sequence[str]) -> bytes:
    if spans.is_on():
        return from_open_metrics(metrics.exposition_with_examples(names))
    return metrics.exposition(names)
