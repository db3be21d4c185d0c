"""The port of everything that completes prompts: token ids in, token ids out.

Its adapters are vLLM in this process (`engines.vllm`), a vLLM server elsewhere (`engines.remote`), a script
(`engines.simulated`), and the window onto a process that hosts one of these (`engines.host`).
Knows: what is asked for and what comes, as frozen values. Must not know: texts, tokenizers, translations.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from msgspec import Struct

from gateway.domain.engine import FinishReason, OnEvent, TranslationRequest
from gateway.domain.ports import Engine


class Sampling(Struct, frozen=True, array_like=True):
    """How the next token is sampled, named as in vLLM. The defaults are greedy."""

    temperature: float = 0.0
    top_p: float = 1.0
    # 0: no limit.
    top_k: int = 0
    repetition_penalty: float = 1.0

    @property
    def is_greedy(self) -> bool:
        """Whether each token is the model's most probable one."""
        return self.temperature == 0 and self.repetition_penalty == 1


class Prompt(Struct, frozen=True, array_like=True):
    """What a model is asked to complete."""

    # That of the translation; an engine adds a number to it, as one translation may be several prompts.
    id: str
    ids: list[int]
    # Most tokens of the output.
    max_tokens: int
    sampling: Sampling = Sampling()
    # Tokens that end the output, besides the model's own end token.
    stop: tuple[int, ...] = ()
    # Keeps the prompts of a scope apart in the prefix cache; None for the scope that all share.
    salt: str | None = None
    # Lower first, as in vLLM's priority scheduling.
    priority: int = 0
    # Whether it belongs to a final utterance: hosts divide slots by this.
    final: bool = True
    # Nothing else may run in the engine meanwhile; see `TranslationRequest`.
    alone: bool = False
    # Whether to tell the log-probability of what is generated.
    rated: bool = False
    # The first token of the prompt whose log-probabilities are to be told. None: of no token.
    rows_from: int | None = None
    # Whether the prefix cache may be read.
    reads_cache: bool = True
    # See `TranslationRequest`.
    traceparent: str = ""


class Rows(Struct, array_like=True):
    """Log-probabilities of a prompt's last tokens, laid out as vLLM's `FlatLogprobs` are.

    The row of a token holds the token itself, then the two likeliest tokens in its place. The last row is that of
    the last token. For tokens from the prefix cache, the rows were never written, or there is one empty row
    instead; this depends on vLLM's model runner.
    """

    # Where each row begins in the three lists below, and where it ends.
    start_indices: list[int]
    end_indices: list[int]
    token_ids: list[int]
    # Natural logarithms.
    logprobs: list[float]
    # 1 for the model's own choice. If two tokens are equally likely, neither has rank 1.
    ranks: list[int | None]

    def last(self, count: int) -> Rows:
        """At most so many rows, the last ones."""
        skipped = max(0, len(self.start_indices) - count)
        first = self.end_indices[skipped - 1] if skipped else 0
        return Rows(
            [start - first for start in self.start_indices[skipped:]],
            [end - first for end in self.end_indices[skipped:]],
            *(column[first:] for column in (self.token_ids, self.logprobs, self.ranks)),  # type: ignore[arg-type]
        )


class News(Struct, frozen=True, array_like=True):
    """New output of one prompt."""

    ids: list[int]
    # Set on the last one only. A token that ends the text is the last of `ids`.
    finish: FinishReason | None = None
    # Prompt tokens that came from the prefix cache.
    cached_tokens: int = 0
    # Sum of the log-probabilities, in nats, of all tokens so far, the one that ends the text included. None if the
    # engine was not asked.
    logprob: float | None = None
    # None if the engine gives none.
    rows: Rows | None = None


OnNews = Callable[[News], None]
"""Called with the output of a prompt as it comes."""

Complete = Callable[[Prompt, OnNews], Coroutine[Any, Any, None]]
"""Completes a prompt; returns after the last news. To abort it, cancel the task that awaits this.

Raises `EngineFailed`, `EngineUnavailable`, and what `OnNews` raises.
"""


class Translator(Protocol):
    """Makes prompts of requests, and texts of their completions."""

    async def translate(self, request: TranslationRequest, complete: Complete, on_event: OnEvent) -> None:
        """Raises `EngineFailed` for a text that the model cannot take, and what `complete` raises."""


class Model(Protocol):
    """What an engine says of its model, as a value that can be sent."""

    def translator(self) -> Translator:
        """May take seconds."""


class Completions(Engine, Protocol):
    """An engine of token ids. In its own process it is one of texts, too."""

    @property
    def model(self) -> Model:
        """What is needed to make prompts for it; known once it is ready."""

    async def complete(self, prompt: Prompt, on_news: OnNews) -> None:
        """As `Complete`."""


# Most pieces of text a second, over all sequences. A piece costs the gateway about 50 microseconds, and one frame
# per reader. If the event loop cannot keep up, first words come late.
_MOST_PIECES_PER_S = 2_500

# Most tokens of a piece. A sequence keeps its value to its end, even if the engine becomes slower.
_MOST_TOKENS = 12


def tokens_a_piece(interval_s: float, step_s: float, running: int) -> int:
    """How many tokens of a sequence to hand on together, so that a piece comes about every `interval_s`.

    step_s: time of a token, in seconds; 0 if it is not known. running: sequences that run.
    From 1 (also if `interval_s` is 0) to 12. With many sequences the pieces are larger, so that all sequences
    together have at most 2,500 pieces a second.
    """
    if not interval_s or not step_s:
        return 1
    tokens = round(max(interval_s, running / _MOST_PIECES_PER_S) / step_s)
    return min(max(1, tokens), _MOST_TOKENS)
