"""What the APIs of other services share: bodies as forms or JSON, texts with tags, all translated or none.

Knows: how their clients send parameters, which errors there are. Must not know: their fields, how errors look.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar
from urllib.parse import parse_qs

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gateway import metrics
from gateway.domain.audit import Action
from gateway.domain.errors import GatewayError, InvalidMessage, InvalidValue
from gateway.domain.grants import Grant, account_of_tenant
from gateway.domain.languages import AUTO, UNDETERMINED
from gateway.protocol import checks
from gateway.protocol.codec import where_and_why
from gateway.server.compat.markup import Rules
from gateway.server.compat.tagged import Tagged
from gateway.server.guard.audit import Audit
from gateway.server.guard.identity import Identity, bearer, client_account
from gateway.server.guard.origins import Origins
from gateway.server.http.bodies import status_code
from gateway.server.http.request_bodies import media_type, read_body
from gateway.server.http.responses import Resource, StatusError, json_response, retry_after
from gateway.server.translate.call import Translated, Translator
from gateway.server.translate.plan import Asked, Job

# Most fields of a form; each text is one.
_MOST_FIELDS = 1_000
# Bytes of an address and of a form that are read at once, without a thread.
_AT_ONCE_BYTES = 8_192

# Most characters of all texts of a call with tags, and most parts between tags that the engine gets of them.
_MOST_TAGGED_CHARS = 65_536
_MOST_TAGGED_PARTS = 256

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
            message = error.detail if self._endpoints else self.NOT_FOUND
            status, headers = int(error.status), error.headers or {}
        else:
            metrics.ERRORS.labels(error.code).inc()
            message, status, headers = self.message(error), self.status(error), retry_after(error)
        response = json_response(self.body(message), status)
        response.headers.update(headers)
        return response

    def message(self, error: GatewayError) -> str:
        """The sentence with which the service would answer."""
        return error.message

    def body(self, message: str) -> dict[str, str]:
        """The error as the service has it."""
        raise NotImplementedError

    def status(self, error: GatewayError) -> int:
        """The status with which the service would answer."""
        raise NotImplementedError


async def parameters(
    request: Request,
    parts: Parts,
    fields: type[_Fields],
    lists: Collection[str] = (),
    shape: Callable[[dict[str, Any]], dict[str, Any]] = lambda form: form,
) -> _Fields:
    """The parameters of a request: of its address, and of its body, which is JSON or a form.

    lists: names of those that may come several times in a form. shape: makes of a form what JSON has.
    Unknown ones are ignored, as these services do.
    Raises `ForeignOrigin`, `InvalidMessage`, `MessageTooLarge`, `RateLimited`, `StatusError`, `ClientDisconnect`.
    """
    # Browsers send forms for any page without asking first.
    parts.origins.check(request)
    data, address = await read_body(request), request.scope["query_string"]
    is_json = media_type(request) == "application/json"
    reading = partial(_read, address, data, fields, lists, shape, is_json=is_json)
    # A form that is escaped throughout takes tenths of a second.
    if len(address) + (0 if is_json else len(data)) <= _AT_ONCE_BYTES:
        return reading()
    return await parts.translator.thread.run(client_account(request), reading)


def _read(
    address: bytes,
    data: bytes,
    fields: type[_Fields],
    lists: Collection[str],
    shape: Callable[[dict[str, Any]], dict[str, Any]],
    *,
    is_json: bool,
) -> _Fields:
    try:
        given: Any = _of_form(address.decode(), lists)
    except ValueError as error:
        raise InvalidMessage(f"The parameters in the address cannot be read: {error}.") from None
    try:
        if is_json:
            # Some clients say the type of a body that they do not send.
            body = msgspec.json.decode(data) if data.strip() else {}
            given = given | body if isinstance(body, dict) else body
        else:
            given = shape(given | _of_form(data.decode(), lists))
        # Forms have numbers and booleans as text.
        return msgspec.convert(given, fields, strict=False)
    except msgspec.ValidationError as error:
        field, sentence = where_and_why(error)
        # These services have no other place for the field. The words are DeepL's.
        if field and sentence.startswith("Object missing"):
            raise InvalidMessage(f"Parameter '{field}' not specified.", field=field) from None
        value = f"Value for '{field}' not supported: " if field else ""
        raise InvalidMessage(f"{value}{sentence}.", field=field) from None
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
    """The grant of the client. A refusal is in the audit log, as one of `action`.

    key: that came in the body; without, the Authorization header counts. schemes: of the header, besides Bearer.
    Raises `Unauthenticated`.
    """
    with parts.audit.attempt(action, request, refusals_only=True):
        # Without keys here, what comes as a key is meant for another server.
        presented = (key or bearer(request, *schemes)) if parts.identity.required else None
        return await parts.identity.grant(presented)


async def may_translate(
    request: Request, parts: Parts, *, key: str | None = None, schemes: Collection[str] = ()
) -> Grant:
    """The grant of a client whose translation is not refused before anything of it is looked into.

    As `known`; also raises what `Translator.check_unread` does.
    """
    grant = await known(request, parts, key=key, schemes=schemes)
    with parts.audit.attempt("translate", request, refusals_only=True) as attempt:
        attempt.grant = grant
        parts.translator.check_unread(grant, client_account(request))
    return grant


class Done(Struct, frozen=True):
    # Normalised tag, also where it was detected.
    source: str
    text: str
    # The text that was given, without tags.
    plain: str


async def translated(
    request: Request, parts: Parts, grant: Grant, asked: Asked, rules: Rules | None = None
) -> list[Done]:
    """Every text in the one language that is asked for, in order. rules: of their tags; None: they have none.

    These services have no answer for one text that cannot be translated. So it is an error for the whole call,
    before anything is admitted where that can be known. Raises `GatewayError` or `ClientDisconnect`.
    """
    with parts.audit.attempt("translate", request, refusals_only=True) as attempt:
        attempt.grant = grant
        if rules is not None:
            return await _with_tags(request, parts, grant, asked, rules)
        done = await _plain(request, parts, grant, asked)
    return [Done(job.source, outcome.text, job.text) for job, outcome in done]


def check_texts(texts: Sequence[tuple[str, str]], translator: Translator, rules: Rules | None) -> None:
    """Whether they are few and short enough to look into them. texts: (field, value) each; rules: of their tags.

    Raises `InvalidValue` or `LimitExceeded`.
    """
    if not texts:
        raise InvalidValue("There is nothing to translate.", field="text")
    field = texts[0][0]
    checks.check_count(len(texts), translator.batch_texts, "texts", field)
    if rules is None:
        for name, text in texts:
            checks.check_text(text, translator.limits, name)
    else:
        checks.check_count(sum(len(text) for _, text in texts), _MOST_TAGGED_CHARS, "characters with tags", field)


async def _with_tags(request: Request, parts: Parts, grant: Grant, asked: Asked, rules: Rules) -> list[Done]:
    check_texts(asked.texts, parts.translator, rules)
    thread, account = parts.translator.thread, account_of_tenant(grant, client_account(request))
    # Tags of a long text take tenths of a second, to find them and to find their places again.
    tagged = await thread.run(account, lambda: [Tagged(text, rules) for _, text in asked.texts])
    wanted = [(n, text) for n, each in enumerate(tagged) for text in each.texts]
    said: list[dict[str, str]] = [{} for _ in tagged]
    sources = ["" if asked.source == AUTO else asked.source] * len(tagged)
    while True:
        if wanted:
            count = sum(map(len, said)) + len(wanted)
            checks.check_count(count, _MOST_TAGGED_PARTS, "parts between tags", asked.texts[0][0])
            of_parts = replace(
                asked,
                texts=[(asked.texts[n][0], text) for n, text in wanted],
                samples=[tagged[n].plain for n, _ in wanted],
            )
            done = await _plain(request, parts, grant, of_parts)
            for (n, text), (job, outcome) in zip(wanted, done, strict=True):
                said[n][text], sources[n] = outcome.text, job.source
        found = await thread.run(account, lambda: list(map(Tagged.translated, tagged, said)), goes_on=True)
        # Seldom: the parts of sentences in which tags have no place.
        wanted = [(n, text) for n, (_, missing) in enumerate(found) for text in missing]
        if not wanted:
            return [
                Done(source or UNDETERMINED, text, each.plain)
                for source, (text, _), each in zip(sources, found, tagged, strict=True)
            ]


async def _plain(request: Request, parts: Parts, grant: Grant, asked: Asked) -> list[tuple[Job, Translated]]:
    if asked.source == AUTO:
        await parts.translator.detector.load()
    whole = replace(asked, all_or_none=True)
    most = _MOST_TAGGED_PARTS if asked.samples else None
    with await parts.translator.admit(whole, grant, client_account(request), most=most) as call:
        return list(zip(call.jobs, await call.translate_whole(request.receive), strict=True))
