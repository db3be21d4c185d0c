"""The generator: deterministic, keeps the test apart, and never says in a prefix what was not heard."""

from __future__ import annotations

import itertools
import random

import pytest

from demo_model import DIRECTIONS, LANGUAGES
from demo_model.generate import Kind, Pair, PairSource
from demo_model.grammar import parse_template
from demo_model.patterns import Pattern, fill, held_out_patterns, load_patterns, written
from demo_model.prefixes import cut_source, cut_target, source_cuts
from demo_model.recogniser import hesitant, recognised, spoken_slots
from demo_model.sampling import Sampler, Split, is_test_combination, is_test_name

MOVE = Pattern(
    "move",
    {
        "en": parse_template("Let's move the {event} with {name} to {weekday}."),
        "ja": parse_template("{name}さんとの{event}を{weekday}に変更しましょう。"),
        "es": parse_template("Pasemos {event:el} con {name} al {weekday}."),
        "de": parse_template("Verschieben wir {event:acc} mit {name} auf {weekday}."),
        "fr": parse_template("Déplaçons {event:le} de {name} à {weekday}."),
        "zh": parse_template("我们把和{name}的{event}改到{weekday}吧。"),
    },
)


def drawn(seed: int, count: int) -> list[Pair]:
    return list(itertools.islice(PairSource(seed), count))


def test_a_seed_gives_the_same_pairs_and_another_seed_others() -> None:
    assert drawn(1, 200) == drawn(1, 200)
    assert drawn(1, 200) != drawn(2, 200)


def test_every_kind_and_every_direction_is_drawn() -> None:
    pairs = drawn(3, 4000)
    assert {pair.kind for pair in pairs} == set(Kind)
    assert {(pair.source_language, pair.target_language) for pair in pairs} == set(DIRECTIONS)
    assert {pair.final for pair in pairs} == {True, False}


def test_training_and_test_share_no_combination_and_no_name() -> None:
    training, test = Sampler(0, Split.TRAINING), Sampler(0, Split.TEST)
    seen = []
    for _ in range(1500):
        seen.append(training.values(MOVE))
        assert not is_test_combination(MOVE.id, seen[-1])
    unseen = [test.values(MOVE) for _ in range(300)]
    assert all(is_test_combination(MOVE.id, values) for values in unseen)
    assert not {str(values) for values in seen} & {str(values) for values in unseen}
    names = {str(values["name"]).split()[0] for values in unseen}
    assert all(map(is_test_name, names))
    assert not names & {str(values["name"]).split()[0] for values in seen}


def test_a_pattern_without_slots_has_no_unseen_combination() -> None:
    fixed = Pattern("fixed", dict.fromkeys(LANGUAGES, parse_template("Yes.")))
    with pytest.raises(LookupError):
        Sampler(0, Split.TEST).values(fixed)
    assert Sampler(0, Split.TRAINING).values(fixed) == {}


def test_held_out_patterns_never_appear_in_training() -> None:
    drawn_from = {pattern.id for pattern in PairSource(0).patterns}
    assert not drawn_from & held_out_patterns()
    assert drawn_from | held_out_patterns() == {pattern.id for pattern in load_patterns()}


def test_a_prefix_never_says_a_slot_that_was_not_heard() -> None:
    rng = random.Random(0)
    sampler = Sampler(0)
    usual = sorted(load_patterns(), key=lambda pattern: pattern.id)[::5]
    checked = 0
    for pattern in [MOVE] * 20 + usual:
        values = sampler.values(pattern)
        source, target = rng.choice(DIRECTIONS)
        said = recognised(
            written(fill(pattern.templates[source], values, source, spoken_slots(source, rng)), source),
            source,
            rng,
        )
        meant = written(fill(pattern.templates[target], values, target), target)
        for cut in source_cuts(said, source):
            heard = {span.slot.name for span in said.spans if span.says_value and span.end <= cut}
            prefix = cut_target(said, cut, meant, target)
            assert meant.text.startswith(prefix)
            assert prefix == prefix.rstrip(" ,.?!;:。、，？！；：")
            for span in meant.spans:
                if span.slot.name not in heard:
                    assert len(prefix) <= span.start, (pattern.id, cut_source(said, cut), prefix)
                    checked += 1
    assert checked > 500


def test_prefixes_as_a_person_reads_them() -> None:
    values = {"event": "meeting", "name": "Anna", "weekday": "Friday"}
    sentences = {
        language: written(fill(MOVE.templates[language], values, language), language) for language in LANGUAGES
    }
    english = sentences["en"]
    heard = {cut_source(english, cut): cut for cut in source_cuts(english, "en")}
    assert cut_target(english, heard["Let's move"], sentences["es"], "es") == "Pasemos"
    assert cut_target(english, heard["Let's move the meeting with Anna"], sentences["de"], "de") == (
        "Verschieben wir die Besprechung mit Anna"
    )
    # "de Anna" reads "d'Anna": before the name is heard, even the elision would give it away.
    assert (
        cut_target(english, heard["Let's move the meeting with"], sentences["fr"], "fr") == "Déplaçons la réunion"
    )
    assert cut_target(english, heard["Let's move the meeting"], sentences["ja"], "ja") == ""


def test_the_recogniser_has_neither_capitals_nor_punctuation_and_keeps_track_of_slots() -> None:
    rng = random.Random(4)
    values = {"event": "meeting", "name": "Anna Schmidt", "weekday": "Friday"}
    for language in LANGUAGES:
        for _ in range(30):
            sentence = written(fill(MOVE.templates[language], values, language), language)
            said = recognised(hesitant(sentence, language, rng), language, rng)
            names = [said.text[span.start : span.end] for span in said.spans if span.slot.kind == "name"]
            assert [name.lower() for name in names] == ["anna schmidt"]


def test_recognised_sources_have_whole_targets() -> None:
    source = PairSource(9)
    for _ in range(200):
        for pair in source.draw([("de", "en")], Kind.RECOGNISED):
            assert pair.target[0].isupper() or not pair.target[0].isalpha()
            assert pair.target[-1] in ".?!" or not pair.final


def test_noise_is_copied_unchanged() -> None:
    source = PairSource(2)
    for _ in range(500):
        (pair,) = source.draw([("en", "ja")], Kind.ECHO)
        assert pair.source == pair.target == pair.source.strip()
