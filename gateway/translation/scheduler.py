"""Whose turn it is: bounded, fair admission in front of the engine, and another turn after the engine died.

Knows: which translations wait and which run, per meeting; the engine's capacity and health.
Must not know: the wire, meetings' members, what is done with the tokens, how an engine is built again.

The engine batches by itself, so nothing is batched or timed here. This queue exists for four reasons only:
to say `overloaded` at once instead of late, to let meetings take turns, to let a waiting request be withdrawn
for nothing, and to hold work while the engine is built again. It hands the engine a little more than it runs
together, so that a sequence that ends is replaced at the very next step.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from bisect import insort
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import aclosing
from enum import Enum

from msgspec import Struct

from gateway import metrics
from gateway.domain.engine import EngineState, FinishReason, TokenEvent, TranslationRequest
from gateway.domain.errors import (
    Cancelled,
    DeadlineExceeded,
    Draining,
    EngineFailed,
    EngineUnavailable,
    GatewayError,
    Overloaded,
)
from gateway.domain.ports import Engine
from gateway.translation.pacing import Showing

__all__ = ["CATCHING_UP", "FINAL", "PARTIAL", "Generated", "Scheduler", "Ticket"]

_log = logging.getLogger(__name__)

# Priorities, lower first: what was promised, what is still being said, what a late joiner is shown of earlier.
FINAL, PARTIAL, CATCHING_UP = 0, 1, 2

# A translation that ran in so many crashes may be their cause, so it runs alone from then on; when the engine dies
# again, it was the cause. A text that kills the engine thus costs three crashes, and each further one among the
# same suspects costs one more. The supervisor's default of five restarts in a row lets three such texts be found
# among all that ran together; with more of them the engine is called failed, and is tried again later.
_SUSPECT_CRASHES = 2


class Generated(Struct, frozen=True):
    """A whole translation. `truncated`: the output limit cut it short.

    rejected: there is none, because the model would not have gone on from the request's prefix.
    """

    text: str
    truncated: bool
    rejected: bool = False


class _Stage(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"


class Ticket:
    """One admitted translation. Collect it at most once; whoever holds it calls `withdraw` in the end.

    admitted_s, started_s, first_token_s, finished_s: readings of the scheduler's clock; null until then. After a
    crash of the engine `started_s` and `first_token_s` stay those of the first attempt, which readers saw.
    tokens: of the text of the last attempt, taken over from the request's prefix and draft or generated; text:
    what there is of it. crashes: how often the engine died while this ran. shown: all text that readers saw; it is
    never taken back while this is generated. preempted: it gave its place to what was promised.
    """

    def __init__(
        self, scheduler: Scheduler, serial: int, queue: str, request: TranslationRequest, admitted_s: float
    ) -> None:
        self.serial = serial
        self.request = request
        self.queue = queue
        self.admitted_s = admitted_s
        self.started_s: float | None = None
        self.first_token_s: float | None = None
        self.finished_s: float | None = None
        self.tokens = 0
        self.text = ""
        self.crashes = 0
        self.shown = request.prefix
        self.preempted = False
        self.stage = _Stage.WAITING
        # No future: cancelling a task cancels the future it awaits, and a turn may be given just then.
        self.turn = asyncio.Event()
        self.expiry: asyncio.TimerHandle | None = None
        self._scheduler = scheduler
        self._given_up: GatewayError | None = None
        self._until: asyncio.Timeout | None = None

    @property
    def suspect(self) -> bool:
        """Whether its text may be what kills the engine."""
        return self.crashes >= _SUSPECT_CRASHES

    @property
    def best_effort(self) -> bool:
        return self.request.priority > FINAL

    @property
    def ending(self) -> bool:
        """Whether it has ended, or was given up and is about to."""
        return self._given_up is not None or self.stage is _Stage.ENDED

    def exchange(self, request: TranslationRequest) -> bool:
        """Take another request of the same priority in place of this, while it waits. False: its turn has come."""
        if self.stage is not _Stage.WAITING or self.ending:
            return False
        self.request, self.shown = request, request.prefix
        return True

    def preempt(self) -> None:
        """What was promised needs the place."""
        self.preempted = True
        self.give_up(Cancelled("The place was needed for a final utterance."))

    def give_up(self, error: GatewayError) -> None:
        """End this with `error`: `collect` raises it, now or when it is called. The first reason counts."""
        if self.ending:
            return
        self._given_up = error
        if self._until is not None:
            self._until.reschedule(asyncio.get_running_loop().time())
        else:
            self._scheduler.release(self)

    def withdraw(self) -> None:
        """Nobody wants this any more: give the place back, waiting or running. Does nothing once it has ended."""
        self.give_up(Cancelled("The translation was withdrawn."))

    async def collect(self, show: Callable[[str], None] | None = None) -> Generated:
        """Wait for the turn and generate to the end, again after each crash of the engine.

        `show`, if anybody is to see it grow, gets every new piece of text; after a crash only what goes beyond the
        text shown before and agrees with it. Raises `GatewayError` and nothing else, but for the cancellation of
        its task.
        """
        try:
            if self._given_up is not None:
                raise self._given_up
            async with asyncio.timeout(None) as self._until:
                return await self._scheduler.run(self, show)
        except GatewayError as error:
            # An engine may turn the interruption into an error of its own.
            raise self._given_up or error from None
        except Exception as error:
            if self._given_up is not None:
                raise self._given_up from None
            # The text itself is never logged; the type and the place of the failure are.
            _log.exception("translation %s failed unexpectedly", self.request.id, exc_info=error)
            raise EngineFailed("The engine failed on this text for an unknown reason.") from None
        finally:
            self._until = None
            self._scheduler.release(self)


class Scheduler:
    """Admits translations into the engine.

    max_waiting: translations that may wait for their turn; one more is refused with `overloaded`.
    lookahead: sequences handed to the engine beyond what it runs together.
    best_effort_share: of the sequences that the engine runs together, so much at most is best effort, but at least
    one: what was promised finds room at once, and the batch stays small enough for it to be fast.
    deadline_s: how long after its admission a translation is given up, crashes of the engine included.
    show_interval_s: new text is shown about so often, the first and the last at once; with 0 every token is.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        max_waiting: int,
        lookahead: int = 2,
        best_effort_share: float = 0.5,
        deadline_s: float = 300.0,
        show_interval_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._max_waiting = max_waiting
        self._lookahead = lookahead
        self._best_effort_share = best_effort_share
        self._deadline_s = deadline_s
        self._show_interval_s = show_interval_s
        self._clock = clock
        self._serials = itertools.count(1)
        # By priority; in each, meetings in the order of their turns; in each, tickets in the order of admission.
        self._queues: dict[int, OrderedDict[str, deque[Ticket]]] = {}
        self._suspects: list[Ticket] = []
        self._waiting = 0
        self._running: set[Ticket] = set()
        self._best_effort_running = 0
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

        All have one priority: `FINAL` is promised and comes before everything; the others are best effort, and
        partials are preempted by what is promised. While the engine is being built again, translations
        are admitted and wait.
        Raises `Draining`, `EngineUnavailable` or `Overloaded`; all retryable, none admitted.
        """
        if self._draining:
            raise Draining("The gateway is shutting down; reconnect and send this again.", retry_after_ms=1_000)
        health = self._engine.health()
        if health.state not in (EngineState.READY, EngineState.RESTARTING):
            raise EngineUnavailable(f"The engine is not ready: {health.reason}", retry_after_ms=2_000)
        if not requests:
            return []
        priority = requests[0].priority
        self._check_room(queue, priority, len(requests))
        now_s = self._clock()
        loop = asyncio.get_running_loop()
        tickets = [Ticket(self, next(self._serials), queue, request, now_s) for request in requests]
        for ticket in tickets:
            ticket.expiry = loop.call_later(self._deadline_s, self._expire, ticket)
        self._queues.setdefault(priority, OrderedDict()).setdefault(queue, deque()).extend(tickets)
        self._waiting += len(tickets)
        self._idle.clear()
        self._give_turns()
        return tickets

    def engine_changed(self) -> None:
        """Whoever watches the engine says that its health is another now."""
        match self._engine.health().state:
            case EngineState.READY:
                self._give_turns()
            case EngineState.FAILED:
                for ticket in self._all():
                    ticket.give_up(_failed())
            case EngineState.STOPPED:
                for ticket in self._all():
                    ticket.give_up(_stopped())

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
            for ticket in self._all():
                ticket.give_up(
                    Draining(
                        "The gateway stopped before this was translated; send it again.", retry_after_ms=1_000
                    )
                )
        return True

    # ------------------------------------------------------------ one translation

    async def run(self, ticket: Ticket, show: Callable[[str], None] | None) -> Generated:
        """See `Ticket.collect`."""
        while True:
            await ticket.turn.wait()
            # The turn may be older than the crash.
            if self._engine.health().state is EngineState.READY:
                try:
                    return await self._generate(ticket, show)
                except EngineUnavailable:
                    ticket.crashes += 1
                    if not ticket.request.final:
                        raise  # a newer revision will come, and this may be what killed the engine
            self._again(ticket)

    async def _generate(self, ticket: Ticket, show: Callable[[str], None] | None) -> Generated:
        text = ticket.text = ""
        finish: FinishReason | None = None
        ticket.tokens = generated = 0

        showing = self._showing(ticket, show) if show is not None else None
        try:
            async with aclosing(self._engine.generate(ticket.request)) as events:
                async for event in events:
                    if ticket.first_token_s is None and event.tokens:
                        ticket.first_token_s = self._clock()
                    ticket.tokens += event.tokens + event.reused
                    generated += event.tokens
                    # Some tokenizers begin with a space that is no part of the translation.
                    ticket.text = text = text + (event.text if text else event.text.lstrip())
                    if showing is not None:
                        showing.grow(text)
                    if event.finish is not None:
                        finish = event.finish
                        self._finished(ticket, event)
                        if showing is not None:
                            showing.end()
        finally:
            if showing is not None:
                showing.stop()
            _count(ticket.request, generated, ticket.tokens - generated)
        return Generated(
            text.rstrip(), truncated=finish is FinishReason.LENGTH, rejected=finish is FinishReason.REJECTED
        )

    def _showing(self, ticket: Ticket, show: Callable[[str], None]) -> Showing:
        def hand_on(fresh: str) -> None:
            ticket.shown += fresh
            show(fresh)

        return Showing(hand_on, shown=ticket.shown, interval_s=self._show_interval_s, clock=self._clock)

    def _finished(self, ticket: Ticket, event: TokenEvent) -> None:
        ticket.finished_s = self._clock()
        metrics.PROMPT_TOKENS.inc(event.prompt_tokens)
        metrics.PROMPT_TOKENS_CACHED.inc(event.cached_tokens)
        if not ticket.request.final:
            metrics.PARTIAL_S.observe(ticket.finished_s - ticket.admitted_s)
            return
        metrics.TRANSLATION_S.observe(ticket.finished_s - ticket.admitted_s)
        if ticket.first_token_s is not None:
            metrics.FIRST_TOKEN_S.observe(ticket.first_token_s - ticket.admitted_s)
            # The time of a crash is not that of a token.
            if ticket.tokens > 1 and not ticket.crashes:
                metrics.TOKEN_INTERVAL_S.observe((ticket.finished_s - ticket.first_token_s) / (ticket.tokens - 1))

    def _again(self, ticket: Ticket) -> None:
        """Put a ticket whose engine died back where it was in its queue. Raises where that is its end."""
        state = self._engine.health().state
        if state is EngineState.STOPPED:
            raise _stopped()
        if ticket.crashes > _SUSPECT_CRASHES:
            _log.error("the engine died on translation %s, which ran alone; it is given up", ticket.request.id)
            raise EngineFailed("The engine died on this text several times; it was not translated.")
        if state is EngineState.FAILED:
            raise _failed()
        metrics.TRANSLATIONS_AGAIN.inc()
        self._stop_running(ticket)
        ticket.stage = _Stage.WAITING
        ticket.turn.clear()
        self._waiting += 1
        if ticket.suspect:
            insort(self._suspects, ticket, key=lambda suspect: (suspect.request.priority, suspect.serial))
        else:
            queues = self._queues.setdefault(ticket.request.priority, OrderedDict())
            queue = queues.setdefault(ticket.queue, deque())
            queues.move_to_end(ticket.queue, last=False)
            # Before all that never ran, and in order of admission among those that did.
            place = next((n for n, other in enumerate(queue) if other.serial > ticket.serial), len(queue))
            queue.insert(place, ticket)
        # Usually nothing: the engine is being built again.
        self._give_turns()

    def _expire(self, ticket: Ticket) -> None:
        ticket.give_up(
            DeadlineExceeded(f"The translation was not done within {self._deadline_s:g} s of its acceptance.")
        )

    # ------------------------------------------------------------ turns

    def _check_room(self, queue: str, priority: int, count: int) -> None:
        """Raises `Overloaded`."""
        # Best effort takes half of the room, in all and of each meeting; what is promised does not see it.
        part = 1 if priority == FINAL else 2
        free = max(0, self._free())
        limit = self._max_waiting // part
        ahead = [queues for number, queues in self._queues.items() if number <= priority]
        waiting = sum(len(tickets) for queues in ahead for tickets in queues.values()) + len(self._suspects)
        if waiting + count > limit + free:
            raise Overloaded(
                f"{waiting} translations are waiting already; the limit is {limit}.", retry_after_ms=1_000
            )
        # Half at most, so that nobody's backlog can shut the others out.
        share = (self._max_waiting + 1) // 2 // part
        own = sum(len(queues.get(queue, ())) for queues in ahead)
        own += sum(ticket.queue == queue for ticket in self._suspects)
        if own + count > share + free:
            raise Overloaded(
                f"{own} translations of this meeting are waiting already; its share is {share}.",
                retry_after_ms=1_000,
            )

    def _free(self) -> int:
        """How many turns may be given now."""
        if self._engine.health().state is not EngineState.READY:
            return 0
        # Suspects come first: the sooner the text that kills the engine is found, the better for everybody. Each
        # runs alone once at most, at the pace of a lone sequence, so all of them are through within seconds.
        if self._suspects:
            return 0 if self._running else 1
        if len(self._running) == 1 and next(iter(self._running)).suspect:
            return 0
        return self._engine.capacity().max_running + self._lookahead - len(self._running)

    def _give_turns(self) -> None:
        if self._waiting:
            for _ in range(self._free()):
                ticket = self._next()
                if ticket is None:
                    break
                self._waiting -= 1
                ticket.stage = _Stage.RUNNING
                self._running.add(ticket)
                self._best_effort_running += ticket.best_effort
                if ticket.started_s is None:
                    ticket.started_s = self._clock()
                    if ticket.request.final:
                        metrics.QUEUE_S.observe(ticket.started_s - ticket.admitted_s)
                ticket.turn.set()
        self._preempt()

    def _next(self) -> Ticket | None:
        """Take the ticket out whose turn it is."""
        if self._suspects:
            return self._suspects.pop(0)
        if not self._queues:
            return None
        priority = min(self._queues)
        if priority > FINAL and not self._room_for_best_effort():
            return None
        queues = self._queues[priority]
        name, queue = queues.popitem(last=False)
        ticket = queue.popleft()
        if queue:
            queues[name] = queue  # to the back: the other meetings come first
        elif not queues:
            del self._queues[priority]
        return ticket

    def _room_for_best_effort(self) -> bool:
        """Whether one more would run at once and leave the promised ones their share."""
        most = self._engine.capacity().max_running
        share = max(1, int(most * self._best_effort_share))
        return len(self._running) < most and self._best_effort_running < share

    def _preempt(self) -> None:
        """Take the places of partials for the finals that wait; nobody waits behind what may still change."""
        if not self._running:
            return
        promised = sum(map(len, self._queues.get(FINAL, {}).values()))
        # What was handed to the engine beyond what it runs together waits there.
        promised += max(0, len(self._running) - self._engine.capacity().max_running)
        if not promised:
            return
        partials = [ticket for ticket in self._running if not ticket.request.final]
        promised -= sum(ticket.ending for ticket in partials)
        # The youngest have the least to lose.
        for ticket in sorted(partials, key=lambda ticket: ticket.serial, reverse=True):
            if promised <= 0:
                return
            if not ticket.ending:
                promised -= 1
                ticket.preempt()

    def release(self, ticket: Ticket) -> None:
        """The ticket has ended, however it did."""
        if ticket.stage is _Stage.ENDED:
            return
        if ticket.stage is _Stage.RUNNING:
            self._stop_running(ticket)
            self._count_time(ticket)
        else:
            self._take_out(ticket)
            self._waiting -= 1
        ticket.stage = _Stage.ENDED
        if ticket.expiry is not None:
            ticket.expiry.cancel()
            ticket.expiry = None
        self._give_turns()
        if not self._running and not self._waiting:
            self._idle.set()

    def _stop_running(self, ticket: Ticket) -> None:
        self._running.remove(ticket)
        self._best_effort_running -= ticket.best_effort

    def _count_time(self, ticket: Ticket) -> None:
        if ticket.started_s is not None:
            stage = "final" if ticket.request.final else "partial"
            metrics.GENERATION_S.labels(stage, ticket.request.target).inc(self._clock() - ticket.started_s)

    def _take_out(self, ticket: Ticket) -> None:
        if ticket.suspect:
            self._suspects.remove(ticket)
            return
        queues = self._queues[ticket.request.priority]
        queue = queues[ticket.queue]
        queue.remove(ticket)
        if not queue:
            del queues[ticket.queue]
        if not queues:
            del self._queues[ticket.request.priority]

    def _all(self) -> list[Ticket]:
        """Those that wait come first, so that ending them in this order gives none of them a turn."""
        queues = [queue for queues in self._queues.values() for queue in queues.values()]
        return [*self._suspects, *itertools.chain.from_iterable(queues), *self._running]


def _count(request: TranslationRequest, generated: int, reused: int) -> None:
    metrics.TOKENS.inc(generated)
    if reused:
        metrics.TOKENS_REUSED.inc(reused)
    (metrics.FINAL_TOKENS if request.final else metrics.PARTIAL_TOKENS).labels(request.target).inc(generated)


def _failed() -> EngineFailed:
    return EngineFailed("The engine failed repeatedly; this was not translated.")


def _stopped() -> EngineUnavailable:
    return EngineUnavailable("The engine was stopped before this was translated.", retry_after_ms=2_000)
