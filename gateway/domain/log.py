"""What a meeting's log holds, as frozen values.

Knows: utterances, their translations, their order, and how much of them is kept.
Must not know: the wire, clocks, where a log is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from gateway.domain.engine import Confidence, Formality, TranslationOptions

# What identifies an utterance in its meeting: (participant, utterance id).
UtteranceKey = tuple[str, str]


# Between the id of an utterance and the number of a segment of it: the first one has no number.
_SEGMENT = "~"


def segment_id(id: str, number: int) -> str:
    """The id of a segment of an utterance, which counts from 1."""
    return id if number == 1 else f"{id}{_SEGMENT}{number}"


def whole_id(id: str) -> str:
    """The id of the utterance, of which this is the id of a segment."""
    return id.rpartition(_SEGMENT)[0] if is_segment_id(id) else id


def is_segment_id(id: str) -> bool:
    """Whether it looks like the id of a later segment; no client may choose such a one."""
    _, mark, number = id.rpartition(_SEGMENT)
    return mark != "" and number.isascii() and number.isdecimal()


def segment_number(id: str) -> int:
    """The number in the id of a segment, from 1."""
    return int(id.rpartition(_SEGMENT)[2]) if is_segment_id(id) else 1


# Context grows to twice this many texts and is then cut back to it: a window that slid by one on every text would
# change the start of the prompt each time and defeat the engine's prefix cache.
CONTEXT_TEXTS = 4


def cut_context(texts: list[str]) -> None:
    """Before a text is added to those said before, oldest first: forget the oldest of too many."""
    if len(texts) >= 2 * CONTEXT_TEXTS:
        del texts[:-CONTEXT_TEXTS]


class Utterance(Struct, frozen=True):
    """One thing said, at one revision."""

    # Chosen by the client; unique for its participant.
    id: str
    rev: int
    text: str
    # Normalised language tag.
    lang: str
    # Public id, in this meeting, of the participant who said it.
    participant: str
    # Name of the participant.
    speaker: str
    final: bool
    # Position in the speaker's own audio, in milliseconds. None if the client does not know it.
    start_ms: int | None = None
    end_ms: int | None = None
    # Target language → its (source term, target term) pairs.
    glossary: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    # What was said before, oldest first; the last are earlier segments of the same utterance.
    context: tuple[str, ...] = ()
    formality: Formality | None = None
    # Whether its language was detected.
    detected: bool = False
    # Span that it belongs to (W3C Trace Context): at first the client's, once accepted the gateway's own.
    # Empty: it is not traced.
    traceparent: str = ""
    # The id that its client gave to the whole, where this is a later segment of it.
    part_of: str = ""
    # Whether another segment follows; the last one closes the utterance.
    continues: bool = False
    # Ids of earlier utterances of the same participant in whose place it stands. Without a text, they are taken
    # back.
    replaces: tuple[str, ...] = ()
    # Where it stands then: offset of what was first said there, and when that was, in milliseconds since 1970.
    # 0: where its own `Said` is.
    place: int = 0
    placed_ms: int = 0
    # Who says it, as `grants.person_of`; empty: not known.
    person: str = ""
    # Participant who sends it, where that is not `participant` but the same person; empty: it is.
    sender: str = ""

    @property
    def sent_by(self) -> str:
        """The participant whose session is told what becomes of it."""
        return self.sender or self.participant

    @property
    def key(self) -> UtteranceKey:
        return (self.participant, self.id)

    @property
    def whole(self) -> UtteranceKey:
        """The key of what its client calls one utterance; all its segments have the same."""
        return (self.participant, self.part_of or self.id)

    @property
    def is_taking_back(self) -> bool:
        """Whether nothing is said in place of what it replaces. There is nothing to translate then."""
        return bool(self.replaces) and not self.text.strip()

    @property
    def is_segment(self) -> bool:
        """Whether it is a part of what its client calls one utterance."""
        return self.continues or self.part_of != ""

    def options_for(self, lang: str) -> TranslationOptions:
        """The options for translating this utterance into `lang`."""
        return TranslationOptions(
            glossary=dict(self.glossary).get(lang, ()), context=self.context, formality=self.formality
        )


class Timings(Struct, frozen=True):
    """Milliseconds from the acceptance of the utterance: to its turn, its first token, its end."""

    queue_ms: Annotated[float, Meta(description="Until its turn in the engine.")]
    first_token_ms: Annotated[float, Meta(description="Until its first token.")]
    total_ms: Annotated[float, Meta(description="Until its last token.")]


class Said(Struct, frozen=True, tag="said"):
    """A final utterance was accepted."""

    utterance: Utterance
    # Target languages: those that were read at that time.
    languages: tuple[str, ...] = ()


class Translated(Struct, frozen=True, tag="translated"):
    """The translation of an accepted utterance into one language is complete."""

    participant: str
    utterance: str
    speaker: str
    lang: str
    rev: int
    text: str
    timings: Timings
    tokens: int
    # Whether the output limit cut it short.
    truncated: bool = False
    # Offset of the `Said` that it belongs to.
    said: int = 0
    # The language that was spoken, if it was detected.
    source: str = ""
    # None: the model has no calibration.
    confidence: Confidence | None = None

    @property
    def unsure(self) -> bool:
        """Whether a reader should be warned."""
        return self.confidence is not None and self.confidence.unsure


class Untranslated(Struct, frozen=True, tag="untranslated"):
    """There will be no translation of an accepted utterance into this language."""

    participant: str
    utterance: str
    speaker: str
    lang: str
    rev: int
    # Error code, see `gateway.domain.errors`.
    code: str
    # One sentence for people.
    message: str
    # Offset of the `Said` that it belongs to.
    said: int = 0


LoggedEvent = Said | Translated | Untranslated


class Publication(Struct, frozen=True):
    """An entry of a meeting's log."""

    # 1, 2, 3 … within the log's epoch.
    offset: int
    # Unix time of the append, in milliseconds.
    at_ms: int
    event: LoggedEvent


class Title(Struct, frozen=True):
    """What a meeting is called."""

    # One line; empty: it has no title.
    text: str = ""
    # Name of the host who has set it; may be empty.
    held_by: str = ""

    def __str__(self) -> str:
        return " · ".join(part for part in (self.text, self.held_by) if part)


NO_TITLE = Title()


class Page(Struct, frozen=True):
    """Some consecutive publications of a meeting's log, oldest first."""

    # Changes when a log was lost and a new one began. Empty for a meeting that has no log.
    epoch: str
    # Offset of the oldest publication that is still held; `last + 1` if none is held.
    first: int
    # Offset of the newest publication that was ever appended.
    last: int
    publications: tuple[Publication, ...] = ()
    # Whether the meeting is recorded: if not, hardly anything is kept of it, for `event_log.unrecorded_s`.
    recorded: bool = True
    title: Title = NO_TITLE


class Logged(Struct, frozen=True):
    """An utterance that a meeting's log holds."""

    utterance: Utterance
    # Position of its `Said` in the log.
    offset: int
    # As in `Publication`.
    at_ms: int

    @property
    def place(self) -> tuple[int, int]:
        """Offset of what was first said where it stands, and when that was, in milliseconds since 1970."""
        said = self.utterance
        return (said.place, said.placed_ms) if said.place else (self.offset, self.at_ms)


class Accepted(Struct, frozen=True):
    """What became of a final utterance that was offered to a meeting's log."""

    # Offset of its `Said`.
    offset: int
    # The languages in which it is promised and has no outcome yet.
    unfinished: tuple[str, ...] = ()
    # Those of them in which the gateway that offered it is to translate it.
    owned: tuple[str, ...] = ()
    # Whether it was in the log before.
    known: bool = False
    # Offset of the newest publication at that time.
    last: int = 0


class Unfinished(Struct, frozen=True):
    """An accepted utterance, and languages in which it is promised and has no outcome yet."""

    # The meeting's key.
    meeting: str
    utterance: Utterance
    # Offset of its `Said`, which the log may not hold any more.
    said: int
    languages: tuple[str, ...]
    # One more than gateways have died with it, while it was perhaps being translated there.
    tries: int = 1
    # Who is charged for the meeting's log.
    account: str = ""


class Owed(Struct, frozen=True):
    """An accepted utterance that is not finished, and what became of it so far."""

    utterance: Utterance
    # Offset of its `Said`, which the log may not hold any more.
    said: int
    # Those in which it is promised and has no outcome yet, sorted.
    languages: tuple[str, ...]
    # Any other language with an outcome → whether that is a translation.
    outcomes: Mapping[str, bool] = {}


class Recent(Struct, frozen=True):
    """The newest utterances of a meeting, and those before them that are not finished."""

    # Begins with the oldest of the newest utterances; what does not fit into it follows: see `EventLog.read`.
    page: Page
    # When `page.last` was the newest publication; oldest first.
    unfinished: tuple[Owed, ...] = ()


# One meeting holds at most `LogBounds.max_bytes` divided by this, so that it cannot push out all others.
MEETING_SHARE = 8


class LogBounds(Struct, frozen=True, kw_only=True):
    """How much of meetings is kept, and for how long."""

    # Of one meeting.
    max_publications: int
    # Seconds after which a publication is trimmed, and the same for a meeting that is not recorded.
    keep_s: float
    unrecorded_s: float
    # Whether a meeting is recorded if its first participant does not say.
    record: bool
    # Estimated bytes of all meetings together; of an account without a bound of its own.
    max_bytes: int

    @property
    def meeting_bytes(self) -> int:
        """Of one meeting."""
        return self.max_bytes // MEETING_SHARE


class LogUsage(Struct, frozen=True):
    """What the logs of all meetings hold."""

    publications: int
    # Estimated memory.
    bytes: int
    # The part of each account.
    bytes_by_account: Mapping[str, int]


class LoggedMeeting(Struct, frozen=True):
    """What one meeting's log holds."""

    # The meeting's key.
    meeting: str
    publications: int
    # Estimated memory.
    bytes: int
    # Unix time of the newest append, in milliseconds. None: nothing is held.
    newest_ms: int | None = None
