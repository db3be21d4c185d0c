"""What a body asks for; the refusals are in `test_api.py`, on a socket."""

from __future__ import annotations

from gateway.domain.languages import AUTO
from gateway.server.http.request_bodies import decoded
from gateway.server.http.translate_request import TRANSLATE_BODY, asked, unknown_fields
from gateway.server.translate.plan import Asked

BODY = b"""{
    "texts": ["good morning", " two "], "source_lang": "EN", "target_lang": "zh-TW", "later": 1,
    "glossary": {"morning": "\xe6\x97\xa9"}, "context": "we met", "formality": "formal"
}"""


def test_every_field_is_passed_on_with_its_name() -> None:
    assert asked(decoded(TRANSLATE_BODY, BODY)) == Asked(
        texts=[("texts[0]", "good morning"), ("texts[1]", " two ")],
        targets=[("target_lang", "zh-TW")],
        source="EN",
        glossary={"morning": "早"},
        context="we met",
        formality="formal",
    )
    assert unknown_fields(BODY) == ["later"]


def test_what_is_left_out_or_null_is_the_default() -> None:
    body = b'{"text": "a", "target_langs": ["de", "fr"], "glossary": null, "context": null, "formality": null}'
    assert asked(decoded(TRANSLATE_BODY, body)) == Asked(
        texts=[("text", "a")], targets=[("target_langs[0]", "de"), ("target_langs[1]", "fr")], source=AUTO
    )
    assert unknown_fields(body) == []
