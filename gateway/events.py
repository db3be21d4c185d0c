"""What happens inside the gateway, as frozen values.

Knows: utterances, translation requests and what an engine says about them.
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
    "TokenEvent",
    "TranslationOptions",
    "TranslationRequest",
    "Utterance",
]

Formality = Literal["formal", "informal"]


class TranslationOptions(Struct, frozen=True):
    """How to translate, beyond what and into which language.

    glossary: (source term, target term) pairs for one target language.
    context: what was said before, oldest first; background, never to be translated itself.
    """

    glossary: tuple[tuple[str, str], ...] = ()
    context: tuple[str, ...] = ()
    formality: Formality | None = None


class Utterance(Struct, frozen=True):
    """One thing said, at one revision. `id` is the client's; `lang` is normalised.

    start_ms / end_ms: position in the speaker's own audio, milliseconds, where the client knows it.
    glossary: target language → its (source term, target term) pairs.
    """

    id: str
    rev: int
    text: str
    lang: str
    speaker: str
    final: bool
    start_ms: int | None = None
    end_ms: int | None = None
    glossary: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    context: tuple[str, ...] = ()
    formality: Formality | None = None

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
    """

    id: str
    text: str
    source: str
    target: str
    options: TranslationOptions = TranslationOptions()
    final: bool = True
    priority: int = 0


class FinishReason(Enum):
    """Why a generation ended: the model ended it, or the output limit did."""

    STOP = "stop"
    LENGTH = "length"


class TokenEvent(Struct, frozen=True):
    """New output of one generation: `text` to append (may be empty while a character is incomplete).

    tokens: how many tokens this event stands for (an engine may merge several while its reader lags).
    finish: set on the last event only.
    cached_tokens: prompt tokens served from the prefix cache, known on the last event.
    """

    text: str
    tokens: int
    finish: FinishReason | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0


class EngineState(Enum):
    STARTING = "starting"
    READY = "ready"
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
