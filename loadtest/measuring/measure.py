"""One trial: lines are played to a system while the machine is watched.

Knows: the driver, the sampler, what a trial is, when a gateway that has nothing else to do would translate a
partial. Must not know: how a system was started, what is made of trials.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from loadtest.driving.driver import Driven, Driver, bottleneck
from loadtest.measuring.sampling import HOST, STORE, Accounts, counters, engine_gpus, hosts, sampling
from loadtest.options import Say
from loadtest.results import LoadtestError
from loadtest.systems.server import Running, buckets, get, metric, only
from loadtest.trial.values import Closed, EngineInProcess, Line, Load, Sample, Trial

PARTIALS = "gateway_partials_total"
"""The metric in which a gateway counts partials by their outcome."""

# The least time from one translation of an utterance into a language to the next, as the gateway has it.
PACE_S = 0.6


def could_be_translated(lines: Iterable[Line]) -> int:
    """Translations of partials that a gateway makes of these lines if each takes no time at all.

    The first revision is translated at once, then the newest text whenever its time has come, until the final.
    """
    return sum(_of_line(line) * len(line.targets) for line in lines)


def _of_line(line: Line) -> int:
    count, known, free_s = 0, "", -math.inf
    revisions = list(line.partials)
    while revisions:
        begins_s = max(free_s, revisions[0].due_s)
        if begins_s >= line.due_s:
            break
        said = [each for each in revisions if each.due_s <= begins_s]
        revisions = revisions[len(said) :]
        if said[-1].text != known:
            count, known, free_s = count + 1, said[-1].text, begins_s + PACE_S
    return count


def translated(text: str) -> float:
    """Partials that the gateway has translated so far, by its metrics."""
    return metric(text, PARTIALS, outcome="translated") or 0.0


def translated_part(lines: Iterable[Line], before: float, after: float) -> float | None:
    """The part that was translated, between two readings of the counter; None where there were no partials."""
    most = could_be_translated(lines)
    # The first of an utterance counts half of its pace, so that there may be some more.
    return round(min(1.0, (after - before) / most), 4) if most else None


# ---------------------------------------------------------------- one trial


DRIVER_WAS_THE_LIMIT = "driver_was_the_limit"
"""Where the settings of a trial say that the driver held it back, and how."""

_STEPS = "gateway_engine_step_seconds"
_GAP_S = 0.1

# The times in a record.
_TIMES = ("due_s", "sent_s", "first_s", "done_s", "began_s", "shown_s", "again_s")


async def measure(
    running: Running,
    driver: Driver,
    lines: Sequence[Line],
    load: Load,
    *,
    name: str,
    repetition: int,
    workload: str,
    say: Say,
    limit_s: float,
    keep_text: bool = False,
    discard_s: float = 0.0,
    allow_bottleneck: bool = False,
) -> Trial:
    """Play the lines once, sampled and accounted.

    discard_s: what was due earlier is no part of the trial, unless it failed, nor is what was used until then. No
    more is what was used after the last line: see `Trial`. allow_bottleneck: a driver that was the limit is noted
    in the settings of the trial. Raises `LoadtestError` for such a driver otherwise, and when nothing was
    translated.
    """
    began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    say(f"{name}, repetition {repetition}" if repetition else f"{name}, warming up")
    parts = _parts(running, driver)
    before = await asyncio.to_thread(_counted, running.metrics_url)
    gpus = await asyncio.to_thread(engine_gpus, running.settings)
    async with sampling(parts, running.metrics_url, counters(running.address), gpus=gpus) as samples:
        driven = await driver.play(lines, load=load, keep_text=keep_text, limit_s=limit_s, stage=name)
    window = _window(driven, lines, load, discard_s)
    if window.until_s <= window.from_s:
        raise LoadtestError(f"{name}: everything was over within the {discard_s:g} s that are discarded.")
    after = await asyncio.to_thread(_counted, running.metrics_url)
    settings: dict[str, Any] = dict(running.settings)
    if steps := buckets(after, _STEPS):
        settings |= _gaps(buckets(before, _STEPS), steps)
    if (sentence := bottleneck(driven, load)) is not None:
        if not allow_bottleneck:
            raise LoadtestError(f"{name}: {sentence}")
        settings[DRIVER_WAS_THE_LIMIT] = sentence
    records = [
        replace(
            record, **{name: at_s - discard_s for name in _TIMES if (at_s := getattr(record, name)) is not None}
        )
        for record in driven.records
        if record.failed is not None or window.holds(record.due_s)
    ]
    if all(record.failed is not None for record in records):
        why = next((record.failed for record in records), "nothing was due")
        raise LoadtestError(f"{name}: no line was translated: {why}")
    finished = [each for each in driven.records if each.failed is None and window.holds(each.done_s)]
    # Work on what was never finished is work; when it ended is not known.
    left = [each for each in driven.records if each.failed is not None and window.holds(each.due_s)]
    from_s, until_s = driven.began_s + window.from_s, driven.began_s + window.until_s
    used_s = _used_s(samples, from_s, until_s)
    hosts_s, store_s = [used_s.pop(part) for part in hosts([*used_s])], used_s.pop(STORE, None)
    played_s = driven.began_s, driven.began_s + driven.elapsed_s
    return Trial(
        name=name,
        system=running.name,
        settings=settings,
        workload=workload,
        load=load,
        repetition=repetition,
        began=began,
        elapsed_s=round(until_s - from_s, 4),
        delivered=replace(
            driven.delivered,
            elapsed_s=round(driven.elapsed_s, 4),
            serving_s=_used_s(samples, *played_s).get("serving", 0.0),
        ),
        clients=driven.clients,
        cpu_s=used_s,
        host_cpu_s=round(sum(hosts_s), 4) if hosts_s else None,
        hosts_cpu_s=hosts_s,
        store_cpu_s=store_s,
        memory_mib=await asyncio.to_thread(Accounts(parts).serving_mib),
        samples=[
            replace(sample, at_s=round(sample.at_s - from_s, 3))
            for sample in samples
            if from_s <= sample.at_s <= until_s
        ],
        records=records,
        finished=len(finished),
        generated=sum(each.tokens for each in (*finished, *left)),
        with_drain=window.with_drain,
        partials_translated=translated_part(lines, translated(before), translated(after)) if after else None,
    )


class _Window(Struct, frozen=True):
    """Seconds after the beginning of the pass. with_drain: it goes on to the last record."""

    from_s: float
    until_s: float
    with_drain: bool = False

    def holds(self, at_s: float | None) -> bool:
        return at_s is not None and self.from_s <= at_s <= self.until_s


def _window(driven: Driven, lines: Sequence[Line], load: Load, discard_s: float) -> _Window:
    """The time of a pass in which the load was what it is called.

    In an open loop lines were due then, however long it took afterwards to work them off. In a closed loop as many
    were in flight as were to be; where that was less than half of the time, all of it counts.
    """
    if isinstance(load, Closed):
        until_s = driven.elapsed_s if driven.ran_out_s is None else driven.ran_out_s
        least_s = (driven.elapsed_s - discard_s) / 2
    else:
        until_s = max((line.due_s for line in lines), default=driven.elapsed_s)
        least_s = 0.0
    if until_s - discard_s > least_s:
        return _Window(discard_s, until_s)
    return _Window(discard_s, driven.elapsed_s, with_drain=True)


def _parts(running: Running, driver: Driver) -> dict[str, list[int]]:
    if isinstance(running.address, EngineInProcess):
        return {"serving": driver.pids}
    if running.pid is None:
        return {"clients": driver.pids}
    host = {} if running.host is None else {HOST: [running.host]}
    return {"serving": [running.pid], **host, "clients": driver.pids}


def _used_s(samples: Sequence[Sample], from_s: float, until_s: float) -> dict[str, float]:
    """CPU seconds by part between two moments. Each sample tells the mean since the one before it."""
    used_s: dict[str, float] = {}
    for before, sample in itertools.pairwise(samples):
        overlap_s = min(sample.at_s, until_s) - max(before.at_s, from_s)
        if overlap_s > 0:
            for part, cores in sample.cores.items():
                used_s[part] = used_s.get(part, 0.0) + cores * overlap_s
    return {part: round(seconds, 4) for part, seconds in used_s.items()}


def _counted(metrics_url: str | None) -> str:
    """The time between two outputs of the engine, and partials by their outcome; empty where no server tells."""
    if metrics_url is None:
        return ""
    return get(only(metrics_url, [f"{_STEPS}_bucket", PARTIALS]))[1]


def _gaps(before: dict[float, float], after: dict[float, float]) -> dict[str, float]:
    """Steps between two readings, and how many of them took longer than they may."""
    grown = {bound: count - before.get(bound, 0.0) for bound, count in after.items()}
    steps = grown.get(float("inf"), 0.0)
    within = max((bound for bound in grown if bound <= _GAP_S), default=None)
    return {
        "engine_steps": int(steps),
        "engine_gaps_over_100_ms": int(steps - grown[within]) if within is not None else int(steps),
    }
