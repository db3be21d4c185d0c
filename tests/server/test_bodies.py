"""From a body to translation requests; the refusals are in `test_http_api.py`, on a socket."""

from __future__ import annotations

from gateway.domain.engine import EngineProfile, TranslationOptions, TranslationRequest
from gateway.domain.errors import error_classes
from gateway.protocol.asyncapi import error_meaning
from gateway.protocol.limits import Limits
from gateway.server.bodies import HTTP_ERRORS, decode_body, plan, problem

BODY = b"""{
    "texts": ["good morning", " two "], "source_lang": "EN", "target_lang": "zh-TW", "later": 1,
    "glossary": {"morning": "\xe6\x97\xa9"}, "context": "we met", "formality": "formal"
}"""


def profile(*options: str) -> EngineProfile:
    return EngineProfile("m", "f", languages=("en", "zh-hant"), options=frozenset(options))


def test_every_option_the_model_takes_goes_with_every_text() -> None:
    requests, warnings = plan(
        decode_body(BODY),
        id_prefix="http-1",
        profile=profile("glossary", "context", "formality"),
        limits=Limits(),
        batch_texts=2,
    )
    options = TranslationOptions(glossary=(("morning", "早"),), context=("we met",), formality="formal")
    assert requests == [
        TranslationRequest(id="http-1-0", text="good morning", source="en", target="zh-hant", options=options),
        TranslationRequest(id="http-1-1", text=" two ", source="en", target="zh-hant", options=options),
    ]
    assert warnings == []


def test_what_the_model_does_not_take_is_left_out_with_a_warning() -> None:
    requests, warnings = plan(
        decode_body(BODY), id_prefix="x", profile=profile("formality"), limits=Limits(), batch_texts=2
    )
    assert {request.options for request in requests} == {TranslationOptions(formality="formal")}
    assert [(warning.code, warning.field) for warning in warnings] == [
        ("unsupported_option", "glossary"),
        ("unsupported_option", "context"),
    ]


def test_an_empty_option_is_no_option() -> None:
    body = b'{"text": "a", "source_lang": "en", "target_lang": "zh-hant", "glossary": {}, "context": ""}'
    requests, warnings = plan(
        decode_body(body), id_prefix="x", profile=profile("context"), limits=Limits(), batch_texts=1
    )
    assert requests[0].options == TranslationOptions()
    assert warnings == []


def test_every_error_has_a_problem_and_a_meaning() -> None:
    for cls in error_classes():
        error = cls("What went wrong.", field="text", retry_after_ms=5)
        made, meaning = problem(error), error_meaning(cls)
        assert made.type == f"/errors/{cls.code}"
        assert (made.code, made.status, made.retryable) == (meaning.code, meaning.status, meaning.retryable)
        assert (made.detail, made.field, made.retry_after_ms) == ("What went wrong.", "text", 5)
        assert made.title == meaning.title != ""
        assert meaning.meaning.endswith(".")
        assert "\n" not in meaning.meaning


def test_the_errors_of_http_have_one_class_per_code() -> None:
    codes = [cls.code for cls in HTTP_ERRORS]
    assert len(set(codes)) == len(codes)
