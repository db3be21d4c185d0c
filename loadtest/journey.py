"""The way from a queue in front of a worker to the gateway: every architecture on it, measured in one run.

VoicePing's two reports on their translation service tell what each gave them; ours stands beside it. The systems
that stand for the architectures are peers: started in groups, measured in rounds of so many requests in flight.
One that cannot start, or cannot go on, is left out; so is what there is no time for.

Knows: the options, what the reports measured, the order, the arithmetic on rounds. Must not know: how one round is
played or measured, how a report looks.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gateway.engines.vllm import hardware
from loadtest import options as common
from loadtest.baselines.workers import ARCHITECTURES
from loadtest.options import Command, Say, between, merged, numbers, with_batch, with_share
from loadtest.peers.run import Outcome as Played
from loadtest.peers.run import Peer, PeersPlan, run
from loadtest.results import LoadtestError
from loadtest.talk.scenario import Scenario
from loadtest.trial.content import NONE, Table, formatted, tabulated
from loadtest.trial.summary import Percentiles, Summary, summarise
from loadtest.trial.values import Closed, Finding, Objective, Results, Sample, Trial

_SEQUENCES = (64, 32, 16, 8)

BASELINE, RECOMMENDED = "one-worker", "recommended"


class Told(Struct, frozen=True):
    """What the reports measured at 25 requests at a time."""

    requests_per_s: float
    # In which test, if not in the same as the others.
    note: str = ""


class Stage(Struct, frozen=True):
    """One row of the table."""

    # Its name in options and results.
    key: str
    peer: Peer
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


def stages(settings: Mapping[str, Any], recommended: Mapping[str, Any], only: Sequence[str] = ()) -> list[Stage]:
    """All rows. only: keys of the rows that are wanted; empty: all.

    settings: what every system has. recommended: what the last gateway has besides. Raises `LoadtestError` for a
    key that does not exist.
    """
    own = dict(settings)
    peers = {
        name: Peer(name.replace("-", " "), "baseline", own, architecture=name, shape="natural")
        for name in ARCHITECTURES
    }
    for count in _SEQUENCES:
        title = f"gateway, {count} sequences"
        made = Peer(title, "gateway", with_batch(settings, count), shape="natural")
        if count == _SEQUENCES[0]:
            peers[f"gateway-{count}-uniform"] = replace(made, name=f"{title}, uniform data", shape="uniform")
        peers[f"gateway-{count}"] = made
    peers[RECOMMENDED] = Peer("gateway, recommended", "gateway", merged(settings, recommended), shape="natural")
    if unknown := [key for key in only if key not in peers]:
        raise LoadtestError(f"There is no stage {unknown[0]!r}; there are {', '.join(peers)}.")
    return [Stage(key, peer, _TOLD.get(key)) for key, peer in peers.items() if not only or key in only]


def groups(rows: Sequence[Stage], gpu_mib: float | None) -> list[list[Peer]]:
    """Systems that run at the same time, each engine with the same share of a GPU's memory.

    First one worker and the recommended gateway: what else happens on the machine falls on both. The others one by
    one.
    """
    first = [stage.peer for stage in rows if stage.key in (BASELINE, RECOMMENDED)]
    made = [*filter(None, [first]), *([stage.peer] for stage in rows if stage.peer not in first)]
    engines = max(sum(peer.engines for peer in group) for group in made)
    return [
        [replace(each, settings=with_share(each.settings, engines, gpu_mib)) for each in group] for group in made
    ]


def missing(rows: Sequence[Stage], levels: Sequence[int], played: Played) -> dict[str, str]:
    """By its key, why a stage was not measured in all rounds."""
    known = {(trial.system, trial.load) for trial in played.trials}
    return {
        stage.key: played.failures.get(stage.peer.name, played.cut_short)
        for stage in rows
        if stage.peer.name in played.failures
        or not all((stage.peer.name, Closed(level)) in known for level in levels)
    }


# ---------------------------------------------------------------- what was found

# Ratio that the reports got in production over one worker.
_BAR = 7.5


class Row(Struct, frozen=True):
    """One stage, under the highest load that any stage had."""

    key: str
    title: str
    # Number of the reports; None where they have none.
    told: Told | None
    # The summary of its trials there; None where there are none.
    summary: Summary | None = None
    # Part of the time spent in queues; None where it is not known.
    queued: float | None = None
    # How much of the machine was in use, over all samples: mean and standard deviation.
    busy: str = NONE


def rows(known: Iterable[Stage], trials: Iterable[Trial], in_flight: int, objective: Objective) -> list[Row]:
    """All stages. trials: under any load. in_flight: the one that counts."""
    highest = [each for each in trials if each.load == Closed(in_flight)]
    return [
        _row(stage, [each for each in highest if each.system == stage.peer.name], objective) for stage in known
    ]


def _row(stage: Stage, trials: Sequence[Trial], objective: Objective) -> Row:
    made = Row(stage.key, stage.peer.name, stage.told)
    if not trials:
        return made
    queued = [each.queued for each in trials if each.queued is not None]
    return replace(
        made,
        summary=summarise(trials, objective),
        queued=round(statistics.fmean(queued), 4) if queued else None,
        busy=_busy([sample for each in trials for sample in each.samples]),
    )


def _busy(samples: Sequence[Sample]) -> str:
    if gpu := [sample.gpu for sample in samples if sample.gpu is not None]:
        return f"{statistics.fmean(gpu):.0f} ± {statistics.pstdev(gpu):.0f} % of the GPU"
    if cores := [sample.cores["engine"] for sample in samples if "engine" in sample.cores]:
        return f"{statistics.fmean(cores):.2f} ± {statistics.pstdev(cores):.2f} cores"
    return NONE


class _Speeds:
    """Requests a second by key of a stage, as far as they are known: here, and in the reports."""

    def __init__(self, found: Sequence[Row]) -> None:
        self.here = {row.key: row.summary.requests_per_s.median for row in found if row.summary is not None}
        self.told = {row.key: row.told.requests_per_s for row in found if row.told is not None}

    def in_the_reports(self, key: str, base: str) -> str:
        """A sentence, or nothing."""
        ratio = _ratio(self.told, key, base)
        if ratio is None:
            return ""
        return f"In the reports {self.told[key]:g} / {self.told[base]:g} = {ratio:.1f} ×."


def _ratio(per_s: Mapping[str, float], key: str, base: str = BASELINE) -> float | None:
    """Requests a second over those of another stage; None where one of them is not known."""
    return per_s[key] / max(per_s[base], 1e-9) if key in per_s and base in per_s else None


def findings(found: Sequence[Row], in_flight: int, missing: Mapping[str, str], *, bars: bool) -> list[Finding]:
    """in_flight: that load. missing: key of a stage → why it was not measured, or not under all loads. bars:
    whether the ratio that the reports reached has to be reached."""
    said = [
        Finding(row.title, "not measured", "under all loads", False, missing[row.key])
        for row in found
        if row.key in missing
    ]
    speeds, at = _Speeds(found), f"{in_flight} in flight"
    limited = {row.key for row in found if row.summary is not None and row.summary.limited is not None}
    if (ratio := _ratio(speeds.here, RECOMMENDED)) is not None:
        note, held_back = speeds.in_the_reports(RECOMMENDED, BASELINE), BASELINE in limited
        # Held back, the gateway would reach more; a worker that is held back makes it look better than it is.
        note += " The driver held the gateway back." * (RECOMMENDED in limited)
        note += " The driver held one worker back: the ratio says nothing." * held_back
        name, passed = f"recommended gateway over one worker, requests/s, {at}", ratio >= _BAR and not held_back
        said.append(Finding(name, f"{ratio:.2f} ×", f"≥ {_BAR:g} ×" * bars, passed if bars else None, note))
    for queued in (row.queued for row in found if row.key == BASELINE and row.queued is not None):
        name = f"one worker, time spent in queues, {at}"
        said.append(Finding(name, f"{queued:.0%}", note="In the reports 97 %."))
    if (ratio := _ratio(speeds.here, "gateway-64-uniform", "gateway-64")) is not None:
        note = speeds.in_the_reports("gateway-64-uniform", "gateway-64")
        note += " Test data of one length promised what talk did not keep."
        name = f"64 sequences, uniform data over natural, requests/s, {at}"
        said.append(Finding(name, f"{ratio:.2f} ×", note=note))
    return said


def table(found: Sequence[Row], in_flight: int) -> Table:
    """Each stage beside the reports' own. in_flight: as for `findings`."""
    speeds = _Speeds(found)

    def reports(row: Row) -> str:
        if row.told is None:
            return NONE
        return f"{row.told.requests_per_s:g}" + (f" ({row.told.note})" if row.told.note else "")

    def there(cell: Callable[[Summary], str]) -> Callable[[Row], str]:
        return lambda row: NONE if row.summary is None else cell(row.summary)

    def latency(latency: Percentiles) -> str:
        return f"{formatted(latency.p50_ms, ',.0f')} / {formatted(latency.p99_ms, ',.0f')}"

    columns: list[tuple[str, Callable[[Row], str]]] = [
        ("architecture", lambda row: row.title),
        ("reports: requests/s", reports),
        ("reports: × one worker", lambda row: formatted(_ratio(speeds.told, row.key), ".1f")),
        ("× one worker", lambda row: formatted(_ratio(speeds.here, row.key), ".1f")),
        ("requests/s", there(lambda own: f"{own.requests_per_s.median:.1f}" + "*" * (own.limited is not None))),
        ("latency p50 / p99, ms", there(lambda own: latency(own.total))),
        ("first token p50 / p99, ms", there(lambda own: latency(own.first_token))),
        ("failed", there(lambda own: str(own.failed))),
        ("time in queues", lambda row: formatted(row.queued, ".0%")),
        ("in use by engines, mean ± deviation", lambda row: row.busy),
    ]
    return tabulated(
        f"The journey, {in_flight} requests in flight",
        found,
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
    add("--round-s", type=between(0.5, 600.0), default=8.0, metavar="S", help="about how long one round takes")
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
    known = stages(settings, options.recommended, options.stages)
    simulated = settings.get("engine", {}).get("kind") == "simulated"
    grouped = groups(known, None if simulated else hardware.memory_mib())
    concurrency = tuple(sorted(options.concurrency))
    plan = PeersPlan(
        peers=tuple(peer for group in grouped for peer in group),
        in_flight=concurrency,
        repetitions=options.repetitions,
        round_s=options.round_s,
        scenario=Scenario(seed=options.seed, source=options.source, targets=options.targets),
        processes=options.processes,
        time_limit_s=options.time_limit_s,
        alike=False,
    )
    played = await run(plan, say, grouped)
    left_out = missing(known, concurrency, played)
    if not played.trials:
        why = " ".join(dict.fromkeys(left_out.values()))
        raise LoadtestError(f"Not a single round could be played. {why}")
    order = [stage.peer.name for stage in known]
    trials = sorted(played.trials, key=lambda each: order.index(each.system))
    objective = common.objective(options)
    in_flight = max(each.load.in_flight for each in trials if isinstance(each.load, Closed))
    found = rows(known, trials, in_flight, objective)
    return Results(
        model=common.model_name(settings),
        settings={
            **{name: getattr(options, name) for name in _REPORTED},
            "concurrency": concurrency,
            "engine": common.shown({"engine": settings.get("engine", {})})["engine"],
            "recommended": common.shown(options.recommended),
        },
        objective=objective,
        findings=findings(found, in_flight, left_out, bars=options.bars),
        parts=[table(found, in_flight)],
        trials=trials,
        details={"concurrency": in_flight, "rows": msgspec.to_builtins(found)},
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
