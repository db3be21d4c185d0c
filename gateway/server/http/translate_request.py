"""The body of a `POST /v1/translate` request, and what it asks for.

Knows: fields. A part of `/openapi.json` is generated from this module.
Must not know: headers, connections, what becomes of it (`server.translate`), answers (`bodies`).

Unknown fields are ignored, as on the WebSocket, and named in a warning.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from gateway.domain.engine import Formality
from gateway.domain.errors import InvalidMessage
from gateway.domain.languages import AUTO
from gateway.protocol.asyncapi import Document
from gateway.protocol.fields import Lang
from gateway.protocol.limits import Limits
from gateway.server.http.request_bodies import decoded
from gateway.server.translate.plan import Asked

# Most unknown fields that warnings name, and most characters of each name.
_MOST_NAMED = 8
_MOST_CHARS = 64


class TranslateBody(Struct, frozen=True, kw_only=True):
    """One text (`text`) or several (`texts`), to translate into one language (`target_lang`) or several."""

    text: Annotated[str, Meta(description="The text to translate.")] | UnsetType = UNSET
    texts: Annotated[list[str], Meta(description="Several texts; each may fail by itself.")] | UnsetType = UNSET
    source_lang: Annotated[
        str | None,
        Meta(description="A BCP 47 tag. Without it, or with `auto`, that of each text is detected."),
    ] = None
    target_lang: Lang | UnsetType = UNSET
    target_langs: (
        Annotated[list[str], Meta(description="Several languages, each a BCP 47 tag; the answer has all of them.")]
        | UnsetType
    ) = UNSET
    glossary: Annotated[dict[str, str] | None, Meta(description="Source term → target term.")] = None
    context: Annotated[str | None, Meta(description="Background: what was said before; not translated.")] = None
    formality: Formality | None = None


TRANSLATE_BODY = msgspec.json.Decoder(TranslateBody)
_NAMES = msgspec.json.Decoder(dict[str, msgspec.Raw])


def asked(body: TranslateBody) -> Asked:
    """What a body asks for. Raises `InvalidMessage`, with `field`."""
    if (body.text is UNSET) == (body.texts is UNSET):
        raise InvalidMessage("Send either `text` or `texts`.", field="text")
    if (body.target_lang is UNSET) == (body.target_langs is UNSET):
        raise InvalidMessage("Send either `target_lang` or `target_langs`.", field="target_lang")
    texts = body.texts if isinstance(body.texts, list) else []
    targets = body.target_langs if isinstance(body.target_langs, list) else []
    return Asked(
        texts=(
            [("text", body.text)]
            if isinstance(body.text, str)
            else [(f"texts[{n}]", text) for n, text in enumerate(texts)]
        ),
        targets=(
            [("target_lang", body.target_lang)]
            if isinstance(body.target_lang, str)
            else [(f"target_langs[{n}]", tag) for n, tag in enumerate(targets)]
        ),
        source=AUTO if not body.source_lang or body.source_lang.lower() == AUTO else body.source_lang,
        glossary=body.glossary or {},
        context=body.context or "",
        formality=body.formality,
    )


def unknown_fields(data: bytes) -> list[str]:
    """The names in a body that mean nothing here, cut to what a warning may say. Raises `InvalidMessage`."""
    names = decoded(_NAMES, data).keys() - set(TranslateBody.__struct_encode_fields__)
    return [name[:_MOST_CHARS] for name in sorted(names)[:_MOST_NAMED]]


def bounded(schemas: Document, limits: Limits, batch_texts: int) -> Document:
    """Add the limits to the body's schema, and that it has exactly one of `text` and `texts`."""
    body = schemas[TranslateBody.__name__]
    body["allOf"] = [
        {"oneOf": [{"required": ["text"]}, {"required": ["texts"]}]},
        {"oneOf": [{"required": ["target_lang"]}, {"required": ["target_langs"]}]},
    ]
    fields = body["properties"]
    fields["text"] |= {"minLength": 1, "maxLength": limits.text_chars}
    fields["target_langs"] |= {"minItems": 1, "maxItems": limits.languages}
    fields["texts"] |= {"minItems": 1, "maxItems": batch_texts}
    fields["texts"]["items"] |= {"minLength": 1, "maxLength": limits.text_chars}
    term = {"minLength": 1, "maxLength": limits.term_chars}
    for schema in _alternatives(fields["glossary"], "object"):
        schema |= {"maxProperties": limits.glossary_terms, "propertyNames": term}
        schema["additionalProperties"] |= term
    for schema in _alternatives(fields["context"], "string"):
        schema["maxLength"] = limits.context_chars
    return schemas


def _alternatives(schema: Document, kind: str) -> list[Document]:
    return [branch for branch in schema.get("anyOf", [schema]) if branch.get("type") == kind]
