"""The measurement of the page: what is said, the arithmetic, the tables; and all of it for two seconds."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from demo_model import LANGUAGES
from loadtest.machine import Machine
from loadtest.page import report
from loadtest.page.browser import preset
from loadtest.page.result import (
    DEVICES,
    LongTasks,
    Opening,
    PagePlan,
    PageResult,
    Phase,
    Request,
    Times,
    Visit,
    long_tasks,
    times,
)
from loadtest.page.run import run
from loadtest.page.speech import speech

ROOT = Path(__file__).parents[2]

# ---------------------------------------------------------------- what is said


@pytest.mark.parametrize("rate", [6, 10, 20, 40])
def test_finals_come_at_the_rate_that_was_asked_for(rate: int) -> None:
    said = itertools.takewhile(lambda each: each.at_s < 60, speech(rate, seed=1))
    finals = [each for each in said if each.final]
    # Six captions are one utterance; the first is done once everybody could have had a turn.
    assert len(finals) == pytest.approx(60 * rate / 6, abs=len(LANGUAGES) + 1)
    gaps = [after.at_s - before.at_s for before, after in itertools.pairwise(finals)]
    assert gaps == pytest.approx([6 / rate] * len(gaps))
    assert set(Counter(each.speaker for each in finals)) == set(range(len(LANGUAGES)))


def test_an_utterance_grows_until_it_is_final() -> None:
    said = list(itertools.islice(speech(12, seed=1), 400))
    assert [each.at_s for each in said] == sorted(each.at_s for each in said)
    assert all(each.at_s >= 0 for each in said)
    done = {each.utterance for each in said if each.final}
    for utterance in done:
        revisions = [each for each in said if each.utterance == utterance]
        assert [each.final for each in revisions] == [False] * (len(revisions) - 1) + [True]
        assert len(revisions) > 2
        assert len({each.speaker for each in revisions}) == 1
        final = revisions[-1].text
        assert all(each.text and final.startswith(each.text) for each in revisions)
        assert [len(each.text) for each in revisions] == sorted(len(each.text) for each in revisions)


def test_nobody_says_two_things_at_once() -> None:
    for number in range(len(LANGUAGES)):
        own = [each for each in itertools.islice(speech(40, seed=1), 600) if each.speaker == number]
        spoken = [utterance for utterance, _ in itertools.groupby(each.utterance for each in own)]
        assert len(spoken) == len(set(spoken))


def test_the_seed_decides_what_is_said() -> None:
    first, again, other = ([*itertools.islice(speech(20, seed), 50)] for seed in (1, 1, 2))
    assert first == again
    assert [each.text for each in first] != [each.text for each in other]


def test_at_nothing_a_second_nothing_is_said() -> None:
    assert list(speech(0, seed=1)) == []


def test_texts_go_into_a_script_as_what_they_are() -> None:
    assert r'"\"); alert(1); // speak"' in preset('"); alert(1); //')
    assert "sessionStorage.setItem('joined', \"m-1 speak\")" in preset("m-1")


# ---------------------------------------------------------------- arithmetic


def test_times() -> None:
    assert times([30.0, 10.0, 20.04]) == Times(20.0, 30.0, 30.0)
    assert times([float(number) for number in range(1, 11)]) == Times(5.5, 9.0, 10.0)
    assert times([7.0]) == Times(7.0, 7.0, 7.0)


def test_long_tasks_are_those_that_began_while_it_was_measured() -> None:
    tasks = [(90.0, 500.0), (100.0, 60.0), (150.0, 50.0), (199.9, 151.26), (200.0, 900.0)]
    assert long_tasks(tasks, 100.0, 200.0) == LongTasks(count=2, longest_ms=151.3, blocking_ms=111.3)
    assert long_tasks([], 0, 1) == LongTasks(0, 0.0, 0.0)


# ---------------------------------------------------------------- the report

PHASE = Phase(
    device="laptop",
    captions_per_s=20,
    seconds=30.0,
    captions=600,
    deltas=3_000,
    messages=3_630,
    said=110,
    shown=110,
    tasks=LongTasks(2, 81.0, 42.0),
    frames_per_s=59.8,
    longest_gap_ms=50.1,
    script=0.021,
    layout=0.0172,
    other=0.077,
    heap_before=2.4,
    heap_after=5.1,
    nodes=3_000,
    late_ms=4.0,
    busy_cores=0.6,
    other_cores=0.01,
    complaints=[],
)
REQUESTS = [
    Request("/", wire=700, decoded=1_330, cached=False, file=True),
    Request("/assets/…/app.js", wire=1_000, decoded=2_670, cached=False, file=True),
    Request("/v1/languages", wire=400, decoded=248, cached=False, file=False),
]
AGAIN = [REQUESTS[0], msgspec.structs.replace(REQUESTS[1], wire=0, cached=True), REQUESTS[2]]


def result_of(*phases: Phase) -> PageResult:
    return PageResult(
        command="a command",
        began="2026-01-02T03:04:05Z",
        plan=PagePlan(),
        machine=Machine("a CPU", 2, 16.0, [], "a system", "3.11", {"starlette": "1.0"}, None, (0.5, 0.4, 0.3)),
        browser="Chromium 1.2",
        elapsed_s=1.0,
        visits=[Visit("first visit", REQUESTS), Visit("second visit", AGAIN)],
        openings=[Opening("laptop", 10, Times(1, 2, 3), Times(4, 5, 6), Times(7, 8, 9_000))],
        phases=list(phases),
    )


def test_the_tables_say_what_was_found() -> None:
    text = report.table(result_of(PHASE))
    assert "| first visit | 2 | 0 | 1,700 | 4,000 | 1 |" in text
    assert "| second visit | 2 | 1 | 700 | 4,000 | 1 |" in text
    assert "| laptop | 1 / 2 / 3 | 4 / 5 / 6 | 7 / 8 / 9,000 | 10 |" in text
    row = "| laptop | 20 | 20.0, 100.0, 121.0 | 110 | 2 | 81 | 42 | 60 | 50 | 2.1% | 1.7% | 7.7% | 2.4 → 5.1 |"
    assert row in text
    assert "Failed" not in text


def test_what_is_missing_or_complained_of_fails() -> None:
    bad = msgspec.structs.replace(PHASE, shown=109, complaints=["script error: no"])
    result = result_of(PHASE, bad)
    assert list(result.failures()) == [
        "laptop, 20 captions/s: 109 rows for 110 utterances.",
        "laptop, 20 captions/s: script error: no",
    ]
    assert "**Failed:** laptop, 20 captions/s: script error: no" in report.table(result)
    assert "| 109 of 110 |" in report.table(result)


def test_the_result_comes_back_from_its_file() -> None:
    result = result_of(PHASE)
    assert msgspec.json.decode(report.as_json(result), type=PageResult) == result


@pytest.mark.parametrize(
    ("option", "value", "complaint"),
    [
        ("--captions-per-s", "-1", "between 0 and 200"),
        ("--devices", "fridge", "none of laptop, phone"),
        ("--visits", "0", "between 1 and 1000"),
    ],
)
def test_a_wrong_option_is_refused(option: str, value: str, complaint: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "loadtest", "page", "--out", "nowhere", f"{option}={value}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert complaint in done.stderr


# ---------------------------------------------------------------- all of it


@pytest.mark.slow
@pytest.mark.browser
def test_two_seconds_of_it(tmp_path: Path) -> None:
    plan = PagePlan(captions_per_s=(0, 40), seconds=2.0, visits=1, devices=DEVICES[:1])
    result = asyncio.run(run(plan, "a command", lambda _: None))
    assert list(result.failures()) == []

    first, second = result.visits
    assert {"/", "/assets/…/page/app.js", "/assets/…/client/connection.js"} <= {each.path for each in first.files}
    assert not any(each.cached for each in first.files)
    # The second time only the document is asked for again.
    assert [each.path for each in second.files if not each.cached] == ["/"]
    assert sum(each.wire for each in second.files) < sum(each.wire for each in first.files) / 10
    assert all(0 < each.wire < each.decoded + 2_000 for each in first.files)

    (opening,) = result.openings
    assert 0 < opening.first_paint.median <= opening.first_contentful_paint.median < opening.ready.median

    silent, busy = result.phases
    assert (silent.captions, silent.said, silent.shown) == (0, 0, 0)
    assert busy.said == busy.shown > 0
    # Half as many again as are asked for come from no machine; a slow one has fewer.
    assert busy.said <= busy.captions <= 60 * busy.seconds
    assert busy.deltas > 0
    assert busy.frames_per_s > 0
    assert 0 < busy.script < 1
    assert busy.heap_after > 0

    report.write(result, tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"result.json", "table.md", "plot.png"}
