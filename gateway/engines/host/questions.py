"""Questions for metrics over a channel, and their answers.

Knows: numbers of questions, how long an answer may take. Must not know: which process asks which.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Sequence

from gateway.engines.host.messages import GetMetrics, Metrics


class Questions:
    """Those asked over one channel and not answered yet."""

    def __init__(self, say: Callable[[GetMetrics], None], answer_s: float) -> None:
        self._say = say
        self._answer_s = answer_s
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[bytes]] = {}

    async def ask(self, names: Sequence[str]) -> bytes:
        """The other side's metrics; nothing if it does not answer in time, or is gone."""
        number = next(self._numbers)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        self._say(GetMetrics(number, list(names)))
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._answer_s):
                    return await answer
            return b""
        finally:
            del self._asked[number]

    def answered(self, message: Metrics) -> None:
        """The other side answers."""
        if (answer := self._asked.get(message.number)) is not None and not answer.done():
            answer.set_result(message.page)

    def lost(self) -> None:
        """The other side is gone: no answer comes any more."""
        for answer in self._asked.values():
            if not answer.done():
                answer.set_result(b"")
