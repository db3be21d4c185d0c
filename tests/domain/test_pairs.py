"""Pairs of languages: what a pattern names, and which pairs there are among some languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.engine import EngineProfile
from gateway.domain.errors import InvalidValue
from gateway.domain.languages import NAMES
from gateway.domain.pairs import PairPattern, pairs_among

TAGS = st.sampled_from(sorted(NAMES))


@pytest.mark.parametrize(
    ("text", "source", "target"),
    [
        ("en-ja", "en", "ja"),
        (" EN-ja ", "en", "ja"),
        ("*-de", None, "de"),
        ("en-*", "en", None),
        ("*", None, None),
        ("*-*", None, None),
        ("zh-hant-en", "zh-hant", "en"),
        ("en-zh-hant", "en", "zh-hant"),
        ("zh-zh-hant", "zh", "zh-hant"),
        ("zh-tw-zh", "zh-hant", "zh"),
        ("*-zh-hant", None, "zh-hant"),
    ],
)
def test_a_pattern_names_a_source_and_a_target(text: str, source: str | None, target: str | None) -> None:
    assert PairPattern.parse(text) == PairPattern(source, target)


@pytest.mark.parametrize("text", ["", "en", "en-", "-ja", "en-tlh", "tlh-en", "en_ja", "en→ja", "**", "en-ja-de"])
def test_what_is_not_a_pattern_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match=r"is not a pair of languages like en-ja, \*-de, en-\* or \*\."):
        PairPattern.parse(text)


@pytest.mark.parametrize("text", ["en-en", "zh-hant-zh-tw"])
def test_a_language_with_itself_is_not_a_pair(text: str) -> None:
    with pytest.raises(InvalidValue, match="is a pair of a language with itself"):
        PairPattern.parse(text)


@given(TAGS, TAGS)
def test_every_pair_is_read_as_it_is_written(source: str, target: str) -> None:
    if source != target:
        pattern = PairPattern.parse(f"{source}-{target}")
        assert pattern == PairPattern(source, target)
        assert pattern.covers((source, target))
        assert not pattern.covers((target, source))


def test_pairs_among_languages() -> None:
    patterns = [PairPattern.parse(text) for text in ("en-ja", "*-de", "fr-*")]
    assert pairs_among(("en", "ja", "de"), patterns) == {("en", "ja"), ("en", "de"), ("ja", "de")}
    assert pairs_among(("en", "ja"), [PairPattern.parse("*")]) == {("en", "ja"), ("ja", "en")}
    assert pairs_among(("en", "ja"), []) == frozenset()


def test_model_without_pairs_translates_all() -> None:
    profile = EngineProfile("m", "f", ("en", "ja", "de"))
    assert profile.translates("ja", "de")
    assert not profile.translates("ja", "ja")
    assert not profile.translates("ja", "fr")
    assert profile.targets("ja") == ("en", "de")


def test_a_model_with_pairs_translates_only_those() -> None:
    profile = EngineProfile("m", "f", ("en", "ja", "de"), pairs=frozenset({("en", "de"), ("en", "ja")}))
    assert profile.translates("en", "de")
    assert not profile.translates("de", "en")
    assert (profile.targets("en"), profile.targets("de")) == (("ja", "de"), ())
