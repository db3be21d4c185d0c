"""`python -m loadtest.baselines PLAN.json PORT PID`: one baseline, until a signal or the end of process PID.

It takes a text by HTTP and answers with its translation once all of it is there. Knows: addresses, status codes,
what is counted. Must not know: processes, engines.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import uvicorn
import uvloop
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.domain.errors import StartupError
from gateway.server.uvicorn_server import DrainingServer, listen
from loadtest.baselines.workers import Job, Plan, Refused, Workers

# For accepted requests, after a signal.
_DRAIN_S = 10


def main(file: Path, port: int, parent: int) -> int:
    """Serve; the exit status of the process."""
    try:
        sock = listen("127.0.0.1", port)
    except StartupError as error:
        sys.stderr.write(f"{error.message}\n")
        return 1
    broken = False

    def leave() -> None:
        nonlocal broken
        broken = True
        sys.stderr.write(f"{workers.reason}.\n")
        server.stop()

    with sock, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        workers = Workers(msgspec.json.decode(file.read_bytes(), type=Plan), on_broken=leave)
        config = uvicorn.Config(
            _application(workers),
            http="httptools",
            ws="none",
            access_log=False,
            log_level="warning",
            timeout_graceful_shutdown=_DRAIN_S,
        )
        server = DrainingServer(config, workers.drain)
        runner.get_loop().add_reader(os.pidfd_open(parent), server.drain_and_stop)
        runner.run(server.serve(sockets=[sock]))
    return 1 if broken else 0


def _application(workers: Workers) -> Starlette:
    """`POST /translate`, `GET /readyz`, `GET /metrics`; the workers live as long as it does."""
    registry = CollectorRegistry()

    def gauge(name: str, help: str, value: Callable[[], float]) -> None:
        Gauge(name, help, registry=registry).set_function(value)

    def counter(name: str, help: str) -> Counter:
        return Counter(name, help, registry=registry)

    gauge("baseline_running", "Texts with workers.", lambda: workers.running)
    gauge("baseline_waiting", "Texts in the queue.", lambda: workers.waiting)
    tokens = counter("baseline_tokens", "Tokens generated.")
    queues_s = counter("baseline_queue_seconds", "Time that translated texts spent in queues, added up.")
    responses_s = counter("baseline_response_seconds", "From request to answer of translated texts, added up.")

    async def translate(request: Request) -> Response:
        began_s = time.monotonic()
        try:
            asked = msgspec.json.decode(await request.body(), type=Job)
        except msgspec.DecodeError as error:
            return _failure(f"The request is none: {error}.", 400)
        try:
            timed = await workers.translate(asked)
        except Refused as error:
            return _failure(str(error), 503)
        made = timed.translation
        if made.failed is not None:
            return _failure(made.failed, 500)
        tokens.inc(made.tokens)
        queues_s.inc(timed.queue_s)
        responses_s.inc(time.monotonic() - began_s)
        return _json({"text": made.text, "tokens": made.tokens})

    async def readyz(_request: Request) -> Response:
        return _json({"reason": workers.reason}, 503 if workers.reason else 200)

    async def metrics(_request: Request) -> Response:
        return Response(generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        workers.start()
        try:
            yield
        finally:
            await workers.stop()

    routes = [
        Route("/translate", translate, methods=["POST"]),
        Route("/readyz", readyz),
        Route("/metrics", metrics),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


def _json(body: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(body), status, media_type="application/json")


def _failure(sentence: str, status: int) -> Response:
    return _json({"error": sentence}, status)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
