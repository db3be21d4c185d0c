"""`run`: what its options mean, what it finds, and whole runs against a gateway with a simulated engine."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from gateway.engines.simulated import Script
from loadtest.results import LoadtestError
from loadtest.run import command
from loadtest.run.command import RUN
from loadtest.run.findings import IDLE, Held, added_ms, findings
from loadtest.run.plan import RunPlan, said, sessions
from loadtest.run.run import run
from loadtest.talk import replay
from loadtest.talk.scenario import Scenario, meetings_lines
from loadtest.trial import report
from loadtest.trial.values import (
    Delivered,
    Finding,
    InMeetings,
    Line,
    Objective,
    Partial,
    Record,
    Trial,
)
from tests.gateways import running

# ---------------------------------------------------------------- options


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    RUN.add(parser)
    return parser.parse_args(["--out", "folder", *arguments])


def test_without_options_ten_natural_meetings_are_held_with_partials() -> None:
    plan = command.plan(options())
    assert plan.scenario == Scenario(targets=("ja", "es"), meetings=10, partial_every_s=0.3)
    assert (plan.file, plan.url, plan.seconds, plan.readers, plan.idle) == (None, None, None, 0, 0)
    assert not plan.simulated


def test_options_reach_the_plan() -> None:
    given = ["--scenario", "uniform", "--meetings", "3", "--people", "4", "--targets", "de,fr,de", "--no-partials"]
    plan = command.plan(options(*given, "--engine", "simulated", "--seconds", "5", "--idle", "7", "--seed", "9"))
    assert plan.scenario == Scenario(shape="uniform", seed=9, targets=("de", "fr"), meetings=3, people=4)
    assert (plan.seconds, plan.idle, plan.simulated) == (5.0, 7, True)


def test_a_scenario_that_is_no_file_is_told() -> None:
    with pytest.raises(LoadtestError, match="there is no file nowhere"):
        command.plan(options("--scenario", "nowhere.jsonl"))


# ---------------------------------------------------------------- plans


def plan(**changes: Any) -> RunPlan:
    settings = {"engine": {"kind": "simulated"}}
    return replace(RunPlan(settings=settings, objective=Objective()), **changes)


def test_everybody_greets_before_the_meetings_in_all_languages() -> None:
    scenario = Scenario(meetings=2, people=3, targets=("de", "ja"))
    what = said(plan(scenario=scenario, seconds=5.0, readers=4, idle=10))
    assert what.lines == meetings_lines(scenario, 5.0)
    assert [(line.meeting, line.speaker) for line in what.greetings] == [
        (f"meeting-{meeting}", f"speaker-{person}") for meeting in (1, 2) for person in (1, 2, 3)
    ]
    assert {line.targets for line in what.greetings} == {("de", "ja")}
    assert len({line.id for line in (*what.greetings, *what.lines)}) == 6 + len(what.lines)
    assert what.load == InMeetings(meetings=2, speakers=6, per_s=what.load.per_s, readers=4, idle=10)
    assert sessions(what.load) == 6 + 2 * 4 + 10
    assert what.workload == "natural, 2 meetings of 3 for 5 s, en to de, ja, seed 1, finals alone"


def test_a_file_is_replayed_with_or_without_its_partials(tmp_path: Path) -> None:
    file = tmp_path / "weekly.jsonl"
    lines = [
        Line("1", "Hallo.", "de", ("en",), 0.5, "m", "Ann", (Partial(0.2, "Hal"),)),
        Line("2", "Hello.", "en", ("de",), 1.0, "m", "Bob"),
        Line("3", "Bye.", "en", ("de",), 9.0, "m", "Cid"),
    ]
    replay.write(file, lines)
    whole = said(plan(file=file))
    assert whole.lines == lines
    assert whole.load == InMeetings(meetings=1, speakers=3, per_s=0.33)
    # Nobody greets in the language that they speak themselves, and both are read nevertheless.
    spoken = [(line.source, line.targets) for line in whole.greetings]
    assert spoken == [("de", ("en",)), ("en", ("de",)), ("en", ("de",))]
    begun = said(plan(file=file, partials=False, seconds=5.0))
    assert begun.lines == [replace(lines[0], partials=()), lines[1]]
    assert begun.workload == "weekly.jsonl, 2 lines, finals alone"


def test_before_a_script_nobody_has_to_wait_and_the_options_have_the_last_word() -> None:
    own = plan(settings={"engine": {"kind": "simulated", "script": {"token_s": 0.01}}, "max_waiting": 7})
    settings = own.gateway_settings(InMeetings(meetings=1, speakers=6, per_s=1.0, readers=20_000))
    assert settings["max_sessions"] > 20_006
    assert settings["max_waiting"] == 7
    assert settings["engine"] == {"kind": "simulated", "script": {"token_s": 0.01, "max_running": 100_000}}
    real = plan(settings={"engine": {"kind": "vllm"}})
    assert real.gateway_settings(InMeetings(1, 6, 1.0)) == {"max_sessions": 10_000, "engine": {"kind": "vllm"}}


# ---------------------------------------------------------------- findings

LINES = [
    Line("a", "one two three", "en", ("de",), 1.0),
    Line("b", "one", "en", ("de",), 2.0, partials=(Partial(1.5, "o"),)),
]
SCRIPT = Script(first_token_s=0.1, token_s=0.01)


def record(line: str, due_s: float, first_s: float | None, done_s: float | None, **more: Any) -> Record:
    return Record(line, "de", due_s, due_s, first_s, done_s, **more)


def trial(records: list[Record], **more: Any) -> Trial:
    made = Trial(
        name="meetings",
        system="gateway",
        settings={},
        workload="",
        load=InMeetings(meetings=2, speakers=6, per_s=1.0, readers=1),
        repetition=1,
        began="2026-01-01T00:00:00Z",
        elapsed_s=10.0,
        delivered=Delivered(1_000, 50_000, 3, [10.0, 20.0, 30.0]),
        clients=[],
        cpu_s={"serving": 0.5},
        memory_mib=80.0,
        samples=[],
        records=records,
    )
    return replace(made, **more)


def by_name(found: list[Finding]) -> dict[str, Finding]:
    assert len({each.name for each in found}) == len(found)
    return {each.name: each for each in found}


def test_what_is_added_is_what_the_script_does_not_take() -> None:
    # Four words with the language before them: the first after 100 ms, three more after 10 ms each.
    first_ms, whole_ms = added_ms([record("a", 1.0, 1.103, 1.137)], LINES, SCRIPT)
    assert first_ms == [pytest.approx(3)]
    assert whole_ms == [pytest.approx(7)]


def test_what_was_translated_before_the_last_word_and_what_failed_says_nothing_of_the_script() -> None:
    records = [record("b", 2.0, 2.01, 2.02), record("a", 1.0, None, None, failed="x"), record("c", 0, 1.0, 2.0)]
    assert added_ms(records, LINES, SCRIPT) == ([], [])


def test_beside_partials_nothing_is_said_of_the_script() -> None:
    records = [record("a", 1.0, 1.103, 1.137), record("b", 2.0, 2.01, 2.02)]
    found = by_name(findings([trial(records)], LINES, Held(sessions=8, idle=0), {}))
    assert not any("script" in name for name in found)


def test_findings_of_meetings_and_idle_sessions() -> None:
    held = Held(sessions=108, idle=100, before_mib=40.0, idle_mib=44.0, greeted_mib=44.5, after_mib=45.0)
    idle = trial([], name=IDLE, cpu_s={"serving": 0.2})
    settings = {"engine": {"script": msgspec.to_builtins(SCRIPT)}}
    found = by_name(findings([idle, trial([record("a", 1.0, 1.103, 1.137)])], LINES, held, settings))
    assert {name: each.value for name, each in found.items()} == {
        "sessions held": "108",
        "CPU of idle sessions": "0.020 cores",
        "memory of an idle session": "41.0 KiB",
        "memory of a session in a meeting": "64.0 KiB",
        "memory that stays of a translation": "512.0 KiB",
        "frames delivered per second of one core": "2,000",
        "whole translation at all readers": "p50 20.0 ms, p99 30.0 ms",
        "added to the script's first token": "p50 3.0 ms, p99 3.0 ms",
        "added to the script's whole translation": "p50 7.0 ms, p99 7.0 ms",
    }
    assert found["sessions held"].passed
    assert found["frames delivered per second of one core"].note == "100 frames/s of 50 bytes with 0.05 cores"


def test_sessions_that_were_lost_miss_the_bar() -> None:
    lost = record("session reader 1 of m", 0.0, None, None, failed="closed with 4008")
    found = by_name(findings([trial([lost])], LINES, Held(sessions=8, idle=0), None))
    assert found["sessions held"] == Finding(
        "sessions held", "7", "8", False, "0 idle, 8 in meetings; lost: closed with 4008"
    )


def test_of_somebody_elses_gateway_neither_memory_nor_cpu_is_known() -> None:
    found = by_name(findings([trial([], cpu_s={})], LINES, Held(sessions=8, idle=0), None))
    assert set(found) == {"sessions held", "frames delivered per second", "whole translation at all readers"}


# ---------------------------------------------------------------- whole runs


async def test_a_run_of_nothing_is_refused() -> None:
    with pytest.raises(LoadtestError, match="neither a meeting nor an idle session"):
        await run(plan(scenario=Scenario(meetings=0)), "command", str)


@pytest.mark.slow
async def test_a_run_against_a_gateway_that_runs_already(tmp_path: Path) -> None:
    steps: list[str] = []
    async with running() as gateway:
        chosen = plan(
            url=f"http://127.0.0.1:{gateway.port}",
            scenario=Scenario(meetings=3, people=2, targets=("de", "ja")),
            seconds=4.0,
            readers=1,
            idle=5,
            processes=2,
            repetitions=2,
            allow_bottleneck=True,
        )
        result = await run(chosen, "command", steps.append)
        report.write(result, tmp_path)
    assert {each.name for each in result.findings} >= {"sessions held", "whole translation at all readers"}
    assert report.passed(result)
    assert [(each.name, each.repetition) for each in result.trials] == [
        (IDLE, 1),
        ("meetings", 1),
        ("meetings", 2),
    ]
    for each in result.trials[1:]:
        assert not any(record.failed for record in each.records)
        assert len(each.records) == 2 * len(meetings_lines(chosen.scenario, 4.0))
        # Two speakers and a reader of each meeting read one language each.
        assert each.delivered.finals == 3 * len(meetings_lines(chosen.scenario, 4.0))
    assert any("holding 5 idle sessions" in step for step in steps)
    assert (tmp_path / "report.html").exists()


@pytest.mark.slow
async def test_a_run_with_a_gateway_of_its_own_knows_memory_and_cpu(tmp_path: Path) -> None:
    engine = {"kind": "simulated", "model": "/somewhere/model-7b"}
    chosen = plan(settings={"engine": engine}, scenario=Scenario(meetings=0), idle=20, seconds=1.0)
    result = await run(chosen, "command", str)
    report.write(result, tmp_path)
    # Where the model lies is nobody's business.
    assert result.settings["engine"]["model"] == result.trials[0].settings["engine"]["model"] == "model-7b"
    assert "/somewhere" not in (tmp_path / "result.json").read_text()
    assert set(by_name(result.findings)) == {"sessions held", "CPU of idle sessions", "memory of an idle session"}
    assert result.settings["engine"]["script"]["max_running"] == 100_000
    assert report.passed(result)
    assert "sessions held" in report.table(result)
