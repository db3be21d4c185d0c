"""The language of utterances that grow: what a detection says, and what is made of it."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.languages import UNDETERMINED
from gateway.translation.spoken_language import CERTAIN, SpokenLanguages

THREE = ("en", "de", "fr")


def sure(lang: str) -> list[tuple[str, float]]:
    return ranked(lang, CERTAIN)


def unsure(lang: str) -> list[tuple[str, float]]:
    return ranked(lang, CERTAIN - 0.01)


def ranked(lang: str, share: float) -> list[tuple[str, float]]:
    others = [other for other in THREE if other != lang]
    return [(lang, share), *((other, (1 - share) / 2) for other in others)]


def excluded(lang: str) -> list[tuple[str, float]]:
    """Any but this one."""
    return [*((other, 0.5) for other in THREE if other != lang), (lang, 0.0)]


LONG = "x" * 20

RANKED: st.SearchStrategy[list[tuple[str, float]]] = st.one_of(
    st.just([]),
    st.sampled_from(THREE).map(sure),
    st.sampled_from(THREE).map(unsure),
    st.sampled_from(THREE).map(excluded),
    st.just(ranked("fr", 0.34)),
)
GROWTH = st.lists(st.tuples(st.integers(0, 40), RANKED), min_size=1, max_size=80)


@given(GROWTH, st.sampled_from([None, *THREE]))
def test_partials_do_not_flap(revisions: list[tuple[int, list[tuple[str, float]]]], last: str | None) -> None:
    languages, text = SpokenLanguages(), ""
    shown: list[str] = []
    if last is not None:
        languages.spoke(last)
    for more, found in revisions:
        text += "x" * more
        before = shown[-1] if shown else None
        shown.append(languages.partial("u", text, found, THREE))
        if before is not None and shown[-1] != before:
            is_excluded = before == UNDETERMINED or dict(found)[before] == 0
            assert is_excluded or found[0] == (shown[-1], CERTAIN), "a guess with a share stays"
    changes = sum(one != other for one, other in pairwise(shown) if UNDETERMINED not in (one, other))
    assert changes <= 2 + math.log2(max(1, len(text)))


@given(GROWTH, RANKED)
def test_final_language_is_certain_or_as_shown(
    revisions: list[tuple[int, list[tuple[str, float]]]], found: list[tuple[str, float]]
) -> None:
    languages, text, shown = SpokenLanguages(), "", ""
    for more, partly in revisions:
        text += "x" * more
        shown = languages.partial("u", text, partly, THREE)
    final = languages.final("u", text, found, THREE)
    if found and found[0][1] >= CERTAIN:
        assert final == found[0][0]
    elif shown in THREE and (not found or dict(found)[shown] > 0):
        assert final == shown
    # And however often it is sent, whatever is said meanwhile.
    languages.final("v", "x", sure("fr"), THREE)
    assert languages.final("u", text, sure("en"), THREE) == final


def test_a_speaker_goes_on_in_the_last_certain_language() -> None:
    languages = SpokenLanguages()
    assert languages.partial("1", "hi", unsure("fr"), THREE) == "fr", "it is likelier than the others"
    assert languages.final("1", "hi there", sure("de"), THREE) == "de"
    assert languages.final("2", "ok", unsure("en"), THREE) == "de"
    assert languages.partial("3", "so", unsure("en"), THREE) == "de"
    assert languages.partial("3", "so let", [("en", 0.99), ("de", 0.01), ("fr", 0.0)], THREE) == "en"
    assert languages.partial("3", "so let us", unsure("de"), THREE) == "en"
    # Only a final is what a speaker goes on in.
    assert languages.partial("4", "42", [], THREE) == "de"


def test_what_was_spoken_counts_only_with_a_share() -> None:
    languages = SpokenLanguages()
    languages.spoke("fr")
    languages.spoke("de")
    assert languages.final("1", "oui", excluded("de"), THREE) == "fr", "the one before"
    languages = SpokenLanguages()
    languages.spoke("de")
    assert languages.final("1", "oui", excluded("de"), THREE) == UNDETERMINED
    assert languages.final("2", "yes", [("en", 0.7), ("fr", 0.3), ("de", 0.0)], THREE) == "en"


@pytest.mark.parametrize(
    ("found", "lang"),
    [
        ([(lang, 1 / 3) for lang in THREE], UNDETERMINED),
        (ranked("fr", 0.4), UNDETERMINED),
        (ranked("fr", 0.6), "fr"),
        ([(lang, 0.0) for lang in THREE], UNDETERMINED),
    ],
)
def test_where_nothing_is_known_it_is_none(found: list[tuple[str, float]], lang: str) -> None:
    assert SpokenLanguages().final("1", "ja", found, THREE) == lang
    # With one language there is nothing to detect.
    assert SpokenLanguages().final("1", "ja", found, ("de",)) == "de"
    told = SpokenLanguages()
    told.set_told("de")
    assert told.final("1", "ja", found, THREE) == ("de" if sum(share for _, share in found) else UNDETERMINED)
    told.spoke("fr")
    assert told.final("2", "ja", found, THREE) == ("fr" if sum(share for _, share in found) else UNDETERMINED)


def test_nothing_known_gives_way_to_anything_known() -> None:
    languages = SpokenLanguages()
    assert languages.partial("1", "a", ranked("fr", 0.4), THREE) == UNDETERMINED
    assert languages.partial("1", "ab", ranked("fr", 0.6), THREE) == "fr"


def test_a_short_certain_word_does_not_stick() -> None:
    languages = SpokenLanguages()
    languages.final("1", LONG, sure("de"), THREE)
    assert languages.final("2", "merci", [("fr", 0.99), ("de", 0.01), ("en", 0.0)], THREE) == "fr"
    assert languages.final("3", "ja", unsure("fr"), THREE) == "de"
    # Two in a row, or a long one, are what is spoken from now on.
    for id in ("4", "5"):
        assert languages.final(id, "oui", [("fr", 0.99), ("de", 0.01), ("en", 0.0)], THREE) == "fr"
    assert languages.final("6", "ja", unsure("de"), THREE) == "fr"
    assert languages.final("7", LONG, [("en", 0.99), ("fr", 0.01), ("de", 0.0)], THREE) == "en"
    assert languages.final("8", "ja", unsure("de"), THREE) == "en"


def test_certain_word_gives_way_without_share() -> None:
    languages = SpokenLanguages()
    assert languages.partial("u", "x" * 4, sure("fr"), THREE) == "fr"
    assert languages.partial("u", "x" * 7, [("de", 0.7), ("en", 0.3), ("fr", 0.0)], THREE) == "fr"
    assert languages.partial("u", "x" * 8, [("de", 0.7), ("en", 0.3), ("fr", 0.0)], THREE) == "de"


def test_certain_language_changes_once_text_has_doubled() -> None:
    languages = SpokenLanguages()
    assert languages.partial("u", "x" * 10, sure("en"), THREE) == "en"
    assert languages.partial("u", "x" * 15, sure("en"), THREE) == "en"
    assert languages.partial("u", "x" * 19, sure("de"), THREE) == "en"
    assert languages.partial("u", "x" * 20, sure("de"), THREE) == "de"
    assert languages.partial("u", "x" * 39, sure("en"), THREE) == "de"
    assert languages.partial("u", "x" * 40, sure("en"), THREE) == "en"


def test_only_languages_that_are_allowed_are_found() -> None:
    languages = SpokenLanguages()
    languages.spoke("de")
    # Among those that are allowed it is certain.
    found = [("fr", 0.6), ("en", 0.395), ("de", 0.005)]
    assert languages.partial("u", "x", found, ("de", "en")) == "en"
    languages.spoke("fr")
    assert languages.partial("v", "x", [("fr", 1.0)], ("de", "en")) == UNDETERMINED
    assert languages.partial("v", "x", [], ("de", "en")) == "de"
    # What it was taken for is not allowed any more.
    assert languages.partial("u", "xx", unsure("en"), ("de",)) == "de"


def test_what_another_process_found_is_known() -> None:
    languages = SpokenLanguages()
    languages.recall("1", "fr")
    assert languages.final("1", "x", sure("en"), THREE) == "fr"
    assert languages.partial("2", "x", [], THREE) == "fr"


def test_an_utterance_that_is_given_up_begins_again() -> None:
    languages = SpokenLanguages()
    languages.partial("u", "x" * 10, sure("en"), THREE)
    languages.forget("u")
    languages.forget("u")
    assert languages.shown("u") is None
    assert languages.partial("u", "x" * 10, sure("de"), THREE) == "de"


@pytest.mark.parametrize("revised", [True, False])
def test_only_so_many_are_remembered(revised: bool) -> None:
    languages = SpokenLanguages()
    for number in range(64):
        languages.partial(str(number), "x", sure("en"), THREE)
    if revised:
        languages.partial("0", "x", sure("en"), THREE)
    languages.partial("64", "x", sure("en"), THREE)
    assert languages.shown("0") == ("en" if revised else None)
    assert languages.shown("1") == (None if revised else "en")
