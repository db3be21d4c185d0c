"""Tags as browsers and recognisers send them, and the names that prompts use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.languages import NAMES, is_right_to_left, language_name, normalise


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
        ("zh-Hant", "zh-hant"),
        ("zh-Hans-TW", "zh"),
        # As recognisers and older browsers write them.
        ("cmn-Hans-CN", "zh"),
        ("cmn-TW", "zh-hant"),
        ("cmn_Hant_TW", "zh-hant"),
        ("yue-Hant-HK", "zh-hant"),
        ("nb-NO", "no"),
        ("nn-NO", "no"),
        ("no-NO", "no"),
        ("fil-PH", "tl"),
        ("tl-PH", "tl"),
        ("iw-IL", "he"),
        ("in-ID", "id"),
        ("arz-EG", "ar"),
        ("pes", "fa"),
        ("zsm-MY", "ms"),
        ("deu", "de"),
        ("ger-DE", "de"),
        ("jpn", "ja"),
        ("es-419", "es"),
        ("en-GB-oed", "en"),
        ("de-CH-1996", "de"),
        ("", ""),
        ("auto", "auto"),
        ("und", "und"),
        ("x-private", "x-private"),
        ("ru-RU-" + "a" * 60, "ru-ru-" + "a" * 60),
        ("english", "english"),
        ("ent-US", "ent-us"),
    ],
)
def test_normalise(tag: str, lang: str) -> None:
    assert normalise(tag) == lang


@pytest.mark.parametrize("lang", NAMES)
def test_known_tags_are_normalised_and_named(lang: str) -> None:
    assert normalise(lang) == lang
    assert normalise(f"{lang.upper()}") == lang
    assert language_name(lang) == NAMES[lang] != lang


def test_what_is_not_known_is_its_own_name() -> None:
    assert language_name("tlh") == "tlh"


@given(st.text(max_size=20))
def test_normalising_twice_changes_nothing(tag: str) -> None:
    assert normalise(normalise(tag)) == normalise(tag)


def test_the_direction_of_a_language() -> None:
    assert [tag for tag in NAMES if is_right_to_left(tag)] == ["ar", "fa", "he", "ur"]
