"""Turns a translation request into token events, on any engine that completes prompts of token ids.

Knows: prompts (`encoding`), folded texts (`text.folding`) and the check of a proposed beginning (`verification`);
how much of a text is handed on at once.
Must not know: which engine completes the prompts, where it runs, when it starts and stops.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from contextlib import aclosing
from hashlib import blake2b
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from gateway.domain.engine import Confidence, FinishReason, TokenEvent, TranslationRequest
from gateway.engines.prompting.encoding import PromptEncoder
from gateway.engines.prompting.model_config import Calibration
from gateway.engines.prompting.verification import Probe, VerifiedPrefix, verify_proposal
from gateway.text.folding import Unfolding, is_doubtful_copy
from gateway.text.units import SPOKEN


class Completion(Struct, frozen=True):
    """New output after a prompt."""

    # The text of the new tokens; may be empty while a character is incomplete.
    text: str
    # Number of new tokens.
    tokens: int
    # Set only on the last one.
    finish: FinishReason | None = None
    # Prompt tokens that came from the engine's prefix cache.
    cached_tokens: int = 0
    # Sum of the log-probabilities, in nats, of all tokens so far, the one that ends the text included. None if the
    # engine was not asked.
    logprob: float | None = None


class Completions(Protocol):
    """The requests of one translation to an engine. They raise `EngineFailed` or `EngineUnavailable`.

    greedy: whether each token is the model's most probable one.
    """

    greedy: bool

    def complete(self, ids: list[int], max_tokens: int) -> AsyncGenerator[Completion, None]:
        """The model's output after a prompt."""
        ...

    async def probe(self, ids: list[int], read_cache: bool) -> Probe:
        """What the model would have generated at each token of a prompt. read_cache: may use the prefix cache."""
        ...


async def translated(
    request: TranslationRequest,
    encoder: PromptEncoder,
    completions: Completions,
    calibration: Calibration | None = None,
) -> AsyncGenerator[TokenEvent, None]:
    """The translation: first the part of the prefix and draft that need not be generated, then the rest.

    Where a model makes nothing of the words of a final, they are the translation, and that is unsure; as is a copy
    of what is no name, and an answer that lacks a placeholder.
    calibration: of the model; with it, the last event of a final says how far the text can be trusted.
    """
    folded = encoder.fold(request)
    begun = folded.begun(request.prefix, request.draft)
    if begun is None:
        folded = replace(folded, before="", after="")
        begun = folded.begun(request.prefix, request.draft) or ("", "")
    asked = replace(request, text=folded.text, prefix=begun[0], draft=begun[1])
    unfolding, answer = Unfolding(folded, encoder.joint), ""
    async with aclosing(_answer(asked, encoder, completions, calibration)) as events:
        async for event in events:
            text = unfolding.add(event.text, last=event.finish is not None)
            answer += text
            if event.finish is FinishReason.STOP and request.final:
                if not unfolding.has_said and SPOKEN.search(request.text):
                    text, event = request.text.strip(), _doubted(event, 0.0)
                elif not unfolding.is_complete or is_doubtful_copy(request.text, answer):
                    event = _doubted(event)
            yield replace(event, text=text)


def _doubted(event: TokenEvent, most: float = 1.0) -> TokenEvent:
    """The last event of a translation that cannot be right, however sure the model is."""
    value = event.confidence.value if event.confidence is not None else 0.0
    return replace(event, confidence=Confidence(min(value, most), unsure=True))


async def _answer(
    request: TranslationRequest, encoder: PromptEncoder, completions: Completions, calibration: Calibration | None
) -> AsyncGenerator[TokenEvent, None]:
    calibration = calibration if request.final else None
    prompt = encoder.encode(request)
    verified = VerifiedPrefix()
    if request.prefix or request.draft:
        verified = await verify_proposal(request, prompt, encoder, completions.probe, greedy=completions.greedy)
        if event := verified.event:
            if verified.finish:
                event = replace(event, confidence=_confidence(calibration, verified))
            yield event
        if verified.finish:
            return
    ids = prompt.ids + verified.ids
    max_tokens = max(1, prompt.max_tokens - len(verified.ids))
    async with aclosing(completions.complete(ids, max_tokens)) as generated:
        tokens = 0
        async for new in generated:
            tokens += new.tokens
            if new.finish is None:
                yield TokenEvent(new.text, new.tokens)
            else:
                yield TokenEvent(
                    new.text,
                    new.tokens,
                    new.finish,
                    prompt_tokens=verified.prompt_tokens + len(ids),
                    cached_tokens=verified.cached_tokens + new.cached_tokens,
                    confidence=_confidence(calibration, verified, new.logprob, tokens),
                )


def _confidence(
    calibration: Calibration | None, verified: VerifiedPrefix, logprob: float | None = 0.0, tokens: int = 0
) -> Confidence | None:
    """Confidence in the verified beginning and `tokens` more; None if it is not known."""
    rated = verified.rated + tokens
    if calibration is None or logprob is None or not rated:
        return None
    total = verified.logprob + logprob
    return calibration.confidence(total, rated) if math.isfinite(total) else None


def cache_salt(scope: str) -> str | None:
    """What keeps the prompts of a scope apart in the prefix cache; None for the scope that all share.

    Letters and digits only: others have ended engines. It does not tell what the scope is.
    """
    return blake2b(scope.encode(), digest_size=16).hexdigest() if scope else None


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
