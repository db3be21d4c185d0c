"""Whose turn it is: bounded, fair admission in front of the engine.

Knows: which translations wait and which run, per meeting; the engine's capacity.
Must not know: the wire, meetings' members, what is done with the tokens.

The engine batches by itself, so nothing is batched or timed here. This queue exists for three reasons only:
to say `overloaded` at once instead of late, to let meetings take turns, and to let a waiting request be
withdrawn for nothing. It hands the engine a little more than it runs together, so that a sequence that ends is
replaced at the very next step.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from msgspec import Struct

from gateway import metrics
from gateway.errors import Draining, EngineFailed, EngineUnavailable, GatewayError, Overloaded
from gateway.events import EngineState, FinishReason, TokenEvent, TranslationRequest
from gateway.ports import Engine

__all__ = ["Generated", "Scheduler", "Ticket"]

_log = logging.getLogger(__name__)


class Ticket:
    """One admitted translation. Stream it at most once; whoever holds it calls `withdraw` in the end.

    admitted_s, started_s, first_token_s, finished_s: readings of the scheduler's clock; null until then.
    """

    def __init__(self, scheduler: Scheduler, queue: str, request: TranslationRequest, admitted_s: float) -> None:
        self.request = request
        self.queue = queue
        self.admitted_s = admitted_s
        self.started_s: float | None = None
        self.first_token_s: float | None = None
        self.finished_s: float | None = None
        self.tokens = 0
        # No future: cancelling a task cancels the future it awaits, and a turn may be given just then.
        self.turn = asyncio.Event()
        self._scheduler = scheduler
        self._given_up = False
        self._until: asyncio.Timeout | None = None

    def give_up(self) -> None:
        """The gateway leaves before this is done: `collect` raises `Draining`, now or when it is called."""
        self._given_up = True
        if self._until is not None:
            self._until.reschedule(asyncio.get_running_loop().time())

    def withdraw(self) -> None:
        """Give the place back, waiting or running. Does nothing the second time, or once streamed to the end."""
        self._scheduler.release(self)

    def stream(self) -> AsyncGenerator[TokenEvent, None]:
        """Wait for the turn, then generate. Raises what the engine raises; closing it aborts in the engine."""
        return self._scheduler.stream(self)

    async def collect(self, show: Callable[[str], None]) -> Generated:
        """Stream to the end; `show` gets every new piece of text. Raises `GatewayError` and nothing else."""
        text: list[str] = []
        truncated = False
        try:
            async with (
                asyncio.timeout(0 if self._given_up else None) as self._until,
                aclosing(self.stream()) as events,
            ):
                async for event in events:
                    truncated = event.finish is FinishReason.LENGTH
                    # Some tokenizers begin with a space that is no part of the translation.
                    if fresh := event.text if text else event.text.lstrip():
                        text.append(fresh)
                        show(fresh)
        except GatewayError:
            raise
        except Exception as error:
            if isinstance(error, TimeoutError) and self._given_up:
                raise Draining(
                    "The gateway stopped before this was translated; send it again.", retry_after_ms=1_000
                ) from None
            # The text itself is never logged; the type and the place of the failure are.
            _log.exception("translation %s failed unexpectedly", self.request.id)
            raise EngineFailed("The engine failed on this text for an unknown reason.") from None
        return Generated("".join(text).rstrip(), truncated)


class Generated(Struct, frozen=True):
    """A whole translation. `truncated`: the output limit cut it short."""

    text: str
    truncated: bool


class Scheduler:
    """Admits translations into the engine.

    max_waiting: translations that may wait for their turn; one more is refused with `overloaded`.
    lookahead: sequences handed to the engine beyond what it runs together.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        max_waiting: int,
        lookahead: int = 2,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._max_waiting = max_waiting
        self._lookahead = lookahead
        self._clock = clock
        self._queues: OrderedDict[str, deque[Ticket]] = OrderedDict()
        self._waiting = 0
        self._running: set[Ticket] = set()
        self._draining = False
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def waiting(self) -> int:
        """Admitted, turn not come."""
        return self._waiting

    @property
    def running(self) -> int:
        """Handed to the engine, not ended."""
        return len(self._running)

    @property
    def draining(self) -> bool:
        return self._draining

    def admit(self, queue: str, requests: Sequence[TranslationRequest]) -> list[Ticket]:
        """Take on all of `requests` or none; requests of one `queue` (a meeting) take turns with other queues.

        Raises `Draining`, `EngineUnavailable` or `Overloaded`; all retryable, none admitted.
        """
        if self._draining:
            raise Draining("The gateway is shutting down; reconnect and send this again.", retry_after_ms=1_000)
        health = self._engine.health()
        if health.state is not EngineState.READY:
            raise EngineUnavailable(f"The engine is not ready: {health.reason}", retry_after_ms=2_000)
        free = max(0, self._free())
        if self._waiting + len(requests) > self._max_waiting + free:
            raise Overloaded(
                f"{self._waiting} translations are waiting already; the limit is {self._max_waiting}.",
                retry_after_ms=1_000,
            )
        # Half at most, so that nobody's backlog can shut the others out.
        own, share = len(self._queues.get(queue, ())), (self._max_waiting + 1) // 2
        if own + len(requests) > share + free:
            raise Overloaded(
                f"{own} translations of this meeting are waiting already; its share is {share}.",
                retry_after_ms=1_000,
            )
        now_s = self._clock()
        tickets = [Ticket(self, queue, request, now_s) for request in requests]
        if tickets:
            self._queues.setdefault(queue, deque()).extend(tickets)
            self._waiting += len(tickets)
            self._idle.clear()
            self._give_turns()
        return tickets

    async def stream(self, ticket: Ticket) -> AsyncGenerator[TokenEvent, None]:
        """See `Ticket.stream`."""
        try:
            await ticket.turn.wait()
            async with aclosing(self._engine.generate(ticket.request)) as events:
                async for event in events:
                    if ticket.first_token_s is None and event.tokens:
                        ticket.first_token_s = self._clock()
                    ticket.tokens += event.tokens
                    if event.finish is not None:
                        self._finished(ticket, event)
                    yield event
        finally:
            self.release(ticket)

    async def drain(self, deadline_s: float) -> bool:
        """Admit nothing more; wait until all is done, at most `deadline_s`. True when all was done.

        Otherwise, and when this is cancelled, what is left is given up: its `collect` raises `Draining`.
        """
        self._draining = True
        try:
            async with asyncio.timeout(deadline_s):
                await self._idle.wait()
        except TimeoutError:
            return False
        finally:
            for ticket in [*self._running, *(ticket for queue in self._queues.values() for ticket in queue)]:
                ticket.give_up()
        return True

    # ------------------------------------------------------------ turns

    def _free(self) -> int:
        return self._engine.capacity().max_running + self._lookahead - len(self._running)

    def _give_turns(self) -> None:
        free = self._free()
        while free > 0 and self._queues:
            name, queue = self._queues.popitem(last=False)
            ticket = queue.popleft()
            if queue:
                self._queues[name] = queue  # to the back: the other meetings come first
            self._waiting -= 1
            free -= 1
            ticket.started_s = self._clock()
            metrics.QUEUE_S.observe(ticket.started_s - ticket.admitted_s)
            self._running.add(ticket)
            ticket.turn.set()
        self._publish_load()

    def _finished(self, ticket: Ticket, event: TokenEvent) -> None:
        ticket.finished_s = self._clock()
        metrics.TRANSLATION_S.observe(ticket.finished_s - ticket.admitted_s)
        if ticket.first_token_s is not None:
            metrics.FIRST_TOKEN_S.observe(ticket.first_token_s - ticket.admitted_s)
            if ticket.tokens > 1:
                metrics.TOKEN_INTERVAL_S.observe((ticket.finished_s - ticket.first_token_s) / (ticket.tokens - 1))
        metrics.TOKENS.inc(ticket.tokens)
        metrics.PROMPT_TOKENS.inc(event.prompt_tokens)
        metrics.PROMPT_TOKENS_CACHED.inc(event.cached_tokens)

    def release(self, ticket: Ticket) -> None:
        """See `Ticket.withdraw`."""
        if ticket in self._running:
            self._running.discard(ticket)
        elif ticket.started_s is None and (queue := self._queues.get(ticket.queue)) and ticket in queue:
            queue.remove(ticket)
            self._waiting -= 1
            if not queue:
                del self._queues[ticket.queue]
        else:
            return
        self._give_turns()
        if not self._running and not self._waiting:
            self._idle.set()

    def _publish_load(self) -> None:
        metrics.TRANSLATIONS_WAITING.set(self._waiting)
        metrics.TRANSLATIONS_RUNNING.set(len(self._running))
