"""The journey: which systems stand for the reports' architectures, what is made of their rounds, and all of it
once on the simulated engine."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loadtest import journey as journeys
from loadtest.driving.driver import Driven
from loadtest.journey import (
    JOURNEY,
    Outcome,
    Round,
    Rounds,
    Stage,
    System,
    groups,
    outcome,
    share_in_queues,
    stages,
)
from loadtest.results import LoadtestError
from loadtest.systems.server import Running
from loadtest.talk.scenario import Scenario
from loadtest.tests.made_up_trials import a_trial, parsed, write
from loadtest.trial.content import Table
from loadtest.trial.report import passed
from loadtest.trial.summary import requests_per_s, summaries
from loadtest.trial.values import (
    Address,
    Closed,
    Delivered,
    Finding,
    Http,
    Line,
    Load,
    Objective,
    Record,
    Sample,
    Trial,
    WebSocketGateway,
)
from tests.clocks import swiftly

ALL = (
    *("one-worker", "two-workers", "static-batching", "gateway-64-uniform"),
    *("gateway-64", "gateway-32", "gateway-16", "gateway-8", "recommended"),
)


def test_the_stages_are_in_report_order() -> None:
    rows, systems = stages({}, {"engine": {"max_num_seqs": 24}})
    assert tuple(row.key for row in rows) == ALL
    told = [None if row.told is None else row.told.requests_per_s for row in rows]
    assert told == [2.2, 2.0, 5.9, 15.0, 3.5, None, 10.7, None, 16.4]
    assert [row.key for row in rows if row.shape == "uniform"] == ["gateway-64-uniform"]
    # Uniform and natural data go to the same gateway.
    assert len(systems) == 8
    gateways = {system.name: system.settings["engine"] for system in systems if not system.architecture}
    batches = {f"gateway, {count} sequences": {"max_num_seqs": count} for count in (64, 32, 16, 8)}
    assert gateways == {**batches, "gateway, recommended": {"max_num_seqs": 24}}


def test_some_stages_need_only_their_systems() -> None:
    rows, systems = stages({}, {}, only=["gateway-64", "one-worker"])
    assert [row.key for row in rows] == ["one-worker", "gateway-64"]
    assert [system.name for system in systems] == ["one worker", "gateway, 64 sequences"]
    with pytest.raises(LoadtestError, match="no stage 'gateway-48'; there are one-worker, "):
        stages({}, {}, only=["gateway-48"])


def test_one_worker_and_recommended_come_first() -> None:
    _, systems = stages({}, {"engine": {"max_num_seqs": 24}})
    one_by_one = groups(systems, None)
    assert [len(group) for group in one_by_one] == [2, *[1] * 6]
    assert [system.name for system in one_by_one[0]] == ["one worker", "gateway, recommended"]
    # Without a GPU there is no memory to share.
    assert one_by_one[0][0].settings == {}


def test_what_runs_together_fits() -> None:
    _, systems = stages({}, {"engine": {"max_num_seqs": 24}})
    for group in groups(systems, 140.0 * 1024):
        engines = [system.settings["engine"] for system in group]
        taken = [
            system.engines * engine["gpu_memory_utilization"]
            for system, engine in zip(group, engines, strict=True)
        ]
        assert sum(taken) <= 0.9 + 1e-9
        assert all(engine["extra"]["kv_cache_memory_bytes"] > 2**30 for engine in engines)


def a_round(stage: str, load: Closed, per_s: float, queued: float | None = None, **own: Any) -> Round:
    count = 10
    records = [
        Record(str(number), "de", 0.0, 0.0, first_s=0.5, done_s=1.0 + number / 10, tokens=20)
        for number in range(count)
    ]
    name = f"{stage}: {load.in_flight} at a time"
    samples = [Sample(0.0, cores={"engine": 1.0}), Sample(0.1, cores={"engine": 2.0})]
    changes = {"name": name, "system": stage, "load": load, "elapsed_s": count / per_s, "samples": samples, **own}
    trial = a_trial(records, **changes)
    return Round(stage, trial, queued, load.in_flight)


def found(best_per_s: float = 40.0, **own: Any) -> tuple[Outcome, list[Round]]:
    rows, _ = stages({}, {}, only=["one-worker", "gateway-64-uniform", "gateway-64", "gateway-16", "recommended"])
    rounds = [
        a_round("one-worker", Closed(25), 5.0, 0.9, **own),
        a_round("one-worker", Closed(1), 4.0, 0.0),
        a_round("gateway-64-uniform", Closed(25), 60.0),
        a_round("gateway-64", Closed(25), 20.0),
        a_round("recommended", Closed(25), best_per_s),
    ]
    return outcome(rows, rounds), rounds


def findings(
    made: Outcome, rounds: list[Round], missing: dict[str, str] | None = None, *, bars: bool = False
) -> list[Finding]:
    return journeys.findings(
        made, summaries([each.trial for each in rounds], Objective()), missing or {}, bars=bars
    )


def table(made: Outcome, rounds: list[Round]) -> Table:
    return journeys.table(made, summaries([each.trial for each in rounds], Objective()))


def test_rows_stand_beside_the_reports() -> None:
    rows = {row[0]: row for row in table(*found()).rows}
    assert rows["one worker"][1:5] == ["2.2", "1.0", "1.0", "5.0"]
    assert rows["one worker"][5:] == ["1,400 / 1,900", "500 / 500", "0", "90%", "1.50 ± 0.50"]
    assert rows["gateway, recommended"][2:5] == ["7.5", "8.0", "40.0"]
    assert rows["gateway, 64 sequences"][1] == "3.5 (staging)"
    # It was not measured.
    assert rows["gateway, 16 sequences"][2:4] == ["4.9", "–"]
    held_back = table(*found(settings={"driver_was_the_limit": "It was late."}))
    assert held_back.rows[0][4] == "5.0*"


def test_a_gpu_counts_where_there_is_one() -> None:
    samples = [Sample(0.0, gpu=90.0, cores={"engine": 1.0}), Sample(0.1, gpu=0.0), Sample(0.2, gpu=90.0)]
    assert table(*found(samples=samples)).rows[0][9] == "60 ± 42 %"


@pytest.mark.parametrize(("best_per_s", "passed"), [(37.6, True), (37.4, False)])
def test_the_bar_is_what_the_reports_reached(best_per_s: float, passed: bool) -> None:
    assert [each.passed for each in findings(*found(best_per_s), bars=True)] == [passed, None, None]
    assert {each.passed for each in findings(*found(best_per_s))} == {None}


def test_a_worker_held_back_proves_nothing() -> None:
    (bar, *_) = findings(*found(settings={"driver_was_the_limit": "It was late."}), bars=True)
    assert bar.passed is False
    assert "says nothing" in bar.note


def test_findings_say_what_the_reports_said() -> None:
    said = {each.name: (each.value, each.note) for each in findings(*found())}
    assert said["one worker, time spent in queues, 25 at a time"] == ("90%", "In the reports 97 %.")
    (best,) = (value for name, value in said.items() if name.startswith("recommended"))
    assert best == ("8.00 ×", "In the reports 16.4 / 2.2 = 7.5 ×.")
    (uniform,) = (value for name, value in said.items() if "uniform" in name)
    assert uniform[0] == "3.00 ×"


def test_missing_stages_are_named() -> None:
    rows, _ = stages({}, {}, only=["one-worker", "two-workers", "gateway-16", "recommended"])
    rounds = [
        a_round("one-worker", Closed(1), 4.0),
        a_round("one-worker", Closed(25), 5.0),
        # What was cut off at a lower level stands beside nothing at a higher one.
        a_round("recommended", Closed(1), 8.0),
    ]
    made = outcome(rows, rounds)
    assert made.concurrency == 25
    missing = {"two-workers": "It ended.", "recommended": "No time."}
    told = {each.name: (each.value, each.note) for each in findings(made, rounds, missing) if not each.passed}
    assert told["two workers"] == ("missing", "It ended.")
    assert told["gateway, recommended"] == ("not under all loads", "No time.")
    shown = {row[0]: row for row in table(made, rounds).rows}
    assert shown["two workers"] == ["two workers", "2", "0.9", *["–"] * 7]
    assert shown["gateway, recommended"][3:] == ["–"] * 7


def test_queue_share_is_between_two_readings() -> None:
    assert share_in_queues((4.0, 10.0), (12.0, 20.0)) == 0.8
    assert share_in_queues((4.0, 10.0), (4.0, 10.0)) is None


# ---------------------------------------------------------------- rounds


class Played:
    """A system that takes so long for a line, without any. lines: what it was asked for, a list for each pass."""

    def __init__(self, line_s: float) -> None:
        self.line_s = line_s
        self.lines: list[list[str]] = []

    async def play(self, lines: list[Line], *, limit_s: float, stage: str = "") -> Driven:
        self.lines.append([line.text for line in lines])
        records = [Record(line.id, "de", 0.0, 0.0, 0.1, self.line_s) for line in lines]
        return Driven(0.0, self.line_s * len(lines), records, Delivered(), [])

    async def measure(self, lines: list[Line], name: str, repetition: int) -> Trial:
        driven = await self.play(lines, limit_s=1.0)
        trial = a_round("any", Closed(1), 1.0).trial
        return msgspec.structs.replace(
            trial, name=name, repetition=repetition, records=driven.records, elapsed_s=driven.elapsed_s
        )


async def said_to(monkeypatch: pytest.MonkeyPatch, line_s: float, address: Address, in_flight: int) -> Played:
    """What a system is asked for in a closed loop of two repetitions."""
    system = Played(line_s)

    @asynccontextmanager
    async def driver(_address: Address, _load: Load, **_options: Any) -> AsyncIterator[Played]:
        yield system

    async def measure(
        _running: Running, playing: Played, lines: list[Line], _load: Load, *, name: str, repetition: int, **_: Any
    ) -> Trial:
        return await playing.measure(lines, name, repetition)

    monkeypatch.setattr(journeys, "driver", driver)
    monkeypatch.setattr(journeys, "measure", measure)
    (stage,), _ = stages({}, {}, only=["recommended"])
    own = Rounds(scenario=Scenario(), round_s=10.0, repetitions=2, processes=1, say=lambda _line: None)
    running = Running("system", address, {})
    kept: list[Round] = []
    await own.closed(stage, running, in_flight, kept)
    assert [each.trial.repetition for each in kept] == [1, 2]
    return system


async def test_all_systems_get_the_same_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = await said_to(monkeypatch, 0.1, Http("http://a"), 10)
    slow = await said_to(monkeypatch, 0.25, WebSocketGateway("http://b"), 10)
    # As many as fit into a round, and those in flight at its end; the gateway at least eight turns. Nothing is
    # said twice.
    assert [len(lines) for lines in fast.lines] == [10, 40, 110, 110]
    assert [len(lines) for lines in slow.lines] == [10, 90, 90]
    for one, other in zip([fast.lines[0], *fast.lines[2:]], slow.lines, strict=True):
        shorter = min(len(one), len(other))
        assert one[:shorter] == other[:shorter]
    passes = fast.lines[:4]
    assert not any(set(one) & set(other) for one, other in itertools.combinations(map(_long, passes), 2))


def _long(texts: list[str]) -> set[str]:
    """Without what people say again and again."""
    return {text for text in texts if len(text.split()) > 8}


class Scripted(Rounds, frozen=True, kw_only=True):
    """Rounds that are over at once. breaks: (key of a stage, load) at which a system cannot go on. stops: (key,
    load) that never ends."""

    breaks: tuple[str, float] | None = None
    stops: tuple[str, float] | None = None

    async def closed(self, stage: Stage, running: Running, in_flight: int, played: list[Round]) -> None:
        if (stage.key, in_flight) == self.breaks:
            raise LoadtestError("It ended.")
        if (stage.key, in_flight) == self.stops:
            await asyncio.Event().wait()
        played.append(a_round(stage.key, Closed(in_flight), 10.0))


async def travel(
    monkeypatch: pytest.MonkeyPatch, *, refuses: str = "", limit_s: float = 60.0, **scripted: Any
) -> tuple[dict[str, list[Load]], dict[str, str]]:
    """Which loads each of three stages was measured under, and what is missing. refuses: a system's name."""

    @asynccontextmanager
    async def start(system: System, _say: object) -> AsyncIterator[Running]:
        if system.name == refuses:
            raise LoadtestError("There is no memory for it.")
        yield Running(system.name, Http("http://a"), {})

    monkeypatch.setattr(journeys, "_start", start)
    rows, systems = stages({}, {}, only=["one-worker", "two-workers", "recommended"])
    rounds = Scripted(
        scenario=Scenario(), round_s=1, repetitions=1, processes=1, say=lambda _line: None, **scripted
    )
    played, missing = await journeys.journey(rows, groups(systems, None), [1, 2], rounds, limit_s)
    loads: dict[str, list[Load]] = {}
    for each in played:
        loads.setdefault(each.stage, []).append(each.trial.load)
    return loads, missing


BOTH: list[Load] = [Closed(1), Closed(2)]


@pytest.mark.parametrize(
    ("refuses", "key"),
    [("one worker", "one-worker"), ("two workers", "two-workers"), ("gateway, recommended", "recommended")],
)
async def test_an_unstartable_stage_leaves_the_others(
    refuses: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads, missing = await travel(monkeypatch, refuses=refuses)
    assert missing == {key: "There is no memory for it."}
    assert loads == {each: BOTH for each in ("one-worker", "two-workers", "recommended") if each != key}


async def test_a_broken_system_keeps_its_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    loads, missing = await travel(monkeypatch, breaks=("one-worker", 2))
    assert missing == {"one-worker": "It ended."}
    assert loads == {"one-worker": [Closed(1)], "two-workers": BOTH, "recommended": BOTH}


@swiftly
async def test_the_time_limit_keeps_finished_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    loads, missing = await travel(monkeypatch, stops=("two-workers", 2), limit_s=0.2)
    assert loads == {"one-worker": BOTH, "recommended": BOTH, "two-workers": [Closed(1)]}
    assert missing.keys() == {"two-workers"}
    assert all("--time-limit-s" in why for why in missing.values())


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
    rows = {row.key: row for row in msgspec.convert(made.details, Outcome).rows}
    assert list(rows) == ["one-worker", "recommended"]
    assert [list(row.points) for row in rows.values()] == [[2, 6], [2, 6]]
    assert not any(record.failed for trial in made.trials for record in trial.records)
    # Each load once.
    assert len({(trial.name, trial.repetition) for trial in made.trials}) == len(made.trials) == 4
    queued = {key: row.points[6].queued or 0.0 for key, row in rows.items()}
    assert queued["one-worker"] > 0.5
    assert queued["recommended"] < queued["one-worker"]
    best, one = (
        next(trial for trial in made.trials if trial.name == rows[key].points[6].trial)
        for key in ("recommended", "one-worker")
    )
    assert requests_per_s(best) > requests_per_s(one)
    # The two that the bar is about take turns.
    told = [line.partition(" at a time")[0] for line in said if line.endswith("at a time, repetition 1")]
    assert told == [*("one worker: 2", "gateway, recommended: 2"), *("one worker: 6", "gateway, recommended: 6")]
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

    monkeypatch.setattr(journeys, "_start", endless)
    given = parsed(JOURNEY, "--out", str(tmp_path), "--engine", "simulated")
    given.time_limit_s = 0.05
    with pytest.raises(LoadtestError, match=r"Not a single round could be played.*--time-limit-s"):
        await JOURNEY.run(given, lambda _line: None)
