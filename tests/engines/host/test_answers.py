"""What a gateway asks of the host, and what it hears: each reader gets what is theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.domain.engine import FinishReason, OnEvent, TokenEvent
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
from gateway.engines.host.slots import Wanted
from gateway.engines.in_flight import Generations
from tests.engines.host.pairs import request


def asked(
    answers: Answers,
    generations: Generations,
    say: Callable[[ToHost], None] = lambda _: None,
    on_event: OnEvent = lambda _: None,
    **more: Any,
) -> asyncio.Task[None]:
    return asyncio.create_task(answers.generate(replace(request("a"), **more), on_event, generations, say))


async def test_request_tells_waiting_and_hands_output_on() -> None:
    said: list[ToHost] = []
    given: list[TokenEvent] = []
    answers, generations = Answers(lambda: Wanted(7)), Generations()
    generating = asked(answers, generations, said.append, given.append)
    await asyncio.sleep(0)
    assert said == [Generate(1, request("a"), Wanted(7))]
    first, last = TokenEvent("x", 1), TokenEvent("z", 2, finish=FinishReason.STOP, prompt_tokens=3)
    answers.heard(Generated(1, first))
    assert given == [first]
    answers.heard(Generated(99, TokenEvent("somebody else's", 1)))
    answers.heard(Generated(1, last))
    answers.heard(Generated(1, TokenEvent("behind its end", 1)))
    await generating
    assert given == [first, last]
    assert len(answers) == 0
    assert len(said) == 1


async def test_cancelled_is_aborted_and_failed_raises() -> None:
    said: list[ToHost] = []
    answers, generations = Answers(), Generations()
    first, second = asked(answers, generations, said.append), asked(answers, generations, said.append)
    await asyncio.sleep(0)
    answers.heard(Generated(1, TokenEvent("x", 1)))
    first.cancel()
    answers.heard(Generated(1, TokenEvent("y", 1)))
    await asyncio.wait([first])
    assert first.cancelled()
    assert said[-1] == Aborted(1)
    answers.heard(GenerationFailed(2, False, "too long"))
    with pytest.raises(EngineFailed, match="too long"):
        await second
    assert said[-1] == Aborted(1)


async def test_readers_error_ends_the_generation_alone() -> None:
    said: list[ToHost] = []
    answers, generations = Answers(), Generations()

    def broken(_: TokenEvent) -> None:
        raise ZeroDivisionError

    generating = asked(answers, generations, said.append, broken)
    await asyncio.sleep(0)
    answers.heard(Generated(1, TokenEvent("x", 1)))
    with pytest.raises(ZeroDivisionError):
        await generating
    assert said[-1] == Aborted(1)


async def test_they_end_with_the_generations_they_belong_to() -> None:
    answers, generations = Answers(), Generations()
    generating = asked(answers, generations)
    await asyncio.sleep(0)
    generations.end("It died.")
    with pytest.raises(EngineUnavailable, match=r"It died\."):
        await generating


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
    generating = asked(answers, generations, alone=alone)
    await asyncio.sleep(0)
    for message in said:
        answers.heard(message)
    if told:
        answers.heard(GenerationFailed(1, True, "It died."))
    else:
        generations.end("It died.")
    with pytest.raises(EngineUnavailable, match=r"It died\.") as raised:
        await generating
    assert raised.type is kind
