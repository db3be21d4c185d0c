"""What a gateway asks of the host, and what it hears: each reader gets what is theirs."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from msgspec.structs import replace

from gateway.domain.engine import EngineState, FinishReason, OnEvent, TokenEvent
from gateway.domain.errors import EngineFailed, EngineRestarting, EngineUnavailable
from gateway.engines.host.answers import Window
from gateway.engines.host.messages import (
    Aborted,
    Begun,
    Generate,
    Generated,
    GenerationFailed,
    Held,
    ToHost,
    Wanted,
)
from gateway.engines.lifecycle import Lifecycle
from tests.engines.host.pairs import request

NONE = Wanted()


class Asking(Window):
    """A window that is ready, over a channel that only remembers."""

    def __init__(self, waiting: Wanted = NONE) -> None:
        super().__init__(Lifecycle(), 1)
        self._life.become(EngineState.READY)
        self.waiting = lambda: waiting
        self._channel = cast(Any, self)
        self.said: list[ToHost] = []

    def say(self, message: ToHost) -> None:
        self.said.append(message)

    def ask(self, on_event: OnEvent = lambda _: None, **more: Any) -> asyncio.Task[None]:
        return asyncio.create_task(self.generate(replace(request("a"), **more), on_event))

    def die(self) -> None:
        self._generations.end("It died.")


async def test_request_tells_waiting_and_hands_output_on() -> None:
    given: list[TokenEvent] = []
    answers = Asking(Wanted(7))
    generating = answers.ask(given.append)
    await asyncio.sleep(0)
    assert answers.said == [Generate(1, request("a"), Wanted(7))]
    first, last = TokenEvent("x", 1), TokenEvent("z", 2, finish=FinishReason.STOP, prompt_tokens=3)
    answers._heard(Generated(1, first))
    assert given == [first]
    answers._heard(Generated(99, TokenEvent("somebody else's", 1)))
    answers._heard(Generated(1, last))
    answers._heard(Generated(1, TokenEvent("behind its end", 1)))
    await generating
    assert given == [first, last]
    assert answers._answers == {}
    assert len(answers.said) == 1


async def test_cancelled_is_aborted_and_failed_raises() -> None:
    answers = Asking()
    first, second = answers.ask(), answers.ask()
    await asyncio.sleep(0)
    answers._heard(Generated(1, TokenEvent("x", 1)))
    first.cancel()
    answers._heard(Generated(1, TokenEvent("y", 1)))
    await asyncio.wait([first])
    assert first.cancelled()
    assert answers.said[-1] == Aborted(1)
    answers._heard(GenerationFailed(2, EngineFailed.code, "too long"))
    with pytest.raises(EngineFailed, match="too long"):
        await second
    assert answers.said[-1] == Aborted(1)


async def test_readers_error_ends_the_generation_alone() -> None:
    answers = Asking()

    def broken(_: TokenEvent) -> None:
        raise ZeroDivisionError

    generating = answers.ask(broken)
    await asyncio.sleep(0)
    answers._heard(Generated(1, TokenEvent("x", 1)))
    with pytest.raises(ZeroDivisionError):
        await generating
    assert answers.said[-1] == Aborted(1)


async def test_they_end_with_the_generations_they_belong_to() -> None:
    answers = Asking()
    generating = answers.ask()
    await asyncio.sleep(0)
    answers.die()
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
    alone: bool, said: list[Held | Begun], kind: type[EngineUnavailable], told: bool
) -> None:
    answers = Asking()
    generating = answers.ask(alone=alone)
    await asyncio.sleep(0)
    for message in said:
        answers._heard(message)
    if told:
        answers._heard(GenerationFailed(1, EngineUnavailable.code, "It died."))
    else:
        answers.die()
    with pytest.raises(EngineUnavailable, match=r"It died\.") as raised:
        await generating
    assert raised.type is kind
