"""From a translation request to token events, on any engine that completes prompts of token ids.

Knows: prompts (`encoding`) and how far the model agrees with a proposed beginning (`verification`).
Must not know: which engine completes the prompts, where it runs, how it lives and dies.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from msgspec import Struct

from gateway.domain.engine import FinishReason, TokenEvent, TranslationRequest
from gateway.engines.prompting.encoding import PromptEncoder
from gateway.engines.prompting.verification import Beginning, Probe, find_beginning

__all__ = ["Completion", "Completions", "translated"]


class Completion(Struct, frozen=True):
    """New output behind a prompt."""

    # What the new tokens say; may be empty while a character is incomplete.
    text: str
    # How many tokens are new.
    tokens: int
    # Set on the last one only.
    finish: FinishReason | None = None
    # How many of the prompt's tokens the engine's prefix cache held.
    cached_tokens: int = 0


class Completions(Protocol):
    """What an engine does for one translation. Raises `EngineFailed` or `EngineUnavailable`."""

    @property
    def greedy(self) -> bool:
        """Whether every token is the model's own choice."""
        ...

    def complete(self, ids: list[int], max_tokens: int) -> AsyncGenerator[Completion, None]:
        """What the model says behind a prompt."""
        ...

    async def probe(self, ids: list[int], read_cache: bool) -> Probe:
        """What the model would have said at each token of a prompt. `read_cache`: it may use the prefix cache."""
        ...


async def translated(
    request: TranslationRequest, encoder: PromptEncoder, completions: Completions
) -> AsyncGenerator[TokenEvent, None]:
    """The translation: what of the request's prefix and draft need not be generated, then what is generated."""
    prompt = encoder.encode(request)
    beginning = Beginning()
    if request.prefix or request.draft:
        beginning = await find_beginning(request, prompt, encoder, completions.probe, greedy=completions.greedy)
        if event := beginning.event:
            yield event
        if beginning.finish:
            return
    ids = prompt.ids + beginning.ids
    max_tokens = max(1, prompt.max_tokens - len(beginning.ids))
    async with aclosing(completions.complete(ids, max_tokens)) as generated:
        async for new in generated:
            if new.finish is None:
                yield TokenEvent(new.text, new.tokens)
            else:
                yield TokenEvent(
                    new.text,
                    new.tokens,
                    new.finish,
                    prompt_tokens=beginning.prompt_tokens + len(ids),
                    cached_tokens=beginning.cached_tokens + new.cached_tokens,
                )
