"""The HTTP API: translation in one call, languages, health, readiness, machine-readable docs.

Knows: every route, and how a call of texts is answered.
Must not know: how texts are translated (`server.translate`), the rules of the bodies, how an error is answered
(`responses`), the event stream format (`sse`), transcripts (`transcripts`), QR codes
(`qr`), which engine it is.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from http import HTTPStatus
from itertools import starmap

from msgspec import UNSET, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway import metrics
from gateway.domain.errors import GatewayError, error_classes
from gateway.domain.languages import AUTO, language_name
from gateway.domain.ports import EventLog, SessionStore
from gateway.protocol import asyncapi
from gateway.protocol.checks import targets_by_source
from gateway.server.guard.audit import Audit
from gateway.server.guard.identity import Identity, client_account
from gateway.server.http import bodies, openapi
from gateway.server.http.bodies import (
    BatchAnswer,
    DoneEvent,
    FailedEvent,
    FinalEvent,
    Health,
    Language,
    Languages,
    LanguagesAnswer,
    TextAnswer,
    TextError,
    Translation,
    TranslationWarning,
)
from gateway.server.http.qr import QrCodes
from gateway.server.http.readiness import Auth, Whole, readiness, readyz
from gateway.server.http.request_bodies import BODY_BYTES, decoded, read_json
from gateway.server.http.responses import Resource, json_response, problem_response
from gateway.server.http.sse import EventStream
from gateway.server.http.transcripts import Transcripts
from gateway.server.http.translate_request import TRANSLATE_BODY, TranslateBody, asked, unknown_fields
from gateway.server.translate.call import NO_TIME, Call, Translated, Translator, while_connected
from gateway.translation.scheduling.scheduler import Throttle


def routes(api: Api, log: EventLog, session_store: SessionStore) -> list[BaseRoute]:
    """Every HTTP route of the gateway."""
    translator = api.translator
    transcripts = Transcripts(log, session_store, translator.engine, api.identity, api.audit, translator.limits)
    codes = QrCodes(translator.thread)
    return [
        Route("/v1/translate", Resource(POST=api.translate)),
        Route("/v1/languages", Resource(GET=api.languages)),
        Route("/v1/meetings/{meeting}/transcript.{format}", Resource(GET=transcripts.transcript)),
        Route("/v1/meetings/{meeting}", Resource(GET=transcripts.meeting)),
        Route("/v1/meetings/{meeting}/transcript", Resource(DELETE=transcripts.erase)),
        Route("/v1/stream", Resource(GET=api.stream)),
        Route("/v1/{rest:path}", Resource()),
        Route("/qr.svg", Resource(GET=codes.get, POST=codes.post)),
        Route("/errors/{code}", Resource(GET=api.error)),
        Route("/healthz", Resource(GET=api.healthz)),
        Route("/readyz", Resource(GET=api.readyz)),
        Route("/openapi.json", Resource(GET=api.openapi)),
        Route("/asyncapi.json", Resource(GET=api.asyncapi)),
    ]


# ---------------------------------------------------------------- endpoints


class Api(Struct, frozen=True, kw_only=True, dict=True):
    """One method per endpoint. A `GatewayError` becomes a problem."""

    translator: Translator
    identity: Identity
    audit: Audit
    # What all workers are doing, or the only process.
    whole: Callable[[], Whole]
    # What `/readyz` says of who is let in.
    auth: Auth
    # Shortest time between two deltas of a translation, in seconds.
    delta_interval_s: float

    async def translate(self, request: Request) -> ASGIApp:
        with self.audit.attempt("translate", request, refusals_only=True) as attempt:
            attempt.grant = grant = await self.identity.grant_of(request)
            account = client_account(request)
            self.translator.check_unread(grant, account)
            data = await read_json(request)
            body = decoded(TRANSLATE_BODY, data)
            wanted, unknown = asked(body), unknown_fields(data)
            if wanted.source == AUTO:
                await self.translator.detector.load()
            call = await self.translator.admit(wanted, grant, account)
        warnings = [TranslationWarning(option.code, option.message, option.field) for option in call.left_out]
        warnings += [
            TranslationWarning("unknown_field", f"There is no field {name!r}; it is ignored.", name)
            for name in unknown
        ]
        if _prefers_events(request.headers.get("accept", "")):
            return _StreamedAnswer(call, body, warnings, self.delta_interval_s)
        return _WholeAnswer(call, body, warnings)

    async def languages(self, _request: Request) -> ASGIApp:
        profile = self.translator.engine.profile()
        known = [Language(tag, language_name(tag)) for tag in profile.languages]
        options, targets = sorted(profile.options), targets_by_source(profile)
        limits = self.translator.limits
        return json_response(Languages(known, options, profile.model, profile.family, limits, targets))

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

    async def readyz(self, request: Request) -> ASGIApp:
        return readyz(readiness(self.translator.engine.health(), self.whole(), self.auth), request)

    async def openapi(self, _request: Request) -> ASGIApp:
        return self._openapi

    async def asyncapi(self, _request: Request) -> ASGIApp:
        return self._asyncapi

    @cached_property
    def _openapi(self) -> Response:
        limits, texts = self.translator.limits, self.translator.batch_texts
        document = openapi.openapi(
            limits=limits, batch_texts=texts, body_bytes=BODY_BYTES, has_keys=self.identity.required
        )
        return json_response(document)

    @cached_property
    def _asyncapi(self) -> Response:
        return json_response(asyncapi.asyncapi())


# ---------------------------------------------------------------- one call of POST /v1/translate


class _Answer(ABC):
    """The answer to a call whose texts are admitted."""

    def __init__(self, call: Call, body: TranslateBody, warnings: list[TranslationWarning]) -> None:
        self.call = call
        self.body = body
        self.warnings = warnings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self.call:
            await self.run(scope, receive, send)

    @abstractmethod
    async def run(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Translate every text and answer."""

    def detected(self, number: int) -> str | UnsetType:
        """The language of a job's text, where none was given."""
        return self.call.jobs[number].source if self.call.source == AUTO else UNSET


class _WholeAnswer(_Answer):
    """An answer when every text is translated. One that fails has its error beside the others' translations."""

    async def run(self, scope: Scope, receive: Receive, send: Send) -> None:
        outcomes = await self.call.translate_all(receive)
        await json_response(self._answer(outcomes))(scope, receive, send)

    def _answer(self, outcomes: list[Translated | GatewayError]) -> TextAnswer | BatchAnswer | LanguagesAnswer:
        call, found = self.call, list(starmap(self._translation, enumerate(outcomes)))
        if isinstance(self.body.target_langs, list):
            count = len(call.targets)
            of_texts = [found[at : at + count] for at in range(0, len(found), count)]
            by_text = [dict(zip(call.targets, of_text, strict=True)) for of_text in of_texts]
            return LanguagesAnswer(by_text, call.source, call.targets, self.warnings)
        (target,) = call.targets
        if isinstance(self.body.texts, list):
            return BatchAnswer(found, call.source, target, self.warnings)
        (one,) = found
        return TextAnswer(
            translation=one.translation or "",
            source_lang=call.jobs[0].source,
            target_lang=target,
            tokens=one.tokens,
            truncated=one.truncated,
            timings=one.timings,
            warnings=self.warnings,
            unsure=one.unsure,
        )

    def _translation(self, number: int, outcome: Translated | GatewayError) -> Translation:
        detected = self.detected(number)
        if isinstance(outcome, GatewayError):
            error = TextError(outcome.code, outcome.message)
            return Translation(None, 0, False, NO_TIME, detected, error)
        return Translation(
            outcome.text,
            outcome.tokens,
            outcome.truncated,
            outcome.timings,
            detected,
            unsure=outcome.unsure or UNSET,
        )


class _StreamedAnswer(_Answer):
    """An answer token by token. A text that fails does not affect the others."""

    def __init__(
        self, call: Call, body: TranslateBody, warnings: list[TranslationWarning], delta_interval_s: float
    ) -> None:
        super().__init__(call, body, warnings)
        self._several = isinstance(body.target_langs, list)
        self._delta_interval_s = delta_interval_s

    async def run(self, scope: Scope, receive: Receive, send: Send) -> None:
        stream, call = EventStream(), self.call
        async with while_connected(receive), asyncio.TaskGroup() as tasks:
            await stream.start(send)
            tasks.create_task(stream.write(send))
            async with asyncio.TaskGroup() as texts:
                for number in range(len(call.jobs)):
                    texts.create_task(self._one(number, stream))
            is_batch = isinstance(self.body.texts, list)
            done = DoneEvent(
                source_lang=call.source if is_batch else call.jobs[0].source,
                target_lang=UNSET if self._several else call.targets[0],
                target_langs=call.targets if self._several else UNSET,
                warnings=self.warnings,
            )
            stream.done(done)
        await stream.finish(send)

    async def _one(self, number: int, stream: EventStream) -> None:
        job = self.call.jobs[number]
        target = job.target if self._several else UNSET
        throttle = Throttle(lambda text: stream.delta(job.index, text, target), interval_s=self._delta_interval_s)
        try:
            done = await self.call.translate(number, throttle.grow)
        except GatewayError as error:
            metrics.ERRORS.labels(error.code).inc()
            stream.end(FailedEvent(job.index, error.code, error.message, target))
        else:
            throttle.end()
            stream.end(
                FinalEvent(
                    job.index,
                    done.text,
                    done.tokens,
                    done.truncated,
                    done.timings,
                    self.detected(number),
                    target,
                    unsure=done.unsure or UNSET,
                )
            )
        finally:
            throttle.stop()


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
