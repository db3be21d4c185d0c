"""The HTTP API: translation in one call, languages, health, readiness, machine-readable docs.

Knows: every route, and when a client has disconnected. Translates the texts of a call through the scheduler.
Must not know: the rules of the bodies (`bodies`, `translate_request`), how an error is answered
(`responses`), the event stream format (`sse`), transcripts (`transcripts`), QR codes
(`qr`), which engine it is.
"""

from __future__ import annotations

import asyncio
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cached_property, partial
from http import HTTPStatus

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway import metrics
from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import DeadlineExceeded, EngineFailed, GatewayError, error_classes
from gateway.domain.grants import Grant, account_of_tenant
from gateway.domain.languages import language_name
from gateway.domain.ports import Engine, EventLog
from gateway.protocol import asyncapi
from gateway.protocol.checks import targets_by_source
from gateway.protocol.limits import Limits
from gateway.server.guard.accounts import client_account
from gateway.server.guard.audit import Attempt, Audit
from gateway.server.guard.identity import Identity
from gateway.server.http import bodies, openapi
from gateway.server.http.bodies import (
    BatchAnswer,
    DoneEvent,
    FailedEvent,
    FinalEvent,
    Health,
    Language,
    Languages,
    TextAnswer,
    Translation,
    TranslationWarning,
)
from gateway.server.http.qr import posted_qr_code, qr_code
from gateway.server.http.readiness import Auth, Whole, readiness, readyz
from gateway.server.http.request_bodies import BODY_BYTES, read_json
from gateway.server.http.responses import Resource, json_response, problem_response
from gateway.server.http.sse import EventStream
from gateway.server.http.transcripts import Transcripts
from gateway.server.http.translate_request import decode_body, plan
from gateway.sessions.grants import check_reads, check_speaks
from gateway.translation.pacing import Throttle
from gateway.translation.scheduling.scheduler import Scheduler
from gateway.translation.scheduling.ticket import Ticket

__all__ = ["routes"]


def routes(
    *,
    scheduler: Scheduler,
    engine: Engine,
    limits: Limits,
    log: EventLog,
    identity: Identity,
    audit: Audit,
    # What all workers are doing, or the only process.
    whole: Callable[[], Whole],
    # What `/readyz` says of who is let in.
    auth: Auth = "none",
    # Shortest time between two deltas of a translation, in seconds.
    delta_interval_s: float = 0.0,
    # Most texts of one call.
    batch_texts: int = 64,
) -> list[BaseRoute]:
    """Every HTTP route of the gateway."""
    api = _Api(scheduler, engine, limits, identity, audit, whole, auth, delta_interval_s, batch_texts)
    transcripts = Transcripts(log, engine, identity, audit, most_languages=limits.languages)
    return [
        Route("/v1/translate", Resource(POST=api.translate)),
        Route("/v1/languages", Resource(GET=api.languages)),
        Route("/v1/meetings/{meeting}/transcript.{format}", Resource(GET=transcripts.transcript)),
        Route("/v1/stream", Resource(GET=api.stream)),
        Route("/v1/{rest:path}", Resource()),
        Route("/qr.svg", Resource(GET=qr_code, POST=posted_qr_code)),
        Route("/errors/{code}", Resource(GET=api.error)),
        Route("/healthz", Resource(GET=api.healthz)),
        Route("/readyz", Resource(GET=api.readyz)),
        Route("/openapi.json", Resource(GET=api.openapi)),
        Route("/asyncapi.json", Resource(GET=api.asyncapi)),
    ]


# ---------------------------------------------------------------- endpoints


class _Api:
    """One method per endpoint. A `GatewayError` becomes a problem."""

    def __init__(
        self,
        scheduler: Scheduler,
        engine: Engine,
        limits: Limits,
        identity: Identity,
        audit: Audit,
        whole: Callable[[], Whole],
        auth: Auth,
        delta_interval_s: float,
        batch_texts: int,
    ) -> None:
        self._scheduler = scheduler
        self._engine = engine
        self._limits = limits
        self._identity = identity
        self._audit = audit
        self._whole = whole
        self._auth = auth
        self._delta_interval_s = delta_interval_s
        self._batch_texts = batch_texts

    async def translate(self, request: Request) -> ASGIApp:
        with self._audit.attempt("translate", request, refusals_only=True) as attempt:
            return await self._translate(request, attempt)

    async def _translate(self, request: Request, attempt: Attempt) -> ASGIApp:
        attempt.grant = grant = await self._identity.of(request)
        body = decode_body(await read_json(request))
        account = account_of_tenant(grant, client_account(request))
        requests, left_out = plan(
            body,
            scope=f"http:{account}",
            id_prefix=f"http-{secrets.token_hex(8)}",
            profile=self._engine.profile(),
            limits=self._limits,
            batch_texts=self._batch_texts,
        )
        _check(grant, requests)
        # Nothing may be awaited from here until the call runs, because only the call gives the places back.
        tickets = self._scheduler.admit("", requests, account=account)
        warnings = [TranslationWarning(option.code, option.message, option.field) for option in left_out]
        is_batch = isinstance(body.texts, list)
        if _prefers_events(request.headers.get("accept", "")):
            return _StreamedCall(self._scheduler, tickets, warnings, self._delta_interval_s)
        return _WholeCall(self._scheduler, tickets, warnings, is_batch=is_batch)

    async def languages(self, _request: Request) -> ASGIApp:
        profile = self._engine.profile()
        known = [Language(tag, language_name(tag)) for tag in profile.languages]
        options = sorted(profile.options)
        targets = targets_by_source(profile)
        return json_response(Languages(known, options, profile.model, profile.family, self._limits, targets))

    async def stream(self, _request: Request) -> ASGIApp:
        detail = "This address is a WebSocket; see /asyncapi.json."
        return problem_response(
            bodies.status_problem(HTTPStatus.UPGRADE_REQUIRED, detail), {"Upgrade": "websocket"}
        )

    async def error(self, request: Request) -> ASGIApp:
        code = request.path_params["code"]
        # If a parent and its child share a code, the child's meaning counts.
        for cls in reversed(error_classes()):
            if cls.code == code:
                return json_response(asyncapi.error_meaning(cls))
        return problem_response(bodies.status_problem(HTTPStatus.NOT_FOUND, "There is no such error code."))

    async def healthz(self, _request: Request) -> ASGIApp:
        return json_response(Health("alive"))

    async def readyz(self, _request: Request) -> ASGIApp:
        return readyz(readiness(self._engine.health(), self._whole(), self._auth))

    async def openapi(self, _request: Request) -> ASGIApp:
        return self._openapi

    async def asyncapi(self, _request: Request) -> ASGIApp:
        return self._asyncapi

    @cached_property
    def _openapi(self) -> Response:
        limits, batch_texts = self._limits, self._batch_texts
        return json_response(openapi.openapi(limits=limits, batch_texts=batch_texts, body_bytes=BODY_BYTES))

    @cached_property
    def _asyncapi(self) -> Response:
        return json_response(asyncapi.asyncapi())


def _check(grant: Grant, requests: Sequence[TranslationRequest]) -> None:
    """Raises `Forbidden`."""
    for request in requests:
        check_speaks(grant, request.source, "source_lang")
        check_reads(grant, [request.target], originals=False)


# ---------------------------------------------------------------- one call of POST /v1/translate


class _Call(ABC):
    """The admitted texts of one call, translated together while the client is connected."""

    def __init__(self, scheduler: Scheduler, tickets: list[Ticket], warnings: list[TranslationWarning]) -> None:
        self.scheduler = scheduler
        self.tickets = tickets
        self.warnings = warnings
        self.source_lang = tickets[0].request.source
        self.target_lang = tickets[0].request.target
        self._outcomes = ["cancelled"] * len(tickets)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.run(scope, receive, send)
        finally:
            # Not in the tasks of the texts: a task that is cancelled before its first step runs no code.
            for ticket, outcome in zip(self.tickets, self._outcomes, strict=True):
                self.scheduler.withdraw(ticket)
                metrics.TRANSLATIONS.labels(outcome, self.target_lang).inc()

    @abstractmethod
    async def run(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Translate every text and answer."""

    async def translate(self, index: int, on_text: Callable[[str], None] | None = None) -> Translation:
        """Translate one text. Raises only `GatewayError`."""
        ticket = self.tickets[index]
        try:
            generated = await self.scheduler.collect(ticket, on_text)
        except GatewayError as error:
            self._outcomes[index] = error.code
            raise
        self._outcomes[index] = "final"
        return Translation(generated.text, ticket.tokens, generated.truncated, ticket.timings())


class _WholeCall(_Call):
    """A call that is answered when every text is translated; the first failure ends it."""

    def __init__(
        self,
        scheduler: Scheduler,
        tickets: list[Ticket],
        warnings: list[TranslationWarning],
        *,
        is_batch: bool,
    ) -> None:
        super().__init__(scheduler, tickets, warnings)
        self._is_batch = is_batch

    async def run(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with _while_connected(receive), asyncio.TaskGroup() as texts:
            tasks = [texts.create_task(self._named(index)) for index in range(len(self.tickets))]
        translations = [task.result() for task in tasks]
        await json_response(self._answer(translations))(scope, receive, send)

    async def _named(self, index: int) -> Translation:
        try:
            return await self.translate(index)
        except (EngineFailed, DeadlineExceeded) as error:
            error.field = f"texts[{index}]" if self._is_batch else "text"
            raise

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
    """A call that is answered token by token. A text that fails does not affect the others."""

    def __init__(
        self,
        scheduler: Scheduler,
        tickets: list[Ticket],
        warnings: list[TranslationWarning],
        delta_interval_s: float,
    ) -> None:
        super().__init__(scheduler, tickets, warnings)
        self._delta_interval_s = delta_interval_s

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
        throttle = Throttle(partial(stream.delta, index), interval_s=self._delta_interval_s)
        try:
            done = await self.translate(index, throttle.grow)
        except GatewayError as error:
            metrics.ERRORS.labels(error.code).inc()
            stream.end(FailedEvent(index, error.code, error.message))
        else:
            throttle.end()
            stream.end(FinalEvent(index, done.translation, done.tokens, done.truncated, done.timings))
        finally:
            throttle.stop()


@asynccontextmanager
async def _while_connected(receive: Receive) -> AsyncIterator[None]:
    """Cancel the block when the client disconnects. Raises `ClientDisconnect`, or the first error of its tasks.

    The request's body must have been read, so that the next message received is the disconnect.
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
    """The error to act on: `ClientDisconnect` if there is one, else the error of the first task that failed."""
    known, rest = group.split((ClientDisconnect, GatewayError))
    if rest is not None or known is None:
        return group
    found = list(_leaves(known))
    return next((error for error in found if isinstance(error, ClientDisconnect)), found[0])


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]


def _prefers_events(accept: str) -> bool:
    """Whether `Accept` names `text/event-stream` with at least the weight of JSON."""
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
