"""Who is there and what breaks when: the same for the same seed, and within its bounds."""

from __future__ import annotations

import argparse
from collections import Counter
from itertools import pairwise

import pytest

from demo_model import LANGUAGES
from loadtest.results import LoadtestError
from loadtest.soak.command import SOAK, plan
from loadtest.soak.faults import OF_ENGINE, OF_EVERYBODY, OF_WORKERS, FaultKind, schedule
from loadtest.soak.population import population
from loadtest.soak.result import SoakPlan
from loadtest.tests.commands import parsed


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


def test_the_speakers_of_the_large_meeting_are_never_stopped() -> None:
    seats = population(200, 240, 1)
    assert {seat.process for seat in seats} == {0, 1, 2}
    assert all(seat.process == 0 for seat in seats if seat.meeting == "plenum" and seat.speaks)


def test_the_same_seed_gives_the_same_run() -> None:
    runs = []
    for seed in (1, 1, 2):
        seats = population(50, 100, seed)
        runs.append((seats, schedule(seats, 600, seed, keep_s=60, light_every_s=4)))
    assert runs[0] == runs[1] != runs[2]


def test_half_an_hour_has_every_kind_of_fault() -> None:
    faults = schedule(population(200, 240, 1), 1_800, 1, keep_s=60, light_every_s=4)
    counts = Counter(fault.kind for fault in faults)
    assert set(counts) == set(FaultKind) - {*OF_WORKERS}
    assert counts[FaultKind.ENGINE_KILL] >= 4
    assert (counts[FaultKind.RESTART], counts[FaultKind.ENGINE_STOP], counts[FaultKind.CLIENT_STOP]) == (2, 1, 3)
    assert [fault.began_s for fault in faults] == sorted(fault.began_s for fault in faults)


def test_what_happens_to_everybody_is_far_apart_and_not_at_the_end() -> None:
    faults = schedule(population(200, 240, 1), 1_800, 1, keep_s=60, light_every_s=4)
    times = [fault.began_s for fault in faults if fault.kind in OF_EVERYBODY]
    assert min(after - before for before, after in pairwise(times)) > 100
    assert times[-1] < 1_800 - 90


def test_a_short_run_has_one_of_each_that_matters() -> None:
    faults = schedule(population(20, 240, 1), 120, 1, keep_s=60, light_every_s=4)
    times = {fault.kind: fault.began_s for fault in faults if fault.kind in OF_EVERYBODY}
    assert list(times) == [FaultKind.ENGINE_KILL, FaultKind.CLIENT_STOP, FaultKind.RESTART]
    assert all(at_s < 120 for at_s in times.values())


def test_absences_are_clearly_shorter_or_longer_than_the_keep_time() -> None:
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


def test_an_engine_that_is_no_process_is_not_broken() -> None:
    faults = schedule(population(20, 240, 1), 1_800, 1, keep_s=60, light_every_s=4, engine=False)
    assert not {fault.kind for fault in faults} & set(OF_ENGINE)


@pytest.mark.parametrize(("minutes", "kills", "stops"), [(1, 1, 1), (5, 4, 1), (30, 26, 5)])
def test_with_workers_each_of_their_faults_comes_besides(minutes: int, kills: int, stops: int) -> None:
    seats = population(20, 240, 1)
    alone = schedule(seats, minutes * 60, 1, keep_s=60, light_every_s=4)
    faults = schedule(seats, minutes * 60, 1, keep_s=60, light_every_s=4, workers=3)
    counts = Counter(fault.kind for fault in faults)
    assert counts[FaultKind.WORKER_KILL] == kills
    assert counts[FaultKind.WORKER_STOP] == counts[FaultKind.STORE_KILL] == stops
    assert [fault for fault in faults if fault.kind not in OF_WORKERS] == alone
    assert {fault.target for fault in faults if fault.kind is FaultKind.WORKER_KILL} <= {1, 2, 3}
    # A worker that others have taken for gone goes on before the gateway kills it.
    assert all(6 < fault.pause_s < 30 for fault in faults if fault.kind is FaultKind.WORKER_STOP)


def options(*given: str) -> argparse.Namespace:
    return parsed(SOAK, "--out", "nowhere", *given)


def test_options_reach_the_plan() -> None:
    assert plan(options()) == SoakPlan()
    told = plan(options("--workers", "3", "--only", "store-killed", "--times", "5", "--minutes", "2"))
    assert told == SoakPlan(workers=3, only=FaultKind.STORE_KILL, times=5, minutes=2)


@pytest.mark.parametrize("given", [("worker-killed", "vllm"), ("engine-killed", "simulated")])
def test_what_is_not_there_cannot_be_broken(given: tuple[str, str]) -> None:
    kind, engine = given
    with pytest.raises(LoadtestError, match="workers"):
        plan(options("--only", kind, "--engine", engine))
    assert plan(options("--only", kind, "--engine", engine, "--workers", "1")).workers == 1


def test_packets_are_lost_on_the_way_to_a_store_alone() -> None:
    assert plan(options("--workers", "2", "--loss", "2.5")).loss == 2.5
    with pytest.raises(LoadtestError, match="no store"):
        plan(options("--loss", "2.5"))


@pytest.mark.parametrize("kind", OF_EVERYBODY)
def test_one_kind_alone_as_often_as_is_asked_for(kind: FaultKind) -> None:
    faults = schedule(population(20, 240, 1), 600, 1, keep_s=60, light_every_s=4, workers=2, only=(kind, 20))
    assert [fault.kind for fault in faults] == [kind] * 20
    times = [fault.began_s for fault in faults]
    assert min(after - before for before, after in pairwise(times)) > 10
    assert 30 < times[0] < times[-1] < 570
