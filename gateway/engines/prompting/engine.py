"""What every adapter has that makes prompts itself, and text of what its model answers: hosted here or elsewhere.

Knows: a model's options, encoder and profile; the generations of an adapter.
Must not know: what completes the prompts, how it is started and why it ends.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any, Protocol

from gateway.domain.engine import EngineProfile, OnEvent, TranslationRequest
from gateway.engines.lifecycle import Adapter, Generation
from gateway.engines.prompting.completions import Completions, translated
from gateway.engines.prompting.encoding import PromptEncoder
from gateway.engines.prompting.families import PromptFamily, Sampling
from gateway.engines.prompting.model_config import Calibration


class ModelOptions(Protocol):
    """Options of an adapter that are about the model; see `VllmSettings`."""

    @property
    def model(self) -> str: ...
    @property
    def card_sampling(self) -> bool: ...
    @property
    def output_tokens_base(self) -> int: ...
    @property
    def output_tokens_per_source_token(self) -> float: ...


class PromptingEngine(Adapter):
    """An engine port that turns each request into prompts, and their completions into its text."""

    def __init__(self, options: ModelOptions) -> None:
        super().__init__()
        self._model_options = options
        self._encoder: PromptEncoder | None = None
        self._calibration: Calibration | None = None

    def _completions(self, generation: Generation, request: TranslationRequest) -> Completions:
        raise NotImplementedError

    async def _prepare(self, tokenizer: Any, family: PromptFamily, window: int) -> tuple[PromptEncoder, Sampling]:
        """Make the encoder and the profile. window: most tokens of prompt and answer together."""
        options = self._model_options
        # In a thread: copying a large tokenizer takes half a second, and sessions are served during a restart.
        self._encoder = encoder = await asyncio.to_thread(
            PromptEncoder,
            tokenizer,
            family,
            window=window,
            output_base=options.output_tokens_base,
            output_per_source_token=options.output_tokens_per_source_token,
        )
        self._profile = EngineProfile(
            model=Path(options.model).name,
            family=family.name,
            languages=family.languages,
            options=family.options,
            max_text_tokens=encoder.max_text_tokens,
        )
        card_sampling = family.card_sampling if options.card_sampling else None
        return encoder, card_sampling or family.sampling

    async def _warm_up(self) -> None:
        """Two short translations, the second with a draft: the first step of each kind is slow, or fails."""
        source, target = (*self.profile().languages[:2], "en", "de")[:2]
        for draft in ("", "1 2 3"):
            request = TranslationRequest(id="warm-up", text="1 2 3", source=source, target=target, draft=draft)
            await self._generate(request, lambda _: None)

    async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
        self._check()
        await self._generate(request, on_event)

    async def _generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
        assert self._encoder is not None  # noqa: S101 -- made before anything is generated
        generation = self._generations.open()
        try:
            completions = self._completions(generation, request)
            async with aclosing(translated(request, self._encoder, completions, self._calibration)) as events:
                async for event in events:
                    on_event(event)
        finally:
            generation.close()
