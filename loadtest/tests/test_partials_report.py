"""A fixed result as table, JSON and plot."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from loadtest.partials.report import results
from loadtest.partials.result import PartialsPlan, PartialsResult, bars
from loadtest.tests.commands import table_of, write
from loadtest.tests.test_partials_summary import GOOD, PHASES, READINGS, STREAM
from loadtest.trial.report import read

RESULT = PartialsResult(
    model="bundled_model",
    chrf="sacrebleu 2.5.1",
    plan=PartialsPlan(streams=1),
    elapsed_s=60.0,
    phases=PHASES,
    pairs=[GOOD, replace(GOOD, target="ja")],
    bars=bars([GOOD, replace(GOOD, target="ja")]),
    broken=[],
    streams=[STREAM],
    readings=READINGS,
)
MISSED = replace(GOOD, chrf_alone=90.0)


def table(of: PartialsResult) -> str:
    return table_of(results(of), "partials")


def test_the_table_begins_with_the_verdict_and_the_bars() -> None:
    _, _, verdict, _, head, _, first, *_ = table(RESULT).splitlines()
    assert verdict == "| bars and promises | all held | all held | passed |"
    assert head == "| has to be |  | en→de | en→ja |"
    assert first == "| live NE, final included | <= 0.2 | 0.2 pass | 0.2 pass |"


def test_a_bar_that_was_missed_is_named_and_fails_the_run() -> None:
    missed = replace(RESULT, pairs=[MISSED], bars=bars([MISSED]))
    assert list(missed.failures()) == ["en→de: chrF of finals against alone is 90, not >= 99"]
    assert "| 90 **FAIL** |" in table(missed)
    # With the simulated engine only promises count.
    tried = replace(missed, plan=PartialsPlan(engine="simulated"))
    assert list(tried.failures()) == []
    assert "do not count" in table(tried)


def test_a_broken_promise_fails_the_run_whatever_the_engine() -> None:
    for engine in ("vllm", "simulated"):
        worse = replace(
            RESULT, plan=msgspec.convert({"engine": engine}, PartialsPlan), broken=["something is lost"]
        )
        assert list(worse.failures()) == ["something is lost"]
        assert "- something is lost" in table(worse)


def test_the_table_says_what_was_said() -> None:
    for part in ("1 corpus streams, seed 1", "sacrebleu 2.5.1", "60 s in all"):
        assert part in table(RESULT)


def test_the_result_comes_back_from_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Drawing takes seconds; `test_report` holds that what there is to draw is drawn.
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write(results(RESULT), "partials", tmp_path)
    assert msgspec.convert(read(tmp_path).details, PartialsResult) == RESULT


def test_each_pair_has_its_place_in_every_chart() -> None:
    charts = results(RESULT).charts
    assert len(charts) == 4
    for chart in charts:
        assert [words for _, words in chart.x_ticks] == ["en\n→de", "en\n→ja"]
        assert all(len(series.y) == 2 for series in chart.series)
