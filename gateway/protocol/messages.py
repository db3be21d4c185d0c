"""The wire protocol v1: every message as a struct, tagged by `type`.

Knows: names, types and meaning of fields. `/asyncapi.json` is generated from this module alone. Must not know:
encodings (`protocol.codec`), limits (`protocol.checks`), the order of messages (`sessions.machine`), sockets.

Unknown fields are ignored, so that a newer client can talk to an older gateway. Decoding checks types only. The
session checks values (limits, known languages) and answers with an `error` that names the field.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Struct

from gateway.domain.log import Timings as Timings
from gateway.protocol import fields
from gateway.protocol.limits import Limits, about

# ---------------------------------------------------------------- client → gateway


class ClientStruct(Struct, frozen=True, tag_field="type"):
    """Base of every message that a client may send."""


class Resume(Struct, frozen=True):
    """The session to resume, and the position (`epoch`, `offset`) up to which it has received everything."""

    session: fields.Secret
    epoch: fields.Epoch
    offset: fields.Offset

    def __repr__(self) -> str:
        return f"Resume(session=…, epoch={self.epoch!r}, offset={self.offset})"  # the secret must not be logged


class SessionStart(ClientStruct, frozen=True, tag="session.start"):
    """The first message: who joins, what they speak and which languages they read."""

    reads: fields.Reads
    speaks: fields.Speaks | None = None
    meeting: fields.MeetingId | None = None
    name: fields.Name | None = None
    stability: fields.Stable = "live"
    glossary: fields.Glossary | None = None
    context: fields.Context | None = None
    formality: fields.Formal | None = None
    resume: Annotated[Resume | None, about("The session to go on with.")] = None
    originals: fields.Originals = False
    token: fields.Token | None = None
    record: fields.Record | None = None
    host: fields.HostKey | None = None
    guest: fields.Guest | None = None
    title: fields.MeetingTitle | None = None

    def __repr__(self) -> str:
        # The token must not be logged, nor what the meeting is about.
        return f"SessionStart(meeting={self.meeting!r}, reads={self.reads!r}, speaks={self.speaks!r}, …)"


class SessionRefresh(ClientStruct, frozen=True, tag="session.refresh"):
    """Goes on beyond the first token's time, with a new one for the same person and meeting."""

    token: fields.Token

    def __repr__(self) -> str:
        return "SessionRefresh(token=…)"  # it must not be logged


class SessionUpdate(ClientStruct, frozen=True, tag="session.update"):
    """Changes the session. `stability` and `originals` change at once, `reads` from the next revision on, all else
    from the next utterance on.

    A field that is left out keeps its value.
    """

    reads: fields.Reads | None = None
    speaks: fields.Speaks | None = None
    stability: fields.Stable | None = None
    glossary: fields.Glossary | None = None
    context: fields.Context | None = None
    formality: fields.Formal | None = None
    originals: fields.Originals | None = None


class UtterancePartial(ClientStruct, frozen=True, tag="utterance.partial"):
    """What the recogniser believes so far; it may still change."""

    id: fields.OwnUtterance
    rev: fields.Rev
    text: fields.Text
    lang: fields.UtteranceLang | None = None
    start_ms: fields.StartMillis | None = None
    end_ms: fields.EndMillis | None = None


class UtteranceFinal(ClientStruct, frozen=True, tag="utterance.final"):
    """The final text of an utterance. Once it is accepted, the gateway is responsible for its translation."""

    id: fields.OwnUtterance
    rev: fields.Rev
    text: fields.Text
    lang: fields.UtteranceLang | None = None
    start_ms: fields.StartMillis | None = None
    end_ms: fields.EndMillis | None = None
    traceparent: fields.Traceparent | None = None
    replaces: fields.Replaces | None = None
    participant: fields.EarlierSelf | None = None


class UtteranceCancel(ClientStruct, frozen=True, tag="utterance.cancel"):
    """Stop translating this utterance; each missing translation ends as `translation.failed`.

    An utterance that is not final is discarded: everybody gets `utterance.cancelled`.
    """

    id: Annotated[str, about("Your utterance.")]


class ParticipantRemove(ClientStruct, frozen=True, tag="participant.remove"):
    """From a host: this participant leaves the meeting and does not come back with the same token.

    What they said stays, and what was accepted is translated. They get `removed`.
    """

    participant: fields.Another


class ParticipantMute(ClientStruct, frozen=True, tag="participant.mute"):
    """From a host: what this participant says is refused (`muted`) until that is undone, also if they come back.

    What they are saying goes from every screen; what was accepted stays. They get `session.muted`, all others
    `participant.updated`.
    """

    participant: fields.Another
    muted: fields.Mutes


class MeetingLock(ClientStruct, frozen=True, tag="meeting.lock"):
    """From a host: let nobody else in, or let them in again. All get `meeting.locked`."""

    locked: fields.Locks


class MeetingTitle(ClientStruct, frozen=True, tag="meeting.title"):
    """From a host: what the meeting is called. All get `meeting.titled`, and transcripts have it."""

    title: fields.NewTitle


class MeetingEnd(ClientStruct, frozen=True, tag="meeting.end"):
    """From a host: the meeting ends for everyone in it, who get `meeting_ended`.

    What was said stays, and what was accepted is translated.
    """


class Ping(ClientStruct, frozen=True, tag="ping"):
    """Answered by `pong` with the same nonce, after everything that was sent before."""

    nonce: fields.Nonce = ""


class SessionEnd(ClientStruct, frozen=True, tag="session.end"):
    """No more utterances: the gateway finishes the accepted ones, then closes with 1000."""


ClientMessage = (
    SessionStart
    | SessionRefresh
    | SessionUpdate
    | UtterancePartial
    | UtteranceFinal
    | UtteranceCancel
    | ParticipantRemove
    | ParticipantMute
    | MeetingLock
    | MeetingTitle
    | MeetingEnd
    | Ping
    | SessionEnd
)


# ---------------------------------------------------------------- gateway → client


class ServerStruct(Struct, frozen=True, tag_field="type"):
    """Base of every message that the gateway sends."""


class Participant(Struct, frozen=True):
    """Somebody in the meeting."""

    participant: fields.Who
    name: fields.TheirName
    speaks: fields.TheySpeak
    reads: fields.TheyRead
    person: fields.TheirPerson = UNSET
    muted: fields.TheyAreMuted = UNSET


class SessionStarted(ServerStruct, frozen=True, tag="session.started"):
    """The session is open. What it missed, or the recent transcript, follows; then the live stream.

    Discard text of unfinished translations that was received before: it is sent again from its beginning.
    """

    session: Annotated[str, about("A secret: whoever has it can resume the session.")]
    participant: Annotated[str, about("The public id of this session in the meeting.")]
    meeting: Annotated[str, about("The meeting's id, also of a private one.")]
    epoch: Annotated[str, about("The log that offsets count in.")]
    offset: Annotated[int, about("Publications after this position follow, as far as they are still kept then.")]
    recovered: Annotated[
        bool | None, about("Whether everything that was missed follows; null if no session was to be resumed.")
    ]
    languages: Annotated[list[str], about("What the model knows.")]
    participants: Annotated[list[Participant], about("Who else is here, as far as announced.")]
    options: Annotated[list[str], about("Which of glossary, context, formality the model takes.")]
    limits: Annotated[Limits, about("What the gateway accepts.")]
    targets: fields.Targets = UNSET
    record: fields.Recorded = UNSET
    host: fields.Host = UNSET
    locked: fields.Locked = UNSET
    muted: fields.YouAreMuted = UNSET
    person: fields.YourPerson = UNSET
    title: fields.TitleNow = UNSET
    held_by: fields.HeldBy = UNSET

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__ if name != "session")
        return f"SessionStarted(session=…, {', '.join(shown)})"  # the secret must not be logged


class SessionUpdated(ServerStruct, frozen=True, tag="session.updated"):
    """A `session.update` was accepted; these values are in force from the next utterance on."""

    reads: Annotated[list[str], about("Languages in which translations come.")]
    speaks: fields.SpeaksNow
    stability: fields.Stable
    originals: fields.Originals = False


class SessionMuted(ServerStruct, frozen=True, tag="session.muted"):
    """A host has muted you, or has undone it: what you say is refused until then."""

    muted: Annotated[bool, about("Whether you are muted now.")]


class LanguagesChanged(ServerStruct, frozen=True, tag="languages.changed"):
    """The gateway has other engines now: these fields replace those of `session.started`.

    What the session reads and speaks stays as it is, also where nothing translates it any more.
    """

    languages: Annotated[list[str], about("What the models know.")]
    options: Annotated[list[str], about("Which of glossary, context, formality the models take.")]
    targets: fields.Targets = UNSET


class UtteranceAccepted(ServerStruct, frozen=True, tag="utterance.accepted"):
    """The gateway is now responsible for the final utterance; the client may forget it."""

    id: Annotated[str, about("Your utterance.")]
    rev: Annotated[int, about("The revision that was accepted.")]
    offset: fields.Position
    lang: fields.DetectedLang = UNSET


class UtteranceCancelled(ServerStruct, frozen=True, tag="utterance.cancelled"):
    """An unfinished utterance was given up: remove its text from the screen."""

    participant: fields.Who
    utterance: fields.Utterance


class Caption(ServerStruct, frozen=True, tag="caption"):
    """What was said, in its own language."""

    participant: fields.Who
    utterance: fields.Utterance
    speaker: fields.Speaker
    lang: Annotated[str, about("The language that was spoken.")]
    rev: fields.SaidRev
    text: Annotated[str, about("All of the utterance so far.")]
    final: Annotated[bool, about("Whether the text is the last one of the utterance.")]
    offset: Annotated[int | None, about("Position in the log; null if the text may still change.")] = None
    at_ms: fields.AtMs = UNSET


class UtteranceReplaced(ServerStruct, frozen=True, tag="utterance.replaced"):
    """Utterances that are final were corrected or taken back by who said them; their translations count no more.

    Show `by`, of which caption and translations follow, in place of them, or at `place` if you do not show them;
    null: remove them. It may come again.
    """

    participant: fields.Who
    utterances: Annotated[list[str], about("Their ids, in the order in which they were said.")]
    by: Annotated[str | None, about("The id of the correction; null: they were taken back.")]
    place: fields.Place = UNSET
    at_ms: fields.PlacedMs = UNSET


class TranslationDelta(ServerStruct, frozen=True, tag="translation.delta"):
    """New text: append `committed`, then show `tentative` in place of the previous tentative text."""

    participant: fields.Who
    utterance: fields.Utterance
    lang: fields.Target
    rev: fields.SaidRev
    committed: Annotated[str, about("Is appended, and not taken back before the final.")]
    tentative: Annotated[str, about("Is shown after it, until the next delta.")] = ""


class TranslationFinal(ServerStruct, frozen=True, tag="translation.final"):
    """The whole translation; it replaces the text of the deltas."""

    participant: fields.Who
    utterance: fields.Utterance
    speaker: fields.Speaker
    lang: fields.Target
    rev: fields.SaidRev
    text: Annotated[str, about("The whole translation.")]
    offset: fields.Position
    timings: Annotated[Timings, about("How long it took.")]
    tokens: Annotated[int, about("How many tokens the model generated.")]
    truncated: Annotated[bool, about("The output limit cut the translation short.")] = False
    at_ms: fields.AtMs = UNSET
    source_lang: fields.DetectedLang = UNSET
    confidence: fields.Confidence = UNSET
    unsure: fields.Unsure = UNSET


class TranslationFailed(ServerStruct, frozen=True, tag="translation.failed"):
    """This accepted utterance is not translated into `lang`; `code` and `message` say why."""

    participant: fields.Who
    utterance: fields.Utterance
    speaker: fields.Speaker
    lang: fields.Target
    rev: fields.SaidRev
    code: fields.ErrorCode
    message: fields.ErrorText
    offset: fields.Position


class ParticipantJoined(ServerStruct, Participant, frozen=True, tag="participant.joined"):
    """Somebody joined the meeting."""


class ParticipantUpdated(ServerStruct, Participant, frozen=True, tag="participant.updated"):
    """Somebody changed the languages that they speak or read, or was muted, or may speak again."""


class ParticipantLeft(ServerStruct, Participant, frozen=True, tag="participant.left"):
    """Somebody left the meeting, or lost their connection and did not come back in time."""


class MeetingLocked(ServerStruct, frozen=True, tag="meeting.locked"):
    """A host has locked the meeting, so that nobody else is let in, or has opened it again, at every gateway."""

    locked: Annotated[bool, about("Whether the meeting is locked now.")]


class MeetingTitled(ServerStruct, frozen=True, tag="meeting.titled"):
    """The meeting is called so now."""

    title: Annotated[str, about("Empty: it has no title any more.")]
    held_by: Annotated[str, about("Name of the host who has set it; may be empty.")] = ""


class TokenExpiring(ServerStruct, frozen=True, tag="token.expiring"):
    """The session ends in `expires_in_ms`, unless a new token comes with `session.refresh`."""

    expires_in_ms: fields.TokenMillis


class SessionRefreshed(ServerStruct, frozen=True, tag="session.refreshed"):
    """The new token was accepted; the session may last for `expires_in_ms` more, null: without an end."""

    expires_in_ms: fields.TokenMillis | None


class SessionDraining(ServerStruct, frozen=True, tag="session.draining"):
    """The gateway is shutting down and finishes accepted work for at most `deadline_ms`; then reconnect."""

    deadline_ms: fields.DrainMillis


class Error(ServerStruct, frozen=True, tag="error"):
    """Something was refused. The session goes on unless the connection is closed right after."""

    code: fields.ErrorCode
    message: fields.ErrorText
    retryable: fields.Retryable = False
    retry_after_ms: fields.RetryMillis = None
    utterance: fields.ErrorUtterance = None
    field: fields.ErrorField = None


class Pong(ServerStruct, frozen=True, tag="pong"):
    """The answer to `ping`."""

    nonce: Annotated[str, about("That of the `ping`.")] = ""


ServerMessage = (
    SessionStarted
    | SessionUpdated
    | SessionMuted
    | LanguagesChanged
    | UtteranceAccepted
    | UtteranceCancelled
    | Caption
    | UtteranceReplaced
    | TranslationDelta
    | TranslationFinal
    | TranslationFailed
    | ParticipantJoined
    | ParticipantUpdated
    | ParticipantLeft
    | MeetingLocked
    | MeetingTitled
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
