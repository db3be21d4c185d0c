"""Which charts a report has, and what is on them, for whatever trials there are.

Knows: summaries, samples, what each picture tells. Must not know: how anything is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadtest.report.content import MOST_SERIES, Chart
from loadtest.trial.groups import Group, groups
from loadtest.trial.load_charts import against_in_flight, against_rate
from loadtest.trial.summary import Summary
from loadtest.trial.timelines import timelines
from loadtest.trial.values import Report, Trial

__all__ = ["charts"]


def charts(report: Report, summaries: Sequence[Summary]) -> list[Chart]:
    """In the order of what they tell; none is empty."""
    # A trial of which nothing was asked has nothing to show.
    told = [summary for summary in summaries if summary.records]
    found = groups(told, report.trials)
    open_loop = [group for group in found if not group.closed]
    closed = [group for group in found if group.closed]
    chosen = _chosen(found)
    return [
        *against_rate([group for group in open_loop if len(group.summaries) > 1], report.objective),
        *against_in_flight(closed),
        *timelines(_first_of(chosen, report.trials)),
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
