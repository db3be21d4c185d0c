"""What trials in meetings say about a gateway, in one statement each.

Knows: trials, memory readings. Must not know: how anything was measured.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from loadtest.results import nearest_rank
from loadtest.trial.summary import summarise
from loadtest.trial.values import Finding, InMeetings, Objective, Trial


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


def findings(trials: Sequence[Trial], held: Held, objective: Objective) -> list[Finding]:
    """Everything that is said of the trials that were finished."""
    found = [_held(held, meetings=bool(trials)), *_idle(held), *_memory(held, trials)]
    if trials:
        found[1:1] = _translated(trials, objective)
        found += _delivered(trials)
    return found


def cut_short(finished: int, asked: int, why: str) -> Finding:
    """Not all trials that were asked for could be finished; `why` is a sentence."""
    return Finding("trials finished", f"{finished:,}", f"{asked:,}", False, why)


# ---------------------------------------------------------------- sessions


def _held(held: Held, *, meetings: bool) -> Finding:
    """meetings: whether they were held to the end at least once."""
    active = held.sessions - held.idle
    kept = (held.idle if held.idle_s else 0) + (active if meetings else 0) - len(held.lost)
    note = f"{held.idle:,} idle, {active:,} in meetings"
    if held.lost:
        note += f"; lost: {_counted(held.lost.values())}"
    return Finding("sessions held", f"{kept:,}", f"{held.sessions:,}", kept == held.sessions, note)


def _idle(held: Held) -> Iterator[Finding]:
    if held.idle_s and held.idle_cpu_s is not None:
        cores = held.idle_cpu_s / held.idle_s
        yield Finding("CPU of idle sessions", f"{cores:.3f} cores", note=f"over {held.idle_s:.0f} s")


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
    return Finding(
        name,
        f"{(after_mib - before_mib) * 1024 / count:.1f} KiB",
        note=f"{before_mib:.0f} to {after_mib:.0f} MiB for {count:,}",
    )


# ---------------------------------------------------------------- translations

_SHOWN_REASONS = 3


def _translated(trials: Sequence[Trial], objective: Objective) -> list[Finding]:
    """What became of all that was said."""
    all_of_it = summarise(trials, objective)
    reasons = [record.failed for trial in trials for record in trial.records if record.failed is not None]
    failed = Finding(
        "translations that failed",
        f"{len(reasons):,} of {all_of_it.records:,}",
        "0",
        not reasons,
        _counted(reasons) if reasons else "",
    )
    kept = Finding(
        "first token kept the objective",
        # Rounded down: what a few missed is not shown as if none had.
        f"{math.floor(all_of_it.within * 1_000) / 10:g} %",
        note=f"within {objective.first_token_ms:g} ms of when the line was due; the objective asks for "
        f"{objective.quantile * 100:g} %",
    )
    return [failed, kept]


def _counted(reasons: Iterable[str]) -> str:
    """The most frequent ones, with how often they came."""
    most = Counter(reasons).most_common(_SHOWN_REASONS)
    return ", ".join(f"{count:,} × {reason}" for reason, count in most)


# ---------------------------------------------------------------- delivery


def _delivered(trials: Sequence[Trial]) -> Iterator[Finding]:
    frames = sum(trial.delivered.frames for trial in trials)
    size = sum(trial.delivered.bytes for trial in trials)
    # The whole pass counts, as it does for the frames.
    elapsed_s = sum(trial.delivered.elapsed_s or trial.elapsed_s for trial in trials)
    serving_s = sum(trial.delivered.serving_s or trial.cpu_s.get("serving", 0.0) for trial in trials)
    note = f"{frames / elapsed_s:,.0f} frames/s of {size / max(frames, 1):.0f} bytes"
    if serving_s:
        yield Finding(
            "frames delivered per second of one core",
            f"{frames / serving_s:,.0f}",
            note=f"{note} with {serving_s / elapsed_s:.2f} cores",
        )
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
