"""Hands waiting translations to the engine as it has room, and once more after the engine died.

Knows: which translations wait and which run, per meeting; the engine's capacity and health.
Must not know: the wire, meetings' members, what is done with the text, how an engine is built again.

The engine batches by itself, so nothing is batched or timed here. This queue exists for four reasons only:
to say `overloaded` at once instead of late, to let addresses and meetings take turns, to let a waiting request be
withdrawn for nothing, and to hold work while the engine is built again. It hands the engine a little more than it
runs together, so that a sequence that ends is replaced at the very next step.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import aclosing

from msgspec.structs import replace

from gateway.domain.engine import EngineState, FinishReason, TokenEvent, TranslationRequest
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
from gateway.translation.scheduling import measures
from gateway.translation.scheduling.admission import Admission
from gateway.translation.scheduling.quotas import Quotas
from gateway.translation.scheduling.ticket import SUSPECT_CRASHES, Generated, Stage, Ticket
from gateway.translation.scheduling.turn_order import TurnQueue

__all__ = ["Scheduler"]

_log = logging.getLogger(__name__)

# Is told the whole text of an attempt whenever there is more of it, and the empty text when the engine died.
OnText = Callable[[str], None]


class Scheduler:
    """Admits translations into the engine."""

    def __init__(
        self,
        engine: Engine,
        *,
        # Translations that may wait for their turn; one more is refused with `overloaded`.
        max_waiting: int,
        # How long a translation may have to wait for its turn, seconds; if it seems longer, it is refused.
        max_queue_s: float = 3_600.0,
        # Sequences handed to the engine beyond what it runs together.
        lookahead: int = 2,
        # Share of the sequences run together that best effort may take, but at least one: a final finds room at
        # once, and the batch stays small enough for it to be fast.
        best_effort_share: float = 0.5,
        # How long after its admission a translation is given up, crashes of the engine included.
        deadline_s: float = 300.0,
        # Of the tenants whose translations they are.
        quotas: Quotas | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._engine = engine
        self._quotas = quotas or Quotas()
        self._admission = Admission(max_waiting, max_queue_s)
        self._lookahead = lookahead
        self._best_effort_share = best_effort_share
        self._deadline_s = deadline_s
        self._clock = clock or time.monotonic
        self._serials = itertools.count(1)
        self._queue = TurnQueue()
        self._running: set[Ticket] = set()
        self._best_effort_running = 0
        self._draining = False
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def waiting(self) -> int:
        """Admitted, turn not come."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """Handed to the engine, not ended."""
        return len(self._running)

    @property
    def wanted(self) -> tuple[int, int]:
        """Of those that wait: finals, and others."""
        return self._queue.finals, len(self._queue) - self._queue.finals

    def waiting_by_tenant(self) -> Counter[str]:
        """As `waiting`, of each tenant."""
        return Counter(tenant_of_account(ticket.account) for ticket in self._queue)

    @property
    def draining(self) -> bool:
        return self._draining

    def admit(
        self, meeting: str, requests: Sequence[TranslationRequest], *, account: str = "", promised: bool = False
    ) -> list[Ticket]:
        """Take on all of `requests` or none. Accounts take turns, and so do the meetings of each.

        account: who is charged for the places. promised: accepted before, so that quotas do not matter any more.
        All requests have one priority: `FINAL` is promised and comes first; the others are best effort, and
        partials give up their place to finals. While the engine is being built again, translations are admitted
        and wait. Raises `Draining`, `EngineUnavailable`, `Overloaded` or `QuotaExceeded`: all retryable, none
        admitted.
        """
        if self._draining:
            raise Draining("The gateway is shutting down; reconnect and send this again.", retry_after_ms=1_000)
        health = self._engine.health()
        if health.state not in (EngineState.READY, EngineState.RESTARTING):
            raise EngineUnavailable(f"The engine is not ready: {health.reason}", retry_after_ms=2_000)
        if not requests:
            return []
        free, priority = max(0, self._free()), requests[0].priority
        if not promised:
            tenant = tenant_of_account(account)
            self._quotas.check_day(tenant, meeting)
            waiting = self._queue.ahead_of_account(priority, account)
            self._quotas.check_waiting(tenant, waiting, len(requests) - free)
        now_s = self._clock()
        exempt = promised or health.state is EngineState.RESTARTING
        self._admission.check(
            *(self._queue, account, meeting, priority, len(requests)), free=free, now_s=now_s, exempt=exempt
        )
        loop = asyncio.get_running_loop()
        tickets = [Ticket(next(self._serials), meeting, request, now_s, account) for request in requests]
        for ticket in tickets:
            ticket.expiry = loop.call_later(self._deadline_s, self._expire, ticket)
        self._queue.append(tickets)
        self._idle.clear()
        self._give_turns()
        return tickets

    async def collect(self, ticket: Ticket, on_text: OnText | None = None) -> Generated:
        """Wait for the turn and generate to the end, again after each crash of the engine.

        Raises `GatewayError` and nothing else, but for the cancellation of its task.
        """
        try:
            if ticket.given_up is not None:
                raise ticket.given_up
            async with asyncio.timeout(None) as ticket.interrupt:
                return await self._run(ticket, on_text)
        except GatewayError as error:
            # An engine may turn the interruption into an error of its own.
            raise ticket.given_up or error from None
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
        """Nobody wants this any more: give the place back, waiting or running. Does nothing once it has ended."""
        self.give_up(ticket, Cancelled("The translation was withdrawn."))

    def engine_changed(self) -> None:
        """Whoever watches the engine says that its health is another now."""
        match self._engine.health().state:
            case EngineState.READY:
                self._give_turns()
            case EngineState.FAILED:
                self._give_up_all(_failed)
            case EngineState.STOPPED:
                self._give_up_all(_stopped)

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
            self._give_up_all(_drained)
        return True

    # ------------------------------------------------------------ one translation

    async def _run(self, ticket: Ticket, on_text: OnText | None) -> Generated:
        while True:
            await ticket.turn.wait()
            # The turn may be older than the crash.
            if self._engine.health().state is EngineState.READY:
                try:
                    return await self._generate(ticket, on_text)
                except EngineRestarting:
                    pass  # it had not begun, so it is no part in the crash
                except EngineUnavailable:
                    ticket.crashes += 1
                    if on_text is not None:
                        on_text("")
                    if not ticket.request.final:
                        raise  # a newer revision will come, and this may be what killed the engine
            self._put_back(ticket)

    async def _generate(self, ticket: Ticket, on_text: OnText | None) -> Generated:
        text = ticket.text = ""
        finish: FinishReason | None = None
        ticket.tokens = generated = 0
        request = replace(ticket.request, alone=True) if ticket.suspect else ticket.request
        try:
            async with aclosing(self._engine.generate(request)) as events:
                async for event in events:
                    if ticket.first_token_s is None and event.tokens:
                        ticket.first_token_s = self._clock()
                    if not ticket.charged:
                        self._charge(ticket)
                    ticket.tokens += event.tokens + event.reused
                    generated += event.tokens
                    # Some tokenizers begin with a space that is no part of the translation.
                    ticket.text = text = text + (event.text if text else event.text.lstrip())
                    if on_text is not None:
                        on_text(text)
                    if event.finish is not None:
                        finish = event.finish
                        self._finished(ticket, event)
        finally:
            measures.tokens(ticket.request, generated, ticket.tokens - generated)
        return Generated(
            text.rstrip(), truncated=finish is FinishReason.LENGTH, rejected=finish is FinishReason.REJECTED
        )

    def _charge(self, ticket: Ticket) -> None:
        """Count a text whose translation begins, whatever becomes of it."""
        ticket.charged = True
        tenant = tenant_of_account(ticket.account)
        self._quotas.translated(tenant, ticket.meeting, ticket.request.target, len(ticket.request.text))

    def _finished(self, ticket: Ticket, event: TokenEvent) -> None:
        ticket.finished_s = self._clock()
        measures.finished(ticket, event)

    def _put_back(self, ticket: Ticket) -> None:
        """Let a ticket wait again whose engine died. Raises where that is its end."""
        state = self._engine.health().state
        if state is EngineState.STOPPED:
            raise _stopped()
        if ticket.crashes > SUSPECT_CRASHES:
            _log.error("the engine died on translation %s, which ran alone; it is given up", ticket.request.id)
            raise EngineFailed("The engine died on this text several times; it was not translated.")
        if state is EngineState.FAILED:
            raise _failed()
        measures.retried()
        self._stop_running(ticket)
        ticket.stage = Stage.WAITING
        ticket.turn.clear()
        self._queue.put_back(ticket)
        # Usually nothing: the engine is being built again.
        self._give_turns()

    def _expire(self, ticket: Ticket) -> None:
        late = DeadlineExceeded(f"The translation was not done within {self._deadline_s:g} s of its acceptance.")
        self.give_up(ticket, late)

    # ------------------------------------------------------------ turns

    def _free(self) -> int:
        """How many turns may be given now."""
        if self._engine.health().state is not EngineState.READY:
            return 0
        # Suspects come first: the sooner the text that kills the engine is found, the better for everybody. Each
        # runs alone, and again only if it is not known to have begun, at the pace of a lone sequence: all of them
        # are through within seconds.
        if self._queue.suspects:
            return 0 if self._running else 1
        if self._suspect_runs():
            return 0
        return self._engine.capacity().max_running + self._lookahead - len(self._running)

    def _give_turns(self) -> None:
        if self._queue:
            for _ in range(self._free()):
                if self._queue.next_is_best_effort() and not self._room_for_best_effort():
                    break
                ticket = self._queue.pop()
                if ticket is None:
                    break
                self._give_turn(ticket)
        self._admission.pace.waits(self._clock(), waits=self._engine_is_full())
        self._preempt()

    def _give_turn(self, ticket: Ticket) -> None:
        ticket.stage = Stage.RUNNING
        self._running.add(ticket)
        self._best_effort_running += ticket.best_effort
        now_s = self._clock()
        if not ticket.best_effort:
            self._admission.pace.turn(now_s)
        if ticket.started_s is None:
            ticket.started_s = now_s
            measures.started(ticket)
        ticket.turn.set()

    def _engine_is_full(self) -> bool:
        """Whether finals wait for nothing but other finals to end, as many as the engine runs together."""
        if not self._queue.finals or self._queue.suspects or self._suspect_runs() or self._best_effort_running:
            return False
        return self._engine.health().state is EngineState.READY

    def _suspect_runs(self) -> bool:
        """Whether a suspect runs, alone, as each does."""
        return len(self._running) == 1 and next(iter(self._running)).suspect

    def _room_for_best_effort(self) -> bool:
        """Whether one more would run at once and leave finals their share."""
        most = self._engine.capacity().max_running
        share = max(1, int(most * self._best_effort_share))
        return len(self._running) < most and self._best_effort_running < share

    def _preempt(self) -> None:
        """Take the places of partials for the finals that wait; nobody waits behind what may still change."""
        if not self._running:
            return
        # What was handed to the engine beyond what it runs together waits there.
        needed = self._queue.finals + max(0, len(self._running) - self._engine.capacity().max_running)
        if not needed:
            return
        partials = [ticket for ticket in self._running if not ticket.request.final]
        needed -= sum(ticket.ending for ticket in partials)
        # The youngest have the least to lose.
        for ticket in sorted(partials, key=lambda ticket: ticket.serial, reverse=True):
            if needed <= 0:
                return
            if not ticket.ending:
                needed -= 1
                ticket.preempted = True
                self.give_up(ticket, Cancelled("The place was needed for a final utterance."))

    def _release(self, ticket: Ticket) -> None:
        """The ticket has ended, however it did."""
        if ticket.stage is Stage.ENDED:
            return
        if ticket.stage is Stage.RUNNING:
            self._stop_running(ticket)
            measures.stopped(ticket, self._clock())
        else:
            self._queue.remove(ticket)
        ticket.stage = Stage.ENDED
        if ticket.expiry is not None:
            ticket.expiry.cancel()
            ticket.expiry = None
        self._give_turns()
        if not self._running and not self._queue:
            self._idle.set()

    def _stop_running(self, ticket: Ticket) -> None:
        self._running.remove(ticket)
        self._best_effort_running -= ticket.best_effort

    def _give_up_all(self, reason: Callable[[], GatewayError]) -> None:
        # Those that wait come first, so that ending them gives none of them a turn.
        for ticket in [*self._queue, *self._running]:
            self.give_up(ticket, reason())


def _failed() -> EngineFailed:
    return EngineFailed("The engine failed repeatedly; this was not translated.")


def _stopped() -> EngineUnavailable:
    return EngineUnavailable("The engine was stopped before this was translated.", retry_after_ms=2_000)


def _drained() -> Draining:
    return Draining("The gateway stopped before this was translated; send it again.", retry_after_ms=1_000)
