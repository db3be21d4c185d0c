"""Which charts a report has, and what is on them, for whatever trials there are.

Knows: summaries, samples, what each picture tells. Must not know: how anything is drawn.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from loadtest.results import nearest_rank
from loadtest.trial.content import MOST_SERIES, Chart, Mark, Series
from loadtest.trial.groups import Group, groups
from loadtest.trial.load_charts import against_in_flight, against_rate
from loadtest.trial.summary import QUANTILES, Percentiles, Summary
from loadtest.trial.timelines import timelines
from loadtest.trial.values import Objective, Report, Trial

__all__ = ["charts"]


def charts(report: Report, summaries: Sequence[Summary]) -> list[Chart]:
    """All that say something, in the order in which they are read; none is empty."""
    # A trial of which nothing was asked has nothing to show.
    told = [summary for summary in summaries if summary.records]
    found = groups(told, report.trials)
    open_loop = [group for group in found if not group.closed]
    closed = [group for group in found if group.closed]
    chosen = _chosen(found)
    return [
        *against_rate([group for group in open_loop if len(group.summaries) > 1], report.objective),
        *against_in_flight(closed),
        *_curves(chosen, report.objective),
        *timelines(_first_of(chosen, report.trials)),
        *_lag(told),
        *_lengths(told),
    ]


def _chosen(found: Sequence[Group]) -> list[Summary]:
    """Of each group the knee of an open loop and the highest load; fewer where that is too many."""
    highest = [group.summaries[-1] for group in found][:MOST_SERIES]
    knees = [group.knee for group in found if not group.closed and group.knee is not None]
    room = MOST_SERIES // 2 - len(highest)
    extra = [knee for knee in knees if knee not in highest][: max(room, 0)]
    names = {each.name for each in (*highest, *extra)}
    return [summary for group in found for summary in group.summaries if summary.name in names]


def _first_of(summaries: Sequence[Summary], trials: Sequence[Trial]) -> list[Trial]:
    first = {trial.name: trial for trial in reversed(trials)}
    return [first[summary.name] for summary in summaries if summary.name in first]


# ---------------------------------------------------------------- percentiles


# Where each share stands: as far from the one before as there are fewer that take longer.
_SHARES = ((0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"))


def _place(share: float) -> float:
    return -math.log10(1 - share)


def _curves(chosen: Sequence[Summary], objective: Objective) -> Iterator[Chart]:
    kinds: tuple[tuple[str, str, Callable[[Summary], Percentiles], Sequence[Mark]], ...] = (
        (
            "First token, every percentile",
            "first token, ms",
            lambda each: each.first_token,
            [
                Mark(f"objective {objective.first_token_ms:g} ms", objective.first_token_ms),
                Mark("", _place(objective.quantile), "x"),
            ],
        ),
        ("Time per token, every percentile", "ms per token", lambda each: each.per_token, ()),
        ("Finals at readers, every percentile", "final at a reader, ms", lambda each: each.delivered, ()),
    )
    for title, y_label, latency, marks in kinds:
        series = [
            Series(each.name, *_curve(latency(each)), colour=number, markers=False)
            for number, each in enumerate(chosen[:MOST_SERIES])
            if latency(each).count > 1
        ]
        if not series:
            continue
        highest = max(series[number].x[-1] for number in range(len(series)))
        yield Chart(
            title=title,
            caption=_curve_words(y_label, len(series)),
            x_label="share of the translations that took no longer",
            y_label=y_label,
            series=series,
            marks=[mark for mark in marks if mark.axis == "y" or mark.at <= highest],
            x_ticks=[(_place(share), words) for share, words in _SHARES if _place(share) <= highest + 0.01],
            log_y=True,
        )


def _curve(latency: Percentiles) -> tuple[list[float], list[float]]:
    """As far as one of so many says anything."""
    points = [
        (_place(share), ms)
        for share, ms in zip(QUANTILES, latency.curve, strict=True)
        if share < 1 and (1 - share) * latency.count >= 1
    ] or [(_place(0.5), latency.p50_ms or 0.0)]
    return [place for place, _ in points], [ms for _, ms in points]


def _curve_words(what: str, count: int) -> str:
    per_token = "From the first text to the last, for each further token. " if what.startswith("ms per") else ""
    which = " The highest load of each curve, and the knee where there is one." if count > 1 else ""
    return (
        f"{per_token}Up to how long it took for what share of the translations, over all repetitions; the axis "
        f"stretches the far end.{which}"
    )


# ---------------------------------------------------------------- the driver, the lengths


def _lag(told: Sequence[Summary]) -> Iterator[Chart]:
    late = sorted(
        (each for each in told if each.lag_p99_ms is not None), key=lambda each: -(each.lag_p99_ms or 0.0)
    )
    if not late:
        return
    shown = [each for each in told if each in late[:MOST_SERIES]]
    which = f" The {len(shown)} trials in which it was most." if len(shown) < len(late) else ""
    yield Chart(
        title="Lag of the driver",
        caption="By how much the clients were late at sending what was due and at looking at their own event "
        f"loop: 99th percentile of the worst client process.{which}",
        x_label="lag p99, ms",
        series=[Series(each.name, [], [each.lag_p99_ms], colour=0) for each in shown],
        bars=True,
    )


_MOST_BINS = 40


def _lengths(told: Sequence[Summary]) -> Iterator[Chart]:
    counted: dict[str, Counter[int]] = {}
    for each in told:
        if any(each.lengths):
            counted.setdefault(each.workload or each.system, Counter()).update(each.lengths)
    if not counted:
        return
    longest = max(max(own) for own in counted.values())
    width = max(1, -(-longest // _MOST_BINS))
    yield Chart(
        title="Lengths of the translations",
        caption=f"Generated tokens of the finished translations of all trials, in steps of {width}: "
        + "; ".join(f"{name}: {_length_words(own)}" for name, own in list(counted.items())[:MOST_SERIES])
        + ".",
        x_label="generated tokens",
        y_label="% of the translations",
        series=[
            _histogram(name, own, width, longest, number)
            for number, (name, own) in enumerate(list(counted.items())[:MOST_SERIES])
        ],
    )


def _histogram(name: str, lengths: Counter[int], width: int, longest: int, colour: int) -> Series:
    bins: Counter[int] = Counter()
    for tokens, count in lengths.items():
        bins[tokens // width] += count
    places = range(longest // width + 1)
    total = lengths.total()
    return Series(
        name,
        [(place + 0.5) * width for place in places],
        [100 * bins[place] / total for place in places],
        colour=colour,
        markers=False,
    )


def _length_words(lengths: Counter[int]) -> str:
    ordered = sorted(lengths.elements())
    p50, p99 = nearest_rank(ordered, 0.5), nearest_rank(ordered, 0.99)
    return f"median {p50:g}, 99 % up to {p99:g}, longest {ordered[-1]:g}"
