"""Streams: seeded, growing as a recogniser's do; and what was written by hand is valid."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from demo_model import LANGUAGES
from loadtest.partials.result import PartialsPlan
from loadtest.partials.run import handwritten_streams, planned_streams
from loadtest.results import LoadtestError
from loadtest.talk.streams import (
    SENTENCES,
    Origin,
    Stream,
    Style,
    Workload,
    bare,
    corpus_streams,
    spoken_words,
    utterances,
)

ENGLISH = Workload(seed=1, source="en", target="de")


def test_a_seed_always_says_the_same_and_a_short_list_begins_a_longer_one() -> None:
    said = utterances(ENGLISH, 100)
    assert len({each.id for each in said}) == 100
    assert all(each.text.strip() for each in said)
    assert said[:50] == utterances(ENGLISH, 50)
    assert said[:50] != utterances(Workload(seed=2, source="en", target="de"), 50)


def test_lengths_differ_as_they_are_said_to() -> None:
    said = utterances(ENGLISH, 2_000)
    counts = [each.sentences for each in said]
    assert len(counts) == 2_000
    for count, share in SENTENCES.items():
        assert counts.count(count) / len(counts) == pytest.approx(share, abs=0.05)
    chars = sorted(len(each.text) for each in said)
    assert chars[1_000] < chars[1_800] < chars[-1]


@pytest.mark.parametrize(("source", "target"), [("en", "tlh"), ("tlh", "en"), ("en", "en")])
def test_a_pair_the_corpus_lacks_is_refused(source: str, target: str) -> None:
    with pytest.raises(LoadtestError):
        utterances(Workload(seed=1, source=source, target=target), 1)


# ---------------------------------------------------------------- growing revisions


@pytest.fixture(scope="module")
def english() -> list[Stream]:
    return corpus_streams(1, "en", ["de", "ja"], 200)


def words(text: str) -> list[str]:
    return text.split()


def differing(one: list[str], other: list[str]) -> list[int]:
    return [place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b]


def test_a_seed_always_gives_the_same_and_a_shorter_list_is_the_beginning(english: list[Stream]) -> None:
    assert corpus_streams(1, "en", ["de", "ja"], 20) == english[:20]
    assert corpus_streams(2, "en", ["de", "ja"], 20) != english[:20]


def test_ids_are_unique_and_every_stream_has_its_references(english: list[Stream]) -> None:
    assert len({stream.id for stream in english}) == 200
    assert {stream.origin for stream in english} == {Origin.CORPUS}
    assert all(set(stream.references) == {"de", "ja"} for stream in english)


def test_revisions_come_every_200_to_400_ms_while_somebody_speaks_150_words_a_minute(
    english: list[Stream],
) -> None:
    spoken_ms = said = 0
    for stream in english:
        times = [revision.at_ms for revision in stream.revisions]
        assert all(200 <= later - sooner <= 400 for sooner, later in itertools.pairwise(times))
        assert 300 <= stream.final.at_ms - times[-1] <= 600
        spoken_ms += times[-1]
        said += len(words(stream.final.text))
    # The last revision comes up to 400 ms after the last word.
    assert 130 < said / (spoken_ms / 60_000) < 155


def test_most_revisions_bring_one_word(english: list[Stream]) -> None:
    fresh: Counter[int] = Counter()
    for stream in english:
        counts = [len(words(revision.text)) for revision in stream.revisions]
        fresh.update(later - sooner for sooner, later in itertools.pairwise(counts))
        assert counts[-1] == len(words(stream.final.text))
    steps = fresh.total()
    assert 0.5 < fresh[1] / steps < 0.85
    assert fresh[0]
    assert fresh[2]
    assert min(fresh) == 0


def test_some_words_are_misheard_and_mended_within_two_revisions(english: list[Stream]) -> None:
    newest = earlier = revisions = final_differs = 0
    for stream in english:
        right = words(stream.final.text if stream.style is not Style.POLISHED else bare(stream.final.text, "en"))
        wrong_since: dict[int, int] = {}
        for revision in stream.revisions:
            heard = words(revision.text)
            places = differing(heard, right)
            revisions += 1
            newest += len(heard) - 1 in places
            earlier += any(place not in wrong_since and place < len(heard) - 2 for place in places)
            wrong_since = {place: wrong_since.get(place, 0) + 1 for place in places}
            # Misheard twice at the same place it may stay four.
            assert all(times <= 6 for times in wrong_since.values())
        final_differs += bool(differing(words(stream.revisions[-1].text), right))
    assert 0.12 < newest / revisions < 0.20
    assert 0.02 < earlier / revisions < 0.05
    assert 0.05 < final_differs / len(english) < 0.35


def test_styles_are_what_they_say(english: list[Stream]) -> None:
    assert {stream.style for stream in english} == set(Style)
    for stream in english:
        final = stream.final.text
        match stream.style:
            case Style.WRITTEN:
                assert final != bare(final, "en")
            case Style.BARE:
                assert final == bare(final, "en")
            case Style.POLISHED:
                assert final != bare(final, "en")
                assert all(bare(revision.text, "en") == revision.text for revision in stream.revisions)


def test_one_utterance_in_seven_is_no_sentence(english: list[Stream]) -> None:
    shares = sum(len(words(stream.final.text)) <= 4 for stream in english) / len(english)
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
    for stream in corpus_streams(3, lang, ["de" if lang == "en" else "en"], 10):
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
def test_a_space_is_said_with_the_word_behind_it(text: str, lang: str, spoken: list[str]) -> None:
    assert spoken_words(text, lang) == spoken


# ---------------------------------------------------------------- by hand


def test_enough_was_written_by_hand_in_every_language() -> None:
    streams = {lang: handwritten_streams(lang) for lang in LANGUAGES}
    every = list(itertools.chain.from_iterable(streams.values()))
    assert len(every) >= 24
    assert len({stream.id for stream in every}) == len(every)
    assert max(map(len, streams.values())) == len(streams["en"])
    assert all(streams.values())
    assert {stream.style for stream in every} == set(Style)
    assert {stream.origin for stream in every} == {Origin.HANDWRITTEN}
    assert not any(stream.references for stream in every)


def test_the_hard_cases_are_among_them() -> None:
    every = [stream for lang in LANGUAGES for stream in handwritten_streams(lang)]

    def texts(stream: Stream) -> list[str]:
        return [revision.text for revision in (*stream.revisions, stream.final)]

    pairs = [pair for stream in every for pair in itertools.pairwise(texts(stream))]
    assert any(len(later) < len(sooner) for sooner, later in pairs)
    assert any(sooner.endswith("five") and later.endswith("5") for sooner, later in pairs)
    assert any("work around" in sooner and "workaround" in later for sooner, later in pairs)
    assert any("can" in words(sooner) and "can't" in words(later) for sooner, later in pairs)
    gaps = [
        later.at_ms - sooner.at_ms
        for stream in every
        for sooner, later in itertools.pairwise((*stream.revisions, stream.final))
    ]
    assert max(gaps) > 3_000


def test_what_was_written_by_hand_is_in_order() -> None:
    for stream in (stream for lang in LANGUAGES for stream in handwritten_streams(lang)):
        times = [0, *(revision.at_ms for revision in stream.revisions), stream.final.at_ms]
        assert len(times) > 2, stream.id
        assert times == sorted(set(times)), stream.id


# ---------------------------------------------------------------- the plan


def test_the_plan_says_a_quarter_in_the_other_languages() -> None:
    plan = PartialsPlan(streams=5, handwritten=2)
    assert [stream.origin.value for stream in planned_streams(plan, "en")] == ["corpus"] * 5 + ["handwritten"] * 2
    assert len(planned_streams(plan, "ja")) == 4
    assert set(planned_streams(plan, "ja")[0].references) == {"en"}
    with pytest.raises(LoadtestError, match="'it'"):
        planned_streams(plan, "it")
