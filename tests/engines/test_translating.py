"""What adapters that complete prompts share: texts made of their completions, and only while they are ready."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from gateway.domain.engine import EngineState, FinishReason, TokenEvent
from gateway.domain.errors import EngineUnavailable, StartupError
from gateway.engines.lifecycle import Generation
from gateway.engines.prompting.completions import News, OnNews, Prompt, Sampling
from gateway.engines.prompting.families import FAMILIES
from gateway.engines.prompting.model import PromptedModel, prompted_model
from gateway.engines.translating import TranslatingEngine
from tests.engines.prompting.cuts import encoded
from tests.engines.prompting.test_model import GOOD, OPTIONS


class Saying(TranslatingEngine):
    """Says one text."""

    def __init__(self, model: PromptedModel, ids: list[int]) -> None:
        super().__init__()
        self._model, self._ids = model, ids
        self.asked: list[Prompt] = []

    async def _complete(self, _generation: Generation, prompt: Prompt, on_news: OnNews) -> None:
        self.asked.append(prompt)
        on_news(News(self._ids, FinishReason.LENGTH))


def saying(tokenizer: Any, text: str) -> Saying:
    return Saying(prompted_model(OPTIONS, tokenizer, FAMILIES["seed-x"], 200), encoded(tokenizer, text))


async def test_warm_up_runs_before_it_is_ready(tokenizer: Any) -> None:
    engine = saying(tokenizer, "x")
    await engine._warm_up([5, 6], Sampling())
    assert [(prompt.ids, prompt.rows_from) for prompt in engine.asked] == [([5, 6], None), ([5, 6], 1)]
    for asks in (engine.complete(engine.asked[0], print), engine.generate(GOOD, print)):
        with pytest.raises(EngineUnavailable, match="not ready"):
            await asks


async def test_tokenizer_that_cannot_be_loaded_says_so(tokenizer: Any) -> None:
    engine = saying(tokenizer, "x")
    engine._model = replace(engine._model, tokenizer="{}")  # type: ignore[type-var]
    with pytest.raises(StartupError, match="tokenizer cannot be loaded here"):
        await engine.prepare()


async def test_no_generation_begins_after_the_end(tokenizer: Any) -> None:
    engine = saying(tokenizer, "Guten Morgen.")
    engine._life.become(EngineState.READY)
    given: list[TokenEvent] = []
    await engine.generate(GOOD, given.append)
    assert [(event.text, event.finish) for event in given] == [("Guten Morgen.", FinishReason.LENGTH)]
    engine._end_as_stopped()
    with pytest.raises(EngineUnavailable):
        await engine.generate(GOOD, given.append)
    assert len(engine._generations) == 0
