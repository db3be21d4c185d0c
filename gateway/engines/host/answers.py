"""A gateway's window onto an engine's host: asks for completions, and hands their tokens on as they come.

Knows: the messages of completions, how busy the host says that the engine is.
Must not know: processes, why an engine ends, how the host is found.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

from gateway.domain.engine import EngineCapacity
from gateway.domain.errors import EngineRestarting, EngineUnavailable
from gateway.engines.host.channel import Channel
from gateway.engines.host.messages import Aborted, Generate, Slots, Step, ToGateway, ToHost, Wanted, error_of
from gateway.engines.lifecycle import Generation, Lifecycle
from gateway.engines.prompting.completions import News, OnNews, Prompt
from gateway.engines.translating import TranslatingEngine


class Window(TranslatingEngine):
    """What every engine port over a host has. max_running: as long as the host has said nothing."""

    def __init__(self, life: Lifecycle, max_running: int) -> None:
        super().__init__(life)
        # How many more translations would be asked for now if there were slots; told with each request.
        self.waiting: Callable[[], Wanted] = Wanted
        self._channel: Channel[ToHost, ToGateway] | None = None
        self._capacity = EngineCapacity(max_running, 0, 0)
        # Those in flight; the channel may be another one later.
        self._answers: dict[int, _Answer] = {}
        self._numbers = itertools.count(1)

    def _heard(self, message: ToGateway) -> None:
        match message:
            case Step():
                answers = self._answers  # those that are not there are not read any more
                for begun, numbers in ((False, message.held), (True, message.begun)):
                    for number in numbers:
                        if (answer := answers.get(number)) is not None:
                            answer.begun = begun
                for number, news in message.news:
                    if (answer := answers.get(number)) is not None:
                        answer.hear(news)
                for number, failed in message.failed:
                    if (answer := answers.get(number)) is not None:
                        answer.fail(error_of(failed))
            case Slots():
                self._capacity = EngineCapacity(message.granted, message.running, message.waiting, message.lag_s)

    def capacity(self) -> EngineCapacity:
        """`max_running`: the slots of this gateway now; the others: of the whole engine."""
        return self._capacity

    async def _complete(self, generation: Generation, prompt: Prompt, on_news: OnNews) -> None:
        """Raises `EngineUnavailable` once the generations have ended: `EngineRestarting` if it had not begun."""
        channel = self._channel
        assert channel is not None  # noqa: S101 -- ready engines have it
        number = next(self._numbers)
        self._answers[number] = answer = _Answer(on_news, begun=not prompt.alone)
        try:
            channel.say(Generate(number, prompt, self.waiting()))
            with generation:
                error = await answer.end
            if error is not None:
                raise error
        except EngineUnavailable as error:
            if answer.begun:
                raise
            raise EngineRestarting(error.message, retry_after_ms=error.retry_after_ms) from None
        finally:
            del self._answers[number]
            if not answer.over:
                channel.say(Aborted(number))


class _Answer:
    __slots__ = ("_on_news", "begun", "end", "over")

    def __init__(self, on_news: OnNews, *, begun: bool) -> None:
        # Whether it runs in the engine, as far as is known.
        self.begun = begun
        # Whether the host has ended it.
        self.over = False
        # Set at its end, to the error if there is one; cancelled with the task that waits for it.
        self.end: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self._on_news = on_news

    def hear(self, news: News) -> None:
        if self.end.done():
            return
        self.over = news.finish is not None
        try:
            self._on_news(news)
        except Exception as error:  # from the reader of the text; the channel is not to fail
            self.end.set_result(error)
        else:
            if self.over:
                self.end.set_result(None)

    def fail(self, error: Exception) -> None:
        self.over = True
        if not self.end.done():
            self.end.set_result(error)
