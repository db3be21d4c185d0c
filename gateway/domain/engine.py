"""What the gateway asks of an engine and what an engine says, as frozen values.

Knows: requests, generated text, capacity, health, what a model can do.
Must not know: which engine it is, who is waiting for the text, clocks.
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
]

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

    # The engine's own request id. Unique across gateways, which may share an engine.
    id: str
    text: str
    # Normalised language tags.
    source: str
    target: str
    options: TranslationOptions = TranslationOptions()
    # False while the speaker is still talking. Models that were taught the difference are told.
    final: bool = True
    # Lower first, as in vLLM's priority scheduling.
    priority: int = 0
    # Text that readers were shown for good: the translation begins with it.
    prefix: str = ""
    # A guess at what follows `prefix`. It changes what the translation costs, never the translation.
    draft: str = ""
    # The prefix is dropped where the model finds one of its tokens less likely than its own choice by more than
    # this many nats (natural logarithm of the ratio of the probabilities). None always keeps it. After a dropped
    # prefix, a final is generated from the beginning, and a partial ends as `REJECTED`.
    tolerance: float | None = None


class FinishReason(Enum):
    """Why a generation ended."""

    # The model ended it.
    STOP = "stop"
    # It reached the output limit.
    LENGTH = "length"
    # The model would not go on from the request's prefix.
    REJECTED = "rejected"


class TokenEvent(Struct, frozen=True):
    """New output of one generation."""

    # To append; may be empty while a character is incomplete.
    text: str
    # Generated for this event. An engine may merge several events while its reader lags.
    tokens: int
    # Set on the last event only.
    finish: FinishReason | None = None
    # Length of the prompt, prefix and draft included. Known on the last event.
    prompt_tokens: int = 0
    # How many of the prompt's tokens the engine's prefix cache held. Known on the last event.
    cached_tokens: int = 0
    # Tokens of `text` that were taken over from the request's prefix and draft instead of generated.
    reused: int = 0


class EngineState(Enum):
    """Where an engine is in its life."""

    STARTING = "starting"
    READY = "ready"
    # It was ready, died, and is being built again: work is accepted and waits.
    RESTARTING = "restarting"
    FAILED = "failed"
    STOPPED = "stopped"


class EngineHealth(Struct, frozen=True):
    """The state of an engine, with a sentence for people."""

    state: EngineState
    # What the engine is doing, or why it failed.
    reason: str = ""


class EngineCapacity(Struct, frozen=True):
    """Sequences, as the engine counts them."""

    # How many it runs together at most.
    max_running: int
    running: int
    waiting: int


class EngineProfile(Struct, frozen=True):
    """What the loaded model can do."""

    model: str
    family: str
    # Normalised tags of the languages it translates between, in the order to show them.
    languages: tuple[str, ...]
    # Which of `glossary`, `context`, `formality` its prompt can take.
    options: frozenset[str] = frozenset()
    # Longest input, in source tokens.
    max_text_tokens: int = 512
