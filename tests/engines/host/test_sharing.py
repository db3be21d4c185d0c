"""Several workers share one engine: its slots are divided, and nobody is harmed by another one's end."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack

import pytest
from msgspec.structs import replace

from gateway.domain.engine import OnEvent, TranslationRequest
from gateway.domain.errors import GatewayError
from gateway.engines.host import sharing
from gateway.engines.host.channel import Channel
from gateway.engines.host.messages import Demand, Generate, ToGateway, ToHost
from gateway.engines.host.slots import Wanted
from gateway.engines.simulated import Rule, Script, SimulatedEngine
from gateway.translation.scheduling.scheduler import Scheduler
from tests.engines.host.pairs import request
from tests.engines.host.workers import Shared, begin, close, fleet, shared_engine, slots, worker
from tests.generations import events_of
from tests.patience import until

ENDLESS = (Rule(match="endless", repeat=20_000),)
SIXTEEN = Script(first_token_s=0.001, token_s=0.001, max_running=16, rules=ENDLESS)


def in_host(shared: Shared) -> int:
    """Generations in flight, as the host has told its parent."""
    shared.parent.activity()
    return shared.parent._activity.generations


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
            rude.say(Generate(number, request("endless " + "x" * 200, str(number))))
        await until(lambda: shared.far.capacity().running == 16)
        # It is dropped with everything that it ran, and others go on.
        await until(lambda: shared.far.capacity().running == 0)
        assert [event async for event in events_of(a, request("good"))]
        transport.abort()


async def test_equal_ids_of_two_workers_stay_apart() -> None:
    ids: list[str] = []

    class Listed(SimulatedEngine):
        async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
            ids.append(request.id)
            await super().generate(request, on_event)

    async with shared_engine(Listed(SIXTEEN)) as shared, worker(shared) as a, worker(shared) as b:
        for engine in (a, b):
            assert [event async for event in events_of(engine, request("good", "same"))]
    assert len(set(ids)) == 2
    assert all(id.endswith(":same") for id in ids)


async def test_who_runs_alone_runs_alone_among_all_workers() -> None:
    async with shared_engine(SimulatedEngine(SIXTEEN)) as shared, worker(shared) as a, worker(shared) as b:
        running = await begin(a, 2)
        suspect = events_of(b, replace(request("endless", "suspect"), alone=True))
        first = asyncio.create_task(anext(suspect))
        await until(lambda: in_host(shared) == 3)
        others = asyncio.create_task(anext(others_one := events_of(a, request("endless", "other"))))
        await close(running)
        await until(lambda: in_host(shared) == 2)
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
