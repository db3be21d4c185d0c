"""Every rule about values, at its bound: what is just allowed, what is not, and which field is named.

How a session answers, and what it goes on with, is in `tests/sessions/test_machine.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.domain.engine import EngineProfile
from gateway.domain.errors import EngineUnavailable, GatewayError, InvalidValue, LimitExceeded, UnsupportedLanguage
from gateway.protocol.limits import Limits
from gateway.protocol.messages import UtteranceFinal, UtterancePartial
from gateway.sessions.rules import SessionRules

LIMITS = Limits(text_chars=10, id_chars=5, languages=2, glossary_terms=3, term_chars=4)
PROFILE = EngineProfile("m", "f", ("en", "ja", "de", "zh-hant"), frozenset({"context"}))


def rules(profile: EngineProfile | None = PROFILE) -> SessionRules:
    made = SessionRules(LIMITS)
    made.profile = profile
    return made


def refused(kind: type[GatewayError], field: str, check: Callable[[], object]) -> None:
    with pytest.raises(kind) as caught:
        check()
    assert caught.value.field == field


def final(utterance: str = "u", text: str = "hello", **fields: Any) -> UtteranceFinal:
    return UtteranceFinal(utterance, 1, text, **fields)


def test_loading_engine_defers_what_needs_its_languages() -> None:
    loading = rules(None)
    checks: list[Callable[[], object]] = [
        loading.supported,
        lambda: loading.language("en", "speaks"),
        lambda: loading.languages(["en"]),
        lambda: loading.glossary({"ja": {}}),
        lambda: loading.unsupported_options({}),
    ]
    for check in checks:
        with pytest.raises(EngineUnavailable) as caught:
            check()
        assert caught.value.retry_after_ms
    # The language is known already.
    assert loading.utterance(final(), "en") == "en"


def test_languages_are_normalised_and_unique() -> None:
    assert rules().languages(["ja-JP", "de", "ja"]) == ("ja", "de")
    assert rules().languages([]) == ()
    assert rules().language("zh_TW", "speaks") == "zh-hant"


def test_unknown_language_is_named_by_its_place() -> None:
    refused(UnsupportedLanguage, "reads[1]", lambda: rules().languages(["ja", "tlh"]))
    with pytest.raises(UnsupportedLanguage) as caught:
        rules().language("x" * 10_000, "speaks")
    assert len(caught.value.message) < 200, "an error echoes no more than the beginning"


def test_resumed_sessions_keep_untranslated_languages() -> None:
    own = rules()
    own.held = ("fr",)
    assert own.languages(["ja", "fr-CA"]) == ("ja", "fr")
    refused(UnsupportedLanguage, "reads[0]", lambda: own.languages(["tlh"]))
    own.held = None
    assert own.languages(["tlh", "ja-JP"]) == ("tlh", "ja")
    refused(InvalidValue, "speaks", lambda: own.language("no language", "speaks"))


def test_more_languages_than_allowed_are_counted_once_each() -> None:
    assert len(rules().languages(["ja", "de", "ja-JP", "de"])) == 2
    refused(LimitExceeded, "reads", lambda: rules().languages(["ja", "de", "en"]))


@pytest.mark.parametrize("kind", [UtterancePartial, UtteranceFinal])
def test_the_utterances_own_language_counts_before_the_sessions(
    kind: type[UtterancePartial] | type[UtteranceFinal],
) -> None:
    assert rules().utterance(kind("u", 1, "x"), "en") == "en"
    assert rules().utterance(kind("u", 1, "x", lang="de-AT"), "en") == "de"


@pytest.mark.parametrize(
    ("message", "kind", "field"),
    [
        (final(""), InvalidValue, "id"),
        (final("x" * 6), LimitExceeded, "id"),
        (final("x~2"), InvalidValue, "id"),
        (final(text=" \n\u3000"), InvalidValue, "text"),
        (final(lang="tlh"), UnsupportedLanguage, "lang"),
    ],
)
def test_an_utterance_that_is_refused(message: UtteranceFinal, kind: type[GatewayError], field: str) -> None:
    refused(kind, field, lambda: rules().utterance(message, "en"))


@pytest.mark.parametrize(
    "message",
    [final("x" * 5), final(text="x" * 10), final(start_ms=1, end_ms=1), final(end_ms=0), final(start_ms=5)],
)
def test_an_utterance_at_its_bounds(message: UtteranceFinal) -> None:
    assert rules().utterance(message, "en") == "en"


def test_an_utterance_without_any_language_is_refused() -> None:
    refused(InvalidValue, "lang", lambda: rules().utterance(final(), None))


def test_a_glossary_keeps_its_order_under_normalised_languages() -> None:
    given = {"ja-JP": {"b": "び", "a": "あ"}, "de": {"c": "C"}}
    assert rules().glossary(given) == (("ja", (("b", "び"), ("a", "あ"))), ("de", (("c", "C"),)))


@pytest.mark.parametrize(
    ("glossary", "kind", "field"),
    [
        ({"ja": {"a": "1", "b": "2"}, "de": {"c": "3", "d": "4"}}, LimitExceeded, "glossary"),
        ({"tlh": {"a": "b"}}, UnsupportedLanguage, "glossary.tlh"),
        ({"ja": {" ": "b"}}, InvalidValue, "glossary.ja"),
        ({"ja": {"a": ""}}, InvalidValue, "glossary.ja"),
        ({"ja": {"x" * 5: "b"}}, LimitExceeded, "glossary.ja"),
        ({"ja": {"a": "x" * 5}}, LimitExceeded, "glossary.ja"),
    ],
)
def test_a_glossary_that_is_refused(
    glossary: dict[str, dict[str, str]], kind: type[GatewayError], field: str
) -> None:
    refused(kind, field, lambda: rules().glossary(glossary))


def test_each_unsupported_option_is_noted() -> None:
    notes = rules().unsupported_options({"glossary": True, "context": True, "formality": False})
    assert [(note.code, note.field) for note in notes] == [("unsupported_option", "glossary")]
