"""A lane: an engine for some pairs of languages, which gets only the options that its model takes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gateway.domain.engine import (
    EngineProfile,
    EngineState,
    OnEvent,
    TranslationOptions,
    TranslationRequest,
)
from gateway.domain.errors import EngineUnavailable
from gateway.domain.pairs import PairPattern
from gateway.engines.pool.lane import Lane
from gateway.engines.simulated import Script, SimulatedEngine
from gateway.engines.supervisor import Supervisor
from tests.generations import events_of
from tests.usual import usual

FAST = Script(first_token_s=0.0, token_s=0.0, languages=("en", "ja", "de"), options=frozenset({"glossary"}))


class Recorded(SimulatedEngine):
    """Remembers what it was asked."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.asked: list[TranslationRequest] = []

    async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
        self.asked.append(request)
        await super().generate(request, on_event)


def lane(*pairs: str, engine: SimulatedEngine | None = None) -> Lane:
    built = engine or SimulatedEngine(FAST)
    return Lane("a", usual(Supervisor, lambda: built), [PairPattern.parse(pair) for pair in pairs or ("*",)])


async def test_it_translates_the_pairs_it_is_given_of_those_its_model_can() -> None:
    a = lane("en-ja", "*-de", "fr-en")
    with pytest.raises(EngineUnavailable):
        a.profile()
    await a.start()
    profile = a.profile()
    assert profile.pairs == frozenset({("en", "ja"), ("en", "de"), ("ja", "de")})
    assert profile.languages == ("en", "ja", "de")
    assert a.profile() is profile, "asked for each message, it is made once"
    await a.stop()


class OnlyIntoGerman(SimulatedEngine):
    def profile(self) -> EngineProfile:
        return replace(super().profile(), pairs=frozenset({("en", "de"), ("ja", "de")}))


async def test_it_translates_nothing_that_its_model_cannot() -> None:
    a = lane("en-*", engine=OnlyIntoGerman(FAST))
    await a.start()
    assert a.profile().pairs == frozenset({("en", "de")})
    await a.stop()


async def test_it_is_its_engine_otherwise() -> None:
    a = lane()
    assert not a.ready
    await a.start()
    assert (a.ready, a.health().state, a.capacity().max_running) == (True, EngineState.READY, 16)
    assert await a.metrics() == b""
    await a.stop()
    assert a.health().state is EngineState.STOPPED


async def test_options_for_other_models_are_left_out() -> None:
    engine = Recorded(FAST)
    a = lane(engine=engine)
    await a.start()
    options = TranslationOptions(glossary=(("a", "b"),), context=("before",), formality="formal")
    for asked in (options, TranslationOptions()):
        request = TranslationRequest(id="r", text="hi", source="en", target="ja", options=asked)
        assert [event.text async for event in events_of(a, request)] == ["[ja]", " hi"]
    assert [request.options for request in engine.asked] == [
        TranslationOptions(glossary=(("a", "b"),)),
        TranslationOptions(),
    ]
    await a.stop()
