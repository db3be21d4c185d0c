"""DeepL's API, versions 2 and 3: texts, languages, usage, glossaries. The rest is refused in its own form.

Knows: DeepL's fields, language codes and errors (https://developers.deepl.com/docs).
Must not know: how texts are translated, who has which key.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from gateway.domain.audit import Action
from gateway.domain.engine import Formality
from gateway.domain.errors import (
    DailyQuotaExceeded,
    Forbidden,
    ForeignOrigin,
    GatewayError,
    InvalidValue,
    MessageTooLarge,
    QuotaExceeded,
    RateLimited,
    TextTooLong,
    Unauthenticated,
)
from gateway.domain.glossaries import Glossaries
from gateway.domain.grants import Grant
from gateway.domain.languages import AUTO, language_name, normalise
from gateway.protocol import checks
from gateway.server.compat.deepl_glossaries import SCHEMES, DeepLGlossaries, supported_code
from gateway.server.compat.markup import Kind, Rules
from gateway.server.compat.requests import (
    CompatResource,
    Parts,
    check_texts,
    known,
    may_translate,
    parameters,
    translated,
)
from gateway.server.guard.identity import client_account
from gateway.server.http.responses import json_response
from gateway.server.http.usage import TenantUsage
from gateway.server.translate.plan import Asked

# The status of the daily quota, which no standard has.
_QUOTA_EXCEEDED = 456

# What DeepL answers where there is no limit.
_NO_LIMIT = 1_000_000_000_000

# DeepL's codes for languages, where they are not just the tag; and where it has several to translate into.
_CODES = {"no": "NB"}
_VARIANTS = {"en": ("EN-GB", "EN-US"), "pt": ("PT-BR", "PT-PT"), "zh": ("ZH", "ZH-HANS")}

_FORMALITY: dict[str, Formality] = {
    "more": "formal",
    "prefer_more": "formal",
    "less": "informal",
    "prefer_less": "informal",
}


# A line break within a paragraph.
_WRAPPED = re.compile(r"(?<=\S)[^\S\n]*\n[^\S\n]*(?=\S)")

# What a translation without it would not be what was asked for.
_REFUSED = ("style_id", "translation_memory_id", "custom_instructions")


class _Text(Struct, frozen=True):
    """What `/v2/translate` is given, also what has no effect here; other parameters are ignored."""

    text: list[str]
    target_lang: str
    source_lang: str | None = None
    context: str | None = None
    split_sentences: Literal["0", "1", "nonewlines"] = "1"
    preserve_formatting: bool = False
    formality: Literal["default", "more", "less", "prefer_more", "prefer_less"] = "default"
    model_type: Literal["quality_optimized", "latency_optimized", "prefer_quality_optimized"] | None = None
    glossary_id: str | None = None
    glossary_ids: list[str] = []
    style_id: Any = None
    translation_memory_id: Any = None
    custom_instructions: Any = None
    tag_handling: Literal["xml", "html"] | None = None
    tag_handling_version: Literal["v1", "v2"] | None = None
    ignore_tags: list[str] = []
    splitting_tags: list[str] = []
    non_splitting_tags: list[str] = []
    outline_detection: bool = True
    show_billed_characters: bool = False


_LISTS = ("text", "glossary_ids", "ignore_tags", "splitting_tags", "non_splitting_tags")


class _Type(Struct, frozen=True):
    """What `/v2/languages` is given."""

    type: Literal["source", "target"] = "source"


def routes(parts: Parts, usage: TenantUsage, glossaries: Callable[[], Glossaries]) -> list[BaseRoute]:
    """glossaries: where they are, which is known once the store is open."""
    kept = DeepLGlossaries(parts, glossaries)
    api = _Api(parts, usage, kept)
    one = "/glossaries/{id}"
    return [
        Route("/v2/glossaries", _Resource(GET=kept.list_single, POST=kept.create_single)),
        Route(f"/v2{one}", _Resource(GET=kept.get_single, DELETE=kept.delete)),
        Route(f"/v2{one}/entries", _Resource(GET=kept.entries_of_single)),
        Route("/v3/glossaries", _Resource(GET=kept.list_several, POST=kept.create_several)),
        Route(f"/v3{one}", _Resource(GET=kept.get_several, PATCH=kept.change, DELETE=kept.delete)),
        Route(f"/v3{one}/entries", _Resource(GET=kept.entries)),
        Route(f"/v3{one}/dictionaries", _Resource(PUT=kept.put_dictionary, DELETE=kept.delete_dictionary)),
        Route("/v2/translate", _Resource(POST=api.translate)),
        Route("/v2/languages", _Resource(GET=api.languages, POST=api.languages)),
        Route("/v2/usage", _Resource(GET=api.usage, POST=api.usage)),
        Route("/v2/glossary-language-pairs", _Resource(GET=api.glossary_pairs)),
        Route("/v2/{rest:path}", _Resource()),
        Route("/v3/{rest:path}", _Resource()),
    ]


class _Api:
    def __init__(self, parts: Parts, usage: TenantUsage, glossaries: DeepLGlossaries) -> None:
        self._parts = parts
        self._glossaries = glossaries
        self._usage = usage

    async def translate(self, request: Request) -> ASGIApp:
        grant = await may_translate(request, self._parts, schemes=SCHEMES)
        given = await parameters(request, self._parts, _Text, lists=_LISTS)
        self._check(given)
        # DeepL gives an empty text back, and sites send them.
        filled = [(n, text) for n, text in enumerate(given.text) if text.strip()]
        answers = [_translation(text, given.source_lang or "", text, given) for text in given.text]
        if filled:
            rules = _rules(given)
            if rules is None and given.split_sentences != "1":
                filled = [(n, _WRAPPED.sub(" ", text)) for n, text in filled]
            texts = [(f"text[{n}]", text) for n, text in filled]
            check_texts(texts, self._parts.translator, rules)
            asked = Asked(
                texts=texts,
                targets=[("target_lang", given.target_lang)],
                source=given.source_lang or AUTO,
                glossary=await self._terms(grant, client_account(request), given, [text for _, text in texts]),
                context=given.context or "",
                formality=_FORMALITY.get(given.formality),
            )
            done = await translated(request, self._parts, grant, asked, rules)
            for (n, _), each in zip(filled, done, strict=True):
                answers[n] = _translation(given.text[n], each.source, each.text, given)
        return json_response({"translations": answers})

    async def _terms(self, grant: Grant, address: str, given: _Text, texts: list[str]) -> dict[str, str]:
        if not (id := _glossary_id(given)):
            return {}
        source, target = given.source_lang or "", given.target_lang
        return await self._glossaries.terms(grant, address, id, source, target, texts)

    def _check(self, given: _Text) -> None:
        """Raises `LimitExceeded`, `UnsupportedLanguage`, or `InvalidValue` where a value has no effect here."""
        if not given.text:
            raise InvalidValue("Parameter 'text' not specified.", field="text")
        checks.check_count(len(given.text), self._parts.translator.batch_texts, "texts", "text")
        profile = self._parts.translator.engine.profile()
        supported_code(given.target_lang, profile, "target_lang")
        if given.source_lang:
            supported_code(given.source_lang, profile, "source_lang")
        if _glossary_id(given) and not given.source_lang:
            raise InvalidValue(
                "Use of a glossary requires the source_lang parameter to be specified.", field="source_lang"
            )
        if given.formality in ("more", "less") and "formality" not in profile.options:
            raise InvalidValue(
                f"Target language {given.target_lang[:20]!r} doesn't support formality; "
                "prefer_more and prefer_less have no effect.",
                field="formality",
            )
        for name in _REFUSED:
            if getattr(given, name) is not None:
                raise InvalidValue(f"Value for '{name}' not supported: there are none here.", field=name)

    async def languages(self, request: Request) -> ASGIApp:
        await self._grant(request)
        profile = self._parts.translator.engine.profile()
        if (await parameters(request, self._parts, _Type)).type == "source":
            found = [{"language": _source(tag), "name": language_name(tag)} for tag in profile.languages]
            return json_response(found)
        formality = "formality" in profile.options
        return json_response(
            [
                {"language": code, "name": _name(tag, code), "supports_formality": formality}
                for tag in profile.languages
                for code in _VARIANTS.get(tag, (_source(tag),))
            ]
        )

    async def usage(self, request: Request) -> ASGIApp:
        grant = await self._grant(request, "usage")
        with self._parts.audit.attempt("usage", request) as attempt:
            attempt.grant = grant
            if not grant.any_meeting:
                raise Forbidden("What a tenant uses is told to whoever has an API key of it.")
            used, quota = await self._usage.used_by(grant.tenant), self._usage.quota_of(grant.tenant)
        limit = _NO_LIMIT if quota.characters is None else quota.characters
        return json_response({"character_count": used.characters, "character_limit": limit})

    async def glossary_pairs(self, request: Request) -> ASGIApp:
        await self._grant(request)
        profile = self._parts.translator.engine.profile()
        languages = profile.languages if "glossary" in profile.options else ()
        pairs = [(source, target) for source in languages for target in profile.targets(source)]
        return json_response(
            {"supported_languages": [{"source_lang": source, "target_lang": target} for source, target in pairs]}
        )

    async def _grant(self, request: Request, action: Action = "translate") -> Grant:
        return await known(request, self._parts, action=action, schemes=SCHEMES)


class _Resource(CompatResource):
    """Errors as DeepL's clients expect them: what does not get better by asking again is 400, 403, 404 or 456."""

    NOT_FOUND = "This gateway has no such part of DeepL's API: it has texts, glossaries, languages and usage."

    def body(self, message: str) -> dict[str, str]:
        return {"message": message}

    def status(self, error: GatewayError) -> int:
        match error:
            case Unauthenticated() | Forbidden() | ForeignOrigin():
                return 403
            case DailyQuotaExceeded():
                return _QUOTA_EXCEEDED
            case QuotaExceeded() | RateLimited():
                return 429
            case MessageTooLarge() | TextTooLong():
                return 413
            case _ if error.retryable:
                return 503
            case _:
                # DeepL's clients ask up to five times again after any status from 500 on.
                return 400


def _glossary_id(given: _Text) -> str:
    """Empty if none is named. Raises `InvalidValue` for several."""
    ids = {id for id in (given.glossary_id, *given.glossary_ids) if id}
    if len(ids) > 1:
        raise InvalidValue("Value for 'glossary_ids' not supported: give one glossary.", field="glossary_ids")
    return next(iter(ids), "")


def _rules(given: _Text) -> Rules | None:
    if given.tag_handling is None:
        return None
    return Rules(
        given.tag_handling,
        ignored=_names(given.ignore_tags, given.tag_handling),
        splitting=_names(given.splitting_tags, given.tag_handling),
        non_splitting=_names(given.non_splitting_tags, given.tag_handling),
        outline=given.outline_detection,
    )


def _names(given: list[str], kind: Kind) -> frozenset[str]:
    """Names of tags, which come as a list, in one string with commas, or both."""
    names = ",".join(given).split(",")
    return frozenset((name.lower() if kind == "html" else name).strip() for name in names) - {""}


def _name(tag: str, code: str) -> str:
    variant = code.partition("-")[2]
    return f"{language_name(tag)} ({variant})" if variant and "-" not in tag else language_name(tag)


def _source(tag: str) -> str:
    """DeepL's code for a language that it translates from."""
    return _CODES.get(tag, tag.upper())


def _translation(text: str, source: str, translation: str, given: _Text) -> dict[str, str | int]:
    answer: dict[str, str | int] = {"detected_source_language": _source(normalise(source)), "text": translation}
    if given.show_billed_characters:
        answer["billed_characters"] = len(text)
    if given.model_type:
        # There is one model.
        answer["model_type_used"] = given.model_type.removeprefix("prefer_")
    return answer
