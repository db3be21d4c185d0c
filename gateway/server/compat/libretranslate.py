"""LibreTranslate's API: `/translate`, `/languages`, `/detect`. What else it has is refused in its own form.

Knows: LibreTranslate's fields and errors (https://docs.libretranslate.com).
Must not know: how texts are translated, who has which key.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from gateway.domain.errors import Forbidden, ForeignOrigin, GatewayError, InvalidValue, Unauthenticated
from gateway.domain.languages import language_name
from gateway.server.compat.requests import CompatResource, Parts, parameters, translated
from gateway.server.guard.identity import bearer
from gateway.server.http.responses import json_response
from gateway.server.translate.plan import AUTO, UNDETERMINED, Asked

__all__ = ["routes"]


class _Text(Struct, frozen=True):
    """What `/translate` is given."""

    q: str | list[str]
    target: str
    source: str = AUTO
    format: Literal["text", "html"] = "text"
    alternatives: Annotated[int, Meta(ge=0)] | None = None
    api_key: str | None = None


class _Unknown(Struct, frozen=True):
    """What `/detect` is given."""

    q: str
    api_key: str | None = None


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

    async def translate(self, request: Request) -> ASGIApp:
        given = await parameters(request, self._parts.origins, _Text)
        if given.format == "html":
            raise InvalidValue("HTML is not handled here (format): send plain text.")
        texts = [given.q] if isinstance(given.q, str) else given.q
        asked = Asked(
            texts=[("q", text) for text in texts], targets=[("target", given.target)], source=given.source
        )
        done = await translated(request, self._parts, self._presented(request, given.api_key), asked)
        answer: dict[str, object] = {"translatedText": [outcome.text for _, outcome in done]}
        if given.source == AUTO:
            answer["detectedLanguage"] = [self._detected(job.text)[0] for job, _ in done]
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
        given = await parameters(request, self._parts.origins, _Unknown)
        await self._parts.identity.grant(self._presented(request, given.api_key))
        await self._parts.translator.detector.load()
        return json_response(self._detected(given.q))

    def _detected(self, text: str) -> list[dict[str, object]]:
        """The likeliest first, with their confidence in percent."""
        translator = self._parts.translator
        ranked = translator.detector.rank(text, translator.engine.profile().languages)
        found = [{"language": tag, "confidence": round(100 * share, 1)} for tag, share in ranked if share >= 0.01]
        return found or [{"language": UNDETERMINED, "confidence": 0.0}]

    def _presented(self, request: Request, api_key: str | None) -> str | None:
        if not self._parts.identity.required:
            return None
        return api_key or bearer(request)


class _Resource(CompatResource):
    """Errors as LibreTranslate has them."""

    NOT_FOUND = "This gateway has no such part of LibreTranslate's API: it has texts and languages."

    def body(self, message: str) -> dict[str, str]:
        return {"error": message}

    def status(self, error: GatewayError) -> int:
        return _status(error)


def _status(error: GatewayError) -> int:
    match error:
        case Unauthenticated() | Forbidden() | ForeignOrigin():
            return 403
        case _ if error.http_status == 422:
            return 400
        case _:
            return error.http_status
