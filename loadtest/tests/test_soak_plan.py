"""Who is there and what breaks when, the same for the same seed; and what a soak reports."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from demo_model import LANGUAGES
from loadtest.results import LoadtestError
from loadtest.soak.faults import OF_ENGINE, OF_EVERYBODY, OF_WORKERS, Fault, FaultKind, population, schedule
from loadtest.soak.report import Incarnation, Memory, Sample, SoakPlan, SoakResult, Verdict, results
from loadtest.soak.run import SOAK, soak_plan
from loadtest.tests.made_up_trials import parsed, read, table_of, write


@pytest.mark.parametrize("sessions", [12, 20, 57, 200])
def test_there_is_a_seat_for_every_session(sessions: int) -> None:
    seats = population(sessions, 240, 1)
    assert [seat.number for seat in seats] == list(range(sessions))
    assert sum(seat.utterances_per_s for seat in seats) * 60 == pytest.approx(240)
    for seat in seats:
        assert set(seat.reads) <= set(LANGUAGES)
        assert 1 <= len(set(seat.reads)) == len(seat.reads) <= (3 if seat.process else 2)
        assert (seat.speaks is None) == (seat.utterances_per_s == 0)


def test_meetings_are_of_different_sizes() -> None:
    seats = population(200, 240, 1)
    sizes = Counter(seat.meeting for seat in seats)
    assert {2, 6} < set(sizes.values())
    assert sizes["plenum"] > 50
    # Those who speak in the plenum are never stopped.
    assert {seat.process for seat in seats} == {0, 1, 2}
    assert all(seat.process == 0 for seat in seats if seat.meeting == "plenum" and seat.speaks)


def test_the_same_seed_gives_the_same_run() -> None:
    runs = []
    for seed in (1, 1, 2):
        seats = population(50, 100, seed)
        runs.append((seats, schedule(seats, 600, seed, keep_s=60, light_every_s=4)))
    assert runs[0] == runs[1] != runs[2]


def test_half_an_hour_has_every_fault() -> None:
    faults = schedule(population(200, 240, 1), 1_800, 1, keep_s=60, light_every_s=4)
    counts = Counter(fault.kind for fault in faults)
    assert set(counts) == set(FaultKind) - {*OF_WORKERS}
    assert counts[FaultKind.ENGINE_KILL] >= 4
    assert (counts[FaultKind.RESTART], counts[FaultKind.ENGINE_STOP], counts[FaultKind.CLIENT_STOP]) == (2, 1, 3)
    assert [fault.began_s for fault in faults] == sorted(fault.began_s for fault in faults)
    # What happens to everybody is far apart, and not at the end.
    times = [fault.began_s for fault in faults if fault.kind in OF_EVERYBODY]
    assert min(after - before for before, after in pairwise(times)) > 100
    assert times[-1] < 1_800 - 90


def test_a_short_run_has_the_important_faults() -> None:
    faults = schedule(population(20, 240, 1), 120, 1, keep_s=60, light_every_s=4)
    times = {fault.kind: fault.began_s for fault in faults if fault.kind in OF_EVERYBODY}
    assert list(times) == [FaultKind.ENGINE_KILL, FaultKind.CLIENT_STOP, FaultKind.RESTART]
    assert all(at_s < 120 for at_s in times.values())


def test_absences_are_clearly_short_or_long() -> None:
    seats = population(200, 240, 1)
    clients = {seat.number: seat for seat in seats}
    for fault in schedule(seats, 1_800, 1, keep_s=60, light_every_s=4):
        if fault.kind in OF_EVERYBODY:
            continue
        assert clients[fault.target].process == 0
        if fault.kind is FaultKind.ABORT:
            assert fault.pause_s == 0
            continue
        assert fault.pause_s > 65 if fault.kind is FaultKind.LONG_ABSENCE else 0 < fault.pause_s < 40


def test_an_engine_without_process_is_spared() -> None:
    faults = schedule(population(20, 240, 1), 1_800, 1, keep_s=60, light_every_s=4, engine=False)
    assert not {fault.kind for fault in faults} & set(OF_ENGINE)


@pytest.mark.parametrize(("minutes", "kills", "stops", "stores"), [(1, 1, 1, 1), (5, 4, 1, 1), (30, 26, 10, 5)])
def test_worker_faults_come_besides(minutes: int, kills: int, stops: int, stores: int) -> None:
    seats = population(20, 240, 1)
    alone = schedule(seats, minutes * 60, 1, keep_s=60, light_every_s=4)
    faults = schedule(seats, minutes * 60, 1, keep_s=60, light_every_s=4, workers=3)
    counts = Counter(fault.kind for fault in faults)
    assert counts[FaultKind.WORKER_KILL] == kills
    assert (counts[FaultKind.WORKER_STOP], counts[FaultKind.STORE_KILL]) == (stops, stores)
    assert [fault for fault in faults if fault.kind not in OF_WORKERS] == alone
    assert {fault.target for fault in faults if fault.kind is FaultKind.WORKER_KILL} <= {1, 2, 3}
    # A worker that others have taken for gone goes on, the next is killed by the gateway, and one wakes sooner.
    pauses_s = [fault.pause_s for fault in faults if fault.kind is FaultKind.WORKER_STOP]
    assert pauses_s == [27.0, 40.0, 5.0, 27.0, 40.0, 5.0, 27.0, 40.0, 5.0, 27.0][:stops]


def options(*given: str) -> argparse.Namespace:
    return parsed(SOAK, "--out", "nowhere", *given)


def test_options_reach_the_plan() -> None:
    assert soak_plan(options()) == SoakPlan()
    told = soak_plan(options("--workers", "3", "--only", "store-killed", "--times", "5", "--minutes", "2"))
    assert told == SoakPlan(workers=3, only=FaultKind.STORE_KILL, times=5, minutes=2)


@pytest.mark.parametrize("given", [("worker-killed", "vllm"), ("engine-killed", "simulated")])
def test_what_is_not_there_cannot_be_broken(given: tuple[str, str]) -> None:
    kind, engine = given
    with pytest.raises(LoadtestError, match="workers"):
        soak_plan(options("--only", kind, "--engine", engine))
    assert soak_plan(options("--only", kind, "--engine", engine, "--workers", "1")).workers == 1


def test_only_a_store_can_lose_packets() -> None:
    assert soak_plan(options("--workers", "2", "--loss", "2.5")).loss == 2.5
    with pytest.raises(LoadtestError, match="no store"):
        soak_plan(options("--loss", "2.5"))


@pytest.mark.parametrize("kind", OF_EVERYBODY)
def test_one_kind_comes_as_often_as_asked(kind: FaultKind) -> None:
    faults = schedule(population(20, 240, 1), 600, 1, keep_s=60, light_every_s=4, workers=2, only=(kind, 20))
    assert [fault.kind for fault in faults] == [kind] * 20
    times = [fault.began_s for fault in faults]
    assert min(after - before for before, after in pairwise(times)) > 10
    assert 30 < times[0] < times[-1] < 570


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


def test_a_failed_run_says_why() -> None:
    good = result()
    bad = replace(
        good,
        verdict=replace(good.verdict, lost=2, duplicates=1, problems=["lost: ben never got it"]),
        gauges={"gateway_sessions": 3.0, "gateway_meetings": None},
        exit_status=-9,
        unquiet="no client was settled",
    )
    assert list(bad.failures()) == [
        "lost: 2",
        "duplicates: 1",
        "gateway_sessions is 3 at the end",
        "gateway_meetings is missing at the end",
        "the gateway ended with status -9",
        "no client was settled",
    ]
    silent = replace(good, verdict=replace(good.verdict, accepted=0))
    assert list(silent.failures()) == ["nothing was accepted"]
    text = table(bad)
    assert "| every promise | 6 not kept | kept | FAILED | lost: 2; duplicates: 1;" in text
    assert "- lost: ben never got it" in text


def test_a_run_with_workers_tells_recoveries() -> None:
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


def test_the_result_comes_back_from_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Drawing takes seconds; `test_report` holds that what there is to draw is drawn.
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write(results(result()), "soak", tmp_path)
    assert msgspec.convert(read(tmp_path).details, SoakResult) == result()


def test_the_run_is_charted_with_faults() -> None:
    charts = {chart.title: chart for chart in results(result()).charts}
    assert list(charts["Memory of the gateway"].series[0].y) == [140.0, 141.0, 142.0]
    # While the gateway cannot be asked, there is a gap.
    assert list(charts["Translations in the engine"].series[0].y) == [0.0, None, 3.0]
    # What concerns one client alone is left out.
    assert list(charts["Translations in the engine"].marks) == [("engine killed", 65 / 60)]
