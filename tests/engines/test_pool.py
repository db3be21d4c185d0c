"""Several engines as one: what all can do together, how they are, and lanes that come, go and die."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from gateway.domain.engine import (
    EngineHealth,
    EngineProfile,
    EngineState,
    LaneHealth,
    OnEvent,
    TranslationOptions,
    TranslationRequest,
)
from gateway.domain.errors import EngineFailed, EngineRestarting, EngineUnavailable, StartupError
from gateway.domain.pairs import PairPattern
from gateway.engines import pool as pool_module
from gateway.engines.pool import Lane, Pool
from gateway.engines.simulated import Rule, Script, SimulatedEngine
from gateway.engines.supervisor import RestartPolicy, Supervisor
from tests.generations import events_of
from tests.usual import usual

READY, RESTARTING, FAILED, STARTING, STOPPED = (
    EngineState.READY,
    EngineState.RESTARTING,
    EngineState.FAILED,
    EngineState.STARTING,
    EngineState.STOPPED,
)

FAST = Script(first_token_s=0.0, token_s=0.0, max_running=2, rules=(Rule(match="LONG", stall_after=1),))


class Bench:
    """Lanes over simulated engines; `engines` are those of each lane, the newest last."""

    def __init__(self) -> None:
        self.engines: dict[str, list[SimulatedEngine]] = {}
        self.states: list[EngineState] = []
        self.lane_changes = 0

    def lane(
        self,
        name: str,
        *pairs: str,
        script: Script = FAST,
        devices: set[str] | None = None,
        restarts: int = 5,
        again_s: float = 0.0,
        kind: type[SimulatedEngine] = SimulatedEngine,
    ) -> Lane:
        def build() -> SimulatedEngine:
            self.engines.setdefault(name, []).append(engine := kind(script))
            return engine

        policy = usual(
            RestartPolicy, max_restarts=restarts, restart_backoff_s=again_s, restart_backoff_max_s=again_s
        )
        supervised = usual(Supervisor, build, policy, name=name)
        return Lane(name, supervised, [PairPattern.parse(pair) for pair in pairs or ("*",)], devices)

    def pool(self, *lanes: Lane) -> Pool:
        pool = Pool(lanes)
        pool.on_change = self.changed
        pool.on_lane = self.lane_changed
        return pool

    @asynccontextmanager
    async def started(self, *lanes: Lane) -> AsyncIterator[Pool]:
        pool = self.pool(*lanes)
        await pool.start()
        yield pool
        await pool.stop()

    def changed(self, health: EngineHealth) -> None:
        self.states.append(health.state)

    def lane_changed(self) -> None:
        self.lane_changes += 1

    def kill(self, name: str) -> None:
        self.engines[name][-1].fail("the test says so")


@pytest.fixture
def bench() -> Bench:
    return Bench()


def request(text: str = "hi", source: str = "en", target: str = "ja", lane: str = "") -> TranslationRequest:
    return TranslationRequest(id="r", text=text, source=source, target=target, lane=lane)


async def translate(pool: Pool, asked: TranslationRequest) -> str:
    return "".join([event.text async for event in events_of(pool, asked)])


async def until(pool: Pool, *states: EngineState) -> None:
    """Wait until the lanes are like this; the suite's timeout is the bound."""
    while [lane.state for lane in pool.lane_health()] != list(states):
        await asyncio.sleep(0.001)


# ---------------------------------------------------------------- what it can do


async def test_it_can_do_what_its_lanes_can_do_together(bench: Bench) -> None:
    one = replace(FAST, languages=("en", "ja", "xx"), options=frozenset({"context"}), max_text_tokens=10)
    two = replace(FAST, languages=("de", "en"), options=frozenset({"glossary"}), max_running=3)
    async with bench.started(bench.lane("a", "en-ja", script=one), bench.lane("b", "*-de", script=two)) as pool:
        profile = pool.profile()
        assert profile.pairs == frozenset({("en", "ja"), ("en", "de")})
        assert profile.languages == ("en", "ja", "de")
        assert (profile.model, sorted(profile.options)) == ("simulated", ["context", "glossary"])
        assert profile.max_text_tokens == 512
        assert pool.capacity().max_running == 5
        assert list(pool.lanes()) == ["a", "b"]
        assert pool.profile() is profile, "asked for each message, it is made once"


async def test_a_text_runs_on_the_lane_of_its_slot(bench: Bench) -> None:
    async with bench.started(bench.lane("a"), bench.lane("b")) as pool:
        for name in ("b", "a", "b"):
            generation = events_of(pool, request("LONG", lane=name))
            await anext(generation)
            assert {lane: engines[-1].capacity().running for lane, engines in bench.engines.items()} == {
                "a": int(name == "a"),
                "b": int(name == "b"),
            }
            await generation.aclose()
        with pytest.raises(EngineRestarting, match="The engine c is gone"):
            await translate(pool, request(lane="c"))


async def test_text_without_slot_runs_where_most_is_free(bench: Bench) -> None:
    async with bench.started(bench.lane("a", "en-ja"), bench.lane("b", "en-ja", "en-de")) as pool:
        first = events_of(pool, request("LONG"))
        second = events_of(pool, request("LONG", target="de"))
        await anext(first)
        await anext(second)
        assert [engines[-1].capacity().running for engines in bench.engines.values()] == [1, 1]
        third = events_of(pool, request("LONG"))
        await anext(third)
        assert bench.engines["a"][-1].capacity().running == 2
        for generation in (first, second, third):
            await generation.aclose()
        with pytest.raises(EngineFailed, match="No engine translates ja into en"):
            await translate(pool, request(source="ja", target="en"))


# ---------------------------------------------------------------- life


async def test_pool_is_ready_once_all_lanes_are(bench: Bench) -> None:

    class Slow(SimulatedEngine):
        go = asyncio.Event()

        async def start(self) -> None:
            await self.go.wait()
            await super().start()

    pool = bench.pool(bench.lane("a"), bench.lane("b", kind=Slow))
    with pytest.raises(EngineUnavailable):
        pool.profile()
    with pytest.raises(EngineUnavailable):
        await translate(pool, request())
    starting = asyncio.create_task(pool.start())
    await until(pool, READY, STARTING)
    assert pool.health() == EngineHealth(STARTING, "Engine b: starting")
    assert pool.lane_health() == (
        LaneHealth("a", READY, max_running=2),
        LaneHealth("b", STARTING, "starting", max_running=2),
    )
    assert bench.states == []
    Slow.go.set()
    await starting
    assert pool.health() == EngineHealth(READY, "")
    assert await translate(pool, request()) == "[ja] hi"
    await pool.stop()
    assert bench.states == [READY, STOPPED]
    assert pool.health().state is STOPPED
    with pytest.raises(EngineUnavailable):
        await translate(pool, request())


async def test_lanes_of_one_device_start_one_after_another() -> None:
    began: list[str] = []
    bench = Bench()

    class Noted(SimulatedEngine):
        async def start(self) -> None:
            began.append("begins")
            await asyncio.sleep(0)
            await super().start()
            began.append("ready")

    together = ["begins", "begins", "ready", "ready"]
    one_by_one = ["begins", "ready", "begins", "ready"]
    for first, second, expected in (
        ({"0"}, {"0"}, one_by_one),
        ({"0"}, {"0", "1"}, one_by_one),
        ({"0"}, None, one_by_one),
        (None, None, one_by_one),
        ({"0"}, {"1"}, together),
        # That of another machine.
        (set[str](), None, together),
        (set[str](), set[str](), together),
    ):
        began.clear()
        async with bench.started(
            bench.lane("a", devices=first, kind=Noted), bench.lane("b", devices=second, kind=Noted)
        ):
            assert began == expected
    began.clear()
    # The third joins those that had nothing in common.
    three = [
        bench.lane(name, devices=where, kind=Noted) for name, where in (("a", {"0"}), ("b", {"1"}), ("c", None))
    ]
    async with bench.started(*three):
        assert began == ["begins", "ready"] * 3


async def test_a_lane_that_cannot_start_is_named(bench: Bench) -> None:

    class Unstartable(SimulatedEngine):
        async def start(self) -> None:
            raise StartupError("There is no model.")

    pool = bench.pool(bench.lane("a"), bench.lane("b", kind=Unstartable))
    with pytest.raises(StartupError, match=r"^Engine b: There is no model\.$"):
        await pool.start()
    assert pool.health().state is FAILED
    await pool.stop()


async def test_a_lane_of_no_use_is_refused(bench: Bench) -> None:
    pool = bench.pool(bench.lane("a", "ko-ja"))
    with pytest.raises(StartupError, match=r"^Engine a: its model translates none of its pairs\.$"):
        await pool.start()
    await pool.stop()


async def test_dead_lane_ends_only_its_own_texts(bench: Bench) -> None:
    async with bench.started(bench.lane("a", again_s=60.0), bench.lane("b")) as pool:
        dying = events_of(pool, request("LONG", lane="a"))
        staying = events_of(pool, request("LONG", lane="b"))
        await anext(dying)
        await anext(staying)
        before = bench.lane_changes
        bench.kill("a")
        with pytest.raises(EngineUnavailable):
            await anext(dying)
        await until(pool, RESTARTING, READY)
        assert pool.health().state is READY
        assert pool.health().reason == "Engine a: The engine died and is being started again."
        assert bench.lane_changes > before
        assert bench.states == [READY]
        assert await translate(pool, request()) == "[ja] hi"
        assert bench.engines["b"][-1].capacity().running == 1
        await staying.aclose()


async def test_pool_is_ready_with_its_first_lane(bench: Bench) -> None:
    async with bench.started(bench.lane("a"), bench.lane("b", "en-de", again_s=60.0)) as pool:
        bench.kill("b")
        await until(pool, READY, RESTARTING)
        bench.kill("a")
        await until(pool, READY, RESTARTING)
        with pytest.raises(EngineFailed):
            await translate(pool, request(source="xx"))
    assert bench.states == [READY, RESTARTING, READY, STOPPED]


async def test_it_has_failed_once_all_have(bench: Bench) -> None:
    async with bench.started(
        bench.lane("a", restarts=0, again_s=60.0), bench.lane("b", restarts=0, again_s=60.0)
    ) as pool:
        bench.kill("a")
        await until(pool, FAILED, READY)
        assert pool.health().state is READY
        bench.kill("b")
        await until(pool, FAILED, FAILED)
        assert pool.health().state is FAILED
        assert pool.profile().pairs
    assert bench.states == [READY, FAILED, STOPPED]


# ---------------------------------------------------------------- lanes that come and go


@pytest.fixture
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "_LOOK_S", 0.001)


async def test_added_lane_is_used_once_ready(bench: Bench) -> None:
    async with bench.started(bench.lane("a", "en-ja")) as pool:
        await pool.add([bench.lane("b", "en-de")])
        assert list(pool.lanes()) == ["a", "b"]
        assert pool.profile().pairs == frozenset({("en", "ja"), ("en", "de")})
        assert await translate(pool, request(target="de")) == "[de] hi"
        with pytest.raises(StartupError, match=r"^There is an engine b already\.$"):
            await pool.add([bench.lane("b")])
        assert len(pool.lane_health()) == 2
        bench.kill("b")
        await until(pool, READY, RESTARTING)


async def test_a_lane_that_comes_is_seen_while_it_loads(bench: Bench) -> None:
    async with bench.started(bench.lane("a")) as pool:
        adding = asyncio.create_task(pool.add([bench.lane("b", script=replace(FAST, load_s=3_600))]))
        await until(pool, READY, STARTING)
        assert (pool.health(), list(pool.lanes())) == (EngineHealth(READY), ["a"])
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding
        assert len(pool.lane_health()) == 1


@pytest.mark.usefixtures("_quickly")
async def test_a_lane_that_cannot_be_added_leaves_nothing_behind(bench: Bench) -> None:
    async with bench.started(bench.lane("a")) as pool:
        with pytest.raises(StartupError, match="Engine b: its model translates none of its pairs"):
            await pool.add([bench.lane("c"), bench.lane("b", "ko-ja")])
        assert list(pool.lanes()) == ["a"]
        for name in "bc":
            assert bench.engines[name][-1].health().state is STOPPED


async def test_lanes_do_not_change_during_start(bench: Bench) -> None:
    pool = Pool([bench.lane("a"), bench.lane("b")])
    for attempt in (pool.add([bench.lane("c")]), pool.drain("b")):
        with pytest.raises(StartupError, match="still being loaded"):
            await attempt
    assert list(pool.lanes()) == ["a", "b"]


@pytest.mark.usefixtures("_quickly")
async def test_drained_lane_finishes_and_gets_nothing_more(bench: Bench) -> None:
    # Far slower than the looks whether it has ended.
    slow = replace(FAST, token_s=0.02)
    async with bench.started(bench.lane("a", "en-ja"), bench.lane("b", script=slow)) as pool:
        generation = events_of(pool, request("one two three", lane="b"))
        await anext(generation)
        draining = asyncio.create_task(pool.drain("b"))
        await asyncio.sleep(0)
        assert list(pool.lanes()) == ["a"]
        assert pool.lane_health()[1] == LaneHealth("b", READY, leaves=True, max_running=2, running=1)
        assert pool.profile().pairs == frozenset({("en", "ja")})
        assert "".join([event.text async for event in generation]) == " one two three"
        await draining
        assert bench.engines["b"][-1].health().state is STOPPED
        assert [lane.name for lane in pool.lane_health()] == ["a"]
        with pytest.raises(EngineRestarting, match="The engine b is gone"):
            await translate(pool, request(lane="b"))


@pytest.mark.usefixtures("_quickly")
async def test_a_lane_that_is_dead_goes_at_once(bench: Bench) -> None:
    async with bench.started(bench.lane("a"), bench.lane("b", again_s=60.0)) as pool:
        bench.kill("b")
        await until(pool, READY, RESTARTING)
        await pool.drain("b")
        assert list(pool.lanes()) == ["a"]


# ---------------------------------------------------------------- metrics


async def test_the_metrics_of_a_lane_have_its_name() -> None:
    class Measured(SimulatedEngine):
        async def metrics(self, names: Sequence[str] = ()) -> bytes:
            return b'# TYPE vllm:steps counter\nvllm:steps{engine="0"} 7\n'

    bench = Bench()
    async with bench.started(bench.lane("a", kind=Measured), bench.lane("b", kind=Measured)) as pool:
        assert (await pool.metrics()).decode().splitlines() == [
            "# TYPE vllm:steps counter",
            'vllm:steps{engine="a"} 7',
            'vllm:steps{engine="b"} 7',
        ]


# ---------------------------------------------------------------- one lane


GLOSSARY = Script(first_token_s=0.0, token_s=0.0, languages=("en", "ja", "de"), options=frozenset({"glossary"}))


class Recorded(SimulatedEngine):
    """Remembers what it was asked."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.asked: list[TranslationRequest] = []

    async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
        self.asked.append(request)
        await super().generate(request, on_event)


def lane(*pairs: str, engine: SimulatedEngine | None = None) -> Lane:
    built = engine or SimulatedEngine(GLOSSARY)
    return Lane("a", usual(Supervisor, lambda: built), [PairPattern.parse(pair) for pair in pairs or ("*",)])


async def test_lane_translates_given_pairs_of_its_model() -> None:
    a = lane("en-ja", "*-de", "fr-en")
    with pytest.raises(EngineUnavailable):
        a.profile()
    await a.start()
    profile = a.profile()
    assert profile.pairs == frozenset({("en", "ja"), ("en", "de"), ("ja", "de")})
    assert profile.languages == ("en", "ja", "de")
    assert a.profile() is profile, "asked for each message, it is made once"
    await a.stop()


class OnlyIntoGerman(SimulatedEngine):
    def profile(self) -> EngineProfile:
        return replace(super().profile(), pairs=frozenset({("en", "de"), ("ja", "de")}))


async def test_it_translates_nothing_that_its_model_cannot() -> None:
    a = lane("en-*", engine=OnlyIntoGerman(GLOSSARY))
    await a.start()
    assert a.profile().pairs == frozenset({("en", "de")})
    await a.stop()


async def test_it_is_its_engine_otherwise() -> None:
    a = lane()
    assert not a.ready
    await a.start()
    assert (a.ready, a.health().state, a.capacity().max_running) == (True, EngineState.READY, 16)
    assert await a.metrics() == b""
    await a.stop()
    assert a.health().state is EngineState.STOPPED


async def test_options_for_other_models_are_left_out() -> None:
    engine = Recorded(GLOSSARY)
    a = lane(engine=engine)
    await a.start()
    options = TranslationOptions(glossary=(("a", "b"),), context=("before",), formality="formal")
    for asked in (options, TranslationOptions()):
        request = TranslationRequest(id="r", text="hi", source="en", target="ja", options=asked)
        assert [event.text async for event in events_of(a, request)] == ["[ja]", " hi"]
    assert [request.options for request in engine.asked] == [
        TranslationOptions(glossary=(("a", "b"),)),
        TranslationOptions(),
    ]
    await a.stop()
