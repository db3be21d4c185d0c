"""Hands waiting translations to the engine's lanes as they have room, and once more after one of them died.

Knows: which translations wait and which run; each lane's slots and health.
Must not know: the wire, meetings' members, what is done with the text, how an engine is built again.

The engine batches by itself, so no request is batched or timed here. This queue exists for four reasons only:
to say `overloaded` at once instead of late, to let addresses and meetings take turns, to let a waiting request be
withdrawn for nothing, and to hold work while an engine is built again. It hands a lane a little more than that
runs together, so that a sequence that ends is replaced at the very next step.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NoReturn

from msgspec.structs import replace

from gateway.domain.engine import EngineState, TokenEvent, TranslationRequest
from gateway.domain.errors import (
    Cancelled,
    DeadlineExceeded,
    Draining,
    EngineFailed,
    EngineRestarting,
    EngineUnavailable,
    GatewayError,
)
from gateway.domain.grants import tenant_of_account
from gateway.domain.ports import Engine
from gateway.translation.scheduling.lanes import Lane, Lanes, Route, drained, failed, stopped
from gateway.translation.scheduling.lines import Door, Line, Lines, to_preempt
from gateway.translation.scheduling.quotas import Quotas
from gateway.translation.scheduling.ticket import SUSPECT_CRASHES, Generated, Stage, Ticket, generated_text

_log = logging.getLogger(__name__)


class Scheduler:
    """Admits translations into the engine.

    lanes: the engines behind it, each with slots of its own; by default it is one.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        lanes: Callable[[], Mapping[str, Engine]] | None = None,
        # Translations that may wait for the same lanes; one more is refused with `overloaded`.
        max_waiting: int,
        # How long a translation may have to wait for its turn, seconds; if it seems longer, it is refused.
        max_queue_s: float,
        # Sequences handed to a lane beyond what it runs together.
        lookahead: int = 2,
        # Share of a lane's slots that best effort may take, but at least one: a final finds room at
        # once, and the batch stays small enough for it to be fast.
        best_effort_share: float,
        # How long after its admission a translation is given up, crashes of the engine included.
        deadline_s: float,
        # The quotas of the tenants whose translations they are.
        quotas: Quotas | None = None,
        # How late the event loop is, seconds.
        lag_s: Callable[[], float] = lambda: 0.0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._engine = engine
        self._quotas = quotas or Quotas()
        self._lines = Lines(max_waiting, max_queue_s)
        self._lanes = Lanes(
            engine, lanes or (lambda: {"": engine}), lookahead=lookahead, best_effort_share=best_effort_share
        )
        self._deadline_s = deadline_s
        # Those that have not ended.
        self._deadlines = Deadlines(deadline_s, self._expire)
        self._clock = clock or time.monotonic
        self.door = Door(self._lanes, self._lines, self._quotas, self._clock, lag_s)
        self._serials = itertools.count(1)
        self._draining = False
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def waiting(self) -> int:
        """Admitted, turn not come."""
        return len(self._lines)

    @property
    def running(self) -> int:
        """Handed to the engine, not ended."""
        return self._lanes.running

    def wanted(self, lane: str = "") -> tuple[int, int]:
        """How many wait for a lane: finals, and others. Suspects count as others."""
        return self._lines.wanted(lane)

    def waiting_by_tenant(self) -> Counter[str]:
        """As `waiting`, of each tenant."""
        return Counter(tenant_of_account(ticket.account) for ticket in self._lines.tickets)

    @property
    def draining(self) -> bool:
        return self._draining

    def admit(
        self,
        meeting: str,
        requests: Sequence[TranslationRequest],
        *,
        account: str = "",
        promised: bool = False,
        suspected_on: str | None = None,
    ) -> list[Ticket]:
        """Take on all of `requests` or none. Accounts take turns, and so do the meetings of each.

        account: who is charged for the places. promised: accepted before, so that quotas do not matter any more.
        suspected_on: the lane that died on an earlier revision of this.
        All requests have one priority: `FINAL` is promised and comes first; the others are best effort, and
        partials give up their place to finals. While the engine is being built again, translations are admitted
        and wait. Raises `Draining`, `EngineUnavailable`, `Overloaded` or `QuotaExceeded`, which are all retryable,
        or `UnsupportedLanguage`; then none is admitted.
        """
        if self._draining:
            raise Draining("The gateway is shutting down; reconnect and send this again.", retry_after_ms=1_000)
        health = self._engine.health()
        if health.state not in (EngineState.READY, EngineState.RESTARTING):
            raise EngineUnavailable(f"The engine is not ready: {health.reason}", retry_after_ms=2_000)
        if not requests:
            return []
        priority, now_s = requests[0].priority, self._clock()
        tickets = [Ticket(next(self._serials), meeting, request, now_s, account) for request in requests]
        counts: dict[Route, int] = {}
        for ticket in tickets:
            if meeting:  # of a call over HTTP, which is no utterance, each has a turn of its own
                ticket.utterance = tickets[0].serial
            ticket.route = self._lanes.route_for(ticket, suspected_on)
            counts[ticket.route] = counts.get(ticket.route, 0) + 1
        check = self.door.check_promised if promised else self.door.check
        check(account, meeting, priority, counts)
        self._idle.clear()
        for ticket in tickets:
            ticket.begin_span()
            self._deadlines.add(ticket)
            self._limit_binding(ticket)
        # Where none waits, a newcomer that finds room has it at once.
        none_waits = not self._lines
        if late := [each for each in tickets if not (none_waits and self._takes_turn(each))]:
            self._lines.append(late)
            self._give_turns()
        else:
            self._preempt()
        return tickets

    def refusal(self, source: str, target: str) -> GatewayError | None:
        """Why this pair of languages cannot be translated, while others can; None if it can, or will be soon."""
        return self._lanes.refusal(source, target)

    async def collect(
        self, ticket: Ticket, on_text: OnText | None = None, on_turn: Callable[[], Awaitable[None]] | None = None
    ) -> Generated:
        """Wait for the turn and generate to the end, again after each crash of the engine.

        on_turn: awaited whenever its turn has come, before the engine gets it; must not raise.
        Raises `GatewayError` and nothing else, but for the cancellation of its task.
        """
        try:
            if ticket.given_up is not None:
                raise ticket.given_up
            async with asyncio.timeout(None) as ticket.interrupt:
                while not await self._generate(ticket, on_text, on_turn):
                    self._put_back(ticket)
            return generated_text(ticket.text, ticket.last)
        except GatewayError as error:
            # An engine may turn the interruption into an error of its own.
            ticket.given_up = ticket.given_up or error
            raise ticket.given_up from None
        except Exception as error:
            if ticket.given_up is not None:
                raise ticket.given_up from None
            # The text itself is never logged; the type and the place of the failure are.
            _log.exception("translation %s failed unexpectedly", ticket.request.id, exc_info=error)
            raise EngineFailed("The engine failed on this text for an unknown reason.") from None
        finally:
            ticket.interrupt = None
            self._release(ticket)

    def give_up(self, ticket: Ticket, error: GatewayError) -> None:
        """End a translation: `collect` raises `error`, now or when it is called. The first reason counts."""
        if ticket.ending:
            return
        ticket.given_up = error
        if ticket.interrupt is not None:
            ticket.interrupt.reschedule(asyncio.get_running_loop().time())
        else:
            self._release(ticket)

    def withdraw(self, ticket: Ticket) -> None:
        """This is not wanted any more: give the place back, waiting or running. Does nothing once it has ended."""
        self.give_up(ticket, Cancelled("The translation was withdrawn."))

    def engine_changed(self) -> None:
        """To be called when the engine's health, that of a lane, or which lanes there are has changed."""
        self._lanes.refresh()
        match self._engine.health().state:
            case EngineState.FAILED:
                self._give_up_all(failed)
            case EngineState.STOPPED:
                self._give_up_all(stopped)
            case _:
                for ticket in self._lines.route_again(self._lanes.route_of):
                    self.give_up(ticket, failed())
                self._lines.forget(Route(lane.name for lane in self._lanes))
                self._give_turns()

    def slots_changed(self) -> None:
        self._give_turns()

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
            self._give_up_all(drained)
        return True

    # ------------------------------------------------------------ one translation

    async def _generate(
        self, ticket: Ticket, on_text: OnText | None, on_turn: Callable[[], Awaitable[None]] | None
    ) -> bool:
        """Wait for the turn and generate. False: the lane died, and it is to run once more."""
        await ticket.turn.wait()
        if on_turn is not None:
            await on_turn()
        if self._lanes[ticket.lane].state is not EngineState.READY:
            return False  # the turn was older than the crash
        attempt = Attempt(ticket, on_text, self._quotas, self._clock)
        traceparent = ticket.span.traceparent
        request = replace(ticket.request, lane=ticket.lane, alone=ticket.suspect, traceparent=traceparent)
        try:
            await self._engine.generate(request, attempt.take_in)
        except EngineRestarting:
            return False  # it had not begun, so it is no part in the crash
        except EngineUnavailable:
            if ticket.given_up is not None:
                raise ticket.given_up from None  # the gateway failed on what it gave, and then the engine died
            if ticket.last is not None:
                return True  # it died after its last word
            ticket.crashed()
            attempt.engine_died()
            if not ticket.request.final:
                raise  # a newer revision will come, and this may be what killed the engine
            return False
        finally:
            ticket.count_tokens()
        return True

    def _put_back(self, ticket: Ticket) -> None:
        """Let a ticket wait again whose lane died, for another or for that one. Raises where that is its end."""
        if self._engine.health().state is EngineState.STOPPED:
            raise stopped()
        if ticket.crashes > SUSPECT_CRASHES:
            _log.error("the engine died on translation %s, which ran alone; it is given up", ticket.request.id)
            raise EngineFailed("The engine died on this text several times; it was not translated.")
        route = self._lanes.route_of(ticket)
        if not route:
            raise failed()
        self._lanes.remove(ticket)
        ticket.wait_again(route)
        self._limit_binding(ticket)
        self._lines.line_of(route).queue.put_back(ticket)
        # What only the dead lane can run waits until it is built again.
        self._give_turns()

    def _limit_binding(self, ticket: Ticket) -> None:
        if ticket.bound_to is not None and ticket.binding_timer is None:
            # The other half of its time is for other lanes.
            left_s = ticket.admitted_s + self._deadline_s / 2 - self._clock()
            loop = asyncio.get_running_loop()
            ticket.binding_timer = loop.call_later(max(0.0, left_s), self._release_binding, ticket)

    def _release_binding(self, ticket: Ticket) -> None:
        ticket.bound_too_long = True
        if ticket.stage is Stage.WAITING:
            self.engine_changed()

    def _expire(self, ticket: Ticket) -> None:
        late = DeadlineExceeded(f"The translation was not done within {self._deadline_s:g} s of its acceptance.")
        self.give_up(ticket, late)

    # ------------------------------------------------------------ turns

    def _takes_turn(self, newcomer: Ticket) -> bool:
        """Whether there is room for it now, which it then has; a suspect has to wait for a lane of its own."""
        if newcomer.suspect:
            return False
        line = self._lines.line_of(newcomer.route)
        if lanes := self._with_room(line, best_effort=newcomer.best_effort):
            self._give_turn(line, newcomer, self._lanes.choose(lanes, newcomer.request))
        return bool(lanes)

    def _give_turns(self) -> None:
        while (found := self._next()) is not None:
            line, lanes = found
            if (ticket := line.queue.pop()) is not None:
                self._give_turn(line, ticket, self._lanes.choose(lanes, ticket.request))
        for line in self._lines:
            line.pace.waits(self._clock(), waits=self._lines.is_full(line, self._lanes.some(line.route)))
        self._preempt()

    def _preempt(self) -> None:
        for ticket in to_preempt(self._lanes, self._lines):
            ticket.preempted = True
            self.give_up(ticket, Cancelled("The place was needed for a final utterance."))

    def _next(self) -> tuple[Line, list[Lane]] | None:
        """The line whose turn it is, and the lanes that have room for its next."""
        for line in self._lines.in_turn():
            if lanes := self._with_room(line, best_effort=line.queue.next_is_best_effort()):
                return line, lanes
        return None

    def _with_room(self, line: Line, *, best_effort: bool) -> list[Lane]:
        return [lane for lane in self._lanes.some(line.route) if self.door.free(lane, best_effort=best_effort)]

    def _give_turn(self, line: Line, ticket: Ticket, lane: Lane) -> None:
        now_s = self._clock()
        ticket.begin_turn(lane.name, now_s, lane.profile)
        lane.add(ticket)
        if not ticket.best_effort:
            line.pace.turn(now_s)

    def _release(self, ticket: Ticket) -> None:
        """The ticket has ended, however it did."""
        if ticket.stage is Stage.ENDED:
            return
        waited = ticket.stage is Stage.WAITING
        if waited:
            self._lines.line_of(ticket.route).queue.remove(ticket)
        else:
            self._lanes.remove(ticket)
        ticket.end(self._clock())
        self._deadlines.remove(ticket)
        if waited or self._lines:  # else none waits for its place
            self._give_turns()
        if not self._deadlines:
            self._idle.set()

    def _give_up_all(self, reason: Callable[[], GatewayError]) -> None:
        # Those that wait come first, so that ending them gives none of them a turn.
        for ticket in [*self._lines.tickets, *(ticket for lane in self._lanes for ticket in lane.running)]:
            self.give_up(ticket, reason())


# Is told the whole text of an attempt whenever there is more of it, and the empty text when the engine died.
OnText = Callable[[str], None]


class NotTakenIn(Exception):
    """The gateway failed on what the engine gave. Not a `GatewayError`, which would be taken for the engine's."""


class Attempt:
    """One attempt of the engine at a translation. Making one forgets what an earlier attempt gave.

    clock: the scheduler's. What fails here is logged, gives the ticket up as an internal error, and raises
    `NotTakenIn`.
    """

    def __init__(self, ticket: Ticket, on_text: OnText | None, quotas: Quotas, clock: Callable[[], float]) -> None:
        self._ticket = ticket
        self._on_text = on_text
        self._quotas = quotas
        self._clock = clock
        ticket.text = ""
        ticket.tokens = ticket.generated = 0
        ticket.last = None

    def take_in(self, event: TokenEvent) -> None:
        try:
            self._add(event)
        except Exception as error:
            self._fail(error)

    def engine_died(self) -> None:
        """The engine died: what it gave counts no more."""
        try:
            if self._on_text is not None:
                self._on_text("")
        except Exception as error:
            self._fail(error)

    def _add(self, event: TokenEvent) -> None:
        ticket = self._ticket
        if ticket.first_token_s is None and event.tokens:
            ticket.first_token_s = self._clock()
            ticket.span.event("first token")
        if not ticket.charged:
            self._charge()
        ticket.tokens += event.tokens + event.reused
        ticket.generated += event.tokens
        # Some tokenizers begin with a space that is no part of the translation.
        ticket.text += event.text if ticket.text else event.text.lstrip()
        if self._on_text is not None:
            self._on_text(ticket.text)
        if event.finish is not None:
            ticket.finish(event, self._clock())

    def _charge(self) -> None:
        """Count a text whose translation begins, whatever becomes of it."""
        ticket = self._ticket
        ticket.charged = True
        tenant = tenant_of_account(ticket.account)
        self._quotas.translated(tenant, ticket.meeting, ticket.request.target, len(ticket.request.text))

    def _fail(self, error: Exception) -> NoReturn:
        # The text itself is never logged; the type and the place of the failure are.
        _log.exception("what the engine gave of translation %s could not be taken in", self._ticket.request.id)
        failed = GatewayError("The gateway failed on what the engine gave of this translation.")
        self._ticket.given_up = self._ticket.given_up or failed
        raise NotTakenIn from error


class Throttle:
    """Hands the growing text of one translation on as deltas: the first at once, then one per interval.

    What was handed on is never taken back: another attempt adds to it as soon as it is longer and agrees with it.
    Tokens that come faster than a screen is drawn are not seen, but each frame costs the gateway and its clients
    time.
    """

    def __init__(
        self,
        # Gets each delta.
        show: Callable[[str], None],
        *,
        # The least time between two deltas, seconds. 0: every new piece of text is a delta.
        interval_s: float,
        # What readers have seen already.
        shown: str = "",
        # Monotonic, seconds.
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._show = show
        self._interval_s = interval_s
        self._shown = shown
        self._clock = clock or time.monotonic
        self._text = ""
        self._due_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def grow(self, text: str) -> None:
        """This is the whole text now."""
        self._text = text
        if len(text) <= len(self._shown) or self._timer is not None:
            return
        now_s = self._clock()
        if now_s >= self._due_s:
            self._due_s = now_s + self._interval_s
            self._hand_on()
        else:
            # The engine may say nothing more for a while, so a timer hands this on.
            self._timer = asyncio.get_running_loop().call_later(self._due_s - now_s, self._on_time)

    def end(self) -> None:
        """Nothing more will come: hand on what is left."""
        self.stop()
        self._hand_on()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_time(self) -> None:
        self._timer = None
        self._due_s = self._clock() + self._interval_s
        self._hand_on()

    def _hand_on(self) -> None:
        if len(self._text) > len(self._shown) and self._text.startswith(self._shown):
            delta = self._text[len(self._shown) :]
            self._shown = self._text
            self._show(delta)


class Deadlines:
    """Each ticket has the same time from when it was added, so the first that was added is the first that is due.

    after_s: how long it has, seconds. expire: is told of each whose time is over; maybe more than once, until it
    is removed.
    """

    def __init__(self, after_s: float, expire: Callable[[Ticket], None]) -> None:
        self._after_s = after_s
        self._expire = expire
        # Ticket → when its time is over, by the event loop's clock; in this order.
        self._due_s: dict[Ticket, float] = {}
        # None: nothing was added since all were gone.
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._due_s)

    def add(self, ticket: Ticket) -> None:
        loop = asyncio.get_running_loop()
        self._due_s[ticket] = due_s = loop.time() + self._after_s
        if self._timer is None:
            self._timer = loop.call_at(due_s, self._look)

    def remove(self, ticket: Ticket) -> None:
        self._due_s.pop(ticket, None)

    def _look(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        for ticket, due_s in list(self._due_s.items()):
            if due_s > loop.time():
                self._timer = loop.call_at(due_s, self._look)
                return
            self._expire(ticket)
