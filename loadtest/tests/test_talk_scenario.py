"""What is said, from a seed: lengths, turns and pauses of real meetings, recordings, streams of revisions."""

from __future__ import annotations

import itertools
import random
import re
import statistics
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from demo_model import LANGUAGES
from loadtest.partials.result import PartialsPlan
from loadtest.partials.run import planned_streams
from loadtest.results import LoadtestError
from loadtest.talk.scenario import (
    BACKCHANNEL_WORDS,
    BACKCHANNELS,
    LONGEST_WORDS,
    MEAN_WORDS,
    Scenario,
    Turns,
    Words,
    arrivals,
    meetings_lines,
    pause_s,
    read_talk,
    request_lines,
    translations_per_s,
)
from loadtest.talk.streams import (
    SENTENCES,
    Origin,
    Stream,
    Style,
    bare,
    corpus_streams,
    handwritten_streams,
    spoken_words,
    utterances,
)
from loadtest.tests.made_up_trials import write_talk
from loadtest.trial.values import Line, Partial

NATURAL = Scenario(seed=7, targets=("ja", "es"), meetings=12)
SECONDS = 600.0


@pytest.fixture(scope="module")
def natural() -> list[Line]:
    """Two hours of meetings."""
    return meetings_lines(replace(NATURAL, partial_every_s=0.3), SECONDS)


def words(line: Line) -> int:
    return len(line.text.split())


# ---------------------------------------------------------------- the figures of real meetings


def test_a_meeting_has_25_utterances_a_minute(natural: list[Line]) -> None:
    assert len(natural) / NATURAL.meetings / (SECONDS / 60) == pytest.approx(25, rel=0.06)


def test_lengths_are_skewed_and_bounded(natural: list[Line]) -> None:
    counts = [words(line) for line in natural]
    assert max(counts) <= LONGEST_WORDS == 85
    assert sum(count > 40 for count in counts) > 3
    assert statistics.median(counts) < 0.8 * statistics.mean(counts)
    assert statistics.mean(counts) == pytest.approx(MEAN_WORDS, abs=0.5)


def test_backchannels_come_from_the_others() -> None:
    turns = Turns(6, random.Random(1))
    said = backchannels = 0
    for _ in range(10_000):
        holder, turn = turns.turn()
        others = turns.backchannels(turn)
        assert holder not in {person for person, _ in others}
        assert all(each in BACKCHANNEL_WORDS for _, each in others)
        said, backchannels = said + 1 + len(others), backchannels + len(others)
    assert backchannels / said == pytest.approx(BACKCHANNELS, abs=0.01)


def test_who_is_alone_gets_no_backchannel() -> None:
    turns = Turns(1, random.Random(1))
    assert [turns.turn()[0] for _ in range(5)] == [0] * 5
    assert not turns.backchannels(85)


def test_the_floor_is_mostly_kept() -> None:
    turns = Turns(6, random.Random(1))
    holders = [turns.turn()[0] for _ in range(5_000)]
    assert statistics.mean(one == other for one, other in pairwise(holders)) > 0.5
    assert set(holders) == set(range(6))


def test_pauses_have_three_classes() -> None:
    rng = random.Random(1)
    pauses = [pause_s(rng) for _ in range(20_000)]
    assert statistics.median(pauses) == pytest.approx(0.2, abs=0.02)
    assert statistics.mean(pause < 0.2 for pause in pauses) == pytest.approx(0.5, abs=0.02)
    assert statistics.mean(0.2 <= pause < 1.0 for pause in pauses) == pytest.approx(0.38, abs=0.02)
    assert statistics.mean(pause >= 1.0 for pause in pauses) == pytest.approx(0.12, abs=0.02)


def test_everybody_speaks(natural: list[Line]) -> None:
    speakers: defaultdict[str, set[str]] = defaultdict(set)
    for line in natural:
        speakers[line.meeting].add(line.speaker)
    assert len(speakers) == NATURAL.meetings
    assert {len(people) for people in speakers.values()} == {6}


def test_partials_come_before_their_final(natural: list[Line]) -> None:
    for line in natural:
        times = [partial.due_s for partial in line.partials]
        assert all(round(after - before, 3) >= 0.2 for before, after in pairwise(times))
        assert all(partial.due_s < line.due_s for partial in line.partials)
        if times:
            assert 0.3 <= round(line.due_s - times[-1], 3) <= 0.6
    steps = [b.due_s - a.due_s for line in natural for a, b in pairwise(line.partials)]
    assert statistics.mean(steps) == pytest.approx(0.3, abs=0.02)
    assert max(steps) < 0.81  # a word that takes long


def test_partials_can_be_fewer() -> None:
    often, seldom = (
        meetings_lines(replace(NATURAL, partial_every_s=every_s, meetings=3), 60.0) for every_s in (0.3, 1.0)
    )
    assert [line.id for line in seldom] == [line.id for line in often]
    assert 0 < sum(len(line.partials) for line in seldom) < 0.5 * sum(len(line.partials) for line in often)
    with pytest.raises(LoadtestError, match=r"revises every 0\.3 s at most"):
        meetings_lines(replace(NATURAL, partial_every_s=0.1), 60.0)


def test_partials_do_not_change_the_talk(natural: list[Line]) -> None:
    assert meetings_lines(NATURAL, SECONDS) == [replace(line, partials=()) for line in natural]


def test_shorter_talk_begins_longer_talk(natural: list[Line]) -> None:
    shorter = meetings_lines(replace(NATURAL, partial_every_s=0.3), 90.0)
    assert shorter == [line for line in natural if line.due_s < 90.0]


def test_a_meeting_is_the_same_beside_others(natural: list[Line]) -> None:
    alone = meetings_lines(replace(NATURAL, partial_every_s=0.3, meetings=1), SECONDS)
    assert alone == [line for line in natural if line.meeting == "meeting-1"]


def test_lines_are_ordered_and_named(natural: list[Line]) -> None:
    assert [line.due_s for line in natural] == sorted(line.due_s for line in natural)
    assert len({line.id for line in natural}) == len(natural)
    assert natural[0].due_s >= 0
    assert natural[0].targets == ("ja", "es")


def test_meetings_begin_under_way() -> None:
    many = replace(NATURAL, meetings=100, partial_every_s=0.3)
    lines = meetings_lines(many, 3.0)
    assert len(lines) == pytest.approx(many.meetings * 25 * 3 / 60, rel=0.25)
    assert any(words(line) > 15 for line in lines)  # begun before


def test_another_seed_says_something_else(natural: list[Line]) -> None:
    other = meetings_lines(replace(NATURAL, seed=8), 60.0)
    assert {line.text for line in other} & {line.text for line in natural} != {line.text for line in other}
    assert request_lines(NATURAL, 20) != request_lines(replace(NATURAL, seed=8), 20)
    # A shorter list of requests is the beginning of a longer one.
    assert request_lines(NATURAL, 20) == request_lines(NATURAL, 60)[:20]


def test_requests_are_as_long_as_talk(natural: list[Line]) -> None:
    requests = request_lines(NATURAL, 3_000)
    assert statistics.mean(map(words, requests)) == pytest.approx(statistics.mean(map(words, natural)), rel=0.1)
    assert max(map(words, requests)) > 40


def test_requests_take_the_targets_in_turn() -> None:
    assert [line.targets for line in request_lines(NATURAL, 4)] == [("ja",), ("es",), ("ja",), ("es",)]


def test_texts_are_as_long_as_wanted() -> None:
    texts = Words("seed", "en")
    for wanted in range(1, 86):
        assert len(texts.draw(wanted).split()) == wanted


@pytest.mark.parametrize("source", ["ja", "zh"])
def test_other_languages_use_their_own_words(source: str) -> None:
    lines = request_lines(Scenario(source=source, targets=("en",)), 200)
    assert {line.source for line in lines} == {source}
    assert not any(line.text.isascii() for line in lines)


def test_uniform_lines_are_equal() -> None:
    lines = meetings_lines(Scenario(shape="uniform", meetings=2, partial_every_s=0.3), 120.0)
    assert {words(line) for line in lines} == {MEAN_WORDS}
    assert len({line.text for line in lines}) > 0.5 * len(lines)
    assert len(lines) == pytest.approx(100, abs=1)
    one = [line for line in lines if line.meeting == "meeting-1"]
    steps = [after.due_s - before.due_s for before, after in pairwise(one)]
    assert max(steps) - min(steps) < 0.001
    assert Counter(line.speaker for line in one).most_common()[-1][1] >= 8
    assert all(partial.due_s <= line.due_s for line in one for partial in line.partials)
    assert {words(line) for line in request_lines(Scenario(shape="uniform"), 100)} == {MEAN_WORDS}


def test_sentence_requests_alternate_targets() -> None:
    lines = request_lines(Scenario(shape="sentences", targets=("de", "ja")), 401)
    assert [line.targets[0] for line in lines[:4]] == ["de", "ja", "de", "ja"]
    assert lines[:101] == request_lines(Scenario(shape="sentences", targets=("de", "ja")), 101)
    assert len({line.id for line in lines}) == len(lines) == 401
    assert 8 < statistics.mean(map(words, lines)) < 25


def test_arrivals_are_a_poisson_process() -> None:
    placed = arrivals(request_lines(NATURAL, 3_000), 50.0, seed=1)
    gaps = [after.due_s - before.due_s for before, after in pairwise(placed)]
    assert translations_per_s(placed) == pytest.approx(50, rel=0.06)
    assert statistics.stdev(gaps) / statistics.mean(gaps) == pytest.approx(1, abs=0.1)


def test_arrivals_count_translations_and_are_seeded() -> None:
    lines = [Line(str(number), "one", "en", ("ja", "es")) for number in range(2_000)]
    placed = arrivals(lines, 50.0, seed=1)
    assert translations_per_s(placed) == pytest.approx(50, rel=0.06)
    assert placed == arrivals(lines, 50.0, seed=1)
    assert placed[:10] == arrivals(lines[:10], 50.0, seed=1)
    assert placed != arrivals(lines, 50.0, seed=2)
    # Without times there is no rate.
    assert translations_per_s(lines) == translations_per_s([]) == 0


def test_partials_keep_their_distance() -> None:
    line = Line("a", "one two", "en", ("de",), due_s=3.0, partials=(Partial(2.5, "one"),))
    [placed] = arrivals([line], 1.0, seed=1)
    assert placed.due_s - placed.partials[0].due_s == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("scenario", "complaint"),
    [
        (Scenario(source="xx"), "no 'xx'"),
        # Only sentences are drawn with their translations; otherwise any language can be read.
        (Scenario(targets=("de", "xx"), shape="sentences"), "no 'xx'"),
        (Scenario(targets=()), "needs targets"),
        (Scenario(targets=("de", "en")), "none of them can be what is spoken"),
        (Scenario(meetings=0), "at least one meeting"),
        (Scenario(people=0), "one who speaks"),
        (Scenario(shape="sentences"), "for requests"),
    ],
)
def test_a_scenario_that_cannot_be_is_refused(scenario: Scenario, complaint: str) -> None:
    with pytest.raises(LoadtestError, match=complaint):
        meetings_lines(scenario, 10.0)


# ---------------------------------------------------------------- recordings


def later(line: Line, by_s: float) -> Line:
    partials = tuple(replace(each, due_s=round(each.due_s + by_s, 6)) for each in line.partials)
    return replace(line, due_s=round(line.due_s + by_s, 6), partials=partials)


# The clock of a gateway's log, and one of another beginning.
@pytest.mark.parametrize("begins_s", [0.0, 600.0, 1_764_000_000.25, -20.0])
def test_written_talk_is_read_in_order(tmp_path: Path, natural: list[Line], begins_s: float) -> None:
    earliest_s = min(due_s for line in natural[:50] for due_s in (line.due_s, *(p.due_s for p in line.partials)))
    # It is called by its number in the file.
    said = [replace(later(line, -earliest_s), id=str(50 - place)) for place, line in enumerate(natural[:50])]
    file = tmp_path / "talk.jsonl"
    write_talk(file, [later(line, begins_s) for line in reversed(said)])
    assert read_talk(file) == said


def test_a_file_may_have_any_order(tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    file.write_text(
        '{"at_s":2.5,"meeting":"m","speaker":"Ann","text":"Good morning.","source":"en","targets":["de","ja"]}\n'
        "\n"
        '{"at_s":1,"meeting":"m","speaker":"Bob","text":"Hello.","source":"en","targets":["de"]}\n'
    )
    assert read_talk(file) == [
        Line("3", "Hello.", "en", ("de",), 0.0, "m", "Bob"),
        Line("1", "Good morning.", "en", ("de", "ja"), 1.5, "m", "Ann"),
    ]


GOOD = '{"text":"Hello.","source":"en","targets":["de"],"at_s":1.0}'


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ("{", "line 2: Input data was truncated"),
        ("3", "line 2: Expected `object`"),
        ('{"at_s":1}', "line 2: Object missing required field `text`"),
        (GOOD.replace("text", "line"), "line 2: Object contains unknown field `line`"),
        (GOOD.replace("Hello.", " "), "line 2: nothing is said"),
        (GOOD.replace('"de"', '"en"'), "line 2: it needs targets"),
        (GOOD.replace('["de"]', "[]"), "line 2: it needs targets"),
        (GOOD.replace('"de"', '"de","de"'), "line 2: a target is named twice"),
        (GOOD.replace("1.0", "1e999"), "line 2: Number out of range"),
        (
            GOOD.replace("1.0", '1.0,"partials":[{"at_s":2,"text":"He"}]'),
            "line 2: a partial is due after its final",
        ),
    ],
)
def test_an_unreadable_line_is_named(tmp_path: Path, wrong: str, complaint: str) -> None:
    file = tmp_path / "talk.jsonl"
    file.write_text(f"{GOOD}\n{wrong}\n")
    with pytest.raises(LoadtestError, match=complaint):
        read_talk(file)


def test_a_file_without_lines_is_no_recording(tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    file.write_text("\n")
    with pytest.raises(LoadtestError, match="has no lines"):
        read_talk(file)
    with pytest.raises(LoadtestError, match="cannot be read"):
        read_talk(tmp_path / "nothing.jsonl")


def test_a_seed_repeats_its_texts() -> None:
    said = utterances(1, "en", 100)
    assert all(text.strip() for text in said)
    assert said[:50] == utterances(1, "en", 50)
    assert said[:50] != utterances(2, "en", 50)


def test_lengths_differ_as_they_are_said_to() -> None:
    # In Japanese, nothing but the end of a sentence has its mark.
    counts = [len(re.findall("[。？！]", text)) for text in utterances(1, "ja", 2_000)]
    for count, share in SENTENCES.items():
        assert counts.count(count) / len(counts) == pytest.approx(share, abs=0.05)


# ---------------------------------------------------------------- growing revisions


@pytest.fixture(scope="module")
def english() -> list[Stream]:
    return corpus_streams(1, "en", 200)


def split(text: str) -> list[str]:
    return text.split()


def differing(one: list[str], other: list[str]) -> list[int]:
    return [place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b]


def test_a_seed_repeats_its_streams(english: list[Stream]) -> None:
    assert corpus_streams(1, "en", 20) == english[:20]
    assert corpus_streams(2, "en", 20) != english[:20]


def test_ids_are_unique(english: list[Stream]) -> None:
    assert len({stream.id for stream in english}) == 200
    assert {stream.origin for stream in english} == {Origin.CORPUS}


def test_revisions_follow_the_pace_of_speech(
    english: list[Stream],
) -> None:
    spoken_ms = said = 0
    for stream in english:
        times = [revision.at_ms for revision in stream.revisions]
        assert all(200 <= later - sooner <= 400 for sooner, later in itertools.pairwise(times))
        assert 300 <= stream.final.at_ms - times[-1] <= 600
        spoken_ms += times[-1]
        said += len(split(stream.final.text))
    # The last revision comes up to 400 ms after the last word.
    assert 130 < said / (spoken_ms / 60_000) < 155


def test_most_revisions_bring_one_word(english: list[Stream]) -> None:
    fresh: Counter[int] = Counter()
    for stream in english:
        counts = [len(split(revision.text)) for revision in stream.revisions]
        fresh.update(later - sooner for sooner, later in itertools.pairwise(counts))
        assert counts[-1] == len(split(stream.final.text))
    steps = fresh.total()
    assert 0.5 < fresh[1] / steps < 0.85
    assert fresh[0]
    assert fresh[2]
    assert min(fresh) == 0


def test_misheard_words_are_soon_corrected(english: list[Stream]) -> None:
    newest = earlier = revisions = final_differs = 0
    for stream in english:
        right = split(stream.final.text if stream.style is not Style.POLISHED else bare(stream.final.text, "en"))
        wrong_since: dict[int, int] = {}
        for revision in stream.revisions:
            heard = split(revision.text)
            places = differing(heard, right)
            revisions += 1
            newest += len(heard) - 1 in places
            earlier += any(place not in wrong_since and place < len(heard) - 2 for place in places)
            wrong_since = {place: wrong_since.get(place, 0) + 1 for place in places}
            # Misheard twice at the same place it may stay four.
            assert all(times <= 6 for times in wrong_since.values())
        final_differs += bool(differing(split(stream.revisions[-1].text), right))
    assert 0.12 < newest / revisions < 0.20
    assert 0.02 < earlier / revisions < 0.05
    assert 0.05 < final_differs / len(english) < 0.35


def test_styles_are_what_they_say(english: list[Stream]) -> None:
    assert {stream.style for stream in english} == set(Style)
    written: list[str] = []
    for stream in english:
        final = stream.final.text
        match stream.style:
            case Style.WRITTEN:
                written.append(final)
            case Style.BARE:
                assert final == bare(final, "en")
            case Style.POLISHED:
                written.append(final)
                assert all(bare(revision.text, "en") == revision.text for revision in stream.revisions)
    # Some people write "brb".
    assert sum(final == bare(final, "en") for final in written) < len(written) / 10


def test_one_utterance_in_seven_is_no_sentence(english: list[Stream]) -> None:
    shares = sum(len(split(stream.final.text)) <= 4 for stream in english) / len(english)
    assert 0.05 < shares < 0.3


@pytest.mark.parametrize(
    ("text", "lang", "small"),
    [
        ("Is there a workaround for BUG-13?", "en", "is there a workaround for BUG-13"),
        ("We're $1,635 over budget.", "en", "we're $1,635 over budget"),
        ("McKay, it's 9:05.", "en", "McKay it's 9:05"),
        ("¿Cuál es el objetivo?", "es", "cuál es el objetivo"),
        ("Où est Anne ?", "fr", "où est anne"),
        ("はい、Annaさん。", "ja", "はいannaさん"),
        ("我们在里斯本有12人，在马德里有25人。", "zh", "我们在里斯本有12人在马德里有25人"),
    ],
)
def test_bare_keeps_what_can_be_heard(text: str, lang: str, small: str) -> None:
    assert bare(text, lang) == small


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_language_is_spoken_word_by_word(lang: str) -> None:
    for stream in corpus_streams(3, lang, 10):
        assert "".join(spoken_words(stream.final.text, lang)) == stream.final.text
        assert all(revision.text == revision.text.strip() for revision in stream.revisions)


@pytest.mark.parametrize(
    ("text", "lang", "spoken"),
    [
        ("Ask Ana Silva.", "en", ["Ask", " Ana", " Silva."]),
        ("Julian Carterさん、どうぞ。", "ja", ["Julian", " Carter", "さん、", "どうぞ。"]),
        ("问 Julian Carter。", "zh", ["问", " Julian", " Carter。"]),
    ],
)
def test_a_space_precedes_its_word(text: str, lang: str, spoken: list[str]) -> None:
    assert spoken_words(text, lang) == spoken


def test_every_language_has_handwritten_streams() -> None:
    streams = {lang: handwritten_streams(lang) for lang in LANGUAGES}
    every = list(itertools.chain.from_iterable(streams.values()))
    assert len(every) >= 24
    assert len({stream.id for stream in every}) == len(every)
    assert max(map(len, streams.values())) == len(streams["en"])
    assert all(streams.values())
    assert {stream.style for stream in every} == set(Style)
    assert {stream.origin for stream in every} == {Origin.HANDWRITTEN}
    for stream in every:
        times = [0, *(revision.at_ms for revision in stream.revisions), stream.final.at_ms]
        assert len(times) > 2, stream.id
        assert times == sorted(set(times)), stream.id


def test_the_hard_cases_are_among_them() -> None:
    every = [stream for lang in LANGUAGES for stream in handwritten_streams(lang)]

    def texts(stream: Stream) -> list[str]:
        return [revision.text for revision in (*stream.revisions, stream.final)]

    pairs = [pair for stream in every for pair in itertools.pairwise(texts(stream))]
    assert any(len(later) < len(sooner) for sooner, later in pairs)
    assert any(sooner.endswith("five") and later.endswith("5") for sooner, later in pairs)
    assert any("work around" in sooner and "workaround" in later for sooner, later in pairs)
    assert any("can" in split(sooner) and "can't" in split(later) for sooner, later in pairs)
    gaps = [
        later.at_ms - sooner.at_ms
        for stream in every
        for sooner, later in itertools.pairwise((*stream.revisions, stream.final))
    ]
    assert max(gaps) > 3_000


def test_other_languages_get_a_quarter() -> None:
    plan = PartialsPlan(streams=5, handwritten=2)
    assert [stream.origin.value for stream in planned_streams(plan, "en")] == ["corpus"] * 5 + ["handwritten"] * 2
    assert len(planned_streams(plan, "ja")) == 4
    with pytest.raises(LoadtestError, match="'it'"):
        planned_streams(plan, "it")
