"""What the reports of this package show besides their findings: all runs, and what each setting carried.

Knows: the details of such a report. Must not know: how anything was measured, how a table or chart is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from loadtest.capacity.advice import Tried
from loadtest.capacity.offer import Unit
from loadtest.capacity.points import OF_PARTIALS, Point, of_partials, points_table
from loadtest.report.content import Chart, Series, Table
from loadtest.report.markdown import NONE, number
from loadtest.trial.report import Extras
from loadtest.trial.values import Report


def extras(report: Report) -> Extras:
    """Of a `sweep`, a `capacity` or a `recommend`."""
    unit = Unit(report.details["unit"])
    if report.kind != "recommend":
        return Extras(parts=[points_table(msgspec.convert(report.details["points"], list[Point]), unit)])
    tried = msgspec.convert(report.details["tried"], list[Tried])
    toml = report.details.get("toml")
    chosen = [points_table(each.points, unit) for each in tried if each.chosen]
    return Extras(
        charts=_curve(tried, unit),
        parts=[*([f"```toml\n{toml}```"] if toml else []), _tried_table(tried, unit), *chosen],
    )


def _curve(tried: Sequence[Tried], unit: Unit) -> list[Chart]:
    """Capacity against the size of the batch."""
    able = sorted((each for each in tried if each.capacity), key=lambda each: each.candidate.max_num_seqs)
    if not able:
        return []
    capacity = [each.capacity for each in able]
    series = Series(
        name="carries",
        x=[float(each.candidate.max_num_seqs) for each in able],
        y=capacity,
        low=capacity,
        high=[(each.found and each.found.at_most) or each.capacity for each in able],
    )
    return [
        Chart(
            title="What each batch carries",
            caption="The largest load that kept the objective, against max_num_seqs. Whiskers end at the smallest "
            "load that did not keep it.",
            x_label="max_num_seqs",
            y_label=unit.value,
            series=[series],
            log_x=True,
        )
    ]


def _tried_table(tried: list[Tried], unit: Unit) -> Table:
    partials = [f"{head} there" for head in OF_PARTIALS] if unit is Unit.MEETINGS else []
    head = (
        *("settings", f"carries, {unit.value}", "not"),
        *("first token p99 there, ms", *partials, "tokens/s of finals there", "runs", ""),
    )
    return Table("What was tried", head, [_row(each, len(head), partials=bool(partials)) for each in tried])


def _row(tried: Tried, cells: int, *, partials: bool) -> list[str]:
    name, found, at = f"{tried.candidate}" + " (recommended)" * tried.chosen, tried.found, tried.at
    if found is None:
        return [name, *[NONE] * (cells - 2), tried.failed or ""]
    of_these = [] if not partials else [NONE] * len(OF_PARTIALS) if at is None else of_partials(at)
    return [
        name,
        number(found.capacity),
        number(found.at_most),
        number(None if at is None else at.first_p99_ms),
        *of_these,
        number(None if at is None else at.tokens_per_s),
        str(found.runs),
        found.ended.value,
    ]
