"""One run: sessions are opened, meetings are held, and what they cost is read off.

Knows: systems, the driver, trials. Must not know: options, files, how a report looks.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractAsyncContextManager

import msgspec
from msgspec.structs import replace

from loadtest.commands import Say
from loadtest.driving.driver import Driver, driver
from loadtest.driving.opening import allow_files
from loadtest.machine import describe
from loadtest.results import LoadtestError
from loadtest.run.findings import IDLE, Held, findings
from loadtest.run.plan import RunPlan, Said, said, sessions
from loadtest.systems import processes
from loadtest.systems.existing import existing
from loadtest.systems.gateway import gateway
from loadtest.systems.running import Running
from loadtest.trial.measure import measure
from loadtest.trial.options import model_name, shown
from loadtest.trial.sampling import sampling
from loadtest.trial.values import Delivered, InMeetings, Report, Trial

__all__ = ["run"]

# For what was freed or is still being taken to show in the resident memory.
_SETTLE_S = 1.0

# For translations that are under way when the last line was due.
_AFTER_S = 60.0


async def run(plan: RunPlan, command: str, say: Say) -> Report:
    """Raises `LoadtestError` when there is nothing to measure, or when it cannot be measured."""
    began, machine = _utc(), describe()
    what = await asyncio.to_thread(said, plan)
    if not sessions(what.load):
        raise LoadtestError("There is neither a meeting nor an idle session in this run.")
    settings = plan.gateway_settings(what.load)
    trials: list[Trial] = []
    try:
        async with asyncio.timeout(plan.time_limit_s):
            if plan.url is None:
                # The gateway inherits it.
                allow_files(sessions(what.load))
            system: AbstractAsyncContextManager[Running] = (
                gateway(settings, say) if plan.url is None else existing(plan.url)
            )
            async with system as running:
                held = await _hold(plan, what, running, trials, say)
    except TimeoutError:
        raise LoadtestError(f"It took longer than {plan.time_limit_s:g} s.") from None
    return Report(
        kind="run",
        command=command,
        began=began,
        model=model_name(settings) if plan.url is None else f"that of {plan.url}",
        machine=machine,
        settings=shown(settings) if plan.url is None else {"url": plan.url},
        objective=plan.objective,
        findings=findings(trials, what.lines, held, settings if plan.simulated else None),
        trials=trials,
        details={"held": msgspec.to_builtins(held)},
    )


async def _hold(plan: RunPlan, what: Said, running: Running, trials: list[Trial], say: Say) -> Held:
    """Open all sessions, say all lines; the trials are added to the list, so that they are there."""
    before_mib = _memory_mib(running)
    if plan.idle:
        say(f"opening {plan.idle:,} idle sessions")
    async with driver(running.address, what.load, processes=plan.processes, say=say) as crowd:
        if plan.idle:
            trials.append(await _watch_idle(plan, what, running, crowd, say))
        idle_mib = trials[0].memory_mib if trials else None
        greeted_mib = None
        if what.lines:
            greeted_mib = await _greet(what, running, crowd, say)
            for repetition in range(1, plan.repetitions + 1):
                trials.append(
                    await measure(
                        running,
                        crowd,
                        what.lines,
                        what.load,
                        name="meetings",
                        repetition=repetition,
                        workload=what.workload,
                        say=say,
                        limit_s=what.lines[-1].due_s + _AFTER_S,
                        allow_bottleneck=plan.allow_bottleneck,
                    )
                )
        return Held(
            sessions=sessions(what.load),
            idle=plan.idle,
            before_mib=before_mib,
            idle_mib=idle_mib,
            greeted_mib=greeted_mib,
            after_mib=_memory_mib(running) if what.lines else None,
        )


async def _watch_idle(plan: RunPlan, what: Said, running: Running, crowd: Driver, say: Say) -> Trial:
    """What the gateway does for sessions in which nothing is said."""
    # Long enough for every connection to have been asked for a sign of life, where nothing else is measured.
    seconds = _SETTLE_S if what.lines else (plan.seconds or 30.0)
    await asyncio.sleep(_SETTLE_S)
    say(f"holding {plan.idle:,} idle sessions for {seconds:g} s")
    began, began_s = _utc(), time.monotonic()
    pids = [] if running.pid is None else [running.pid]
    used_s = -sum(processes.cpu_s(pid) or 0.0 for pid in pids)
    async with sampling({"serving": pids, "clients": crowd.pids}, running.metrics_url) as samples:
        await asyncio.sleep(seconds)
    used_s += sum(processes.cpu_s(pid) or 0.0 for pid in pids)
    return Trial(
        name=IDLE,
        system=running.name,
        settings=running.settings,
        workload=f"{plan.idle:,} sessions in which nothing is said",
        load=InMeetings(meetings=0, speakers=0, per_s=0.0, idle=plan.idle),
        repetition=1,
        began=began,
        elapsed_s=round(time.monotonic() - began_s, 4),
        delivered=Delivered(),
        clients=[],
        cpu_s={"serving": round(used_s, 4)} if pids else {},
        memory_mib=_memory_mib(running),
        samples=[replace(each, at_s=round(each.at_s - began_s, 3)) for each in samples],
        records=[],
    )


async def _greet(what: Said, running: Running, crowd: Driver, say: Say) -> float | None:
    """Everybody comes in and says something; the gateway's memory after that."""
    say(f"opening {sessions(what.load) - what.load.idle:,} sessions in {what.load.meetings:,} meetings")
    await crowd.play(what.greetings, limit_s=what.greetings[-1].due_s + _AFTER_S)
    await asyncio.sleep(_SETTLE_S)
    return _memory_mib(running)


def _memory_mib(running: Running) -> float | None:
    return None if running.pid is None else processes.resident_mib(running.pid)


def _utc() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
