"""The rules for values: what passes, and which error names which field."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from gateway.domain.engine import EngineProfile
from gateway.domain.errors import GatewayError, InvalidValue, LimitExceeded, UnsupportedLanguage, UnsupportedOption
from gateway.protocol import checks
from gateway.protocol.limits import Limits

ROOT = Path(__file__).parents[2]
LIMITS = Limits(id_chars=8, text_chars=5, term_chars=3)


@pytest.mark.parametrize("meeting", ["a", "A-1_b~.c", ".a", "12345678"])
def test_what_a_meeting_may_be_called(meeting: str) -> None:
    assert checks.is_meeting_id(meeting)
    checks.check_meeting_id(meeting, LIMITS)


@pytest.mark.parametrize("meeting", ["", ".", "..", "a b", "a/b", "a\n", "ä", "%2e"])
def test_what_no_meeting_is_called(meeting: str) -> None:
    assert not checks.is_meeting_id(meeting)
    with pytest.raises(InvalidValue) as caught:
        checks.check_meeting_id(meeting, LIMITS)
    assert caught.value.field == "meeting"


def test_an_id_that_is_too_long() -> None:
    with pytest.raises(LimitExceeded, match=r"^meeting has 9 characters; the limit is 8\.$"):
        checks.check_meeting_id("123456789", LIMITS)


def test_the_page_takes_the_same_ids() -> None:
    script = (ROOT / "web_demo" / "page" / "meeting" / "meeting_address.js").read_text()
    letters = checks.MEETING_ID.removesuffix("+")
    assert re.findall(r"^const ID = /(.+)/;$", script, re.MULTILINE) == [
        f"^(?=.*{letters.replace('.', '')}){letters}+$"
    ]
    assert f"const ID_CHARS = {Limits().id_chars};" in script


def test_a_language_comes_back_normalised() -> None:
    assert checks.supported_language("EN-us", ("en", "zh-hant"), "lang") == "en"
    assert checks.supported_language("zh_TW", ("en", "zh-hant"), "lang") == "zh-hant"


@pytest.mark.parametrize("tag", ["en", "zh_TW", "zh-Hant-TW", "sr-Latn-RS-x-a"])
def test_what_a_language_tag_may_be(tag: str) -> None:
    checks.check_language_tag(tag, "lang")


PROFILE = EngineProfile("m", "f", languages=("en", "de"), options=frozenset({"context"}))
PARTLY = EngineProfile("m", "f", ("en", "de", "fr"), pairs=frozenset({("en", "de"), ("en", "fr"), ("de", "en")}))


@pytest.mark.parametrize(
    ("check", "error", "sentence"),
    [
        (lambda: checks.check_length("abc", 2, "name"), LimitExceeded, "name has 3 characters; the limit is 2."),
        (lambda: checks.check_count(3, 2, "terms", "name"), LimitExceeded, "3 terms; the limit is 2."),
        (
            lambda: checks.check_text("123456", LIMITS, "name"),
            LimitExceeded,
            "name has 6 characters; the limit is 5.",
        ),
        (lambda: checks.check_text(" \t ", LIMITS, "name"), InvalidValue, "The text is empty."),
        (lambda: checks.check_terms({"a": " "}, LIMITS, "name"), InvalidValue, "A glossary term is empty."),
        (lambda: checks.check_terms({"": "a"}, LIMITS, "name"), InvalidValue, "A glossary term is empty."),
        (
            lambda: checks.check_terms({"a": "abc", "b": "abcd"}, LIMITS, "name"),
            LimitExceeded,
            "name has 4 characters; the limit is 3.",
        ),
        (lambda: checks.check_language_tag("e n", "name"), InvalidValue, "'e n' is not a language tag."),
        (lambda: checks.check_language_tag("e", "name"), InvalidValue, "'e' is not a language tag."),
        (
            lambda: checks.supported_language("tlh", PROFILE.languages, "name"),
            UnsupportedLanguage,
            "The model does not know the language 'tlh'; it knows en, de.",
        ),
        (
            lambda: checks.check_pair("de", "fr", PARTLY, "name"),
            UnsupportedLanguage,
            "Nothing here translates German into French; languages into which German is translated: en.",
        ),
        (
            lambda: checks.check_pair("fr", "en", PARTLY, "name"),
            UnsupportedLanguage,
            "Nothing here translates French into English; languages into which French is translated: none.",
        ),
    ],
)
def test_what_is_wrong_is_said_of_its_field(
    check: Callable[[], object], error: type[GatewayError], sentence: str
) -> None:
    with pytest.raises(error) as caught:
        check()
    assert (caught.value.field, caught.value.message) == ("name", sentence)


def test_targets_by_source() -> None:
    assert checks.targets_by_source(PARTLY) == {"en": ["de", "fr"], "de": ["en"]}
    every = frozenset({("en", "de"), ("de", "en")})
    assert checks.targets_by_source(PROFILE) is UNSET
    assert checks.targets_by_source(replace(PROFILE, pairs=every)) is UNSET
    checks.check_pair("de", "en", PARTLY)


def test_options_that_the_model_cannot_take() -> None:
    given = {"glossary": {"a": "b"}, "context": "c", "formality": None}
    (error,) = checks.unsupported_options(given, PROFILE)
    assert isinstance(error, UnsupportedOption)
    assert (error.field, error.message) == ("glossary", "The model m takes no glossary; it is left out.")
