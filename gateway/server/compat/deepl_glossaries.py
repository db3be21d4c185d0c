"""DeepL's glossaries: `/v2/glossaries`, with one dictionary each, and `/v3/glossaries`, with several.

Knows: DeepL's fields, and entries as lines with tabs or CSV. Must not know: where glossaries are kept, how texts
are translated.
"""

from __future__ import annotations

import csv
import io
import re
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from gateway.domain.engine import EngineProfile
from gateway.domain.errors import Forbidden, InvalidValue, LogUnavailable, UnsupportedLanguage
from gateway.domain.glossaries import Dictionary, Glossaries, Glossary
from gateway.domain.grants import Grant, account_of_tenant
from gateway.protocol import checks
from gateway.protocol.limits import Limits
from gateway.server.compat.requests import Parts, known, parameters
from gateway.server.http.responses import StatusError, json_response

SCHEMES = ("deepl-auth-key",)
"""Schemes of the Authorization header, besides Bearer."""

Format = Literal["tsv", "csv"]

MOST_ENTRIES = 5_000
"""Most entries of one dictionary."""

_MOST_DICTIONARIES = 50

# How often a change is tried that another one comes before.
_TRIES = 5

# As forms have it: `dictionaries[0].source_lang`.
_NESTED = re.compile(r"dictionaries\[(\d{1,3})\]\.(\w+)")

_Name = Annotated[str, Meta(min_length=1, max_length=1_024)]


class _Entries(Struct, frozen=True):
    """One dictionary."""

    source_lang: str
    target_lang: str
    entries: str
    entries_format: Format = "tsv"


class _New(_Entries, frozen=True, kw_only=True):
    """What `/v2/glossaries` is given."""

    name: _Name


class _Changed(Struct, frozen=True, kw_only=True):
    """What `/v3/glossaries/{id}` is given: what is not there stays as it is."""

    name: _Name | None = None
    dictionaries: list[_Entries] = []


class _NewWithSeveral(_Changed, frozen=True, kw_only=True):
    """What `/v3/glossaries` is given."""

    name: _Name


class _Pair(Struct, frozen=True):
    source_lang: str
    target_lang: str


class DeepLGlossaries(Struct, frozen=True):
    """The endpoints, for clients with an API key of a tenant; and the terms for a text."""

    parts: Parts
    glossaries: Callable[[], Glossaries]

    async def terms(
        self, grant: Grant, address: str, id: str, source: str, target: str, texts: Collection[str]
    ) -> dict[str, str]:
        """Terms in these texts. address: of the client, an account; source, target: DeepL's codes.

        Raises `StatusError`, `InvalidValue` or `RateLimited`.
        """
        self._check_taken("glossary_id")
        glossary = await self._find(grant, id)
        pair = self._pair(source, target)
        dictionary = _dictionary(glossary, *pair)
        if dictionary is None:
            raise InvalidValue(
                f"No dictionary found for language pair {pair[0]} to {pair[1]} (glossary_id).", field="glossary_id"
            )
        # Many terms and a long text take tenths of a second.
        account, terms = account_of_tenant(grant, address), dictionary.terms
        return await self.parts.translator.thread.run(account, lambda: _occurring(terms, texts))

    # ------------------------------------------------------------ version 2

    async def list_single(self, request: Request) -> ASGIApp:
        grant = await self._grant(request)
        found = await self.glossaries().of_tenant(grant.tenant)
        return json_response({"glossaries": [_single(each) for each in found if len(each.dictionaries) == 1]})

    async def create_single(self, request: Request) -> ASGIApp:
        grant = await self._grant(request)
        given = await parameters(request, self.parts, _New)
        return json_response(_single(await self._create(request, grant, given.name, [given])), HTTPStatus.CREATED)

    async def get_single(self, request: Request) -> ASGIApp:
        return json_response(_single(await self._asked_single(request)))

    async def entries_of_single(self, request: Request) -> ASGIApp:
        (dictionary,) = (await self._asked_single(request)).dictionaries
        headers = {"Cache-Control": "no-store"}
        return Response(tab_separated(dictionary.terms), headers=headers, media_type="text/tab-separated-values")

    async def delete(self, request: Request) -> ASGIApp:
        grant = await self._grant(request)
        glossary = await self._find(grant, request.path_params["id"])
        with self._attempt(request, grant, glossary.id):
            await self.glossaries().delete(grant.tenant, glossary.id)
        return Response(status_code=HTTPStatus.NO_CONTENT)

    async def _asked_single(self, request: Request) -> Glossary:
        glossary = await self._find(await self._grant(request), request.path_params["id"])
        if len(glossary.dictionaries) != 1:
            raise StatusError(HTTPStatus.NOT_FOUND, "A glossary with several dictionaries is at /v3/glossaries.")
        return glossary

    # ------------------------------------------------------------ version 3

    async def list_several(self, request: Request) -> ASGIApp:
        grant = await self._grant(request)
        return json_response({"glossaries": list(map(_several, await self.glossaries().of_tenant(grant.tenant)))})

    async def create_several(self, request: Request) -> ASGIApp:
        grant = await self._grant(request)
        given = await parameters(request, self.parts, _NewWithSeveral, shape=_nested)
        glossary = await self._create(request, grant, given.name, given.dictionaries)
        return json_response(_several(glossary), HTTPStatus.CREATED)

    async def get_several(self, request: Request) -> ASGIApp:
        glossary = await self._find(await self._grant(request), request.path_params["id"])
        return json_response(_several(glossary))

    async def change(self, request: Request) -> ASGIApp:
        """Another name, and entries that are added or take the place of those with the same source term."""
        grant = await self._grant(request)
        given = await parameters(request, self.parts, _Changed, shape=_nested)
        new = self._dictionaries(given.dictionaries)

        def changed(before: Glossary) -> Glossary:
            after = before if given.name is None else replace(before, name=given.name)
            for each in new:
                held = _dictionary(after, each.source, each.target)
                merged = each if held is None else replace(each, terms=held.terms | each.terms)
                after = _with(after, merged)
            return after

        return json_response(_several(await self._change(request, grant, changed)))

    async def entries(self, request: Request) -> ASGIApp:
        glossary = await self._find(await self._grant(request), request.path_params["id"])
        dictionary = await self._asked_dictionary(request, glossary)
        return json_response(
            {
                "dictionaries": [
                    _info(dictionary) | {"entries": tab_separated(dictionary.terms), "entries_format": "tsv"}
                ]
            }
        )

    async def put_dictionary(self, request: Request) -> ASGIApp:
        """A dictionary in the place of the one with the same languages."""
        grant = await self._grant(request)
        (new,) = self._dictionaries([await parameters(request, self.parts, _Entries)])
        await self._change(request, grant, lambda before: _with(before, new))
        return json_response(_info(new))

    async def delete_dictionary(self, request: Request) -> ASGIApp:
        grant = await self._grant(request)
        gone = await self._asked_dictionary(request, await self._find(grant, request.path_params["id"]))

        def changed(before: Glossary) -> Glossary:
            return replace(before, dictionaries=tuple(_others(before, gone)))

        await self._change(request, grant, changed)
        return Response(status_code=HTTPStatus.NO_CONTENT)

    async def _asked_dictionary(self, request: Request, glossary: Glossary) -> Dictionary:
        asked = await parameters(request, self.parts, _Pair)
        dictionary = _dictionary(glossary, *self._pair(asked.source_lang, asked.target_lang))
        if dictionary is None:
            raise StatusError(HTTPStatus.NOT_FOUND, "The glossary has no dictionary of these languages.")
        return dictionary

    # ------------------------------------------------------------ what they share

    async def _grant(self, request: Request) -> Grant:
        grant = await known(request, self.parts, action="glossary", schemes=SCHEMES)
        if not grant.any_meeting:
            with self.parts.audit.attempt("glossary", request, refusals_only=True) as attempt:
                attempt.grant = grant
                raise Forbidden("Glossaries are for whoever has an API key of the tenant.")
        return grant

    @contextmanager
    def _attempt(self, request: Request, grant: Grant, id: str) -> Iterator[None]:
        with self.parts.audit.attempt("glossary", request) as attempt:
            attempt.grant, attempt.detail = grant, id
            yield

    async def _find(self, grant: Grant, id: str) -> Glossary:
        glossary = await self.glossaries().find(grant.tenant, id)
        if glossary is None:
            raise StatusError(HTTPStatus.NOT_FOUND, f"There is no glossary {id[:64]!r}.")
        return glossary

    async def _create(self, request: Request, grant: Grant, name: str, given: Iterable[_Entries]) -> Glossary:
        dictionaries = tuple(self._dictionaries(given))
        glossary = Glossary(id=secrets.token_hex(16), name=name, created_s=time.time(), dictionaries=dictionaries)
        with self._attempt(request, grant, glossary.id):
            await self.glossaries().put(grant.tenant, glossary)
        return glossary

    async def _change(self, request: Request, grant: Grant, changed: Callable[[Glossary], Glossary]) -> Glossary:
        with self._attempt(request, grant, request.path_params["id"][:64]):
            for _ in range(_TRIES):
                before = await self._find(grant, request.path_params["id"])
                after = replace(changed(before), version=before.version + 1)
                for each in after.dictionaries:
                    checks.check_count(len(each.terms), MOST_ENTRIES, "entries", "entries")
                checks.check_count(len(after.dictionaries), _MOST_DICTIONARIES, "dictionaries", "dictionaries")
                if await self.glossaries().put(grant.tenant, after):
                    return after
            raise LogUnavailable("The glossary is being changed by others.", retry_after_ms=1_000)

    def _check_taken(self, field: str) -> None:
        profile = self.parts.translator.engine.profile()
        if "glossary" not in profile.options:
            raise InvalidValue(f"The model {profile.model} takes no glossaries ({field}).", field=field)

    def _dictionaries(self, given: Iterable[_Entries]) -> list[Dictionary]:
        """Raises `InvalidValue`, also where none could be used, `UnsupportedLanguage` or `LimitExceeded`."""
        self._check_taken("dictionaries")
        found: dict[tuple[str, str], Dictionary] = {}
        for each in given:
            pair = self._pair(each.source_lang, each.target_lang)
            if pair in found:
                raise InvalidValue(f"Two dictionaries are from {pair[0]} to {pair[1]}.", field="dictionaries")
            terms = read_entries(each.entries, each.entries_format, self.parts.translator.limits)
            found[pair] = Dictionary(*pair, terms)
        checks.check_count(len(found), _MOST_DICTIONARIES, "dictionaries", "dictionaries")
        return list(found.values())

    def _pair(self, source: str, target: str) -> tuple[str, str]:
        profile = self.parts.translator.engine.profile()
        pair = supported_code(source, profile, "source_lang"), supported_code(target, profile, "target_lang")
        checks.check_pair(*pair, profile, "target_lang")
        return pair


def supported_code(code: str, profile: EngineProfile, name: str) -> str:
    """The tag of DeepL's code. Raises `UnsupportedLanguage` in DeepL's words."""
    try:
        return checks.supported_language(code, profile.languages, name)
    except UnsupportedLanguage as error:
        raise UnsupportedLanguage(f"Value for '{name}' not supported. {error.message}", field=name) from None


def _occurring(terms: dict[str, str], texts: Collection[str]) -> dict[str, str]:
    """Those that occur in one of the texts: an engine reads all terms for each text."""
    text = "\n".join(texts).casefold()
    return {source: target for source, target in terms.items() if source.casefold() in text}


def _nested(given: dict[str, Any]) -> dict[str, Any]:
    """A form's dictionaries as JSON has them."""
    nested: dict[int, dict[str, Any]] = {}
    for name, value in given.items():
        if (match := _NESTED.fullmatch(name)) is not None:
            nested.setdefault(int(match[1]), {})[match[2]] = value
    return given | {"dictionaries": list(nested.values())} if nested else given


def _dictionary(glossary: Glossary, source: str, target: str) -> Dictionary | None:
    return next((each for each in glossary.dictionaries if (each.source, each.target) == (source, target)), None)


def _others(glossary: Glossary, but: Dictionary) -> Iterable[Dictionary]:
    return (each for each in glossary.dictionaries if (each.source, each.target) != (but.source, but.target))


def _with(glossary: Glossary, new: Dictionary) -> Glossary:
    return replace(glossary, dictionaries=(*_others(glossary, new), new))


def _info(dictionary: Dictionary) -> dict[str, Any]:
    return {
        "source_lang": dictionary.source,
        "target_lang": dictionary.target,
        "entry_count": len(dictionary.terms),
    }


def _single(glossary: Glossary) -> dict[str, Any]:
    (dictionary,) = glossary.dictionaries
    return _head(glossary) | {"ready": True} | _info(dictionary)


def _several(glossary: Glossary) -> dict[str, Any]:
    return _head(glossary) | {"dictionaries": list(map(_info, glossary.dictionaries))}


def _head(glossary: Glossary) -> dict[str, Any]:
    created = datetime.fromtimestamp(glossary.created_s, UTC).isoformat(timespec="microseconds")
    return {"glossary_id": glossary.id, "name": glossary.name, "creation_time": created.replace("+00:00", "Z")}


# ---------------------------------------------------------------- entries, as lines with tabs or as CSV


def read_entries(text: str, format: Format, limits: Limits) -> dict[str, str]:
    """Source term → target term. Raises `InvalidValue` or `LimitExceeded`."""
    terms: dict[str, str] = {}
    for number, (source, target) in enumerate(_pairs(text, format), start=1):
        if source in terms:
            raise InvalidValue(f"Entry {number}: {source[:40]!r} is there twice.", field="entries")
        if not (source + target).isprintable():
            raise InvalidValue(f"Entry {number} has a character that cannot be printed.", field="entries")
        terms[source] = target
        checks.check_count(len(terms), MOST_ENTRIES, "entries", "entries")
    if not terms:
        raise InvalidValue("A dictionary needs an entry.", field="entries")
    checks.check_terms(terms, limits, "entries")
    return terms


def tab_separated(terms: dict[str, str]) -> str:
    """As `read_entries` reads them."""
    return "\n".join(f"{source}\t{target}" for source, target in terms.items())


def _pairs(text: str, format: Format) -> Iterable[tuple[str, str]]:
    try:
        rows = csv.reader(io.StringIO(text, newline="")) if format == "csv" else _tabs(text)
        for number, row in enumerate(rows, start=1):
            if not any(map(str.strip, row)):
                continue
            # In CSV, the languages of each entry may follow.
            if len(row) not in ((2, 4) if format == "csv" else (2,)):
                raise InvalidValue(f"Line {number} of the entries has not two terms.", field="entries")
            yield row[0].strip(), row[1].strip()
    except csv.Error as error:
        raise InvalidValue(f"The entries are not CSV: {error}.", field="entries") from None


def _tabs(text: str) -> Iterable[list[str]]:
    return (line.split("\t") for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
