"""The HTTP front of a baseline: takes a text, answers with its translation once all of it is there.

Knows: addresses, status codes, what is counted. Must not know: queues, processes, engines.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator

import msgspec
from msgspec import Struct
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from loadtest.baselines.workers import Refused, State, Workers

__all__ = ["application"]


class _Asked(Struct, frozen=True):
    """The body of a request."""

    text: str
    source: str
    target: str


class _Told(Struct, frozen=True):
    """The body of an answer. Seconds: first_token_s, from the request to the model's first token, null where the
    engine does not tell; queue_s, in both queues; total_s, from the request to the answer."""

    text: str
    tokens: int
    first_token_s: float | None
    queue_s: float
    total_s: float


class _Failure(Struct, frozen=True):
    error: str


_asked = msgspec.json.Decoder(_Asked)


def application(workers: Workers) -> Starlette:
    """`POST /translate`, `GET /readyz`, `GET /metrics`; the workers live as long as it does."""
    counts = _Counts(workers)

    async def translate(request: Request) -> Response:
        began_s = time.monotonic()
        try:
            asked = _asked.decode(await request.body())
        except msgspec.DecodeError as error:
            return _json(_Failure(f"The request is none: {error}."), 400)
        try:
            timed = await workers.translate(asked.text, asked.source, asked.target)
        except Refused as error:
            counts.requests.labels("refused").inc()
            return _json(_Failure(str(error)), 503)
        made, total_s = timed.translation, time.monotonic() - began_s
        if made.failed is not None:
            counts.requests.labels("failed").inc()
            return _json(_Failure(made.failed), 500)
        counts.requests.labels("translated").inc()
        counts.tokens.inc(made.tokens)
        counts.queue_s.inc(timed.queue_s)
        counts.response_s.inc(total_s)
        first_token_s = None if made.first_token_s is None else made.first_token_s - began_s
        return _json(_Told(made.text, made.tokens, first_token_s, timed.queue_s, total_s))

    async def readyz(_request: Request) -> Response:
        ready = workers.state is State.READY
        return _json(
            {"status": workers.state.value, "reason": "" if ready else workers.reason}, 200 if ready else 503
        )

    async def metrics(_request: Request) -> Response:
        return Response(generate_latest(counts.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        workers.start()
        try:
            yield
        finally:
            await workers.stop()

    return Starlette(
        routes=[
            Route("/translate", translate, methods=["POST"]),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
        ],
        lifespan=lifespan,
    )


class _Counts:
    """What `/metrics` shows; times only of what was translated."""

    def __init__(self, workers: Workers) -> None:
        self.registry = CollectorRegistry()
        running = Gauge("baseline_running", "Texts with workers.", registry=self.registry)
        running.set_function(lambda: workers.running)
        waiting = Gauge("baseline_waiting", "Texts in the queue.", registry=self.registry)
        waiting.set_function(lambda: workers.waiting)
        self.tokens = Counter("baseline_tokens", "Tokens generated.", registry=self.registry)
        self.requests = Counter(
            "baseline_requests", "Requests answered, by what became of them.", ["outcome"], registry=self.registry
        )
        self.queue_s = Counter("baseline_queue_seconds", "Time in queues, all added up.", registry=self.registry)
        self.response_s = Counter(
            "baseline_response_seconds", "From request to answer, all added up.", registry=self.registry
        )


def _json(body: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(body), status, media_type="application/json")
