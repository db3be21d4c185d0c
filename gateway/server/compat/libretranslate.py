"""LibreTranslate's API: `/translate`, `/languages`, `/detect`. What else it has is refused in its own form.

Knows: LibreTranslate's fields and errors (https://docs.libretranslate.com).
Must not know: how texts are translated, who has which key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Literal, TypeVar
from weakref import WeakValueDictionary

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from gateway.domain.errors import Forbidden, ForeignOrigin, GatewayError, Unauthenticated
from gateway.domain.grants import Grant
from gateway.domain.languages import AUTO, UNDETERMINED, language_name
from gateway.server.compat.markup import Rules
from gateway.server.compat.requests import CompatResource, Parts, check_unread, known, parameters, translated
from gateway.server.guard.identity import client_account
from gateway.server.http.responses import json_response
from gateway.server.translate.plan import Asked

# Bodies of one address that are read at a time without a key in the header: the key is in them.
_MOST_UNKNOWN = 16


class _Keyed(Struct, frozen=True, kw_only=True):
    api_key: str | None = None


_Fields = TypeVar("_Fields", bound=_Keyed)


class _Text(_Keyed, frozen=True, kw_only=True):
    """What `/translate` is given."""

    q: str | list[str]
    target: str
    source: str = AUTO
    format: Literal["text", "html"] = "text"
    alternatives: Annotated[int, Meta(ge=0)] | None = None


class _Unknown(_Keyed, frozen=True, kw_only=True):
    """What `/detect` is given."""

    q: str


def routes(parts: Parts) -> list[BaseRoute]:
    """Every address of LibreTranslate's that there is, and those that other clients of it may ask for."""
    api = _Api(parts)
    return [
        Route("/translate", _Resource(POST=api.translate)),
        Route("/languages", _Resource(GET=api.languages)),
        Route("/detect", _Resource(POST=api.detect)),
        Route("/translate_file", _Resource()),
        Route("/suggest", _Resource()),
        Route("/frontend/settings", _Resource()),
    ]


class _Api:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        # Account → turns to have a body read before it is known whose it is.
        self._unknown: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def translate(self, request: Request) -> ASGIApp:
        grant, given = await self._asked(request, _Text, check_unread)
        texts = [given.q] if isinstance(given.q, str) else given.q
        asked = Asked(
            texts=[("q", text) for text in texts], targets=[("target", given.target)], source=given.source
        )
        rules = Rules("html") if given.format == "html" else None
        done = await translated(request, self._parts, grant, asked, rules)
        answer: dict[str, object] = {"translatedText": [each.text for each in done]}
        if given.source == AUTO:
            answer["detectedLanguage"] = [self._detected(each.plain)[0] for each in done]
        if given.alternatives:
            # The engine has one translation of a text.
            answer["alternatives"] = [[] for _ in done]
        if isinstance(given.q, str):
            answer = {name: values[0] for name, values in answer.items() if isinstance(values, list)}
        return json_response(answer)

    async def languages(self, _request: Request) -> ASGIApp:
        profile = self._parts.translator.engine.profile()
        return json_response(
            [
                {"code": tag, "name": language_name(tag), "targets": [tag, *profile.targets(tag)]}
                for tag in profile.languages
            ]
        )

    async def detect(self, request: Request) -> ASGIApp:
        _, given = await self._asked(request, _Unknown, lambda *_: None)
        await self._parts.translator.detector.load()
        return json_response(self._detected(given.q))

    def _detected(self, text: str) -> list[dict[str, object]]:
        """The likeliest first, with their confidence in percent."""
        translator = self._parts.translator
        ranked = translator.detector.rank(text, translator.engine.profile().languages)
        found = [{"language": tag, "confidence": round(100 * share, 1)} for tag, share in ranked if share >= 0.01]
        return found or [{"language": UNDETERMINED, "confidence": 0.0}]

    async def _asked(
        self, request: Request, fields: type[_Fields], check: Callable[[Request, Parts, Grant], None]
    ) -> tuple[Grant, _Fields]:
        """Who asks for what. A key in the header is checked before the body is read, one in the body cannot be.

        check: as soon as it is known who asks.
        """
        if _has_bearer(request) or not self._parts.identity.required:
            grant = await known(request, self._parts)
            check(request, self._parts, grant)
            return grant, await parameters(request, self._parts, fields)
        # Requests that wait keep the semaphore in the dictionary.
        turns = self._unknown.setdefault(client_account(request), asyncio.Semaphore(_MOST_UNKNOWN))
        async with turns:
            given = await parameters(request, self._parts, fields)
        grant = await known(request, self._parts, key=given.api_key)
        check(request, self._parts, grant)
        return grant, given


class _Resource(CompatResource):
    """Errors as LibreTranslate has them."""

    NOT_FOUND = "This gateway has no such part of LibreTranslate's API: it has texts and languages."

    def body(self, message: str) -> dict[str, str]:
        return {"error": message}

    def status(self, error: GatewayError) -> int:
        match error:
            case Unauthenticated() | Forbidden() | ForeignOrigin():
                return 403
            case _ if error.http_status == 422:
                return 400
            case _:
                return error.http_status


def _has_bearer(request: Request) -> bool:
    return request.headers.get("authorization", "").lower().startswith("bearer ")
