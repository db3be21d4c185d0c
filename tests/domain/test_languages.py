"""Tags as browsers and recognisers send them, and the names that prompts use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.languages import NAMES, language_name, normalise


@pytest.mark.parametrize(
    ("tag", "lang"),
    [
        ("en", "en"),
        ("en-US", "en"),
        ("EN_us", "en"),
        (" de-AT ", "de"),
        ("pt-BR", "pt"),
        ("sr-Latn", "sr-latn"),
        ("zh", "zh"),
        ("zh-CN", "zh"),
        ("zh_Hans_SG", "zh"),
        ("zh-TW", "zh-hant"),
        ("zh_HK", "zh-hant"),
        ("zh-MO", "zh-hant"),
        ("zh-Hant-TW", "zh-hant"),
        ("", ""),
        ("english", "english"),
        ("ent-US", "ent-us"),
    ],
)
def test_normalise(tag: str, lang: str) -> None:
    assert normalise(tag) == lang


@pytest.mark.parametrize("lang", NAMES)
def test_what_is_known_is_normalised_already_and_has_a_name(lang: str) -> None:
    assert normalise(lang) == lang
    assert normalise(f"{lang.upper()}") == lang
    assert language_name(lang) == NAMES[lang] != lang


def test_what_is_not_known_is_its_own_name() -> None:
    assert language_name("tlh") == "tlh"


@given(st.text(max_size=20))
def test_normalising_twice_changes_nothing(tag: str) -> None:
    assert normalise(normalise(tag)) == normalise(tag)
