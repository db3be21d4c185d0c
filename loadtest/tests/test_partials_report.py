"""A reader's screen, what promises that breaks; a fixed result as table and JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from prometheus_client import generate_latest

from gateway import metrics
from gateway.domain.sessions import Stability
from loadtest.partials.result import (
    Arm,
    Delta,
    Display,
    Final,
    PairScores,
    PartialsPlan,
    PartialsResult,
    Phase,
    Reading,
    Spending,
    State,
    bars,
    broken,
    broken_promises,
    chrf,
    contradictions,
    erased,
    erasure,
    final_texts,
    first_ms,
    lags,
    pair_scores,
    segment_states,
    states,
    units,
)
from loadtest.partials.run import growth, results
from loadtest.talk.streams import Origin, Revision, Stream, Style
from loadtest.tests.made_up_trials import read, table_of, write


@pytest.mark.parametrize(
    ("text", "lang", "expected"),
    [
        ("Ich kann  das nicht.", "de", ["Ich", "kann", "das", "nicht."]),
        ("", "de", []),
        ("BUG-13は11月2日まで。", "ja", ["BUG-13", "は", "11", "月", "2", "日", "ま", "で", "。"]),
        ("我们有5,500人, O'Neill", "zh", ["我", "们", "有", "5,500", "人", ",", "O'Neill"]),
        ("Ingridさん", "ja", ["Ingrid", "さ", "ん"]),
    ],
)
def test_units_are_words_or_characters(text: str, lang: str, expected: list[str]) -> None:
    assert units(text, lang) == expected


@pytest.mark.parametrize(
    ("before", "after", "lang", "count"),
    [
        ("Ich habe", "Ich habe drei", "de", 0),
        ("Ich habe drei", "Ich hatte drei Fragen", "de", 2),
        ("Ich habe drei", "Wir", "de", 3),
        ("Ich habe drei", "", "de", 3),
        # A word that grows was not taken back; one that turned into another was.
        ("am Frei", "am Freitag", "de", 0),
        ("am Freitag", "am Freitag.", "de", 0),
        ("am Freitag, ", "am Freitag, wenn", "de", 0),
        ("am Frei", "am Donnerstag", "de", 1),
        ("am Freitag.", "am Freitag und", "de", 1),
        ("予算は承認", "予算はまだ", "ja", 2),
    ],
)
def test_what_was_taken_back(before: str, after: str, lang: str, count: int) -> None:
    assert erased(before, after, lang) == count


def test_erasure_adds_up_over_what_was_shown() -> None:
    shown = ["Ich", "Ich habe", "Wir haben drei", "Wir haben vier Fragen"]
    assert erasure(shown, "de") == 0 + 2 + 1
    assert erasure(shown[:1], "de") == 0
    assert erasure([], "de") == 0


def test_lag_is_heard_less_shown() -> None:
    heard = [(300.0, 2), (700.0, 4), (1_000.0, 6)]
    shown = [(500.0, 1), (900.0, 2), (1_400.0, 3)]
    # Three target units stand for six of the source. What comes with the final is too late for the last sample.
    assert lags(shown, heard, 1_400.0, 6, 3) == [2 - 1 * 2, 4 - 2 * 2, 6 - 2 * 2]
    assert lags([], heard, 1_400.0, 6, 3) == [2, 4, 6]
    assert lags(shown, heard, 1_400.0, 6, 0) == []


def test_the_first_word_must_be_readable() -> None:
    assert first_ms([State(100, ""), State(200, "", " "), State(300, "", "Ich"), State(400, "Ich")]) == 300
    assert first_ms([State(100, "")]) is None


def test_chrf_is_sacrebleus() -> None:
    assert chrf(["Ich habe eine Frage."], ["Ich habe eine Frage."]) == 100
    other = chrf(["Ich habe eine Frage."], ["Wir haben drei Fragen."])
    assert other is not None
    assert 20 < other < 60
    assert chrf([], []) is None


# ---------------------------------------------------------------- what readers were sent


LIVE = Reading(
    Arm.OURS,
    "en-1",
    "de",
    "live",
    deltas=[Delta(500, 1, "", "Ich"), Delta(900, 2, "Ich", " kann"), Delta(1_300, 3, " kann das", "")],
    finals=[Final(2_000, 4, "Ich kann das nicht.", 7)],
)
STABLE = replace(LIVE, stability="stable", deltas=[Delta(900, 2, "Ich", ""), Delta(1_300, 3, " kann das", "")])
FINAL = replace(LIVE, stability="final", deltas=[])
NAIVE = Reading(
    Arm.NAIVE,
    "en-1",
    "de",
    "final",
    finals=[Final(500, 1, "Ich", 2), Final(1_400, 3, "Wir können", 3), Final(1_500, 2, "Ich kann", 3)],
)


def test_committed_text_grows_tentative_is_replaced() -> None:
    assert states(LIVE) == [
        State(500, "", "Ich"),
        State(900, "Ich", " kann"),
        State(1_300, "Ich kann das", ""),
        State(2_000, "Ich kann das nicht."),
    ]
    assert [state.text for state in states(LIVE)][1] == "Ich kann"


SEGMENTS = Reading(
    Arm.OURS,
    "en-2",
    "de",
    "live",
    # The second one begins before the first one has ended.
    deltas=[
        Delta(500, 1, "Ich", " bin"),
        Delta(900, 3, "", "Er", 2),
        Delta(1_000, 2, " war", ""),
        Delta(1_500, 4, "Er", " auch", 2),
    ],
    finals=[Final(1_100, 2, "Ich war da.", 4), Final(2_000, 4, "Er auch.", 3, 2)],
    further=1,
)


def test_segments_are_read_one_behind_the_other() -> None:
    assert [state.text for state in states(SEGMENTS)] == [
        "Ich bin",
        "Ich bin Er",
        "Ich war Er",
        "Ich war da. Er",
        "Ich war da. Er auch",
        "Ich war da. Er auch.",
    ]
    # What comes before the second one takes nothing of it back.
    assert [erasure([state.text for state in each], "de") for each in segment_states(SEGMENTS)] == [1, 0]
    assert final_texts(SEGMENTS) == ["Ich war da.", "Er auch."]
    assert list(broken(SEGMENTS)) == []
    assert "2 finals came, 3 should have" in "".join(broken(replace(SEGMENTS, further=2)))
    assert list(contradictions([SEGMENTS, replace(SEGMENTS, deltas=[])])) == []


def test_naive_revisions_are_shown_whole() -> None:
    finals = [Final(500, 1, "Ich", 2), Final(900, 2, "auch.", 2, 2), Final(950, 2, "Ich bin da. Er", 5)]
    naive = replace(SEGMENTS, arm=Arm.NAIVE, stability="final", deltas=[], finals=finals)
    assert [(state.at_ms, state.text) for state in states(naive)] == [(500, "Ich"), (950, "Ich bin da. Er auch.")]
    assert final_texts(naive) == ["Ich bin da. Er", "auch."]


def test_naive_revisions_do_not_go_back() -> None:
    assert states(NAIVE) == [State(500, "", "Ich"), State(1_400, "", "Wir können")]


def test_nothing_is_broken_where_everything_came_once() -> None:
    assert [list(broken(reading)) for reading in (LIVE, STABLE, FINAL)] == [[], [], []]
    assert list(broken(NAIVE, utterances=3)) == []


@pytest.mark.parametrize(
    ("reading", "utterances", "said"),
    [
        (replace(LIVE, finals=[]), 1, "0 finals came, 1 should"),
        (replace(LIVE, finals=LIVE.finals * 2), 1, "2 finals came, 1 should"),
        (NAIVE, 4, "3 finals came, 4 should"),
        (replace(NAIVE, finals=[*NAIVE.finals[:2], NAIVE.finals[0]]), 3, "3 finals came, 3 should"),
        (replace(LIVE, failed=["overloaded"]), 1, "not translated, overloaded"),
        (replace(LIVE, late=1), 1, "1 deltas came behind the final"),
        (replace(LIVE, deltas=LIVE.deltas[::-1]), 1, "older revision"),
        (replace(STABLE, deltas=LIVE.deltas), 1, "may change"),
        (replace(FINAL, deltas=STABLE.deltas), 1, "was shown 2 deltas"),
    ],
)
def test_each_promise_can_be_broken(reading: Reading, utterances: int, said: str) -> None:
    assert said in "".join(broken(reading, utterances))


def test_readers_are_promised_the_same() -> None:
    assert list(contradictions([LIVE, STABLE, FINAL])) == []
    shorter = replace(STABLE, deltas=STABLE.deltas[:1])
    assert list(contradictions([LIVE, shorter, FINAL])) == []
    other = replace(STABLE, deltas=[Delta(900, 2, "Wir", "")])
    assert "committed text differs" in "".join(contradictions([LIVE, other]))
    told = replace(FINAL, finals=[Final(2_000, 4, "Nein.", 2)])
    assert "different finals" in "".join(contradictions([LIVE, STABLE, told]))
    assert list(contradictions([])) == []


# ---------------------------------------------------------------- scores and the report


STREAM = Stream(
    id="en-1",
    lang="en",
    style=Style.POLISHED,
    origin=Origin.CORPUS,
    revisions=(Revision(300, "i can"), Revision(700, "i can approve"), Revision(1_000, "i can't approve it")),
    final=Revision(1_500, "I can't approve it."),
)


def reading(arm: Arm, stability: Stability, finals: list[Final], deltas: list[Delta] | None = None) -> Reading:
    return Reading(arm, "en-1", "de", stability, deltas or [], finals)


LAST = Final(1_600, 4, "Ich kann das nicht", 6)
READINGS = [
    reading(
        Arm.OURS,
        "live",
        [LAST],
        [Delta(400, 1, "", "Ich"), Delta(800, 2, "Ich", " genehmige"), Delta(1_200, 3, " kann", " es")],
    ),
    reading(Arm.OURS, "stable", [LAST], [Delta(800, 2, "Ich", ""), Delta(1_200, 3, " kann", "")]),
    reading(Arm.OURS, "final", [LAST]),
    reading(
        Arm.NAIVE,
        "final",
        [
            Final(450, 1, "Ich kann", 3),
            Final(850, 2, "Ich genehmige", 4),
            Final(1_250, 3, "Das genehmige ich nicht", 6),
            Final(1_700, 4, "Ich kann das nicht", 5),
        ],
    ),
    reading(Arm.ALONE, "final", [Final(1_560, 1, "Ich kann das nicht", 5)]),
]


def phase(arm: Arm, *counters: str) -> Phase:
    return Phase(arm, "en", ["de"], 2.0, 3.0, "\n".join(counters))


PHASES = [
    phase(
        Arm.OURS,
        'gateway_partials_total{lang="de",outcome="translated"} 2',
        'gateway_partials_total{lang="de",outcome="superseded"} 1',
        'gateway_partials_total{lang="fr",outcome="translated"} 3',
        'gateway_partial_tokens_total{lang="de"} 6',
        'gateway_final_tokens_total{lang="de"} 3',
        'gateway_generation_seconds_total{lang="de",stage="partial"} 0.25',
        'gateway_generation_seconds_total{lang="de",stage="final"} 0.125',
        "gateway_prompt_tokens_total 200",
        "gateway_prompt_tokens_cached_total 50",
    ),
    phase(Arm.NAIVE, 'gateway_final_tokens_total{lang="de"} 18'),
    phase(Arm.ALONE, 'gateway_final_tokens_total{lang="de"} 5'),
]


def scores() -> PairScores:
    [found] = pair_scores([STREAM], READINGS, PHASES, lambda text: len(text.split()) + 1)
    return found


@pytest.mark.parametrize(
    ("readers", "seen"),
    [
        # "Ich" → "Ich genehmige" → "Ich kann es" → "Ich kann das nicht": one word taken back twice, of four. Heard
        # are 2, 3, 4 words, and 1, 2, 3 on the screen when the next came; the source is as long as the target.
        ("live", Display(erasure=2 / 4, erasure_before=1 / 4, lag_median=1, first_ms=100)),
        # The lag is 2 - 0, 3 - 1, 4 - 2.
        ("stable", Display(erasure=0, erasure_before=0, lag_median=2, first_ms=500)),
        ("final_only", Display(erasure=0, erasure_before=0, lag_median=3, first_ms=1_300)),
        # One word, then two of two, then four of four. The lag is 2 - 2, 3 - 2, 4 - 4.
        ("naive", Display(erasure=(1 + 2 + 4) / 4, erasure_before=(1 + 2) / 4, lag_median=0, first_ms=150)),
    ],
)
def test_what_readers_saw(readers: str, seen: Display) -> None:
    assert getattr(scores(), readers) == seen


def test_what_it_cost() -> None:
    found = scores()
    assert found.ours == Spending(generated=9, final=5, engine_s=0.375)
    assert found.ours.ratio == 9 / 5
    assert found.naively == Spending(generated=18, final=5, engine_s=0)
    assert found.alone == Spending(generated=5, final=5, engine_s=0)
    assert found.outcomes == {"superseded": 1, "translated": 2}
    assert (PHASES[0].cached_share, PHASES[1].cached_share) == (0.25, None)


def test_how_good_it_is() -> None:
    found = scores()
    assert (found.kept, found.chrf_alone) == (1, 100)
    other = [
        replace(each, finals=[Final(1_600, 4, "Das geht nicht", 6)]) if each.arm is Arm.OURS else each
        for each in READINGS
    ]
    [changed] = pair_scores([STREAM], other, PHASES, len)
    assert changed.kept == 0
    assert changed.chrf_alone is not None
    assert changed.chrf_alone < 100


def test_a_stream_without_a_final_scores_nothing() -> None:
    lost = [replace(each, finals=[]) for each in READINGS]
    [found] = pair_scores([STREAM], lost, PHASES, len)
    assert found.live == Display(0, 0, None, None)
    assert (found.ours.final, found.chrf_alone, found.kept) == (0, None, 0)


def test_every_reader_is_checked_against_every_promise() -> None:
    assert broken_promises([STREAM], READINGS) == []
    lost = [replace(READINGS[0], finals=[]), *READINGS[1:]]
    assert broken_promises([STREAM], lost) == ["en-1 in de (ours, live): 0 finals came, 1 should have"]
    other = replace(READINGS[1], deltas=[Delta(800, 2, "Wir", "")])
    assert broken_promises([STREAM], [READINGS[0], other]) == [
        "en-1 in de (ours): committed text differs between readers"
    ]


GOOD = PairScores(
    source="en",
    target="de",
    streams=1,
    revisions=3,
    live=Display(0.2, 0.1, 1, 100),
    stable=Display(0.01, 0, 4, 500),
    final_only=Display(0, 0, 9, 900),
    naive=Display(1.0, 0.9, 0, 100),
    ours=Spending(20, 10, 0.1),
    naively=Spending(90, 10, 0.5),
    alone=Spending(10, 10, 0.1),
    outcomes={},
    kept=1,
    chrf_alone=99.0,
)


def failed(pair: PairScores) -> list[str]:
    return [bar.name for bar in bars([pair]) if not bar.passed]


def test_what_is_just_good_enough_passes() -> None:
    assert failed(GOOD) == []
    assert len(bars([GOOD])) == 6


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        (
            {"live": replace(GOOD.live, erasure=0.21), "naive": replace(GOOD.naive, erasure=2)},
            "live NE, final included",
        ),
        ({"naive": replace(GOOD.naive, erasure=0.99)}, "naive NE / live NE"),
        ({"stable": replace(GOOD.stable, erasure_before=0.001)}, "stable NE before the final"),
        ({"ours": Spending(21, 10, 0.1)}, "generated / final tokens"),
        ({"chrf_alone": 98.9}, "chrF of finals against alone"),
        ({"chrf_alone": None}, "chrF of finals against alone"),
        ({"stable": replace(GOOD.stable, lag_median=4.1)}, "stable lag, median source words"),
    ],
)
def test_each_bar_can_be_missed(changes: dict[str, Any], missed: str) -> None:
    assert failed(replace(GOOD, **changes)) == [missed]


def test_lag_bars_need_words() -> None:
    late = replace(GOOD, target="ja", stable=replace(GOOD.stable, lag_median=9))
    assert failed(late) == []
    assert bars([replace(GOOD, source="de", target="en", chrf_alone=10)]) == []


def test_counters_are_subtracted_series_by_series() -> None:
    before = 'gateway_tokens_total{lang="de"} 5.0\ngateway_tokens_total{lang="fr"} 1.0\n'
    after = before.replace("5.0", "9.0") + 'gateway_tokens_total{lang="ja"} 2.0\ngateway_sessions 3.0\n'
    grown = phase(Arm.OURS, growth(before, after))
    assert grown.counters == 'gateway_tokens_total{lang="de"} 4.0\ngateway_tokens_total{lang="ja"} 2.0\n'
    assert grown.counted("gateway_tokens_total") == 6
    assert grown.counted("gateway_tokens_total", lang="de") == 4
    assert grown.counted("gateway_nothing_total", lang="de") == 0


def test_the_gateways_own_counters_are_found() -> None:
    before = generate_latest().decode()
    metrics.TRANSLATIONS.labels("translated", "de").inc(3)
    grown = phase(Arm.OURS, growth(before, generate_latest().decode()))
    assert grown.counted("gateway_translations_total", outcome="translated", lang="de") == 3


# ---------------------------------------------------------------- the report


RESULT = PartialsResult(
    model="small_model",
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


def test_the_table_begins_with_the_verdict() -> None:
    _, _, verdict, _, head, _, first, *_ = table(RESULT).splitlines()
    assert verdict == "| bars and promises | all held | all held | passed |"
    assert head == "| has to be |  | en→de | en→ja |"
    assert first == "| live NE, final included | <= 0.2 | 0.2 pass | 0.2 pass |"
    for part in ("1 corpus streams, seed 1", "sacrebleu 2.5.1", "60 s in all"):
        assert part in table(RESULT)


def test_a_missed_bar_fails_the_run() -> None:
    missed = replace(RESULT, pairs=[MISSED], bars=bars([MISSED]))
    assert list(missed.failures()) == ["en→de: chrF of finals against alone is 90, not >= 99"]
    assert "| 90 **FAIL** |" in table(missed)
    # With the simulated engine only promises count.
    tried = replace(missed, plan=PartialsPlan(engine="simulated"))
    assert list(tried.failures()) == []
    assert "do not count" in table(tried)


def test_a_broken_promise_fails_any_run() -> None:
    for engine in ("vllm", "simulated"):
        worse = replace(
            RESULT, plan=msgspec.convert({"engine": engine}, PartialsPlan), broken=["something is lost"]
        )
        assert list(worse.failures()) == ["something is lost"]
        assert "- something is lost" in table(worse)


def test_the_result_comes_back_from_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Drawing takes seconds; `test_report` holds that what there is to draw is drawn.
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write(results(RESULT), "partials", tmp_path)
    assert msgspec.convert(read(tmp_path).details, PartialsResult) == RESULT


def test_each_chart_places_every_pair() -> None:
    charts = results(RESULT).charts
    assert len(charts) == 4
    for chart in charts:
        assert [words for _, words in chart.x_ticks] == ["en\n→de", "en\n→ja"]
        assert all(len(series.y) == 2 for series in chart.series)
