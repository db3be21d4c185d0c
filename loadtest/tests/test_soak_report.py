"""A fixed result as tables, JSON and plot."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from loadtest.soak.faults import Fault, FaultKind
from loadtest.soak.report import results
from loadtest.soak.result import Incarnation, Memory, Sample, SoakPlan, SoakResult, Verdict
from loadtest.tests.commands import table_of, write
from loadtest.trial.report import read

# ---------------------------------------------------------------- the report


def result() -> SoakResult:
    verdict = Verdict(said=1_200, accepted=1_200, owed=5_000, delivered=5_000, failed={"cancelled": 3})
    return SoakResult(
        plan=SoakPlan(minutes=2, sessions=20),
        settings={"GATEWAY__LIMITS__KEEP_S": "60"},
        load_s=120.0,
        verdict=verdict,
        faults=[
            Fault(FaultKind.ABORT, 5.0, 3),
            Fault(FaultKind.ABORT, 9.0, 4),
            Fault(FaultKind.ENGINE_KILL, 65.0, 0, 0.0, 31.25, "12 translations under way"),
        ],
        memory=[Incarnation(1, Memory(140.0, 160.0, 141.0), Memory(900.0, 950.0, 901.0))],
        gauges={"gateway_sessions": 0.0, "gateway_meetings": 0.0},
        exit_status=0,
        tracebacks=0,
        unquiet=None,
        samples=[
            Sample(0.0, 140.0, 900.0, 0.0, 0.0, 0.0, 0),
            Sample(5.0, 141.0, 900.0, None, None, None, 200),
            Sample(10.0, 142.0, 900.0, 20.0, 1.0, 3.0, 400),
        ],
    )


def table(of: SoakResult) -> str:
    return table_of(results(of), "soak")


def test_a_run_that_went_well_says_so() -> None:
    text = table(result())
    assert "| every promise | kept | kept | passed |" in text
    for line in (
        "| accepted | 1,200 |",
        "| **lost** | **0** |",
        "| `translation.failed` | `cancelled` 3 |",
        "| abort | 2 |  | connection reset |",
        "| engine killed | 1 | 31.2, 31.2 | SIGKILL of the engine's process |",
        "| engine killed | 1:05 |  | 31.2 | 12 translations under way |",
        "| gateway process 1 | 140 | 160 | 141 |",
        "| `gateway_sessions` | 0 |",
    ):
        assert line in text
    assert "600 accepted; 2.0 minutes of load" in text
    assert not list(result().failures())


def test_a_run_that_did_not_says_what_is_wrong() -> None:
    good = result()
    bad = replace(
        good,
        verdict=replace(good.verdict, lost=2, duplicates=1, problems=["lost: ben never got it"]),
        gauges={"gateway_sessions": 3.0, "gateway_meetings": None},
        exit_status=-9,
        unquiet="nobody was settled",
    )
    assert list(bad.failures()) == [
        "lost: 2",
        "duplicates: 1",
        "gateway_sessions is 3 at the end",
        "gateway_meetings is missing at the end",
        "the gateway ended with status -9",
        "nobody was settled",
    ]
    text = table(bad)
    assert "| every promise | 6 not kept | kept | FAILED | lost: 2; duplicates: 1;" in text
    assert "- lost: ben never got it" in text


def test_a_run_with_workers_tells_how_soon_all_was_well_again() -> None:
    killed = [
        Fault(FaultKind.STORE_KILL, at_s, 0, 0.0, back_s) for at_s, back_s in ((10, 0.5), (20, 1.5), (30, 4))
    ]
    frozen = Fault(FaultKind.WORKER_STOP, 40.0, 2, 27.0, 3.0, "worker 2")
    good = replace(
        result(),
        plan=SoakPlan(minutes=2, sessions=20, workers=3),
        faults=[*killed, frozen],
        memory=[Incarnation(1, Memory(300.0, 320.0, 301.0), Memory(900.0), Memory(12.0, 14.0, 13.0))],
    )
    assert not list(good.failures())
    for line in (
        "| store killed | 3 | 1.5, 4.0 | SIGKILL of the store; repaired once a final is accepted |",
        "| worker stopped | 0:40 | 27 | 3.0 | worker 2 |",
        "| gateway with its workers, 1 | 300 | 320 | 301 |",
        "| its store | 12 | 14 | 13 |",
    ):
        assert line in table(good)
    late = replace(good, faults=[replace(killed[0], recovered_s=5.5), replace(frozen, recovered_s=None)])
    assert list(late.failures()) == [
        "store killed at 10 s, back after 5.5 s, not 5 s",
        "worker stopped at 40 s, not back",
    ]


def test_a_run_without_a_word_proves_nothing() -> None:
    good = result()
    assert list(replace(good, verdict=replace(good.verdict, accepted=0)).failures()) == ["nothing was accepted"]


def test_the_result_comes_back_from_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Drawing takes seconds; `test_report` holds that what there is to draw is drawn.
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write(results(result()), "soak", tmp_path)
    assert msgspec.convert(read(tmp_path).details, SoakResult) == result()


def test_the_run_is_drawn_over_time_with_its_faults() -> None:
    charts = {chart.title: chart for chart in results(result()).charts}
    assert list(charts["Memory of the gateway"].series[0].y) == [140.0, 141.0, 142.0]
    # While the gateway cannot be asked, there is a gap.
    assert list(charts["Translations in the engine"].series[0].y) == [0.0, None, 3.0]
    # What concerns one client alone is left out.
    assert [(mark.label, mark.at) for mark in charts["Translations in the engine"].marks] == [
        ("engine killed", 65 / 60)
    ]
