"""LibreTranslate's API: `/translate`, `/languages`, `/detect`, `/health`, `/spec`, `/frontend/settings`.

The rest is refused as it does.

Knows: LibreTranslate's fields and errors (https://docs.libretranslate.com).
Must not know: how texts are translated, who has which key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from http import HTTPStatus
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from gateway import __version__
from gateway.domain.engine import EngineProfile, EngineState
from gateway.domain.errors import (
    EngineFailed,
    EngineUnavailable,
    Forbidden,
    ForeignOrigin,
    GatewayError,
    InvalidValue,
    LimitExceeded,
    Unauthenticated,
    UnsupportedLanguage,
)
from gateway.domain.grants import Grant
from gateway.domain.languages import AUTO, UNDETERMINED, language_name
from gateway.protocol import checks
from gateway.server.compat.markup import Rules
from gateway.server.compat.requests import CompatResource, Parts, known, may_translate, parameters, translated
from gateway.server.guard.identity import client_account
from gateway.server.http.responses import Endpoint, StatusError, json_response
from gateway.server.translate.plan import Asked

# Bodies of one address that are read at a time without a key in the header: the key may be in them.
_MOST_UNKNOWN = 16
# How long LibreTranslate's page waits for more typing before it translates; its default.
_FRONTEND_TIMEOUT_MS = 500


class _Keyed(Struct, frozen=True, kw_only=True):
    api_key: str | None = None


_Fields = TypeVar("_Fields", bound=_Keyed)
_Value = TypeVar("_Value")


class _Text(_Keyed, frozen=True, kw_only=True):
    """What `/translate` is given. What is missing is None, as LibreTranslate has its own words for it."""

    q: str | list[str] | None = None
    source: str | None = None
    target: str | None = None
    format: str | None = None
    alternatives: str | int | None = None


class _Unknown(_Keyed, frozen=True, kw_only=True):
    """What `/detect` is given."""

    q: str | None = None


def routes(parts: Parts) -> list[BaseRoute]:
    """Every address of LibreTranslate's that there is, and those that other clients of it may ask for."""
    api = _Api(parts)
    return [
        Route("/translate", _Resource(POST=api.translate)),
        Route("/languages", _Resource(GET=api.languages)),
        Route("/detect", _Resource(POST=api.detect)),
        Route("/health", _Resource(GET=api.health)),
        Route("/spec", _Resource(GET=api.spec)),
        Route("/translate_file", _Resource(POST=_disabled("Files translation are disabled on this server."))),
        Route("/suggest", _Resource(POST=_disabled("Suggestions are disabled on this server."))),
        Route("/frontend/settings", _Resource(GET=api.settings)),
    ]


class _Api:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        # Account → turns to have a body read before it is known whose it is.
        self._unknown: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def translate(self, request: Request) -> ASGIApp:
        grant, given = await self._asked(request, _Text, may_translate)
        q, target = _needed(given.q, "q"), _needed(given.target, "target")
        source, is_html = given.source or AUTO, _is_html(given.format)
        texts = [q] if isinstance(q, str) else q
        translator = self._parts.translator
        _check_size(len(texts), translator.batch_texts)
        if not is_html:
            for text in texts:
                _check_size(len(text), translator.limits.text_chars)
        _check_languages(source, target, translator.engine.profile())
        asked = Asked(texts=[("q", text) for text in texts], targets=[("target", target)], source=source)
        alternatives = _number(given.alternatives)
        done = await translated(request, self._parts, grant, asked, Rules("html") if is_html else None)
        answer: dict[str, object] = {"translatedText": [each.text for each in done]}
        if source == AUTO:
            answer["detectedLanguage"] = [self._detected(each.plain)[0] for each in done]
        if alternatives:
            # The engine has one translation of a text.
            answer["alternatives"] = [[] for _ in done]
        if isinstance(q, str):
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
        _, given = await self._asked(request, _Unknown, known)
        q = _needed(given.q, "q")
        await self._parts.translator.detector.load()
        return json_response(self._detected(q))

    async def health(self, _request: Request) -> ASGIApp:
        """LibreTranslate answers once its models are loaded."""
        health = self._parts.translator.engine.health()
        if health.state not in (EngineState.READY, EngineState.RESTARTING):
            raise EngineUnavailable(health.reason)
        return json_response({"status": "ok"})

    async def settings(self, _request: Request) -> ASGIApp:
        """What LibreTranslate's page, and programs that look like it, ask for first."""
        languages = [
            {"code": tag, "name": language_name(tag)} for tag in self._parts.translator.engine.profile().languages
        ]
        required = self._parts.identity.required
        return json_response(
            {
                "charLimit": self._parts.translator.limits.text_chars,
                "frontendTimeout": _FRONTEND_TIMEOUT_MS,
                "apiKeys": required,
                "keyRequired": required,
                "suggestions": False,
                "filesTranslation": False,
                "supportedFilesFormat": [],
                "language": {"source": {"code": AUTO, "name": "Auto Detect"}, "target": languages[0]},
            }
        )

    async def spec(self, _request: Request) -> ASGIApp:
        return json_response(
            {
                "swagger": "2.0",
                "info": {"title": "LibreTranslate", "version": __version__},
                "basePath": "/",
                "paths": {
                    "/translate": {"post": _operation("Translate Text", _Text, ("q", "target"))},
                    "/detect": {"post": _operation("Detect Language", _Unknown, ("q",))},
                    "/languages": {"get": _operation("Get Supported Languages")},
                    "/health": {"get": _operation("Health Check")},
                },
            }
        )

    def _detected(self, text: str) -> list[dict[str, object]]:
        """The likeliest first, with their confidence in percent."""
        translator = self._parts.translator
        ranked = translator.detector.rank(text, translator.engine.profile().languages)
        found = [{"language": tag, "confidence": round(100 * share, 1)} for tag, share in ranked if share >= 0.01]
        return found or [{"language": UNDETERMINED, "confidence": 0.0}]

    async def _asked(
        self, request: Request, fields: type[_Fields], grant_of: Callable[..., Awaitable[Grant]]
    ) -> tuple[Grant, _Fields]:
        """Who asks for what. A key in the header is checked before the body is read, one in the body cannot be.

        grant_of: `known` or `may_translate`.
        """
        if _has_bearer(request) or not self._parts.identity.required:
            grant = await grant_of(request, self._parts)
            return grant, await parameters(request, self._parts, fields)
        # Requests that wait keep the semaphore in the dictionary.
        turns = self._unknown.setdefault(client_account(request), asyncio.Semaphore(_MOST_UNKNOWN))
        async with turns:
            given = await parameters(request, self._parts, fields)
        return await grant_of(request, self._parts, key=given.api_key), given


class _Resource(CompatResource):
    """Errors as LibreTranslate has them."""

    NOT_FOUND = "This gateway has no such part of LibreTranslate's API: it has texts and languages."

    def message(self, error: GatewayError) -> str:
        match error:
            case Unauthenticated(why="missing"):
                return "Please contact the server operator to get an API key"
            case Unauthenticated():
                return "Invalid API key"
            case EngineFailed():
                return f"Cannot translate text: {error.message}"
            case _ if error.http_status == HTTPStatus.TOO_MANY_REQUESTS:
                return f"Slowdown: {error.message}"
            case _:
                return error.message

    def body(self, message: str) -> dict[str, str]:
        return {"error": message}

    def status(self, error: GatewayError) -> int:
        match error:
            case Unauthenticated(why="missing"):
                return 400
            case Unauthenticated() | Forbidden() | ForeignOrigin():
                return 403
            case _ if error.http_status == 422:
                return 400
            case _:
                return error.http_status


def _needed(value: _Value | None, name: str) -> _Value:
    if not value:
        raise InvalidValue(f"Invalid request: missing {name} parameter", field=name)
    return value


def _is_html(format: str | None) -> bool:
    if format not in (None, "", "text", "html"):
        raise InvalidValue(f"{format[:20]} format is not supported", field="format")
    return format == "html"


def _number(alternatives: str | int | None) -> int:
    try:
        return max(0, int(alternatives or 0))
    except ValueError:
        raise InvalidValue(
            "Invalid request: alternatives parameter is not a number", field="alternatives"
        ) from None


def _check_size(size: int, limit: int) -> None:
    """Raises `LimitExceeded`."""
    if size > limit:
        raise LimitExceeded(f"Invalid request: request ({size}) exceeds text limit ({limit})", field="q")


def _supported(tag: str, languages: Collection[str], name: str) -> str:
    """The tag, normalised. Raises `UnsupportedLanguage` in LibreTranslate's words."""
    try:
        return checks.supported_language(tag, languages, name)
    except UnsupportedLanguage:
        raise UnsupportedLanguage(f"{tag[:20]} is not supported", field=name) from None


def _check_languages(source: str, target: str, profile: EngineProfile) -> None:
    """Raises `UnsupportedLanguage`."""
    of = _supported(source, (AUTO, *profile.languages), "source")
    into = _supported(target, profile.languages, "target")
    if of not in (AUTO, into) and not profile.translates(of, into):
        raise UnsupportedLanguage(
            f"{language_name(into)} ({into}) is not available as a target language from "
            f"{language_name(of)} ({of})",
            field="target",
        )


def _disabled(sentence: str) -> Endpoint:
    async def refuse(_request: Request) -> ASGIApp:
        raise StatusError(HTTPStatus.FORBIDDEN, sentence)

    return refuse


def _operation(summary: str, fields: type[Struct] | None = None, required: Collection[str] = ()) -> dict[str, Any]:
    """An operation of the Swagger document, with the fields as parameters."""
    schemas = {} if fields is None else msgspec.json.schema(fields)["$defs"][fields.__name__]["properties"]
    return {
        "summary": summary,
        "parameters": [
            {"in": "formData", "name": name, "required": name in required, "schema": schema}
            for name, schema in schemas.items()
        ],
        "responses": {"200": {"description": "Success"}, "400": {"description": "Invalid request"}},
    }


def _has_bearer(request: Request) -> bool:
    return request.headers.get("authorization", "").lower().startswith("bearer ")
