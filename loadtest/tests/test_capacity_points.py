"""The searches, played against synthetic systems; what is offered at a load, what a trial under it amounts to."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadtest.capacity.curve import Plan, findings
from loadtest.capacity.points import (
    Cores,
    Offer,
    Point,
    Unit,
    described,
    driver_limit,
    judge,
    limit,
    points_table,
    too_few,
)
from loadtest.capacity.search import Bounds, Ended, Found, Run, capacity_search, given_loads
from loadtest.results import LoadtestError, Spread
from loadtest.talk.scenario import Scenario
from loadtest.tests.made_up_trials import a_trial
from loadtest.trial.values import InMeetings, Line, Objective, Open, ProcessUse, Record, Sample, Trial

System = Callable[[Run], bool | Ended]


def play(search: Generator[Run, bool | Ended, Any], system: System) -> tuple[Any, list[Run]]:
    """The answer of a search, and all runs that it asked for."""
    runs: list[Run] = []
    run = next(search)
    while True:
        runs.append(run)
        try:
            run = search.send(system(run))
        except StopIteration as stop:
            return stop.value, runs


def monotone(limit: float) -> System:
    """Keeps the objective up to a load."""
    return lambda run: run.load <= limit


def noisy(limit: float, seed: int) -> System:
    """Says anything within a factor of two of its limit."""
    rng = random.Random(seed)
    return lambda run: run.load <= limit * rng.uniform(0.5, 2)


# ---------------------------------------------------------------- capacity


@pytest.mark.parametrize(
    ("start", "bounds", "limit", "loads", "answer"),
    [
        (2, {}, 11, [2, 4, 8, 16, 11, 13, 12, 11], Found(11, 12, Ended.CONFIRMED, 8)),
        # The last run is kept for the confirmation.
        (2, {"runs": 5}, 11, [2, 4, 8, 16, 8], Found(8, 16, Ended.CONFIRMED, 5)),
        (64, {}, 3, [64, 32, 16, 8, 4, 2, 3, 3], Found(3, 4, Ended.CONFIRMED, 8)),
        (4, {}, 0.5, [4, 2, 1], Found(None, 1, Ended.NOTHING, 3)),
        # The largest load that is allowed is confirmed, too.
        (4, {"high": 10}, 1_000, [4, 8, 10, 10], Found(10, None, Ended.CEILING, 4)),
        # What is clearly worse than another is given up, what is nearly as good is looked at closely.
        (40, {"worth": 36}, 25, [40, 20, 28], Found(20, 28, Ended.WORSE, 3)),
        (40, {"worth": 36}, 39, [40, 20, 28, 33, 36, 38, 39, 39], Found(39, 40, Ended.CONFIRMED, 8)),
    ],
)
def test_a_capacity_is_bracketed_bisected_and_confirmed(
    start: float, bounds: dict[str, Any], limit: float, loads: list[float], answer: Found
) -> None:
    worth = bounds.pop("worth", 0.0)
    found, runs = play(capacity_search(start, Bounds(whole=True, **bounds), worth), monotone(limit))
    assert [run.load for run in runs] == loads
    assert found == answer
    assert [run.long for run in runs] == [False] * (len(runs) - 1) + [found.ended.confirmed]


def test_a_confirmation_that_fails_lowers_the_answer() -> None:
    found, _ = play(capacity_search(8, Bounds(whole=True)), lambda run: run.load <= (7 if run.long else 11))
    assert (found.capacity, found.at_most, found.ended) == (7, 8, Ended.CONFIRMED)


def test_one_unlucky_run_does_not_decide() -> None:
    def unlucky(run: Run) -> bool:
        return run.load <= 12 and (run.long or run.load != 9)

    bounds = Bounds(whole=True, runs=24)
    assert play(capacity_search(9, bounds), unlucky)[0].capacity == 8


@pytest.mark.parametrize("stop", [Ended.TIME, Ended.DRIVER, Ended.FAILED, Ended.INTERRUPTED])
def test_a_stopped_search_keeps_its_answer(stop: Ended) -> None:
    told: Iterator[bool | Ended] = iter([True, stop])
    found, _ = play(capacity_search(2, Bounds(whole=True)), lambda _run: next(told))
    assert found == Found(2, None, stop, 1)
    assert (found.ended.cut_short, found.ended.confirmed) == (True, False)


@given(limit=st.integers(1, 500), start=st.integers(1, 500))
def test_whole_loads_are_found_within_the_resolution(limit: int, start: int) -> None:
    found, runs = play(capacity_search(start, Bounds(high=1_000, whole=True, runs=30)), monotone(limit))
    assert found.ended is Ended.CONFIRMED
    assert found.capacity is not None
    assert found.capacity <= limit < max(found.capacity * 1.05, found.capacity + 1) + 1e-9
    assert found.at_most > limit
    assert len(runs) == found.runs


@given(limit=st.floats(0.2, 5_000), start=st.floats(0.2, 5_000))
def test_rates_are_found_within_the_resolution(limit: float, start: float) -> None:
    found, _ = play(capacity_search(start, Bounds(low=0.1, runs=40)), monotone(limit))
    assert found.ended is Ended.CONFIRMED
    # Loads have three digits.
    assert found.capacity <= limit <= found.capacity * 1.05 * 1.01


@given(
    limit=st.floats(0.01, 2_000),
    seed=st.integers(0, 1_000),
    runs=st.integers(2, 20),
    whole=st.booleans(),
)
def test_a_noisy_system_gets_no_extra_runs(limit: float, seed: int, runs: int, whole: bool) -> None:
    bounds = Bounds(high=1_000, whole=whole, runs=runs)
    found, asked = play(capacity_search(10, bounds), noisy(limit, seed))
    assert len(asked) == found.runs <= runs
    assert all(bounds.low <= run.load <= bounds.high for run in asked)
    if found.ended.confirmed:
        assert any(run.long and run.load == found.capacity for run in asked)
    if found.capacity is not None and found.at_most is not None:
        assert found.capacity < found.at_most


SWEEP = Bounds(resolution=0.1, confirms=False, past=(1.5, 2.0))


def test_a_sweep_goes_beyond_the_knee() -> None:
    found, runs = play(capacity_search(1, SWEEP), monotone(22))
    assert [run.load for run in runs][:6] == [1, 2, 4, 8, 16, 32]
    assert (found.capacity, found.ended) == (20.7, Ended.COMPLETE)
    # Clearly beyond it, too.
    assert [run.load for run in runs][-2:] == [31, 41.4]
    assert not any(run.long for run in runs)


def test_a_sweep_tells_what_ran_out() -> None:
    few = replace(SWEEP, runs=3)
    assert play(capacity_search(1, few), monotone(22))[0].ended is Ended.RUNS
    found, _ = play(capacity_search(1, few), lambda run: True if run.load < 4 else Ended.TIME)
    assert (found.capacity, found.ended) == (2, Ended.TIME)


@pytest.mark.parametrize("kept", [{2, 8}, {2}])
def test_given_loads_end_below_the_first_loss(kept: set[float]) -> None:
    # By good luck 8 is kept, or because of bad luck at 4 it is not.
    found, runs = play(given_loads([2, 4, 8]), lambda run: run.load in kept)
    assert [run.load for run in runs] == [2, 4, 8]
    assert (found.capacity, found.at_most, found.ended) == (2, 4, Ended.COMPLETE)
    found, _ = play(given_loads([1, 2, 4]), lambda run: True if run.load < 4 else Ended.TIME)
    assert (found.capacity, found.ended) == (2, Ended.TIME)


@pytest.mark.parametrize(
    ("bounds", "limit", "capacity", "loads"),
    [(SWEEP, 0, None, [4, 2, 1]), (replace(SWEEP, high=10), 100, 10, [4, 8, 10])],
)
def test_a_sweep_ends_at_its_bounds(
    bounds: Bounds, limit: float, capacity: float | None, loads: list[float]
) -> None:
    found, runs = play(capacity_search(4, bounds), monotone(limit))
    assert (found.capacity, [run.load for run in runs]) == (capacity, loads)


@given(limit=st.floats(0.01, 2_000), seed=st.integers(0, 1_000), runs=st.integers(2, 20), whole=st.booleans())
def test_a_noisy_sweep_ends(limit: float, seed: int, runs: int, whole: bool) -> None:
    bounds = replace(SWEEP, high=1_000, whole=whole, runs=runs)
    _, asked = play(capacity_search(10, bounds), noisy(limit, seed))
    assert len(asked) <= runs


MEETINGS = Offer(
    scenario=Scenario(targets=("de", "es"), partial_every_s=0.6),
    unit=Unit.MEETINGS,
    step_s=10,
    objective=Objective(),
)
KNEE = "the knee: all up to it kept the objective"
REQUESTS = Offer(scenario=Scenario(), unit=Unit.REQUESTS, step_s=10)


# ---------------------------------------------------------------- offers


def test_meetings_are_offered_with_partials() -> None:
    lines, load = MEETINGS.at(3)
    assert isinstance(load, InMeetings)
    assert (load.meetings, load.speakers) == (3, len({(line.meeting, line.speaker) for line in lines}))
    assert (MEETINGS.beginning_s, MEETINGS.seconds()) == (1.5, 11.5)
    assert any(line.partials for line in lines)
    assert {line.targets for line in lines} == {("de", "es")}
    assert max(line.due_s for line in lines) < 11.5


def test_requests_come_at_the_given_rate() -> None:
    lines, load = REQUESTS.at(40)
    assert load == Open(40)
    assert len(lines) == pytest.approx(40 * 11.5, rel=0.2)
    assert not any(line.partials for line in lines)


def test_a_confirmation_is_longer_and_different() -> None:
    (first, _), (again, _) = REQUESTS.at(20), REQUESTS.at(20, 1, long=True)
    assert REQUESTS.seconds(long=True) == 21.5
    assert {line.text for line in first[:20]} != {line.text for line in again[:20]}
    assert REQUESTS.at(20)[0] == first


@pytest.mark.parametrize(
    ("offer", "why"),
    [
        (Offer(scenario=Scenario(source="ko"), unit=Unit.MEETINGS), "no 'ko'"),
        (Offer(scenario=Scenario(targets=("ko",), shape="sentences"), unit=Unit.REQUESTS), "no 'ko'"),
        (Offer(scenario=Scenario(shape="sentences"), unit=Unit.MEETINGS), "for requests"),
        (Offer(scenario=Scenario(), unit=Unit.MEETINGS, replayed=(Line("a", "b", "en", ("de",)),)), "at rates"),
    ],
)
def test_an_impossible_offer_is_refused_at_once(offer: Offer, why: str) -> None:
    with pytest.raises(LoadtestError, match=why):
        offer.check()


@pytest.mark.parametrize("unit", list(Unit))
def test_any_language_can_be_read(unit: Unit) -> None:
    offer = Offer(scenario=Scenario(targets=("ko", "fr")), unit=unit)
    offer.check()
    assert {target for line in offer.at(4)[0] for target in line.targets} == {"ko", "fr"}


def test_lines_of_a_file_are_repeated() -> None:
    lines = (Line("a", "One.", "en", ("de",)), Line("b", "Two.", "en", ("de", "es")))
    offered, _ = replace(REQUESTS, replayed=lines).at(10)
    assert len({line.id for line in offered}) == len(offered) > 20
    assert {line.text for line in offered} == {"One.", "Two."}
    # A long file has something new for each run.
    long = tuple(Line(str(i), f"Line {i}.", "en", ("de",)) for i in range(1_000))
    offer = replace(REQUESTS, replayed=long)
    assert len({offer.at(2, number)[0][0].text for number in range(4)}) == 4
    # A line into two languages is two translations.
    assert sum(len(line.targets) for line in offered) == pytest.approx(115, rel=0.35)


def test_a_silent_step_is_refused() -> None:
    with pytest.raises(LoadtestError, match="longer steps"):
        Offer(scenario=Scenario(), unit=Unit.REQUESTS, step_s=0.5).at(0.1)


def test_a_report_leaves_out_a_files_lines() -> None:
    plan = Plan(
        offer=Offer(scenario=Scenario(), unit=Unit.REQUESTS, replayed=(Line("a", "b", "en", ("de",)),)), model="m"
    )
    assert described(plan)["offer"]["replayed"] == 1


# ---------------------------------------------------------------- points


CORES = Cores(own=2, machine=2)


def trial(first_ms: Sequence[float | None], **changes: Any) -> Trial:
    """One translation for each time to its first token; null: it failed. Each ends 100 ms later."""
    records = [
        Record(str(i), "de", i, i, None, None, failed="overloaded")
        if ms is None
        else Record(str(i), "de", i, i, i + ms / 1000, i + ms / 1000 + 0.1, tokens=5)
        for i, ms in enumerate(first_ms)
    ]
    return a_trial(**{"records": records, "load": Open(10), **changes})


def point(
    first_ms: Sequence[float | None], run: Run | None = None, offer: Offer = REQUESTS, **changes: Any
) -> Point:
    return judge(trial(first_ms, **changes), run or Run(10), offer, seed=1, slots=16, cores=CORES)


def faster(made: Point, **per_s: float) -> Point:
    speeds: dict[str, Any] = {name: Spread(value, value, value) for name, value in per_s.items()}
    return replace(made, summary=replace(made.summary, **speeds))


def test_one_late_in_a_hundred_is_allowed() -> None:
    assert point([100.0] * 99 + [400.0]).kept
    assert not point([100.0] * 98 + [400.0] * 2).kept
    assert not point([100.0] * 98 + [None] * 2).kept


def test_generated_tokens_are_the_engines_count() -> None:
    samples = [Sample(0.0, tokens=100), Sample(1.0), Sample(2.0, tokens=700)]
    told = point([100.0], samples=samples)
    assert told.generated_per_s == 300
    assert told.summary.tokens_per_s.median == 0.5
    assert point([100.0]).generated_per_s is None


@pytest.mark.parametrize(("changes", "full"), [
    ({}, "nothing"),
    ({"cpu_s": {"serving": 9.2}}, "the gateway's process (0.92 cores)"),
    ({"cpu_s": {"serving": 12.0}, "hosts_cpu_s": [6.0]}, "nothing"),
    ({"cpu_s": {"serving": 12.0}, "hosts_cpu_s": [9.0]}, "the engine's host process (0.90 cores)"),
    ({"cpu_s": {"serving": 12.0}, "hosts_cpu_s": [2.0]}, "the gateway's process (1.00 cores)"),
    (
        {"cpu_s": {"serving": 18.0}, "hosts_cpu_s": [8.6]},
        "the gateway's process (0.94 cores), the engine's host process (0.86 cores), "
        "the CPU (1.8 of the machine's 2 cores)",
    ),
    (
        {"settings": {"workers": 2}, "cpu_s": {"serving": 18.2}},
        "each of the gateway's 2 processes (0.91 cores), the CPU (1.8 of the machine's 2 cores)",
    ),
    ({"settings": {"workers": 2}, "cpu_s": {"serving": 12.0}}, "nothing"),
    ({"settings": {"workers": 2}, "cpu_s": {"serving": 16.0}, "store_cpu_s": 9.0}, "the store (0.90 cores)"),
    (
        {"cpu_s": {"serving": 12.0}, "hosts_cpu_s": [2.0, 9.0]},
        "the fullest of 2 engine host processes (0.90 cores)",
    ),
    ({"cpu_s": {"serving": 12.0}, "hosts_cpu_s": [5.0, 6.0]}, "nothing"),
    ({"samples": [Sample(0, running=16, waiting=4)]}, "the engine's batch (16.0 of 16 sequences, 4 waiting)"),
    ({"samples": [Sample(0, running=3)]}, "nothing"),
    ({"samples": [Sample(0, gpu=97)]}, "the GPU (97 % busy)"),
    ({"samples": [Sample(0, gpu=70, gpus={"2": 42, "3": 98})]}, "the fullest of 2 GPUs (98 % busy)"),
    ({"samples": [Sample(0, gpus={"2": 98, "3": 42}), Sample(0, gpus={"2": 42, "3": 98})]}, "nothing"),
    ({"cpu_s": {"other": 19.0}}, "the CPU (1.9 of the machine's 2 cores)"),
    (
        {"cpu_s": {"serving": 1.0, "engine": 8.0, "other": 10.0}},
        "the CPU (1.9 of the machine's 2 cores, 1.0 by other programs)",
    ),
])  # fmt: skip
def test_what_was_full(changes: dict[str, Any], full: str) -> None:
    assert limit(trial([100.0], **changes), 16, CORES) == full


def test_used_cores_are_compared_with_usable_cores() -> None:
    half = Cores(own=17, machine=34)

    def told(serving: float, other: float) -> str:
        return limit(trial([100.0], cpu_s={"engine": 10 * serving, "other": 10 * other}), 512, half)

    assert told(6, 20) == "nothing"
    assert told(16, 2) == "the cores that the load test may use (16.0 of 17)"
    assert told(16, 16) == "the CPU (32.0 of the machine's 34 cores)"


LATE = ProcessUse(cpu_s=1, elapsed_s=10, lag_p99_ms=150, lag_max_ms=400)


def test_the_driver_is_blamed_alone() -> None:
    lost = point([400.0] * 10, clients=[LATE], limited="It was late.")
    assert (lost.kept, lost.driver, lost.limit) == (False, "It was late.", "the driver")
    # What was kept was kept; and what is lost without the driver's lateness too is the gateway's.
    assert point([100.0] * 10, clients=[LATE], limited="It was late.").driver is None
    assert point([500.0] * 10, clients=[LATE], limited="It was late.").driver is None
    assert point([400.0] * 10, clients=[LATE]).driver is None


def test_late_sending_counts_for_the_driver() -> None:
    lost = trial([500.0] * 10, clients=[LATE], limited="It was late.")
    sent_late = replace(lost, records=[replace(each, sent_s=each.due_s + 0.1) for each in lost.records])
    assert judge(sent_late, Run(10), REQUESTS, seed=1, slots=16, cores=CORES).driver == "It was late."


def test_few_translations_are_pointed_out() -> None:
    assert "Judged by 20" in too_few(point([100.0] * 20), REQUESTS)
    assert not too_few(point([100.0] * 100), REQUESTS)


# ---------------------------------------------------------------- findings of a sweep


def told(points: list[Point], swept: Found) -> dict[str, str]:
    return {each.name: each.value for each in findings(points, swept, REQUESTS)}


def test_a_sweep_tells_knee_and_limit() -> None:
    points = [
        point([100.0] * 100, Run(10)),
        point([400.0] * 100, Run(20), samples=[Sample(0, running=16, waiting=2)]),
        point([4_000.0] * 100, Run(40)),
    ]
    said = told(points, Found(10, None, Ended.COMPLETE, 3))
    assert said[KNEE] == "10/s"
    assert said["what was full above it"] == "the engine's batch (16.0 of 16 sequences, 2 waiting)"
    table = points_table(points, Unit.REQUESTS)
    assert [row[0] for row in table.rows] == ["10", "20", "40"]
    assert len({len(row) for row in (table.head, *table.rows)}) == 1


def test_partial_tokens_are_told_with_partials() -> None:
    def carrying(load: int, tokens_per_s: int) -> Point:
        samples = [Sample(0.0, tokens=0), Sample(10.0, tokens=10 * tokens_per_s)]
        return faster(point([100.0] * 100, Run(load), MEETINGS, samples=samples), tokens_per_s=50.0)

    points = [carrying(4, 275), carrying(8, 60), carrying(16, 49)]
    table = points_table(points, Unit.MEETINGS)
    place = list(table.head).index("tokens of partials for each of a final")
    # Fewer than its finals have: they are not counted over quite the same time.
    assert [row[place] for row in table.rows] == ["4.5", "0.2", "0"]
    assert not any("partials" in name for name in points_table(points, Unit.REQUESTS).head)


WATCHED = replace(MEETINGS, objective=Objective(first_words_ms=1_000.0))


def spoken(
    shown_ms: Sequence[float], translated: float, load: int = 8, offer: Offer = WATCHED, **more: Any
) -> Point:
    """Utterances that take 2 s to say, by when their first translated words came after they began."""
    own = trial([100.0] * len(shown_ms), partials_translated=translated, **more)
    records = [
        replace(each, began_s=each.due_s - 2, shown_s=each.due_s - 2 + ms / 1000)
        for each, ms in zip(own.records, shown_ms, strict=True)
    ]
    return judge(replace(own, records=records), Run(load), offer, seed=1, slots=16, cores=CORES)


def test_first_words_count_if_asked_for() -> None:
    kept, starved = spoken([400.0] * 100, 0.9, load=4), spoken([400.0] * 90 + [2_100.0] * 10, 0.2)
    assert (kept.kept, starved.kept) == (True, False)
    assert starved.summary.missed == ("first words of what is being said", "partials translated")
    assert spoken([400.0] * 90 + [2_100.0] * 10, 0.2, offer=MEETINGS).kept
    said = {each.name: each for each in findings([kept, starved], Found(4, 8, Ended.COMPLETE, 2), WATCHED)}
    assert "not kept: first words of what is being said, partials translated" in said[KNEE].note
    _, row = points_table([kept, starved], Unit.MEETINGS).rows
    assert row[2].endswith("no (first words of what is being said, partials translated)")


def test_a_late_driver_shows_late_words() -> None:
    late: dict[str, Any] = {"clients": [LATE], "limited": "It was late."}
    assert spoken([1_100.0] * 100, 0.9, **late).driver == "It was late."
    assert spoken([1_200.0] * 100, 0.9, **late).driver is None
    # A late driver does not explain partials that were left out.
    assert spoken([400.0] * 100, 0.2, **late).driver is None


def test_a_load_kept_above_is_no_knee() -> None:
    points = [
        point([100.0] * 100, Run(10)),
        point([400.0] * 100, Run(20), samples=[Sample(0, running=16, waiting=2)]),
        point([100.0] * 100, Run(30)),
        point([4_000.0] * 100, Run(40)),
    ]
    swept = Found(10, None, Ended.COMPLETE, 3)
    knee = findings(points, swept, REQUESTS)[0]
    assert knee.value == "10/s"
    assert "20/s, did not keep it" in knee.note
    assert "Yet 30/s kept it again" in knee.note
    assert told(points, swept)["what was full above it"].startswith("the engine's batch")


def test_a_sweep_that_kept_nothing_says_so() -> None:
    said = told([point([400.0] * 10, Run(4))], Found(None, None, Ended.COMPLETE, 3))
    assert said[KNEE] == "none"


@pytest.mark.parametrize(
    ("until", "option"), [(Ended.RUNS, "--runs"), (Ended.TIME, "--time-limit-s"), (Ended.COMPLETE, "")]
)
def test_an_incomplete_curve_names_its_option(until: Ended, option: str) -> None:
    found = findings([point([100.0] * 100, Run(10))], Found(10, None, until, 3), REQUESTS)
    named = [word.strip("().") for each in found for word in each.note.split() if word.startswith("(--")]
    assert named == [option] * bool(option)


def test_a_limiting_driver_fails_the_sweep() -> None:
    late = point([400.0] * 10, Run(20), clients=[LATE], limited="It was late.")
    found = findings([point([100.0] * 100, Run(10)), late], Found(10, None, Ended.TIME, 3), REQUESTS)
    assert [each.name for each in found if each.passed is False] == [driver_limit(late).name]
    assert "It was late." in found[-1].note
    # Nothing is said of the gateway from such a run.
    assert "what was full above it" not in {each.name for each in found}
