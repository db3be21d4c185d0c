"""The life of one session as a state table: messages in, effects out. An effect says what the session asks for.

Knows: which message is legal when, every limit, and what each message asks for.
Must not know: clocks (the time is an argument), tasks, sockets, the engine. It does not know either whether
an effect was carried out: the caller reports back through `refused` and `settled`.

A session outlives its connection. A new connection has a `SessionState` of its own, which reads `session.start` as
any other; where that resumes a session that was kept, it takes over what the earlier one knew (`inherit`).

State            session.start  update / refresh / partial / final / …    session.end     all settled
AWAITING_START   → OPEN         error session_not_started                 → CLOSED        —
OPEN             error          handled                                   → ENDING        stays OPEN
ENDING           error          cancel and ping handled, rest an error    error           → CLOSED
CLOSED           ignored        ignored                                   ignored         —
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from hashlib import blake2b
from typing import TypeGuard, cast

from msgspec import Struct
from msgspec.structs import replace

from gateway.domain.close_codes import CloseCode
from gateway.domain.engine import EngineProfile, Formality
from gateway.domain.errors import (
    Cancelled,
    GatewayError,
    InvalidValue,
    Muted,
    ProtocolError,
    RateLimited,
    SessionAlreadyStarted,
    SessionEnding,
    SessionNotStarted,
    StaleRevision,
    TokenExpired,
    TooManyInFlight,
    UnknownUtterance,
    UnsupportedOption,
    UtteranceFinished,
)
from gateway.domain.grants import OPEN
from gateway.domain.languages import AUTO
from gateway.domain.log import Utterance, whole_id
from gateway.domain.sessions import Preferences, Stability
from gateway.protocol import checks
from gateway.protocol.from_domain import error_message
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    ClientMessage,
    MeetingEnd,
    MeetingLock,
    MeetingTitle,
    ParticipantMute,
    ParticipantRemove,
    Ping,
    Pong,
    Resume,
    ServerMessage,
    SessionEnd,
    SessionRefresh,
    SessionStart,
    SessionUpdate,
    SessionUpdated,
    UtteranceCancel,
    UtteranceFinal,
    UtterancePartial,
)
from gateway.protocol.rate_limit import TokenBucket
from gateway.sessions.grants import as_host, check_host, check_meeting, check_reads, check_role, check_speaks
from gateway.sessions.rules import Options, SessionRules
from gateway.translation.spoken_language import DETECTED_CHARS, SpokenLanguages


class Reply(Struct, frozen=True):
    """Send this to this session's client alone."""

    message: ServerMessage


class Join(Struct, frozen=True):
    """Enter a meeting, a private one if it is None, or come back to one; send `session.started`."""

    meeting: str | None
    name: str
    speaks: str | None
    reads: tuple[str, ...]
    stability: Stability = "live"
    resume: Resume | None = None
    originals: bool = False
    # Whether the meeting is to be recorded; None: as it is, or as the gateway is set to.
    record: bool | None = None
    # Its languages that the gateway does not have → why: only a session that has them already goes on with them.
    gone: Mapping[str, GatewayError] = {}
    # A secret of the person's, where no token says who it is.
    guest: str | None = None
    # What the meeting is called, if it has no title yet.
    title: str = ""

    def __repr__(self) -> str:
        return f"Join(meeting={self.meeting!r}, …)"  # the secret must not be logged


class Update(Preferences, frozen=True):
    """Other languages are spoken or read, or what is said is read in another way, from now on."""


class Refresh(Struct, frozen=True):
    """Verify a new token and go on with what it allows; send `session.refreshed`."""

    token: str

    def __repr__(self) -> str:
        return "Refresh(token=…)"  # it must not be logged


class Show(Struct, frozen=True):
    """Show a partial utterance to the readers of its language, and translate it for the others.

    first: nothing of it was shown before. last: its final follows.
    """

    utterance: Utterance
    first: bool = False
    last: bool = False


class Accept(Struct, frozen=True):
    """Take on a final. again: it was accepted before, and some of its translations failed and are missing."""

    utterance: Utterance
    again: bool = False


class Acknowledge(Struct, frozen=True):
    """A final that was accepted before was sent again: acknowledge it once more, do nothing else."""

    id: str
    rev: int


class Cancel(Struct, frozen=True):
    """Stop the translations of an accepted utterance."""

    id: str


class Withdraw(Struct, frozen=True):
    """An utterance that was begun goes from every screen; after `wait_s`, unless it goes on until then."""

    id: str
    wait_s: float = 0.0


class Remove(Struct, frozen=True):
    """A participant has to leave the meeting, and stays out with the same token."""

    participant: str


class Mute(Struct, frozen=True):
    """What a participant says is refused, or is taken again."""

    participant: str
    muted: bool


class Lock(Struct, frozen=True):
    """Let nobody else in, or let them in again; tell everybody."""

    locked: bool


class Entitle(Struct, frozen=True):
    """The meeting is called so, empty: in no way; all are told."""

    title: str


class EndMeeting(Struct, frozen=True):
    """End the meeting for everyone in it."""


class Close(Struct, frozen=True):
    """Close the connection, after everything before it was sent."""

    code: CloseCode
    reason: GatewayError | None = None


Effect = (
    Reply
    | Join
    | Refresh
    | Update
    | Show
    | Accept
    | Acknowledge
    | Cancel
    | Withdraw
    | Remove
    | Mute
    | Lock
    | Entitle
    | EndMeeting
    | Close
)


# Utterances that are remembered after they settled.
REMEMBERED_UTTERANCES = 1_000


class KnownUtterance(Struct):
    """What is remembered of one utterance."""

    rev: int
    # A digest of the final text: a thousand long texts a session would be megabytes. None: it is still being said.
    final: bytes | None = None
    failed: bool = False
    # Whether readers may have been shown it before it was final.
    begun: bool = False

    def is_final_as(self, text: str) -> bool:
        return self.final == _digest(text)


class KnownUtterances:
    """The utterances of one session by id, and which of them are in flight: accepted and not settled."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, KnownUtterance] = OrderedDict()
        self._in_flight: set[str] = set()
        # Whether another process had the session: what was begun there is not known.
        self.has_gaps = False

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    def is_in_flight(self, id: str) -> bool:
        return id in self._in_flight

    def get(self, id: str) -> KnownUtterance | None:
        return self._known.get(id)

    def may_be_shown(self, id: str) -> bool:
        """Whether readers may have been shown it, and no final of it was accepted."""
        known = self.get(id)
        return self.has_gaps if known is None else known.final is None

    def revised(self, id: str, rev: int) -> None:
        self._remember(id, KnownUtterance(rev, begun=True))

    def finished(self, id: str, rev: int, text: str, *, failed: bool = False, in_flight: bool = True) -> None:
        """Its final text was accepted."""
        begun = (known := self.get(id)) is not None and known.begun
        self._remember(id, KnownUtterance(rev, _digest(text), failed, begun))
        if in_flight:
            self._in_flight.add(id)

    def expect(self, id: str) -> None:
        """It is in flight, and nothing else is known of it."""
        self._in_flight.add(id)

    def begun_in_part(self, id: str) -> None:
        """Some of it was accepted, and it goes on: it is in flight until it is given up, or final and settled."""
        if self.get(id) is None:
            self._remember(id, KnownUtterance(0, begun=True))
        self.expect(id)

    def open(self) -> list[str]:
        """Those that are still being said, as far as is known."""
        return [id for id, known in self._known.items() if known.final is None]

    def begun_in_flight(self) -> list[str]:
        """Those of which some is accepted, and which are not final."""
        return [id for id in self._in_flight if (known := self.get(id)) is not None and known.final is None]

    def settled(self, id: str, *, failed: bool) -> None:
        """It has ended in every language. failed: in some, its translation failed."""
        self._in_flight.discard(id)
        if failed and (known := self._known.get(id)) is not None:
            known.failed = True

    def lose_in_flight(self) -> None:
        """What is in flight was never said, as far as anybody knows."""
        for id in self._in_flight:
            self._known.pop(id, None)
        self._in_flight.clear()

    def refused(self, id: str) -> None:
        """Its final text was not accepted after all."""
        if (known := self.get(id)) is not None and known.begun:
            self.revised(id, known.rev)
        else:
            self.forget(id)

    def forget(self, id: str) -> None:
        """As if it had never been said."""
        self._known.pop(id, None)

    def _remember(self, id: str, known: KnownUtterance) -> None:
        self._known[id] = known
        self._known.move_to_end(id)
        if len(self._known) > REMEMBERED_UTTERANCES:
            # The oldest that is settled; those in flight are few, by the limit on them.
            del self._known[next(known_id for known_id in self._known if known_id not in self._in_flight)]


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


# The languages of a text, among those that are given, with their probabilities, the likeliest first.
Rank = Callable[[str, Sequence[str]], Sequence[tuple[str, float]]]

# A final that was refused for the moment may come again so long after that; then what was shown of it goes.
_AGAIN_S = 10.0

# Messages that one counts as which costs more than others: everybody in the meeting is told of a `session.update`,
# a token is verified, and all gateways are told of what a host does.
_HEAVY = {SessionUpdate, SessionRefresh, ParticipantRemove, ParticipantMute, MeetingLock, MeetingTitle, MeetingEnd}
_HEAVY_COST = 10


class State(Enum):
    AWAITING_START = "awaiting start"
    OPEN = "open"
    ENDING = "ending"
    CLOSED = "closed"


class SessionState:
    """One client's session. Every method returns the effects to carry out, in order, and never raises."""

    def __init__(self, limits: Limits, rank: Rank = lambda _text, _languages: ()) -> None:
        self.state = State.AWAITING_START
        self.name = ""
        # Given by the meeting, once joined; the second as `grants.person_of`.
        self.participant = self.person = ""
        self.reads: tuple[str, ...] = ()
        self.speaks: str | None = None
        self.stability: Stability = "live"
        self.originals = False
        # What the client's newest token allows; every message is held against it.
        self.grant = OPEN
        # Whether a host has muted it.
        self.is_muted: Callable[[], bool] = lambda: False
        # Why it ends, once its time is over; not as an error, which comes to name one utterance.
        self._why = ""
        self._limits = limits
        self._rules = SessionRules(limits)
        self._bucket = TokenBucket(limits.messages_per_s, limits.messages_burst)
        self._options = Options()
        self._known = KnownUtterances()
        # Whether the language of utterances that do not tell theirs is detected, and was before the last update.
        self._detects = self._detected = False
        # Whether the client was told that its times in the audio are left out.
        self._told_position = False
        self._rank = rank
        self._languages = SpokenLanguages()

    @property
    def in_flight(self) -> int:
        """Accepted final utterances that are not settled yet."""
        return self._known.in_flight

    def inherit(self, earlier: SessionState) -> None:
        """Go on where the session of an earlier connection was: nothing it accepted is taken twice."""
        self._known, self._languages = earlier._known, earlier._languages
        self._options.history = earlier._options.history

    def recall(self, utterance: Utterance, *, failed: bool, in_flight: bool) -> None:
        """An utterance of another process, the oldest first. failed: in some language, with none still to come."""
        self._known.finished(utterance.id, utterance.rev, utterance.text, failed=failed, in_flight=in_flight)
        self._languages.recall(utterance.id, utterance.lang)

    def recall_in_flight(self, utterance: Utterance) -> None:
        """Some segment of an utterance that another process accepted is not finished. utterance: the last one."""
        self._known.expect(utterance.whole[1])

    def recalled(self) -> None:
        """Another process had this session, and that is all that is known of what was said."""
        self._known.has_gaps = True

    # ------------------------------------------------------------ what may happen

    def unreadable(self, error: GatewayError, now_s: float) -> list[Effect]:
        """A frame came that is not a message, and why; it counts against the rate like any other."""
        if self.state is State.CLOSED:
            return []
        id, is_final = error.utterance, isinstance(error, ProtocolError) and error.of_final
        try:
            self._pace(now_s)
        except RateLimited as limited:
            limited.utterance, error = id, limited
        given_up = self.give_up(id, error) if id is not None and is_final else []
        return [Reply(error_message(error)), *given_up]

    def receive(self, message: ClientMessage, now_s: float, profile: EngineProfile | None) -> list[Effect]:
        """A message came from the client at `now_s`. `profile` is None while the engine is loading."""
        if self.state is State.CLOSED:
            return []
        try:
            self._pace(now_s, _HEAVY_COST if type(message) in _HEAVY else 1)
            self._rules.profile = profile
            rule = _TABLE[self.state].get(type(message), _REFUSAL[self.state])
            effects = rule(self, message)
            if isinstance(message, UtterancePartial | UtteranceFinal):
                effects += self._note_position(message)
            return effects
        except GatewayError as error:
            match message:
                case UtterancePartial(id=id) | UtteranceFinal(id=id) | UtteranceCancel(id=id):
                    if len(id) <= self._limits.id_chars:
                        error.for_utterance(id)
            given_up = self.give_up(message.id, error) if _gives_up(message, error) else []
            return [Reply(error_message(error)), *given_up]

    def give_up(self, utterance_id: str, error: GatewayError) -> list[Effect]:
        """Its final was refused: what is shown of it goes, after a while where the final may come again."""
        if self.state is State.CLOSED or not self._known.may_be_shown(utterance_id):
            return []
        if error.retryable:
            return [Withdraw(utterance_id, (error.retry_after_ms or 0) / 1_000 + _AGAIN_S)]
        return self._withdraw(utterance_id)

    def withdraw_all(self) -> list[Effect]:
        """Everything that is still being said is given up."""
        return [effect for id in self._known.open() for effect in self._withdraw(id)]

    def not_updated(self, before: Update) -> None:
        """An `Update` could not be carried out: what was in force still is."""
        self._apply(before)
        self._detects = self._detected

    def not_joined(self) -> None:
        """A `Join` could not be carried out: the client may try again."""
        self.state = State.AWAITING_START

    def refused(self, accept: Accept, *, in_part: bool = False) -> list[Effect]:
        """An `Accept` failed: the client may send the final again. in_part: some of its segments were accepted."""
        if self._options.history:
            self._options.history.pop()
        if in_part:
            self._known.refused(accept.utterance.id)
            return self.accepted_in_part(accept.utterance.id)
        effects = self.settled(accept.utterance.id, failed=accept.again)
        if not accept.again:
            self._known.refused(accept.utterance.id)
        return effects

    def accepted_in_part(self, utterance_id: str) -> list[Effect]:
        """Some segments of an utterance that goes on were accepted."""
        if (known := self._known.get(utterance_id)) is None or known.final is None:
            self._known.begun_in_part(utterance_id)
        # A session that ends takes nothing more.
        return [Withdraw(utterance_id)] if self.state is State.ENDING else []

    def settled(self, utterance_id: str, *, failed: bool = False) -> list[Effect]:
        """Every language of an accepted utterance has ended; where one failed, the client may send it again."""
        self._known.settled(utterance_id, failed=failed)
        if self.state is State.ENDING and not self.in_flight:
            return self._close()
        return []

    def lose_in_flight(self) -> None:
        """What was accepted and is not settled is lost: the client may send it again."""
        self._known.lose_in_flight()

    def expire(self) -> list[Effect]:
        """The token's time is over: nothing more is taken, and it closes once what was accepted is settled."""
        if self.state is not State.OPEN:
            return []
        self._why = "The session's time is over; a new token resumes it."
        self.state = State.ENDING
        return [] if self.in_flight else self._close()

    def disconnected(self) -> None:
        """The client is gone; nothing more will be received or sent on this connection."""
        self.state = State.CLOSED

    # ------------------------------------------------------------ one method per message

    def _on_start(self, message: SessionStart) -> list[Effect]:
        rules = self._rules
        if message.meeting is not None:
            checks.check_meeting_id(message.meeting, self._limits)
        name = self.grant.name or message.name or ""
        checks.check_length(name, self._limits.name_chars, "name")
        if message.resume is not None:
            for field, value in (("session", message.resume.session), ("epoch", message.resume.epoch)):
                checks.check_length(value, self._limits.id_chars, f"resume.{field}")
        rules.begin(resumes=message.resume is not None)
        reads = rules.languages(message.reads)
        speaks, detects = rules.speaks(message.speaks, self.grant) if message.speaks is not None else (None, False)
        check_reads(self.grant, reads, originals=message.originals)
        meeting = check_meeting(self.grant, message.meeting)
        for field, secret in (("host", message.host), ("guest", message.guest)):
            if secret is not None:
                checks.check_length(secret, self._limits.id_chars, field)
        notes = self._take_options(message.glossary, message.context, message.formality)
        self.grant = as_host(self.grant, meeting, message.host)
        self.name, self._detects = name, detects
        self._apply(Update(speaks, reads, message.stability, message.originals))
        self.state = State.OPEN
        resume, originals, record = message.resume, message.originals, message.record
        gone, guest, title = rules.gone, message.guest, self._title(message.title or "")
        join = Join(meeting, name, speaks, reads, message.stability, resume, originals, record, gone, guest, title)
        return [join, *notes]

    def _on_update(self, message: SessionUpdate) -> list[Effect]:
        rules = self._rules
        reads = rules.languages(message.reads) if message.reads is not None else self.reads
        kept = self.speaks, self._detects
        speaks, detects = rules.speaks(message.speaks, self.grant) if message.speaks is not None else kept
        notes = self._take_options(message.glossary, message.context, message.formality)
        stability = message.stability or self.stability
        originals = message.originals if message.originals is not None else self.originals
        check_reads(self.grant, reads, originals=originals)
        update = Update(speaks, reads, stability, originals)
        self._apply(update)
        self._detected, self._detects = self._detects, detects
        updated = SessionUpdated(list(reads), AUTO if detects else speaks, stability, originals)
        return [update, Reply(updated), *notes]

    def _on_partial(self, message: UtterancePartial) -> list[Effect]:
        lang = self._spoken(message)
        known = self._known.get(message.id)
        if known is not None and known.final is not None:
            raise StaleRevision("This utterance is final already; the partial was dropped.", field="rev")
        if known is not None and message.rev <= known.rev:
            raise StaleRevision(f"Revision {known.rev} was received before; this one was dropped.", field="rev")
        self._check_muted()
        first = not self._known.may_be_shown(message.id)
        self._known.revised(message.id, message.rev)
        return [Show(self._utterance(message, lang), first)]

    def _on_final(self, message: UtteranceFinal) -> list[Effect]:
        known = self._known.get(message.id)
        if message.replaces is not None:
            if known is not None and known.final is None:
                raise InvalidValue("A correction has an id of its own, and no partials.", field="replaces")
        elif message.id and not message.text.strip() and (known is None or known.final is None):
            check_role(self.grant, "speak", "id")
            raise Cancelled("A final without a text gives the utterance up.")
        lang = self._spoken(message)
        again = False
        if known is not None and known.final is not None:
            if not known.is_final_as(message.text):
                raise UtteranceFinished(
                    "This utterance is final already, with another text; use a new id.", field="id"
                )
            if not known.failed:
                return [Acknowledge(message.id, known.rev)]
            again = True
        elif known is not None and message.rev < known.rev:
            raise StaleRevision(f"Revision {known.rev} was received before.", field="rev")
        self._check_muted()
        unfinished = self.in_flight - len(self._known.begun_in_flight())
        if unfinished >= self._limits.utterances_in_flight:
            raise TooManyInFlight(
                f"{unfinished} utterances of this session are not finished yet.", retry_after_ms=500
            )
        self._options.cut_history()
        if message.replaces is not None and self._speaks_for(message) == self.participant:
            self._forget_text(whole_id(message.replaces))
        shown = self._languages.shown(message.id)
        utterance = self._utterance(message, lang)
        self._known.finished(message.id, message.rev, message.text)
        # The end of a long talk is context enough.
        self._options.history.append(message.text[-self._limits.text_chars :])
        if known is not None and shown not in (None, utterance.lang):
            # Those who were shown it as another language learn that it is not.
            return [Show(replace(utterance, final=False), last=True), Accept(utterance, again)]
        return [Accept(utterance, again)]

    def _on_refresh(self, message: SessionRefresh) -> list[Effect]:
        return [Refresh(message.token)]

    def _on_cancel(self, message: UtteranceCancel) -> list[Effect]:
        check_role(self.grant, "speak", "id")
        is_in_flight, known = self._known.is_in_flight(message.id), self._known.get(message.id)
        if is_in_flight and (known is None or known.final is not None):
            return [Cancel(message.id)]
        if not is_in_flight and not self._known.may_be_shown(message.id):
            raise UnknownUtterance("No utterance with this id is being said or translated.", field="id")
        return self._withdraw(message.id)

    def _on_remove(self, message: ParticipantRemove) -> list[Effect]:
        checks.check_length(message.participant, self._limits.id_chars, "participant")
        check_host(self.grant)
        if message.participant == self.participant:
            raise InvalidValue("This is your own session; session.end ends it.", field="participant")
        return [Remove(message.participant)]

    def _on_mute(self, message: ParticipantMute) -> list[Effect]:
        checks.check_length(message.participant, self._limits.id_chars, "participant")
        check_host(self.grant)
        if message.participant == self.participant:
            raise InvalidValue("This is your own session.", field="participant")
        return [Mute(message.participant, message.muted)]

    def _on_lock(self, message: MeetingLock) -> list[Effect]:
        check_host(self.grant)
        return [Lock(message.locked)]

    def _on_title(self, message: MeetingTitle) -> list[Effect]:
        title = self._title(message.title)
        check_host(self.grant)
        return [Entitle(title)]

    def _title(self, text: str) -> str:
        """Raises `LimitExceeded`."""
        checks.check_length(text, self._limits.name_chars, "title")
        return checks.one_line(text)

    def _on_meeting_end(self, _message: MeetingEnd) -> list[Effect]:
        check_host(self.grant)
        return [EndMeeting()]

    def _on_ping(self, message: Ping) -> list[Effect]:
        checks.check_length(message.nonce, self._limits.id_chars, "nonce")
        return [Reply(Pong(message.nonce))]

    def _on_end(self, _message: SessionEnd) -> list[Effect]:
        self.state = State.ENDING
        # What is accepted of an utterance that will not be final is translated before the session closes.
        begun = self._known.begun_in_flight()
        return [Withdraw(id) for id in begun] if self.in_flight else self._close()

    def _refuse_before_start(self, _message: ClientMessage) -> list[Effect]:
        raise SessionNotStarted("The first message has to be session.start.")

    def _refuse_second_start(self, _message: ClientMessage) -> list[Effect]:
        raise SessionAlreadyStarted("This session is started; use session.update.")

    def _refuse_while_ending(self, _message: ClientMessage) -> list[Effect]:
        raise TokenExpired(self._why) if self._why else SessionEnding("session.end came; nothing new is taken.")

    # ------------------------------------------------------------ rules

    def _spoken(self, message: UtterancePartial | UtteranceFinal) -> str:
        """The utterance's language, or `AUTO`, all checked."""
        check_role(self.grant, "speak", "id")
        lang = self._rules.utterance(message, AUTO if self._detects else self.speaks)
        if lang != AUTO:
            check_speaks(self.grant, lang, "lang")
        return lang

    def _check_muted(self) -> None:
        """Raises `Muted`."""
        if self.is_muted():
            raise Muted("The host has muted you.", field="id")

    def _note_position(self, message: UtterancePartial | UtteranceFinal) -> list[Effect]:
        """Tell the client once that its times make no sense. It names no utterance: none is refused for that."""
        given = message.start_ms, message.end_ms
        if self._told_position or given == (None, None) or checks.position(*given) != (None, None):
            return []
        self._told_position = True
        why = "start_ms and end_ms are not the beginning and the end of something; such times are left out."
        return [Reply(error_message(UnsupportedOption(why, field="start_ms")))]

    def _forget_text(self, utterance_id: str) -> None:
        """What is said next is not translated with the words of an utterance that is corrected or taken back."""
        if (known := self._known.get(utterance_id)) is not None:
            kept = [text for text in self._options.history if not known.is_final_as(text)]
            self._options.history = kept

    def _withdraw(self, utterance_id: str) -> list[Effect]:
        self._known.forget(utterance_id)
        self._languages.forget(utterance_id)
        return [Withdraw(utterance_id)]

    def _apply(self, update: Update) -> None:
        self.speaks, self.reads = update.speaks, update.reads
        if update.speaks is not None:
            self._languages.set_told(update.speaks)
        self._rules.held = update.reads
        self.stability, self.originals = update.stability, update.originals

    def _pace(self, now_s: float, cost: int = 1) -> None:
        if (wait_s := self._bucket.take(now_s, cost)) > 0:
            wait_ms = max(1, round(wait_s * 1000))
            raise RateLimited(
                f"More than {self._limits.messages_per_s} messages a second.", retry_after_ms=wait_ms
            )

    def _close(self) -> list[Effect]:
        self.state = State.CLOSED
        return [Close(CloseCode.TOKEN_EXPIRED, TokenExpired(self._why)) if self._why else Close(CloseCode.NORMAL)]

    def _speaks_for(self, message: UtterancePartial | UtteranceFinal) -> str:
        """The participant who said it: of a correction perhaps another session of the same person."""
        if isinstance(message, UtteranceFinal) and message.replaces is not None and message.participant:
            return message.participant
        return self.participant

    def _utterance(self, message: UtterancePartial | UtteranceFinal, lang: str) -> Utterance:
        """lang: as told, or `AUTO`."""
        is_final, detected = isinstance(message, UtteranceFinal), lang == AUTO
        if detected:
            languages = self._rules.detectable(self.grant.speaks)
            ranked = self._rank(message.text[-DETECTED_CHARS:], self._rules.supported().languages)
            find = self._languages.final if is_final else self._languages.partial
            lang = find(message.id, message.text, ranked, languages)
        elif is_final:
            self._languages.spoke(lang)
        return self._options.utterance(
            message,
            self._rules.supported().options,
            lang=lang,
            participant=(participant := self._speaks_for(message)),
            sender="" if participant == self.participant else self.participant,
            person=self.person,
            speaker=self.name,
            final=is_final,
            detected=detected,
        )

    def _take_options(
        self, glossary: dict[str, dict[str, str]] | None, context: str | None, formality: Formality | None
    ) -> list[Effect]:
        """Check all, then take all; returns a note for each option that the model cannot take."""
        errors = self._options.take(self._rules, glossary, context, formality)
        return [Reply(error_message(error)) for error in errors]


def _gives_up(message: ClientMessage, error: GatewayError) -> TypeGuard[UtterancePartial | UtteranceFinal]:
    """Whether what was shown of an utterance goes because this was refused."""
    return isinstance(message, UtteranceFinal) or (
        isinstance(message, UtterancePartial) and isinstance(error, Muted)
    )


_Rule = Callable[[SessionState, ClientMessage], list[Effect]]


def _rule(method: object) -> _Rule:
    # Each row of the table pairs a message type with the method that takes just that type.
    return cast(_Rule, method)


_TABLE: dict[State, dict[type, _Rule]] = {
    State.AWAITING_START: {
        SessionStart: _rule(SessionState._on_start),
        SessionEnd: _rule(SessionState._on_end),
    },
    State.OPEN: {
        SessionRefresh: _rule(SessionState._on_refresh),
        SessionUpdate: _rule(SessionState._on_update),
        UtterancePartial: _rule(SessionState._on_partial),
        UtteranceFinal: _rule(SessionState._on_final),
        UtteranceCancel: _rule(SessionState._on_cancel),
        ParticipantRemove: _rule(SessionState._on_remove),
        ParticipantMute: _rule(SessionState._on_mute),
        MeetingLock: _rule(SessionState._on_lock),
        MeetingTitle: _rule(SessionState._on_title),
        MeetingEnd: _rule(SessionState._on_meeting_end),
        Ping: _rule(SessionState._on_ping),
        SessionEnd: _rule(SessionState._on_end),
    },
    State.ENDING: {
        UtteranceCancel: _rule(SessionState._on_cancel),
        Ping: _rule(SessionState._on_ping),
    },
}
_REFUSAL: dict[State, _Rule] = {
    State.AWAITING_START: SessionState._refuse_before_start,
    State.OPEN: SessionState._refuse_second_start,
    State.ENDING: SessionState._refuse_while_ending,
}
