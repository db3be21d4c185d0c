"""Trials that never were: a system that falls behind above its limit, with the samples of its machine.

And load tests without a process: their options, what they found as a report, the files of it.
"""

from __future__ import annotations

import argparse
import gzip
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from loadtest.machine import Machine
from loadtest.options import Command
from loadtest.trial import report
from loadtest.trial.content import markdown
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


def _record(number: int, sent_s: float, waits_s: float, token_s: float, limit_s: float) -> Record:
    """It waits, then has its tokens, of which there are more and fewer."""
    first_s, tokens = sent_s + waits_s, 5 + number * 7 % 40
    done_s = first_s + tokens * token_s
    if done_s > limit_s:
        came_s = first_s if first_s <= limit_s else None
        return Record(f"l{number}", "en", sent_s, sent_s, came_s, None, failed="time limit")
    return Record(f"l{number}", "en", sent_s, sent_s, first_s, done_s, tokens=tokens)


def a_trial(records: Sequence[Record] = (), **changes: Any) -> Trial:
    """One that was measured on nothing."""
    values: dict[str, Any] = {
        **{"name": "a trial", "system": "gateway", "settings": {}, "workload": "", "load": Open(2.0)},
        **{"repetition": 1, "began": "2026-01-01T00:00:00Z", "elapsed_s": 10.0, "delivered": Delivered()},
        **{"clients": [], "cpu_s": {}, "memory_mib": None, "samples": [], "records": list(records)},
    }
    return Trial(**(values | changes))


def _trial(name: str, load: Load, records: list[Record], busy: float, *, gpu: bool, **changes: Any) -> Trial:
    """busy: the part of the slots that are in use; what is above 1 waits."""
    elapsed_s = max(each.done_s or 0.0 for each in records)
    tokens = sum(each.tokens for each in records)
    samples = [
        Sample(
            at_s=step / 10,
            gpu=100 * min(busy, 1.0) if gpu else None,
            gpu_memory_mib=30_000.0 if gpu else None,
            cores={"serving": 0.2, "engine": min(busy, 1.0), "clients": 0.15},
            running=32 * min(busy, 1.0),
            waiting=32 * max(busy - 1, 0.0),
            tokens=tokens * step / 10 / elapsed_s,
        )
        for step in range(1, int(elapsed_s * 10) + 1)
    ]
    used_s = {"serving": tokens * 3e-5, "engine": elapsed_s * 0.9, "clients": tokens * 1e-5, "other": 0.02}
    own: dict[str, Any] = {
        **{"name": name, "workload": _WORKLOAD, "load": load, "elapsed_s": elapsed_s, "samples": samples},
        **{"delivered": Delivered(frames=tokens, bytes=tokens * 120, finals=len(records)), "cpu_s": used_s},
        **{"clients": [ProcessUse(0.2 * elapsed_s, elapsed_s, 0.5, 3.0)], "memory_mib": 812.0},
    }
    return a_trial(records, **own, **changes)


def open_trial(
    per_s: float, repetition: int, seed: int, *, seconds: float = 12.0, gpu: bool = True, meetings: bool = False
) -> Trial:
    """An open loop of which 65 a second are the limit."""
    chance = random.Random(f"{seed} {per_s} {repetition}")
    behind = max(per_s / 65 - 1, 0.0)
    records: list[Record] = []
    at_s = 0.0
    while (at_s := at_s + chance.expovariate(per_s)) < seconds:
        waits_s = 0.02 + behind * at_s + chance.uniform(0, 0.01)
        records.append(_record(len(records), at_s, waits_s, 0.018, seconds + 2))
    load: Load = InMeetings(meetings=12, speakers=72, per_s=per_s, readers=4) if meetings else Open(per_s)
    settings = {"max_num_seqs": 32, "engine": {"extra": {"compilation_config": {"cudagraph_mode": "FULL"}}}}
    name = f"gateway {'in meetings at' if meetings else 'at'} {per_s:g}/s"
    return _trial(name, load, records, per_s / 65, gpu=gpu, repetition=repetition, settings=settings)


def closed_trial(
    system: str, in_flight: int, repetition: int, seed: int, *, slots: int, token_s: float, gpu: bool = True
) -> Trial:
    """A closed loop of 12 translations for each in flight."""
    turn_s = 30 * token_s * max(in_flight / slots, 1.0) + seed / 1_000
    records = [
        _record(number, number // in_flight * turn_s, 0.02, token_s, 1e9)
        for number in range(max(40, in_flight * 12))
    ]
    own: dict[str, Any] = {"system": system, "repetition": repetition, "settings": {"max_num_seqs": slots}}
    return _trial(
        f"{system}, {in_flight} in flight", Closed(in_flight), records, in_flight / slots, gpu=gpu, **own
    )


def comparison(seed: int = 1, *, levels: Sequence[int] = (1, 5, 10, 25), gpu: bool = True) -> list[Trial]:
    """Three systems in a closed loop."""
    systems = (("gateway", 32, 0.012), ("asyncllm", 32, 0.0115), ("vllm-serve", 32, 0.02))
    return [
        closed_trial(system, in_flight, repetition, seed, slots=slots, token_s=token_s, gpu=gpu)
        for in_flight in levels
        for repetition in (1, 2, 3)
        for system, slots, token_s in systems
    ]


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
            **{name: getattr(line, name) for name in ("meeting", "speaker", "text", "source", "targets")},
            "partials": [{"at_s": each.due_s, "text": each.text} for each in line.partials],
        }
        for line in lines
    ]
    file.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in said))


def made_up(trials: list[Trial], **more: Any) -> Results:
    """What a load test of these trials has found."""
    values: dict[str, Any] = {
        "model": "small_model",
        "settings": {"seed": 1, "seconds": 12.0},
        "objective": Objective(),
        "findings": FINDINGS,
        "trials": trials,
    }
    return Results(**(values | more))


def parsed(command: Command, *arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add(parser)
    return parser.parse_args([*arguments])


def as_report(results: Results, kind: str) -> report.Report:
    """The report of a command that found this."""
    began = "2026-01-01T00:00:00Z"
    return report.report(
        results, kind=kind, command=f"python -m loadtest {kind} --out results", began=began, machine=MACHINE
    )


def write(results: Results, kind: str, folder: Path) -> str:
    """All files of its report; the JSON among them."""
    report.write(as_report(results, kind), folder)
    return gzip.decompress((folder / report.RESULT).read_bytes()).decode()


def read(folder: Path) -> report.Report:
    """The result in a folder."""
    return msgspec.json.decode(gzip.decompress((folder / report.RESULT).read_bytes()), type=report.Report)


def table_of(results: Results, kind: str = "run") -> str:
    """The table of its report."""
    return markdown(report.parts(as_report(results, kind)))
