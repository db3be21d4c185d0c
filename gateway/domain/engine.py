"""What the gateway asks of an engine and what the engine answers, as frozen values.

Knows: requests, generated text, capacity, health, what a model can do.
Must not know: which engine it is, who waits for the text, clocks.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Literal

from msgspec import Struct

from gateway.domain.pairs import Pair

Formality = Literal["formal", "informal"]


class TranslationOptions(Struct, frozen=True):
    """How to translate, beyond what and into which language."""

    # (source term, target term) pairs for the target language.
    glossary: tuple[tuple[str, str], ...] = ()
    # What was said before, oldest first: background that is not translated itself.
    context: tuple[str, ...] = ()
    formality: Formality | None = None


class TranslationRequest(Struct, frozen=True):
    """One text into one language: the unit of work of an engine."""

    # The engine's request id. Unique across gateways, because several gateways may share an engine.
    id: str
    text: str
    # Normalised language tags.
    source: str
    target: str
    options: TranslationOptions = TranslationOptions()
    # False while the speaker is still talking. Models that were trained on the difference are told.
    final: bool = True
    # Lower first, as in vLLM's priority scheduling.
    priority: int = 0
    # Committed text that readers have seen: the translation begins with it.
    prefix: str = ""
    # A guess at what follows `prefix`. It changes the cost of the translation, never its text.
    draft: str = ""
    # How much less likely than the model's own choice a token of the prefix may be, in nats (natural logarithm of
    # the ratio of the probabilities). Above it the prefix is dropped: a final is then generated from the
    # beginning, and a partial ends as `REJECTED` if the engine checks those. None always keeps the prefix.
    tolerance: float | None = None
    # Whose prompts it may share the engine's prefix cache with, such as a meeting: how fast a prompt is done tells
    # whether its beginning was in the cache. Empty: everybody's.
    cache_scope: str = ""
    # The lane of a pool on which it has a slot. Empty: whichever has room.
    lane: str = ""
    # Span that it belongs to (W3C Trace Context). Empty: it is not traced.
    traceparent: str = ""
    # Nothing else may run in the engine meanwhile: it may be what killed the last ones. The scheduler of a gateway
    # sees to it; an engine has to only where it serves several gateways.
    alone: bool = False


class FinishReason(Enum):
    """Why a generation ended."""

    # The model ended it.
    STOP = "stop"
    # It reached the output limit.
    LENGTH = "length"
    # The model does not accept the request's prefix.
    REJECTED = "rejected"


UNSURE_SIGN = "(?) "
"""Stands before a translation that is unsure, in plain text for people."""


class Confidence(Struct, frozen=True):
    """How far a translation can be trusted. Only models that were calibrated tell it."""

    # Estimated probability that a reader would call it right.
    value: float
    # Whether that is too low to show it like others. The model's calibration says what too low is.
    unsure: bool = False


class TokenEvent(Struct, frozen=True):
    """New output of one generation."""

    # Text to append. Empty while a character is incomplete.
    text: str
    # Tokens generated for this event.
    tokens: int
    # Set on the last event only.
    finish: FinishReason | None = None
    # Tokens of the prompt, prefix and draft included. Set on the last event.
    prompt_tokens: int = 0
    # How many of the prompt's tokens were in the engine's prefix cache. Set on the last event.
    cached_tokens: int = 0
    # Tokens of `text` that were reused from the request's prefix and draft, not generated.
    reused: int = 0
    # Confidence in the whole translation. Set on the last event of a final, if the model has a calibration.
    confidence: Confidence | None = None


OnEvent = Callable[[TokenEvent], None]
"""Called with a generation's output as it comes. Must not raise a `GatewayError`, which would be taken for the
engine's."""


class EngineState(Enum):
    """The lifecycle of an engine."""

    STARTING = "starting"
    READY = "ready"
    # It was ready, then died, and is being started again. Work is accepted and waits.
    RESTARTING = "restarting"
    FAILED = "failed"
    STOPPED = "stopped"


class LaneHealth(Struct, frozen=True):
    """How one lane of a pool is. The numbers are sequences, as in `EngineCapacity`."""

    name: str
    state: EngineState
    reason: str = ""
    # Whether it is drained: it ends what it runs, and is removed.
    leaves: bool = False
    max_running: int = 0
    running: int = 0
    waiting: int = 0


class EngineHealth(Struct, frozen=True):
    """The state of an engine, with a sentence for people."""

    state: EngineState
    # What the engine is doing, or why it failed.
    reason: str = ""


class EngineCapacity(Struct, frozen=True):
    """Sequences, as the engine counts them."""

    # Most sequences that it runs together.
    max_running: int
    running: int
    waiting: int
    # Event loop lag of the process that hands out its tokens, in seconds: the mean of about the last second.
    lag_s: float = 0.0


class EngineProfile(Struct, frozen=True):
    """What the loaded model can do."""

    model: str
    family: str
    # Normalised tags of the languages that it translates from or into, in display order.
    languages: tuple[str, ...]
    # Which of `glossary`, `context` and `formality` its prompt can take.
    options: frozenset[str] = frozenset()
    # Longest input, in source tokens.
    max_text_tokens: int = 512
    # Which of the languages are translated into which. None: each into every other.
    pairs: frozenset[Pair] | None = None

    def translates(self, source: str, target: str) -> bool:
        """Whether it translates from one language into another."""
        if self.pairs is None:
            return source != target and source in self.languages and target in self.languages
        return (source, target) in self.pairs

    def targets(self, source: str) -> tuple[str, ...]:
        """The languages into which it translates from `source`, in display order."""
        return tuple(lang for lang in self.languages if self.translates(source, lang))
