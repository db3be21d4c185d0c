"""`python -m loadtest soak`: faults for half an hour, and the proof that nothing accepted was lost.

Knows: the order of things: start, load with faults, calm, leave, expire. Must not know: how a fault is made below
(`gateway`, `crowd`), what is a loss (`ledger`), how the result looks (`report`).

The gateway is the product's own command with its own engine; the clients are in processes of their own, of which
only the first is never stopped. Everything is on this machine and ends with the soak.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, BinaryIO

from loadtest.machine import describe
from loadtest.options import shown
from loadtest.results import LoadtestError, first_error
from loadtest.soak.clients import Crowd, Flush, Hush, Leave
from loadtest.soak.crowd import CrowdProcess
from loadtest.soak.faults import schedule
from loadtest.soak.gateway import ServedGateway
from loadtest.soak.injection import Injection
from loadtest.soak.ledger import Ledger
from loadtest.soak.population import population
from loadtest.soak.records import Record, encode
from loadtest.soak.result import SoakPlan, SoakResult
from loadtest.soak.timeline import latency_rows, readings, with_returns
from loadtest.soak.verdict import Rules
from loadtest.soak.watch import Watch

__all__ = ["run"]

_START_S = 300.0
_LOOK_S = 0.25

# How long each stage after the load may last.
_QUIET_S = 300.0
_FLUSH_S = 120.0
_LEAVE_S = 180.0
_EXPIRE_S = 60.0

# Nothing may run, wait or be unanswered for so long before all counts as quiet.
_STILL_S = 3.0

_SNAPSHOT = 10


async def run(
    plan: SoakPlan, command: str, say: Callable[[str], object], *, keep: Path | None = None
) -> SoakResult:
    """Run the plan. `say` is told what is going on, one short line at a time. Raises `LoadtestError`.

    keep: a folder for every record and the gateway's logs, to look at afterwards; they hold what was said.
    """
    try:
        # No stage takes longer than it is given; this is for what was not thought of.
        async with asyncio.timeout(plan.minutes * 60 + plan.log_keep_s + 1_500):
            with ExitStack() as stack:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
                records: BinaryIO | None = None
                if keep is not None:
                    folder, records = keep, stack.enter_context(_records_in(keep))
                return await _Soak(plan, command, folder.absolute(), say, records).run()
    except TimeoutError:
        raise LoadtestError("The soak took longer than all its stages may take together.") from None
    except ExceptionGroup as errors:
        raise first_error(errors) from None


def _records_in(folder: Path) -> BinaryIO:
    folder.mkdir(parents=True, exist_ok=True)
    return (folder / "records.jsonl").open("wb")


def _settings_for(plan: SoakPlan, folder: Path) -> dict[str, Any]:
    """The gateway's settings: bounds so short and small that they are reached."""
    return {
        "max_waiting": 2000,
        "outbox_bytes": 73_728,
        "snapshot_utterances": _SNAPSHOT,
        "ping_timeout_s": 100,
        "engine": {"kind": plan.engine, "stall_s": 20},
        "limits": {"keep_s": plan.keep_s, "text_chars": 400, "languages": 4},
        "event_log": {"keep_s": plan.log_keep_s, "handover_file": str(folder / "handover")},
    }


class _Soak:
    def __init__(
        self,
        plan: SoakPlan,
        command: str,
        folder: Path,
        say: Callable[[str], object],
        file: BinaryIO | None,
    ) -> None:
        self._plan = plan
        self._file = file
        self._command = command
        self._say = say
        self._settings = _settings_for(plan, folder)
        self._gateway = ServedGateway(self._settings, folder)
        self._seats = population(plan.sessions, plan.utterances_per_minute, plan.seed)
        self._ledger = Ledger(Rules(keep_s=plan.keep_s, snapshot=_SNAPSHOT, log_keep_s=plan.log_keep_s))
        self._records: list[Record] = []
        self._crowds = [self._crowd(number) for number in sorted({seat.process for seat in self._seats})]
        self._watch = Watch(self._gateway, self._ledger, sorted({seat.meeting for seat in self._seats}))
        self._began_s = 0.0

    def _crowd(self, process: int) -> CrowdProcess:
        plan = self._plan
        crowd = Crowd(
            process=process,
            port=self._gateway.port,
            seed=plan.seed,
            ramp_s=max(plan.sessions / 20, 1),
            stay_s=plan.stay_minutes * 60,
            seats=[seat for seat in self._seats if seat.process == process],
        )
        return CrowdProcess(crowd, self._take)

    def _take(self, record: Record) -> None:
        self._records.append(record)
        if self._file is not None:
            self._file.write(encode(record) + b"\n")
        self._ledger.add(record)

    async def run(self) -> SoakResult:
        began, machine = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), describe()
        unquiet: str | None = None
        async with self._processes():
            self._say("starting the gateway: loading its engine")
            await self._gateway.start()
            await self._gateway.ready(_START_S)
            self._began_s = time.monotonic()
            injection = Injection(self._gateway, self._crowds, self._watch, self._began_s, self._take)
            async with asyncio.TaskGroup() as tasks:
                watching = tasks.create_task(self._watch.run(self._began_s))
                for crowd in self._crowds:
                    await crowd.start()
                reading = [tasks.create_task(crowd.read()) for crowd in self._crowds]
                showing = tasks.create_task(self._show(injection))
                faults = schedule(
                    self._seats,
                    self._plan.minutes * 60,
                    self._plan.seed,
                    keep_s=self._plan.keep_s,
                    light_every_s=self._plan.fault_every_s,
                    engine=self._plan.engine != "simulated",
                )
                breaking = tasks.create_task(injection.carry_out(faults))
                await asyncio.sleep(self._plan.minutes * 60)
                for crowd in self._crowds:
                    crowd.tell(Hush())
                await breaking
                load_s = time.monotonic() - self._began_s
                unquiet = await self._quiet()
                showing.cancel()
                self._say("everybody confirms what they received: waiting")
                await self._everybody("flush", Flush(), _FLUSH_S)
                await self._watch.read_transcripts()
                self._say("everybody leaves: waiting")
                await self._everybody("leave", Leave(), _LEAVE_S)
                for crowd in self._crowds:
                    await crowd.end()
                await asyncio.wait(reading)
                self._say("what was kept expires: waiting")
                gauges = await self._watch.expired(self._plan.keep_s + self._plan.log_keep_s + _EXPIRE_S)
                watching.cancel()
            await self._watch.last_look(self._began_s)
            exit_status = await self._gateway.stop()
        process_of = {seat.number: seat.process for seat in self._seats}
        faults_made = with_returns(injection.made, self._records, self._began_s, process_of.__getitem__)
        straight = readings(self._records, self._began_s)
        return SoakResult(
            command=self._command,
            began=began,
            plan=self._plan,
            settings={name: json.dumps(value) for name, value in shown(self._settings).items()},
            machine=machine,
            load_s=round(load_s, 1),
            verdict=self._ledger.judge(),
            faults=faults_made,
            latency=latency_rows(straight, faults_made, process_of.__getitem__),
            memory=self._watch.memory(),
            gauges=gauges,
            counters=self._watch.counters(),
            exit_status=exit_status,
            tracebacks=self._gateway.tracebacks(),
            unquiet=unquiet,
            samples=self._watch.samples,
        )

    @asynccontextmanager
    async def _processes(self) -> AsyncIterator[None]:
        """Whatever happens, every process that was started is gone afterwards."""
        try:
            yield
        finally:
            # Shielded: a second Ctrl-C must not leave one behind.
            await asyncio.shield(self._end_all())

    async def _end_all(self) -> None:
        for crowd in self._crowds:
            await crowd.kill()
        await self._gateway.end()

    # ------------------------------------------------------------ stages

    async def _quiet(self) -> str | None:
        """Wait until everybody is connected, answered and has nothing to come; what is wrong if that fails."""
        until_s, still_since_s = time.monotonic() + _QUIET_S, time.monotonic()
        wrong = ""
        while time.monotonic() < until_s:
            self._gateway.check()
            unsettled = [crowd for crowd in self._crowds if not crowd.settled]
            work = await self._watch.work()
            if unsettled or work != 0:
                still_since_s = time.monotonic()
                names = [name for crowd in unsettled if crowd.status for name in crowd.status.unsettled]
                wrong = f"translations not done: {work}; clients not settled: {', '.join(names) or 'none'}"
            elif time.monotonic() - still_since_s > _STILL_S:
                return None
            await asyncio.sleep(_LOOK_S)
        return f"{wrong}, {_QUIET_S:.0f} s after the last word"

    async def _everybody(self, what: str, command: Flush | Leave, patience_s: float) -> None:
        until_s = time.monotonic() + patience_s
        for crowd in self._crowds:
            crowd.tell(command)
        while any(what not in crowd.done for crowd in self._crowds):
            if time.monotonic() > until_s:
                raise LoadtestError(f"The clients did not {what} within {patience_s:g} s.")
            await asyncio.sleep(_LOOK_S)

    async def _show(self, injection: Injection) -> None:
        while True:
            minutes = (time.monotonic() - self._began_s) / 60
            connected = sum(crowd.status.connected for crowd in self._crowds if crowd.status is not None)
            self._say(
                f"minute {minutes:.0f} of {self._plan.minutes:g}: {connected} connected, {self._ledger.accepted} "
                f"accepted, {self._ledger.delivered} delivered, {len(injection.made)} faults"
            )
            await asyncio.sleep(1)
