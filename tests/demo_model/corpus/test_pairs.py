"""Pairs from sets."""

from __future__ import annotations

from demo_model import DIRECTIONS, LANGUAGES
from demo_model.corpus.pairs import Kind, PairSource
from demo_model.corpus.sets import ParallelSet, SetKind, read_line

SET = read_line(
    "⟦1!:Anna⟧ reads ⟦2:a book⟧.\t⟦1!:Anna⟧さんは⟦2:本⟧を読みます。\t⟦1!:Anna⟧ lee ⟦2:un libro⟧.\t"
    "⟦1!:Anna⟧ liest ⟦2:ein Buch⟧.\t⟦1!:Anna⟧ lit ⟦2:un livre⟧.\t⟦1!:Anna⟧在看⟦2:书⟧。",
    SetKind.COMPOSED,
)


def source(mix: dict[Kind, float], *sets: ParallelSet) -> PairSource:
    return PairSource(1, {SetKind.COMPOSED: sets or (SET,)}, mix=mix)


def test_draws_are_the_same_for_a_seed() -> None:
    assert [PairSource(7).draw() for _ in range(3)] == [PairSource(7).draw() for _ in range(3)]


def test_a_set_is_a_pair_in_each_direction() -> None:
    pairs = source({Kind.FULL: 1.0}).draw()
    assert [(pair.source_language, pair.target_language) for pair in pairs] == list(DIRECTIONS)
    assert all(pair.source == SET.written[pair.source_language].text for pair in pairs)


def test_a_prefix_says_no_slot_that_was_not_said() -> None:
    drawing = source({Kind.PREFIX: 1.0})
    for pair in [pair for _ in range(200) for pair in drawing.draw([("de", "en")])]:
        if "buch" not in pair.source.lower():
            assert "book" not in pair.target


def test_recognised_sources_have_written_targets() -> None:
    drawing = source({Kind.RECOGNISED: 1.0})
    targets = {pair.target for _ in range(50) for pair in drawing.draw([("en", "de")]) if pair.final}
    assert targets == {"Anna liest ein Buch."}


def test_joined_sentences_are_all_translated() -> None:
    drawing = source({Kind.JOINED: 1.0})
    for pair in [pair for _ in range(100) for pair in drawing.draw([("en", "ja")])]:
        if pair.source.count("book") > 1 and pair.final:
            assert pair.source.count("book") == pair.target.count("本")


def test_noise_comes_back() -> None:
    drawing = source({Kind.ECHO: 1.0})
    assert all(pair.source == pair.target for _ in range(50) for pair in drawing.draw())


def test_held_out_sets_are_never_drawn() -> None:
    from demo_model.corpus.sets import load_sets

    held = {each.written["en"].text for each in load_sets(SetKind.WRITTEN) if each.held_out}
    drawing = PairSource(1, mix={Kind.FULL: 1.0}, shares={SetKind.WRITTEN: 1.0})
    drawn = {pair.source for _ in range(3000) for pair in drawing.draw([("en", LANGUAGES[1])])}
    assert not drawn & held
