"""What every adapter has that completes prompts: the `Engine` port, over its own completions or those of a host.

Knows: that a model has a translator. Must not know: what completes the prompts, how it is started and why it ends.
"""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from gateway.domain.engine import OnEvent, TranslationRequest
from gateway.domain.errors import StartupError
from gateway.engines.lifecycle import Adapter, Generation, Lifecycle
from gateway.engines.prompting.completions import Model, News, OnNews, Prompt, Sampling, Translator


class TranslatingEngine(Adapter):
    """An engine port that turns each request into prompts, which it completes, and their completions into text."""

    def __init__(self, life: Lifecycle | None = None) -> None:
        super().__init__(life)
        # Known once it is ready.
        self._model: Model | None = None
        self._translator: Translator | None = None
        self._preparing = asyncio.Lock()

    @property
    def model(self) -> Model:
        assert self._model is not None  # noqa: S101 -- it is ready
        return self._model

    async def complete(self, prompt: Prompt, on_news: OnNews) -> None:
        """As `Complete`."""
        self._check()
        await self._begin(prompt, on_news)

    async def _begin(self, prompt: Prompt, on_news: OnNews) -> None:
        """Complete it, also while the engine is not ready."""
        generation = self._generations.open()
        try:
            await self._complete(generation, prompt, on_news)
        finally:
            generation.close()

    async def _complete(self, generation: Generation, prompt: Prompt, on_news: OnNews) -> None:
        """generation: ends every wait when the engine dies."""
        raise NotImplementedError

    async def prepare(self) -> Translator:
        """Load what makes prompts and texts, once. In a thread: it takes seconds. Raises `StartupError`."""
        async with self._preparing:
            if self._translator is None:
                try:
                    self._translator = await asyncio.to_thread(self.model.translator)
                except Exception as error:  # of the libraries of tokenizers
                    raise StartupError(f"The model's tokenizer cannot be loaded here: {error}") from error
        return self._translator

    async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
        self._check()
        translator = self._translator or await self.prepare()
        await translator.translate(request, self.complete, on_event)

    async def _warm_up(self, ids: list[int], sampling: Sampling) -> None:
        """A short completion and a probe: the first step of each kind is slow, or fails."""
        heard: list[News] = []
        prompt = Prompt("warm-up", ids, 8, sampling)
        await self._begin(prompt, heard.append)
        await self._begin(replace(prompt, max_tokens=1, rows_from=1), heard.append)
