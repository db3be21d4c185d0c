"""Trials that never were, seeded: a queue in front of so many slots, with the samples of its machine."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from loadtest.machine import Machine
from loadtest.trial.values import (
    Closed,
    Delivered,
    Finding,
    InMeetings,
    Line,
    Load,
    Objective,
    Open,
    ProcessUse,
    Record,
    Results,
    Sample,
    Trial,
)

MACHINE = Machine(
    cpu="A CPU",
    cores=16,
    memory_gib=128.0,
    gpus=["NVIDIA H200"],
    system="Linux 6 x86_64",
    python="3.12.3",
    packages={"vllm": "0.26.0", "torch": "2.11.0"},
    revision="abcdef1",
    load_average=(0.1, 0.2, 0.3),
)
_WORKLOAD = "natural lengths, seed 1, ja to en"


def _lengths(chance: random.Random) -> int:
    return max(1, min(160, round(chance.lognormvariate(2.9, 0.7))))


def _served(
    due: Sequence[float] | None, count: int, in_flight: int, slots: int, token_s: float, chance: random.Random
) -> Iterator[Record]:
    """What a queue with so many slots makes of the lines; each token takes longer the more there are at once."""
    free = [0.0] * slots
    heapq.heapify(free)
    busy = [0.0] * in_flight
    heapq.heapify(busy)
    for number in range(count):
        sent = due[number] if due else heapq.heappop(busy)
        begin = max(sent, heapq.heappop(free))
        tokens = _lengths(chance)
        first = begin + chance.uniform(0.6, 1.5) * 0.02
        done = first + tokens * token_s * chance.uniform(0.9, 1.2)
        heapq.heappush(free, done)
        if not due:
            heapq.heappush(busy, done)
        yield Record(
            line=f"l{number}",
            target="en",
            due_s=sent,
            sent_s=sent + (chance.expovariate(2_000) if due else 0.0),
            first_s=first + 0.002,
            done_s=done + 0.002,
            tokens=tokens,
            chars=tokens * 4,
        )


def _samples(
    records: Sequence[Record], elapsed_s: float, slots: int, gpu: bool, chance: random.Random
) -> list[Sample]:
    samples: list[Sample] = []
    steps = int(elapsed_s * 10)
    for step in range(1, steps + 1):
        at = step / 10
        held = sum(1 for each in records if each.sent_s <= at and (each.done_s is None or each.done_s > at))
        busy = min(100.0, 100 * min(held, slots) / slots + chance.uniform(-6, 6)) if held else 0.0
        cores = {"serving": 0.2 + held / slots / 4, "engine": 1.0 if held else 0.01, "clients": 0.15}
        samples.append(
            Sample(
                at_s=at,
                gpu=max(busy, 0.0) if gpu else None,
                gpu_memory_mib=30_000.0 if gpu else None,
                cores=cores,
                running=float(min(held, slots)),
                waiting=float(max(held - slots, 0)),
                tokens=float(
                    sum(each.tokens for each in records if each.done_s is not None and each.done_s <= at)
                ),
            )
        )
    return samples


def a_trial(records: Sequence[Record] = (), **changes: Any) -> Trial:
    """One that was measured on nothing."""
    values: dict[str, Any] = {
        **{"name": "a trial", "system": "gateway", "settings": {}, "workload": "", "load": Open(2.0)},
        **{"repetition": 1, "began": "2026-01-01T00:00:00Z", "elapsed_s": 10.0, "delivered": Delivered()},
        **{"clients": [], "cpu_s": {}, "memory_mib": None, "samples": [], "records": list(records)},
    }
    return Trial(**(values | changes))


def _trial(
    name: str, load: Load, records: list[Record], slots: int, chance: random.Random, *, gpu: bool,
    limit_s: float = 1e9, **changes: Any,
) -> Trial:  # fmt: skip
    cut = [
        record if record.done_s is None or record.done_s <= limit_s else _unfinished(record, limit_s)
        for record in records
    ]
    elapsed_s = min(max((each.done_s or 0.0 for each in cut), default=1.0), limit_s)
    tokens = sum(each.tokens for each in cut)
    cpu_s = {
        "serving": tokens * 3e-5,
        "engine": elapsed_s * 0.9,
        "clients": tokens * 1e-5,
        "other": elapsed_s * 0.02,
    }
    return a_trial(
        cut,
        name=name,
        workload=_WORKLOAD,
        load=load,
        elapsed_s=elapsed_s,
        delivered=Delivered(frames=tokens, bytes=tokens * 120, finals=len(cut)),
        clients=[ProcessUse(0.2 * elapsed_s, elapsed_s, 0.2, chance.uniform(0.5, 2.0), chance.uniform(3, 9))],
        cpu_s=cpu_s,
        memory_mib=812.0,
        samples=_samples(cut, elapsed_s, slots, gpu, chance),
        **changes,
    )


def _unfinished(record: Record, limit_s: float) -> Record:
    first = record.first_s if record.first_s is not None and record.first_s <= limit_s else None
    return Record(record.line, record.target, record.due_s, record.sent_s, first, None, failed="time limit")


def open_trial(
    per_s: float, repetition: int, seed: int, *, seconds: float = 12.0, gpu: bool = True, meetings: bool = False
) -> Trial:
    """An open loop at 32 slots, of which about 70 a second are the limit."""
    chance = random.Random(f"{seed} {per_s} {repetition}")
    due: list[float] = []
    at = 0.0
    while (at := at + chance.expovariate(per_s)) < seconds:
        due.append(at)
    records = list(_served(due, len(due), 1, 32, 0.018, chance))
    load: Load = InMeetings(meetings=12, speakers=72, per_s=per_s, readers=4) if meetings else Open(per_s)
    where = "in meetings at" if meetings else "at"
    settings = {"max_num_seqs": 32, "engine": {"extra": {"compilation_config": {"cudagraph_mode": "FULL"}}}}
    name = f"gateway {where} {per_s:g}/s"
    own: dict[str, Any] = {"repetition": repetition, "settings": settings}
    return _trial(name, load, records, 32, chance, gpu=gpu, limit_s=seconds + 2, **own)


def closed_trial(
    system: str, in_flight: int, repetition: int, seed: int, *, slots: int, token_s: float, gpu: bool = True
) -> Trial:
    """A closed loop of 12 translations for each in flight."""
    chance = random.Random(f"{seed} {system} {in_flight} {repetition}")
    count = max(40, in_flight * 12)
    records = list(_served(None, count, in_flight, slots, token_s, chance))
    name = f"{system}, {in_flight} in flight"
    own: dict[str, Any] = {"system": system, "repetition": repetition, "settings": {"max_num_seqs": slots}}
    return _trial(name, Closed(in_flight), records, slots, chance, gpu=gpu, **own)


def sweep(seed: int = 1, *, gpu: bool = True) -> list[Trial]:
    """An open loop past its knee."""
    return [
        open_trial(per_s, repetition, seed, gpu=gpu)
        for per_s in (10, 20, 40, 60, 70, 80, 100, 120)
        for repetition in (1, 2)
    ]


def comparison(seed: int = 1, *, levels: Sequence[int] = (1, 5, 10, 25), gpu: bool = True) -> list[Trial]:
    """Three systems in a closed loop."""
    systems = (("gateway", 32, 0.012), ("asyncllm", 32, 0.0115), ("vllm-serve", 32, 0.02))
    return [
        closed_trial(system, in_flight, repetition, seed, slots=slots, token_s=token_s, gpu=gpu)
        for in_flight in levels
        for repetition in (1, 2, 3)
        for system, slots, token_s in systems
    ]


def journey(seed: int = 1) -> list[Trial]:
    """One after another, in both kinds of loop, and in meetings."""
    systems = (("one worker", 1, 0.006), ("two workers", 2, 0.009), ("static batches", 8, 0.02))
    closed = [
        closed_trial(system, in_flight, 1, seed, slots=slots, token_s=token_s)
        for in_flight in (1, 5, 10, 15, 20, 25)
        for system, slots, token_s in (*systems, ("gateway", 32, 0.012))
    ]
    return [*closed, *(open_trial(per_s, 1, seed, meetings=True) for per_s in (10, 30, 60))]


FINDINGS = [
    Finding("requests/s against AsyncLLM called directly, 25 in flight", "0.98", "≥ 0.97", True),
    Finding(
        "first token p99 that the gateway adds, 25 in flight", "4.1 ms", "≤ 3 ms", False, "Two rounds of three."
    ),
    Finding("recommended max_num_seqs", "32", note="Above it the first token waits for nothing that is gained."),
]


def write_talk(file: Path, lines: Iterable[Line]) -> None:
    """Talk as it can be replayed; of a line, all but its id."""
    said = [
        {
            "at_s": line.due_s,
            "meeting": line.meeting,
            "speaker": line.speaker,
            "text": line.text,
            "source": line.source,
            "targets": line.targets,
            "partials": [{"at_s": each.due_s, "text": each.text} for each in line.partials],
        }
        for line in lines
    ]
    file.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in said))


def made_up(trials: list[Trial], **more: Any) -> Results:
    """What a load test of these trials has found."""
    values: dict[str, Any] = {
        "model": "bundled_model",
        "settings": {"seed": 1, "seconds": 12.0},
        "objective": Objective(),
        "findings": FINDINGS,
        "trials": trials,
    }
    return Results(**(values | more))
