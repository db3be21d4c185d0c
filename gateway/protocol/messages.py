"""The wire protocol v1: every message as a struct, tagged by `type`.

Knows: names, types and meaning of fields; `/asyncapi.json` is generated from here and nothing else.
Must not know: encodings (see `codec`), limits and order (see `session`), sockets.

Unknown fields are ignored by design, so that a newer client can talk to an older gateway.
Every value-level rule (limits, known languages) is the session's business, where it becomes an `error`
that names the field; types alone are checked while decoding.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from gateway.domain.engine import Formality
from gateway.domain.log import Timings
from gateway.domain.sessions import Stability
from gateway.protocol.limits import Limits

__all__ = [
    "Caption",
    "ClientMessage",
    "Error",
    "Participant",
    "ParticipantJoined",
    "ParticipantLeft",
    "ParticipantUpdated",
    "Ping",
    "Pong",
    "Resume",
    "ServerMessage",
    "SessionDraining",
    "SessionEnd",
    "SessionStart",
    "SessionStarted",
    "SessionUpdate",
    "SessionUpdated",
    "Timings",
    "TranslationDelta",
    "TranslationFailed",
    "TranslationFinal",
    "UtteranceAccepted",
    "UtteranceCancel",
    "UtteranceCancelled",
    "UtteranceFinal",
    "UtterancePartial",
    "client_messages",
    "server_messages",
]

Lang = Annotated[str, Meta(description="BCP 47 language tag; a region is ignored (`en-US` is `en`).")]
Rev = Annotated[int, Meta(ge=0, description="Revision of the utterance, growing.")]
Millis = Annotated[int, Meta(ge=0)]
Stable = Annotated[
    Stability,
    Meta(
        description="What is shown of the translation of an utterance that is still being said: `live` the "
        "earliest words, whose tail may change; `stable` only text that is never taken back; `final` nothing."
    ),
]
Glossary = Annotated[
    dict[str, dict[str, str]],
    Meta(description="Target language → source term → target term."),
]


# ---------------------------------------------------------------- client → gateway


class ClientStruct(Struct, frozen=True, tag_field="type"):
    """Base of everything a client may send."""


class Resume(Struct, frozen=True):
    """Where a lost connection ended: the session, and the position (`epoch`, `offset`) it had received."""

    session: str
    epoch: str
    offset: Annotated[int, Meta(ge=0)]

    def __repr__(self) -> str:
        return f"Resume(session=…, epoch={self.epoch!r}, offset={self.offset})"  # a secret in no log


class SessionStart(ClientStruct, frozen=True, tag="session.start"):
    """The first message: who is here, what they speak and which languages they read."""

    reads: list[Lang]
    speaks: Lang | None = None
    meeting: str | None = None
    name: str | None = None
    stability: Stable = "live"
    glossary: Glossary | None = None
    context: str | None = None
    formality: Formality | None = None
    resume: Resume | None = None
    originals: Annotated[bool, Meta(description="Captions of every language, not of `reads` alone.")] = False


class SessionUpdate(ClientStruct, frozen=True, tag="session.update"):
    """Changes in force from the next utterance on, `stability` and `originals` at once; a field left out stays."""

    reads: list[Lang] | None = None
    speaks: Lang | None = None
    stability: Stable | None = None
    glossary: Glossary | None = None
    context: str | None = None
    formality: Formality | None = None
    originals: bool | None = None


class UtterancePartial(ClientStruct, frozen=True, tag="utterance.partial"):
    """What the recogniser believes so far; it may still change."""

    id: str
    rev: Rev
    text: str
    lang: Lang | None = None
    start_ms: Millis | None = None
    end_ms: Millis | None = None


class UtteranceFinal(ClientStruct, frozen=True, tag="utterance.final"):
    """The last word on an utterance; once accepted, its translation is the gateway's duty."""

    id: str
    rev: Rev
    text: str
    lang: Lang | None = None
    start_ms: Millis | None = None
    end_ms: Millis | None = None


class UtteranceCancel(ClientStruct, frozen=True, tag="utterance.cancel"):
    """Stop translating this utterance; what is still missing arrives as `translation.failed`.

    One that is not final is given up: everybody gets `utterance.cancelled`.
    """

    id: str


class Ping(ClientStruct, frozen=True, tag="ping"):
    """Answered by `pong` with the same nonce, in order with everything else."""

    nonce: str = ""


class SessionEnd(ClientStruct, frozen=True, tag="session.end"):
    """No more utterances: the gateway finishes the accepted ones, then closes with 1000."""


ClientMessage = (
    SessionStart | SessionUpdate | UtterancePartial | UtteranceFinal | UtteranceCancel | Ping | SessionEnd
)


# ---------------------------------------------------------------- gateway → client


class ServerStruct(Struct, frozen=True, tag_field="type"):
    """Base of everything the gateway sends."""


class Participant(Struct, frozen=True):
    """Somebody who is in the meeting; `participant` is their public id there."""

    participant: str
    name: str
    speaks: str | None
    reads: list[str]


class SessionStarted(ServerStruct, frozen=True, tag="session.started"):
    """The session is open; what it missed, or the recent transcript, follows, then the live stream.

    Text of unfinished translations that was received before is void: it is sent anew.
    """

    session: Annotated[str, Meta(description="Secret of this client: whoever has it can resume the session.")]
    participant: Annotated[str, Meta(description="The public id of this session in the meeting.")]
    meeting: str
    epoch: str
    offset: Annotated[int, Meta(description="The position behind which publications follow.")]
    recovered: Annotated[
        bool | None,
        Meta(description="Whether all that was missed follows; null where nothing was to be resumed."),
    ]
    languages: list[str]
    participants: Annotated[list[Participant], Meta(description="Who else is here, as far as announced.")]
    options: Annotated[list[str], Meta(description="Which of glossary, context, formality the model takes.")]
    limits: Limits

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__ if name != "session")
        return f"SessionStarted(session=…, {', '.join(shown)})"  # a secret in no log


class SessionUpdated(ServerStruct, frozen=True, tag="session.updated"):
    """A `session.update` was taken: what is in force from the next utterance."""

    reads: list[str]
    speaks: str | None
    stability: Stable
    originals: bool = False


class UtteranceAccepted(ServerStruct, frozen=True, tag="utterance.accepted"):
    """The final utterance is now the gateway's duty; the client may forget it."""

    id: str
    rev: int
    offset: int


class UtteranceCancelled(ServerStruct, frozen=True, tag="utterance.cancelled"):
    """An utterance that was being said will not be finished: take what there is of it off the screen."""

    participant: str
    utterance: str


class Caption(ServerStruct, frozen=True, tag="caption"):
    """What was said, in its own language."""

    participant: str
    utterance: str
    speaker: str
    lang: str
    rev: int
    text: str
    final: bool
    offset: Annotated[int | None, Meta(description="Position in the log; null for what may still change.")] = None


class TranslationDelta(ServerStruct, frozen=True, tag="translation.delta"):
    """New text: append `committed` for good, then show `tentative` in place of the previous tentative."""

    participant: str
    utterance: str
    lang: str
    rev: int
    committed: str
    tentative: str = ""


class TranslationFinal(ServerStruct, frozen=True, tag="translation.final"):
    """The whole translation; replaces whatever deltas showed."""

    participant: str
    utterance: str
    speaker: str
    lang: str
    rev: int
    text: str
    offset: int
    timings: Timings
    tokens: int
    truncated: Annotated[bool, Meta(description="The output limit cut the translation short.")] = False


class TranslationFailed(ServerStruct, frozen=True, tag="translation.failed"):
    """There will be no translation of this accepted utterance into `lang`, and why."""

    participant: str
    utterance: str
    speaker: str
    lang: str
    rev: int
    code: str
    message: str
    offset: int


class ParticipantJoined(ServerStruct, frozen=True, tag="participant.joined"):
    """Somebody came into the meeting."""

    participant: str
    name: str
    speaks: str | None
    reads: list[str]


class ParticipantUpdated(ServerStruct, frozen=True, tag="participant.updated"):
    """Somebody speaks or reads other languages than before."""

    participant: str
    name: str
    speaks: str | None
    reads: list[str]


class ParticipantLeft(ServerStruct, frozen=True, tag="participant.left"):
    """Somebody left the meeting, or lost their connection and did not come back in time."""

    participant: str
    name: str
    speaks: str | None
    reads: list[str]


class SessionDraining(ServerStruct, frozen=True, tag="session.draining"):
    """The gateway is leaving: accepted work is finished, for at most `deadline_ms`; reconnect."""

    deadline_ms: int


class Error(ServerStruct, frozen=True, tag="error"):
    """Something was refused. The session lives on unless the connection is closed right after."""

    code: str
    message: str
    retryable: bool = False
    retry_after_ms: int | None = None
    utterance: str | None = None
    field: str | None = None


class Pong(ServerStruct, frozen=True, tag="pong"):
    """The answer to `ping`."""

    nonce: str = ""


ServerMessage = (
    SessionStarted
    | SessionUpdated
    | UtteranceAccepted
    | UtteranceCancelled
    | Caption
    | TranslationDelta
    | TranslationFinal
    | TranslationFailed
    | ParticipantJoined
    | ParticipantUpdated
    | ParticipantLeft
    | SessionDraining
    | Error
    | Pong
)


def client_messages() -> tuple[type[ClientStruct], ...]:
    """Every message a client may send, in the order of the documentation."""
    return tuple(ClientStruct.__subclasses__())


def server_messages() -> tuple[type[ServerStruct], ...]:
    """Every message the gateway may send, in the order of the documentation."""
    return tuple(ServerStruct.__subclasses__())
