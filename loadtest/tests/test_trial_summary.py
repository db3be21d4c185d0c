"""What becomes of records, samples and repetitions in a summary."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadtest.results import Spread
from loadtest.tests.made_up_trials import a_trial, comparison
from loadtest.trial.report import summary_tables
from loadtest.trial.summary import Percentiles, summaries, summarise
from loadtest.trial.values import Closed, Delivered, Load, Objective, Open, ProcessUse, Record, Sample, Trial

OBJECTIVE = Objective(first_token_ms=300.0, quantile=0.75)


def trial(records: list[Record], *, elapsed_s: float = 2.0, **changes: Any) -> Trial:
    clients = [ProcessUse(0.1, elapsed_s, 0.5, 2.0), ProcessUse(0.1, elapsed_s, 0.4, 3.0)]
    own = {"delivered": Delivered(finals=2, final_ms=[10.0, 20.0]), "memory_mib": 100.0, "clients": clients}
    cpu_s = {"serving": 0.1, "engine": 1.0}
    return a_trial(records, **{"elapsed_s": elapsed_s, "cpu_s": cpu_s, **own, **changes})


def record(
    due_s: float, first_s: float | None, done_s: float | None, *, tokens: int = 5, failed: str | None = None
) -> Record:
    return Record("l", "en", due_s, due_s + 0.1, first_s, done_s, tokens=tokens, failed=failed)


KEPT = record(0.0, 0.2, 0.6)
LATE = record(0.0, 0.4, 0.8)
REFUSED = record(0.0, None, None, tokens=0, failed="overloaded")
BROKEN = record(0.0, 0.2, None, tokens=2, failed="internal")
UNFINISHED = record(1.0, 1.2, None, tokens=3, failed="time limit")


def test_only_timely_translations_are_goodput() -> None:
    summary = summarise([trial([KEPT, LATE, REFUSED, BROKEN, UNFINISHED])], OBJECTIVE)
    assert (summary.records, summary.failed) == (5, 3)
    assert summary.failures == {"internal": 1, "overloaded": 1, "time limit": 1}
    assert summary.within == 0.2
    assert not summary.met
    assert summary.requests_per_s.median == 1.0
    assert summary.goodput_per_s.median == 0.5
    # Work on what was never finished is work.
    assert summary.tokens_per_s.median == 7.5


def test_rates_count_what_finished_in_time() -> None:
    windowed = replace(trial([KEPT, KEPT]), finished=5, generated=30)
    summary = summarise([windowed], OBJECTIVE)
    assert (summary.requests_per_s.median, summary.tokens_per_s.median) == (2.5, 15.0)
    assert summary.goodput_per_s.median == 1.0
    assert summary.cpu_s_per_1000_tokens["engine"].median == pytest.approx(1000 / 30, abs=1e-4)
    speed, cost = summary_tables([summary], OBJECTIVE)
    assert speed.rows[0][0] == cost.rows[0][0] == "a trial"
    whole = summarise([trial([KEPT]), replace(windowed, with_drain=True)], OBJECTIVE)
    speed, _ = summary_tables([whole], OBJECTIVE)
    assert speed.rows[0][0] == "a trial †"
    assert "† Too little came before" in speed.caption


def said(*readings: tuple[float, float]) -> list[Sample]:
    return [Sample(float(n), running=running, tokens=tokens) for n, (running, tokens) in enumerate(readings)]


def test_unmoving_counters_say_nothing() -> None:
    moved = trial([KEPT], samples=said((3, 0), (5, 10), (4, 20), (4, 30), (4, 40)))
    summary = summarise([moved], OBJECTIVE)
    assert summary.running is not None
    assert (summary.running.mean, summary.running.max) == (4.0, 5.0)
    still = trial([KEPT], samples=said(*[(0.0, 0.0)] * 9))
    assert summarise([still], OBJECTIVE).running is None
    assert summarise([moved, still], OBJECTIVE).running == summary.running
    # A server that was asked a few times says nothing, either.
    assert summarise([trial([KEPT], samples=said((3, 0), (5, 10), (4, 20), (4, 30)))], OBJECTIVE).running is None
    # Nothing was to be generated, or the tokens are not told.
    assert summarise([trial([REFUSED], samples=said(*[(2.0, 0.0)] * 5))], OBJECTIVE).running is not None
    assert summarise([trial([KEPT], samples=gpu(*[50] * 5, running=2))], OBJECTIVE).running is not None


def test_the_quantile_is_enough() -> None:
    assert summarise([trial([KEPT, KEPT, KEPT, LATE])], OBJECTIVE).met
    assert not summarise([trial([KEPT, KEPT, LATE, LATE])], OBJECTIVE).met
    exactly = record(0.1, 0.4, 0.5)
    assert summarise([trial([exactly])], OBJECTIVE).met


def test_latency_counts_from_due_or_sent() -> None:
    late = Record("l", "en", due_s=1.0, sent_s=1.25, first_s=1.5, done_s=1.75, tokens=2)
    opened = summarise([trial([late])], OBJECTIVE)
    assert (opened.first_token.p50_ms, opened.total.p99_ms, opened.per_token.p90_ms) == (500.0, 750.0, 250.0)
    closed = summarise([trial([late], load=Closed(4))], OBJECTIVE)
    assert (closed.first_token.p50_ms, closed.total.p99_ms) == (250.0, 500.0)
    assert closed.met


def test_percentiles_pool_speed_is_spread() -> None:
    one = trial([record(0.0, 0.001 * n, 1.0) for n in range(1, 51)], elapsed_s=10.0)
    two = trial([record(0.0, 0.001 * n, 1.0) for n in range(51, 101)], repetition=2, elapsed_s=5.0)
    summary = summarise([one, two], OBJECTIVE)
    assert summary.requests_per_s == Spread(7.5, 5.0, 10.0)
    first = summary.first_token
    assert (first.count, first.p50_ms, first.p90_ms, first.p99_ms) == (100, 50, 90, 99)
    assert summary.cpu_s_per_1000_tokens["engine"] == Spread(4.0, 4.0, 4.0)
    assert summary.cores == {"serving": 0.013, "engine": 0.133}
    assert (summary.host_cores, summary.store_cores) == (None, None)
    assert (
        summarise([replace(one, store_cpu_s=0.3), replace(two, store_cpu_s=0.15)], OBJECTIVE).store_cores == 0.03
    )
    hosts = [replace(one, hosts_cpu_s=[0.02, 0.04]), replace(two, hosts_cpu_s=[0.02, 0.01])]
    told = summarise(hosts, OBJECTIVE)
    assert (summary.hosts, summary.fullest_host_cores) == (0, None)
    assert (told.hosts, told.host_cores, told.fullest_host_cores) == (2, 0.006, 0.004)
    assert (summary.lag_p99_ms, summary.lag_max_ms) == (0.5, 3.0)
    assert summary.delivered.count == 4


def test_first_words_count_from_the_beginning() -> None:
    begun = [
        replace(KEPT, began_s=-1.5, shown_s=-1.2),
        # Its first words came with the final.
        replace(LATE, began_s=-2.0, shown_s=0.4),
        replace(REFUSED, began_s=-1.0),
    ]
    summary = summarise([trial(begun)], OBJECTIVE)
    assert summary.first_words == Percentiles(2, 300.0, 2_400.0, 2_400.0)
    speed, _ = summary_tables([summary], OBJECTIVE)
    told = dict(zip(speed.head, speed.rows[0], strict=True))
    assert told["first words on screen, since the utterance began p50 / p90 / p99, ms"] == "300 / 2,400 / 2,400"
    # Without partials there is no such column.
    alone, _ = summary_tables([summarise([trial([KEPT])], OBJECTIVE)], OBJECTIVE)
    assert not any("first words" in name for name in alone.head)


EARLY = replace(KEPT, began_s=-1.5, shown_s=-1.2)
AT_THE_END = replace(KEPT, began_s=-1.5, shown_s=0.2)


@pytest.mark.parametrize(
    ("records", "translated", "missed"),
    [
        ([EARLY, EARLY, EARLY, AT_THE_END], 0.5, ()),
        ([EARLY, EARLY, AT_THE_END, AT_THE_END], 0.5, ("first words of what is being said",)),
        # What was never shown was not shown in time.
        ([EARLY, EARLY, EARLY, KEPT, KEPT], 0.5, ("first words of what is being said",)),
        ([EARLY] * 4, 0.49, ("partials translated",)),
        ([EARLY] * 4, None, ("partials translated",)),
        ([LATE], 0.1, ("first tokens of finals", "first words of what is being said", "partials translated")),
    ],
)
def test_first_words_join_the_objective(
    records: list[Record], translated: float | None, missed: tuple[str, ...]
) -> None:
    objective = replace(OBJECTIVE, first_words_ms=1_000.0)
    seen = replace(trial(records), partials_translated=translated)
    summary = summarise([seen], objective)
    assert (summary.missed, summary.met) == (missed, not missed)
    # Nobody asked for first words.
    assert summarise([seen], OBJECTIVE).missed == tuple(each for each in missed if "finals" in each)


def test_whole_answers_have_no_pace() -> None:
    whole = [record(0.0, 0.5, 0.5), record(0.0, 0.7, 0.7)]
    assert summarise([trial(whole)], OBJECTIVE).per_token.count == 0
    assert summarise([trial([*whole, KEPT])], OBJECTIVE).per_token.count == 3
    assert summarise([trial([record(0.0, 0.5, 0.9, tokens=1)])], OBJECTIVE).per_token.count == 0


def test_what_was_noted_while_measuring_is_told() -> None:
    first = replace(trial([KEPT]), steps=50, long_steps=2)
    second = replace(trial([KEPT]), steps=50, long_steps=1, limited="It was late.")
    summary = summarise([first, second], OBJECTIVE)
    assert (summary.steps, summary.long_steps, summary.limited) == (100, 3, "It was late.")
    quiet = summarise([trial([KEPT])], OBJECTIVE)
    assert (quiet.steps, quiet.long_steps, quiet.limited) == (None, 0, None)


def test_nothing_asked_for_is_no_success() -> None:
    summary = summarise([trial([], elapsed_s=0.0)], OBJECTIVE)
    assert summary.first_token == Percentiles(0, None, None, None)
    assert summary.requests_per_s == Spread(0, 0, 0)
    assert not summary.met
    assert summary.cpu_s_per_1000_tokens == {}
    assert (summary.gpu_percent, summary.running) == (None, None)


def test_trials_are_grouped_by_name() -> None:
    found = summaries(comparison(levels=(2,)), OBJECTIVE)
    names = [f"{system}, 2 in flight" for system in ("gateway", "asyncllm", "vllm-serve")]
    assert [(summary.name, summary.repetitions) for summary in found] == [(name, 3) for name in names]


def gpu(*busy: float, running: float = 0.0) -> list[Sample]:
    return [Sample(at_s=n / 10, gpu=each, running=running) for n, each in enumerate(busy, 1)]


def test_gpu_load_is_the_mean() -> None:
    assert summarise([trial([KEPT], samples=gpu(90, 0, 0, 90, 0))], OBJECTIVE).gpu_percent == 36.0


_seconds = st.floats(0, 10, allow_nan=False)


@st.composite
def _records(draw: st.DrawFn) -> Record:
    due = draw(_seconds)
    sent = due + draw(_seconds)
    first = draw(st.none() | _seconds.map(lambda more: sent + more))
    done = None if first is None else draw(st.none() | _seconds.map(lambda more: first + more))
    failed = draw(st.sampled_from([None, None, "overloaded", "internal"])) or (None if done else "time limit")
    return Record("l", "en", due, sent, first, done, tokens=draw(st.integers(0, 9)), failed=failed)


_loads: st.SearchStrategy[Load] = st.sampled_from([Open(3.0), Closed(2)])


@given(st.lists(_records(), max_size=30), _loads, st.integers())
def test_the_order_of_records_does_not_matter(records: list[Record], load: Load, seed: int) -> None:
    shuffled = records[:]
    random.Random(seed).shuffle(shuffled)
    samples = gpu(50, 0, 0, 50, 0)
    straight = summarise([trial(records, load=load, samples=samples)], OBJECTIVE)
    again = summarise([trial(shuffled, load=load, samples=samples)], OBJECTIVE)
    # As text, since dicts are equal in any order.
    assert msgspec.json.encode(again) == msgspec.json.encode(straight)


@given(st.lists(st.lists(_records(), max_size=12), min_size=1, max_size=3), _loads)
def test_counts_add_up(repetitions: list[list[Record]], load: Load) -> None:
    trials = [trial(records, load=load, repetition=n) for n, records in enumerate(repetitions, 1)]
    summary = summarise(trials, OBJECTIVE)
    assert summary.total.count + summary.failed == summary.records == sum(map(len, repetitions))
    assert sum(summary.failures.values()) == summary.failed
    assert 0 <= summary.within <= 1
    assert summary.goodput_per_s.high <= summary.requests_per_s.high
    assert summary.repetitions == len(repetitions)
