"""The bodies of HTTP answers: translations, stream events, transcripts, problems.

Knows: fields and errors. `/openapi.json` is generated from this module.
Must not know: headers, connections, the bodies of requests (`translate_request`).
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from gateway.domain.errors import (
    DailyQuotaExceeded,
    DeadlineExceeded,
    Draining,
    EngineFailed,
    EngineUnavailable,
    Forbidden,
    GatewayError,
    InvalidMessage,
    InvalidValue,
    LimitExceeded,
    LogUnavailable,
    MessageTooLarge,
    NotRecorded,
    Overloaded,
    QuotaExceeded,
    RateLimited,
    TextTooLong,
    Unauthenticated,
    UnknownMeeting,
    UnsupportedLanguage,
)
from gateway.protocol.asyncapi import ErrorMeaning, title
from gateway.protocol.fields import Targets
from gateway.protocol.limits import Limits
from gateway.protocol.messages import Timings

# Every error of the tree that `POST /v1/translate` may return.
TRANSLATE_ERRORS: tuple[type[GatewayError], ...] = (
    InvalidMessage,
    MessageTooLarge,
    InvalidValue,
    UnsupportedLanguage,
    LimitExceeded,
    GatewayError,
    EngineFailed,
    TextTooLong,
    QuotaExceeded,
    DailyQuotaExceeded,
    RateLimited,
    Overloaded,
    Draining,
    EngineUnavailable,
    DeadlineExceeded,
    Unauthenticated,
    Forbidden,
)
# The same for a transcript.
TRANSCRIPT_ERRORS: tuple[type[GatewayError], ...] = (
    UnknownMeeting,
    NotRecorded,
    InvalidValue,
    UnsupportedLanguage,
    LimitExceeded,
    GatewayError,
    LogUnavailable,
    RateLimited,
    Unauthenticated,
    Forbidden,
)
# The same for tokens and revocations.
TOKEN_ERRORS: tuple[type[GatewayError], ...] = (
    InvalidMessage,
    MessageTooLarge,
    InvalidValue,
    GatewayError,
    Unauthenticated,
    Forbidden,
)
# The same for a tenant's usage.
USAGE_ERRORS: tuple[type[GatewayError], ...] = (Unauthenticated, Forbidden)
# The same for a QR code.
QR_ERRORS: tuple[type[GatewayError], ...] = (InvalidValue, LimitExceeded, GatewayError, RateLimited)
# Every error of the tree that an HTTP answer may contain, by status, in the order of the documentation.
HTTP_ERRORS: tuple[type[GatewayError], ...] = tuple(
    sorted(
        dict.fromkeys((*TRANSLATE_ERRORS, *TRANSCRIPT_ERRORS, *TOKEN_ERRORS, *QR_ERRORS)),
        key=lambda cls: cls.http_status,
    )
)
# Problems that only HTTP has. The code is the status's name in snake case.
HTTP_STATUSES: dict[HTTPStatus, str] = {
    HTTPStatus.NOT_FOUND: "There is nothing at this address.",
    HTTPStatus.METHOD_NOT_ALLOWED: "The address takes other methods; `Allow` names them.",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The body is not sent as plain `application/json`.",
    HTTPStatus.UPGRADE_REQUIRED: "The address is a WebSocket.",
}


# ---------------------------------------------------------------- POST /v1/translate


class TranslationWarning(Struct, frozen=True):
    """An option or a field was ignored, and the translation was made without it."""

    code: Annotated[str, Meta(description="`unsupported_option` or `unknown_field`.")]
    message: str
    field: str | None


class TextError(Struct, frozen=True):
    """Why one text of a call is not translated, while others are."""

    code: str
    message: str


_Unsure = Annotated[bool | UnsetType, Meta(description="true where a reader should be warned; absent otherwise.")]
_Source = Annotated[str, Meta(description="`auto` where each text's was detected.")]
_Detected = Annotated[str, Meta(description="The detected language of the text, where none was given; or `und`.")]


class Translation(Struct, frozen=True):
    """One translated text, or `error`. Timings are in milliseconds from the admission of the call."""

    translation: Annotated[str | None, Meta(description="null where there is an `error`.")]
    tokens: int
    truncated: Annotated[bool, Meta(description="The output limit cut the translation short.")]
    timings: Timings
    source_lang: _Detected | UnsetType = UNSET
    error: Annotated[TextError | UnsetType, Meta(description="Why there is no translation.")] = UNSET
    unsure: _Unsure = UNSET


class TextAnswer(Struct, frozen=True):
    """The answer to a call with `text` and `target_lang`."""

    translation: str
    source_lang: Annotated[str, Meta(description="As given, or as detected; `und` if the text has no words.")]
    target_lang: str
    tokens: int
    truncated: Annotated[bool, Meta(description="The output limit cut the translation short.")]
    timings: Timings
    warnings: list[TranslationWarning]
    unsure: _Unsure = UNSET


class BatchAnswer(Struct, frozen=True):
    """The answer to a call with `texts` and `target_lang`: their translations in the same order."""

    translations: list[Translation]
    source_lang: _Source
    target_lang: str
    warnings: list[TranslationWarning]


class LanguagesAnswer(Struct, frozen=True):
    """The answer to a call with `target_langs`: for each text, in the same order, its translations by language."""

    translations: list[dict[str, Translation]]
    source_lang: _Source
    target_langs: Annotated[list[str], Meta(description="Normalised, each once.")]
    warnings: list[TranslationWarning]


_Target = Annotated[str, Meta(description="Only where the call has `target_langs`.")] | UnsetType


class DeltaEvent(Struct, frozen=True):
    """Event `translation.delta`: append `committed` to the text shown for `texts[index]`."""

    index: int
    committed: str
    target_lang: _Target = UNSET


class FinalEvent(Struct, frozen=True):
    """Event `translation.final`: the whole translation of `texts[index]`; it replaces the text of the deltas."""

    index: int
    translation: str
    tokens: int
    truncated: bool
    timings: Timings
    source_lang: _Detected | UnsetType = UNSET
    target_lang: _Target = UNSET
    unsure: _Unsure = UNSET


class FailedEvent(Struct, frozen=True):
    """Event `translation.failed`: `texts[index]` is not translated; `code` and `message` say why."""

    index: int
    code: str
    message: str
    target_lang: _Target = UNSET


class DoneEvent(Struct, frozen=True, kw_only=True):
    """Event `done`, the last one: every text has its `translation.final` or `translation.failed`."""

    source_lang: _Source
    target_lang: Annotated[str, Meta(description="Where the call has it.")] | UnsetType = UNSET
    target_langs: Annotated[list[str], Meta(description="Where the call has them.")] | UnsetType = UNSET
    warnings: list[TranslationWarning]


STREAM_EVENTS: dict[type[Struct], str] = {  # and their names
    DeltaEvent: "translation.delta",
    FinalEvent: "translation.final",
    FailedEvent: "translation.failed",
    DoneEvent: "done",
}


# ---------------------------------------------------------------- GET /v1/meetings/{meeting}/transcript.{format}


# Longest link of a QR code. The code of a longer link is hard to scan from a screen.
QR_LINK_CHARS = 512


class TranscriptText(Struct, frozen=True):
    """An utterance in one language. `text` is null if its status is `failed` or `missing`."""

    status: Annotated[
        Literal["original", "translated", "failed", "missing"],
        Meta(
            description="`original`: it was said in this language. `missing`: nobody read this language, or the "
            "translation is not finished."
        ),
    ]
    text: str | None
    code: Annotated[str | None, Meta(description="Why it failed, as in `translation.failed`.")] = None
    unsure: _Unsure = UNSET


class TranscriptUtterance(Struct, frozen=True):
    """What somebody said: `text` in its own language `lang`."""

    participant: Annotated[str, Meta(description="Who said it: their public id in the meeting.")]
    utterance: Annotated[str, Meta(description="The client's id, unique for its participant.")]
    speaker: str
    lang: str
    rev: int
    text: str
    at_ms: Annotated[int, Meta(description="Unix time of its acceptance, in milliseconds.")]
    start_ms: Annotated[int | None, Meta(description="Start in the speaker's audio, in milliseconds, if known.")]
    end_ms: Annotated[int | None, Meta(description="End in the speaker's audio, in milliseconds, if known.")]
    translations: Annotated[
        dict[str, TranscriptText], Meta(description="By language, for every language that was asked for.")
    ]
    offset: Annotated[int, Meta(description="Its position in the log: what `before` takes.")]
    replaces: Annotated[
        list[str] | UnsetType,
        Meta(description="Of a correction: the ids of what it stands in place of, with their time and position."),
    ] = UNSET


class MeetingAnswer(Struct, frozen=True):
    """What may be told of a meeting before one joins it."""

    meeting: str
    title: Annotated[
        str, Meta(description="What it is called; empty: it has no title, or there is no such meeting.")
    ]
    held_by: Annotated[str, Meta(description="Name of the host who has set the title; may be empty.")]


class TranscriptAnswer(Struct, frozen=True, kw_only=True):
    """The utterances of a meeting that are in its log, or `last` of them, in the order of acceptance."""

    meeting: str
    epoch: Annotated[str, Meta(description="Epoch of the meeting's log, as in `session.started`.")]
    from_offset: Annotated[int, Meta(description="Position of the oldest entry in the log.")]
    to_offset: Annotated[int, Meta(description="Position of the newest entry in the log.")]
    title: Annotated[str | UnsetType, Meta(description="What the meeting is called. Absent: it has no title.")] = (
        UNSET
    )
    held_by: Annotated[str | UnsetType, Meta(description="Name of who has set the title. Absent: not known.")] = (
        UNSET
    )
    complete: Annotated[bool, Meta(description="False if the beginning is no longer in the log.")]
    languages: Annotated[
        list[str], Meta(description="The languages that were asked for; without any, every language there is.")
    ]
    utterances: list[TranscriptUtterance]


# ---------------------------------------------------------------- the other endpoints


class Language(Struct, frozen=True):
    """A language of the model."""

    tag: str
    name: str


class Languages(Struct, frozen=True):
    """What the loaded model can do."""

    languages: list[Language]
    options: Annotated[list[str], Meta(description="Which of glossary, context, formality the model takes.")]
    model: str
    family: str
    limits: Annotated[Limits, Meta(description="Those of `session.started`.")]
    targets: Targets = UNSET


class Health(Struct, frozen=True):
    """The process answers."""

    status: Literal["alive"]


class EngineReadiness(Struct, frozen=True):
    """How one of several engines is."""

    name: str
    status: Literal["ready", "restarting", "starting", "failed", "stopped", "draining"]
    reason: str
    running: Annotated[int, Meta(description="Translations that it works on.")]
    waiting: Annotated[int, Meta(description="Translations that wait inside it.")]
    seats: Annotated[int, Meta(description="Most translations that it works on together; 0 until that is known.")]


class Readiness(Struct, frozen=True):
    """Whether the gateway accepts translations now. `reason` says to people what is not well; empty if all is."""

    status: Literal["ready", "restarting", "starting", "failed", "draining"]
    reason: str
    running: Annotated[int, Meta(description="Translations in the engine.")]
    waiting: Annotated[int, Meta(description="Translations waiting for their turn.")]
    auth: Annotated[
        Literal["token", "none", "insecure_open"],
        Meta(
            description="Who is let in: whoever has a `token`, or everybody (`insecure_open`: other machines too)."
        ),
    ]
    engines: Annotated[
        list[EngineReadiness] | UnsetType, Meta(description="Where there are several engines: each of them.")
    ] = UNSET


class Problem(Struct, frozen=True):
    """An error in the format of RFC 9457. Program against `code`, which is the same as on the WebSocket."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    field: Annotated[str | None, Meta(description="The offending field, such as `texts[2]`.")] = None
    retryable: bool = False
    retry_after_ms: int | None = None


# ---------------------------------------------------------------- errors


def problem(error: GatewayError) -> Problem:
    """An error of the tree as a problem."""
    return Problem(
        type=f"/errors/{error.code}",
        title=title(error.code),
        status=error.http_status,
        detail=error.message,
        code=error.code,
        field=error.field,
        retryable=error.retryable,
        retry_after_ms=error.retry_after_ms,
    )


def status_problem(status: HTTPStatus, detail: str) -> Problem:
    """A problem that only HTTP has."""
    return Problem("about:blank", status.phrase, status, detail, status_code(status))


def status_code(status: HTTPStatus) -> str:
    """The `code` of a problem that only HTTP has."""
    return status.phrase.lower().replace(" ", "_")


def status_meaning(status: HTTPStatus) -> ErrorMeaning:
    """The meaning of a problem that only HTTP has."""
    return ErrorMeaning(status_code(status), status.phrase, status, False, HTTP_STATUSES[status])
