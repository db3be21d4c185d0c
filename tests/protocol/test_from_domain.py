"""What becomes a message: entries of the log, and errors."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from gateway.domain.engine import Confidence, EngineProfile
from gateway.domain.errors import EngineUnavailable, InvalidValue, error_classes
from gateway.domain.log import Publication, Said, Timings, Translated, Untranslated, Utterance
from gateway.protocol.from_domain import caption_message, error_message, languages_message, publication_message
from gateway.protocol.messages import Caption, Error, LanguagesChanged, TranslationFailed, TranslationFinal

TIMINGS = Timings(1.0, 2.0, 3.0)


def test_said_becomes_a_final_caption() -> None:
    said = Utterance("u", 4, "hello", "en", "p", "Ana", True, start_ms=5, context=("secret",))
    message = publication_message(Publication(7, 1_234, Said(said, ("ja",))))
    assert message == Caption("p", "u", "Ana", "en", 4, "hello", final=True, offset=7, at_ms=1_234)


def test_partial_caption_has_no_position() -> None:
    message = caption_message(Utterance("u", 4, "hello", "en", "p", "Ana", False))
    assert (message.final, message.offset, message.at_ms) == (False, None, UNSET)
    assert b"at_ms" not in msgspec.json.encode(message)


def test_a_translation_becomes_what_replaces_the_deltas() -> None:
    done = Translated("p", "u", "Ana", "ja", 4, "やあ", TIMINGS, tokens=9, truncated=True, said=7)
    assert publication_message(Publication(8, 2_345, done)) == TranslationFinal(
        "p", "u", "Ana", "ja", 4, "やあ", offset=8, timings=TIMINGS, tokens=9, truncated=True, at_ms=2_345
    )


def test_translation_carries_its_confidence() -> None:
    def told(confidence: Confidence | None) -> dict[str, object]:
        done = Translated("p", "u", "Ana", "ja", 4, "やあ", TIMINGS, tokens=9, confidence=confidence)
        message = msgspec.to_builtins(publication_message(Publication(8, 2_345, done)))
        return {name: message[name] for name in ("confidence", "unsure") if name in message}

    assert told(None) == {}
    assert told(Confidence(0.97)) == {"confidence": 0.97}
    assert told(Confidence(0.2, unsure=True)) == {"confidence": 0.2, "unsure": True}


def test_a_failure_says_why() -> None:
    failed = Untranslated("p", "u", "Ana", "ja", 4, "cancelled", "The utterance was cancelled.", said=7)
    assert publication_message(Publication(8, 0, failed)) == TranslationFailed(
        "p", "u", "Ana", "ja", 4, "cancelled", "The utterance was cancelled.", offset=8
    )


def test_error_message_has_field_and_retry() -> None:
    assert error_message(InvalidValue("No.", field="lang", utterance="u")) == Error(
        "invalid_value", "No.", retryable=False, retry_after_ms=None, utterance="u", field="lang"
    )
    assert error_message(EngineUnavailable("Wait.", retry_after_ms=50)) == Error(
        "engine_unavailable", "Wait.", retryable=True, retry_after_ms=50
    )


def test_every_error_of_the_tree_can_be_said() -> None:
    for kind in error_classes():
        message = error_message(kind("No."))
        assert (message.code, message.retryable) == (kind.code, kind.retryable)


def test_languages_message_says_what_engines_can() -> None:
    every = EngineProfile("m", "f", ("en", "ja"), options=frozenset({"glossary", "context"}))
    assert languages_message(every) == LanguagesChanged(["en", "ja"], ["context", "glossary"])
    one = EngineProfile("m", "f", ("en", "ja"), pairs=frozenset({("en", "ja")}))
    assert languages_message(one) == LanguagesChanged(["en", "ja"], [], {"en": ["ja"]})
