"""What adapters that make prompts themselves share: their profile, the first translations, what an end does."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Struct

from gateway.domain.engine import EngineState, FinishReason, TokenEvent, TranslationRequest
from gateway.domain.errors import EngineUnavailable
from gateway.engines.lifecycle import Generation
from gateway.engines.prompting.engine import PromptingEngine
from gateway.engines.prompting.families import FAMILIES, Sampling
from tests.engines.prompting.test_completions import Scripted


class Options(Struct, frozen=True):
    model: str = "/models/Hunyuan-MT-7B"
    card_sampling: bool = False
    output_tokens_base: int = 8
    output_tokens_per_source_token: float = 0.0


class Adapting(PromptingEngine):
    asked: list[TranslationRequest]

    def _completions(self, generation: Generation, request: TranslationRequest) -> Scripted:
        self.asked.append(request)
        return Scripted()


async def prepared(tokenizer: Any, options: Options) -> tuple[Adapting, Sampling]:
    engine = Adapting(options)
    engine.asked = []
    _, sampling = await engine._prepare(tokenizer, FAMILIES["seed-x"], 200)
    return engine, sampling


async def test_profile_is_that_of_the_family(tokenizer: Any) -> None:
    engine, sampling = await prepared(tokenizer, Options())
    profile = engine.profile()
    assert (profile.model, profile.family) == ("Hunyuan-MT-7B", "seed-x")
    assert (profile.languages, profile.max_text_tokens) == (FAMILIES["seed-x"].languages, (200 - 8) // 4)
    assert sampling == Sampling()


@pytest.mark.parametrize("name", ["hunyuan-mt", "seed-x"])
async def test_card_sampling_is_used_if_wanted(tokenizer: Any, name: str) -> None:
    family = FAMILIES[name]
    _, sampling = await Adapting(Options(card_sampling=True))._prepare(tokenizer, family, 200)
    assert sampling == (family.card_sampling or Sampling())


async def test_warm_up_runs_before_it_is_ready(tokenizer: Any) -> None:
    engine, _ = await prepared(tokenizer, Options())
    await engine._warm_up()
    assert [(request.source, request.target, request.draft) for request in engine.asked] == [
        ("ar", "cs", ""),
        ("ar", "cs", "1 2 3"),
    ]
    with pytest.raises(EngineUnavailable, match="not ready"):
        await engine.generate(engine.asked[0], lambda _: None)


async def test_no_generation_begins_after_the_end(tokenizer: Any) -> None:
    engine, _ = await prepared(tokenizer, Options())
    engine._life.become(EngineState.READY)
    given: list[TokenEvent] = []
    request = TranslationRequest(id="r", text="Good morning.", source="en", target="de")
    await engine.generate(request, given.append)
    assert given[-1].finish is FinishReason.STOP
    engine._end_as_stopped()
    with pytest.raises(EngineUnavailable):
        await engine.generate(request, given.append)
    assert len(engine._generations) == 0
