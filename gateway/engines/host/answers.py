"""A gateway's window onto an engine's host: asks for generations, and hands their text on as it comes.

Knows: the messages of generations, how busy the host says that the engine is.
Must not know: processes, why an engine ends, how the host is found.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

from gateway.domain.engine import EngineCapacity, OnEvent, TokenEvent, TranslationRequest
from gateway.domain.errors import EngineRestarting, EngineUnavailable, GatewayError
from gateway.engines.host.channel import Channel
from gateway.engines.host.messages import (
    Aborted,
    Begun,
    Generate,
    Generated,
    GenerationFailed,
    Held,
    Slots,
    ToGateway,
    ToHost,
    Wanted,
    error_of,
)
from gateway.engines.lifecycle import Adapter, Lifecycle


class Window(Adapter):
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
            case Generated() | GenerationFailed() | Held() | Begun():
                if (answer := self._answers.get(message.number)) is not None:  # else it is not read any more
                    answer.hear(message)
            case Slots():
                self._capacity = EngineCapacity(message.granted, message.running, message.waiting, message.lag_s)

    def capacity(self) -> EngineCapacity:
        """`max_running`: the slots of this gateway now; the others: of the whole engine."""
        return self._capacity

    async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
        """Translate one text. Raises `EngineFailed`, or `EngineUnavailable` once the generations have ended.

        The latter is `EngineRestarting` if the host had not begun with it.
        """
        self._life.check()
        channel = self._channel
        assert channel is not None  # noqa: S101 -- ready engines have it
        generation = self._generations.open()
        number = next(self._numbers)
        self._answers[number] = answer = _Answer(on_event, begun=not request.alone)
        try:
            channel.say(Generate(number, request, self.waiting()))
            with generation:
                error = await answer.end
            if error is not None:
                raise error
        except EngineUnavailable as error:
            if answer.begun:
                raise
            raise EngineRestarting(error.message, retry_after_ms=error.retry_after_ms) from None
        finally:
            generation.close()
            del self._answers[number]
            if not answer.over:
                channel.say(Aborted(number))


class _Answer:
    __slots__ = ("_on_event", "begun", "end", "over")

    def __init__(self, on_event: OnEvent, *, begun: bool) -> None:
        # Whether it runs in the engine, as far as is known.
        self.begun = begun
        # Whether the host has ended it.
        self.over = False
        # Set at its end, to the error if there is one; cancelled with the task that waits for it.
        self.end: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self._on_event = on_event

    def hear(self, message: Generated | GenerationFailed | Held | Begun) -> None:
        match message:
            case Generated():
                self._hand_on(message.event)
            case GenerationFailed():
                self._fail(error_of(message))
            case _:
                self.begun = isinstance(message, Begun)

    def _hand_on(self, event: TokenEvent) -> None:
        if self.end.done():
            return
        self.over = event.finish is not None
        try:
            self._on_event(event)
        except Exception as error:  # from the reader of the text; the channel is not to fail
            self.end.set_result(error)
        else:
            if self.over:
                self.end.set_result(None)

    def _fail(self, error: GatewayError) -> None:
        self.over = True
        if not self.end.done():
            self.end.set_result(error)
