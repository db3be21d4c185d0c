"""Reads the body of a request: its media type, its size, its JSON.

Knows: headers of a body, and bounds. Must not know: what a body means (`translate_request`, `tokens`).
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TypeVar

import msgspec
from starlette.requests import Request

from gateway.domain.errors import InvalidMessage, MessageTooLarge
from gateway.protocol.codec import lacks_integer, where_and_why, whole_numbers
from gateway.server.http.responses import StatusError

BODY_BYTES = 1_048_576

_Body = TypeVar("_Body")


async def read_json(request: Request, most_bytes: int = BODY_BYTES) -> bytes:
    """A JSON body. Raises `StatusError` for another media type, `MessageTooLarge` or `ClientDisconnect`."""
    if (named := media_type(request)) != "application/json":
        raise _unsupported(f"Send the body as application/json, not as {named or 'nothing named'}.")
    return await read_body(request, most_bytes)


def media_type(request: Request) -> str:
    """The media type of the body, without parameters; empty if it has none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_body(request: Request, most_bytes: int = BODY_BYTES) -> bytes:
    """A body of any type. Raises `StatusError` if it is encoded, `MessageTooLarge` or `ClientDisconnect`."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise _unsupported(f"Send the body as it is, not encoded with {encoding[:20]}.")
    too_large = MessageTooLarge(f"The body has more than {most_bytes} bytes.")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most_bytes:
        raise too_large
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most_bytes:
            raise too_large
    return bytes(body)


def decoded(decoder: msgspec.json.Decoder[_Body], data: bytes) -> _Body:
    """The value in a body; whole floats are integers. Raises `InvalidMessage`, with `field` if one is wrong."""
    try:
        try:
            return decoder.decode(data)
        except msgspec.ValidationError as error:
            if not lacks_integer(error):
                raise
            return msgspec.convert(whole_numbers(msgspec.json.decode(data)), decoder.type)
    except msgspec.ValidationError as error:
        field, sentence = where_and_why(error)
        raise InvalidMessage(f"{sentence}.", field=field) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidMessage(f"The body is not valid JSON: {error}.") from None


def _unsupported(reason: str) -> StatusError:
    return StatusError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, reason)
