"""What a meeting's log holds, as frozen values.

Knows: utterances, their translations, and their order. Must not know: the wire, clocks, where a log is kept.
"""

from __future__ import annotations

from msgspec import Struct

from gateway.domain.engine import Formality, TranslationOptions

__all__ = [
    "LoggedEvent",
    "Page",
    "Publication",
    "Said",
    "Timings",
    "Translated",
    "Untranslated",
    "Utterance",
    "UtteranceKey",
]

# What identifies an utterance in its meeting: (participant, utterance id).
UtteranceKey = tuple[str, str]


class Utterance(Struct, frozen=True):
    """One thing said, at one revision."""

    # Chosen by the client; unique for its participant.
    id: str
    rev: int
    text: str
    # Normalised language tag.
    lang: str
    # Public id of the participant who said it, in this meeting.
    participant: str
    # Their name.
    speaker: str
    final: bool
    # Position in the speaker's own audio, milliseconds, where the client knows it.
    start_ms: int | None = None
    end_ms: int | None = None
    # Target language → its (source term, target term) pairs.
    glossary: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    # What was said before, oldest first.
    context: tuple[str, ...] = ()
    formality: Formality | None = None

    @property
    def key(self) -> UtteranceKey:
        return (self.participant, self.id)

    def options_for(self, lang: str) -> TranslationOptions:
        """The options of a translation of this utterance into `lang`."""
        return TranslationOptions(
            glossary=dict(self.glossary).get(lang, ()), context=self.context, formality=self.formality
        )


class Timings(Struct, frozen=True):
    """Milliseconds from the acceptance of the utterance: to its turn, its first token, its end."""

    queue_ms: float
    first_token_ms: float
    total_ms: float


class Said(Struct, frozen=True, tag="said"):
    """A final utterance was accepted."""

    utterance: Utterance
    # Those it is to be translated into: what somebody read at that time.
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
    # Offset of its `Said`.
    said: int = 0


class Untranslated(Struct, frozen=True, tag="untranslated"):
    """There will be no translation of an accepted utterance into this language."""

    participant: str
    utterance: str
    speaker: str
    lang: str
    rev: int
    # Of the error tree.
    code: str
    # For people.
    message: str
    # Offset of its `Said`.
    said: int = 0


LoggedEvent = Said | Translated | Untranslated


class Publication(Struct, frozen=True):
    """An entry of a meeting's log."""

    # 1, 2, 3 … within the log's epoch.
    offset: int
    # Unix time of the append, milliseconds.
    at_ms: int
    event: LoggedEvent


class Page(Struct, frozen=True):
    """A stretch of a meeting's log, oldest first."""

    # Another one once a log was lost and begun again. Empty for a meeting that has no log.
    epoch: str
    # Offset of the oldest publication still held; `last + 1` where none is held.
    first: int
    # Offset of the newest publication ever made.
    last: int
    publications: tuple[Publication, ...] = ()
