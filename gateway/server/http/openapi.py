"""The machine-readable documentation of the HTTP endpoints: `/openapi.json`.

Knows: the structs of `bodies` and `translate_request`, from which every schema is generated; the
error tree.
Must not know: routes, sockets, settings (limits are arguments).
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import Struct, structs

from gateway import __version__
from gateway.domain.errors import (
    EngineUnavailable,
    Forbidden,
    GatewayError,
    LogUnavailable,
    Unauthenticated,
    UnknownMeeting,
)
from gateway.protocol.asyncapi import LICENSE, Document, ErrorMeaning, components, doc, error_meaning, ref
from gateway.protocol.checks import LANGUAGE_TAG, MEETING_ID
from gateway.protocol.limits import Limits
from gateway.server.http.bodies import (
    HTTP_ERRORS,
    HTTP_STATUSES,
    QR_ERRORS,
    QR_LINK_CHARS,
    STREAM_EVENTS,
    TOKEN_ERRORS,
    TRANSCRIPT_ERRORS,
    TRANSLATE_ERRORS,
    USAGE_ERRORS,
    BatchAnswer,
    Health,
    Languages,
    LanguagesAnswer,
    MeetingAnswer,
    Problem,
    Readiness,
    TextAnswer,
    TranscriptAnswer,
    status_code,
    status_meaning,
)
from gateway.server.http.tokens import (
    InviteAnswer,
    RevocationAnswer,
    RevocationBody,
    TokenAnswer,
    TokenBody,
)
from gateway.server.http.transcripts import MEDIA_TYPES, MOST_UTTERANCES
from gateway.server.http.translate_request import TranslateBody, bounded
from gateway.server.http.usage import UsageAnswer

# The source of a problem: an error of the tree, or a status that only HTTP has.
ProblemKind = type[GatewayError] | HTTPStatus

TRANSLATE_EXAMPLES: dict[str, Document] = {
    "one text": {"text": "Good morning, everyone.", "source_lang": "en", "target_lang": "ja"},
    "several texts": {
        "texts": ["The launch moves to Friday.", "Any questions?"],
        "source_lang": "en",
        "target_lang": "de",
        "glossary": {"launch": "Markteinführung"},
        "formality": "formal",
    },
}


# ---------------------------------------------------------------- OpenAPI 3.1


_BEARER = "A token or an API key, where `/readyz` says `auth`: `token`."

# An invite is exchanged without a token.
_SECURED: list[Document] = [{"bearer": []}]
# Where the gateway has no keys. Clients that were made there can still send a token elsewhere.
_OPEN: list[Document] = [{}, {"bearer": []}]

TRANSLATE_ANSWERS = (TextAnswer, BatchAnswer, LanguagesAnswer)

_BODIES: tuple[type[Struct], ...] = (
    TranslateBody,
    *TRANSLATE_ANSWERS,
    *STREAM_EVENTS,
    MeetingAnswer,
    TranscriptAnswer,
    TokenBody,
    TokenAnswer,
    InviteAnswer,
    RevocationBody,
    RevocationAnswer,
    UsageAnswer,
    Languages,
    Health,
    Readiness,
    ErrorMeaning,
    Problem,
)


def openapi(*, limits: Limits, batch_texts: int, body_bytes: int, has_keys: bool = True) -> Document:
    """The HTTP endpoints, as an OpenAPI 3.1 document with the limits of this gateway."""
    document: Document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Translation over HTTP",
            "version": __version__,
            "description": (
                "Translation in one call, transcripts of meetings, and endpoints for operators. Live meetings use "
                "the WebSocket described in /asyncapi.json."
            ),
            "license": LICENSE,
        },
        "paths": {
            "/v1/translate": {"post": _translate(body_bytes)},
            "/v1/meetings/{meeting}": {"get": _meeting_named(limits)},
            "/v1/meetings/{meeting}/transcript.{format}": {"get": _transcript(limits)},
            "/v1/meetings/{meeting}/transcript": {"delete": _erase(limits)},
            "/v1/tokens": {
                "post": _asked("tokens", "A token or an invite.", TokenBody, TokenAnswer, InviteAnswer)
            },
            "/v1/revocations": {
                "post": _asked("revocations", "End what was issued.", RevocationBody, RevocationAnswer)
            },
            "/v1/usage": {
                "get": _get(
                    "usage", "What the tenant of an API key uses.", UsageAnswer, USAGE_ERRORS, secured=True
                )
            },
            "/v1/languages": {"get": _get("languages", "What the model can do.", Languages, (EngineUnavailable,))},
            "/qr.svg": {
                "get": _qr_code(
                    "qr_code",
                    "A link, such as a meeting's, as a QR code.",
                    parameters=[_parameter("link", "query", _LINK, _WHOLE_LINK, required=True)],
                ),
                "post": _qr_code(
                    "posted_qr_code",
                    "A link with a secret, such as an invite, as a QR code: a body is in no log.",
                    requestBody={
                        "required": True,
                        "description": _WHOLE_LINK,
                        "content": {"text/plain": {"schema": _LINK}},
                    },
                ),
            },
            "/healthz": {"get": _get("healthz", "Whether the process answers.", Health)},
            "/readyz": {
                "get": _operation(
                    "readyz",
                    "Whether the gateway accepts translations now.",
                    {
                        **_answer("Ready.", ref(Readiness)),
                        **_answer("Not ready: starting, failed or draining.", ref(Readiness), 503),
                    },
                    parameters=[
                        _parameter(
                            "status",
                            "query",
                            {"type": "string"},
                            "`200`: answer 200 also where it is not ready; the body says which.",
                        )
                    ],
                )
            },
            "/errors/{code}": {
                "get": _get(
                    "error",
                    "What an error code means.",
                    ErrorMeaning,
                    (HTTPStatus.NOT_FOUND,),
                    parameters=[_parameter("code", "path", {"type": "string"})],
                )
            },
            "/metrics": {
                "get": _file(
                    "metrics",
                    "Metrics in Prometheus' text format.",
                    "text/plain",
                    parameters=[
                        _parameter(
                            "name[]",
                            "query",
                            {"type": "array", "items": {"type": "string"}},
                            "Names of the samples to show; by default all.",
                        )
                    ],
                    # They may be at an address of their own.
                    problems=(HTTPStatus.NOT_FOUND,),
                )
            },
            "/openapi.json": {"get": _file("openapi", "This document.", "application/json")},
            "/asyncapi.json": {"get": _file("asyncapi", "The WebSocket's messages.", "application/json")},
        },
        "components": {
            "schemas": _optional(bounded(components(_BODIES), limits, batch_texts)),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "description": _BEARER}},
        },
        "x-error-codes": [
            *(structs.asdict(error_meaning(cls)) for cls in HTTP_ERRORS),
            *(structs.asdict(status_meaning(status)) for status in HTTP_STATUSES),
        ],
    }
    if not has_keys:
        for methods in document["paths"].values():
            for operation in methods.values():
                if "security" in operation:
                    operation["security"] = _OPEN
    return document


def _operation(
    operation: str,
    summary: str,
    answers: Document,
    problems: Iterable[ProblemKind] = (),
    *,
    secured: bool = False,
    **more: Any,
) -> Document:
    security = {"security": _SECURED} if secured else {}
    responses = {**answers, **_problems(problems)}
    return {"operationId": operation, **security, "summary": summary, **more, "responses": responses}


def _answer(description: str, schema: Document, status: int = 200) -> Document:
    """An answer in JSON."""
    return {str(status): {"description": description, "content": {"application/json": {"schema": schema}}}}


def _one_of(structs: Iterable[type[Struct]]) -> Document:
    return {"oneOf": [ref(cls) for cls in structs]}


def _parameter(name: str, where: str, schema: Document, description: str = "", **more: Any) -> Document:
    described = {"description": description} if description else {}
    required = {"required": True} if where == "path" else {}
    return {"name": name, "in": where, **required, **described, **more, "schema": schema}


def _translate(body_bytes: int) -> Document:
    events = " ".join(doc(cls) for cls in STREAM_EVENTS)
    answer = _answer(
        "At least one text is translated. In a stream: the translation has begun.", _one_of(TRANSLATE_ANSWERS)
    )
    answer["200"]["content"]["text/event-stream"] = {
        "schema": {"type": "string", "description": events},
        "x-events": {name: ref(cls) for cls, name in STREAM_EVENTS.items()},
    }
    examples = {name: {"value": value} for name, value in TRANSLATE_EXAMPLES.items()}
    return _operation(
        "translate",
        "Translate one text, or several together.",
        answer,
        # `unsupported_option` is a warning here, never a problem.
        [*TRANSLATE_ERRORS, HTTPStatus.UNSUPPORTED_MEDIA_TYPE],
        secured=True,
        description=(
            f"The body has at most {body_bytes} bytes. All texts are admitted, or none. With "
            "`Accept: text/event-stream` the translations arrive token by token. Closing the connection "
            "stops the generation."
        ),
        requestBody={
            "required": True,
            "content": {"application/json": {"schema": ref(TranslateBody), "examples": examples}},
        },
    )


def _transcript(limits: Limits) -> Document:
    tag = {"type": "string", "pattern": f"^{LANGUAGE_TAG}$"}
    languages = {"type": "array", "items": tag, "minItems": 1, "maxItems": limits.languages}
    contents: Document = {media_type: {"schema": {"type": "string"}} for media_type in MEDIA_TYPES.values()}
    contents[MEDIA_TYPES["json"]] = {"schema": ref(TranscriptAnswer)}
    return _operation(
        "transcript",
        "What was said in a meeting, in one language or several side by side.",
        {"200": {"description": doc(TranscriptAnswer), "content": contents}},
        [*TRANSCRIPT_ERRORS, HTTPStatus.NOT_FOUND],
        secured=True,
        parameters=[
            _meeting(limits),
            _parameter("format", "path", {"type": "string", "enum": list(MEDIA_TYPES)}),
            _parameter(
                "lang",
                "query",
                languages,
                "BCP 47 tags, separated by commas. Without it, JSON has every language there is; the other "
                "formats have each utterance in its own language.",
                style="form",
                explode=False,
            ),
            _parameter(
                "last",
                "query",
                {"type": "integer", "minimum": 1, "maximum": MOST_UTTERANCES},
                "JSON alone: the newest so many utterances. Without it, all there are.",
            ),
            _parameter(
                "before",
                "query",
                {"type": "integer", "minimum": 1},
                "Together with `last`: of the utterances before this position in the log.",
            ),
            _parameter(
                "mark",
                "query",
                {"type": "string", "enum": ["unsure"]},
                "Subtitles: a `(?)` before each translation that is unsure. Text always has it.",
            ),
        ],
    )


def _meeting(limits: Limits) -> Document:
    schema = {"type": "string", "pattern": f"^{MEETING_ID}$", "maxLength": limits.id_chars}
    return _parameter("meeting", "path", schema)


def _meeting_named(limits: Limits) -> Document:
    return _operation(
        "meeting",
        "What may be told of a meeting before one joins it.",
        _answer(doc(MeetingAnswer), ref(MeetingAnswer)),
        (Unauthenticated, Forbidden, UnknownMeeting, LogUnavailable),
        secured=True,
        parameters=[_meeting(limits)],
    )


def _erase(limits: Limits) -> Document:
    return _operation(
        "erase",
        "Let go of what was said in a meeting.",
        {"204": {"description": "Nothing of it is kept."}},
        (Unauthenticated, Forbidden, UnknownMeeting, LogUnavailable),
        secured=True,
        parameters=[_meeting(limits)],
    )


def _asked(operation: str, summary: str, body: type[Struct], *answers: type[Struct]) -> Document:
    return _operation(
        operation,
        summary,
        _answer(" ".join(map(doc, answers)), _one_of(answers)),
        [*TOKEN_ERRORS, HTTPStatus.NOT_FOUND, HTTPStatus.UNSUPPORTED_MEDIA_TYPE],
        secured=True,
        description=doc(body),
        requestBody={"required": True, "content": {"application/json": {"schema": ref(body)}}},
    )


_LINK = {"type": "string", "format": "uri", "maxLength": QR_LINK_CHARS}
_WHOLE_LINK = "The whole address, with `http://` or `https://`."


def _qr_code(operation: str, summary: str, **asked: Any) -> Document:
    content = {"image/svg+xml": {"schema": {"type": "string"}}}
    drawn = {"200": {"description": "A code that scales to any size.", "content": content}}
    return _operation(operation, summary, drawn, QR_ERRORS, **asked)


def _get(
    operation: str, summary: str, answer: type[Struct], problems: Iterable[ProblemKind] = (), **more: Any
) -> Document:
    return _operation(operation, summary, _answer(doc(answer), ref(answer)), problems, **more)


def _file(
    operation: str, summary: str, media_type: str, problems: Iterable[ProblemKind] = (), **more: Any
) -> Document:
    answer: Document = {"200": {"description": summary, "content": {media_type: {}}}}
    return _operation(operation, summary, answer, problems, **more)


def _problems(problems: Iterable[ProblemKind]) -> Document:
    codes: dict[int, list[str]] = {}
    for problem in problems:
        if isinstance(problem, HTTPStatus):
            codes.setdefault(problem.value, []).append(status_code(problem))
        else:
            codes.setdefault(problem.http_status, []).append(problem.code)
    described = {}
    for status in sorted(codes):
        names = ", ".join(f"`{code}`" for code in codes[status])
        response: Document = {
            "description": f"{HTTPStatus(status).phrase}: {names}.",
            "content": {"application/problem+json": {"schema": ref(Problem)}},
        }
        if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
            response["headers"] = {
                "Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 1}}
            }
        described[str(status)] = response
    return described


def _optional(schemas: Document) -> Document:
    """Say defaults of requests in words: where a schema has them, generators of clients want every field sent."""
    for cls in (TranslateBody, TokenBody, RevocationBody):
        for field in schemas[cls.__name__]["properties"].values():
            if default := field.pop("default", None):
                field["description"] = (
                    f"{field.get('description', '')} Default: {msgspec.json.encode(default).decode()}."
                )
    return schemas
