"""One engine with several front ends, each in a process of its own; workers are in the test's."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.domain.engine import EngineCapacity, EngineState, OnEvent, TokenEvent, TranslationRequest
from gateway.domain.errors import EngineRestarting, EngineUnavailable, StartupError
from gateway.domain.ports import Engine
from gateway.engines.host import processes
from gateway.engines.host.front_ends import DividedEngine, Divisible
from gateway.engines.host.kept import KeptHosts
from gateway.engines.host.proxy import HostedEngine, start_host
from gateway.engines.host.seats import Wanted
from gateway.engines.host.shared import SharedEngine
from gateway.engines.simulated import Rule, Script, SimulatedEngine
from tests.engines.host.pairs import request
from tests.engines.host.workers import READY, begin, close, seats
from tests.generations import events_of
from tests.patience import until
from tests.processes import alive

pytestmark = pytest.mark.slow

RULES = (Rule(match="endless", repeat=100_000), Rule(match="kills", crash_after=2))
SIXTEEN = Script(first_token_s=0.001, token_s=0.001, max_running=16, rules=RULES)


SIMULATED = partial(SimulatedEngine, SIXTEEN)


class Refusing(SimulatedEngine):
    """Its front ends cannot be started."""

    def divide(self, count: int, at: Path, begin: Callable[[list[Callable[[], Engine]]], Any]) -> None:
        super().divide(count, at, lambda _: begin([Faulty] * count))


class Faulty(SimulatedEngine):
    async def start(self) -> None:
        raise StartupError("There is no core.")


class Reporting(SimulatedEngine):
    """Its process says what it would say of vLLM."""

    async def metrics(self, _names: object = ()) -> bytes:
        running = self.capacity().running
        return (
            f"# HELP asked_total Asked.\n# TYPE asked_total counter\nasked_total {running}.0\n"
            f"# HELP running Runs.\n# TYPE running gauge\nrunning {7 if running else 9}.0\n"
        ).encode()

    def divide(self, count: int, at: Path, begin: Callable[[list[Callable[[], Engine]]], Any]) -> None:
        super().divide(count, at, lambda _: begin([partial(Reporting, SIXTEEN)] * count))


class Noting(SimulatedEngine):
    """Its processes note in one file what begins and ends; channels of two of them may be read in any order."""

    def __init__(self, at: Path) -> None:
        super().__init__(SIXTEEN)
        self._at = at

    async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
        self._note("begin", request)
        try:
            await super().generate(request, on_event)
        finally:
            self._note("end", request)

    def _note(self, what: str, request: TranslationRequest) -> None:
        with self._at.open("a", encoding="utf-8") as notes:
            notes.write(f"{what} {request.id}\n")

    def divide(self, count: int, at: Path, begin: Callable[[list[Callable[[], Engine]]], Any]) -> None:
        super().divide(count, at, lambda _: begin([partial(Noting, self._at)] * count))


class Logging(SimulatedEngine):
    """It has a log, which it keeps if it fails, and of which its front ends do not know."""

    def __init__(self, at: Path, script: Script = SIXTEEN) -> None:
        super().__init__(script)
        self._at = at
        self.log_path: Path | None = None

    async def start(self) -> None:
        self._at.write_text("what it said")
        self.log_path = self._at
        await super().start()

    async def stop(self) -> None:
        keeps = self.health().state is EngineState.FAILED
        await super().stop()
        if not keeps:
            self._at.unlink()


class Unloadable(Logging):
    """Its front ends wait for it in vain."""

    async def start(self) -> None:
        await super().start()
        self.fail("there is no memory")
        raise StartupError("There is no memory.")

    def divide(self, count: int, at: Path, begin: Callable[[list[Callable[[], Engine]]], Any]) -> None:
        waiting = partial(SimulatedEngine, replace(SIXTEEN, load_s=3_600))
        super().divide(count, at, lambda _: begin([waiting] * count))


class Undivided:
    """An engine that can have no front ends."""

    def __init__(self) -> None:
        engine = SimulatedEngine(SIXTEEN)
        for name in ("start", "stop", "generate", "health", "capacity", "profile", "metrics"):
            setattr(self, name, getattr(engine, name))


class Engines:
    """How the parent of workers sees the engine, and those that it was asked for."""

    def __init__(self, parent: HostedEngine) -> None:
        self.parent = parent
        self.workers: list[SharedEngine] = []

    async def worker(self, front_end: int) -> SharedEngine:
        """One at the front end with this number."""
        engine = SharedEngine()
        engine.told(READY, self.parent.shared_at[front_end - 1])
        await engine.start()
        self.workers.append(engine)
        return engine

    def pid(self, front_end: int) -> int:
        return next(pid for pid, name in self.names().items() if name == f"gateway engine front end {front_end}")

    async def pid_while_it_starts(self, front_end: int) -> int:
        while True:
            with contextlib.suppress(StopIteration, FileNotFoundError, ProcessLookupError):
                return self.pid(front_end)
            await asyncio.sleep(0.005)

    def names(self) -> dict[int, str]:
        """All processes of the engine."""
        host = processes.of(self.parent.pid)
        return {each.pid: title(each.pid) for each in processes.descendants(host)}


def title(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().strip(b"\0").decode()


@asynccontextmanager
async def divided(folder: Path, build: Callable[[], Engine] = SIMULATED, count: int = 2) -> AsyncIterator[Engines]:
    parent = HostedEngine(partial(start_host, partial(DividedEngine, build, count), folder / "engine.sock"))
    engines = Engines(parent)
    try:
        await parent.start()
        yield engines
    finally:
        for each in engines.workers:
            await each.stop()
        await parent.stop()


async def text_of(engine: SharedEngine, text: str) -> str:
    return "".join([event.text async for event in events_of(engine, request(text))])


async def test_each_is_a_process_that_translates_and_ends_with_the_engine(tmp_path: Path) -> None:
    async with divided(tmp_path) as engines:
        assert len(set(engines.parent.shared_at)) == 2
        names = sorted(name for name in engines.names().values() if name.startswith("gateway"))
        assert names == ["gateway engine front end 1", "gateway engine front end 2", "gateway engine host"]
        pids = [*engines.names()]
        for number in (1, 2):
            assert await text_of(await engines.worker(number), "good morning") == "[de] good morning"
        # Whoever has the host itself asks there.
        text = [event.text async for event in events_of(engines.parent, request("to the host"))]
        assert "".join(text) == "[de] to the host"
    assert not [pid for pid in pids if alive(pid)]


async def test_seats_are_divided_among_all_workers_whichever_front_end_they_ask(tmp_path: Path) -> None:
    async with divided(tmp_path) as engines:
        a, b, c = await engines.worker(1), await engines.worker(1), await engines.worker(2)
        await until(lambda: seats(a, b, c) == [16, 16, 16])
        a.waiting = lambda: Wanted(50)
        running = await begin(a, 2)
        await until(lambda: seats(a, b, c) == [16, 1, 1])
        c.waiting = lambda: Wanted(50)
        running += await begin(c, 1)
        await until(lambda: seats(a, b, c) == [8, 1, 8])
        b.waiting = lambda: Wanted(50)
        running += await begin(b, 1)
        await until(lambda: seats(a, b, c) == [6, 5, 5])
        # What one leaves is for the others, also at the other front end.
        c.waiting = lambda: Wanted(3)
        await until(lambda: seats(a, b, c) == [6, 6, 4])
        await close(running)


async def test_the_load_is_that_of_all(tmp_path: Path) -> None:
    async with divided(tmp_path, partial(SimulatedEngine, replace(SIXTEEN, max_running=3))) as engines:
        a, b = await engines.worker(1), await engines.worker(2)
        running = await begin(a, 2) + await begin(b, 2)
        # Each front end runs two, and the engine three.
        for each in (engines.parent, a, b):
            await until(lambda each=each: (each.capacity().running, each.capacity().waiting) == (3, 1))  # type: ignore[misc]
        await close(running)


async def test_tokens_of_all_front_ends_are_progress_and_one_that_hangs_is_none(tmp_path: Path) -> None:
    async with divided(tmp_path) as engines:
        a, b = await engines.worker(1), await engines.worker(2)
        running = await begin(a, 1) + await begin(b, 1)
        await until(lambda: engines.parent.activity()[0])

        async def progresses() -> None:
            before = engines.parent.activity()[1]
            await until(lambda: engines.parent.activity()[1] > before)

        await progresses()
        # That of one alone, too.
        await running.pop().aclose()
        await progresses()
        os.kill(engines.pid(2), signal.SIGSTOP)
        # It was asked, and has not answered: this is no progress, although the other goes on.
        assert await stands_still(engines.parent, running[0])
        os.kill(engines.pid(2), signal.SIGCONT)
        await progresses()
        await close(running)


async def test_one_page_counts_for_all_and_shows_the_state_that_those_see_who_ask(tmp_path: Path) -> None:
    async with divided(tmp_path, partial(Reporting, SIXTEEN)) as engines:
        a, b = await engines.worker(1), await engines.worker(2)
        assert (await engines.parent.metrics()).decode().splitlines() == [
            "# HELP asked_total Asked.",
            "# TYPE asked_total counter",
            "asked_total 0.0",
            "# HELP running Runs.",
            "# TYPE running gauge",
            "running 9.0",
        ]
        running = await begin(a, 2) + await begin(b, 1)
        await until(lambda: engines.parent.capacity().running == 3)
        page = (await engines.parent.metrics()).decode()
        assert "asked_total 3.0" in page
        assert "running 7.0" in page
        await close(running)


async def stands_still(parent: HostedEngine, beside: AsyncGenerator[TokenEvent, None]) -> bool:
    """Whether nobody knows of progress any more, as long as there is much."""
    stood = 0
    while stood < 3:
        before = parent.activity()
        for _ in range(200):
            await anext(beside)
        stood = stood + 1 if parent.activity() == before else 0
    return parent.activity()[0]


# ---------------------------------------------------------------- alone


async def is_held(engine: SharedEngine, newest: asyncio.Task[Any]) -> bool:
    """Whether the engine's newest generation waits for one that runs alone; it does not if it comes further."""
    await until(lambda: newest.done() or not [*engine._answers._answers.values()][-1].begun)
    return not newest.done()


async def test_one_that_runs_alone_waits_for_the_other_front_end_and_is_waited_for(tmp_path: Path) -> None:
    async with divided(tmp_path) as engines:
        a, b = await engines.worker(1), await engines.worker(2)
        running = await begin(a, 1)
        texts: list[str] = []
        suspect = replace(request("endless", "suspect"), alone=True)
        alone = asyncio.create_task(b.generate(suspect, lambda event: texts.append(event.text)))
        # What comes after it waits at the other front end.
        while True:
            late = events_of(a, request("late"))
            first = asyncio.create_task(anext(late))
            if await is_held(a, first):
                break
            await late.aclose()
        assert not texts
        await close(running)
        await until(lambda: bool(texts))
        assert not first.done()
        alone.cancel()
        assert (await first).text == "[de]"
        await late.aclose()


async def test_two_front_ends_want_to_run_alone_at_once(tmp_path: Path) -> None:
    async with divided(tmp_path, partial(Noting, tmp_path / "notes")) as engines:
        workers = [await engines.worker(1), await engines.worker(2)]
        texts = [replace(request("a text to itself", f"alone {n}"), alone=True) for n in range(12)]
        await asyncio.gather(*(workers[n % 2].generate(text, lambda _: None) for n, text in enumerate(texts)))
        # The last end may be noted after its text was told of.
        await until(lambda: (tmp_path / "notes").read_text().count("\n") == 24)
        notes = [line.split(" ", 1) for line in (tmp_path / "notes").read_text().splitlines()]
        assert [what for what, _ in notes] == ["begin", "end"] * 12
        assert [id for _, id in notes[::2]] == [id for _, id in notes[1::2]]


async def test_a_worker_that_goes_while_it_waits_to_run_alone_holds_nobody_up(tmp_path: Path) -> None:
    async with divided(tmp_path) as engines:
        a, b = await engines.worker(1), await engines.worker(2)
        running = await begin(a, 1)
        suspect = replace(request("endless", "suspect"), alone=True)
        alone = asyncio.create_task(b.generate(suspect, lambda _: None))
        # Until the other front end is held.
        while True:
            late = asyncio.create_task(text_of(a, "late"))
            if await is_held(a, late):
                break
        assert b._channel is not None
        b._channel._transport.abort()  # type: ignore[union-attr]
        assert await late == "[de] late"
        with pytest.raises(EngineRestarting):  # it had not begun
            await alone
        await close(running)


# ---------------------------------------------------------------- death


async def test_the_death_of_one_is_that_of_the_engine(tmp_path: Path) -> None:
    async with divided(tmp_path) as engines:
        a, b = await engines.worker(1), await engines.worker(2)
        running = await begin(a, 1) + await begin(b, 1)
        pids = [*engines.names()]
        os.kill(engines.pid(2), signal.SIGKILL)
        await until(lambda: engines.parent.health().state is EngineState.FAILED)
        assert engines.parent.health().reason == "front end 2 ended by signal 9"
        with pytest.raises(EngineUnavailable):
            async for _ in running[1]:
                pass
        await engines.parent.stop()
        assert not [pid for pid in pids if alive(pid)]
        await close(running)


async def test_the_death_of_one_is_that_of_the_engine_whose_log_is_named_and_kept(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    async with divided(tmp_path, partial(Logging, log)) as engines:
        os.kill(engines.pid(2), signal.SIGKILL)
        await until(lambda: engines.parent.health().state is EngineState.FAILED)
        reason = f"front end 2 ended by signal 9 (log: {log})"
        assert engines.parent.health().reason == reason
    assert log.read_text() == "what it said"


async def test_the_log_is_also_named_and_kept_when_one_dies_while_they_start(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    build = partial(Logging, log, replace(SIXTEEN, load_s=3_600))
    parent = HostedEngine(partial(start_host, partial(DividedEngine, build, 2), tmp_path / "engine.sock"))
    starting = asyncio.create_task(parent.start())
    os.kill(await Engines(parent).pid_while_it_starts(1), signal.SIGKILL)
    with pytest.raises(StartupError) as refused:
        await starting
    assert refused.value.message == f"Front end 1 ended by signal 9 while it started (log: {log})."
    await parent.stop()
    assert log.read_text() == "what it said"


async def test_the_log_of_an_engine_that_cannot_be_loaded_stays_when_its_front_ends_end(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    with pytest.raises(StartupError, match=r"^There is no memory\."):
        async with divided(tmp_path, partial(Unloadable, log)):
            raise AssertionError
    assert log.read_text() == "what it said"


async def test_one_that_stops_in_order_leaves_no_log(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    async with divided(tmp_path, partial(Logging, log)) as engines:
        assert engines.parent.log_path == log
    assert not log.exists()


async def test_an_engine_that_dies_in_one_of_them_dies(tmp_path: Path) -> None:
    async with divided(tmp_path) as engines:
        a = await engines.worker(1)
        with pytest.raises(EngineUnavailable):
            await text_of(a, "this kills it")
        await until(lambda: engines.parent.health().state is EngineState.FAILED)
        assert engines.parent.health().reason == "front end 1: the script says that this text kills it"


async def test_they_end_with_the_host_however_it_ends(tmp_path: Path) -> None:
    async with divided(tmp_path) as engines:
        pids = [*engines.names()]
        assert engines.parent.pid is not None
        os.kill(engines.parent.pid, signal.SIGKILL)
        await until(lambda: not [pid for pid in pids if alive(pid)])


async def test_why_one_could_not_be_started_is_why_the_engine_could_not(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"^There is no core\."):
        async with divided(tmp_path, Refusing):
            raise AssertionError


async def test_an_engine_that_can_have_none_is_asked_by_its_host(tmp_path: Path) -> None:
    assert not isinstance(Undivided(), Divisible)
    async with divided(tmp_path, Undivided) as engines:  # type: ignore[arg-type]
        assert engines.parent.shared_at == [tmp_path / "engine.sock"]
        assert await text_of(await engines.worker(1), "all the same") == "[de] all the same"


async def test_an_engine_that_can_have_none_is_as_busy_as_it_says() -> None:
    class Full(SimulatedEngine):
        def capacity(self) -> EngineCapacity:
            # As vLLM while its cache is full.
            return EngineCapacity(16, 3, 4)

        async def metrics(self, _names: object = ()) -> bytes:
            return b"as it is"

    full = DividedEngine(Full, 2)
    assert full.capacity() == EngineCapacity(16, 3, 4)
    assert await full.metrics() == b"as it is"


# ---------------------------------------------------------------- kept


async def test_the_next_gateway_has_the_same_front_ends(tmp_path: Path) -> None:
    build = partial(DividedEngine, partial(SimulatedEngine, SIXTEEN), 2)
    places = []
    for _ in range(2):
        kept = KeptHosts(tmp_path, 60)
        await asyncio.to_thread(kept.find, ["a"])
        parent = HostedEngine(partial(kept.open, build, "a"), leaves=lambda kept=kept: kept.leaving)  # type: ignore[misc]
        await parent.start()
        engines = Engines(parent)
        places.append((parent.pid, parent.shared_at))
        for number in (1, 2):
            assert await text_of(await engines.worker(number), "still there") == "[de] still there"
        # As soon as one has gone, the seats are another's.
        worker = engines.workers[-1]
        await until(lambda worker=worker: seats(worker) == [16])  # type: ignore[misc]
        for each in engines.workers:
            await each.stop()
        pids = [*engines.names()]
        kept.leaving = len(places) == 1
        await parent.stop()
    assert places[0] == places[1]
    assert not [pid for pid in pids if alive(pid)]
    KeptHosts(tmp_path, 60).find([])
    assert os.listdir(tmp_path) == []
