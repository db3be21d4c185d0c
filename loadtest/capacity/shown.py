"""What the reports of this package show besides their findings: all runs, and what each setting carried.

Knows: the details of such a report. Must not know: how anything was measured, how a table or chart is drawn.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from loadtest.capacity.candidates import Candidate
from loadtest.capacity.curve import HEADROOM
from loadtest.capacity.offer import Unit
from loadtest.capacity.points import Point, numbers, points_table
from loadtest.capacity.search import Found
from loadtest.report.content import Chart, Mark, Series, Table
from loadtest.trial.report import Extras
from loadtest.trial.values import Report

__all__ = ["extras", "figures", "tables"]


class _Tried(Struct, frozen=True):
    """As it stands in the details."""

    candidate: Candidate
    name: str
    found: Found | None
    failed: str | None
    chosen: bool
    points: list[Point]


def extras(report: Report) -> Extras:
    """For the report of such a folder, written again."""
    return Extras(figures(report), tables(report))


def tables(report: Report) -> list[Table]:
    """Of a `sweep`, a `capacity` or a `recommend`."""
    unit = Unit(report.details["unit"])
    if report.kind != "recommend":
        return [points_table(_points(report.details["points"]), unit)]
    tried = _tried(report)
    chosen = [points_table(each.points, unit) for each in tried if each.chosen]
    return [_tried_table(tried, unit), *chosen]


def figures(report: Report) -> list[Chart]:
    """The curve of a `recommend`: capacity against the size of the batch."""
    if report.kind != "recommend":
        return []
    unit = Unit(report.details["unit"])
    found: list[tuple[_Tried, Found]] = [
        (each, each.found) for each in _tried(report) if each.found is not None and each.found.capacity is not None
    ]
    budgets = list(dict.fromkeys(each.candidate.max_num_batched_tokens for each, _ in found))
    series = [
        _series(budget, [(e, f) for e, f in found if e.candidate.max_num_batched_tokens == budget])
        for budget in budgets
    ]
    if not series:
        return []
    chosen = next((f.capacity for e, f in found if e.chosen), None)
    marks = [] if chosen is None else [Mark(f"with {HEADROOM:.0%} kept free", chosen * (1 - HEADROOM))]
    return [
        Chart(
            title="What each batch carries",
            caption="The largest load that kept the objective, against max_num_seqs. Whiskers end at the smallest "
            "load that did not keep it.",
            x_label="max_num_seqs",
            y_label=unit.value,
            series=series,
            marks=marks,
            log_x=True,
        )
    ]


def _series(budget: int | None, found: list[tuple[_Tried, Found]]) -> Series:
    ordered = sorted(found, key=lambda pair: pair[0].candidate.max_num_seqs)
    capacity = [each.capacity or 0.0 for _, each in ordered]
    return Series(
        name="the gateway's own token budget" if budget is None else f"{budget} tokens a step",
        x=[float(each.candidate.max_num_seqs) for each, _ in ordered],
        y=capacity,
        low=capacity,
        high=[
            own if each.at_most is None else each.at_most for own, (_, each) in zip(capacity, ordered, strict=True)
        ],
    )


def _tried_table(tried: list[_Tried], unit: Unit) -> Table:
    head = (
        "settings",
        f"carries, {unit.value}",
        "not",
        "first token p99 there, ms",
        "tokens/s of finals there",
        "runs",
        "",
    )
    return Table("What was tried", head, [_row(each) for each in tried])


def _row(tried: _Tried) -> list[str]:
    name = tried.name + (" (recommended)" if tried.chosen else "")
    found = tried.found
    if found is None:
        return [name, "–", "–", "–", "–", "–", tried.failed or ""]
    own = [each for each in tried.points if each.load == found.capacity and each.kept]
    at = max(own, key=lambda each: each.long, default=None)
    return [
        name,
        numbers(found.capacity),
        numbers(found.at_most),
        numbers(at.first_p99_ms if at is not None else None),
        numbers(at.tokens_per_s if at is not None else None),
        str(found.runs),
        found.ended.value,
    ]


def _tried(report: Report) -> list[_Tried]:
    return msgspec.convert(report.details["tried"], list[_Tried])


def _points(told: Any) -> list[Point]:
    return msgspec.convert(told, list[Point])
