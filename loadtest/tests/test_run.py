"""`run`: what its options mean, what it finds, and whole runs against a gateway with a simulated engine."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from loadtest.results import LoadtestError
from loadtest.run import RUN, Held, RunPlan, findings, run, run_plan, said, sessions
from loadtest.talk.scenario import Scenario, meetings_lines
from loadtest.tests.made_up_trials import a_trial, parsed, table_of, write, write_talk
from loadtest.trial import report
from loadtest.trial.values import (
    Delivered,
    Finding,
    InMeetings,
    Line,
    Objective,
    Partial,
    Record,
    Results,
    Trial,
    WebSocketGateway,
)
from tests.clocks import swiftly
from tests.gateways import running


def options(*arguments: str) -> argparse.Namespace:
    return parsed(RUN, "--out", "folder", *arguments)


def test_the_default_is_ten_natural_meetings() -> None:
    plan = run_plan(options())
    assert plan.scenario == Scenario(targets=("ja", "es"), meetings=10, partial_every_s=0.3)
    assert (plan.file, plan.url, plan.seconds, plan.readers, plan.idle) == (None, None, None, 0, 0)
    assert not plan.simulated


def test_options_reach_the_plan() -> None:
    given = "--scenario uniform --meetings 3 --people 4 --targets de,fr,de --partial-every-s 0".split()  # noqa: SIM905
    plan = run_plan(
        options(*given, "--engine", "simulated", "--seconds", "5", "--idle", "7", "--seed", "9", "--workers", "4")
    )
    assert plan.scenario == Scenario(shape="uniform", seed=9, targets=("de", "fr"), meetings=3, people=4)
    assert (plan.seconds, plan.idle, plan.simulated, plan.workers) == (5.0, 7, True, 4)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (["--scenario", "nowhere.jsonl"], "there is no file nowhere"),
        (["--scenario", "FILE", "--people", "5"], "--people: "),
        (["--scenario", "FILE", "--meetings", "3"], "--meetings: "),
        (["--scenario", "FILE", "--source", "de", "--targets", "en"], "--source, --targets: "),
        (["--url", "http://127.0.0.1:1", "--max-num-seqs", "64"], "--max-num-seqs: "),
        (["--url", "http://127.0.0.1:1", "--workers", "2"], "--workers: "),
        (["--url", "http://127.0.0.1:1", "--config", "no.toml", "--set", "a=1"], "--config, --set: "),
    ],
)
def test_options_that_would_do_nothing_are_refused(tmp_path: Path, given: list[str], complaint: str) -> None:
    file = tmp_path / "weekly.jsonl"
    write_talk(file, LINES)
    with pytest.raises(LoadtestError, match=complaint):
        run_plan(options(*(str(file) if each == "FILE" else each for each in given)))


def test_a_file_allows_other_options(tmp_path: Path) -> None:
    file = tmp_path / "weekly.jsonl"
    write_talk(file, LINES)
    chosen = run_plan(options("--scenario", str(file), "--url", "http://127.0.0.1:1", "--readers", "3"))
    assert (chosen.file, chosen.readers) == (file, 3)


# ---------------------------------------------------------------- plans


def plan(**changes: Any) -> RunPlan:
    settings = {"engine": {"kind": "simulated"}}
    return replace(RunPlan(settings=settings, objective=Objective()), **changes)


def test_everybody_greets_in_all_languages() -> None:
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


def test_a_file_is_replayed_with_its_partials(tmp_path: Path) -> None:
    file = tmp_path / "weekly.jsonl"
    lines = [
        Line("1", "Hallo.", "de", ("en",), 0.5, "m", "Ann", (Partial(0.0, "Hal"),)),
        Line("2", "Hello.", "en", ("de",), 1.0, "m", "Bob"),
        Line("3", "Bye.", "en", ("de",), 9.0, "m", "Cid"),
    ]
    write_talk(file, lines)
    whole = said(plan(file=file))
    assert whole.lines == lines
    assert whole.load == InMeetings(meetings=1, speakers=3, per_s=0.33)
    # Nobody greets in the language that they speak themselves, and both are read nevertheless.
    spoken = [(line.source, line.targets) for line in whole.greetings]
    assert spoken == [("de", ("en",)), ("en", ("de",)), ("en", ("de",))]
    begun = said(plan(file=file, seconds=5.0))
    assert begun.lines == lines[:2]
    assert begun.workload == "weekly.jsonl, 2 lines in 1 s, partials and finals"


def test_silent_meetings_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "weekly.jsonl"
    write_talk(file, [Line("1", "Hello.", "en", ("de",), 5.0, partials=(Partial(1.0, "Hel"),))])
    with pytest.raises(LoadtestError, match="Nothing is said in the first 4 s"):
        said(plan(file=file, seconds=4.0))
    with pytest.raises(LoadtestError, match=r"Nothing is said in the first 0\.01 s"):
        said(plan(seconds=0.01))


def test_talk_must_fit_the_time_limit(tmp_path: Path) -> None:
    file = tmp_path / "weekly.jsonl"
    write_talk(file, [Line("1", "Hello.", "en", ("de",), 5.0), Line("2", "Bye.", "en", ("de",), 105.5)])
    with pytest.raises(LoadtestError, match=r"takes 10\d s, and everything may take 100 s"):
        said(plan(file=file, time_limit_s=100.0))
    assert said(plan(file=file, time_limit_s=101.0)).lines


def test_a_script_has_no_queue() -> None:
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


def record(line: str, due_s: float, first_s: float | None, done_s: float | None, **more: Any) -> Record:
    return Record(line, "de", due_s, due_s, first_s, done_s, **more)


def trial(records: list[Record], **more: Any) -> Trial:
    load = InMeetings(meetings=2, speakers=6, per_s=1.0, readers=1)
    delivered = Delivered(1_000, 50_000, 3, [10.0, 20.0, 30.0])
    return a_trial(records, **{"load": load, "delivered": delivered, "cpu_s": {"serving": 0.5}, **more})


def by_name(found: list[Finding]) -> dict[str, Finding]:
    assert len({each.name for each in found}) == len(found)
    return {each.name: each for each in found}


def test_findings_of_meetings_and_idle_sessions() -> None:
    held = Held(sessions=228, idle=100, before_mib=40.0, idle_mib=44.0, greeted_mib=52.0, after_mib=53.0)
    held = replace(held, idle_s=10.0, idle_cpu_s=0.2)
    meetings = trial([record("a", 1.0, 1.103, 1.137)] * 128)
    found = by_name(findings([meetings], held))
    assert {name: each.value for name, each in found.items()} == {
        "sessions held": "228",
        "translations that failed": "0 of 128",
        "CPU of idle sessions": "0.020 cores",
        "memory of an idle session": "41.0 KiB",
        "memory of a session in a meeting": "64.0 KiB",
        "memory that stays of a translation": "8.0 KiB",
        "frames delivered per second of one core": "2,000",
        "whole translation at all readers": "p50 20.0 ms, p99 30.0 ms",
    }
    assert found["sessions held"].passed
    assert found["frames delivered per second of one core"].note == "100 frames/s of 50 bytes with 0.05 cores"


def test_few_sessions_have_no_weight() -> None:
    held = Held(sessions=190, idle=95, before_mib=40.0, idle_mib=44.0, greeted_mib=52.0, after_mib=53.0)
    few = [trial([record("a", 1.0, 1.1, 1.2)] * 99)]
    assert not [name for name in by_name(findings(few, held)) if "memory" in name]


def test_sessions_that_were_lost_miss_the_bar() -> None:
    lost = {"reader 1": "closed with 4008", "reader 2": "closed with 1012", "reader 3": "closed with 4008"}
    meetings = trial([record("a", 1.0, 1.1, 1.2)])
    found = by_name(findings([meetings], Held(sessions=8, idle=0, lost=lost)))
    assert found["sessions held"] == Finding(
        "sessions held", "5", "8", False, "0 idle, 8 in meetings; lost: 2 × closed with 4008, 1 × closed with 1012"
    )


def test_unopened_sessions_were_not_held() -> None:
    found = by_name(findings([], Held(sessions=108, idle=100, idle_s=1.0)))
    assert (found["sessions held"].value, found["sessions held"].passed) == ("100", False)


def test_a_foreign_gateways_costs_are_unknown() -> None:
    foreign = trial([record("a", 1.0, 1.1, 1.2)], cpu_s={})
    assert set(by_name(findings([foreign], Held(sessions=8, idle=0)))) == {
        "sessions held",
        "translations that failed",
        "frames delivered per second",
        "whole translation at all readers",
    }


# ---------------------------------------------------------------- whole runs


async def test_a_run_of_nothing_is_refused() -> None:
    with pytest.raises(LoadtestError, match="neither a meeting nor an idle session"):
        await run(plan(scenario=Scenario(meetings=0)), str)


class Acted:
    """A system that is there at once, whose meetings go as they are told: each a trial, an error, or no end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *outcomes: Trial | Exception | None) -> None:
        self._outcomes = iter(outcomes)
        self.endless = asyncio.Event()
        for name in ("existing", "driver"):
            monkeypatch.setattr(f"loadtest.run.{name}", self._there)
        monkeypatch.setattr("loadtest.run.measure", self._measure)
        monkeypatch.setattr("loadtest.run._SETTLE_S", 0.0)

    address, pid = WebSocketGateway("http://127.0.0.1:1"), None

    @asynccontextmanager
    async def _there(self, *_arguments: object, **_named: object) -> AsyncIterator[Acted]:
        yield self

    async def play(self, _lines: list[Line], **_named: object) -> None:
        pass

    async def _measure(self, *_arguments: object, **_named: object) -> Trial:
        match next(self._outcomes):
            case Trial() as finished:
                return finished
            case None:
                self.endless.set()
                await asyncio.Event().wait()
                raise AssertionError
            case error:
                raise error


def held_elsewhere(**changes: Any) -> RunPlan:
    return plan(url="http://127.0.0.1:1", scenario=Scenario(people=2), repetitions=3, **changes)


FINISHED = trial([record("a", 1.0, 1.1, 1.2)])


def assert_cut_short(found: Results, why: str, finished: int = 1) -> None:
    assert found.findings[0] == Finding("trials finished", str(finished), "3", False, why)
    assert len(found.trials) == finished
    assert not report.passed(found)


async def test_an_error_keeps_finished_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    Acted(
        monkeypatch, FINISHED, replace(FINISHED, repetition=2), LoadtestError("meetings: no line was translated.")
    )
    assert_cut_short(await run(held_elsewhere(), str), "meetings: no line was translated.", finished=2)


@swiftly
async def test_the_time_limit_leaves_what_was_finished(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Acted(monkeypatch, FINISHED, None)
    file = tmp_path / "weekly.jsonl"
    write_talk(file, LINES[:1])
    chosen = held_elsewhere(file=file, time_limit_s=0.5)
    assert_cut_short(await run(chosen, str), "There was no time for all of it (--time-limit-s).")


async def test_an_interruption_leaves_what_was_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    acted = Acted(monkeypatch, FINISHED, None)
    task = asyncio.ensure_future(run(held_elsewhere(), str))
    await acted.endless.wait()
    task.cancel()
    assert_cut_short(await task, "It was interrupted.")
    assert not task.cancelling()


async def test_without_anything_finished_there_is_no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    Acted(monkeypatch, LoadtestError("It broke."))
    with pytest.raises(LoadtestError, match=r"It broke\."):
        await run(held_elsewhere(), str)
    acted = Acted(monkeypatch, None)
    task = asyncio.ensure_future(run(held_elsewhere(), str))
    await acted.endless.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_lost_session_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = record("session reader 1 of m", 0.0, None, None, failed="closed with 4008")
    told = [trial([lost, *FINISHED.records], repetition=repetition) for repetition in (1, 2, 3)]
    Acted(monkeypatch, *told)
    found = await run(held_elsewhere(readers=1), str)
    assert by_name(found.findings)["sessions held"].value == "2"
    assert by_name(found.findings)["translations that failed"].value == "0 of 3"
    assert all(each.records == FINISHED.records for each in found.trials)
    assert not report.passed(found)


@pytest.mark.slow
async def test_idle_sessions_can_be_lost() -> None:
    async with running() as gateway:

        async def lose(step: str) -> None:
            if step.startswith("holding"):
                await gateway.gateway.stream.close_all(1.0)

        async def held_for(seconds: float) -> Finding:
            chosen = plan(
                url=f"http://127.0.0.1:{gateway.port}",
                scenario=Scenario(meetings=0),
                idle=5,
                seconds=seconds,
                processes=2,
            )
            async with asyncio.TaskGroup() as tasks:
                found = await run(chosen, lambda step: tasks.create_task(lose(step)))
            [held] = found.findings
            return held

        seconds = 1.0
        # Longer each time, until both processes have had the time to notice.
        while (held := await held_for(seconds)).value != "0":
            seconds *= 2
    assert not held.passed
    assert "5 × closed with 1012" in held.note


@pytest.mark.slow
async def test_a_run_against_a_running_gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loadtest.run._SETTLE_S", 0.05)
    steps: list[str] = []
    async with running() as gateway:
        chosen = plan(
            url=f"http://127.0.0.1:{gateway.port}",
            scenario=Scenario(meetings=3, people=2, targets=("de", "ja")),
            seconds=2.0,
            readers=1,
            idle=5,
            processes=2,
            repetitions=2,
            allow_bottleneck=True,
        )
        result = await run(chosen, steps.append)
        write(result, "run", tmp_path)
    assert {each.name for each in result.findings} >= {"sessions held", "whole translation at all readers"}
    assert report.passed(result)
    assert [(each.name, each.repetition) for each in result.trials] == [("meetings", 1), ("meetings", 2)]
    for each in result.trials:
        assert not any(record.failed for record in each.records)
        assert len(each.records) == 2 * len(meetings_lines(chosen.scenario, 2.0))
        # Two speakers and a reader of each meeting read one language each.
        assert each.delivered.finals == 3 * len(meetings_lines(chosen.scenario, 2.0))
    assert any("holding 5 idle sessions" in step for step in steps)
    assert (tmp_path / "table.md").exists()


@pytest.mark.slow
async def test_an_own_gateways_costs_are_known(tmp_path: Path) -> None:
    engine = {"kind": "simulated", "model": "/somewhere/model-7b"}
    chosen = plan(settings={"engine": engine}, scenario=Scenario(meetings=0), idle=100, seconds=1.0)
    result = await run(chosen, str)
    written = write(result, "run", tmp_path)
    # A report does not tell where the model lies.
    assert result.settings["engine"]["model"] == "model-7b"
    assert "/somewhere" not in written
    assert set(by_name(result.findings)) == {"sessions held", "CPU of idle sessions", "memory of an idle session"}
    assert result.settings["engine"]["script"]["max_running"] == 100_000
    assert report.passed(result)
    assert "sessions held" in table_of(result)
