"""`python -m loadtest run`: sessions are opened, meetings are held, what they cost is read off; what trials in
meetings say about a gateway, in one statement each.

Knows: options, scenarios, files of talk, systems, the driver, trials, memory readings. Must not know: how a report
looks.
"""

from __future__ import annotations

import argparse
import asyncio
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from loadtest import options as common
from loadtest.driving.driver import Driver, driver
from loadtest.driving.wire import allow_files
from loadtest.measuring import Accounts, measure
from loadtest.options import Command, Say, between, merged, model_name, shown
from loadtest.results import LoadtestError, nearest_rank, until_it_ends
from loadtest.systems import processes
from loadtest.systems.gateway import existing, gateway
from loadtest.systems.server import Running
from loadtest.talk.scenario import Scenario, meetings_lines, read_talk, translations_per_s
from loadtest.trial.summary import failed_found
from loadtest.trial.values import Finding, InMeetings, Line, Objective, Record, Results, Trial


class Held(Struct, frozen=True):
    """Sessions that were asked for, and the gateway's resident memory.

    The memory is that of the gateway's own process, without its engine's host; None where the gateway runs
    elsewhere.
    """

    sessions: int
    idle: int
    # Session → why it is gone.
    lost: dict[str, str] = {}
    # Without any session.
    before_mib: float | None = None
    # Once the idle ones are open.
    idle_mib: float | None = None
    # How long they were held with nothing else, and the CPU that served them; None where that is not known.
    idle_s: float | None = None
    idle_cpu_s: float | None = None
    # Once all are open, and everybody has said something.
    greeted_mib: float | None = None
    # When everything has been said, in all repetitions.
    after_mib: float | None = None


def findings(trials: Sequence[Trial], held: Held) -> list[Finding]:
    """Everything that is said of the trials that were finished."""
    found = [_held(held, meetings=bool(trials))]
    if trials:
        found.append(failed_found(trials))
    if held.idle_s and held.idle_cpu_s is not None:
        cores = f"{held.idle_cpu_s / held.idle_s:.3f} cores"
        found.append(Finding("CPU of idle sessions", cores, note=f"over {held.idle_s:.0f} s"))
    return [*found, *_memory(held, trials), *(_delivered(trials) if trials else ())]


_SHOWN_REASONS = 3


def _held(held: Held, *, meetings: bool) -> Finding:
    """meetings: whether they were held to the end at least once."""
    active = held.sessions - held.idle
    kept = (held.idle if held.idle_s else 0) + (active if meetings else 0) - len(held.lost)
    note = f"{held.idle:,} idle, {active:,} in meetings"
    if held.lost:
        most = Counter(held.lost.values()).most_common(_SHOWN_REASONS)
        note += "; lost: " + ", ".join(f"{count:,} × {reason}" for reason, count in most)
    return Finding("sessions held", f"{kept:,}", f"{held.sessions:,}", kept == held.sessions, note)


# With fewer, what a process takes and gives back anyway is most of the difference.
_LEAST_WEIGHED = 100


def _memory(held: Held, trials: Sequence[Trial]) -> Iterator[Finding]:
    if held.before_mib is None:
        return
    active = held.sessions - held.idle
    if held.idle >= _LEAST_WEIGHED and held.idle_mib is not None:
        yield _each("memory of an idle session", held.before_mib, held.idle_mib, held.idle)
    if active >= _LEAST_WEIGHED and held.greeted_mib is not None:
        begin = held.before_mib if held.idle_mib is None else held.idle_mib
        yield _each("memory of a session in a meeting", begin, held.greeted_mib, active)
    translations = sum(len(trial.records) for trial in trials)
    if translations >= _LEAST_WEIGHED and held.after_mib is not None and held.greeted_mib is not None:
        yield _each("memory that stays of a translation", held.greeted_mib, held.after_mib, translations)


def _each(name: str, before_mib: float, after_mib: float, count: int) -> Finding:
    each = f"{(after_mib - before_mib) * 1024 / count:.1f} KiB"
    return Finding(name, each, note=f"{before_mib:.0f} to {after_mib:.0f} MiB for {count:,}")


def _delivered(trials: Sequence[Trial]) -> Iterator[Finding]:
    frames = sum(trial.delivered.frames for trial in trials)
    size = sum(trial.delivered.bytes for trial in trials)
    # The whole pass counts, as it does for the frames.
    elapsed_s = sum(trial.delivered.elapsed_s or trial.elapsed_s for trial in trials)
    serving_s = sum(trial.delivered.serving_s or trial.cpu_s.get("serving", 0.0) for trial in trials)
    note = f"{frames / elapsed_s:,.0f} frames/s of {size / max(frames, 1):.0f} bytes"
    if serving_s:
        note += f" with {serving_s / elapsed_s:.2f} cores"
        yield Finding("frames delivered per second of one core", f"{frames / serving_s:,.0f}", note=note)
    else:
        yield Finding("frames delivered per second", f"{frames / elapsed_s:,.0f}", note=note)
    finals = sum(trial.delivered.finals for trial in trials)
    loads = [trial.load for trial in trials if isinstance(trial.load, InMeetings) and trial.load.meetings]
    readers = sum(load.readers + load.speakers / load.meetings for load in loads) / len(trials)
    arrived = [trial.delivered for trial in trials]
    for name, latencies, note in (
        ("finals accepted", [each.accepted_ms for each in arrived], "from when they were sent"),
        ("first text at all readers", [each.text_ms for each in arrived], "from when the line was due"),
        (
            "whole translation at all readers",
            [each.final_ms for each in arrived],
            f"{finals:,} of them; {readers:,.0f} sessions in a meeting",
        ),
    ):
        if values_ms := [ms for each in latencies for ms in each]:
            p50, p99 = (nearest_rank(values_ms, share) for share in (0.5, 0.99))
            yield Finding(name, f"p50 {p50:.1f} ms, p99 {p99:.1f} ms", note=note)


# ---------------------------------------------------------------- one run, as values

# With a simulated engine the gateway is measured: nothing but the gateway may make anybody wait.
_NO_QUEUE = {"max_waiting": 100_000, "max_queue_s": 3_600.0, "engine": {"script": {"max_running": 100_000}}}

# Sessions besides those that are asked for.
_SPARE_SESSIONS = 100
_LEAST_SESSIONS = 10_000


class RunPlan(Struct, frozen=True, kw_only=True):
    """What is held, on which gateway."""

    # The settings of the gateway that is started.
    settings: dict[str, Any]
    objective: Objective
    # Processes of the gateway, which share a store; None: one process without a store.
    workers: int | None = None
    # Address of a gateway that runs already; then the settings are not read.
    url: str | None = None
    # What is said, or a recording of it.
    scenario: Scenario = Scenario()
    file: Path | None = None
    # How long; None: 30, or all of the file.
    seconds: float | None = None
    # Further sessions in each meeting that only read.
    readers: int = 0
    # Sessions in which nothing is said.
    idle: int = 0
    # How often all of it is said.
    repetitions: int = 1
    # Client processes.
    processes: int = 1
    time_limit_s: float = 3_600.0
    allow_bottleneck: bool = False

    @property
    def simulated(self) -> bool:
        """Whether an engine that plays a script is started."""
        return self.url is None and self.settings.get("engine", {}).get("kind") == "simulated"

    def gateway_settings(self, load: InMeetings) -> dict[str, Any]:
        """Room for all sessions; no queue before a script."""
        own = {"max_sessions": max(_LEAST_SESSIONS, sessions(load) + _SPARE_SESSIONS)}
        return merged(merged(own, _NO_QUEUE if self.simulated else {}), self.settings)


class Said(Struct, frozen=True):
    """What is said. workload: in words. greetings: one short line of everybody, before."""

    lines: list[Line]
    greetings: list[Line]
    load: InMeetings
    workload: str


def said(plan: RunPlan) -> Said:
    """The lines of a plan. Raises `LoadtestError` for a file or a scenario that cannot be, for meetings in which
    nothing is said, and for talk that would not be over in time."""
    scenario, seconds = plan.scenario, plan.seconds
    if plan.file is not None:
        lines = [line for line in read_talk(plan.file) if seconds is None or line.due_s < seconds]
        people = sorted({(line.meeting, line.speaker) for line in lines})
        workload = f"{plan.file.name}, {_plural(len(lines), 'line')} in {_last_s(lines):,.0f} s"
    else:
        seconds = 30.0 if seconds is None else seconds
        lines = meetings_lines(scenario, seconds) if scenario.meetings else []
        people = [
            (f"meeting-{meeting}", f"speaker-{person}")
            for meeting in range(1, scenario.meetings + 1)
            for person in range(1, scenario.people + 1)
        ]
        workload = (
            f"{scenario.shape}, {_plural(scenario.meetings, 'meeting')} of {scenario.people} for {seconds:g} s, "
            f"{scenario.source} to {', '.join(scenario.targets)}, seed {scenario.seed}"
        )
    if not lines and (plan.file is not None or scenario.meetings):
        raise LoadtestError(f"Nothing is said in the first {seconds:g} s: take longer (--seconds).")
    if _last_s(lines) > plan.time_limit_s:
        raise LoadtestError(
            f"What is said takes {_last_s(lines):,.0f} s, and everything may take {plan.time_limit_s:,.0f} s: "
            "allow more (--time-limit-s) or say less (--seconds)."
        )
    every = any(line.partials for line in lines)
    return Said(
        lines=lines,
        greetings=_greetings(lines, people),
        load=InMeetings(
            meetings=len({meeting for meeting, _ in people}),
            speakers=len(people),
            per_s=round(translations_per_s(lines), 2),
            readers=plan.readers,
            idle=plan.idle,
        ),
        workload=f"{workload}, {'partials and finals' if every else 'finals alone'}",
    )


def _plural(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("s" if number != 1 else "")


def _last_s(lines: list[Line]) -> float:
    """When the last one is due, of lines in order of time."""
    return lines[-1].due_s if lines else 0.0


def sessions(load: InMeetings) -> int:
    """All that are open at the same time."""
    return load.speakers + load.meetings * load.readers + load.idle


# One after another, but thousands take no longer than this.
_GREETING_EVERY_S = 0.01
_GREETINGS_S = 20.0


def _greetings(lines: list[Line], people: list[tuple[str, str]]) -> list[Line]:
    """Everybody has a session, and has used it once, before anything is measured; all languages are read."""
    first = {(line.meeting, line.speaker): line for line in reversed(lines)}
    targets: dict[str, tuple[str, ...]] = {}
    for line in lines:
        targets[line.meeting] = tuple(sorted({*targets.get(line.meeting, ()), *line.targets}))
    example = lines[0] if lines else None
    every_s = min(_GREETING_EVERY_S, _GREETINGS_S / max(len(people), 1))
    greetings: list[Line] = []
    for number, (meeting, speaker) in enumerate(people):
        like = first.get((meeting, speaker), example)
        if like is not None:
            greetings.append(
                Line(
                    id=f"greeting {number}",
                    text=like.text[:20],
                    source=like.source,
                    targets=tuple(t for t in targets.get(meeting, like.targets) if t != like.source),
                    due_s=round(number * every_s, 4),
                    meeting=meeting,
                    speaker=speaker,
                )
            )
    return greetings


# ---------------------------------------------------------------- one run

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
    try:
        why = await until_it_ends(trials.measure(settings), plan.time_limit_s, lambda: trials.something)
    except LoadtestError as error:
        why = str(error)
    if why and not trials.something:
        raise LoadtestError(why)
    found = findings(trials.finished, trials.held)
    asked = plan.repetitions if what.lines else 0
    if why and len(trials.finished) < asked:
        found.insert(0, Finding("trials finished", f"{len(trials.finished):,}", f"{asked:,}", False, why))
    return Results(
        model=model_name(settings) if plan.url is None else f"that of {plan.url}",
        settings=shown(settings) if plan.url is None else {"url": plan.url},
        objective=plan.objective,
        findings=found,
        trials=trials.finished,
        details={"held": msgspec.to_builtins(trials.held)},
    )


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
        trial = await measure(
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
        # A session that is lost is not a translation, and is told of in every trial after that.
        self._lose(trial.records)
        self.finished.append(replace(trial, records=[each for each in trial.records if not _is_a_session(each)]))
        self.held = replace(self.held, after_mib=_memory_mib(running))

    def _lose(self, records: Sequence[Record]) -> None:
        lost = {each.line: each.failed for each in records if each.failed and _is_a_session(each)}
        self.held = replace(self.held, lost=lost | self.held.lost)


def _is_a_session(record: Record) -> bool:
    """As a client tells of one that is lost."""
    return record.line.startswith("session ")


def _memory_mib(running: Running) -> float | None:
    """The gateway's own process and its workers: what sessions take is in these alone."""
    if running.pid is None:
        return None
    own = (running.pid, *processes.named_below(running.pid, processes.WORKER))
    return round(sum(map(processes.resident_mib, own)), 1)


def _add(parser: argparse.ArgumentParser) -> None:
    common.add_options(
        parser, *common.TALK, "--max-num-seqs", "--url", "--workers", "--repetitions", targets=("ja", "es")
    )
    add = parser.add_argument
    add("--meetings", type=between(0, 100_000), default=10, metavar="N", help="at the same time")
    add("--readers", type=between(0, 100_000), default=0, metavar="N", help="more in each meeting, who only read")
    add("--idle", type=between(0, 1_000_000), default=0, metavar="N", help="sessions in which nothing is said")
    add("--seconds", type=between(1.0, 86_400.0), metavar="S", help="how long; without it 30, or all of the file")
    add(
        "--allow-bottleneck",
        action="store_true",
        help="report also what the client processes could not keep up with; it is noted",
    )


def run_plan(options: argparse.Namespace) -> RunPlan:
    """What the options say. Raises `LoadtestError` for a file that does not exist, and for options that would do
    nothing beside the others."""
    named = common.file(options)
    if named is not None:
        if not named.is_file():
            raise LoadtestError(f"--scenario is natural, uniform or a file; there is no file {named}.")
        common.refuse(options, ["meetings"], "the lines of a file say in which meeting they are.")
    if options.url is not None:
        common.refuse(options, common.ENGINE_OPTIONS, "the gateway at --url is measured as it runs.")
    own = {
        "settings": common.settings(options, several=True),
        "objective": common.objective(options),
        "scenario": common.scenario(options, meetings=options.meetings),
        "file": named,
    }
    return RunPlan(**(common.fields_of(options, RunPlan) | own))


RUN = Command(
    "run",
    "meetings on a gateway: people who talk, readers, idle sessions",
    "Holds meetings on a gateway, yours (--url) or one that is started: people take turns as in real "
    "meetings, at real speed, with what a recogniser says meanwhile, and everybody reads. With --engine simulated "
    "the gateway alone is measured: what it delivers with a core, what a session weighs. Exit status 1 when "
    "sessions were lost, when translations failed, and when not all that was asked for was measured.",
    _add,
    lambda options, say: run(run_plan(options), say),
)
