"""The wire protocol v1: every message as a struct, tagged by `type`.

Knows: names, types and meaning of fields. `/asyncapi.json` is generated from this module alone.
Must not know: encodings (`protocol.codec`), limits (`protocol.checks`), the order of messages
(`sessions.machine`), sockets.

Unknown fields are ignored by design, so that a newer client can talk to an older gateway.
Decoding checks types only. The session checks values (limits, known languages) and answers with an `error` that
names the field.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct

from gateway.domain.engine import Formality
from gateway.domain.log import Timings
from gateway.protocol.fields import Glossary, Lang, Millis, Offset, Rev, Stable, Targets, Token
from gateway.protocol.limits import Limits

__all__ = [
    "Caption",
    "ClientMessage",
    "Error",
    "LanguagesChanged",
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
    "SessionRefresh",
    "SessionRefreshed",
    "SessionStart",
    "SessionStarted",
    "SessionUpdate",
    "SessionUpdated",
    "Timings",
    "TokenExpiring",
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

# ---------------------------------------------------------------- client → gateway


class ClientStruct(Struct, frozen=True, tag_field="type"):
    """Base of every message that a client may send."""


class Resume(Struct, frozen=True):
    """The session to resume, and the position (`epoch`, `offset`) up to which it has received everything."""

    session: str
    epoch: str
    offset: Offset

    def __repr__(self) -> str:
        return f"Resume(session=…, epoch={self.epoch!r}, offset={self.offset})"  # the secret must not be logged


class SessionStart(ClientStruct, frozen=True, tag="session.start"):
    """The first message: who joins, what they speak and which languages they read."""

    reads: list[Lang]
    speaks: Lang | None = None
    meeting: str | None = None
    name: str | None = None
    stability: Stable = "live"
    glossary: Glossary | None = None
    context: str | None = None
    formality: Formality | None = None
    resume: Resume | None = None
    originals: Annotated[bool, Meta(description="Captions in every language, not only those in `reads`.")] = False
    token: Token | None = None

    def __repr__(self) -> str:
        # The token must not be logged, nor what the meeting is about.
        return f"SessionStart(meeting={self.meeting!r}, reads={self.reads!r}, speaks={self.speaks!r}, …)"


class SessionRefresh(ClientStruct, frozen=True, tag="session.refresh"):
    """Goes on beyond the first token's time, with a new one for the same person and meeting."""

    token: Token

    def __repr__(self) -> str:
        return "SessionRefresh(token=…)"  # it must not be logged


class SessionUpdate(ClientStruct, frozen=True, tag="session.update"):
    """Changes the session. `stability` and `originals` change at once, everything else from the next utterance on.

    A field that is left out keeps its value.
    """

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
    """The final text of an utterance. Once it is accepted, the gateway is responsible for its translation."""

    id: str
    rev: Rev
    text: str
    lang: Lang | None = None
    start_ms: Millis | None = None
    end_ms: Millis | None = None


class UtteranceCancel(ClientStruct, frozen=True, tag="utterance.cancel"):
    """Stop translating this utterance; each missing translation ends as `translation.failed`.

    An utterance that is not final is discarded: everybody gets `utterance.cancelled`.
    """

    id: str


class Ping(ClientStruct, frozen=True, tag="ping"):
    """Answered by `pong` with the same nonce, after everything that was sent before."""

    nonce: str = ""


class SessionEnd(ClientStruct, frozen=True, tag="session.end"):
    """No more utterances: the gateway finishes the accepted ones, then closes with 1000."""


ClientMessage = (
    SessionStart
    | SessionRefresh
    | SessionUpdate
    | UtterancePartial
    | UtteranceFinal
    | UtteranceCancel
    | Ping
    | SessionEnd
)


# ---------------------------------------------------------------- gateway → client


class ServerStruct(Struct, frozen=True, tag_field="type"):
    """Base of every message that the gateway sends."""


class Participant(Struct, frozen=True):
    """Somebody in the meeting; `participant` is their public id there."""

    participant: str
    name: str
    speaks: str | None
    reads: list[str]


class SessionStarted(ServerStruct, frozen=True, tag="session.started"):
    """The session is open. What it missed, or the recent transcript, follows; then the live stream.

    Discard text of unfinished translations that was received before: it is sent again from its beginning.
    """

    session: Annotated[str, Meta(description="A secret: whoever has it can resume the session.")]
    participant: Annotated[str, Meta(description="The public id of this session in the meeting.")]
    meeting: str
    epoch: str
    offset: Annotated[int, Meta(description="Publications after this position follow.")]
    recovered: Annotated[
        bool | None,
        Meta(description="Whether everything that was missed follows; null if no session was to be resumed."),
    ]
    languages: list[str]
    participants: Annotated[list[Participant], Meta(description="Who else is here, as far as announced.")]
    options: Annotated[list[str], Meta(description="Which of glossary, context, formality the model takes.")]
    limits: Limits
    targets: Targets = UNSET

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__ if name != "session")
        return f"SessionStarted(session=…, {', '.join(shown)})"  # the secret must not be logged


class SessionUpdated(ServerStruct, frozen=True, tag="session.updated"):
    """A `session.update` was accepted; these values are in force from the next utterance on."""

    reads: list[str]
    speaks: str | None
    stability: Stable
    originals: bool = False


class LanguagesChanged(ServerStruct, frozen=True, tag="languages.changed"):
    """The gateway has other engines now: these fields replace those of `session.started`.

    What the session reads and speaks stays as it is, also where nothing translates it any more.
    """

    languages: list[str]
    options: Annotated[list[str], Meta(description="Which of glossary, context, formality the models take.")]
    targets: Targets = UNSET


class UtteranceAccepted(ServerStruct, frozen=True, tag="utterance.accepted"):
    """The gateway is now responsible for the final utterance; the client may forget it."""

    id: str
    rev: int
    offset: int


class UtteranceCancelled(ServerStruct, frozen=True, tag="utterance.cancelled"):
    """An unfinished utterance was given up: remove its text from the screen."""

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
    offset: Annotated[int | None, Meta(description="Position in the log; null if the text may still change.")] = (
        None
    )


class TranslationDelta(ServerStruct, frozen=True, tag="translation.delta"):
    """New text: append `committed`, then show `tentative` in place of the previous tentative text."""

    participant: str
    utterance: str
    lang: str
    rev: int
    committed: str
    tentative: str = ""


class TranslationFinal(ServerStruct, frozen=True, tag="translation.final"):
    """The whole translation; it replaces the text of the deltas."""

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
    """This accepted utterance is not translated into `lang`; `code` and `message` say why."""

    participant: str
    utterance: str
    speaker: str
    lang: str
    rev: int
    code: str
    message: str
    offset: int


class ParticipantJoined(ServerStruct, frozen=True, tag="participant.joined"):
    """Somebody joined the meeting."""

    participant: str
    name: str
    speaks: str | None
    reads: list[str]


class ParticipantUpdated(ServerStruct, frozen=True, tag="participant.updated"):
    """Somebody changed the languages that they speak or read."""

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


class TokenExpiring(ServerStruct, frozen=True, tag="token.expiring"):
    """The session ends in `expires_in_ms`, unless a new token comes with `session.refresh`."""

    expires_in_ms: int


class SessionRefreshed(ServerStruct, frozen=True, tag="session.refreshed"):
    """The new token was accepted; the session may last for `expires_in_ms` more, null: without an end."""

    expires_in_ms: int | None


class SessionDraining(ServerStruct, frozen=True, tag="session.draining"):
    """The gateway is shutting down and finishes accepted work for at most `deadline_ms`; then reconnect."""

    deadline_ms: int


class Error(ServerStruct, frozen=True, tag="error"):
    """Something was refused. The session goes on unless the connection is closed right after."""

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
    | LanguagesChanged
    | UtteranceAccepted
    | UtteranceCancelled
    | Caption
    | TranslationDelta
    | TranslationFinal
    | TranslationFailed
    | ParticipantJoined
    | ParticipantUpdated
    | ParticipantLeft
    | TokenExpiring
    | SessionRefreshed
    | SessionDraining
    | Error
    | Pong
)


def client_messages() -> tuple[type[ClientStruct], ...]:
    """Every message that a client may send, in the order of the documentation."""
    return tuple(ClientStruct.__subclasses__())


def server_messages() -> tuple[type[ServerStruct], ...]:
    """Every message that the gateway may send, in the order of the documentation."""
    return tuple(ServerStruct.__subclasses__())
