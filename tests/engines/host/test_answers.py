"""What a gateway asks of the host, and what it hears: each reader gets what is theirs."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from msgspec.structs import replace

from gateway.domain.engine import EngineState, FinishReason
from gateway.domain.errors import EngineFailed, EngineRestarting, EngineUnavailable
from gateway.engines.host.answers import Window
from gateway.engines.host.messages import Aborted, Failed, Generate, Step, ToHost, Wanted
from gateway.engines.lifecycle import Lifecycle
from gateway.engines.prompting.completions import News, OnNews, Prompt

NONE = Wanted()
PROMPT = Prompt("1", [5, 6], 9)


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

    def ask(self, on_news: OnNews = lambda _: None, **more: Any) -> asyncio.Task[None]:
        return asyncio.create_task(self.complete(replace(PROMPT, **more), on_news))

    def hear(self, *news: tuple[int, News]) -> None:
        self._heard(Step([], [], [*news], []))

    def die(self) -> None:
        self._generations.end("It died.")


async def test_request_tells_waiting_and_hands_output_on() -> None:
    given: list[News] = []
    answers = Asking(Wanted(7))
    generating = answers.ask(given.append)
    await asyncio.sleep(0)
    assert answers.said == [Generate(1, PROMPT, Wanted(7))]
    first, last = News([3]), News([4, 5], FinishReason.STOP)
    answers.hear((1, first), (99, News([8])))  # the other is somebody else's
    assert given == [first]
    answers.hear((1, last), (1, News([9])))
    await generating
    assert given == [first, last]
    assert answers._answers == {}
    assert len(answers.said) == 1


async def test_cancelled_is_aborted_and_failed_raises() -> None:
    answers = Asking()
    first, second = answers.ask(), answers.ask()
    await asyncio.sleep(0)
    answers.hear((1, News([3])))
    first.cancel()
    answers.hear((1, News([4])))
    await asyncio.wait([first])
    assert first.cancelled()
    assert answers.said[-1] == Aborted(1)
    answers._heard(Step([], [], [], [(2, Failed(EngineFailed.code, "too long"))]))
    with pytest.raises(EngineFailed, match="too long"):
        await second
    assert answers.said[-1] == Aborted(1)


async def test_readers_error_ends_the_generation_alone() -> None:
    answers = Asking()

    def broken(_: News) -> None:
        raise ZeroDivisionError

    generating, other = answers.ask(broken), answers.ask()
    await asyncio.sleep(0)
    answers.hear((1, News([3])), (2, News([4], FinishReason.STOP)))
    with pytest.raises(ZeroDivisionError):
        await generating
    await other
    assert answers.said[-1] == Aborted(1)


async def test_they_end_with_the_generations_they_belong_to() -> None:
    answers = Asking()
    generating = answers.ask()
    await asyncio.sleep(0)
    answers.die()
    with pytest.raises(EngineUnavailable, match=r"It died\."):
        await generating


@pytest.mark.parametrize(
    ("alone", "held", "begun", "kind"),
    [
        (False, [], [], EngineUnavailable),
        (False, [1], [], EngineRestarting),
        (False, [1], [1], EngineUnavailable),
        # It may still be on its way to the host.
        (True, [], [], EngineRestarting),
        (True, [1], [], EngineRestarting),
        (True, [], [1], EngineUnavailable),
    ],
)
@pytest.mark.parametrize("told", [False, True])
async def test_what_had_not_begun_is_told_apart(
    alone: bool, held: list[int], begun: list[int], kind: type[EngineUnavailable], told: bool
) -> None:
    answers = Asking()
    generating = answers.ask(alone=alone)
    await asyncio.sleep(0)
    answers._heard(Step(held, begun, [], [(1, Failed(EngineUnavailable.code, "It died."))] if told else []))
    if not told:
        answers.die()
    with pytest.raises(EngineUnavailable, match=r"It died\.") as raised:
        await generating
    assert raised.type is kind
