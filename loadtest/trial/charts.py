"""Which charts a report has, and what is on them, for whatever trials there are.

Knows: summaries, what each picture tells. Must not know: how anything is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from loadtest.results import Spread
from loadtest.trial.content import MOST_SERIES, Chart, Mark, Series
from loadtest.trial.summary import Percentiles, Summary, several_gpus
from loadtest.trial.values import Closed, Objective, Sample, Trial

# How the names of trials end: `, 5 in flight`, `: 5 at a time`, ` at 5/s`, `, 5 meetings, confirmation`.
_LOAD = re.compile(r"[ ,:]*(\b(at|in) )?[\d.e+]+(/s| meetings?| in flight| at a time| a second)\b.*")

_Value = Callable[[Sample], float | None]

_SECONDS = "seconds after the trial's beginning"
_IN_FLIGHT, _OFFERED = "requests in flight", "offered, requests/s"


def charts(summaries: Sequence[Summary], trials: Sequence[Trial], objective: Objective) -> list[Chart]:
    """In the order of what they tell; none is empty."""
    # A trial of which nothing was asked has nothing to show.
    found = groups(summary for summary in summaries if summary.records)
    rates = [group for group in found if not group.closed and len(group.summaries) > 1]
    closed = [group for group in found if group.closed]
    first = {trial.name: trial for trial in reversed(trials)}
    return [
        *(_against_rate(rates, objective) if rates else ()),
        *(_against_in_flight(closed[:MOST_SERIES]) if closed else ()),
        *_timelines([first[summary.name] for summary in _chosen(found) if summary.name in first]),
    ]


def _chosen(found: Sequence[Group]) -> list[Summary]:
    """The knee of an open loop and the highest load of each group; fewer where that is too many."""
    highest = [group.summaries[-1] for group in found][:MOST_SERIES]
    knees = [group.knee for group in found if not group.closed and group.knee is not None]
    room = MOST_SERIES // 2 - len(highest)
    extra = [knee for knee in knees if knee not in highest][: max(room, 0)]
    names = {each.name for each in (*highest, *extra)}
    return [summary for group in found for summary in group.summaries if summary.name in names]


# ---------------------------------------------------------------- open loop


def _against_rate(found: Sequence[Group], objective: Objective) -> Iterator[Chart]:
    """Latency and goodput by how much was offered, for groups of several rates."""
    goal = Mark(f"objective {objective.first_token_ms:g} ms", objective.first_token_ms)
    alone = len(found) == 1
    knees = [
        Mark(f"kept to {knee.offered_per_s:.3g}/s", knee.offered_per_s or 0.0, "x")
        for group in found
        if alone and (knee := group.knee) is not None and knee is not group.summaries[-1]
    ]
    lost = sum(each.failed for group in found for each in group.summaries)
    yield Chart(
        title="First token against offered rate",
        caption="Latency from when a line was due, over all repetitions."
        + (f" {lost:,} translations failed and have no latency." if lost else ""),
        x_label=_OFFERED,
        y_label="first token, ms",
        series=_percentile_lines(found),
        marks=(goal, *knees),
        log_y=True,
    )
    goodput = [
        _spread_line("goodput" if alone else group.label, group, lambda each: each.goodput_per_s, number)
        for number, group in enumerate(found[:MOST_SERIES])
    ]
    finished = [_spread_line("finished", found[0], lambda each: each.requests_per_s, 1, style=1)] if alone else []
    yield Chart(
        title="Goodput against offered rate",
        caption="Finished translations a second, of which those count whose first token came within "
        f"{objective.first_token_ms:g} ms of when its line was due. On the thin diagonal everything that was "
        "offered would be of use. Whiskers: lowest and highest of the repetitions.",
        x_label=_OFFERED,
        y_label="translations/s",
        series=[*goodput, *finished],
        marks=[Mark("offered", axis="both")],
    )


def _percentile_lines(found: Sequence[Group]) -> list[Series]:
    """All three for one group, else the last."""
    kinds: list[tuple[str, Callable[[Percentiles], float | None], int]] = [
        ("p50", lambda each: each.p50_ms, 1),
        ("p90", lambda each: each.p90_ms, 2),
        ("p99", lambda each: each.p99_ms, 0),
    ]
    if len(found) == 1:
        [group] = found
        return [_line(name, group, of, kind, style) for kind, (name, of, style) in enumerate(kinds)]
    name, of, _ = kinds[2]
    return [_line(f"{group.label} {name}", group, of, number) for number, group in enumerate(found[:MOST_SERIES])]


def _line(
    name: str, group: Group, value: Callable[[Percentiles], float | None], colour: int, style: int = 0
) -> Series:
    firsts = [value(each.first_token) for each in group.summaries]
    return Series(name, group.loads, firsts, colour=colour, style=style)


def _spread_line(
    name: str, group: Group, value: Callable[[Summary], Spread], colour: int, style: int = 0
) -> Series:
    spreads = [value(each) for each in group.summaries]
    return Series(
        name,
        group.loads,
        [spread.median for spread in spreads],
        low=[spread.low for spread in spreads],
        high=[spread.high for spread in spreads],
        colour=colour,
        style=style,
    )


def _against_in_flight(found: Sequence[Group]) -> Iterator[Chart]:
    """Requests a second and first token by how many are in flight."""
    yield Chart(
        title="Requests a second against requests in flight",
        caption="Closed loop: the next request is sent when one is done. Medians; whiskers: lowest and highest "
        "repetition.",
        x_label=_IN_FLIGHT,
        y_label="requests/s",
        series=[
            _spread_line(group.label, group, lambda each: each.requests_per_s, number)
            for number, group in enumerate(found)
        ],
    )
    yield Chart(
        title="First token (p99) against requests in flight",
        caption="Closed loop: 99 % of the first tokens came within this time after their request was sent, over "
        "all repetitions.",
        x_label=_IN_FLIGHT,
        y_label="first token p99, ms",
        series=[_line(group.label, group, lambda each: each.p99_ms, number) for number, group in enumerate(found)],
        log_y=True,
    )


class Group(Struct, frozen=True):
    """One curve."""

    # For people, its own among groups of one kind of load.
    label: str
    closed: bool
    # By rising load, one each.
    summaries: list[Summary]

    @property
    def loads(self) -> list[float]:
        """Requests in flight, or offered a second."""
        return [_amount(each) for each in self.summaries]

    @property
    def knee(self) -> Summary | None:
        """The highest load up to which every one kept the objective."""
        kept: Summary | None = None
        for summary in self.summaries:
            if not summary.met:
                break
            kept = summary
        return kept


def groups(summaries: Iterable[Summary]) -> list[Group]:
    """By what stands in the name of a trial before its load, in order of appearance.

    Of a load that was tried several times under different names, the trial with the most translations counts.
    """
    found: dict[tuple[bool, str], dict[float, Summary]] = {}
    for summary in summaries:
        label = _LOAD.sub("", summary.name) or summary.system
        own = found.setdefault((isinstance(summary.load, Closed), label), {})
        known = own.get(_amount(summary))
        if known is None or known.records < summary.records:
            own[_amount(summary)] = summary
    return [Group(label, closed, sorted(own.values(), key=_amount)) for (closed, label), own in found.items()]


def _amount(summary: Summary) -> float:
    return float(summary.load.in_flight if isinstance(summary.load, Closed) else summary.load.per_s)


def _timelines(trials: Sequence[Trial]) -> Iterator[Chart]:
    """GPU or CPU, and sequences in the engine, of these trials; a panel each."""
    which = f" First repetition of each of {len(trials)} trials." if len(trials) > 1 else ""
    gpus = several_gpus(sample for trial in trials for sample in trial.samples)
    several = f" The mean of the {gpus} GPUs that the engines use." if gpus else ""
    gpu = (
        *("GPU over time", "GPU busy, %"),
        "Share of the time in which the GPU was busy, as NVML tells it: itself an average over some 100 ms or "
        f"more, so shorter gaps do not show.{several}",
        _series(trials, ("", lambda sample: sample.gpu)),
    )
    cores = (
        *("CPU over time", "cores"),
        "Cores in use by the engine's processes, by what answers clients (of a gateway with the host of its "
        "engine) and by the clients of the load test.",
        _series(
            trials,
            ("engine", lambda sample: sample.cores.get("engine")),
            ("serving", lambda sample: sample.cores.get("serving")),
            ("clients", lambda sample: sample.cores.get("clients")),
        ),
    )
    sequences = (
        *("Sequences in the engine over time", "sequences"),
        "Running: in the batch. Waiting: not yet. As the engine counts them.",
        _series(trials, ("running", lambda sample: sample.running), ("waiting", lambda sample: sample.waiting)),
    )
    for title, y_label, caption, series in (gpu if gpu[-1] else cores, sequences):
        if series:
            yield Chart(title=title, caption=caption + which, x_label=_SECONDS, y_label=y_label, series=series)


def _series(trials: Sequence[Trial], *lines: tuple[str, _Value]) -> list[Series]:
    """So many lines in the panel of each trial; those of which nothing is known are left out."""
    series: list[Series] = []
    for trial in trials:
        for style, (name, value) in enumerate(lines):
            points = [(sample.at_s, found) for sample in trial.samples if (found := value(sample)) is not None]
            if len(points) > 1:
                x, y = zip(*points, strict=True)
                name = name or trial.name
                series.append(Series(name, x, y, colour=style, style=style, markers=False, panel=trial.name))
    return series
