"""What happens inside the gateway, as frozen values.

Knows: utterances, translation requests, what an engine says about them, and what a meeting's log holds.
Must not know: the wire (see `messages`), clocks, or who is waiting.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal

from msgspec import Struct

__all__ = [
    "EngineCapacity",
    "EngineHealth",
    "EngineProfile",
    "EngineState",
    "FinishReason",
    "Formality",
    "LoggedEvent",
    "Page",
    "Publication",
    "Said",
    "Stability",
    "Timings",
    "TokenEvent",
    "Translated",
    "TranslationOptions",
    "TranslationRequest",
    "Untranslated",
    "Utterance",
]

Formality = Literal["formal", "informal"]

# What a reader is shown of an utterance that is still being said: the earliest words, whose tail may change; only
# what is never taken back; or nothing before the whole sentence.
Stability = Literal["live", "stable", "final"]


class TranslationOptions(Struct, frozen=True):
    """How to translate, beyond what and into which language.

    glossary: (source term, target term) pairs for one target language.
    context: what was said before, oldest first; background, never to be translated itself.
    """

    glossary: tuple[tuple[str, str], ...] = ()
    context: tuple[str, ...] = ()
    formality: Formality | None = None


class Utterance(Struct, frozen=True):
    """One thing said, at one revision. `id` is the client's, unique for its participant; `lang` is normalised.

    participant: the public id of who said it in this meeting; speaker: their name.
    start_ms / end_ms: position in the speaker's own audio, milliseconds, where the client knows it.
    glossary: target language → its (source term, target term) pairs.
    """

    id: str
    rev: int
    text: str
    lang: str
    participant: str
    speaker: str
    final: bool
    start_ms: int | None = None
    end_ms: int | None = None
    glossary: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    context: tuple[str, ...] = ()
    formality: Formality | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What identifies it in its meeting: (participant, id)."""
        return (self.participant, self.id)

    def options_for(self, lang: str) -> TranslationOptions:
        """The options of a translation of this utterance into `lang`."""
        return TranslationOptions(
            glossary=dict(self.glossary).get(lang, ()), context=self.context, formality=self.formality
        )


class TranslationRequest(Struct, frozen=True):
    """One text into one language: the unit of work an engine takes.

    id: unique within the gateway; the engine's own request id.
    final: false while the speaker is still talking; models that were told how to treat that are told.
    priority: lower first, as in vLLM's priority scheduling.
    prefix: what readers were shown for good; the translation begins with it.
    draft: a guess at what follows `prefix`. It changes what the translation costs, never the translation.
    tolerance: the prefix is dropped where the model finds one of its tokens less likely than its own choice by
    more than so many nats (natural logarithm of the ratio of the probabilities); null always keeps it. What
    follows is up to `final`: the generation goes on from there, or ends as `REJECTED`.
    """

    id: str
    text: str
    source: str
    target: str
    options: TranslationOptions = TranslationOptions()
    final: bool = True
    priority: int = 0
    prefix: str = ""
    draft: str = ""
    tolerance: float | None = None


class FinishReason(Enum):
    """Why a generation ended: the model ended it, the output limit did, or the model would not have `prefix`."""

    STOP = "stop"
    LENGTH = "length"
    REJECTED = "rejected"


class TokenEvent(Struct, frozen=True):
    """New output of one generation: `text` to append (may be empty while a character is incomplete).

    tokens: how many tokens were generated for this event (an engine may merge several while its reader lags).
    finish: set on the last event only.
    reused: how many tokens of `text` were taken over from the request's prefix and draft, not generated.
    prompt_tokens: what the engine was asked with, prefix and draft included; cached_tokens: how many of them its
    prefix cache held. Both are known on the last event.
    """

    text: str
    tokens: int
    finish: FinishReason | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    reused: int = 0


class Timings(Struct, frozen=True):
    """Milliseconds from the acceptance of the utterance: to its turn, its first token, its end."""

    queue_ms: float
    first_token_ms: float
    total_ms: float


class Said(Struct, frozen=True, tag="said"):
    """A final utterance was accepted. languages: those it is to be translated into, read then by somebody."""

    utterance: Utterance
    languages: tuple[str, ...] = ()


class Translated(Struct, frozen=True, tag="translated"):
    """The translation of an accepted utterance into one language is complete.

    said: the offset of its `Said`. truncated: the output limit cut it short.
    """

    participant: str
    utterance: str
    speaker: str
    lang: str
    rev: int
    text: str
    timings: Timings
    tokens: int
    truncated: bool = False
    said: int = 0


class Untranslated(Struct, frozen=True, tag="untranslated"):
    """There will be no translation into this language. `code` is of the error tree, `message` for people.

    said: the offset of its `Said`.
    """

    participant: str
    utterance: str
    speaker: str
    lang: str
    rev: int
    code: str
    message: str
    said: int = 0


LoggedEvent = Said | Translated | Untranslated


class Publication(Struct, frozen=True):
    """An entry of a meeting's log.

    offset: 1, 2, 3 … within the log's epoch. at_ms: Unix time of the append, milliseconds.
    """

    offset: int
    at_ms: int
    event: LoggedEvent


class Page(Struct, frozen=True):
    """A stretch of a meeting's log, oldest first.

    epoch: changes when the log was lost and begun anew; empty for a meeting that has no log.
    first, last: offsets of the oldest publication still held and of the newest ever made; `first` is `last + 1`
    where none is held.
    """

    epoch: str
    first: int
    last: int
    publications: tuple[Publication, ...] = ()


class EngineState(Enum):
    """`RESTARTING`: it was ready, died, and is being built again; work is accepted and waits."""

    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    FAILED = "failed"
    STOPPED = "stopped"


class EngineHealth(Struct, frozen=True):
    """`reason` is a sentence for people: what the engine is doing, or why it failed."""

    state: EngineState
    reason: str = ""


class EngineCapacity(Struct, frozen=True):
    """Sequences: how many the engine runs together, runs now, and holds waiting (its own view)."""

    max_running: int
    running: int
    waiting: int


class EngineProfile(Struct, frozen=True):
    """What the loaded model can do.

    languages: normalised tags it translates between, in the order to show them.
    options: which of `glossary`, `context`, `formality` its prompt can take.
    max_text_tokens: longest input it can take, source tokens.
    """

    model: str
    family: str
    languages: tuple[str, ...]
    options: frozenset[str] = frozenset()
    max_text_tokens: int = 512
