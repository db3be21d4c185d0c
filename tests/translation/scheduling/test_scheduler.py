"""Admission: bounded, fair between meetings, every place is given back, and the engine's death ends nothing."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.config import Settings
from gateway.domain.engine import EngineState, FinishReason, OnEvent, TokenEvent, TranslationRequest
from gateway.domain.errors import (
    Cancelled,
    DeadlineExceeded,
    Draining,
    EngineFailed,
    EngineRestarting,
    EngineUnavailable,
    GatewayError,
    Overloaded,
    QuotaExceeded,
    UnsupportedLanguage,
)
from gateway.domain.quotas import NO_QUOTA, DayOfTenant, Quota
from gateway.engines.simulated import Rule, Script, SimulatedEngine
from gateway.engines.supervisor import Supervisor
from gateway.protocol.limits import Limits
from gateway.protocol.messages import TranslationFailed, TranslationFinal, UtteranceAccepted, UtteranceCancel
from gateway.translation.scheduling.quotas import Quotas
from gateway.translation.scheduling.scheduler import Attempt, Deadlines, NotTakenIn, OnText, Scheduler, Throttle
from gateway.translation.scheduling.ticket import Generated, Ticket
from tests.clocks import swiftly
from tests.gateways import running
from tests.meetings import joined, say
from tests.translation.engines import EN_DE, EN_JA, AnsweredEngine, HandPool, SteppedEngine, request
from tests.translation.stage import idle, until
from tests.usual import usual


def requests(*request_ids: str, priority: int = 0) -> list[TranslationRequest]:
    return [request(request_id, priority=priority) for request_id in request_ids]


async def consume(scheduler: Scheduler, ticket: Ticket) -> str:
    return (await scheduler.collect(ticket, lambda _: None)).text


def collect(scheduler: Scheduler, *tickets: Ticket) -> list[asyncio.Task[str]]:
    return [asyncio.create_task(consume(scheduler, ticket)) for ticket in tickets]


def begin(scheduler: Scheduler, name: str) -> tuple[Ticket, asyncio.Task[str]]:
    [ticket] = scheduler.admit("m", requests(name))
    [task] = collect(scheduler, ticket)
    return ticket, task


def admit_each(scheduler: Scheduler, meeting: str, *names: str, priority: int = 0) -> list[Ticket]:
    """Each is another utterance."""
    return [ticket for name in names for ticket in scheduler.admit(meeting, requests(name, priority=priority))]


def stepped(max_running: int = 1, *, max_waiting: int = 100, **options: Any) -> tuple[SteppedEngine, Scheduler]:
    engine = SteppedEngine(max_running)
    return engine, usual(Scheduler, engine, max_waiting=max_waiting, **{"lookahead": 0, **options})


async def crash(scheduler: Scheduler, engine: SteppedEngine) -> None:
    """The engine dies, and all that ran on it waits again."""
    engine.die()
    await until(lambda: scheduler.running == 0)


def come_back(scheduler: Scheduler, engine: SteppedEngine) -> None:
    """The engine was built again."""
    engine.revive()
    scheduler.engine_changed()


async def test_utterance_keeps_one_turn_after_a_crash() -> None:
    """None of them had waited, as there was room for all."""
    engine, scheduler = stepped(6)
    tickets = [
        ticket for meeting in "ab" for ticket in scheduler.admit(meeting, requests(*(meeting + n for n in "012")))
    ]
    tasks = collect(scheduler, *tickets)
    await until(lambda: len(engine.begun) == 6)
    engine.die()
    scheduler.engine_changed()
    await until(lambda: scheduler.waiting == 6)
    engine.begun.clear()
    engine._max_running = 1
    come_back(scheduler, engine)
    for ticket in tickets:
        engine.let(ticket.request.id)
    await asyncio.gather(*tasks)
    assert [name[0] for name in engine.begun] in (list("aaabbb"), list("bbbaaa"))


async def test_whole_text_survives_its_engine() -> None:
    class LastWords(SteppedEngine):
        async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
            self.begun.append(request.id)
            on_event(TokenEvent("all of it", 3, FinishReason.STOP))
            raise EngineUnavailable("The engine died.")

    engine = LastWords()
    scheduler = usual(Scheduler, engine, max_waiting=100, lookahead=0)
    [ticket] = scheduler.admit("m", [request("a")])
    assert await consume(scheduler, ticket) == "all of it"
    assert (engine.begun, ticket.crashes) == (["a"], 0)


async def test_capacity_and_lookahead_bound_what_the_engine_gets() -> None:
    engine, scheduler = stepped(2, lookahead=1)
    tickets = scheduler.admit("m", [request(f"r{n}") for n in range(5)])
    tasks = collect(scheduler, *tickets)
    await until(lambda: len(engine.begun) == 3)
    assert (scheduler.running, scheduler.waiting) == (3, 2)
    engine.let("r1")
    await until(lambda: len(engine.begun) == 4)
    for n in range(5):
        engine.let(f"r{n}")
    await asyncio.gather(*tasks)
    assert (scheduler.running, scheduler.waiting, engine.running) == (0, 0, 0)


async def test_overloaded_call_is_refused_whole() -> None:
    scheduler = usual(Scheduler, SteppedEngine(max_running=1), max_waiting=4, lookahead=0)
    scheduler.admit("m", [request("a"), request("b")])
    with pytest.raises(Overloaded) as caught:
        scheduler.admit("m", [request("c"), request("d")])
    assert caught.value.retry_after_ms
    assert (scheduler.running, scheduler.waiting) == (1, 1)
    scheduler.admit("m", [request("c")])


async def test_too_long_wait_is_refused() -> None:
    engine = SteppedEngine(max_running=1)
    now_s = 0.0
    scheduler = usual(Scheduler, engine, max_waiting=100, max_queue_s=1.0, lookahead=0, clock=lambda: now_s)
    tasks = collect(scheduler, *scheduler.admit("m", requests(*(f"r{n}" for n in range(30)))))
    for n in range(20):
        await until(lambda: len(engine.begun) > n)  # noqa: B023 -- awaited in the loop
        now_s += 0.25
        engine.let(f"r{n}")
    await until(lambda: len(engine.begun) > 20)
    with pytest.raises(Overloaded, match=r"9 translations would come before this, which takes 2.\d s"):
        scheduler.admit("m", requests("late"))
    promised = collect(scheduler, *scheduler.admit("n", requests("promised"), promised=True))
    # While the engine is built again, all may wait.
    engine.die()
    scheduler.engine_changed()
    waiting = scheduler.admit("n", requests("patient"))
    assert len(waiting) == 1
    for each in (*tasks, *promised):
        each.cancel()
    await asyncio.wait([*tasks, *promised])


async def test_preempted_places_do_not_count_as_pace() -> None:
    engine, now_s = SteppedEngine(max_running=4), 0.0
    scheduler = usual(
        Scheduler,
        engine,
        max_waiting=100,
        max_queue_s=1.0,
        lookahead=0,
        best_effort_share=1.0,
        clock=lambda: now_s,
    )
    for n in range(20):
        partials = [replace(each, final=False) for each in requests(*(f"p{n}-{k}" for k in range(4)), priority=1)]
        tasks = collect(scheduler, *scheduler.admit("m", partials))
        await until(lambda: scheduler.running == 4)
        finals = collect(scheduler, *scheduler.admit("m", requests(*(f"f{n}-{k}" for k in range(6)))))
        now_s += 0.001
        await asyncio.wait(tasks)
        for k in range(6):
            await until(lambda: f"f{n}-{k}" in engine.begun)  # noqa: B023 -- awaited in the loop
            now_s += 0.5
            engine.let(f"f{n}-{k}")
        await asyncio.wait([*finals, *tasks])
    # In truth half a second for each: two that wait take a second.
    waiting = scheduler.admit("m", requests(*(f"last-{k}" for k in range(6))))
    with pytest.raises(Overloaded, match=r"2 translations would come before this, which takes \d\.\d s"):
        scheduler.admit("m", requests("late"))
    for ticket in waiting:
        scheduler.withdraw(ticket)


async def test_waiting_quota_counts_all_meetings() -> None:
    quotas = Quotas(lambda tenant: Quota(waiting=2) if tenant == "acme" else NO_QUOTA)
    scheduler = usual(Scheduler, SteppedEngine(max_running=1), max_waiting=100, lookahead=0, quotas=quotas)
    tickets = [
        *scheduler.admit("acme/a", requests("1", "2"), account="tenant:acme"),
        *scheduler.admit("acme/b", requests("3"), account="tenant:acme"),
    ]
    with pytest.raises(QuotaExceeded, match="There are 2 already: this tenant's quota waiting is 2"):
        scheduler.admit("acme/c", requests("4"), account="tenant:acme")
    assert scheduler.waiting_by_tenant() == {"acme": 2}
    tickets += scheduler.admit("acme/c", requests("4"), account="tenant:acme", promised=True)
    tickets += scheduler.admit("other/m", requests("5", "6", "7"), account="tenant:other")
    assert scheduler.waiting_by_tenant() == {"acme": 3, "other": 3}
    for ticket in tickets:
        scheduler.withdraw(ticket)


async def test_a_waiting_ticket_can_be_withdrawn() -> None:
    engine, scheduler = stepped()
    first, second, third = scheduler.admit("m", [request("a"), request("b"), request("c")])
    scheduler.withdraw(second)
    scheduler.withdraw(second)
    assert scheduler.waiting == 1
    engine.let("a")
    engine.let("c")
    await consume(scheduler, first)
    await consume(scheduler, third)
    assert engine.begun == ["a", "c"]


async def test_withdrawn_ticket_passes_its_turn_on() -> None:
    engine, scheduler = stepped()
    first, second = scheduler.admit("m", [request("a"), request("b")])
    scheduler.withdraw(first)
    engine.let("b")
    assert await consume(scheduler, second) == "ab"


@pytest.mark.parametrize("stage", ["waiting", "running"])
async def test_cancelled_reader_frees_its_place(stage: str) -> None:
    engine, scheduler = stepped()
    tickets = scheduler.admit("m", [request("a"), request("b")])
    tasks = collect(scheduler, *tickets)
    await until(lambda: engine.begun == ["a"])
    victim, other = tasks if stage == "running" else reversed(tasks)
    victim.cancel()
    await asyncio.wait([victim])
    engine.let("a")
    engine.let("b")
    assert await other == "ab"
    assert (scheduler.running, scheduler.waiting, engine.running) == (0, 0, 0)


async def test_many_cancelled_in_one_moment_leave_nothing_behind() -> None:
    engine, scheduler = stepped(2, max_waiting=20)
    tickets = scheduler.admit("m", [request(f"r{n}") for n in range(9)])
    tasks = collect(scheduler, *tickets)
    await until(lambda: len(engine.begun) == 2)
    for task in tasks[:8]:
        task.cancel()
    engine.let("r8")
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes[:8]] == [asyncio.CancelledError] * 8
    assert outcomes[8] == "ab"
    assert (scheduler.running, scheduler.waiting, engine.running) == (0, 0, 0)


async def test_a_failing_generation_fails_alone() -> None:
    engine, scheduler = stepped(2)
    bad, good = scheduler.admit("m", [request("a", "bad"), request("b")])
    tasks = collect(scheduler, bad, good)
    engine.let("a")
    engine.let("b")
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[0], EngineFailed)
    assert results[1] == "ab"
    assert scheduler.running == 0


async def test_drain_refuses_new_work_and_waits_for_the_old() -> None:
    engine, scheduler = stepped()
    (ticket,) = scheduler.admit("m", [request("a")])
    task = asyncio.ensure_future(consume(scheduler, ticket))
    draining = asyncio.ensure_future(scheduler.drain(60))
    await until(lambda: scheduler.draining)
    with pytest.raises(Draining):
        scheduler.admit("m", [request("b")])
    assert not draining.done()
    engine.let("a")
    assert await draining is True
    assert await task == "ab"


async def test_drain_gives_up_at_its_deadline() -> None:
    engine, scheduler = stepped()
    tickets = scheduler.admit("m", [request("running"), request("waiting"), request("never collected")])
    tasks = [asyncio.ensure_future(scheduler.collect(ticket, lambda _: None)) for ticket in tickets[:2]]
    await until(lambda: engine.begun == ["running"])
    assert await scheduler.drain(0) is False
    for outcome in await asyncio.gather(
        *tasks, scheduler.collect(tickets[2], lambda _: None), return_exceptions=True
    ):
        assert isinstance(outcome, Draining)
    assert (scheduler.running, scheduler.waiting, engine.running) == (0, 0, 0)


async def test_an_engine_that_is_not_ready_admits_nothing() -> None:
    engine = SteppedEngine()
    engine.state = EngineState.STARTING
    with pytest.raises(EngineUnavailable, match="because"):
        usual(Scheduler, engine, max_waiting=10).admit("m", [request("a")])


async def test_timings_follow_the_stages() -> None:
    now = [0.0]
    engine, scheduler = stepped(clock=lambda: now[0])
    first, second = scheduler.admit("m", [request("a"), request("b")])
    now[0] = 1.0
    (task,) = collect(scheduler, first)
    await until(lambda: engine.begun == ["a"])
    now[0] = 3.0
    engine.let("a")
    assert await task == "ab"
    assert (first.admitted_s, first.started_s, first.first_token_s, first.finished_s) == (0.0, 0.0, 1.0, 3.0)
    assert second.started_s == 3.0
    assert first.tokens == 2


# ---------------------------------------------------------------- giving up


@pytest.mark.parametrize("stage", ["running", "waiting", "not collected", "not collected, running"])
async def test_given_up_ticket_raises_the_first_reason(stage: str) -> None:
    engine, scheduler = stepped()
    tickets = scheduler.admit("m", requests("a", "b", "c"))
    victim = tickets[0] if "running" in stage else tickets[1]
    others = [ticket for ticket in tickets if ticket is not victim]
    tasks = collect(scheduler, *others, *([] if "not" in stage else [victim]))
    if stage != "not collected, running":
        await until(lambda: engine.begun == ["a"])
    scheduler.give_up(victim, Cancelled("first"))
    scheduler.give_up(victim, Draining("second"))
    engine.let("a", "b", "c")
    if "not" in stage:
        tasks += collect(scheduler, victim)
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert outcomes[:2] == ["ab", "ab"]
    assert isinstance(outcomes[2], Cancelled)
    assert outcomes[2].message == "first"
    assert (scheduler.running, scheduler.waiting, engine.running) == (0, 0, 0)


async def test_collecting_a_withdrawn_ticket_does_not_hang() -> None:
    engine, scheduler = stepped()
    (ticket, waiting) = scheduler.admit("m", requests("a", "b"))
    (task,) = collect(scheduler, waiting)
    await asyncio.sleep(0)
    scheduler.withdraw(waiting)
    scheduler.withdraw(ticket)
    with pytest.raises(Cancelled):
        await task
    with pytest.raises(Cancelled):
        await consume(scheduler, ticket)
    assert (scheduler.running, scheduler.waiting, engine.running) == (0, 0, 0)


async def test_giving_up_what_has_ended_changes_nothing() -> None:
    engine, scheduler = stepped()
    (ticket,) = scheduler.admit("m", requests("a"))
    engine.let("a")
    generated = await scheduler.collect(
        ticket, lambda text: scheduler.give_up(ticket, Cancelled("late")) if text == "b" else None
    )
    assert generated == Generated("ab", truncated=False)
    scheduler.give_up(ticket, Cancelled("later"))


async def test_a_cancelled_task_is_cancelled_and_not_given_up() -> None:
    engine, scheduler = stepped()
    ticket, task = begin(scheduler, "a")
    await until(lambda: engine.begun == ["a"])
    task.cancel()
    scheduler.give_up(ticket, Cancelled("at the same moment"))
    await asyncio.wait([task])
    assert task.cancelled()
    assert (scheduler.running, scheduler.waiting, engine.running) == (0, 0, 0)


async def test_error_on_interruption_hides_no_reason() -> None:
    class Touchy(SteppedEngine):
        async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
            self.begun.append(request.id)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise EngineFailed("interrupted") from None

    engine = Touchy()
    scheduler = usual(Scheduler, engine, max_waiting=10)
    ticket, task = begin(scheduler, "a")
    await until(lambda: engine.begun)
    scheduler.give_up(ticket, DeadlineExceeded("too late"))
    with pytest.raises(DeadlineExceeded):
        await task


async def test_engine_bug_becomes_an_engine_error() -> None:
    class Buggy(SteppedEngine):
        async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
            raise RuntimeError("a bug")

    scheduler = usual(Scheduler, Buggy(), max_waiting=10)
    (ticket,) = scheduler.admit("m", requests("a"))
    with pytest.raises(EngineFailed, match="unknown reason"):
        await consume(scheduler, ticket)
    assert scheduler.running == 0


# ---------------------------------------------------------------- deadline


@swiftly
async def test_deadline_ends_running_and_waiting() -> None:
    engine, scheduler = stepped(deadline_s=0.01)
    tickets = scheduler.admit("m", requests("running", "waiting", "not collected"))
    for outcome in await asyncio.gather(*collect(scheduler, *tickets[:2]), return_exceptions=True):
        assert isinstance(outcome, DeadlineExceeded)
    await until(lambda: scheduler.running + scheduler.waiting == 0)
    with pytest.raises(DeadlineExceeded, match=r"0\.01 s"):
        await consume(scheduler, tickets[2])
    assert engine.running == 0


@swiftly
async def test_the_deadline_counts_while_the_engine_is_built_again() -> None:
    engine, scheduler = stepped(deadline_s=0.01)
    _, task = begin(scheduler, "a")
    await until(lambda: engine.begun == ["a"])
    engine.die()
    with pytest.raises(DeadlineExceeded):
        await task
    assert (scheduler.running, scheduler.waiting) == (0, 0)


async def test_pace_stops_once_none_waits() -> None:
    _, scheduler = stepped()
    running, waiting = scheduler.admit("m", requests("running", "waiting"))
    pace = scheduler._lines.line_of(waiting.route).pace
    assert pace._since_s is not None
    scheduler.withdraw(waiting)
    assert pace._since_s is None
    scheduler.withdraw(running)


async def test_no_timer_is_left_behind() -> None:
    engine, scheduler = stepped()
    ended, withdrawn = scheduler.admit("m", requests("a", "b"))
    assert len(scheduler._deadlines) == 2
    engine.let("a")
    await consume(scheduler, ended)
    scheduler.withdraw(withdrawn)
    assert len(scheduler._deadlines) == 0


# ---------------------------------------------------------------- the engine dies


async def test_work_is_admitted_during_a_restart() -> None:
    engine, scheduler = stepped(max_waiting=4)
    engine.state = EngineState.RESTARTING
    tickets = scheduler.admit("m", requests("a", "b"))
    with pytest.raises(Overloaded):
        scheduler.admit("m", requests("c"))
    tasks = collect(scheduler, *tickets)
    engine.let("a", "b")
    await asyncio.sleep(0)
    assert (scheduler.running, scheduler.waiting, engine.begun) == (0, 2, [])
    engine.state = EngineState.READY
    scheduler.engine_changed()
    assert await asyncio.gather(*tasks) == ["ab", "ab"]


async def test_what_ran_runs_again_first_in_its_old_order() -> None:
    engine = SteppedEngine(max_running=3)
    now = [0.0]
    scheduler = usual(Scheduler, engine, max_waiting=10, lookahead=0, clock=lambda: now[0])
    tickets = [*admit_each(scheduler, "m", "m1", "m2", "m3", "m4"), *scheduler.admit("n", requests("n1"))]
    tasks = collect(scheduler, *tickets)
    await until(lambda: len(engine.begun) == 3)
    await crash(scheduler, engine)
    assert (engine.begun, scheduler.waiting) == (["m1", "m2", "m3"], 5)
    assert [ticket.crashes for ticket in tickets] == [1, 1, 1, 0, 0]
    now[0] = 9.0
    engine.begun.clear()
    come_back(scheduler, engine)
    engine.let(*(ticket.request.id for ticket in tickets))
    assert await asyncio.gather(*tasks) == ["ab"] * 5
    # m had its turn before n when both waited, and what ran comes before what never did.
    assert engine.begun == ["m1", "n1", "m2", "m3", "m4"]
    # Readers saw the first attempt.
    assert {(ticket.started_s, ticket.first_token_s, ticket.finished_s) for ticket in tickets[:3]} == {
        (0.0, 0.0, 9.0)
    }


async def test_turn_just_before_a_crash_is_not_charged() -> None:
    engine, scheduler = stepped()
    (ticket,) = scheduler.admit("m", requests("a"))
    tasks = collect(scheduler, ticket)
    await crash(scheduler, engine)
    assert (ticket.crashes, engine.begun) == (0, [])
    come_back(scheduler, engine)
    engine.let("a")
    assert await asyncio.gather(*tasks) == ["ab"]


async def test_killer_is_found_and_others_continue() -> None:
    engine, scheduler = stepped(3)
    tickets = scheduler.admit("m", requests("good1", "killer", "good2", "waits"))
    tasks = collect(scheduler, *tickets)
    for _ in range(2):
        await until(lambda: {"good1", "killer", "good2"} <= set(engine.begun))
        await crash(scheduler, engine)
        engine.revive()
        engine.begun.clear()
        engine.most_running = 0
        scheduler.engine_changed()
    assert [ticket.suspect for ticket in tickets] == [True, True, True, False]
    # One after the other, each alone, and before what is above suspicion.
    engine.let("good1")
    await until(lambda: engine.begun == ["good1", "killer"])
    assert (scheduler.running, scheduler.waiting, engine.most_running) == (1, 2, 1)
    late = scheduler.admit("n", requests("late"))
    tasks += collect(scheduler, *late)
    engine.die()
    with pytest.raises(EngineFailed, match="died on this text"):
        await tasks[1]
    come_back(scheduler, engine)
    await until(lambda: engine.begun == ["good1", "killer", "good2"])
    assert (scheduler.running, scheduler.waiting) == (1, 2)
    tasks += collect(scheduler, *scheduler.admit("o", requests("later")))
    assert (scheduler.running, scheduler.waiting) == (1, 3)
    engine.let("good2", "waits", "late", "later")
    assert await asyncio.gather(tasks[0], *tasks[2:]) == ["ab"] * 5
    assert engine.begun[:3] == ["good1", "killer", "good2"]
    assert (scheduler.running, scheduler.waiting, engine.running) == (0, 0, 0)


@pytest.mark.parametrize("final", [True, False])
async def test_unbegun_text_is_retried_uncharged(final: bool) -> None:
    engine, scheduler = stepped()
    (ticket,) = scheduler.admit("m", [replace(request("a"), final=final)])
    engine.held = True
    tasks = collect(scheduler, ticket)
    # More often than a text may be part in a crash.
    for again in (True, True, True, True, False):
        await until(lambda: engine.begun == ["a"] or tasks[0].done())
        await crash(scheduler, engine)
        engine.begun.clear()
        engine.revive()
        engine.held = again
        engine.let("a")
        scheduler.engine_changed()
    assert await asyncio.gather(*tasks) == ["ab"]
    assert ticket.crashes == 0


async def test_engine_is_told_what_must_run_alone() -> None:
    engine = AnsweredEngine()
    scheduler = usual(Scheduler, engine, max_waiting=10)
    for crashes in (0, 2):
        (ticket,) = scheduler.admit("m", requests(f"after {crashes}"))
        ticket.crashes = crashes
        (task,) = collect(scheduler, ticket)
        await until(engine.pending)
        assert engine.requests[-1].alone is (crashes == 2)
        engine.says("done")
        await task


async def test_suspects_wait_until_nothing_else_runs() -> None:
    engine, scheduler = stepped(2)
    (suspect,) = scheduler.admit("m", requests("suspect"))
    suspect.crashes = 1
    (task,) = collect(scheduler, suspect)
    await until(lambda: engine.begun == ["suspect"])
    await crash(scheduler, engine)
    # Ready again, and others run before the suspect is known: the crash is all theirs to see.
    engine.revive()
    tasks = collect(scheduler, *scheduler.admit("n", requests("other")))
    await until(lambda: engine.begun == ["suspect", "suspect"])
    assert (scheduler.running, scheduler.waiting) == (1, 1)
    engine.let("suspect", "other")
    assert await asyncio.gather(task, *tasks) == ["ab", "ab"]
    assert engine.begun[-1] == "other"
    assert engine.most_running == 1


async def test_a_withdrawn_suspect_lets_the_others_run() -> None:
    engine, scheduler = stepped(2)
    engine.state = EngineState.RESTARTING
    first, second = scheduler.admit("m", requests("a", "b"))
    tasks = collect(scheduler, first, second)
    for _ in range(2):
        engine.begun.clear()
        come_back(scheduler, engine)
        await until(lambda: engine.begun == ["a", "b"])
        await crash(scheduler, engine)
    scheduler.give_up(first, Cancelled("withdrawn"))
    come_back(scheduler, engine)
    engine.let("b")
    assert await tasks[1] == "ab"
    with pytest.raises(Cancelled):
        await tasks[0]
    assert (scheduler.running, scheduler.waiting) == (0, 0)


async def test_a_failed_engine_ends_everything_that_was_admitted() -> None:
    engine, scheduler = stepped()
    tickets = scheduler.admit("m", requests("running", "waiting", "not collected"))
    tasks = collect(scheduler, *tickets[:2])
    await until(lambda: engine.begun == ["running"])
    engine.die(EngineState.FAILED)
    scheduler.engine_changed()
    for outcome in await asyncio.gather(*tasks, consume(scheduler, tickets[2]), return_exceptions=True):
        assert isinstance(outcome, EngineFailed)
        assert "failed repeatedly" in outcome.message
    with pytest.raises(EngineUnavailable):
        scheduler.admit("m", requests("more"))
    assert (scheduler.running, scheduler.waiting) == (0, 0)
    come_back(scheduler, engine)
    engine.let("again")
    assert await consume(scheduler, *scheduler.admit("m", requests("again"))) == "ab"


@pytest.mark.parametrize(("state", "error"), [("FAILED", EngineFailed), ("STOPPED", EngineUnavailable)])
async def test_failed_or_stopped_engine_ends_its_texts(state: str, error: type[GatewayError]) -> None:
    engine, scheduler = stepped()
    tasks = collect(scheduler, *scheduler.admit("m", requests("a")))
    await until(lambda: engine.begun == ["a"])
    engine.die(EngineState[state])
    with pytest.raises(error):
        await tasks[0]


async def test_falsely_ready_engine_ends_text_after_three() -> None:
    engine, scheduler = stepped()
    engine.die(EngineState.READY)
    with pytest.raises(EngineFailed):
        await consume(scheduler, *scheduler.admit("m", requests("a")))
    assert engine.begun == ["a"] * 3


async def test_a_stopped_engine_ends_what_waits() -> None:
    engine, scheduler = stepped()
    engine.state = EngineState.RESTARTING
    tasks = collect(scheduler, *scheduler.admit("m", requests("a", "b")))
    await asyncio.sleep(0)
    engine.state = EngineState.STOPPED
    scheduler.engine_changed()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(outcome, EngineUnavailable)


async def test_drain_ends_at_its_deadline_during_restart() -> None:
    engine, scheduler = stepped()
    tasks = collect(scheduler, *scheduler.admit("m", requests("a", "b")))
    await until(lambda: engine.begun)
    engine.die()
    assert await scheduler.drain(0.01) is False
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(outcome, Draining)
    assert (scheduler.running, scheduler.waiting) == (0, 0)


# ---------------------------------------------------------------- lanes


def pooled(a: SteppedEngine, b: SteppedEngine, **options: Any) -> tuple[HandPool, Scheduler]:
    pool = HandPool(a=a, b=b)
    return pool, usual(Scheduler, pool, lanes=pool.lanes, max_waiting=100, lookahead=0, **options)


def together(slots: int, **options: Any) -> tuple[SteppedEngine, SteppedEngine, Scheduler]:
    """Two lanes that have all languages."""
    a, b = SteppedEngine(slots), SteppedEngine(slots)
    return a, b, pooled(a, b, **options)[1]


def apart(slots: int) -> tuple[SteppedEngine, SteppedEngine, Scheduler]:
    """Two lanes: one into Japanese, one into German."""
    a, b = SteppedEngine(slots), SteppedEngine(slots)
    a.pairs, b.pairs = EN_JA, EN_DE
    return a, b, pooled(a, b)[1]


def into(target: str, *request_ids: str, priority: int = 0) -> list[TranslationRequest]:
    final = priority == 0
    return [replace(request(name, priority=priority), target=target, final=final) for name in request_ids]


async def test_full_lane_holds_up_no_other_pair() -> None:
    _, b, scheduler = apart(1)
    scheduler.admit("m", into("ja", *(f"ja{n}" for n in range(50))))
    tasks = collect(scheduler, *scheduler.admit("n", into("de", "de0", "de1")))
    await until(lambda: b.begun == ["de0"])
    b.let("de0", "de1")
    assert await asyncio.gather(*tasks) == ["ab", "ab"]
    assert (scheduler.running, scheduler.waiting) == (1, 49)


async def test_final_preempts_on_its_own_lane_only() -> None:
    a, b, scheduler = apart(1)
    ja, de = (scheduler.admit("m", into(lang, f"partial {lang}", priority=1)) for lang in ("ja", "de"))
    tasks = collect(scheduler, *ja, *de)
    await until(lambda: a.running == b.running == 1)
    tasks += collect(scheduler, *scheduler.admit("m", into("de", "final")))
    await until(lambda: b.begun == ["partial de", "final"])
    assert [ticket.preempted for ticket in (*ja, *de)] == [False, True]
    assert (a.running, b.running) == (1, 1)
    for task in tasks:
        task.cancel()


async def test_each_lane_keeps_places_for_finals() -> None:
    a, b, scheduler = together(2)
    tasks = collect(scheduler, *scheduler.admit("m", into("ja", *"1234", priority=1)))
    await until(lambda: a.running == b.running == 1)
    assert (scheduler.running, scheduler.waiting) == (2, 2)
    for task in tasks:
        task.cancel()


async def test_dead_lanes_text_continues_on_another() -> None:
    a, b = SteppedEngine(4), SteppedEngine(4)
    a.says = b.says = ("Guten ", "Morgen ", "allerseits")
    _, scheduler = pooled(a, b)
    b.die()
    (ticket,) = scheduler.admit("m", requests("x"))
    shown: list[str] = []
    throttle = Throttle(shown.append, interval_s=0.0)
    task = asyncio.create_task(scheduler.collect(ticket, throttle.grow))
    await until(lambda: shown == ["Guten "])
    come_back(scheduler, b)
    b.let("x")
    a.die()
    # The dead lane is not waited for.
    assert (await task).text == "Guten Morgen allerseits"
    throttle.end()
    assert "".join(shown) == "Guten Morgen allerseits"
    assert (ticket.crashes, ticket.lane) == (1, "b")


async def test_what_had_not_begun_goes_to_another_lane_uncharged() -> None:
    a, b, scheduler = together(4)
    b.die()
    a.held = True
    ticket, task = begin(scheduler, "x")
    await until(lambda: a.begun)
    b.revive()
    b.let("x")
    a.die()
    assert await task == "ab"
    assert (ticket.crashes, ticket.lane) == (0, "b")


class Fragile(SteppedEngine):
    """Dies of a text that contains `killer`, before its first token or with it."""

    def __init__(self, max_running: int = 4, *, after_token: bool = False) -> None:
        super().__init__(max_running)
        self.deaths = 0
        self._after_token = after_token

    async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
        def dies(event: TokenEvent) -> None:
            if self._after_token and event.finish is None:
                on_event(event)
            self.deaths += 1
            self.die()
            raise EngineUnavailable("The engine died.")

        await super().generate(request, dies if "killer" in request.id else on_event)


async def test_killer_spares_the_other_lane() -> None:
    a, b = Fragile(), Fragile()
    _, scheduler = pooled(a, b)
    (killer,) = scheduler.admit("m", requests("killer"))
    (doomed,) = collect(scheduler, killer)
    others: list[asyncio.Task[str]] = []
    for n in range(50):
        # There is always something to do, for both lanes; it ends whatever happens.
        others += collect(scheduler, *scheduler.admit(f"{n}", requests(f"good{n}")))
        for lane in (a, b):
            lane.let(*lane.begun)
        await asyncio.sleep(0)
        if a.state is not EngineState.READY:
            come_back(scheduler, a)
    while not all(task.done() for task in others):
        for lane in (a, b):
            lane.let(*lane.begun)
        if a.state is not EngineState.READY:
            come_back(scheduler, a)
        await asyncio.sleep(0)
    with pytest.raises(EngineFailed, match="died on this text"):
        await doomed
    assert await asyncio.gather(*others) == ["ab"] * 50
    assert (a.deaths, b.deaths) == (3, 0)


async def test_killer_after_some_text_costs_three_crashes() -> None:
    a, b = Fragile(after_token=True), Fragile(after_token=True)
    _, scheduler = pooled(a, b)
    (doomed,) = collect(scheduler, *scheduler.admit("m", requests("killer")))
    while not doomed.done():
        for lane in (a, b):
            lane.let(*lane.begun)
            if lane.state is not EngineState.READY:
                come_back(scheduler, lane)
        await asyncio.sleep(0)
    with pytest.raises(EngineFailed, match="died on this text"):
        await doomed
    assert a.deaths + b.deaths == 3
    assert (scheduler.running, scheduler.waiting) == (0, 0)


async def test_suspect_has_its_lane_alone() -> None:
    a, b, scheduler = together(2)
    a.held = True  # nothing it is asked gives a token
    (suspect,) = scheduler.admit("m", requests("suspect"))
    (task,) = collect(scheduler, suspect)
    await until(lambda: a.begun)
    suspect.lane, suspect.crashes = "a", 1
    suspect.crashed()
    await crash(scheduler, a)
    assert (suspect.route, suspect.suspect) == (frozenset({"a"}), True)
    tasks = collect(scheduler, *scheduler.admit("n", requests(*"123")))
    await until(lambda: b.running == 2)
    a.held = False
    a.revive()
    a.begun.clear()
    scheduler.engine_changed()
    await until(lambda: a.begun == ["suspect"])
    assert (a.running, b.running, scheduler.waiting) == (1, 2, 1)
    a.let("suspect", "3")
    b.let(*"12", "3")
    assert await asyncio.gather(task, *tasks) == ["ab"] * 4
    assert a.most_running == 1


async def test_suspect_partial_binds_its_final() -> None:
    a, b, scheduler = together(2)
    a.die()
    (ticket,) = scheduler.admit("m", requests("x"), suspected_on="a")
    await idle()
    assert (ticket.route, ticket.crashes, b.begun) == (frozenset({"a"}), 1, [])
    scheduler.withdraw(ticket)
    # Once that lane is given up, another one runs it, and nothing else meanwhile.
    a.die(EngineState.FAILED)
    scheduler.engine_changed()
    others = collect(scheduler, *scheduler.admit("m", requests("1")))
    await until(lambda: b.begun == ["1"])
    (ticket,) = scheduler.admit("m", requests("x"), suspected_on="a")
    others += collect(scheduler, ticket, *scheduler.admit("m", requests("2")))
    await idle()
    assert (ticket.suspect, b.begun) == (True, ["1"])
    b.let("1")
    await until(lambda: b.begun == ["1", "x"])
    b.let("x", "2")
    assert await asyncio.gather(*others) == ["ab"] * 3


@swiftly
async def test_bound_text_moves_after_half_its_time() -> None:
    a, b = SteppedEngine(2), SteppedEngine(2)
    a.held = True  # nothing it is asked gives a token
    _, scheduler = pooled(a, b, deadline_s=60.0)
    ticket, task = begin(scheduler, "x")
    await until(lambda: a.begun)
    ticket.crashed()
    await crash(scheduler, a)
    assert (ticket.route, b.begun) == (frozenset({"a"}), [])
    b.let("x")
    assert await task == "ab"
    assert (ticket.lane, b.begun) == ("b", ["x"])


@swiftly
async def test_suspect_partials_final_moves_after_half_time() -> None:
    a, b, scheduler = together(2, deadline_s=60.0)
    a.die()
    (task,) = collect(scheduler, *scheduler.admit("m", requests("x"), suspected_on="a"))
    b.let("x")
    assert await task == "ab"
    assert b.begun == ["x"]


async def test_suspect_of_another_pair_binds_no_lane() -> None:
    a, b, scheduler = apart(2)
    de = scheduler.admit("m", into("de", "1"))
    a.die()
    (ja, same) = scheduler.admit("m", [*into("ja", "x"), *into("de", "x")], suspected_on="a")
    assert (ja.bound_to, ja.crashes) == ("a", 1)
    assert (same.bound_to, same.crashes) == (None, 0)
    tasks = collect(scheduler, *de, same)
    await until(lambda: sorted(b.begun) == ["1", "x"])
    scheduler.withdraw(ja)
    b.let("1", "x")
    assert await asyncio.gather(*tasks) == ["ab"] * 2


async def test_pair_of_failed_lanes_fails_alone() -> None:
    a, b, scheduler = apart(1)
    ja = collect(scheduler, *scheduler.admit("m", into("ja", "ja0", "ja1")))
    de = collect(scheduler, *scheduler.admit("m", into("de", "de0", "de1")))
    await until(lambda: a.running == b.running == 1)
    a.die()
    scheduler.engine_changed()
    await idle()
    # It waits as long as it may come back.
    assert not any(task.done() for task in ja)
    scheduler.admit("m", into("ja", "later"))
    a.die(EngineState.FAILED)
    scheduler.engine_changed()
    for outcome in await asyncio.gather(*ja, return_exceptions=True):
        assert isinstance(outcome, EngineFailed)
    with pytest.raises(EngineUnavailable, match="The engine of these languages has failed"):
        scheduler.admit("m", into("ja", "more"))
    assert isinstance(scheduler.refusal("en", "ja"), EngineFailed)
    assert scheduler.refusal("en", "de") is None
    b.let("de0", "de1")
    assert await asyncio.gather(*de) == ["ab", "ab"]
    assert scheduler.waiting == 0


async def test_call_over_several_lanes_is_admitted_whole() -> None:
    a, b = SteppedEngine(1), SteppedEngine(1)
    a.pairs, b.pairs = EN_JA, EN_DE
    pool = HandPool(a=a, b=b)
    scheduler = usual(Scheduler, pool, lanes=pool.lanes, max_waiting=2, lookahead=0)
    tickets = scheduler.admit("m", [*into("ja", "ja"), *into("de", "de")])
    assert [ticket.request.id for ticket in tickets] == ["ja", "de"]
    assert (scheduler.running, scheduler.waiting) == (2, 0)
    scheduler.admit("m", into("de", "de2"))
    with pytest.raises(Overloaded):
        scheduler.admit("m", [*into("ja", "ja2"), *into("de", "de3")])
    with pytest.raises(UnsupportedLanguage, match="Nothing here translates English into French"):
        scheduler.admit("m", [*into("ja", "ja2"), *into("fr", "fr")])
    assert (scheduler.running, scheduler.waiting) == (2, 1)


async def test_work_follows_coming_and_going_lanes() -> None:
    a, b = SteppedEngine(1), SteppedEngine(1)
    pool, scheduler = pooled(a, b)
    pool.goes("b")
    scheduler.engine_changed()
    tasks = collect(scheduler, *scheduler.admit("m", requests("one", "two", "three")))
    await until(lambda: a.begun == ["one"])
    pool.comes("b")
    scheduler.engine_changed()
    await until(lambda: b.begun == ["two"])
    pool.goes("a")
    scheduler.engine_changed()
    a.let("one")
    assert await tasks[0] == "ab"
    await idle()
    assert (a.begun, b.begun) == (["one"], ["two"])
    b.let("two", "three")
    assert await asyncio.gather(*tasks) == ["ab"] * 3
    assert a.begun == ["one"]


# ---------------------------------------------------------------- what is shown across a crash


@pytest.mark.parametrize(
    ("before", "again", "shown"),
    [
        (("Guten ", "Tag", "!"), ("Gu", "ten T", "ag!"), ["Guten ", "Tag", "!"]),
        (("Guten ", "Tag", "!"), ("Guten Tag!",), ["Guten ", "Tag", "!"]),
        (("Guten ", "Tag", "!"), ("Guten ", "Morgen", "!"), ["Guten ", "Tag"]),
        (("Guten ", "Tag", "!"), ("Guten",), ["Guten ", "Tag"]),
    ],
)
async def test_text_that_was_shown_is_never_taken_back(
    before: tuple[str, ...], again: tuple[str, ...], shown: list[str]
) -> None:
    engine, scheduler = stepped()
    engine.says = ("Guten ", "Tag")
    (ticket,) = scheduler.admit("m", requests("a"))
    pieces: list[str] = []

    def show(piece: str) -> None:
        pieces.append(piece)
        if pieces == ["Guten ", "Tag"]:
            engine.die()

    engine.says = before
    throttle = Throttle(show, interval_s=0.0)
    task = asyncio.create_task(scheduler.collect(ticket, throttle.grow))
    await until(lambda: engine.begun)
    engine.let("a")
    await until(lambda: scheduler.waiting == 1)
    assert pieces == ["Guten ", "Tag"]
    engine.revive()
    # One event for the last token, so that it carries the finish.
    engine.says = again if len(again) > 1 else (*again, "")
    engine.let("a")
    scheduler.engine_changed()
    assert (await task).text == "".join(again)
    throttle.end()
    assert pieces == shown
    assert ticket.tokens == len(engine.says)


# ---------------------------------------------------------------- any order of events


class ChanceEngine(SteppedEngine):
    """Takes a random number of loop turns for each token, and dies on some texts."""

    def __init__(self, chance: random.Random, max_running: int) -> None:
        super().__init__(max_running)
        self._chance = chance

    async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
        generation = self._generations.open()
        self.running += 1
        try:
            for n in range(3):
                with generation:
                    for _ in range(self._chance.randrange(4)):
                        await asyncio.sleep(0)
                if n == 1 and request.text == "bad":
                    raise EngineFailed("bad text")
                if n == 1 and request.text == "killer":
                    self.die()
                on_event(TokenEvent(f"{n}", 1, FinishReason.STOP if n == 2 else None))
        finally:
            self.running -= 1
            generation.close()


@given(seed=st.integers(0, 2**32), max_running=st.integers(1, 4), fatal=st.booleans(), lanes=st.integers(1, 3))
@settings(max_examples=250, deadline=None)
def test_every_ticket_ends_once(seed: int, max_running: int, fatal: bool, lanes: int) -> None:
    asyncio.run(_anything(random.Random(seed), max_running, fatal, lanes))


async def _anything(chance: random.Random, max_running: int, fatal: bool, lanes: int) -> None:
    engines = {name: ChanceEngine(chance, max_running) for name in "abc"[:lanes]}
    pool = HandPool(**engines)
    if lanes > 1:
        for engine in engines.values():
            engine.pairs = chance.choice([EN_JA, EN_DE, EN_JA | EN_DE])
    scheduler = usual(
        Scheduler,
        pool,
        lanes=pool.lanes,
        max_waiting=20,
        lookahead=1,
        deadline_s=chance.choice([0.0, 60.0, 60.0]),
    )
    tickets: list[Ticket] = []
    tasks: list[asyncio.Task[str]] = []
    uncollected: list[Ticket] = []
    ended: list[str] = []

    async def one(ticket: Ticket) -> str:
        try:
            text = await consume(scheduler, ticket)
        finally:
            ended.append(ticket.request.id)
        assert text == "012"
        return text

    def withdraw(ticket: Ticket, _: asyncio.Task[str]) -> None:
        scheduler.withdraw(ticket)

    for n in range(60):
        engine = chance.choice([*engines.values()])
        match chance.randrange(10):
            case 0 | 1 | 2:
                text = chance.choice(["good", "good", "good", "bad", "killer"])
                priority = chance.randrange(2)
                wanted = [
                    replace(request(f"{n}-{k}", text, priority), target=chance.choice(["ja", "de"]))
                    for k in range(chance.randrange(1, 4))
                ]
                try:
                    admitted = scheduler.admit(chance.choice("mno"), wanted)
                except GatewayError:
                    continue
                tickets += admitted
                for ticket in admitted:
                    if chance.random() < 0.1:
                        uncollected.append(ticket)
                        continue
                    tasks.append(task := asyncio.create_task(one(ticket)))
                    # A task that is cancelled before its first step runs no code of its own.
                    task.add_done_callback(partial(withdraw, ticket))
            case 3 if tickets:
                scheduler.give_up(chance.choice(tickets), Cancelled("chance"))
            case 4 if tickets:
                scheduler.withdraw(chance.choice(tickets))
            case 5 if tasks:
                chance.choice(tasks).cancel()
            case 6:
                engine.die(EngineState.FAILED if fatal and chance.random() < 0.3 else EngineState.RESTARTING)
                scheduler.engine_changed()
            case 7:
                come_back(scheduler, engine)
            case 8:
                # One goes or comes back; what it runs, it still ends.
                name = chance.choice([*engines])
                if lanes > 1:
                    pool.goes(name) if name in pool.lanes() else pool.comes(name)
                scheduler.engine_changed()
            case _:
                for _ in range(chance.randrange(5)):
                    await asyncio.sleep(0)
    for ticket in uncollected:
        scheduler.withdraw(ticket)
    while not all(task.done() for task in tasks):
        for engine in engines.values():
            if engine.state is not EngineState.READY:
                come_back(scheduler, engine)
        await asyncio.sleep(0)
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(outcome, str | GatewayError | asyncio.CancelledError)
    assert len(ended) == len(set(ended))
    assert len(scheduler._deadlines) == 0
    assert all(ticket.binding_timer is None or ticket.binding_timer.cancelled() for ticket in tickets)
    assert (scheduler.running, scheduler.waiting) == (0, 0)
    assert all(engine.running == 0 for engine in engines.values())
    assert await scheduler.drain(60) is True


# ---------------------------------------------------------------- over real sockets


async def test_flood_delays_another_meeting_by_one_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    generate, begun = SimulatedEngine.generate, list[str]()

    async def noting(engine: SimulatedEngine, request: TranslationRequest, on_event: OnEvent) -> None:
        begun.append(request.text)
        await generate(engine, request, on_event)

    monkeypatch.setattr(SimulatedEngine, "generate", noting)
    script = Script(first_token_s=0.01, token_s=0.01, max_running=4, rules=(Rule("held", stall_after=1),))
    settings = Settings(limits=Limits(utterances_in_flight=1_000, messages_burst=10_000))
    async with (
        running(settings, script=script) as gateway,
        joined(gateway, meeting="flood", speaks="en", reads=["ja"]) as flood,
        joined(gateway, meeting="quiet", speaks="en", reads=["ja"]) as quiet,
    ):
        # 4 run in the engine, and 2 wait there.
        held = [f"held {n}" for n in range(4 + 2)]
        texts = [*held, *(f"flood {n}" for n in range(100))]
        await flood.peer.send(*(say(text, text) for text in texts))
        await flood.until(UtteranceAccepted, len(texts))
        await quiet.peer.send(say("one", "quiet"))
        await quiet.until(UtteranceAccepted)
        await flood.peer.send(*(UtteranceCancel(text) for text in held))
        await quiet.until(TranslationFinal)
        await flood.until(TranslationFinal, 100)
    assert begun.index("quiet") <= len(held) + 1, "the next turn is the other meeting's, or the one after it"


@swiftly
async def test_a_deadline_ends_what_takes_too_long() -> None:
    async with (
        running(Settings(utterance_deadline_s=1)) as gateway,
        joined(gateway, speaks="en", reads=["ja"]) as ana,
    ):
        await ana.peer.send(say("1", "STALL"))
        failed = (await ana.until(TranslationFailed))[0]
        assert (failed.utterance, failed.code) == ("1", "deadline_exceeded")
        await ana.peer.send(say("2"))
        assert (await ana.until(TranslationFinal))[0].utterance == "2"


# ---------------------------------------------------------------- attempts


STOP = FinishReason.STOP


class Situation:
    """A ticket of the tenant acme, what is told of it, and the time."""

    def __init__(self, *, final: bool = True, quotas: Quotas | None = None) -> None:
        self.ticket = Ticket(1, "acme/m", request("r1", "said", final=final), 0.0, "tenant:acme")
        self.quotas = quotas or Quotas()
        self.now_s = 0.0
        self.told: list[str] = []

    def attempt(self, on_text: OnText | None = None) -> Attempt:
        return Attempt(self.ticket, on_text or self.told.append, self.quotas, lambda: self.now_s)

    def times(self) -> tuple[float | None, float | None]:
        """Times of the first token and of the end."""
        return self.ticket.first_token_s, self.ticket.finished_s

    @property
    def charged(self) -> DayOfTenant:
        return self.quotas.today("acme")


def broken(_: str) -> None:
    raise ValueError("a bug")


# ---------------------------------------------------------------- text and tokens


def test_collector_is_told_the_whole_text() -> None:
    s = Situation()
    attempt = s.attempt()
    for event in (TokenEvent("Guten", 1), TokenEvent(" Tag", 1), TokenEvent("!", 1, STOP)):
        attempt.take_in(event)
    assert s.told == ["Guten", "Guten Tag", "Guten Tag!"]
    assert s.ticket.text == "Guten Tag!"


def test_leading_spaces_are_dropped() -> None:
    s = Situation()
    attempt = Attempt(s.ticket, None, s.quotas, lambda: 0.0)
    for text in (" ", " Guten", " Tag"):
        attempt.take_in(TokenEvent(text, 1))
    attempt.engine_died()
    assert (s.ticket.text, s.ticket.given_up) == ("Guten Tag", None)


def test_another_attempt_begins_with_nothing() -> None:
    s = Situation()
    attempt = s.attempt()
    attempt.take_in(TokenEvent("Guten Tag", 1, reused=4))
    attempt.take_in(TokenEvent("!", 2, STOP))
    assert (s.ticket.tokens, s.ticket.generated) == (7, 3)
    attempt.engine_died()
    assert s.told == ["Guten Tag", "Guten Tag!", ""]
    s.attempt()
    assert (s.ticket.text, s.ticket.tokens, s.ticket.generated, s.ticket.last) == ("", 0, 0, None)


# ---------------------------------------------------------------- times


def test_first_token_time_is_of_first_attempt() -> None:
    s = Situation()
    attempt = s.attempt()
    s.now_s = 1.0
    attempt.take_in(TokenEvent("Guten", 0, reused=1))
    assert s.times() == (None, None), "nothing was generated yet"
    s.now_s = 2.0
    attempt.take_in(TokenEvent(" Tag", 1))
    s.now_s = 3.0
    again = s.attempt()
    again.take_in(TokenEvent("Guten Tag", 2))
    assert (s.times(), s.ticket.last) == ((2.0, None), None)
    s.now_s = 4.0
    last = TokenEvent("!", 1, STOP)
    again.take_in(last)
    assert (s.times(), s.ticket.last) == ((2.0, 4.0), last)


# ---------------------------------------------------------------- charges


def test_final_is_charged_once_over_attempts() -> None:
    s = Situation()
    attempt = s.attempt()
    assert s.charged.characters == 0, "nothing has come"
    for _ in range(2):
        attempt.take_in(TokenEvent("Guten", 1))
    s.attempt().take_in(TokenEvent("Guten", 1))
    assert (s.charged.characters, s.charged.minutes) == (len("said"), 1)


async def test_final_is_charged_from_its_first_text() -> None:
    quotas, engine = Quotas(), SteppedEngine(max_running=3)
    scheduler = usual(Scheduler, engine, max_waiting=100, lookahead=0, quotas=quotas)
    finals = [request(name, "x") for name in ("whole", "cut", "never")]
    whole, cut, never = scheduler.admit("acme/m", finals, account="tenant:acme")
    partial = replace(request("live", "x", final=False), priority=1)
    [live] = scheduler.admit("acme/m", [partial], account="tenant:acme")
    scheduler.withdraw(never)
    tasks = [asyncio.create_task(scheduler.collect(ticket)) for ticket in (whole, cut, live)]
    while len(engine.begun) < 3:
        await asyncio.sleep(0)
    engine.let("whole", "live")
    await tasks[0]
    await tasks[2]
    scheduler.withdraw(cut)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert quotas.today("acme").characters == 2
    assert quotas.today("acme").minutes == 1


# ---------------------------------------------------------------- what fails


def test_failure_is_logged_without_the_text(caplog: pytest.LogCaptureFixture) -> None:
    s = Situation()
    with pytest.raises(NotTakenIn):
        s.attempt(broken).take_in(TokenEvent("geheim", 1))
    assert s.ticket.given_up is not None
    assert s.ticket.given_up.code == "internal"
    (record,) = caplog.records
    assert "translation r1" in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[0] is ValueError
    assert not any(text in caplog.text for text in ("geheim", "said"))


class _Uncharged(Quotas):
    def translated(self, tenant: str, meeting: str, lang: str, characters: int) -> None:
        raise ValueError("a bug")


@pytest.mark.parametrize("where", ["charge", "death", "given up before"])
def test_failures_elsewhere_give_the_ticket_up(where: str) -> None:
    s = Situation(quotas=_Uncharged() if where == "charge" else None)
    s.ticket.given_up = first = Cancelled("first") if where == "given up before" else None
    attempt = s.attempt(None if where == "charge" else broken)
    with pytest.raises(NotTakenIn):
        attempt.engine_died() if where == "death" else attempt.take_in(TokenEvent("Guten", 1))
    assert s.ticket.given_up is first if first else s.ticket.given_up is not None


@pytest.mark.parametrize("error", [RuntimeError, ValueError, EngineFailed, EngineUnavailable, EngineRestarting])
async def test_reader_bug_is_not_the_engines(error: type[Exception], caplog: pytest.LogCaptureFixture) -> None:
    def breaks(_: str) -> None:
        raise error("a bug")

    engine = usual(Supervisor, SimulatedEngine)
    await engine.start()
    scheduler = usual(Scheduler, engine, max_waiting=10)
    broken_one, sound = scheduler.admit("m", [request("a", "x"), request("b", "x")])
    with pytest.raises(GatewayError, match=r"The gateway failed") as raised:
        await scheduler.collect(broken_one, breaks)
    assert (raised.value.code, broken_one.crashes) == ("internal", 0)
    assert engine.health().state is EngineState.READY
    assert (await scheduler.collect(sound)).text == "[ja] x"
    assert len(caplog.records) == 1
    await engine.stop()


async def test_reader_bug_on_death_is_not_the_engines() -> None:
    def breaks(text: str) -> None:
        if not text:
            raise EngineRestarting("a bug")

    engine, scheduler = stepped()
    (ticket,) = scheduler.admit("m", [request("a")])
    task = asyncio.create_task(scheduler.collect(ticket, breaks))
    while not ticket.text:
        await asyncio.sleep(0)
    engine.die()
    with pytest.raises(GatewayError, match=r"The gateway failed"):
        await task


async def test_reader_bug_at_engine_death_is_not_retried() -> None:
    """An engine that is dead by then tells of its own death instead of what it was told."""

    class Dying(SteppedEngine):
        async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
            try:
                await super().generate(request, on_event)
            except NotTakenIn:
                self.die()
                raise EngineUnavailable("dead") from None

    def breaks(_: str) -> None:
        raise RuntimeError("a bug")

    scheduler = usual(Scheduler, Dying(), max_waiting=10)
    (ticket,) = scheduler.admit("m", [request("a")])
    with pytest.raises(GatewayError, match=r"The gateway failed"):
        async with asyncio.timeout(5):
            await scheduler.collect(ticket, breaks)


# ---------------------------------------------------------------- deadlines


def ticket(serial: int) -> Ticket:
    request = TranslationRequest(id=str(serial), text="x", source="en", target="ja")
    return Ticket(serial, "m", request, 0.0)


@swiftly
async def test_each_expires_at_its_own_time() -> None:
    told: list[tuple[int, float]] = []
    loop = asyncio.get_running_loop()
    begun_s = loop.time()

    def expire(late: Ticket) -> None:
        told.append((late.serial, round(loop.time() - begun_s, 2)))
        deadlines.remove(late)

    deadlines = Deadlines(10.0, expire)
    for serial in range(3):
        deadlines.add(ticket(serial))
        await asyncio.sleep(4)
    await asyncio.sleep(60)
    assert told == [(0, 10.0), (1, 14.0), (2, 18.0)]
    deadlines.add(ticket(3))
    await asyncio.sleep(60)
    assert told[3:] == [(3, 82.0)], "also of one that comes once all were gone"


@swiftly
async def test_of_what_has_ended_nobody_is_told() -> None:
    told: list[Ticket] = []
    deadlines = Deadlines(10.0, told.append)
    first, second = ticket(1), ticket(2)
    deadlines.add(first)
    await asyncio.sleep(5)
    deadlines.add(second)
    deadlines.remove(first)
    deadlines.remove(first)
    await asyncio.sleep(7)
    assert (told, len(deadlines)) == ([], 1)
    await asyncio.sleep(4)
    assert told == [second]


# ---------------------------------------------------------------- deltas


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


async def test_first_text_is_shown_at_once() -> None:
    clock, seen = Clock(), list[str]()
    throttle = Throttle(seen.append, shown="", interval_s=5.0, clock=clock)
    throttle.grow("Gu")
    assert seen == ["Gu"]
    clock.now_s += 5.0
    throttle.grow("Guten")
    assert seen == ["Gu", "ten"]


@swiftly
async def test_held_text_is_shown_by_timer() -> None:
    seen = list[str]()
    throttle = Throttle(seen.append, shown="", interval_s=0.01, clock=asyncio.get_running_loop().time)
    throttle.grow("Gu")
    throttle.grow("Guten")
    throttle.grow("Guten Tag")
    assert seen == ["Gu"]
    while len(seen) < 2:
        await asyncio.sleep(0.001)
    assert seen == ["Gu", "ten Tag"]


@swiftly
async def test_nothing_is_shown_once_stopped() -> None:
    seen = list[str]()
    throttle = Throttle(seen.append, shown="", interval_s=0.001, clock=asyncio.get_running_loop().time)
    throttle.grow("Gu")
    throttle.grow("Guten")
    throttle.stop()
    await asyncio.sleep(0.01)
    assert seen == ["Gu"]


async def test_another_attempt_continues_what_was_shown() -> None:
    seen = list[str]()
    agrees = Throttle(seen.append, shown="Guten", interval_s=0.0, clock=Clock())
    for text in ("G", "Guten", "Guten Tag"):
        agrees.grow(text)
    agrees.end()
    assert seen == [" Tag"]
    other = Throttle(seen.append, shown="Guten", interval_s=0.0, clock=Clock())
    other.grow("Hallo zusammen")
    other.end()
    assert seen == [" Tag"]


@given(st.lists(st.text(alphabet="ab ", min_size=1), max_size=12), st.sampled_from((0.0, 60.0)))
def test_however_it_comes_all_of_it_is_shown_once(pieces: list[str], interval_s: float) -> None:
    async def play() -> list[str]:
        seen = list[str]()
        throttle = Throttle(seen.append, shown="", interval_s=interval_s, clock=Clock())
        text = ""
        for piece in pieces:
            text += piece
            throttle.grow(text)
        throttle.end()
        return seen

    assert "".join(asyncio.run(play())) == "".join(pieces)
