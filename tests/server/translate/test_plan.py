"""From what is asked for to translation requests; refusals on a socket are in `tests/server/http/test_api.py`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.domain.engine import EngineProfile, TranslationOptions, TranslationRequest
from gateway.domain.errors import InvalidValue, LimitExceeded, UnsupportedLanguage
from gateway.domain.languages import AUTO, UNDETERMINED
from gateway.protocol.limits import Limits
from gateway.server.translate.plan import Asked, Plan, plan

SCOPE = "http:1.1.1.1"

LIMITS = Limits()

EVERYTHING = Asked(
    texts=[("texts[0]", "good morning"), ("texts[1]", " two ")],
    targets=[("target_lang", "zh-TW")],
    source="EN",
    glossary={"morning": "早"},
    context="we met",
    formality="formal",
)


def profile(*options: str, languages: tuple[str, ...] = ("en", "zh-hant", "de"), **rest: Any) -> EngineProfile:
    return EngineProfile("m", "f", languages=languages, options=frozenset(options), **rest)


def first_letters(text: str, languages: Collection[str]) -> str | None:
    """A detector for texts that begin with their language."""
    return text[:2] if text[:2] in languages else None


def planned(asked: Asked, profile: EngineProfile, limits: Limits = LIMITS) -> Plan:
    return plan(
        asked,
        id_prefix="http-1",
        scope=SCOPE,
        profile=profile,
        limits=limits,
        batch_texts=3,
        segment_chars=30,
        detect=first_letters,
    )


def asking(*texts: str, targets: tuple[str, ...] = ("de",), source: str = AUTO) -> Asked:
    return Asked(
        texts=[(f"texts[{n}]", text) for n, text in enumerate(texts)],
        targets=[(f"target_langs[{n}]", tag) for n, tag in enumerate(targets)],
        source=source,
    )


def test_every_option_the_model_takes_goes_with_every_text() -> None:
    found = planned(EVERYTHING, profile("glossary", "context", "formality"))
    options = TranslationOptions(glossary=(("morning", "早"),), context=("we met",), formality="formal")
    first = TranslationRequest(
        id="http-1-0.0", text="good morning", source="en", target="zh-hant", options=options, cache_scope=SCOPE
    )
    second = replace(first, id="http-1-1.0", text="two")
    assert [job.requests for job in found.jobs] == [(first,), (second,)]
    assert (found.source, found.targets, found.left_out) == ("en", ["zh-hant"], [])


def test_unsupported_option_is_left_out_with_a_warning() -> None:
    found = planned(EVERYTHING, profile("formality"))
    assert {request.options for job in found.jobs for request in job.requests} == {
        TranslationOptions(formality="formal")
    }
    assert [(warning.code, warning.field) for warning in found.left_out] == [
        ("unsupported_option", "glossary"),
        ("unsupported_option", "context"),
    ]


def test_an_empty_option_is_no_option() -> None:
    found = planned(asking("a", source="en"), profile("context", "glossary", "formality"))
    assert [request.options for request in found.jobs[0].requests] == [TranslationOptions()]
    assert found.left_out == []


def test_each_text_goes_once_into_each_language() -> None:
    found = planned(asking("a", "b", source="en", targets=("de", "en-GB", "DE", "zh-HK")), profile())
    assert found.targets == ["de", "en", "zh-hant"]
    assert [(job.index, job.target, bool(job.requests)) for job in found.jobs] == [
        *((0, "de", True), (0, "en", False), (0, "zh-hant", True)),
        *((1, "de", True), (1, "en", False), (1, "zh-hant", True)),
    ]
    ids = [request.id for job in found.jobs for request in job.requests]
    assert len(set(ids)) == 4


def test_a_text_whose_language_is_detected() -> None:
    found = planned(asking("en text", "de text", "42"), profile())
    assert [(job.source, bool(job.requests)) for job in found.jobs] == [
        ("en", True),
        ("de", False),
        (UNDETERMINED, False),
    ]
    assert found.source == AUTO


@pytest.mark.parametrize(
    ("text", "target", "parts", "whole"),
    [
        ("Good morning. Thank you.", "de", ["Good morning.", "Thank you."], "0 1"),
        ("Good morning.  Thank you.", "zh-hant", ["Good morning.", "Thank you."], "01"),
        ("Good morning.\nThank you.", "zh-hant", ["Good morning.", "Thank you."], "0\n1"),
        (" one \r\n\r\n\ttwo\n", "de", ["one", "two"], " 0 \r\n\r\n\t1\n"),
        ("\u00a0one.\u00a0", "de", ["one."], "\u00a00\u00a0"),
        ("one\n---\n  two\n…", "de", ["one", "two"], "0\n---\n  1\n…"),
        ("Dr. Ito has $1.50 left. Yes.", "de", ["Dr. Ito has $1.50 left.", "Yes."], "0 1"),
        (
            "we go to the harbour with our friends, then we eat there together",
            *("de", ["we go to the harbour with our friends,", "then we eat there together"], "0 1"),
        ),
        ("a\n" * 1_000, "de", None, None),
    ],
)
def test_lines_and_sentences_are_translated_by_themselves(
    text: str, target: str, parts: list[str] | None, whole: str | None
) -> None:
    (job,) = planned(asking(text, source="en", targets=(target,)), profile()).jobs
    if parts is not None:
        assert [request.text for request in job.requests] == parts
        assert job.put_together([str(number) for number in range(len(parts))]) == whole
    assert "".join(job.put_together([request.text for request in job.requests]).split()) == "".join(text.split())
    assert len(job.requests) <= 256
    # As far as it has come.
    assert job.put_together([]) == ""
    assert text.startswith(job.put_together([job.requests[0].text]))


def test_what_comes_between_sentences_is_of_the_target() -> None:
    chinese = asking("早上好。谢谢。", source="zh", targets=("de",))
    (job,) = planned(chinese, profile(languages=("zh", "de"))).jobs
    assert job.put_together(["Guten Morgen.", "Danke."]) == "Guten Morgen. Danke."


def test_a_sentence_has_those_before_it_as_context() -> None:
    asked = replace(
        asking("It is one. It is two. It is three. It is four. It is five.", source="en"), context="we met"
    )
    (job,) = planned(asked, profile("context")).jobs
    assert job.requests[0].options.context == ("we met",)
    assert job.requests[4].options.context == ("we met", "It is two.", "It is three.", "It is four.")


def test_a_text_that_cannot_be_translated_fails_alone() -> None:
    only = profile(pairs=frozenset({("en", "de")}))
    found = planned(asking("en text", "en too long"), only, Limits(text_chars=10))
    assert [job.error and job.error.code for job in found.jobs] == [None, "limit_exceeded"]
    found = planned(asking("en text", "zh text", " "), profile(languages=("en", "zh", "de"), pairs=only.pairs))
    assert [job.error and job.error.code for job in found.jobs] == [None, "unsupported_language", "invalid_value"]
    assert [job.error.field for job in found.jobs if job.error] == ["texts[1]", "texts[2]"]


def test_all_or_none_fails_the_call_for_one_text() -> None:
    whole = replace(asking("en text", "en too long", "en text"), all_or_none=True)
    with pytest.raises(LimitExceeded) as caught:
        planned(whole, profile(), Limits(text_chars=10))
    assert caught.value.field == "texts[1]"
    assert len(planned(whole, profile()).jobs) == 3


@pytest.mark.parametrize(
    ("asked", "error", "field"),
    [
        (asking(), InvalidValue, "texts"),
        (asking("a", "a", "a", "a"), LimitExceeded, "texts"),
        (asking(" ", ""), InvalidValue, "texts[0]"),
        (asking("a", targets=()), InvalidValue, "target_langs"),
        (asking("a", targets=("de", "tlh")), UnsupportedLanguage, "target_langs[1]"),
        (asking("a", source="tlh"), UnsupportedLanguage, "source_lang"),
        (asking("a", source="de", targets=("de", "en")), UnsupportedLanguage, "target_langs[1]"),
    ],
)
def test_what_no_text_can_be_translated_with(asked: Asked, error: type[Exception], field: str) -> None:
    with pytest.raises(error) as caught:
        planned(asked, profile(pairs=frozenset({("en", "de")})))
    assert getattr(caught.value, "field", None) == field
