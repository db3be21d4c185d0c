"""What is made of Chromium's numbers; two pages beside each other, with their bars."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loadtest.page import layout_shift, longest_task_ms, results
from loadtest.results import LoadtestError
from loadtest.trial.content import Table


@pytest.mark.parametrize(
    ("shifts", "worst"),
    [
        ([], 0),
        ([(0, 0.1), (900, 0.2), (1_899, 0.3)], 0.6),
        # After a second without any, a new window begins.
        ([(0, 0.1), (1_000, 0.2)], 0.2),
        # None lasts longer than five.
        ([(at_ms, 0.1) for at_ms in range(0, 7_000, 500)], 1.0),
    ],
)
def test_layout_shift_is_that_of_the_worst_window(shifts: list[tuple[float, float]], worst: float) -> None:
    assert layout_shift(shifts) == pytest.approx(worst)


def task(pid: int, tid: int, cpu_ms: float) -> dict[str, Any]:
    return {"name": "RunTask", "pid": pid, "tid": tid, "dur": 90_000, "tdur": cpu_ms * 1_000}


def thread(pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}


def test_the_longest_task_is_one_of_the_pages_own_thread() -> None:
    named = [thread(1, 1, "CrBrowserMain"), thread(2, 1, "CrRendererMain"), thread(3, 1, "CrRendererMain")]
    # The browser's own, a page of its own, and the one that is watched.
    tasks = [task(1, 1, 80.0), task(2, 1, 9.0), task(3, 1, 7.0), task(3, 1, 6.5), task(3, 2, 70.0)]
    assert longest_task_ms(json.dumps({"traceEvents": named + tasks}).encode()) == 7.0
    with pytest.raises(LoadtestError, match="no tasks"):
        longest_task_ms(json.dumps({"traceEvents": named}).encode())


def test_bars_are_of_medians_and_of_ratios_within_a_round() -> None:
    before, now = {"paint_ms": 1_000.0, "requests": 90}, {"paint_ms": 310.0, "requests": 10}
    rounds = [{"before": before, "now": now}, {"before": before | {"paint_ms": 2_000.0}, "now": now}]
    found = results([*rounds, rounds[1]], "abc1234", "Chromium 1")
    assert [(each.name, each.value, each.passed) for each in found.findings] == [
        ("slow phone: first paint of contents, ms, now ÷ before", "0.155 (0.155–0.31)", True),
        ("slow phone: files and answers until then", "10 (10–10)", True),
    ]
    (table,) = found.parts
    assert isinstance(table, Table)
    first = [
        "slow phone: first paint of contents, ms",
        "2,000 (1,000–2,000)",
        "310 (310–310)",
        "0.155 (0.155–0.31)",
    ]
    assert list(table.rows[0]) == first
    assert "revision abc1234" in table.caption
