"""Searches played on gateways: synthetic ones, and real ones with the simulated engine."""

from __future__ import annotations

import asyncio
import math
import time
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.config import load
from loadtest.capacity import curve as curving
from loadtest.capacity import recommend as recommending
from loadtest.capacity.curve import Bench, Plan, curve, findings, follow, slots
from loadtest.capacity.points import Measured, Offer, Point, Unit
from loadtest.capacity.recommend import (
    RECOMMEND,
    SWEEP,
    RecommendPlan,
    Tried,
    advise,
    choose,
    offer,
    recommend,
    recommended_toml,
)
from loadtest.capacity.search import Bounds, Ended, Found, Run, capacity_search
from loadtest.options import Command, settings, with_batch
from loadtest.results import LoadtestError, Spread
from loadtest.systems.server import Running
from loadtest.talk.scenario import Scenario
from loadtest.tests.made_up_trials import a_trial, parsed, write
from loadtest.trial.content import Table
from loadtest.trial.report import passed
from loadtest.trial.summary import summarise
from loadtest.trial.values import Finding, InMeetings, Objective, Open, Results, Trial, WebSocketGateway

OFFER = Offer(scenario=Scenario(), unit=Unit.MEETINGS, step_s=10)


NOTHING = summarise([a_trial()], Objective())


def measured(run: Run, *, kept: bool, driver: str | None = None) -> Measured:
    load = InMeetings(meetings=int(run.load), speakers=1, per_s=run.load)
    summary = replace(NOTHING, met=kept, records=200)
    point = Point(load=run.load, seed=1, long=run.long, summary=summary, limit="nothing", driver=driver)
    return Measured(point, a_trial(load=load))


# ---------------------------------------------------------------- following a search


async def test_a_search_ends_without_time_for_more() -> None:
    async def one(run: Run) -> Measured:
        return measured(run, kept=True)

    # The third run, of 4 meetings, would take longer than there is.
    bench = cast(Bench, SimpleNamespace(measure=one, takes_s=lambda run: 100 if run.load > 2 else 1))
    followed = await follow(capacity_search(1, Bounds(whole=True)), bench, time.monotonic() + 50)
    assert [each.point.load for each in followed.measured] == [1, 2]
    assert (followed.found.capacity, followed.found.ended, followed.stopped) == (2, Ended.TIME, Ended.TIME)


async def test_a_run_lost_by_the_driver_repeats() -> None:
    asked: list[float] = []

    async def one(run: Run) -> Measured:
        asked.append(run.load)
        late = run.load >= 8 or asked == [4]
        return measured(run, kept=not late, driver="It was late." if late else None)

    bench = cast(Bench, SimpleNamespace(measure=one, takes_s=lambda _run: 1.0))
    search = capacity_search(4, Bounds(whole=True))
    followed = await follow(search, bench, time.monotonic() + 1_000)
    found, points = followed.found, [each.point for each in followed.measured]
    assert asked == [4, 4, 8, 8, 8]
    assert [(each.load, each.driver) for each in points] == [(4, None), (8, "It was late.")]
    assert (found.capacity, found.ended) == (4, Ended.DRIVER)
    told = findings(points, found, OFFER)
    assert [each.name for each in told if each.passed is False] == ["the driver"]


@asynccontextmanager
async def a_gateway() -> AsyncIterator[Running]:
    yield Running("gateway", WebSocketGateway("http://127.0.0.1:9"), {})


async def swept(monkeypatch: pytest.MonkeyPatch, one: Callable[[Run], Awaitable[Measured]]) -> Results:
    """What a sweep reports of a gateway that shows this."""
    bench = SimpleNamespace(measure=one, takes_s=lambda _run: 0.001)
    monkeypatch.setattr(curving, "Bench", lambda *_, **__: bench)
    plan = Plan(offer=OFFER, model="m", start=1, bounds=Bounds(whole=True, confirms=False))
    return await curve(plan, a_gateway(), lambda _line: None)


@pytest.mark.parametrize(
    ("error", "value"),
    [(LoadtestError("No line was translated."), "ended by an error"), (asyncio.CancelledError(), "interrupted")],
)
async def test_an_early_end_keeps_earlier_runs(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, value: str
) -> None:
    async def one(run: Run) -> Measured:
        if run.load > 4:
            raise error
        return measured(run, kept=True)

    report = await asyncio.create_task(swept(monkeypatch, one))
    assert [each["load"] for each in report.details["points"]] == [1, 2, 4]
    (failed,) = [each for each in report.findings if each.passed is False]
    assert (failed.name, failed.value) == ("the search", value)
    assert str(error) in failed.note


@pytest.mark.parametrize("error", [LoadtestError("No line was translated."), asyncio.CancelledError()])
async def test_what_ends_the_first_run_ends_everything(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    async def one(run: Run) -> Measured:
        raise error

    with pytest.raises(type(error), match=str(error) or "^$"):
        await asyncio.create_task(swept(monkeypatch, one))


async def test_each_run_says_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[set[str]] = []

    @asynccontextmanager
    async def no_driver(*_: object, **__: object) -> AsyncIterator[None]:
        yield None

    async def played(*arguments: Any, **_: object) -> Trial:
        lines, load = arguments[2], arguments[3]
        said.append({line.text for line in lines if len(line.text) > 40})
        return replace(measured(Run(load.meetings), kept=True).trial, load=load)

    monkeypatch.setattr(curving, "driver", no_driver)
    monkeypatch.setattr(curving, "measure", played)
    async with a_gateway() as running:
        bench = Bench(running, OFFER, lambda _line: None, processes=1)
        points = [(await bench.measure(run)).point for run in (Run(4), Run(8), Run(4), Run(4, long=True))]
    assert not any(one & other for one, other in combinations(said, 2))
    assert len({each.seed for each in points}) == 4


# ---------------------------------------------------------------- recommend, on synthetic gateways


def test_settings_tell_the_batch_size() -> None:
    simulated = with_batch({"engine": {"kind": "simulated", "script": {"token_s": 1}}}, 8)
    assert simulated["engine"]["script"] == {"token_s": 1, "max_running": 8}
    assert slots(simulated) == 8
    assert slots({**simulated, "workers": 4}) == 8
    alone = {"engine": {"kind": "simulated", "script": {"max_running": 8, "shared": False}}}
    assert slots({**alone, "workers": 4}) == 32
    assert slots(with_batch({}, 4)) == 4
    lanes = [{"name": "a", "max_num_seqs": 256}, {"name": "b", **simulated["engine"]}, {"name": "c"}]
    assert slots({"engines": lanes, "workers": 6}) == 256 + 8 + 16
    assert slots({"url": "http://somewhere"}) is None


class Gateways:
    """What a gateway of each size carries. broken: sizes that do not start. ends:
    what a size does under a load instead of carrying it or not."""

    def __init__(
        self,
        carries: Mapping[int, float],
        *,
        broken: frozenset[int] = frozenset(),
        ends: Mapping[tuple[int, float], BaseException] | None = None,
    ):
        self.carries = carries
        self.broken = broken
        self.ends = ends or {}
        self.running: list[int] = []
        self.runs: list[tuple[int, Run]] = []

    @asynccontextmanager
    async def start(self, settings: Mapping[str, Any], name: str) -> AsyncIterator[Running]:
        size = settings["engine"]["max_num_seqs"]
        if size in self.broken:
            raise LoadtestError(f"There is no memory for {size}.")
        self.running.append(size)
        try:
            yield Running(name, WebSocketGateway("http://127.0.0.1:9"), dict(settings))
        finally:
            self.running.remove(size)

    def bench(self, running: Running, *_: object, **__: object) -> Any:
        size = running.settings["engine"]["max_num_seqs"]

        async def measure(run: Run) -> Measured:
            self.runs.append((size, run))
            if (end := self.ends.get((size, run.load))) is not None:
                raise end
            return measured(run, kept=run.load <= self.carries[size])

        return SimpleNamespace(measure=measure, takes_s=lambda _run: 0.001)


async def recommended(gateways: Gateways, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Results:
    monkeypatch.setattr(recommending, "Bench", gateways.bench)
    plan: dict[str, Any] = {
        "offer": OFFER,
        "model": "m",
        "settings": {"engine": {}},
        "seqs": (4, 8, 16, 32),
        "bounds": Bounds(whole=True, resolution=0.03, runs=20),
        **changes,
    }
    return await recommend(RecommendPlan(**plan), gateways.start, lambda _line: None)


async def test_the_smallest_equal_batch_is_recommended(monkeypatch: pytest.MonkeyPatch) -> None:
    gateways = Gateways({4: 20, 8: 40, 16: 41, 32: 12})
    report = await recommended(gateways, monkeypatch)
    assert tomllib.loads(report.files["recommended.toml"])["engine"] == {"max_num_seqs": 8}
    tried = {each["max_num_seqs"]: each["found"] for each in report.details["tried"]}
    assert [tried[size]["capacity"] for size in (4, 8, 16)] == [20, 40, 41]
    # The last one was left as soon as it was known to be clearly worse.
    assert tried[32]["ended"] == Ended.WORSE.value
    assert len([size for size, _ in gateways.runs if size == 32]) < 5
    # All runs of what is recommended, and the best one of each other that kept anything.
    assert len(report.trials) == len([size for size, _ in gateways.runs if size == 8]) + 2
    toml, table, runs = report.parts
    assert toml == f"```toml\n{report.files['recommended.toml']}```"
    assert isinstance(table, Table)
    assert isinstance(runs, Table)
    assert [row[0] for row in table.rows][1] == "8 sequences (recommended)"
    assert len(runs.rows) == len([size for size, _ in gateways.runs if size == 8])


async def test_an_unstartable_gateway_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    gateways = Gateways({4: 4, 8: 8, 16: 16, 32: 15}, broken=frozenset([32]))
    report = await recommended(gateways, monkeypatch)
    assert tomllib.loads(report.files["recommended.toml"])["engine"] == {"max_num_seqs": 16}
    said = {each.name: each.note for each in report.findings}
    assert said["not measured: 32 sequences"] == "There is no memory for 32."
    assert not gateways.running


@pytest.mark.parametrize(
    ("gateways", "changes", "why"),
    [
        # Less than three runs of 11.5 s.
        (Gateways({4: 4, 8: 8, 16: 16, 32: 15}), {"time_limit_s": 30}, "no time"),
        (Gateways({}, broken=frozenset([4, 8, 16, 32])), {}, "no memory for 4"),
    ],
)
async def test_no_gateway_at_all_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, gateways: Gateways, changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(LoadtestError, match=why):
        await recommended(gateways, monkeypatch, **changes)


async def test_an_error_cuts_a_candidate_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gateways = Gateways({4: 4, 8: 30, 16: 16, 32: 15}, ends={(8, 16): LoadtestError("It went away.")})
    report = await recommended(gateways, monkeypatch)
    tried = {each["max_num_seqs"]: each for each in report.details["tried"]}
    assert tried[8]["found"]["capacity"] == 8
    assert tried[16]["found"]["capacity"] == 16
    said = {each.name: each for each in report.findings}
    # Another one is recommended, and was confirmed; yet this one may carry more.
    assert said["max_num_seqs"].value == "16"
    assert (said["cut short: 8 sequences"].value, said["cut short: 8 sequences"].passed) == ("8 meetings", None)
    assert "It went away." in said["cut short: 8 sequences"].note
    assert passed(report)


async def test_an_interrupted_recommendation_tells_what_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    gateways = Gateways({4: 20, 8: 40, 16: 41, 32: 12}, ends={(16, 40): asyncio.CancelledError()})
    report = await asyncio.create_task(recommended(gateways, monkeypatch))
    assert [each["max_num_seqs"] for each in report.details["tried"]] == [4, 8]
    assert tomllib.loads(report.files["recommended.toml"])["engine"] == {"max_num_seqs": 8}
    (failed,) = [each for each in report.findings if each.passed is False]
    assert failed.value == "interrupted"
    assert failed.note == "Not tried: 16 sequences, 32 sequences."
    assert not gateways.running
    with pytest.raises(asyncio.CancelledError):
        await recommended(Gateways({4: 20}, ends={(4, 4): asyncio.CancelledError()}), monkeypatch, seqs=(4,))


async def test_nothing_that_is_kept_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    report = await recommended(Gateways(dict.fromkeys((4, 8, 16, 32), 0)), monkeypatch)
    assert [each.name for each in report.findings if each.passed is False] == ["a recommendation"]
    assert report.files == {}


# ---------------------------------------------------------------- the commands, on the simulated engine

SIMULATED = (
    *("--engine", "simulated", "--set", "engine.script.first_token_s=0.05", "--set", "engine.script.token_s=0.02"),
    *("--model", "/somewhere/model-7b"),
    *("--set", "engine.script.max_running=2", "--step-s", "1", "--quantile", "0.9", "--time-limit-s", "3600"),
)


def test_the_options_make_an_offer() -> None:
    given = ("--out", "o", "--targets", "ja,es", "--people", "3", "--quantile", "0.95", "--objective-ms", "200")
    offered = offer(parsed(RECOMMEND, *given, "--seed", "7"))
    scenario = Scenario(seed=7, targets=("ja", "es"), people=3, partial_every_s=0.3)
    objective = Objective(200, 0.95, first_words_ms=3_000.0)
    assert offered == Offer(scenario=scenario, unit=Unit.MEETINGS, objective=objective, step_s=20)
    quiet = offer(parsed(RECOMMEND, "--out", "o", "--partial-every-s", "0", "--scenario", "uniform"))
    assert (quiet.scenario.partial_every_s, quiet.scenario.shape) == (None, "uniform")
    assert "without partials" in quiet.workload
    assert "partials" not in offer(parsed(SWEEP, "--out", "o")).workload
    assert parsed(SWEEP, "--out", "o", "--loads", "5,7.5,5").loads == (5, 7.5)
    # No size of the batch is set for all candidates.
    several = parsed(RECOMMEND, "--out", "o", "--max-num-seqs", "4,16")
    assert (several.seqs, settings(several)["engine"]) == ((4, 16), {})


@pytest.mark.parametrize("command", [RECOMMEND, SWEEP])
@pytest.mark.parametrize(
    ("given", "first_words_ms"),
    [
        ((), 3_000.0),
        (("--first-words-ms", "1500"), 1_500.0),
        (("--first-words-ms", "0"), None),
        (("--partial-every-s", "0"), None),
    ],
)
def test_partials_count_unless_told_otherwise(
    command: Command, given: tuple[str, ...], first_words_ms: float | None
) -> None:
    offered = offer(parsed(command, "--out", "o", "--unit", "meetings", *given))
    assert offered.objective == Objective(first_words_ms=first_words_ms)


def test_requests_have_no_partials_to_count() -> None:
    assert offer(parsed(SWEEP, "--out", "o")).objective == Objective()


@pytest.mark.parametrize("command", [RECOMMEND, SWEEP])
async def test_weightless_models_show_no_partials(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recommending, "gateway", lambda *_, **__: pytest.fail("nothing is started"))
    given = ("--out", "o", "--unit", "meetings", "--set", 'engine.extra.load_format="dummy"')
    with pytest.raises(LoadtestError, match=r"none of its partials is shown.*--first-words-ms 0"):
        await command.run(parsed(command, *given), lambda _said: None)
    for finals_alone in (("--first-words-ms", "0"), ("--partial-every-s", "0")):
        recommending.check_partials(options := parsed(command, *given, *finals_alone), settings(options))


def test_a_sweep_offers_retrying_clients() -> None:
    offered = offer(parsed(SWEEP, "--out", "o", "--retries"))
    assert offered.at(4)[1] == Open(4, retries=True)
    assert "sent again when it was refused" in offered.workload
    assert offer(parsed(SWEEP, "--out", "o")).at(4)[1] == Open(4)


@pytest.mark.parametrize(("command", "given", "named"), [
    (SWEEP, ("--url", "http://127.0.0.1:9", "--max-num-seqs", "64"), "--max-num-seqs:"),
    (SWEEP, ("--url", "http://127.0.0.1:9", "--config", "nosuchfile.toml"), "--config:"),
    (SWEEP, ("--url", "http://127.0.0.1:9", "--set", "max_waiting=1", "--loads", "1"), "--set:"),
    (SWEEP, ("--people", "3"), "--people:"),
    (SWEEP, ("--unit", "meetings", "--retries"), "--retries:"),
    (SWEEP, ("--first-words-ms", "900"), "--first-words-ms:"),
    (RECOMMEND, ("--first-words-ms", "900", "--partial-every-s", "0"), "--first-words-ms:"),
    (RECOMMEND, ("--unit", "requests", "--scenario", "FILE", "--targets", "ja"), "--targets:"),
])  # fmt: skip
async def test_an_option_without_effect_is_refused(command: Command, given: tuple[str, ...], named: str) -> None:
    with pytest.raises(LoadtestError, match=named):
        await command.run(parsed(command, "--out", "o", *given), lambda _line: None)


@pytest.mark.parametrize("command", [SWEEP, RECOMMEND])
async def test_an_unknown_language_starts_nothing(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: object, **__: object) -> None:
        raise AssertionError("nothing is started")

    monkeypatch.setattr(curving, "Bench", started)
    monkeypatch.setattr(recommending, "Bench", started)
    with pytest.raises(LoadtestError, match="no 'ko'"):
        await command.run(parsed(command, "--out", "o", "--source", "ko"), lambda _line: None)


async def ran(command: Command, folder: Path, *arguments: str) -> Results:
    report = await command.run(parsed(command, *SIMULATED, "--out", str(folder), *arguments), lambda _line: None)
    written = write(report, command.name, folder)
    # A report does not tell where the model lies.
    assert "model-7b" in written
    assert "/somewhere" not in written
    return report


@pytest.mark.slow
async def test_a_sweep_of_a_real_gateway(tmp_path: Path) -> None:
    report = await ran(SWEEP, tmp_path, "--loads", "2,40")
    points = report.details["points"]
    assert [each["load"] for each in points] == [2, 40]
    # 40 requests a second of some 150 ms each are three times what two slots do.
    assert not points[1]["summary"]["met"]
    assert len(report.trials) == 2


@pytest.mark.slow
async def test_a_recommendation_from_real_gateways(tmp_path: Path) -> None:
    arguments = ("--start", "2", "--runs", "2", "--most", "2", "--max-num-seqs", "2,4", "--targets", "de,es")
    report = await ran(RECOMMEND, tmp_path, *arguments, "--first-words-ms", "60000", "--step-s", "2")
    assert report.details["unit"] == "meetings"
    assert {each["max_num_seqs"] for each in report.details["tried"]} == {2, 4}
    points = [point for each in report.details["tried"] for point in each["points"]]
    # What of the partials was translated is known of every run.
    assert all(each["summary"]["partials_translated"] is not None for each in points)
    assert all(each["summary"]["first_words"]["count"] for each in points)
    assert all(isinstance(trial.load, InMeetings) for trial in report.trials)
    for name, text in report.files.items():
        assert (tmp_path / name).read_text() == text


# ---------------------------------------------------------------- what is recommended


IN_MEETINGS = Offer(scenario=Scenario(targets=("ja", "es"), partial_every_s=0.3), unit=Unit.MEETINGS)
AT = Point(
    load=40,
    seed=1,
    long=True,
    summary=replace(NOTHING, met=True, records=1_200, tokens_per_s=Spread(400, 400, 400)),
    limit="nothing",
)


def carrying(size: int, capacity: float | None, at_most: float = 100, ended: Ended = Ended.CONFIRMED) -> Tried:
    points = [] if capacity is None else [replace(AT, load=capacity)]
    return Tried(size, Found(capacity, at_most, ended, 8), points=points)


TRIED = [carrying(8, 20), carrying(16, 40), Tried(32, None, "The gateway ended with status 1.")]


def advised(tried: Sequence[Tried], **more: Any) -> list[Finding]:
    told: dict[str, Any] = {"offer": IN_MEETINGS, "device": "machine", **more}
    return advise(tried, **told)


def test_what_is_recommended_can_be_pasted() -> None:
    toml = recommended_toml(TRIED, IN_MEETINGS, "GPU")
    assert tomllib.loads(toml)["engine"] == {"max_num_seqs": 16}
    assert load(overrides={"engine.max_num_seqs": 16}).engine.max_num_seqs == 16
    assert "40 meetings a GPU; plan with 28 meetings (30% kept free)" in toml
    found = advised(TRIED, device="GPU", left_out=["64 sequences"])
    said = {each.name: each for each in found}
    assert said["with 30% kept free"].value == "28 meetings"
    assert said["not measured: 32 sequences"].note == "The gateway ended with status 1."
    assert "64 sequences" in said["the search"].note
    assert not [each.name for each in found if each.passed is False]


def test_kept_partials_are_told_if_asked() -> None:
    at = replace(AT, summary=replace(AT.summary, partials_translated=0.83))
    tried = [replace(TRIED[1], points=[at])]
    watched = replace(IN_MEETINGS, objective=Objective(first_words_ms=1_500.0))
    lines = recommended_toml(tried, watched, "GPU").splitlines()
    assert "# as many of the first words within 1500 ms of when an utterance began;" in lines
    assert "# 83% of the partials translated;" in lines
    assert not [line for line in recommended_toml(tried, IN_MEETINGS, "GPU").splitlines() if "first words" in line]
    (nothing,) = advised([carrying(8, None, 1, Ended.NOTHING)], offer=watched)
    assert "300 ms, and 1500 ms for first words, even under the smallest load" in nothing.note


@pytest.mark.parametrize("ended", [each for each in Ended if each.cut_short])
def test_an_unconfirmed_recommendation_is_marked(ended: Ended) -> None:
    tried = [carrying(8, 20), carrying(16, 40, 80, ended)]
    (carries,) = [each for each in advised(tried) if each.passed is False]
    assert (carries.name, carries.value) == ("a machine carries", "40 meetings")
    assert f"# NOT CONFIRMED: {ended.value}." in recommended_toml(tried, IN_MEETINGS, "machine")
    # A warning tells of a batch that is not recommended.
    others = [carrying(8, 60), tried[1]]
    found = advised(others)
    assert [each.name for each in found if each.passed is False] == []
    (warning,) = [each for each in found if each.name == "cut short: 16 sequences"]
    assert ended.value.capitalize() in warning.note
    assert "NOT CONFIRMED" not in recommended_toml(others, IN_MEETINGS, "machine")


def trying(carried: Mapping[int, float]) -> list[Tried]:
    return [Tried(size, Found(each, None, Ended.CONFIRMED, 1)) for size, each in carried.items()]


@given(st.dictionaries(st.sampled_from([4, 8, 16, 32, 64, 128]), st.floats(0, 100), min_size=1))
def test_a_choice_is_near_the_best(carried: dict[int, float]) -> None:
    choice = choose(trying(carried))
    best = max(carried.values())
    if choice is None:
        assert best == 0
    else:
        own, size = choice[0].capacity, choice[0].max_num_seqs
        assert own >= best * 0.97 or math.isclose(own, best * 0.97)
        assert not any(carried[each] >= best * 0.97 for each in carried if each < size)
