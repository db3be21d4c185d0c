"""The HTTP side: translation in one call, languages, health, readiness, metrics, machine-readable docs.

Knows: requests, responses, and when a client has gone; generates the texts of one call through the scheduler.
Must not know: rules of the bodies (`http_messages`), the event stream format (`sse`), which engine it is.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway import http_messages, metrics, schemas
from gateway.errors import EngineFailed, GatewayError, MessageTooLarge, error_classes
from gateway.events import EngineState
from gateway.http_messages import (
    BatchAnswer,
    DoneEvent,
    FailedEvent,
    FinalEvent,
    Health,
    Language,
    Languages,
    Problem,
    Readiness,
    TextAnswer,
    Translation,
    TranslationWarning,
)
from gateway.languages import language_name
from gateway.messages import Limits
from gateway.ports import Engine
from gateway.publisher import timings
from gateway.scheduler import Scheduler, Ticket
from gateway.sse import EventStream

__all__ = ["BODY_BYTES", "routes"]

_log = logging.getLogger(__name__)

BODY_BYTES = 1_048_576

Endpoint = Callable[[Request], Awaitable[ASGIApp]]


def routes(*, scheduler: Scheduler, engine: Engine, limits: Limits, batch_texts: int = 64) -> list[BaseRoute]:
    """Every HTTP route of the gateway. `batch_texts`: most texts of one call."""
    api = _Api(scheduler, engine, limits, batch_texts)
    return [
        Route("/v1/translate", _Path(POST=api.translate)),
        Route("/v1/languages", _Path(GET=api.languages)),
        Route("/v1/stream", _Path(GET=api.stream)),
        Route("/v1/{rest:path}", _Path()),
        Route("/errors/{code}", _Path(GET=api.error)),
        Route("/healthz", _Path(GET=api.healthz)),
        Route("/readyz", _Path(GET=api.readyz)),
        Route("/metrics", _Path(GET=api.metrics)),
        Route("/openapi.json", _Path(GET=api.openapi)),
        Route("/asyncapi.json", _Path(GET=api.asyncapi)),
    ]


# ---------------------------------------------------------------- endpoints


class _Api:
    """One method per endpoint; a `GatewayError` raised by one becomes a problem."""

    def __init__(self, scheduler: Scheduler, engine: Engine, limits: Limits, batch_texts: int) -> None:
        self._scheduler = scheduler
        self._engine = engine
        self._limits = limits
        self._batch_texts = batch_texts

    async def translate(self, request: Request) -> ASGIApp:
        if (reason := _unusable(request)) is not None:
            return _problem(http_messages.status_problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, reason))
        body = http_messages.decode_body(await _read(request))
        requests, warnings = http_messages.plan(
            body,
            id_prefix=f"http-{secrets.token_hex(8)}",
            profile=self._engine.profile(),
            limits=self._limits,
            batch_texts=self._batch_texts,
        )
        host = request.client.host if request.client is not None else "local"
        # From here to `_Call.run`, which gives the places back, nothing is awaited.
        tickets = self._scheduler.admit(f"http:{host}", requests)
        is_batch = isinstance(body.texts, list)
        if _prefers_events(request.headers.get("accept", "")):
            return _StreamedCall(tickets, warnings)
        return _WholeCall(tickets, warnings, is_batch=is_batch)

    async def languages(self, _request: Request) -> ASGIApp:
        profile = self._engine.profile()
        known = [Language(tag, language_name(tag)) for tag in profile.languages]
        return _json(Languages(known, sorted(profile.options), profile.model, profile.family))

    async def stream(self, _request: Request) -> ASGIApp:
        detail = "This address is a WebSocket; see /asyncapi.json."
        return _problem(
            http_messages.status_problem(HTTPStatus.UPGRADE_REQUIRED, detail), {"Upgrade": "websocket"}
        )

    async def error(self, request: Request) -> ASGIApp:
        code = request.path_params["code"]
        # Where a parent and its child share a code, the child says what it means.
        for cls in reversed(error_classes()):
            if cls.code == code:
                return _json(http_messages.error_meaning(cls))
        return _problem(http_messages.status_problem(HTTPStatus.NOT_FOUND, "There is no such error code."))

    async def healthz(self, _request: Request) -> ASGIApp:
        return _json(Health("alive"))

    async def readyz(self, _request: Request) -> ASGIApp:
        readiness = self._readiness()
        return _json(readiness, 200 if readiness.status == "ready" else 503)

    async def metrics(self, _request: Request) -> ASGIApp:
        return Response(metrics.exposition(), headers={"Content-Type": metrics.CONTENT_TYPE_LATEST})

    async def openapi(self, _request: Request) -> ASGIApp:
        limits, batch_texts = self._limits, self._batch_texts
        return _json(schemas.openapi(limits=limits, batch_texts=batch_texts, body_bytes=BODY_BYTES))

    async def asyncapi(self, _request: Request) -> ASGIApp:
        return _json(schemas.asyncapi())

    def _readiness(self) -> Readiness:
        health = self._engine.health()
        load = (self._scheduler.running, self._scheduler.waiting)
        match health.state:
            case EngineState.FAILED:
                return Readiness("failed", health.reason, *load)
            case _ if self._scheduler.draining or health.state is EngineState.STOPPED:
                return Readiness("draining", "The gateway is shutting down.", *load)
            case EngineState.STARTING:
                return Readiness("starting", health.reason, *load)
            case _:
                return Readiness("ready", "", *load)


class _Path:
    """One path: an endpoint per method, and problems for whatever else comes to it. HEAD goes with GET."""

    def __init__(self, **endpoints: Endpoint) -> None:
        self._endpoints = endpoints
        if "GET" in endpoints:
            self._endpoints["HEAD"] = endpoints["GET"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            answer = await self._answer(request)
            await answer(scope, receive, send)
        except ClientDisconnect:
            return
        except GatewayError as error:
            await _refusal(error)(scope, receive, send)

    async def _answer(self, request: Request) -> ASGIApp:
        if not self._endpoints:
            detail = "There is nothing at this address; see /openapi.json."
            return _problem(http_messages.status_problem(HTTPStatus.NOT_FOUND, detail))
        endpoint = self._endpoints.get(request.method)
        if endpoint is None:
            allowed = ", ".join(sorted(self._endpoints))
            detail = f"{request.method} is not allowed here; {allowed} is."
            return _problem(
                http_messages.status_problem(HTTPStatus.METHOD_NOT_ALLOWED, detail), {"Allow": allowed}
            )
        try:
            return await endpoint(request)
        except (GatewayError, ClientDisconnect):
            raise
        except Exception:
            _log.exception("%s %s failed", request.method, request.url.path)
            raise GatewayError("The gateway failed; this is a bug of the gateway.") from None


# ---------------------------------------------------------------- one call of POST /v1/translate


class _Call(ABC):
    """The admitted texts of one call: generated together, for as long as the client is there."""

    def __init__(self, tickets: list[Ticket], warnings: list[TranslationWarning]) -> None:
        self.tickets = tickets
        self.warnings = warnings
        self.source_lang = tickets[0].request.source
        self.target_lang = tickets[0].request.target
        self._outcomes = ["cancelled"] * len(tickets)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.run(scope, receive, send)
        finally:
            # Here and not in the texts' tasks: one that is cancelled before its first step runs no code.
            for ticket, outcome in zip(self.tickets, self._outcomes, strict=True):
                ticket.withdraw()
                metrics.TRANSLATIONS.labels(outcome, self.target_lang).inc()

    @abstractmethod
    async def run(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Generate every text and answer."""

    async def translate(self, index: int, show: Callable[[int, str], None] | None = None) -> Translation:
        """Generate one text. Raises `GatewayError` and nothing else."""
        ticket = self.tickets[index]
        try:
            generated = await ticket.collect(lambda fresh: show(index, fresh) if show is not None else None)
        except GatewayError as error:
            self._outcomes[index] = error.code
            raise
        self._outcomes[index] = "final"
        return Translation(generated.text, ticket.tokens, generated.truncated, timings(ticket))


class _WholeCall(_Call):
    """Answered when every text is translated; the first failure is the answer, and stops the others."""

    def __init__(self, tickets: list[Ticket], warnings: list[TranslationWarning], *, is_batch: bool) -> None:
        super().__init__(tickets, warnings)
        self._is_batch = is_batch

    async def run(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with _while_connected(receive), asyncio.TaskGroup() as texts:
            tasks = [texts.create_task(self._named(index)) for index in range(len(self.tickets))]
        translations = [task.result() for task in tasks]
        await _json(self._answer(translations))(scope, receive, send)

    async def _named(self, index: int) -> Translation:
        try:
            return await self.translate(index)
        except EngineFailed as error:
            raise EngineFailed(error.message, field=f"texts[{index}]" if self._is_batch else "text") from None

    def _answer(self, translations: list[Translation]) -> TextAnswer | BatchAnswer:
        if self._is_batch:
            return BatchAnswer(translations, self.source_lang, self.target_lang, self.warnings)
        (one,) = translations
        return TextAnswer(
            translation=one.translation,
            source_lang=self.source_lang,
            target_lang=self.target_lang,
            tokens=one.tokens,
            truncated=one.truncated,
            timings=one.timings,
            warnings=self.warnings,
        )


class _StreamedCall(_Call):
    """Answered token by token; a text that fails says so and harms no other."""

    async def run(self, scope: Scope, receive: Receive, send: Send) -> None:
        stream = EventStream()
        async with _while_connected(receive), asyncio.TaskGroup() as tasks:
            await stream.start(send)
            tasks.create_task(stream.write(send))
            async with asyncio.TaskGroup() as texts:
                for index in range(len(self.tickets)):
                    texts.create_task(self._one(index, stream))
            stream.done(DoneEvent(self.source_lang, self.target_lang, self.warnings))
        await stream.finish(send)

    async def _one(self, index: int, stream: EventStream) -> None:
        try:
            done = await self.translate(index, stream.delta)
        except GatewayError as error:
            metrics.ERRORS.labels(error.code).inc()
            stream.end(FailedEvent(index, error.code, error.message))
        else:
            stream.end(FinalEvent(index, done.translation, done.tokens, done.truncated, done.timings))


@asynccontextmanager
async def _while_connected(receive: Receive) -> AsyncIterator[None]:
    """Cancel the block when the client goes: raises `ClientDisconnect`, or the first error of its tasks.

    The request's body has to be read already, so that what is received next is the disconnect.
    """
    try:
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(_gone(receive))
            yield
            watching.cancel()
    except BaseExceptionGroup as group:
        raise _reason(group) from None


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    raise ClientDisconnect


def _reason(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one error to act on: that the client has gone, else what the first task failed with."""
    known, rest = group.split((ClientDisconnect, GatewayError))
    if rest is not None or known is None:
        return group
    found = list(_leaves(known))
    return next((error for error in found if isinstance(error, ClientDisconnect)), found[0])


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]


# ---------------------------------------------------------------- requests and responses


def _unusable(request: Request) -> str | None:
    """Why the body's media type or encoding cannot be read, if so."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        return f"Send the body as application/json, not as {media_type or 'nothing named'}."
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    return None if encoding == "identity" else f"Send the body as it is, not encoded with {encoding[:20]}."


async def _read(request: Request) -> bytes:
    too_large = MessageTooLarge(f"The body has more than {BODY_BYTES} bytes.")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > BODY_BYTES:
        raise too_large
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES:
            raise too_large
    return bytes(body)


def _prefers_events(accept: str) -> bool:
    """Whether `text/event-stream` is named, and no less wanted than JSON."""
    wanted = {"text/event-stream": 0.0, "application/json": 0.0}
    for item in accept.split(","):
        media_type, *parameters = (part.strip().lower() for part in item.split(";"))
        if media_type in wanted:
            quality = next((p.removeprefix("q=") for p in parameters if p.startswith("q=")), "1")
            try:
                wanted[media_type] = float(quality)
            except ValueError:
                wanted[media_type] = 1.0
    return wanted["text/event-stream"] > 0 and wanted["text/event-stream"] >= wanted["application/json"]


def _json(value: Any, status: int = 200) -> Response:
    return Response(
        msgspec.json.encode(value), status, {"Cache-Control": "no-store"}, media_type="application/json"
    )


def _refusal(error: GatewayError) -> Response:
    headers = {}
    if error.retryable:
        headers["Retry-After"] = str(max(1, math.ceil((error.retry_after_ms or 0) / 1000)))
    return _problem(http_messages.problem(error), headers)


def _problem(problem: Problem, headers: dict[str, str] | None = None) -> Response:
    metrics.ERRORS.labels(problem.code).inc()
    return Response(
        msgspec.json.encode(problem),
        problem.status,
        {"Cache-Control": "no-store", **(headers or {})},
        media_type="application/problem+json",
    )
