"""What the APIs of other services share: bodies as forms or JSON, and texts that are all translated or none.

Knows: how their clients send parameters, which errors there are. Must not know: their fields, how errors look.
"""

from __future__ import annotations

from collections.abc import Collection
from http import HTTPStatus
from typing import Any, ClassVar, TypeVar
from urllib.parse import parse_qs

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gateway import metrics
from gateway.domain.audit import Action
from gateway.domain.errors import GatewayError, InvalidMessage
from gateway.domain.grants import Grant
from gateway.protocol.codec import where_and_why
from gateway.server.guard.accounts import client_account
from gateway.server.guard.audit import Audit
from gateway.server.guard.identity import Identity, bearer
from gateway.server.guard.origins import Origins
from gateway.server.http.bodies import status_code
from gateway.server.http.request_bodies import media_type, read_body
from gateway.server.http.responses import Resource, StatusError, json_response, retry_after
from gateway.server.translate.call import Translated, Translator
from gateway.server.translate.plan import AUTO, Asked, Job

__all__ = ["CompatResource", "Parts", "known", "parameters", "translated"]

# Of a form; each text is one.
_MOST_FIELDS = 1_000

_Fields = TypeVar("_Fields", bound=Struct)


class Parts(Struct, frozen=True):
    """What an API is served with."""

    translator: Translator
    identity: Identity
    audit: Audit
    origins: Origins


class CompatResource(Resource):
    """An address whose errors have the form of another service."""

    NOT_FOUND: ClassVar[str]
    """What is said where this gateway has nothing of the service's API."""

    def refusal(self, error: GatewayError | StatusError) -> Response:
        if isinstance(error, StatusError):
            metrics.ERRORS.labels(status_code(error.status)).inc()
            is_missing = error.status is HTTPStatus.NOT_FOUND
            message = self.NOT_FOUND if is_missing else error.detail
            status, headers = int(error.status), error.headers or {}
        else:
            metrics.ERRORS.labels(error.code).inc()
            message, status, headers = error.message, self.status(error), retry_after(error)
        response = json_response(self.body(message), status)
        response.headers.update(headers)
        return response

    def body(self, message: str) -> dict[str, str]:
        """The error as the service has it."""
        raise NotImplementedError

    def status(self, error: GatewayError) -> int:
        """The status with which the service would answer."""
        raise NotImplementedError


async def parameters(
    request: Request, origins: Origins, fields: type[_Fields], lists: Collection[str] = ()
) -> _Fields:
    """The parameters of a request: of its address, and of its body, which is JSON or a form.

    lists: names of those that may come several times in a form. Unknown ones are ignored, as these services do.
    Raises `ForeignOrigin`, `InvalidMessage`, `MessageTooLarge`, `StatusError` or `ClientDisconnect`.
    """
    # Browsers send forms for any page without asking first.
    origins.check(request)
    data = await read_body(request)
    given: Any = _of_form(request.url.query, lists)
    given.pop("api_key", None)  # addresses are in logs
    try:
        if media_type(request) == "application/json":
            body = msgspec.json.decode(data)
            given = given | body if isinstance(body, dict) else body
        else:
            given |= _of_form(data.decode(), lists)
        # Forms have numbers and booleans as text.
        return msgspec.convert(given, fields, strict=False)
    except msgspec.ValidationError as error:
        field, sentence = where_and_why(error)
        raise InvalidMessage(f"{sentence}.", field=field) from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InvalidMessage(f"The body is neither JSON nor a form: {error}.") from None


def _of_form(text: str, lists: Collection[str]) -> dict[str, Any]:
    found = parse_qs(text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    return {name: values if name in lists else values[-1] for name, values in found.items()}


async def known(
    request: Request,
    parts: Parts,
    *,
    action: Action = "translate",
    key: str | None = None,
    schemes: Collection[str] = (),
) -> Grant:
    """What whoever asks may do. A refusal is in the audit log, as one of `action`.

    key: that came in the body; without, the Authorization header counts. schemes: of the header, besides Bearer.
    Raises `Unauthenticated`.
    """
    with parts.audit.attempt(action, request, refusals_only=True):
        # Where nobody needs a key, whatever comes as one is somebody else's business.
        presented = (key or bearer(request, *schemes)) if parts.identity.required else None
        return await parts.identity.grant(presented)


async def translated(request: Request, parts: Parts, grant: Grant, asked: Asked) -> list[tuple[Job, Translated]]:
    """Every text in every language, in order.

    These services have no answer for one text that cannot be translated. So it is an error for the whole call,
    before anything is admitted where that can be known. Raises `GatewayError` or `ClientDisconnect`.
    """
    with parts.audit.attempt("translate", request, refusals_only=True) as attempt:
        attempt.grant = grant
        if asked.source == AUTO:
            await parts.translator.detector.load()
        whole = replace(asked, all_or_none=True)
        with parts.translator.admit(whole, grant, client_account(request)) as call:
            return list(zip(call.jobs, await call.translate_whole(request.receive), strict=True))
