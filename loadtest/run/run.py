"""One run: sessions are opened, meetings are held, and what they cost is read off.

Knows: systems, the driver, trials. Must not know: options, files, how a report looks.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
from msgspec.structs import replace

from loadtest.commands import Say
from loadtest.driving.driver import Driver, driver
from loadtest.driving.opening import allow_files
from loadtest.measuring.accounting import Accounts
from loadtest.measuring.measure import measure
from loadtest.options import model_name, shown
from loadtest.results import LoadtestError, until_it_ends
from loadtest.run.findings import Held, cut_short, findings
from loadtest.run.plan import RunPlan, Said, said, sessions
from loadtest.systems import processes
from loadtest.systems.gateway import existing, gateway
from loadtest.systems.running import Running
from loadtest.trial.values import Record, Results, Trial

# For what was freed or is still being taken to show in the resident memory.
_SETTLE_S = 1.0

# Connections of the worker with the most, in those of the mean.
_UNEVEN = 1.2

# For translations that are under way when the last line was due.
_AFTER_S = 60.0


async def run(plan: RunPlan, say: Say) -> Results:
    """All trials that can be finished: what ends the run early, an interruption too, leaves those before it.

    Raises `LoadtestError` when there is nothing to measure, or when nothing was.
    """
    what = await asyncio.to_thread(said, plan)
    if not sessions(what.load):
        raise LoadtestError("There is neither a meeting nor an idle session in this run.")
    settings = plan.gateway_settings(what.load)
    trials = _Trials(plan, what, say)
    why = await _until_it_ends(trials, settings, plan)
    found = findings(trials.finished, trials.held, plan.objective)
    asked = plan.repetitions if what.lines else 0
    if why and len(trials.finished) < asked:
        found = [cut_short(len(trials.finished), asked, why), *found]
    return Results(
        model=model_name(settings) if plan.url is None else f"that of {plan.url}",
        settings=shown(settings) if plan.url is None else {"url": plan.url},
        objective=plan.objective,
        findings=found,
        trials=trials.finished,
        details={"held": msgspec.to_builtins(trials.held)},
    )


async def _until_it_ends(trials: _Trials, settings: dict[str, Any], plan: RunPlan) -> str:
    """Measure; why it ended early, a sentence, or nothing. Raises what ended it where no trial was finished."""
    try:
        why = await until_it_ends(trials.measure(settings), plan.time_limit_s, lambda: trials.something)
    except LoadtestError as error:
        why = str(error)
    if not why:
        return ""
    if not trials.something:
        raise LoadtestError(why)
    return why


class _Trials:
    """finished: trials, as they end. held: sessions and memory, as far as they are known."""

    def __init__(self, plan: RunPlan, what: Said, say: Say) -> None:
        self.finished: list[Trial] = []
        self.held = Held(sessions=sessions(what.load), idle=plan.idle)
        self._plan = plan
        self._what = what
        self._say = say

    @property
    def something(self) -> bool:
        """Whether anything was measured."""
        return bool(self.finished) or self.held.idle_s is not None

    async def measure(self, settings: dict[str, Any]) -> None:
        """settings: of the gateway, where one is started. Raises `LoadtestError`."""
        url, load = self._plan.url, self._what.load
        if url is None:
            # The gateway inherits it. Its workers have nearly as many connections each.
            allow_files(math.ceil(_UNEVEN * sessions(load) / (self._plan.workers or 1)))
        system: AbstractAsyncContextManager[Running] = (
            gateway(settings, self._say, workers=self._plan.workers) if url is None else existing(url)
        )
        async with system as running:
            self.held = replace(self.held, before_mib=_memory_mib(running))
            if load.idle:
                self._say(f"opening {load.idle:,} idle sessions")
            async with driver(running.address, load, processes=self._plan.processes, say=self._say) as crowd:
                if load.idle:
                    await self._hold_idle(running, crowd)
                if self._what.lines:
                    await self._greet(running, crowd)
                    for repetition in range(1, self._plan.repetitions + 1):
                        await self._hold_meetings(running, crowd, repetition)

    async def _hold_idle(self, running: Running, crowd: Driver) -> None:
        """What the gateway does for sessions in which nothing is said, and its memory with them."""
        # Long enough for every connection to have been asked for a sign of life, where nothing else is measured.
        seconds = _SETTLE_S if self._what.lines else (self._plan.seconds or 30.0)
        await asyncio.sleep(_SETTLE_S)
        self._say(f"holding {self._plan.idle:,} idle sessions for {seconds:g} s")
        accounts = Accounts({"serving": [] if running.pid is None else [running.pid]})
        before = accounts.read()
        await asyncio.sleep(seconds)
        now = accounts.read()
        self.held = replace(
            self.held,
            idle_mib=_memory_mib(running),
            idle_s=round(now.at_s - before.at_s, 4),
            idle_cpu_s=None if running.pid is None else round(now.since(before)["serving"], 4),
        )
        # Nothing is said: those that are lost tell so.
        self._lose((await crowd.play([], limit_s=_AFTER_S, stage="holding")).records)

    async def _greet(self, running: Running, crowd: Driver) -> None:
        """Everybody comes in and says something."""
        load, greetings = self._what.load, self._what.greetings
        self._say(f"opening {sessions(load) - load.idle:,} sessions in {load.meetings:,} meetings")
        await crowd.play(greetings, limit_s=greetings[-1].due_s + _AFTER_S)
        await asyncio.sleep(_SETTLE_S)
        self.held = replace(self.held, greeted_mib=_memory_mib(running))

    async def _hold_meetings(self, running: Running, crowd: Driver, repetition: int) -> None:
        what = self._what
        self._finish(
            await measure(
                running,
                crowd,
                what.lines,
                what.load,
                name="meetings",
                repetition=repetition,
                workload=what.workload,
                say=self._say,
                limit_s=what.lines[-1].due_s + _AFTER_S,
                allow_bottleneck=self._plan.allow_bottleneck,
            )
        )
        self.held = replace(self.held, after_mib=_memory_mib(running))

    def _finish(self, trial: Trial) -> None:
        """It is over. A session that is lost is no translation, and is told of in every trial after that."""
        self._lose(trial.records)
        self.finished.append(replace(trial, records=[each for each in trial.records if not _is_a_session(each)]))

    def _lose(self, records: Sequence[Record]) -> None:
        lost = {each.line: each.failed for each in records if each.failed and _is_a_session(each)}
        self.held = replace(self.held, lost=lost | self.held.lost)


def _is_a_session(record: Record) -> bool:
    """As a client tells of one that is lost."""
    return record.line.startswith("session ")


def _memory_mib(running: Running) -> float | None:
    """Of the gateway's own process, and of its workers: what sessions take is in these alone."""
    if running.pid is None:
        return None
    own = (running.pid, *processes.named_below(running.pid, processes.WORKER))
    return round(sum(map(processes.resident_mib, own)), 1)
