"""What the host generates for a gateway: asks for it, and hands it to whoever reads it.

Knows: the messages of one generation, who waits for its text.
Must not know: sockets, processes, why an engine ends.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable

from gateway.domain.engine import TokenEvent, TranslationRequest
from gateway.domain.errors import EngineRestarting, EngineUnavailable, GatewayError
from gateway.engines.host.messages import (
    Aborted,
    Begun,
    Generate,
    Generated,
    GenerationFailed,
    Held,
    OfGeneration,
    ToHost,
    error_of,
)
from gateway.engines.host.seats import Wanted
from gateway.engines.in_flight import Generations

__all__ = ["Answers"]


class Answers:
    """The generations in flight over one channel, which may be another one later.

    waiting: how many more translations would be asked for now if there were seats; told with each request.
    """

    def __init__(self, waiting: Callable[[], Wanted] = Wanted) -> None:
        self._waiting = waiting
        self._answers: dict[int, _Answer] = {}
        self._numbers = itertools.count(1)

    def __len__(self) -> int:
        return len(self._answers)

    def heard(self, message: OfGeneration) -> None:
        """The host says this; what nobody reads any more is ignored."""
        if (answer := self._answers.get(message.number)) is None:
            return
        match message:
            case Held():
                answer.begun = False
            case Begun():
                answer.begun = True
            case Generated():
                answer.add(message.event)
            case GenerationFailed():
                answer.fail(error_of(message))

    async def generate(
        self, request: TranslationRequest, generations: Generations, say: Callable[[ToHost], None]
    ) -> AsyncGenerator[TokenEvent, None]:
        """Translate one text. Raises `EngineFailed`, or `EngineUnavailable` once `generations` have ended.

        The latter is `EngineRestarting` if the host had not begun with it.
        """
        generation = generations.open()
        number = next(self._numbers)
        self._answers[number] = answer = _Answer(begun=not request.alone)
        try:
            say(Generate(number, request, self._waiting()))
            while not answer.over:
                with generation:
                    event = await answer.take()
                yield event
        except EngineUnavailable as error:
            if answer.begun:
                raise
            raise EngineRestarting(error.message, retry_after_ms=error.retry_after_ms) from None
        finally:
            generation.close()
            del self._answers[number]
            if not answer.over:
                say(Aborted(number))


class _Answer:
    """The output of a generation that its reader has not taken yet, merged into one event."""

    __slots__ = ("_error", "_event", "_reader", "begun", "over")

    def __init__(self, *, begun: bool) -> None:
        # Whether it runs in the engine, as far as is known.
        self.begun = begun
        # Whether the last event or an error was taken.
        self.over = False
        self._event: TokenEvent | None = None
        self._error: GatewayError | None = None
        self._reader: asyncio.Future[None] | None = None

    def add(self, event: TokenEvent) -> None:
        untaken = self._event
        self._event = event if untaken is None else _joined(untaken, event)
        self._wake()

    def fail(self, error: GatewayError) -> None:
        self._error = error
        self._wake()

    async def take(self) -> TokenEvent:
        """Wait for output. Output that came before an error is returned before the error is raised."""
        if self._event is None and self._error is None:
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        event, self._event = self._event, None
        if event is None:
            assert self._error is not None  # noqa: S101 -- one of the two woke us
            self.over = True
            raise self._error
        self.over = event.finish is not None
        return event

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


def _joined(first: TokenEvent, second: TokenEvent) -> TokenEvent:
    return TokenEvent(
        text=first.text + second.text,
        tokens=first.tokens + second.tokens,
        finish=second.finish,
        prompt_tokens=second.prompt_tokens,
        cached_tokens=second.cached_tokens,
        reused=first.reused + second.reused,
        confidence=second.confidence,
    )
