"""Several workers share one engine: its slots are divided, and nobody is harmed by another one's end."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.domain.engine import FinishReason
from gateway.domain.errors import EngineUnavailable, GatewayError
from gateway.engines.host import main, sharing
from gateway.engines.host.channel import Channel
from gateway.engines.host.messages import (
    Aborted,
    Demand,
    Generate,
    GetMetrics,
    Metrics,
    Step,
    ToGateway,
    ToHost,
    Wanted,
)
from gateway.engines.host.sharing import Gateway, Sharing, Turns, fair_shares, grants
from gateway.engines.prompting.completions import News, OnNews, Prompt
from gateway.engines.simulated import Rule, Script, SimulatedEngine
from gateway.translation.scheduling.scheduler import Scheduler
from tests.clocks import swiftly
from tests.engines.host.pairs import Faulty, prompt_of, request
from tests.engines.host.workers import begin, close, fleet, shared_engine, slots, worker
from tests.generations import events_of
from tests.patience import until

ENDLESS = (Rule(match="endless", repeat=20_000),)
SIXTEEN = Script(first_token_s=0.001, token_s=0.001, max_running=16, rules=ENDLESS)


async def test_slots_follow_what_each_wants() -> None:
    async with shared_engine(SimulatedEngine(SIXTEEN)) as shared, worker(shared) as a, worker(shared) as b:
        await until(lambda: slots(a, b) == [16, 16])
        # What is not promised leaves the other its half, as long as that wants nothing.
        a.waiting = lambda: Wanted(0, 50)
        running = await begin(a, 2)
        await until(lambda: slots(a, b)[1] == 7)
        a.waiting = lambda: Wanted(50)
        await until(lambda: slots(a, b) == [16, 1])
        b.waiting = lambda: Wanted(50)
        more = await begin(b, 1)
        await until(lambda: slots(a, b) == [8, 8])
        # What it does not want any more goes to the other at once.
        b.waiting = lambda: Wanted(0)
        await until(lambda: slots(a, b)[0] == 15)
        await close(more)
        await until(lambda: slots(a, b)[0] == 16)
        await close(running)


async def test_workers_are_told_how_late_the_host_is() -> None:
    async with shared_engine(SimulatedEngine(SIXTEEN)) as shared, worker(shared) as a, worker(shared) as b:
        # The workers and the host are in this process.
        time.sleep(1.0)  # noqa: ASYNC251 -- a host that has too much to do
        await until(lambda: min(a.capacity().lag_s, b.capacity().lag_s) > 0.3)
        await until(lambda: max(a.capacity().lag_s, b.capacity().lag_s) < 0.3)


async def test_lost_worker_ends_its_own_texts_alone() -> None:
    async with shared_engine(SimulatedEngine(SIXTEEN)) as shared, worker(shared) as a, AsyncExitStack() as gone:
        b = await gone.enter_async_context(worker(shared))
        b.waiting = lambda: Wanted(50)
        mine, theirs = await begin(a, 3), await begin(b, 5)
        await until(lambda: shared.far.capacity().running == 8)
        assert b._channel is not None
        b._channel._transport.abort()  # type: ignore[union-attr]
        await until(lambda: shared.far.capacity().running == 3)
        for generation in mine:
            assert (await anext(generation)).text
        await close(mine)
        await close(theirs)


async def test_one_that_is_frozen_gives_its_slots_back(monkeypatch: pytest.MonkeyPatch) -> None:
    # Not before it has any.
    monkeypatch.setattr(sharing, "DEMAND_S", 3_600.0)
    async with shared_engine(SimulatedEngine(SIXTEEN)) as shared, worker(shared) as a:
        frozen: Channel[ToHost, ToGateway] = Channel(ToGateway, lambda _: None, lambda: None)
        await asyncio.get_running_loop().create_unix_connection(lambda: frozen, str(shared.path))
        frozen.say(Demand(Wanted(50)))
        a.waiting = lambda: Wanted(50)
        running = await begin(a, 1)
        await until(lambda: slots(a) == [8])
        # It says nothing more.
        monkeypatch.undo()
        await until(lambda: slots(a) == [16])
        await close(running)
        frozen.close()


async def test_one_that_does_not_read_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_UNREAD_BYTES", 10_000)
    # By themselves they would run for minutes.
    script = Script(first_token_s=0.01, token_s=0.01, max_running=17, rules=ENDLESS)
    async with shared_engine(SimulatedEngine(script)) as shared, worker(shared) as a:
        rude: Channel[ToHost, ToGateway] = Channel(ToGateway, lambda _: None, lambda: None)
        transport, _ = await asyncio.get_running_loop().create_unix_connection(lambda: rude, str(shared.path))
        transport.pause_reading()
        for number in range(16):
            rude.say(Generate(number, prompt_of("endless", script)))
        await until(lambda: shared.far.capacity().running == 16)
        # It is dropped with everything that it ran, and others go on.
        await until(lambda: shared.far.capacity().running == 0)
        assert [event async for event in events_of(a, request("good"))]
        transport.abort()


async def test_who_runs_alone_runs_alone_among_all_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts: list[Sharing] = []

    def share(*args: Any, **more: Any) -> Sharing:
        hosts.append(Sharing(*args, **more))
        return hosts[0]

    monkeypatch.setattr(main, "Sharing", share)
    async with shared_engine(SimulatedEngine(SIXTEEN)) as shared, worker(shared) as a, worker(shared) as b:
        running = await begin(a, 2)
        suspect = events_of(b, replace(request("endless", "suspect"), alone=True))
        first = asyncio.create_task(anext(suspect))
        await until(lambda: len(hosts[0].generations) == 3)
        others = asyncio.create_task(anext(others_one := events_of(a, request("endless", "other"))))
        await close(running)
        await until(lambda: len(hosts[0].generations) == 2)
        await first
        assert shared.far.capacity().running == 1
        assert not others.done()
        await suspect.aclose()
        await others
        await others_one.aclose()


async def translated(scheduler: Scheduler, text: str, name: str) -> str:
    """A translation, or the code of its failure."""
    (ticket,) = scheduler.admit(name, [request(text, name)])
    try:
        return (await scheduler.collect(ticket)).text
    except GatewayError as error:
        return error.code


@pytest.mark.parametrize("killers", [1, 2])
async def test_only_the_killing_text_fails(killers: int) -> None:
    rule = Rule(match="poison", crash_after=1, crashes=1_000)
    script = Script(first_token_s=0.002, token_s=0.002, max_running=16, rules=(rule,))
    async with fleet(script, workers=3) as gateway:
        asked = {
            f"{number}-{n}": "a poison" if n == 0 and number < killers else "a few words that harm nobody"
            for number in range(3)
            for n in range(6)
        }
        done = await asyncio.gather(
            *(translated(gateway.schedulers[int(name[0])], text, name) for name, text in asked.items())
        )
        outcomes = dict(zip(asked, done, strict=True))
        assert outcomes == {
            name: "engine_failed" if text == "a poison" else f"[de] {text}" for name, text in asked.items()
        }


# ---------------------------------------------------------------- one gateway's generations


FAULTS = (Rule(match="endless", repeat=1_000), Rule("bad", fail_after=1), Rule("hush", stall_after=0))
FAST = Script(first_token_s=0, token_s=0, rules=FAULTS)


class Asking(Gateway):
    """A gateway without a connection, which remembers what is said to it."""

    def __init__(self, sharing: Sharing) -> None:
        super().__init__(sharing)
        self.said: list[object] = []

    def say(self, message: object) -> None:
        self.said.append(message)

    def ask(self, number: int, text: str, **more: Any) -> None:
        self.heard(Generate(number, prompt_of(text, FAST, **more)))

    @property
    def steps(self) -> list[Step]:
        return [message for message in self.said if isinstance(message, Step)]

    def all_told(self, what: str) -> list[Any]:
        """All entries of one field of the steps."""
        return [each for step in self.steps for each in getattr(step, what)]

    async def done(self) -> None:
        while self.generations or self._tasks or self._step is not None:
            await asyncio.sleep(0)


async def ready_sharing(engine: SimulatedEngine | None = None, **more: Any) -> Sharing:
    engine = engine or SimulatedEngine(FAST)
    await engine.start()
    return Sharing(engine, **more)


async def test_generations_and_tokens_are_counted_for_all() -> None:
    shared = await ready_sharing()
    one, two = Asking(shared), Asking(shared)
    one.ask(1, "a word")
    two.ask(1, "endless")
    assert (len(one.generations), len(two.generations), len(shared.generations)) == (1, 1, 2)
    begun_s = shared.generations._heard_s
    await one.done()
    assert shared.generations._heard_s > begun_s
    two.heard(Aborted(1))
    await two.done()
    assert not shared.generations
    assert shared.generations.silent_s == 0.0
    assert one.all_told("news") == [(1, News([0])), (1, News([1])), (1, News([2], FinishReason.STOP))]
    await shared.close()


@swiftly
async def test_only_a_token_ends_the_silence() -> None:
    shared = await ready_sharing()
    one, two = Asking(shared), Asking(shared)
    one.ask(1, "hush")
    await asyncio.sleep(2)
    # One that comes and goes is no sign of life.
    two.ask(1, "hush")
    two.heard(Aborted(1))
    await two.done()
    assert round(shared.generations.silent_s) == 2
    two.ask(2, "a word")
    await two.done()
    assert shared.generations.silent_s < 1
    one.heard(Aborted(1))
    await one.done()
    await shared.close()


class Stepping(SimulatedEngine):
    """Gives a token of everything that it runs at each step."""

    def __init__(self) -> None:
        super().__init__(FAST)
        self._hearing: list[OnNews] = []

    async def complete(self, prompt: Prompt, on_news: OnNews) -> None:
        self._hearing.append(on_news)
        await asyncio.Event().wait()

    def step(self) -> None:
        for number, hear in enumerate(self._hearing):
            hear(News([number]))


async def test_one_message_brings_all_of_a_step() -> None:
    shared = await ready_sharing(engine := Stepping())
    one, two = Asking(shared), Asking(shared)
    for number in range(3):
        one.ask(number, "a text")
    two.ask(0, "a text")
    await settled()
    for _ in range(2):
        engine.step()
        await settled()
    assert one.steps == [Step([], [], [(number, News([number])) for number in range(3)], [])] * 2
    assert two.steps == [Step([], [], [(0, News([3]))], [])] * 2
    await shared.close()


async def test_the_end_of_one_is_not_that_of_others() -> None:
    shared = await ready_sharing()
    one, two = Asking(shared), Asking(shared)
    for gateway in (one, two):
        gateway.ask(1, "endless")
        gateway.ask(2, "endless")
    await one.end_all()
    await asyncio.sleep(0)
    assert (len(one.generations), len(two.generations), len(shared.generations)) == (0, 2, 2)
    await two.end_all()
    await shared.close()


async def test_waiting_behind_a_lone_text_is_told_held() -> None:
    shared = await ready_sharing()
    one, two = Asking(shared), Asking(shared)
    one.ask(1, "most need no message")
    await one.done()
    assert one.all_told("held") + one.all_told("begun") == []
    one.ask(2, "endless", alone=True)
    two.ask(3, "another one's")
    two.ask(4, "endless", alone=True)
    await until(lambda: two.all_told("held") == [3, 4])
    assert one.all_told("begun") == [2]
    # Another one that is to run alone comes next, and then what waits.
    one.heard(Aborted(2))
    await until(lambda: two.all_told("begun") == [4])
    two.heard(Aborted(4))
    await until(lambda: two.all_told("begun") == [4, 3])
    await two.end_all()
    await shared.close()


async def test_nothing_begins_with_a_dead_engine() -> None:
    engine = SimulatedEngine(FAST)
    gateway = Asking(shared := await ready_sharing(engine))
    engine.fail("it was told to")
    gateway.ask(1, "late")
    gateway.ask(2, "late and alone", alone=True)
    await gateway.done()
    assert (gateway.all_told("held"), gateway.all_told("begun")) == ([1, 2], [])
    failed = [(number, failure.code) for number, failure in gateway.all_told("failed")]
    assert failed == [(1, EngineUnavailable.code), (2, EngineUnavailable.code)]
    await shared.close()


async def test_failures_are_told_and_metrics_given() -> None:
    failures: list[bool] = []
    gateway = Asking(shared := await ready_sharing(Faulty(FAST), on_failure=lambda: failures.append(True)))
    gateway.ask(1, "bad")
    gateway.ask(2, "a text", id="odd")
    gateway.heard(GetMetrics(3, ["a"]))
    await gateway.done()
    failed = {number: failed.message for number, failed in gateway.all_told("failed")}
    assert failed[1] == "The script says that this text fails."
    assert "ZeroDivisionError" in failed[2]
    assert failures == [True]
    assert Metrics(3, b"asked for a") in gateway.said
    await shared.close()


# ---------------------------------------------------------------- running alone


class Stage:
    """Generations that run until they are told to end."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.running: set[str] = set()
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def begin(self, name: str, *, alone: bool = False) -> None:
        self._ends[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._run(name, alone))
        await settled()

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self._tasks[name]
        await settled()

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        await settled()

    async def _run(self, name: str, alone: bool) -> None:
        async with self.turns.turn(alone=alone):
            self.running.add(name)
            try:
                await self._ends[name].wait()
            finally:
                self.running.remove(name)


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_others_run_together() -> None:
    stage = Stage()
    await stage.begin("a")
    await stage.begin("b")
    assert stage.running == {"a", "b"}


async def test_whether_a_turn_would_come_at_once() -> None:
    stage = Stage()
    assert stage.turns.is_free(alone=False)
    assert stage.turns.is_free(alone=True)
    await stage.begin("a")
    assert stage.turns.is_free(alone=False)
    assert not stage.turns.is_free(alone=True)
    await stage.begin("suspect", alone=True)
    await stage.end("a")
    assert not stage.turns.is_free(alone=False)
    assert not stage.turns.is_free(alone=True)
    await stage.end("suspect")
    assert stage.turns.is_free(alone=True)


async def test_lone_turn_waits_for_running_and_precedes_new() -> None:
    stage = Stage()
    await stage.begin("a")
    await stage.begin("suspect", alone=True)
    await stage.begin("b")
    await stage.begin("another suspect", alone=True)
    assert stage.running == {"a"}
    await stage.end("a")
    assert stage.running == {"suspect"}
    await stage.end("suspect")
    assert stage.running == {"another suspect"}
    await stage.end("another suspect")
    assert stage.running == {"b"}


async def test_cancelled_turn_blocks_no_other() -> None:
    stage = Stage()
    await stage.begin("a")
    await stage.begin("suspect", alone=True)
    await stage.begin("b")
    await stage.cancel("suspect")
    assert stage.running == {"a", "b"}
    await stage.begin("c", alone=True)
    await stage.cancel("b")
    assert stage.running == {"a"}
    await stage.cancel("a")
    assert stage.running == {"c"}


NUMBERS = st.integers(0, 50)
DEMANDS = st.lists(NUMBERS, max_size=12)
WANTED = st.lists(st.builds(Wanted, NUMBERS, NUMBERS), max_size=12)
SEATS = st.integers(1, 64)


def used(wanted: list[Wanted], granted: list[int]) -> list[int]:
    return [min(each.finals + each.others, grant) for each, grant in zip(wanted, granted, strict=True)]


@pytest.mark.parametrize(
    ("demands", "shares"),
    [
        ([100], [16]),
        ([100, 100], [8, 8]),
        ([3, 100], [3, 13]),
        ([0, 100], [0, 16]),
        ([100, 5, 100], [6, 5, 5]),
        ([9] * 20, [1] * 16 + [0] * 4),
        ([], []),
    ],
)
def test_examples_of_sixteen_slots(demands: list[int], shares: list[int]) -> None:
    assert fair_shares(demands, 16) == shares


@given(DEMANDS, SEATS)
def test_shares_are_max_min_fair(demands: list[int], slots: int) -> None:
    shares = fair_shares(demands, slots)
    assert all(0 <= share <= demand for demand, share in zip(demands, shares, strict=True))
    # All slots are used if they are wanted, and never more.
    assert sum(shares) == min(slots, sum(demands))
    # Whoever gets less than they want gets as much as anybody, but for what cannot be divided.
    kept_short = [share for demand, share in zip(demands, shares, strict=True) if share < demand]
    if kept_short:
        assert max(shares) <= min(kept_short) + 1


@given(WANTED, SEATS)
def test_grants_never_exceed_slots(wanted: list[Wanted], slots: int) -> None:
    granted = grants(wanted, slots)
    assert all(1 <= grant <= slots for grant in granted)
    in_use = used(wanted, granted)
    wanting = sum(each != Wanted() for each in wanted)
    # But for the one that everybody may use.
    assert sum(in_use) <= slots + sum(use == 1 for use in in_use)
    assert sum(in_use) >= min(slots, sum(each.finals + each.others for each in wanted))
    assert sum(use > 0 for use in in_use) == wanting


@given(WANTED, SEATS)
def test_finals_get_what_they_would_get_without_all_others(wanted: list[Wanted], slots: int) -> None:
    finals = fair_shares([each.finals for each in wanted], slots)
    assert all(grant >= share for grant, share in zip(grants(wanted, slots), finals, strict=True))


@pytest.mark.parametrize(
    ("wanted", "granted"),
    [
        # One that has been idle may begin with its share at once.
        ([Wanted()], [16]),
        ([Wanted(), Wanted(0, 100)], [8, 16]),
        ([Wanted(), Wanted(3)], [13, 16]),
        # Finals of every gateway come before all others.
        ([Wanted(0, 100), Wanted(100, 100)], [1, 16]),
        ([Wanted(0, 100), Wanted(6, 100)], [5, 11]),
        ([Wanted(4, 100), Wanted(100)], [4, 12]),
    ],
)
def test_examples_of_grants(wanted: list[Wanted], granted: list[int]) -> None:
    assert grants(wanted, 16) == granted
