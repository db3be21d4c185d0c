"""Questions over a channel that may be slow, or end."""

from __future__ import annotations

import asyncio

from gateway.engines.host.messages import GetMetrics, Metrics
from gateway.engines.host.questions import Questions


async def test_each_gets_its_own_answer() -> None:
    asked: list[GetMetrics] = []
    questions = Questions(asked.append, answer_s=3_600)
    first, second = (asyncio.create_task(questions.ask(names)) for names in (["a"], []))
    await asyncio.sleep(0)
    assert [question.names for question in asked] == [["a"], []]
    questions.answered(Metrics(asked[1].number, b"two"))
    questions.answered(Metrics(asked[1].number, b"again"))
    questions.answered(Metrics(99, b"nobody's"))
    questions.answered(Metrics(asked[0].number, b"one"))
    assert [await first, await second] == [b"one", b"two"]


async def test_no_answer_is_an_empty_page() -> None:
    assert await Questions(lambda _: None, answer_s=0.001).ask([]) == b""
    questions = Questions(lambda _: None, answer_s=3_600)
    asking = asyncio.create_task(questions.ask([]))
    await asyncio.sleep(0)
    questions.lost()
    assert await asking == b""
