"""`python -m loadtest soak`: faults for half an hour, and the proof that nothing accepted was lost.

Knows: its options, the order of things: start, load with faults, calm, leave, expire. Must not know: how a fault
is made below (`injection`), what is a loss (`ledger`), how the result looks (`report`).

Everything is on this machine and ends with the soak.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Literal

from loadtest.options import Command, Say, add_options, between, fields_of, from_, shown
from loadtest.results import LoadtestError, first_error
from loadtest.soak.crowd import Crowd, CrowdProcess
from loadtest.soak.faults import OF_ENGINE, OF_EVERYBODY, OF_WORKERS, FaultKind, population, schedule
from loadtest.soak.gateway import ServedGateway, Watch
from loadtest.soak.injection import Injection
from loadtest.soak.ledger import Ledger, Rules
from loadtest.soak.records import Record, encode
from loadtest.soak.report import SoakPlan, SoakResult, results
from loadtest.systems.server import free_port
from loadtest.systems.store import Store, enter_lossy_network
from loadtest.trial.values import Results

_START_S = 300.0
_LOOK_S = 0.25

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


async def run(plan: SoakPlan, say: Callable[[str], object], *, keep: Path | None = None) -> SoakResult:
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
    def __init__(self, plan: SoakPlan, folder: Path, say: Callable[[str], object], records: BinaryIO) -> None:
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
            injection = Injection(
                *(gateway, crowds, began_s, self._take, self._ledger.accepted_since, plan.workers or 0),
                lambda: self._ledger.received,
            )
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
                await watch.read_transcripts()
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
        return SoakResult(
            plan=plan,
            settings={name: json.dumps(value) for name, value in shown(self._settings).items()},
            load_s=round(load_s, 1),
            verdict=self._ledger.judge(),
            faults=injection.made,
            memory=watch.memory(),
            gauges=gauges,
            exit_status=exit_status,
            tracebacks=gateway.tracebacks(),
            unquiet=unquiet,
            samples=watch.samples,
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
    add_options(parser, "--out")
    add = parser.add_argument
    add("--engine", choices=("vllm", "simulated"), default=plan.engine, help="which engine")
    add(
        "--engines", type=between(1, 64), default=plan.engines, metavar="N", help="of these; one of them is broken"
    )
    add("--minutes", type=from_(0.5, 1_440), default=plan.minutes, metavar="M", help="of load; the rest is extra")
    add("--sessions", type=between(12, 5_000), default=plan.sessions, metavar="N", help="held at the same time")
    add("--seed", type=int, default=plan.seed, help="who is there, what is said, what breaks when")
    add("--workers", type=between(1, 64), metavar="N", help="of the gateway, with a store; without it one process")
    add("--only", type=_kind, metavar="KIND", help=f"break nothing else: {', '.join(_KINDS)}")
    add("--times", type=between(1, 1_000), default=plan.times, metavar="N", help="how often, with --only")
    add(
        "--loss",
        type=from_(0, 50),
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
