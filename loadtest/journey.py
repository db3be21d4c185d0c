"""The way from a queue in front of a worker to the gateway: every architecture on it, measured in one run.

VoicePing's two reports on their translation service tell what each gave them; ours stands beside it. The systems
that stand for the architectures are started in groups and measured one after another, in rounds of so many
requests at a time. One that cannot start, or cannot go on, is left out; so is what there is no time for.

Knows: the options, what the reports measured, the order, how many lines a round needs, the arithmetic on rounds.
Must not know: how one trial is measured, how a report looks.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gateway.engines.vllm import hardware
from loadtest import options as common
from loadtest.baselines.workers import ARCHITECTURES, baseline
from loadtest.driving.driver import Driver, driver
from loadtest.measuring import measure
from loadtest.options import Command, Say, from_, merged, numbers, with_batch, with_share
from loadtest.results import LoadtestError, until_it_ends
from loadtest.systems.gateway import gateway
from loadtest.systems.server import Running, attempted, get, metric, standing, together
from loadtest.talk.scenario import Scenario, Shape, request_lines
from loadtest.trial.content import NONE, Table, formatted, tabulated
from loadtest.trial.summary import Percentiles, Summary, requests_per_s, summaries
from loadtest.trial.values import Closed, Finding, Http, Results, Trial

_SEQUENCES = (64, 32, 16, 8)

BASELINE, RECOMMENDED = "one-worker", "recommended"


class Told(Struct, frozen=True):
    """What the reports measured at 25 requests at a time."""

    requests_per_s: float
    # In which test, if not in the same as the others.
    note: str = ""


class System(Struct, frozen=True):
    """What is started for one stage, or for two."""

    name: str
    # Name of a baseline; None for the gateway.
    architecture: str | None
    # Settings of a gateway, sections nested.
    settings: dict[str, Any]

    @property
    def engines(self) -> int:
        return 2 if self.architecture == "two-workers" else 1


class Stage(Struct, frozen=True):
    """One row of the table."""

    # Its name in options and results.
    key: str
    title: str
    # The name of its system.
    system: str
    shape: Shape = "natural"
    told: Told | None = None


_TOLD = {
    "one-worker": Told(2.2),
    "two-workers": Told(2.0),
    "static-batching": Told(5.9),
    "gateway-64-uniform": Told(15.0, "uniform test data"),
    "gateway-64": Told(3.5, "staging"),
    "gateway-16": Told(10.7, "staging"),
    RECOMMENDED: Told(16.4, "production, 9 before"),
}


def stages(
    settings: Mapping[str, Any], recommended: Mapping[str, Any], only: Sequence[str] = ()
) -> tuple[list[Stage], list[System]]:
    """All rows, and the systems that they need, each once. only: keys of the rows that are wanted; empty: all.

    settings: what every system has. recommended: what the last gateway has besides. Raises `LoadtestError` for a
    key that does not exist.
    """
    made = {name: System(name.replace("-", " "), name, dict(settings)) for name in ARCHITECTURES}
    for count in _SEQUENCES:
        made[f"gateway-{count}"] = System(f"gateway, {count} sequences", None, with_batch(settings, count))
    made[RECOMMENDED] = System("gateway, recommended", None, merged(settings, recommended))
    keys = list(made)
    keys.insert(keys.index("gateway-64"), "gateway-64-uniform")
    if unknown := [key for key in only if key not in keys]:
        raise LoadtestError(f"There is no stage {unknown[0]!r}; there are {', '.join(keys)}.")
    rows: list[Stage] = []
    systems: dict[str, System] = {}
    for key in (key for key in keys if not only or key in only):
        uniform = key.endswith("-uniform")
        system = made[key.removesuffix("-uniform")]
        title = system.name + (", uniform data" if uniform else "")
        rows.append(Stage(key, title, system.name, "uniform" if uniform else "natural", _TOLD.get(key)))
        systems[system.name] = system
    return rows, list(systems.values())


def groups(systems: Sequence[System], gpu_mib: float | None) -> list[list[System]]:
    """Systems that run at the same time, each engine with the same share of a GPU's memory.

    First one worker and the recommended gateway: what else happens on the machine falls on both. The others one by
    one.
    """
    first = [system for system in systems if system.architecture == BASELINE or system.name.endswith(RECOMMENDED)]
    made = [*filter(None, [first]), *([system] for system in systems if system not in first)]
    engines = max(sum(system.engines for system in group) for group in made)
    return [
        [replace(each, settings=with_share(each.settings, engines, gpu_mib)) for each in group] for group in made
    ]


# ---------------------------------------------------------------- how rounds are played


# No two levels or repetitions say the same, and none what was said while warming up.
_WARM_UP_SEED, _SEEDS_APART = 900_000, 1_000

# Lines of a warm-up at least, and the part of a round that it takes.
_LEAST_WARM_UP, _WARM_UP_PART = 4, 0.2

# A round is never shorter than so many for each one that is in flight. At its end fewer and fewer are: to a queue
# in front of a worker that makes no difference, to a batch it does.
_LEAST_TURNS_QUEUED, _LEAST_TURNS = 2, 8

# Beyond which what is not done has failed.
_LIMIT_TIMES, _LIMIT_S = 4.0, 30.0

# What the systems call the time in their own queues and in the engine's, and the time altogether.
_QUEUES_S = ("gateway_queue_seconds_sum", "vllm:request_queue_time_seconds_sum", "baseline_queue_seconds_total")
_TOTALS_S = ("gateway_translation_seconds_sum", "baseline_response_seconds_total")


class Round(Struct, frozen=True):
    stage: str
    trial: Trial
    # What part of the time its translations spent in queues; None where that is not told.
    queued: float | None
    # Requests at a time.
    in_flight: int


class Rounds(Struct, frozen=True, kw_only=True):
    """How rounds are played. scenario: its shape is the stage's. round_s: about how long one takes, seconds."""

    scenario: Scenario
    round_s: float
    repetitions: int
    processes: int
    say: Say

    async def closed(self, stage: Stage, running: Running, in_flight: int, played: list[Round]) -> None:
        """All repetitions with so many requests at a time, after a short one that is not kept.

        Each is added to `played` once it is over, so that it is there whatever becomes of the next. Raises
        `LoadtestError`.
        """
        load = Closed(in_flight)
        async with driver(running.address, load, processes=self.processes, say=self.say) as playing:
            per_s = await self._warm_up(stage, playing, in_flight)
            turns = _LEAST_TURNS_QUEUED if isinstance(running.address, Http) else _LEAST_TURNS
            for repetition in range(1, self.repetitions + 1):
                # The time that the last ones take is not part of the round.
                count = max(math.ceil(per_s * self.round_s), turns * in_flight) + in_flight
                lines = request_lines(self._scenario(stage, in_flight + repetition * _SEEDS_APART), count)
                queued = await asyncio.to_thread(_queued, running.metrics_url)
                trial = await measure(
                    running,
                    playing,
                    lines,
                    load,
                    name=f"{stage.title}: {in_flight} at a time",
                    repetition=repetition,
                    workload=f"{stage.shape} data",
                    say=self.say,
                    limit_s=_LIMIT_TIMES * max(self.round_s, count / per_s) + _LIMIT_S,
                    allow_bottleneck=True,
                )
                queued_then = await asyncio.to_thread(_queued, running.metrics_url)
                played.append(Round(stage.key, trial, share_in_queues(queued, queued_then), in_flight))
                per_s = max(requests_per_s(trial), per_s / 2)

    async def _warm_up(self, stage: Stage, playing: Driver, in_flight: int) -> float:
        """How many it translates a second with so many at a time, roughly.

        A pass that is over at once tells little of that: most of it is its end, where fewer and fewer are in
        flight. Then there is a longer one.
        """
        scenario = self._scenario(stage, _WARM_UP_SEED + in_flight)
        count, said, per_s = max(in_flight, _LEAST_WARM_UP), 0, 0.0
        for _ in range(2):
            lines = request_lines(scenario, said + count)[said:]
            title = f"{stage.title}: {in_flight} at a time, warming up"
            driven = await playing.play(lines, limit_s=_LIMIT_TIMES * self.round_s + _LIMIT_S, stage=title)
            per_s = max(sum(each.done_s is not None for each in driven.records), 1) / max(driven.elapsed_s, 0.001)
            if driven.elapsed_s > _WARM_UP_PART * self.round_s:
                break
            said, count = said + count, math.ceil(2 * _WARM_UP_PART * self.round_s * per_s)
        return per_s

    def _scenario(self, stage: Stage, seed: int) -> Scenario:
        return replace(self.scenario, shape=stage.shape, seed=self.scenario.seed + seed)


def _queued(metrics_url: str | None) -> tuple[float, float]:
    """Seconds in queues and altogether, of all translations so far; zeros where it is not told. Blocks."""
    text = get(metrics_url)[1] if metrics_url is not None else ""
    queues_s, totals_s = (sum(metric(text, name) or 0.0 for name in names) for names in (_QUEUES_S, _TOTALS_S))
    return queues_s, totals_s


def share_in_queues(before: tuple[float, float], after: tuple[float, float]) -> float | None:
    """Part of the time between two readings that went by in queues; None when nothing was translated."""
    total_s = after[1] - before[1]
    return round((after[0] - before[0]) / total_s, 4) if total_s > 0 else None


async def journey(
    rows: Sequence[Stage],
    groups: Sequence[Sequence[System]],
    concurrency: Sequence[int],
    rounds: Rounds,
    time_limit_s: float,
) -> tuple[list[Round], dict[str, str]]:
    """Every round that there is time for, until an interruption, in the order of the rows; and, by its key, why a
    stage was not measured, or not under all loads.

    groups: systems that are started together. Raises `CancelledError` for an interruption before the first round
    is over.
    """
    played: list[Round] = []
    complete: set[str] = set()
    failed: dict[str, str] = {}

    def fails(stage: Stage, why: str) -> None:
        failed[stage.key] = why
        rounds.say(f"going on without {stage.title}: {why}")

    def cannot_start(system: str, why: str) -> None:
        for stage in rows:
            if stage.system == system:
                fails(stage, why)

    async def go() -> None:
        for group in groups:
            async with together(*(attempted(_start(each, rounds.say)) for each in group)) as started:
                running = standing([each.name for each in group], started, cannot_start)
                here = [stage for stage in rows if stage.system in running]
                # Level by level, so that what drifts falls on all of them.
                for in_flight in concurrency:
                    for stage in (each for each in here if each.key not in failed):
                        try:
                            await rounds.closed(stage, running[stage.system], in_flight, played)
                        except LoadtestError as error:
                            fails(stage, str(error))
                complete.update(stage.key for stage in here if stage.key not in failed)

    why = await until_it_ends(go(), time_limit_s, lambda: bool(played))
    order = [stage.key for stage in rows]
    missing = {key: failed.get(key, why) for key in order if key not in complete}
    return sorted(played, key=lambda each: order.index(each.stage)), missing


def _start(system: System, say: Say) -> AbstractAsyncContextManager[Running]:
    if system.architecture is None:
        return gateway(system.settings, say, name=system.name)
    return baseline(system.architecture, system.settings, say, name=system.name)


# ---------------------------------------------------------------- what was found

# Ratio that the reports got in production over one worker.
_BAR = 7.5


class Busy(Struct, frozen=True):
    """How much of the machine was in use, over all samples: percent of the GPU, or CPU cores of the engines."""

    mean: float
    # The standard deviation.
    deviation: float


class Point(Struct, frozen=True):
    """One load of one stage, all repetitions: what its summary does not say."""

    # The name of its trials and of their summary.
    trial: str
    # Part of the time spent in queues.
    queued: float | None
    busy: Busy | None


class Row(Struct, frozen=True):
    """One stage."""

    key: str
    title: str
    # Number of the reports; None where they have none.
    told: Told | None
    # By requests at a time.
    points: dict[int, Point]


class Outcome(Struct, frozen=True):
    """What `details` of the report holds."""

    # Whether `busy` is of a GPU.
    gpu: bool
    # The highest that was measured.
    concurrency: int
    # All stages, also those that were not measured.
    rows: list[Row]


def outcome(stages: Sequence[Stage], rounds: Sequence[Round]) -> Outcome:
    """rounds: of these stages, of all loads or only some."""
    by_load: dict[str, dict[int, list[Round]]] = {stage.key: {} for stage in stages}
    for each in rounds:
        by_load[each.stage].setdefault(each.in_flight, []).append(each)
    rows = [
        Row(stage.key, stage.title, stage.told, {load: _point(own) for load, own in by_load[stage.key].items()})
        for stage in stages
    ]
    gpu = any(sample.gpu is not None for each in rounds for sample in each.trial.samples)
    return Outcome(gpu, max((each.in_flight for each in rounds), default=0), rows)


def _point(rounds: Sequence[Round]) -> Point:
    queued = [each.queued for each in rounds if each.queued is not None]
    samples = [sample for each in rounds for sample in each.trial.samples]
    busy = [sample.gpu for sample in samples if sample.gpu is not None]
    busy = busy or [cores for sample in samples if (cores := sample.cores.get("engine")) is not None]
    return Point(
        trial=rounds[0].trial.name,
        queued=round(statistics.fmean(queued), 4) if queued else None,
        busy=Busy(round(statistics.fmean(busy), 3), round(statistics.pstdev(busy), 3)) if busy else None,
    )


class _Most:
    """Stages at the highest concurrency, by key, as far as they were measured there; and what the reports tell."""

    def __init__(self, found: Outcome, summaries: Iterable[Summary]) -> None:
        by_name = {summary.name: summary for summary in summaries}
        self.points = {
            row.key: row.points[found.concurrency] for row in found.rows if found.concurrency in row.points
        }
        self.summaries = {key: by_name[point.trial] for key, point in self.points.items()}
        self.per_s = {key: summary.requests_per_s.median for key, summary in self.summaries.items()}
        self.told_per_s = {row.key: row.told.requests_per_s for row in found.rows if row.told is not None}

    def in_the_reports(self, key: str, base: str) -> str:
        """A sentence, or nothing."""
        ratio = _ratio(self.told_per_s, key, base)
        if ratio is None:
            return ""
        return f"In the reports {self.told_per_s[key]:g} / {self.told_per_s[base]:g} = {ratio:.1f} ×."


def _ratio(per_s: Mapping[str, float], key: str, base: str = BASELINE) -> float | None:
    """Requests a second over those of another stage; None where one of them is not known."""
    return per_s[key] / max(per_s[base], 1e-9) if key in per_s and base in per_s else None


def findings(
    found: Outcome, summaries: Iterable[Summary], missing: Mapping[str, str], *, bars: bool
) -> list[Finding]:
    """summaries: of the trials. missing: key of a stage → why it was not measured, or not under all loads. bars:
    whether the ratio that the reports reached has to be reached."""
    said = [
        Finding(row.title, value, "under all loads", False, missing[row.key])
        for row in found.rows
        if row.key in missing
        for value in ["not under all loads" if row.points else "missing"]
    ]
    most, at = _Most(found, summaries), f"{found.concurrency} at a time"
    if (ratio := _ratio(most.per_s, RECOMMENDED)) is not None:
        note, held_back = most.in_the_reports(RECOMMENDED, BASELINE), most.summaries[BASELINE].limited is not None
        # Held back, the gateway would reach more; a worker that is held back makes it look better than it is.
        note += " The driver held the gateway back." * (most.summaries[RECOMMENDED].limited is not None)
        note += " The driver held one worker back: the ratio says nothing." * held_back
        name, passed = f"recommended gateway over one worker, requests/s, {at}", ratio >= _BAR and not held_back
        said.append(Finding(name, f"{ratio:.2f} ×", f"≥ {_BAR:g} ×" * bars, passed if bars else None, note))
    if BASELINE in most.points and (queued := most.points[BASELINE].queued) is not None:
        name = f"one worker, time spent in queues, {at}"
        said.append(Finding(name, f"{queued:.0%}", note="In the reports 97 %."))
    if (ratio := _ratio(most.per_s, "gateway-64-uniform", "gateway-64")) is not None:
        note = most.in_the_reports("gateway-64-uniform", "gateway-64")
        note += " Test data of one length promised what talk did not keep."
        name = f"64 sequences, uniform data over natural, requests/s, {at}"
        said.append(Finding(name, f"{ratio:.2f} ×", note=note))
    return said


def table(found: Outcome, summaries: Iterable[Summary]) -> Table:
    """Each stage beside the reports' own. summaries: of the trials."""
    most = _Most(found, summaries)
    busy_form = "{:.0f} ± {:.0f} %" if found.gpu else "{:.2f} ± {:.2f}"

    def reports(row: Row) -> str:
        if row.told is None:
            return NONE
        return f"{row.told.requests_per_s:g}" + (f" ({row.told.note})" if row.told.note else "")

    def there(cell: Callable[[Summary], str]) -> Callable[[Row], str]:
        return lambda row: cell(most.summaries[row.key]) if row.key in most.summaries else NONE

    def latency(latency: Percentiles) -> str:
        return f"{formatted(latency.p50_ms, ',.0f')} / {formatted(latency.p99_ms, ',.0f')}"

    def busy(row: Row) -> str:
        known = most.points[row.key].busy if row.key in most.points else None
        return NONE if known is None else busy_form.format(known.mean, known.deviation)

    columns: list[tuple[str, Callable[[Row], str]]] = [
        ("architecture", lambda row: row.title),
        ("reports: requests/s", reports),
        ("reports: × one worker", lambda row: formatted(_ratio(most.told_per_s, row.key), ".1f")),
        ("× one worker", lambda row: formatted(_ratio(most.per_s, row.key), ".1f")),
        ("requests/s", there(lambda own: f"{own.requests_per_s.median:.1f}" + "*" * (own.limited is not None))),
        ("latency p50 / p99, ms", there(lambda own: latency(own.total))),
        ("first token p50 / p99, ms", there(lambda own: latency(own.first_token))),
        ("failed", there(lambda own: str(own.failed))),
        ("time in queues", lambda row: formatted(getattr(most.points.get(row.key), "queued", None), ".0%")),
        (f"{'GPU busy' if found.gpu else 'cores in use by engines'}, mean ± deviation", busy),
    ]
    return tabulated(
        f"The journey, {found.concurrency} requests at a time",
        found.rows,
        columns,
        "The reports measured another model on another GPU: compare how many times one worker's requests/s an "
        "architecture reaches. A baseline answers with the whole translation: its first token is its last. "
        "Deviation is the standard deviation over samples: high is spiky, low is steady. An asterisk: the driver "
        "was the limit.",
    )


# ---------------------------------------------------------------- the command

# Options that are in the report as they are.
_REPORTED = ("round_s", "repetitions", "processes", "seed", "source", "targets")


def _settings(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise argparse.ArgumentTypeError(f"is not a JSON object: {error}") from None


def _add(parser: argparse.ArgumentParser) -> None:
    shared = ("--out", *common.ENGINE, "--max-num-seqs", *common.LANGUAGES, *common.DRIVER, "--objective-ms")
    common.add_options(parser, *shared, "--repetitions", time_limit_s=7_200)
    add = parser.add_argument
    add(
        "--concurrency",
        type=numbers,
        default="1,5,10,15,20,25",
        metavar="N,N",
        help="requests at a time, one level each; the table is of the highest",
    )
    add("--round-s", type=from_(0.5, 600), default=8.0, metavar="S", help="about how long one round takes")
    add(
        "--recommended",
        type=_settings,
        default="{}",
        metavar="JSON",
        help='settings of the gateway of the last stage, besides the others: {"engine": {"max_num_seqs": 32}}',
    )
    add(
        "--stages",
        type=lambda text: tuple(filter(None, text.split(","))),
        default="",
        metavar="NAME,NAME",
        help="one-worker, two-workers, static-batching, gateway-64-uniform, gateway-64 to gateway-8, recommended; "
        "without it, all",
    )
    add("--bars", action="store_true", help="exit status 1 unless the gateway reaches 7.5 × one worker")


async def _run(options: argparse.Namespace, say: Say) -> Results:
    settings = common.settings(options)
    common.check(merged(settings, options.recommended))
    rows, systems = stages(settings, options.recommended, options.stages)
    simulated = settings.get("engine", {}).get("kind") == "simulated"
    rounds = Rounds(
        scenario=Scenario(seed=options.seed, source=options.source, targets=options.targets),
        round_s=options.round_s,
        repetitions=options.repetitions,
        processes=options.processes,
        say=say,
    )
    concurrency = sorted(options.concurrency)
    grouped = groups(systems, None if simulated else hardware.memory_mib())
    played, missing = await journey(rows, grouped, concurrency, rounds, options.time_limit_s)
    if not played:
        why = " ".join(dict.fromkeys(missing.values()))
        raise LoadtestError(f"Not a single round could be played. {why}")
    objective = common.objective(options)
    found, trials = outcome(rows, played), [each.trial for each in played]
    told = summaries(trials, objective)
    return Results(
        model=common.model_name(settings),
        settings={
            **{name: getattr(options, name) for name in _REPORTED},
            "concurrency": concurrency,
            "engine": common.shown({"engine": settings.get("engine", {})})["engine"],
            "recommended": common.shown(options.recommended),
        },
        objective=objective,
        findings=findings(found, told, missing, bars=options.bars),
        parts=[table(found, told)],
        trials=trials,
        details=msgspec.to_builtins(found),
    )


JOURNEY = Command(
    "journey",
    "from a queue in front of one worker to the gateway, every architecture in one run",
    "The architectures of the original reports and the gateway, with the same model and lines on this "
    "machine: an HTTP front with one worker, two workers, static batching, the gateway with batches of 64, 32, 16 "
    "and 8 on data of one length and of natural lengths, and with the recommended settings. One table beside the "
    "reports' own. Exit status 1 when a stage could not be measured under all loads, and when a bar is "
    "missed.",
    _add,
    _run,
)
