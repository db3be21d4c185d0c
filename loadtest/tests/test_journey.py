"""The journey: which systems stand for the reports' architectures, what is made of their rounds, and all of it
once on the simulated engine."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loadtest.journey import JOURNEY, Row, findings, groups, missing, rows, stages, table
from loadtest.peers import run as rounds
from loadtest.peers.run import Outcome
from loadtest.results import LoadtestError
from loadtest.systems.server import Running
from loadtest.tests.made_up_trials import a_trial, parsed, write
from loadtest.trial.report import passed
from loadtest.trial.values import Closed, Finding, Objective, Record, Sample, Trial

ALL = (
    *("one-worker", "two-workers", "static-batching", "gateway-64-uniform"),
    *("gateway-64", "gateway-32", "gateway-16", "gateway-8", "recommended"),
)


def test_the_stages_are_in_report_order() -> None:
    rows = stages({}, {"engine": {"max_num_seqs": 24}})
    assert tuple(row.key for row in rows) == ALL
    told = [None if row.told is None else row.told.requests_per_s for row in rows]
    assert told == [2.2, 2.0, 5.9, 15.0, 3.5, None, 10.7, None, 16.4]
    assert [row.key for row in rows if row.peer.shape == "uniform"] == ["gateway-64-uniform"]
    batches = [row.peer.settings["engine"]["max_num_seqs"] for row in rows if row.peer.route == "gateway"]
    assert batches == [64, 64, 32, 16, 8, 24]
    assert [row.peer.architecture for row in rows[:3]] == ["one-worker", "two-workers", "static-batching"]
    assert [row.key for row in stages({}, {}, only=["gateway-64", "one-worker"])] == ["one-worker", "gateway-64"]
    with pytest.raises(LoadtestError, match="no stage 'gateway-48'; there are one-worker, "):
        stages({}, {}, only=["gateway-48"])


def test_one_worker_and_recommended_come_first() -> None:
    one_by_one = groups(stages({}, {"engine": {"max_num_seqs": 24}}), None)
    assert [len(group) for group in one_by_one] == [2, *[1] * 7]
    assert [peer.name for peer in one_by_one[0]] == ["one worker", "gateway, recommended"]
    # Without a GPU there is no memory to share.
    assert one_by_one[0][0].settings == {}


def test_what_runs_together_fits() -> None:
    for group in groups(stages({}, {"engine": {"max_num_seqs": 24}}), 140.0 * 1024):
        engines = [peer.settings["engine"] for peer in group]
        taken = [peer.engines * own["gpu_memory_utilization"] for peer, own in zip(group, engines, strict=True)]
        assert sum(taken) <= 0.9 + 1e-9
        assert all(engine["extra"]["kv_cache_memory_bytes"] > 2**30 for engine in engines)


def a_round(title: str, in_flight: int, per_s: float, queued: float | None = None, **own: Any) -> Trial:
    count = 10
    records = [
        Record(str(number), "de", 0.0, 0.0, first_s=0.5, done_s=1.0 + number / 10, tokens=20)
        for number in range(count)
    ]
    samples = [Sample(0.0, cores={"engine": 1.0}), Sample(0.1, cores={"engine": 2.0})]
    named = {"name": f"{title}, {in_flight} in flight", "system": title, "load": Closed(in_flight)}
    return a_trial(records, **{**named, "elapsed_s": count / per_s, "samples": samples, "queued": queued, **own})


def found(best_per_s: float = 40.0, **own: Any) -> list[Row]:
    known = stages({}, {}, only=["one-worker", "gateway-64-uniform", "gateway-64", "gateway-16", "recommended"])
    rounds = [
        a_round("one worker", 25, 5.0, 0.9, **own),
        a_round("one worker", 1, 4.0, 0.0),
        a_round("gateway, 64 sequences, uniform data", 25, 60.0),
        a_round("gateway, 64 sequences", 25, 20.0),
        a_round("gateway, recommended", 25, best_per_s),
    ]
    return rows(known, rounds, 25, Objective())


def told(made: list[Row], *, bars: bool = False) -> list[Finding]:
    return findings(made, 25, {}, bars=bars)


def test_rows_stand_beside_the_reports() -> None:
    shown = {row[0]: row for row in table(found(), 25).rows}
    assert shown["one worker"][1:5] == ["2.2", "1.0", "1.0", "5.0"]
    assert shown["one worker"][5:] == ["1,400 / 1,900", "500 / 500", "0", "90%", "1.50 ± 0.50 cores"]
    assert shown["gateway, recommended"][2:5] == ["7.5", "8.0", "40.0"]
    assert shown["gateway, 64 sequences"][1] == "3.5 (staging)"
    # It was not measured.
    assert shown["gateway, 16 sequences"][2:4] == ["4.9", "–"]
    held_back = table(found(limited="It was late."), 25)
    assert held_back.rows[0][4] == "5.0*"


def test_a_gpu_counts_where_there_is_one() -> None:
    samples = [Sample(0.0, gpu=90.0, cores={"engine": 1.0}), Sample(0.1, gpu=0.0), Sample(0.2, gpu=90.0)]
    assert table(found(samples=samples), 25).rows[0][9] == "60 ± 42 % of the GPU"


@pytest.mark.parametrize(("best_per_s", "passed"), [(37.6, True), (37.4, False)])
def test_the_bar_is_what_the_reports_reached(best_per_s: float, passed: bool) -> None:
    assert [each.passed for each in told(found(best_per_s), bars=True)] == [passed, None, None]
    assert {each.passed for each in told(found(best_per_s))} == {None}


def test_a_worker_held_back_proves_nothing() -> None:
    (bar, *_) = told(found(limited="It was late."), bars=True)
    assert bar.passed is False
    assert "says nothing" in bar.note


def test_findings_say_what_the_reports_said() -> None:
    said = {each.name: (each.value, each.note) for each in told(found())}
    assert said["one worker, time spent in queues, 25 in flight"] == ("90%", "In the reports 97 %.")
    (best,) = (value for name, value in said.items() if name.startswith("recommended"))
    assert best == ("8.00 ×", "In the reports 16.4 / 2.2 = 7.5 ×.")
    (uniform,) = (value for name, value in said.items() if "uniform" in name)
    assert uniform[0] == "3.00 ×"


def test_missing_stages_are_named() -> None:
    known = stages({}, {}, only=["one-worker", "two-workers", "gateway-16", "recommended"])
    rounds = [
        a_round("one worker", 1, 4.0),
        a_round("one worker", 25, 5.0),
        # What was cut off at a lower level stands beside nothing at a higher one.
        a_round("gateway, recommended", 1, 8.0),
    ]
    left_out = missing(known, [1, 25], Outcome(rounds, {}, {"two workers": "It ended."}, "No time."))
    assert left_out == {"two-workers": "It ended.", "gateway-16": "No time.", "recommended": "No time."}
    made = rows(known, rounds, 25, Objective())
    failed = {each.name: each.note for each in findings(made, 25, left_out, bars=False) if each.passed is False}
    named = {"two workers": "It ended.", "gateway, 16 sequences": "No time.", "gateway, recommended": "No time."}
    assert failed == named
    shown = {row[0]: row for row in table(made, 25).rows}
    assert shown["two workers"] == ["two workers", "2", "0.9", *["–"] * 7]
    assert shown["gateway, recommended"][3:] == ["–"] * 7


# ---------------------------------------------------------------- all of it


@pytest.mark.parametrize(
    "arguments", [("--recommended", "[1]"), ("--recommended", "{engine}"), ("--concurrency", "0")]
)
def test_a_wrong_option_is_refused(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(JOURNEY, "--out", "x", *arguments)
    assert arguments[0] in capsys.readouterr().err


async def test_recommended_settings_are_those_of_a_gateway() -> None:
    given = parsed(JOURNEY, "--out", "x", "--engine", "simulated", "--recommended", '{"engine": {"max_seqs": 3}}')
    with pytest.raises(LoadtestError, match="max_seqs"):
        await JOURNEY.run(given, lambda _line: None)


@pytest.mark.slow
async def test_a_journey_on_the_simulated_engine(tmp_path: Path) -> None:
    given = parsed(
        JOURNEY,
        *("--out", str(tmp_path), "--engine", "simulated", "--concurrency", "2,6", "--round-s", "0.5"),
        *("--model", "/somewhere/model-7b", "--recommended", '{"engine": {"model": "/somewhere/model-8b"}}'),
        *("--stages", "one-worker,recommended"),
        # Long enough for queues: one worker has to show them.
        *("--set", "engine.script.token_s=0.02"),
    )
    said: list[str] = []
    made = await JOURNEY.run(given, said.append)
    measured = {row.key: row for row in msgspec.convert(made.details["rows"], list[Row])}
    assert list(measured) == ["one-worker", "recommended"]
    assert not any(record.failed for trial in made.trials for record in trial.records)
    # Each load once.
    assert len({(trial.name, trial.repetition) for trial in made.trials}) == len(made.trials) == 4
    best, one = (measured[key] for key in ("recommended", "one-worker"))
    assert one.queued is not None
    assert one.queued > 0.5
    assert (best.queued or 0.0) < one.queued
    assert best.summary is not None
    assert one.summary is not None
    assert best.summary.requests_per_s.median > one.summary.requests_per_s.median
    # The two that the bar is about take turns.
    told = [line.partition(" in flight")[0] for line in said if line.endswith("in flight, repetition 1")]
    assert told == [*("one worker, 2", "gateway, recommended, 2"), *("one worker, 6", "gateway, recommended, 6")]
    written = await asyncio.to_thread(write, made, "journey", tmp_path)
    assert re.search(r"\| one worker \| [\d.]+ \| 1\.0 \|", (tmp_path / "table.md").read_text())
    assert json.loads(written)["details"]["concurrency"] == 6
    # A report does not tell where a model lies.
    assert json.loads(written)["settings"]["recommended"] == {"engine": {"model": "model-8b"}}
    assert "/somewhere" not in written
    assert passed(made)


async def test_what_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def endless(*_: object) -> AsyncIterator[Running]:
        await asyncio.Event().wait()
        yield  # type: ignore[misc]

    monkeypatch.setattr(rounds, "system", endless)
    given = parsed(JOURNEY, "--out", str(tmp_path), "--engine", "simulated")
    given.time_limit_s = 0.05
    with pytest.raises(LoadtestError, match=r"Not a single round could be played.*--time-limit-s"):
        await JOURNEY.run(given, lambda _line: None)
