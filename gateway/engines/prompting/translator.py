"""Turns a translation request into token events, on any engine that completes prompts of token ids.

Knows: prompts (`encoding`), folded texts (`text.folding`), the check of a proposed beginning (`verification`), and
what the log-probabilities of a model are worth.
Must not know: which engine completes the prompts, where it runs, when it starts and stops.
"""

from __future__ import annotations

import math
from functools import partial
from hashlib import blake2b
from typing import Any

from msgspec.structs import replace

from gateway.domain.engine import Confidence, FinishReason, OnEvent, TokenEvent, TranslationRequest
from gateway.engines.prompting.completions import Complete, News, Prompt, Sampling
from gateway.engines.prompting.detokenising import Detokenizer, Vocabulary
from gateway.engines.prompting.encoding import EncodedPrompt, PromptEncoder
from gateway.engines.prompting.model_config import Calibration
from gateway.engines.prompting.verification import VerifiedPrefix, verify_proposal
from gateway.text.folding import Unfolding, is_doubtful_copy
from gateway.text.units import SPOKEN


class PromptTranslator:
    """The `Translator` of a model that is asked with prompts.

    calibration: of the model; with it, the last event of a final says how far the text can be trusted.
    probes_below: see `PromptedModel`.
    """

    def __init__(
        self,
        tokenizer: Any,
        encoder: PromptEncoder,
        sampling: Sampling,
        calibration: Calibration | None = None,
        *,
        probes_below: int | None = None,
    ) -> None:
        self.encoder = encoder
        self._probes_below = probes_below
        # How many translations it makes now.
        self._running = 0
        self._vocabulary = Vocabulary(tokenizer)
        self._sampling = sampling
        self._calibration = calibration

    async def translate(self, request: TranslationRequest, complete: Complete, on_event: OnEvent) -> None:
        """As `Translator`."""
        probes_first = self._probes_below is None or self._running < self._probes_below
        self._running += 1
        try:
            await self._translate(request, complete, on_event, probes_first=probes_first)
        finally:
            self._running -= 1

    async def _translate(
        self, request: TranslationRequest, complete: Complete, on_event: OnEvent, *, probes_first: bool
    ) -> None:
        """The translation: first the part of the prefix and draft that need not be generated, then the rest.

        Where a model makes nothing of the words of a final, they are the translation, and that is unsure; as is a
        copy of what is no name, and an answer that lacks a placeholder.
        """
        encoder = self.encoder
        folded = encoder.fold(request)
        begun = folded.begun(request.prefix, request.draft)
        if begun is None:
            folded = replace(folded, before="", after="")
            begun = folded.begun(request.prefix, request.draft) or ("", "")
        asked = replace(request, text=folded.text, prefix=begun[0], draft=begun[1])
        reading = _Reading(request, Unfolding(folded, encoder.joint), on_event)
        calibration = self._calibration if request.final else None
        prompt = await encoder.encode(asked)
        common = self._prompt(asked)
        # How many tokens were generated that readers do not get.
        differing = 0
        if not probes_first and self._sampling.is_greedy:
            if request.final and asked.prefix and asked.tolerance is not None:
                held = _Held(asked.prefix, reading.tell_reader)
                try:
                    await self._generate(common, prompt, VerifiedPrefix(), calibration, complete, held.tell_reader)
                    return
                except _Differs:
                    differing = held.tokens
            else:
                asked = replace(asked, draft="", tolerance=None)
        verified = VerifiedPrefix()
        if asked.prefix or asked.draft:
            probe = partial(_probe, replace(common, rows_from=len(prompt.ids)), complete)
            verified = await verify_proposal(asked, prompt, encoder, probe, greedy=self._sampling.is_greedy)
            if differing:
                verified = replace(verified, prompt_tokens=verified.prompt_tokens + len(prompt.ids))
            if event := verified.event:
                if verified.finish:
                    event = replace(event, confidence=_confidence(calibration, verified))
                reading.tell_reader(replace(event, tokens=event.tokens + differing))
            if verified.finish:
                return
        await self._generate(common, prompt, verified, calibration, complete, reading.tell_reader)

    async def _generate(
        self,
        common: Prompt,
        prompt: EncodedPrompt,
        verified: VerifiedPrefix,
        calibration: Calibration | None,
        complete: Complete,
        tell_reader: OnEvent,
    ) -> None:
        """What follows the verified beginning."""
        ids = prompt.ids + verified.ids
        text, tokens = Detokenizer(self._vocabulary, ids), 0

        def tell(news: News) -> None:
            nonlocal tokens
            tokens += len(news.ids)
            if news.finish is None:
                tell_reader(TokenEvent(text.add(news.ids), len(news.ids)))
                return
            # The token that ends the text is not part of it; with some models it would show.
            said = news.ids[:-1] if news.finish is FinishReason.STOP else news.ids
            tell_reader(
                TokenEvent(
                    text.add(said),
                    len(news.ids),
                    news.finish,
                    prompt_tokens=verified.prompt_tokens + len(ids),
                    cached_tokens=verified.cached_tokens + news.cached_tokens,
                    confidence=_confidence(calibration, verified, news.logprob, tokens),
                )
            )

        max_tokens = max(1, prompt.max_tokens - len(verified.ids))
        await complete(replace(common, ids=ids, max_tokens=max_tokens), tell)

    def _prompt(self, request: TranslationRequest) -> Prompt:
        """What all prompts of this translation have."""
        return Prompt(
            request.id,
            [],
            1,
            self._sampling,
            tuple(self.encoder.stop_token_ids),
            _cache_salt(request.cache_scope),
            request.priority,
            request.final,
            request.alone,
            rated=request.final and self._calibration is not None,
            traceparent=request.traceparent,
        )


class _Reading:
    """What readers get of one translation."""

    def __init__(self, request: TranslationRequest, unfolding: Unfolding, on_event: OnEvent) -> None:
        self._request = request
        self._unfolding = unfolding
        self._on_event = on_event
        self._answer = ""

    def tell_reader(self, event: TokenEvent) -> None:
        unfolding, request = self._unfolding, self._request
        text = unfolding.add(event.text, last=event.finish is not None)
        self._answer += text
        if event.finish is FinishReason.STOP and request.final:
            if not unfolding.has_said and SPOKEN.search(request.text):
                text, event = request.text.strip(), _doubted(event, 0.0)
            elif not unfolding.is_complete or is_doubtful_copy(request.text, self._answer):
                event = _doubted(event)
        self._on_event(replace(event, text=text))


class _Differs(Exception):
    """What is generated is not what readers have seen."""


class _Held:
    """Holds an answer back until it says all that readers have seen, then tells it as it comes.

    shown: what they have seen. Raises `_Differs` out of `tell_reader` as soon as the answer says something else.
    """

    def __init__(self, shown: str, tell_reader: OnEvent) -> None:
        self._shown = shown
        self._tell_reader = tell_reader
        self._said = ""
        self._is_told = False
        # How many tokens were held back.
        self.tokens = 0

    def tell_reader(self, event: TokenEvent) -> None:
        if self._is_told:
            self._tell_reader(event)
            return
        self._said += event.text
        self.tokens += event.tokens
        if self._said.startswith(self._shown):
            self._is_told = True
            self._tell_reader(replace(event, text=self._said, tokens=self.tokens))
        elif event.finish is not None or not self._shown.startswith(self._said):
            raise _Differs


async def _probe(common: Prompt, complete: Complete, ids: list[int], reads_cache: bool) -> News:
    """What a model would have generated at these tokens, from `rows_from` on. common: what all probes have."""
    heard: list[News] = []
    await complete(replace(common, ids=ids, reads_cache=reads_cache), heard.append)
    return heard[-1]  # with one token, there is one


def _doubted(event: TokenEvent, most: float = 1.0) -> TokenEvent:
    """The last event of a translation that cannot be right, however sure the model is."""
    value = event.confidence.value if event.confidence is not None else 0.0
    return replace(event, confidence=Confidence(min(value, most), unsure=True))


def _confidence(
    calibration: Calibration | None, verified: VerifiedPrefix, logprob: float | None = 0.0, tokens: int = 0
) -> Confidence | None:
    """Confidence in the verified beginning and `tokens` more; None if it is not known."""
    rated = verified.rated + tokens
    if calibration is None or logprob is None or not rated:
        return None
    total = verified.logprob + logprob
    return calibration.confidence(total, rated) if math.isfinite(total) else None


def _cache_salt(scope: str) -> str | None:
    """What keeps the prompts of a scope apart in the prefix cache; None for the scope that all share.

    Letters and digits only: others have ended engines. It does not tell what the scope is.
    """
    return blake2b(scope.encode(), digest_size=16).hexdigest() if scope else None
