"""What trials in meetings say about a gateway, in one statement each.

Knows: trials, memory readings, the simulated engine's script. Must not know: how anything was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from gateway.engines.simulated import Script
from loadtest.results import nearest_rank
from loadtest.trial.values import Finding, InMeetings, Line, Record, Trial

__all__ = ["IDLE", "Held", "added_ms", "findings"]

IDLE = "idle"
"""The name of the trial in which nothing is said."""


class Held(Struct, frozen=True):
    """Sessions and the gateway's resident memory, MiB; null where the gateway is somebody else's.

    before: without any session. idle: once the idle ones are open; greeted: once all are, and everybody has said
    something; after: when all is said.
    """

    sessions: int
    idle: int
    before_mib: float | None = None
    idle_mib: float | None = None
    greeted_mib: float | None = None
    after_mib: float | None = None


def findings(
    trials: Sequence[Trial], lines: Sequence[Line], held: Held, settings: dict[str, Any] | None
) -> list[Finding]:
    """settings: of the gateway with a simulated engine; null for any other."""
    idle = [trial for trial in trials if trial.name == IDLE]
    meetings = [trial for trial in trials if trial.name != IDLE]
    found = [*_held(trials, held), *_idle(idle), *_memory(held, meetings)]
    if meetings:
        found += _delivered(meetings)
        if settings is not None:
            found += _added(meetings, lines, settings)
    return found


# ---------------------------------------------------------------- sessions


def _held(trials: Sequence[Trial], held: Held) -> Iterator[Finding]:
    lost = [record for trial in trials for record in trial.records if _of_a_session(record)]
    active = held.sessions - held.idle
    yield Finding(
        "sessions held",
        f"{held.sessions - len(lost):,}",
        f"{held.sessions:,}",
        not lost,
        f"{held.idle:,} idle, {active:,} in meetings" + (f"; lost: {lost[0].failed}" if lost else ""),
    )


def _idle(trials: Sequence[Trial]) -> Iterator[Finding]:
    for trial in trials:
        if "serving" in trial.cpu_s:
            yield Finding("CPU of idle sessions", f"{trial.cpu_s['serving'] / trial.elapsed_s:.3f} cores")


def _of_a_session(record: Record) -> bool:
    return record.line.startswith("session ")


def _memory(held: Held, trials: Sequence[Trial]) -> Iterator[Finding]:
    if held.before_mib is None:
        return
    active = held.sessions - held.idle
    if held.idle and held.idle_mib is not None:
        yield _each("memory of an idle session", held.before_mib, held.idle_mib, held.idle)
    if active and held.greeted_mib is not None:
        begin = held.before_mib if held.idle_mib is None else held.idle_mib
        yield _each("memory of a session in a meeting", begin, held.greeted_mib, active)
    translations = sum(not _of_a_session(record) for trial in trials for record in trial.records)
    if translations and held.after_mib is not None and held.greeted_mib is not None:
        yield _each("memory that stays of a translation", held.greeted_mib, held.after_mib, translations)


def _each(name: str, before_mib: float, after_mib: float, count: int) -> Finding:
    return Finding(
        name,
        f"{(after_mib - before_mib) * 1024 / count:.1f} KiB",
        note=f"{before_mib:.0f} to {after_mib:.0f} MiB for {count:,}",
    )


# ---------------------------------------------------------------- delivery


def _delivered(trials: Sequence[Trial]) -> Iterator[Finding]:
    frames = sum(trial.delivered.frames for trial in trials)
    size = sum(trial.delivered.bytes for trial in trials)
    elapsed_s = sum(trial.elapsed_s for trial in trials)
    serving_s = sum(trial.cpu_s.get("serving", 0.0) for trial in trials)
    note = f"{frames / elapsed_s:,.0f} frames/s of {size / max(frames, 1):.0f} bytes"
    if serving_s:
        yield Finding(
            "frames delivered per second of one core",
            f"{frames / serving_s:,.0f}",
            note=f"{note} with {serving_s / elapsed_s:.2f} cores",
        )
    else:
        yield Finding("frames delivered per second", f"{frames / elapsed_s:,.0f}", note=note)
    final_ms = [ms for trial in trials for ms in trial.delivered.final_ms]
    finals = sum(trial.delivered.finals for trial in trials)
    if final_ms:
        readers = sum(_readers(trial) for trial in trials) / len(trials)
        yield _percentiles(
            "whole translation at all readers",
            final_ms,
            f"{finals:,} of them; {readers:,.0f} sessions in a meeting",
        )


def _readers(trial: Trial) -> float:
    load = trial.load
    return load.readers + load.speakers / load.meetings if isinstance(load, InMeetings) and load.meetings else 0.0


def _percentiles(name: str, values_ms: Sequence[float], note: str) -> Finding:
    p50, p99 = (nearest_rank(values_ms, share) for share in (0.5, 0.99))
    return Finding(name, f"p50 {p50:.1f} ms, p99 {p99:.1f} ms", note=note)


# ---------------------------------------------------------------- the gateway alone


def _added(trials: Sequence[Trial], lines: Sequence[Line], settings: dict[str, Any]) -> Iterator[Finding]:
    script = msgspec.convert(settings.get("engine", {}).get("script", {}), Script, strict=False)
    records = [record for trial in trials for record in trial.records]
    first_ms, whole_ms = added_ms(records, lines, script)
    # Beside partials, what has none is short, and no example of anything.
    if len(first_ms) > len(records) / 2:
        yield _percentiles(
            "added to the script's first token", first_ms, f"the script takes {script.first_token_s * 1000:g} ms"
        )
        yield _percentiles(
            "added to the script's whole translation",
            whole_ms,
            f"the script takes {script.token_s * 1000:g} ms for each further token; its timers are late by up to "
            "1 ms each",
        )


def added_ms(records: Sequence[Record], lines: Sequence[Line], script: Script) -> tuple[list[float], list[float]]:
    """By how much translations were later than the script alone: their first text, and all of it, milliseconds.

    Of lines without partials only: what was translated before the last word is not generated again.
    """
    by_id = {line.id: line for line in lines if not line.partials}
    first_ms: list[float] = []
    whole_ms: list[float] = []
    for record in records:
        line = by_id.get(record.line)
        if line is None or record.first_s is None or record.done_s is None:
            continue
        # As the simulated engine has it: a translation is the text, a word a token, behind its language.
        tokens = len(f"[{record.target}] {line.text}".split())
        first_ms.append((record.first_s - record.due_s - script.first_token_s) * 1000)
        whole_s = script.first_token_s + (tokens - 1) * script.token_s
        whole_ms.append((record.done_s - record.due_s - whole_s) * 1000)
    return first_ms, whole_ms
