"""What the journey found: a row for each stage beside the reports' own, and what is said of all of them; and the
options of `python -m loadtest journey`.

Knows: options, rounds, stages, summaries, the arithmetic on them. Must not know: how anything was measured.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from gateway.engines import gpu
from loadtest import options as common
from loadtest.journey.run import BASELINE, RECOMMENDED, Plan, Round, Rounds, Stage, Told, groups, journey, stages
from loadtest.options import Command, Say, between, from_, numbers
from loadtest.results import LoadtestError
from loadtest.talk.scenario import Scenario
from loadtest.trial.content import NONE, Table, formatted, tabulated
from loadtest.trial.summary import Percentiles, Summary, summaries
from loadtest.trial.values import Finding, Results, Trial

# What the reports got in production over one worker.
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
    # None where the reports have no such number.
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
    rows = [
        Row(stage.key, stage.title, stage.told, _points(each for each in rounds if each.stage == stage.key))
        for stage in stages
    ]
    gpu = any(sample.gpu is not None for each in rounds for sample in each.trial.samples)
    return Outcome(gpu, max((each.in_flight for each in rounds), default=0), rows)


def _points(rounds: Iterable[Round]) -> dict[int, Point]:
    by_load: dict[int, list[Round]] = {}
    for each in rounds:
        by_load.setdefault(each.in_flight, []).append(each)
    points: dict[int, Point] = {}
    for in_flight, own in by_load.items():
        queued = [each.queued for each in own if each.queued is not None]
        points[in_flight] = Point(
            trial=own[0].trial.name,
            queued=round(statistics.fmean(queued), 4) if queued else None,
            busy=_busy([each.trial for each in own]),
        )
    return points


def _busy(trials: Iterable[Trial]) -> Busy | None:
    samples = [sample for trial in trials for sample in trial.samples]
    values = [sample.gpu for sample in samples if sample.gpu is not None]
    values = values or [cores for sample in samples if (cores := sample.cores.get("engine")) is not None]
    return Busy(round(statistics.fmean(values), 3), round(statistics.pstdev(values), 3)) if values else None


# ---------------------------------------------------------------- findings


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
        Finding(
            row.title,
            "not under all loads" if row.points else "missing",
            "under all loads",
            False,
            missing[row.key],
        )
        for row in found.rows
        if row.key in missing
    ]
    most, at = _Most(found, summaries), f"{found.concurrency} at a time"
    if (ratio := _ratio(most.per_s, RECOMMENDED)) is not None:
        note, held_back = most.in_the_reports(RECOMMENDED, BASELINE), most.summaries[BASELINE].limited is not None
        # Held back, the gateway would reach more; a worker that is held back makes it look better than it is.
        note += " The driver held the gateway back." * (most.summaries[RECOMMENDED].limited is not None)
        note += " The driver held one worker back: the ratio says nothing." * held_back
        name, passed = f"recommended gateway over one worker, requests/s, {at}", ratio >= _BAR and not held_back
        said.append(
            Finding(name, f"{ratio:.2f} ×", bar=f"≥ {_BAR:g} ×" * bars, passed=passed if bars else None, note=note)
        )
    if BASELINE in most.points and (queued := most.points[BASELINE].queued) is not None:
        name = f"one worker, time spent in queues, {at}"
        said.append(Finding(name, f"{queued:.0%}", note="In the reports 97 %."))
    if (ratio := _ratio(most.per_s, "gateway-64-uniform", "gateway-64")) is not None:
        note = most.in_the_reports("gateway-64-uniform", "gateway-64")
        note += " Test data of one length promised what talk did not keep."
        name = f"64 sequences, uniform data over natural, requests/s, {at}"
        said.append(Finding(name, f"{ratio:.2f} ×", note=note))
    return said


# ---------------------------------------------------------------- the table


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

    def busy(row: Row) -> str:
        known = most.points[row.key].busy if row.key in most.points else None
        return NONE if known is None else busy_form.format(known.mean, known.deviation)

    columns: list[tuple[str, Callable[[Row], str]]] = [
        ("architecture", lambda row: row.title),
        ("reports: requests/s", reports),
        ("reports: × one worker", lambda row: formatted(_ratio(most.told_per_s, row.key), ".1f")),
        ("× one worker", lambda row: formatted(_ratio(most.per_s, row.key), ".1f")),
        ("requests/s", there(lambda own: f"{own.requests_per_s.median:.1f}" + "*" * (own.limited is not None))),
        ("latency p50 / p99, ms", there(lambda own: _p50_p99(own.total))),
        ("first token p50 / p99, ms", there(lambda own: _p50_p99(own.first_token))),
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


def _p50_p99(latency: Percentiles) -> str:
    return f"{formatted(latency.p50_ms, ',.0f')} / {formatted(latency.p99_ms, ',.0f')}"


# ---------------------------------------------------------------- the command


_CONCURRENCY = (1, 5, 10, 15, 20, 25)

# Options that are in the report as they are.
_TOLD = ("round_s", "repetitions", "processes", "seed", "source", "targets")


def _settings(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise argparse.ArgumentTypeError(f"is no JSON object: {error}") from None


def _add(parser: argparse.ArgumentParser) -> None:
    shared = ("--out", *common.ENGINE, "--max-num-seqs", *common.LANGUAGES, *common.DRIVER, "--objective-ms")
    common.add_options(parser, *shared, time_limit_s=7_200)
    add = parser.add_argument
    add(
        "--concurrency",
        type=numbers,
        default=",".join(map(str, _CONCURRENCY)),
        metavar="N,N",
        help="requests at a time, one level each; the table is of the highest",
    )
    add("--round-s", type=from_(0.5, 600), default=8.0, metavar="S", help="about how long one round takes")
    add("--repetitions", type=between(1, 20), default=1, metavar="N", help="rounds at each level")
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
    common.check(common.merged(settings, options.recommended))
    rows, systems = stages(settings, options.recommended, options.stages)
    simulated = settings.get("engine", {}).get("kind") == "simulated"
    rounds = Rounds(
        scenario=Scenario(seed=options.seed, source=options.source, targets=options.targets),
        round_s=options.round_s,
        repetitions=options.repetitions,
        processes=options.processes,
        say=say,
    )
    played = await journey(
        Plan(
            stages=rows,
            groups=groups(systems, None if simulated else gpu.memory_mib()),
            concurrency=sorted(options.concurrency),
            rounds=rounds,
            time_limit_s=options.time_limit_s,
        )
    )
    if not played.rounds:
        why = " ".join(dict.fromkeys(played.missing.values()))
        raise LoadtestError(f"Not a single round could be played. {why}")
    objective = common.objective(options)
    found, trials = outcome(rows, played.rounds), [each.trial for each in played.rounds]
    told = summaries(trials, objective)
    return Results(
        model=common.model_name(settings),
        settings={
            **{name: getattr(options, name) for name in _TOLD},
            "concurrency": sorted(options.concurrency),
            "engine": common.shown({"engine": settings.get("engine", {})})["engine"],
            "recommended": common.shown(options.recommended),
        },
        objective=objective,
        findings=findings(found, told, played.missing, bars=options.bars),
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
