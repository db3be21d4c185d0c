"""What a gateway asks of the host, and what it hears: each reader gets what is theirs."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from gateway.domain.engine import FinishReason, TokenEvent
from gateway.domain.errors import EngineFailed, EngineRestarting, EngineUnavailable
from gateway.engines.host.answers import Answers
from gateway.engines.host.messages import (
    Aborted,
    Begun,
    Generate,
    Generated,
    GenerationFailed,
    Held,
    OfGeneration,
    ToHost,
)
from gateway.engines.host.seats import Wanted
from gateway.engines.in_flight import Generations
from tests.engines.host.pairs import request


async def test_a_request_says_how_many_wait_and_its_output_is_merged_while_nobody_reads() -> None:
    said: list[ToHost] = []
    answers, generations = Answers(lambda: Wanted(7)), Generations()
    generation = answers.generate(request("a"), generations, said.append)
    reading = asyncio.create_task(anext(generation))
    await asyncio.sleep(0)
    assert said == [Generate(1, request("a"), Wanted(7))]
    answers.heard(Generated(1, TokenEvent("x", 1)))
    assert await reading == TokenEvent("x", 1)
    answers.heard(Generated(1, TokenEvent("y", 1)))
    answers.heard(Generated(1, TokenEvent("z", 2, finish=FinishReason.STOP, prompt_tokens=3)))
    answers.heard(Generated(99, TokenEvent("somebody else's", 1)))
    assert [event async for event in generation] == [TokenEvent("yz", 3, FinishReason.STOP, prompt_tokens=3)]
    assert len(answers) == 0
    assert len(said) == 1


async def test_one_that_is_closed_is_aborted_and_errors_are_raised_behind_what_came_before() -> None:
    said: list[ToHost] = []
    answers, generations = Answers(), Generations()
    first, second = (answers.generate(request(text), generations, said.append) for text in "ab")
    reading = [asyncio.create_task(anext(generation)) for generation in (first, second)]
    await asyncio.sleep(0)
    answers.heard(Generated(1, TokenEvent("x", 1)))
    answers.heard(Generated(2, TokenEvent("y", 1)))
    answers.heard(GenerationFailed(2, False, "too long"))
    assert [event.text for event in await asyncio.gather(*reading)] == ["x", "y"]
    await first.aclose()
    assert said[-1] == Aborted(1)
    with pytest.raises(EngineFailed, match="too long"):
        await anext(second)
    assert said[-1] == Aborted(1)


async def test_they_end_with_the_generations_they_belong_to() -> None:
    answers, generations = Answers(), Generations()
    generation = answers.generate(request("a"), generations, lambda _: None)
    reading = asyncio.create_task(anext(generation))
    await asyncio.sleep(0)
    generations.end("It died.")
    with pytest.raises(EngineUnavailable, match=r"It died\."):
        await reading


@pytest.mark.parametrize(
    ("alone", "said", "kind"),
    [
        (False, [], EngineUnavailable),
        (False, [Held(1)], EngineRestarting),
        (False, [Held(1), Begun(1)], EngineUnavailable),
        # It may still be on its way to the host.
        (True, [], EngineRestarting),
        (True, [Held(1)], EngineRestarting),
        (True, [Begun(1)], EngineUnavailable),
    ],
)
@pytest.mark.parametrize("told", [False, True])
async def test_what_had_not_begun_is_told_apart(
    alone: bool, said: list[OfGeneration], kind: type[EngineUnavailable], told: bool
) -> None:
    answers, generations = Answers(), Generations()
    generation = answers.generate(replace(request("a"), alone=alone), generations, lambda _: None)
    reading = asyncio.create_task(anext(generation))
    await asyncio.sleep(0)
    for message in said:
        answers.heard(message)
    if told:
        answers.heard(GenerationFailed(1, True, "It died."))
    else:
        generations.end("It died.")
    with pytest.raises(EngineUnavailable, match=r"It died\.") as raised:
        await reading
    assert raised.type is kind
