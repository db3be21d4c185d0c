"""The body of a `POST /v1/translate` request, and the translation requests that it becomes. Checks it.

Knows: fields, limits and languages. A part of `/openapi.json` is generated from this module.
Must not know: headers, connections, who waits, answers (`bodies`).

Unknown fields are ignored, as on the WebSocket.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from gateway.domain.engine import EngineProfile, Formality, TranslationOptions, TranslationRequest
from gateway.domain.errors import InvalidMessage, InvalidValue, UnsupportedOption
from gateway.protocol import checks
from gateway.protocol.fields import Lang
from gateway.protocol.limits import Limits
from gateway.server.http.request_bodies import decoded

__all__ = ["TranslateBody", "decode_body", "plan"]


class TranslateBody(Struct, frozen=True, kw_only=True):
    """One text (`text`) or several (`texts`), to translate from one language into another."""

    text: Annotated[str, Meta(description="The text to translate.")] | UnsetType = UNSET
    texts: Annotated[list[str], Meta(description="Several texts; all are admitted, or none.")] | UnsetType = UNSET
    source_lang: Lang
    target_lang: Lang
    glossary: Annotated[dict[str, str] | None, Meta(description="Source term → target term.")] = None
    context: Annotated[str | None, Meta(description="Background: what was said before; not translated.")] = None
    formality: Formality | None = None


def decode_body(data: bytes) -> TranslateBody:
    """The body of `POST /v1/translate`. Raises `InvalidMessage`, with `field` if one field is wrong."""
    body = decoded(_DECODER, data)
    if (body.text is UNSET) == (body.texts is UNSET):
        raise InvalidMessage("Send either `text` or `texts`.", field="text")
    return body


_DECODER = msgspec.json.Decoder(TranslateBody)


def plan(
    body: TranslateBody, *, id_prefix: str, scope: str, profile: EngineProfile, limits: Limits, batch_texts: int
) -> tuple[list[TranslationRequest], list[UnsupportedOption]]:
    """The translation requests of a body, in order, and warnings about options that the model cannot take.

    scope: whose prompts they may share the engine's prefix cache with.

    Raises `LimitExceeded`, `InvalidValue` or `UnsupportedLanguage`, with `field`.
    """
    named = [("text", body.text)] if isinstance(body.text, str) else []
    if isinstance(body.texts, list):
        if not body.texts:
            raise InvalidValue("There is nothing to translate.", field="texts")
        checks.check_count(len(body.texts), batch_texts, "texts", "texts")
        named = [(f"texts[{n}]", text) for n, text in enumerate(body.texts)]
    for field, text in named:
        checks.check_text(text, limits, field)
    source = checks.supported_language(body.source_lang, profile.languages, "source_lang")
    target = checks.supported_language(body.target_lang, profile.languages, "target_lang")
    if source == target:
        raise InvalidValue(f"Source and target are both {source!r}.", field="target_lang")
    checks.check_pair(source, target, profile, "target_lang")
    context, glossary, formality = body.context or "", body.glossary or {}, body.formality
    checks.check_length(context, limits.context_chars, "context")
    checks.check_count(len(glossary), limits.glossary_terms, "terms", "glossary")
    checks.check_terms(glossary, limits, "glossary")
    given = {"glossary": glossary, "context": context, "formality": formality}
    options = TranslationOptions(
        glossary=tuple(glossary.items()) if "glossary" in profile.options else (),
        context=(context,) if context and "context" in profile.options else (),
        formality=formality if "formality" in profile.options else None,
    )
    requests = [
        TranslationRequest(
            id=f"{id_prefix}-{n}", text=text, source=source, target=target, options=options, cache_scope=scope
        )
        for n, (_, text) in enumerate(named)
    ]
    return requests, checks.unsupported_options(given, profile)
