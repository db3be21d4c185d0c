"""From a body to translation requests; the refusals are in `test_api.py`, on a socket."""

from __future__ import annotations

from gateway.domain.engine import EngineProfile, TranslationOptions, TranslationRequest
from gateway.protocol.limits import Limits
from gateway.server.http.translate_request import decode_body, plan

BODY = b"""{
    "texts": ["good morning", " two "], "source_lang": "EN", "target_lang": "zh-TW", "later": 1,
    "glossary": {"morning": "\xe6\x97\xa9"}, "context": "we met", "formality": "formal"
}"""

SCOPE = "http:1.1.1.1"


def profile(*options: str) -> EngineProfile:
    return EngineProfile("m", "f", languages=("en", "zh-hant"), options=frozenset(options))


def test_every_option_the_model_takes_goes_with_every_text() -> None:
    requests, warnings = plan(
        decode_body(BODY),
        id_prefix="http-1",
        scope=SCOPE,
        profile=profile("glossary", "context", "formality"),
        limits=Limits(),
        batch_texts=2,
    )
    options = TranslationOptions(glossary=(("morning", "早"),), context=("we met",), formality="formal")
    assert requests == [
        TranslationRequest(
            id="http-1-0", text="good morning", source="en", target="zh-hant", options=options, cache_scope=SCOPE
        ),
        TranslationRequest(
            id="http-1-1", text=" two ", source="en", target="zh-hant", options=options, cache_scope=SCOPE
        ),
    ]
    assert warnings == []


def test_what_the_model_does_not_take_is_left_out_with_a_warning() -> None:
    requests, warnings = plan(
        decode_body(BODY),
        id_prefix="x",
        scope=SCOPE,
        profile=profile("formality"),
        limits=Limits(),
        batch_texts=2,
    )
    assert {request.options for request in requests} == {TranslationOptions(formality="formal")}
    assert [(warning.code, warning.field) for warning in warnings] == [
        ("unsupported_option", "glossary"),
        ("unsupported_option", "context"),
    ]


def test_an_empty_option_is_no_option() -> None:
    body = b'{"text": "a", "source_lang": "en", "target_lang": "zh-hant", "glossary": {}, "context": ""}'
    requests, warnings = plan(
        decode_body(body),
        id_prefix="x",
        scope=SCOPE,
        profile=profile("context"),
        limits=Limits(),
        batch_texts=1,
    )
    assert requests[0].options == TranslationOptions()
    assert warnings == []
