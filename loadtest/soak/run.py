"""`python -m loadtest soak`: faults for half an hour, and the proof that nothing accepted was lost. The planned
faults are made, one after the other or at the same time, with a note of how long each repair took.

Knows: its options, the order of things (start, load with faults, calm, leave, expire), processes to signal and
clients to break. Must not know: when what is planned (`faults`), what is a loss (`ledger`), how the result looks
(`report`).

Everything is on this machine and ends with the soak.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

from msgspec.structs import replace

from loadtest.options import Command, Say, add_options, between, fields_of, shown
from loadtest.results import LoadtestError, first_error
from loadtest.soak.crowd import Crowd, CrowdProcess
from loadtest.soak.faults import OF_ENGINE, OF_EVERYBODY, OF_WORKERS, Fault, FaultKind, population, schedule
from loadtest.soak.gateway import ServedGateway, Watch
from loadtest.soak.ledger import Ledger, Rules
from loadtest.soak.records import Record, Stopped, encode
from loadtest.soak.report import SoakPlan, SoakResult, results
from loadtest.systems.server import free_port
from loadtest.systems.store import Store, enter_lossy_network
from loadtest.trial.values import Results

# Between looks at clients and gateway.
_LOOK_S, _LISTEN_S = 0.25, 0.02

# An engine that dies is noticed at once; one that is stopped after `engine.stall_s`, once something is to be done.
_NOTICED_S = {FaultKind.ENGINE_KILL: 15.0, FaultKind.ENGINE_STOP: 60.0}
_REPAIRED_S = 600.0

_SIGNALS = {
    FaultKind.ENGINE_KILL: signal.SIGKILL,
    FaultKind.ENGINE_STOP: signal.SIGSTOP,
    FaultKind.WORKER_KILL: signal.SIGKILL,
    FaultKind.WORKER_STOP: signal.SIGSTOP,
}

# A client that reads nothing overflows its outbox. With the pause afterwards this is shorter than the log keeps
# entries: a final that is repeated later than that is accepted a second time, which is no fault.
_CLOSED_S = 30.0
_MORE_S = 20.0
_FIND_OUT_S = 5.0

# A worker is to be there before it is signalled. One that was killed is started again, and its clients come back.
_WORKER_S, _BACK_S = 30.0, 120.0

# An engine is killed while it has something to do, if that is to be had.
_BUSY, _BUSY_S = 3, 10.0


@dataclass(eq=False)
class Injection:
    """The faults of one soak, from the plan to the repair."""

    gateway: ServedGateway
    crowds: Sequence[CrowdProcess]
    ledger: Ledger
    began_s: float
    # Takes the records of clients that cannot tell of it themselves.
    say: Callable[[Record], None]
    workers: int
    # Every fault so far.
    made: list[Fault] = field(default_factory=list)
    # Faults of everybody happen one at a time,
    _everybody: asyncio.Lock = field(default_factory=asyncio.Lock)
    # and so do those of workers and their store, at the same time.
    _processes: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def carry_out(self, planned: Sequence[Fault]) -> None:
        """Until all are made and repaired. Raises `LoadtestError` when something cannot be repaired."""
        of_everybody = {
            FaultKind.ENGINE_KILL: self._break_engine,
            FaultKind.ENGINE_STOP: self._break_engine,
            FaultKind.RESTART: self._restart,
            FaultKind.CLIENT_STOP: self._stop_clients,
            FaultKind.WORKER_KILL: self._break_worker,
            FaultKind.WORKER_STOP: self._break_worker,
            FaultKind.RELOAD: self._reload,
            FaultKind.STORE_KILL: self._kill_store,
        }
        async with asyncio.TaskGroup() as tasks:
            for fault in planned:
                await asyncio.sleep(max(fault.began_s - self._now_s(), 0.0))
                if (make := of_everybody.get(fault.kind)) is not None:
                    tasks.create_task(make(fault))
                else:
                    # The client that suffers is in process 0, which is never stopped.
                    self.crowds[0].tell(fault)
                    self.made.append(replace(fault, began_s=self._now_s()))

    def _now_s(self) -> float:
        return round(time.monotonic() - self.began_s, 2)

    def _made(self, fault: Fault, began_s: float, back: bool, note: str) -> None:
        """back: whether all is well again, now."""
        recovered_s = round(self._now_s() - began_s - fault.pause_s, 2) if back else None
        self.made.append(replace(fault, began_s=began_s, recovered_s=recovered_s, note=note))

    @asynccontextmanager
    async def _silence(self) -> AsyncIterator[Callable[[], float]]:
        """Tells the longest time so far, seconds, in which no client received anything."""
        longest_s = 0.0

        async def listen() -> None:
            nonlocal longest_s
            heard, since_s = self.ledger.received, time.monotonic()
            while True:
                await asyncio.sleep(_LISTEN_S)
                now, now_s = self.ledger.received, time.monotonic()
                longest_s = max(longest_s, now_s - since_s)
                if now != heard:
                    heard, since_s = now, now_s

        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(listen())
            yield lambda: longest_s
            listening.cancel()

    async def _break_engine(self, fault: Fault) -> None:
        async with self._everybody:
            await self._until(self._busy, _BUSY_S)
            note = f"{await self.gateway.work() or 0:.0f} translations under way"
            began_s = self._now_s()
            if not self.gateway.signal_engine(_SIGNALS[fault.kind]):
                raise LoadtestError("There is no such process below the gateway.")
            noticed = await self._until(self._engine_gone, _NOTICED_S[fault.kind])
            if not noticed:
                note += "; the gateway did not notice"
            elif not await self._until(self._engine_ready, _REPAIRED_S):
                raise LoadtestError(f"The engine was not ready within {_REPAIRED_S:g} s after it was lost.")
            self._made(fault, began_s, noticed, note)

    async def _restart(self, fault: Fault) -> None:
        async with self._everybody, self._processes, self._silence() as silence:
            began_s = self._now_s()
            status = await self.gateway.stop()
            left_s = self._now_s()
            await self.gateway.start(_REPAIRED_S)
            ready_s = self._now_s()
            back = await self._until(self._connected_since(ready_s), _REPAIRED_S)
            note = (
                f"left after {left_s - began_s:.1f} s with status {status}, ready {ready_s - left_s:.1f} s later"
                f"{', with the same engine' * self.gateway.went_on}; no captions for {silence():.1f} s"
            )
            self._made(fault, began_s, back, note)

    async def _reload(self, fault: Fault) -> None:
        async with self._processes:
            await self._all_serve()
            async with self._silence() as silence:
                began_s, before = self._now_s(), self.gateway.reload()

                async def replaced() -> bool:
                    return not self.gateway.left_of(before)

                back = await self._until(replaced, _REPAIRED_S) and await self._until(self._serve, _BACK_S)
                back = back and await self._until(self._connected_since(self._now_s()), _BACK_S)
                self._made(fault, began_s, back, f"no captions for {silence():.1f} s")

    async def _break_worker(self, fault: Fault) -> None:
        async with self._processes:
            await self._all_serve()
            began_s = self._now_s()
            if not self.gateway.signal_worker(fault.target, _SIGNALS[fault.kind]):
                raise LoadtestError(f"There is no worker {fault.target} below the gateway.")
            await asyncio.sleep(fault.pause_s)
            if fault.pause_s:
                self.gateway.signal_worker(fault.target, signal.SIGCONT)
            connected = self._connected_since(self._now_s())
            back = await self._until(self._serve, _BACK_S) and await self._until(connected, _BACK_S)
            self._made(fault, began_s, back, f"worker {fault.target}")

    async def _kill_store(self, fault: Fault) -> None:
        async with self._processes:
            began_at, began_s = time.monotonic(), self._now_s()
            if not self.gateway.signal_store(signal.SIGKILL):
                raise LoadtestError("There is no store below the gateway.")

            async def accepted() -> bool:
                return self.ledger.accepted_since(began_at) is not None

            await self._until(accepted, _BACK_S)
            accepted_at = self.ledger.accepted_since(began_at)
            recovered_s = None if accepted_at is None else round(accepted_at - began_at, 2)
            self.made.append(replace(fault, began_s=began_s, recovered_s=recovered_s))

    async def _all_serve(self) -> None:
        if not await self._until(self._serve, _WORKER_S):
            raise LoadtestError(f"Not all {self.workers} workers serve after {_WORKER_S:g} s.")

    async def _serve(self) -> bool:
        return await self.gateway.serving() == self.workers

    async def _stop_clients(self, fault: Fault) -> None:
        async with self._everybody:
            [crowd] = [each for each in self.crowds if each.number == fault.target]
            clients = crowd.status.clients if crowd.status is not None else 0
            closed_before = await self._slow_readers()
            began_s = self._now_s()
            self.say(Stopped(time.monotonic(), f"process {crowd.number}", crowd.seats))
            crowd.stop()
            # Slow readers are closed one after the other as their outboxes overflow; whose pipe is wider is found
            # dead by a ping.
            closed, grew_s = 0.0, began_s
            while self._now_s() < began_s + _CLOSED_S and (not closed or self._now_s() < grew_s + _MORE_S):
                await asyncio.sleep(_LOOK_S)
                more = await self._slow_readers() - closed_before
                if more > closed:
                    closed, grew_s = more, self._now_s()
            await asyncio.sleep(fault.pause_s)
            stopped_s = round(self._now_s() - began_s, 2)
            crowd.go_on()
            # They find out one after the other that their connections are gone.
            await asyncio.sleep(_FIND_OUT_S)
            note = f"{closed:.0f} of {clients} closed as slow readers"
            self.made.append(replace(fault, began_s=began_s, pause_s=stopped_s, note=note))

    async def _slow_readers(self) -> float:
        return await self.gateway.metric("gateway_errors_total", code="slow_reader") or 0.0

    async def _until(self, so: Callable[[], Awaitable[bool]], patience_s: float) -> bool:
        """Wait until something is so; false when that is not seen."""
        until_s = self._now_s() + patience_s
        while self._now_s() < until_s:
            self.gateway.check()
            if await so():
                return True
            await asyncio.sleep(_LOOK_S)
        return False

    async def _busy(self) -> bool:
        return (await self.gateway.work() or 0) >= _BUSY

    async def _engine_gone(self) -> bool:
        return bool(await self.gateway.engines_lost())

    async def _engine_ready(self) -> bool:
        return await self.gateway.engines_lost() == 0

    def _connected_since(self, since_s: float) -> Callable[[], Awaitable[bool]]:
        """Whether nearly all clients are connected, of those that are never stopped and not away by themselves."""

        async def so() -> bool:
            status = self.crowds[0].status
            if status is None or status.at < self.began_s + since_s:
                return False
            return status.connected >= (status.clients - status.away) * 0.95

        return so


# ---------------------------------------------------------------- the order of things

_START_S = 300.0

# How long a client stays on average, of those that do not stay to the end; between faults of single clients.
_STAY_S = 360.0
_FAULT_EVERY_S = 4.0

# How long each stage after the load may last.
_QUIET_S = 300.0
_FLUSH_S = 120.0
_LEAVE_S = 180.0
_EXPIRE_S = 60.0

# Nothing may run, wait or be unanswered for so long before all counts as quiet: with a store, until others have
# taken over what a worker left (6 s), and looked for pushes that were lost (3 s).
_STILL_S, _STILL_SHARED_S = 3.0, 12.0

# With a store, `Rules.apart_s`: a worker that was stopped goes on, and looks for what it missed.
_APART_S = 45.0

_SNAPSHOT = 10

# For how long an engine waits for the next gateway.
_KEEP_ENGINE_S = 60


async def run(plan: SoakPlan, say: Say, *, keep: Path | None = None) -> SoakResult:
    """Run the plan. `say` is told what is going on, one short line at a time. Raises `LoadtestError`.

    keep: a folder for every record and the gateway's logs, to look at afterwards; they hold what was said.
    """
    try:
        # No stage takes longer than it is given; this is for what was not thought of.
        async with asyncio.timeout(plan.minutes * 60 + plan.log_keep_s + 1_500):
            with tempfile.TemporaryDirectory(prefix="soak-") as temporary:
                folder = (keep or Path(temporary)).absolute()
                folder.mkdir(parents=True, exist_ok=True)
                with (folder / "records.jsonl").open("wb") as records:
                    return await _Soak(plan, folder, say, records).run()
    except TimeoutError:
        raise LoadtestError("The soak took longer than all its stages may take together.") from None
    except ExceptionGroup as errors:
        raise first_error(errors) from None


def _settings_for(plan: SoakPlan, folder: Path) -> dict[str, Any]:
    """The gateway's settings: bounds so short and small that they are reached."""
    engine = {"kind": plan.engine, "stall_s": 20}
    several = [{"name": f"engine-{number}", **engine} for number in range(1, plan.engines + 1)]
    return {
        "max_waiting": 2000,
        "outbox_bytes": 73_728,
        "snapshot_utterances": _SNAPSHOT,
        # Restarts are upgrades: the next gateway goes on with the engine of the last.
        "keep_engine_s": _KEEP_ENGINE_S,
        "ping_timeout_s": 100,
        **({"engines": several} if plan.engines > 1 else {"engine": engine}),
        "limits": {"keep_s": plan.keep_s, "text_chars": 400, "languages": 4},
        "event_log": {
            "keep_s": plan.log_keep_s,
            # Workers have a store for it.
            "handover_file": str(folder / "handover") if plan.workers is None else None,
        },
    }


class _Soak:
    def __init__(self, plan: SoakPlan, folder: Path, say: Say, records: BinaryIO) -> None:
        self._plan = plan
        self._records = records
        self._say = say
        self._settings = _settings_for(plan, folder)
        self._store = Store(free_port(), folder / "store") if plan.loss else None
        if self._store is not None:
            enter_lossy_network(self._store.port, plan.loss)
        self._gateway = ServedGateway(self._settings, folder, plan.workers, self._store)
        self._seats = population(plan.sessions, plan.utterances_per_minute, plan.seed)
        self._ledger = Ledger(
            Rules(
                keep_s=plan.keep_s,
                snapshot=_SNAPSHOT,
                log_keep_s=plan.log_keep_s,
                apart_s=0.0 if plan.workers is None else _APART_S,
            )
        )
        self._crowds: list[CrowdProcess] = []

    def _take(self, record: Record) -> None:
        self._records.write(encode(record) + b"\n")
        self._ledger.add(record)

    async def run(self) -> SoakResult:
        plan, gateway, crowds = self._plan, self._gateway, self._crowds
        try:
            self._say("starting the gateway: loading its engine")
            if self._store is not None:
                await self._store.start()
            await gateway.start(_START_S)
            began_s = time.monotonic()
            watch = Watch(gateway, self._ledger, sorted({seat.meeting for seat in self._seats}), began_s)
            injection = Injection(gateway, crowds, self._ledger, began_s, self._take, plan.workers or 0)
            async with asyncio.TaskGroup() as tasks:
                watching = tasks.create_task(watch.run())
                for process in sorted({seat.process for seat in self._seats}):
                    seats = [seat for seat in self._seats if seat.process == process]
                    crowd = Crowd(process, gateway.port, plan.seed, max(plan.sessions / 20, 1), _STAY_S, seats)
                    crowds.append(await CrowdProcess.start(crowd, self._take))
                reading = [tasks.create_task(each.read()) for each in crowds]
                showing = tasks.create_task(self._show(injection, began_s))
                faults = schedule(
                    self._seats,
                    plan.minutes * 60,
                    plan.seed,
                    keep_s=plan.keep_s,
                    light_every_s=_FAULT_EVERY_S,
                    # Workers have one process for any engine.
                    engine=plan.engine != "simulated" or plan.workers is not None,
                    workers=plan.workers or 0,
                    only=None if plan.only is None else (plan.only, plan.times),
                )
                breaking = tasks.create_task(injection.carry_out(faults))
                await asyncio.sleep(plan.minutes * 60)
                # That all is well again is seen under load.
                await breaking
                for each in crowds:
                    each.tell("hush")
                load_s = time.monotonic() - began_s
                unquiet = await self._quiet()
                showing.cancel()
                self._say("everybody confirms what they received: waiting")
                await self._everybody("flush", _FLUSH_S)
                await watch.read_transcripts(watch.meetings)
                self._say("everybody leaves: waiting")
                await self._everybody("leave", _LEAVE_S)
                for each in crowds:
                    await each.end()
                await asyncio.wait(reading)
                self._say("what was kept expires: waiting")
                gauges = await watch.expired(plan.keep_s + plan.log_keep_s + _EXPIRE_S)
                watching.cancel()
            await watch.look()
            exit_status = await gateway.stop()
        finally:
            # Whatever happens, every process that was started is gone afterwards. Shielded: a second Ctrl-C must
            # not leave one behind.
            await asyncio.shield(self._end_all())
        tracebacks = gateway.tracebacks()
        return SoakResult(
            plan=plan,
            settings={name: json.dumps(value) for name, value in shown(self._settings).items()},
            load_s=round(load_s, 1),
            verdict=self._ledger.judge(),
            faults=injection.made,
            memory=watch.memory(),
            gauges=gauges,
            exit_status=exit_status,
            tracebacks=len(tracebacks),
            unquiet=unquiet,
            samples=watch.samples,
            first_traceback=next(iter(tracebacks), ""),
        )

    async def _end_all(self) -> None:
        for crowd in self._crowds:
            await crowd.end()
        await self._gateway.end()
        if self._store is not None:
            await self._store.end()

    # ------------------------------------------------------------ stages

    async def _quiet(self) -> str | None:
        """Wait until everybody is connected, answered and has nothing to come; what is wrong if that fails."""
        until_s, still_since_s = time.monotonic() + _QUIET_S, time.monotonic()
        still_s = _STILL_S if self._plan.workers is None else _STILL_SHARED_S
        wrong = ""
        while time.monotonic() < until_s:
            self._gateway.check()
            statuses = [crowd.status for crowd in self._crowds]
            unsettled = sum(1 if status is None else status.unsettled for status in statuses)
            work = await self._gateway.work()
            if unsettled or work != 0:
                still_since_s = time.monotonic()
                wrong = f"translations not done: {work}; clients not settled: {unsettled}"
            elif time.monotonic() - still_since_s > still_s:
                return None
            await asyncio.sleep(_LOOK_S)
        return f"{wrong}, {_QUIET_S:.0f} s after the last word"

    async def _everybody(self, order: Literal["flush", "leave"], patience_s: float) -> None:
        until_s = time.monotonic() + patience_s
        for crowd in self._crowds:
            crowd.tell(order)
        while any(order not in crowd.done for crowd in self._crowds):
            if time.monotonic() > until_s:
                raise LoadtestError(f"The clients did not {order} within {patience_s:g} s.")
            await asyncio.sleep(_LOOK_S)

    async def _show(self, injection: Injection, began_s: float) -> None:
        while True:
            minutes = (time.monotonic() - began_s) / 60
            connected = sum(crowd.status.connected for crowd in self._crowds if crowd.status is not None)
            self._say(
                f"minute {minutes:.0f} of {self._plan.minutes:g}: {connected} connected, {self._ledger.accepted} "
                f"accepted, {self._ledger.received} delivered, {len(injection.made)} faults"
            )
            await asyncio.sleep(1)


# ---------------------------------------------------------------- the command


# By the name of the option's value.
_KINDS = {kind.value.replace(" ", "-"): kind for kind in OF_EVERYBODY}


def _add(parser: argparse.ArgumentParser) -> None:
    plan = SoakPlan()
    add_options(parser, "--out", "--engine", "--seed", "--workers", engine=plan.engine, seed=plan.seed)
    add = parser.add_argument
    add(
        "--engines", type=between(1, 64), default=plan.engines, metavar="N", help="of these; one of them is broken"
    )
    add("--minutes", type=between(0.5, 1_440.0), default=plan.minutes, metavar="M", help="of load, with faults")
    add("--sessions", type=between(12, 5_000), default=plan.sessions, metavar="N", help="held at the same time")
    add("--only", type=_kind, metavar="KIND", help=f"break nothing else: {', '.join(_KINDS)}")
    add("--times", type=between(1, 1_000), default=plan.times, metavar="N", help="how often, with --only")
    add(
        "--loss",
        type=between(0.0, 50.0),
        default=plan.loss,
        metavar="%%",
        help="of packets to and from the store are lost",
    )
    add("--keep", type=Path, metavar="FOLDER", help="where every record and the gateway's logs stay")


def _kind(text: str) -> FaultKind:
    if text not in _KINDS:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(_KINDS)}")
    return _KINDS[text]


def soak_plan(options: argparse.Namespace) -> SoakPlan:
    """What the options say. Raises `LoadtestError` for what cannot be broken."""
    plan = SoakPlan(**fields_of(options, SoakPlan))
    if plan.only in OF_WORKERS and plan.workers is None:
        raise LoadtestError("Without --workers there are neither workers nor a store to break.")
    if plan.loss and plan.workers is None:
        raise LoadtestError("Without --workers there is no store to which packets could be lost (--loss).")
    if plan.only in OF_ENGINE and plan.engine == "simulated" and plan.workers is None:
        raise LoadtestError("A simulated engine is not a process of its own unless there are --workers.")
    return plan


async def _run(options: argparse.Namespace, say: Say) -> Results:
    return results(await run(soak_plan(options), say, keep=options.keep))


SOAK = Command(
    name="soak",
    help="faults under load, and the proof that nothing accepted was lost",
    description="A gateway with its engine in processes of their own, meetings full of clients, and faults: "
    "lost and silent connections, clients that are stopped, an engine that is killed or hangs, restarts; with "
    "--workers also workers that are killed or hang, and their store that is killed. A "
    "checker that knows every accepted utterance counts what each reader ended up with. Exit status 1 unless "
    "nothing was lost or came twice and everything was given back.",
    add=_add,
    run=_run,
)
