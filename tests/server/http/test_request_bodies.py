"""A request's body: its media type, its bytes, its JSON."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest
from starlette.requests import Request

from gateway.domain.errors import InvalidMessage, MessageTooLarge
from gateway.server.http.request_bodies import decoded, read_json
from gateway.server.http.responses import StatusError


def request(
    *pieces: bytes, headers: Iterable[tuple[str, str]] = (("Content-Type", "application/json"),)
) -> Request:
    left = list(pieces)

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": left.pop(0) if left else b"", "more_body": bool(left)}

    head = [(name.lower().encode(), value.encode()) for name, value in headers]
    return Request({"type": "http", "method": "POST", "path": "/", "headers": head}, receive)


async def test_pieces_are_joined_up_to_the_bound() -> None:
    assert await read_json(request(b"{", b'"a": 1', b"}"), 8) == b'{"a": 1}'
    with pytest.raises(MessageTooLarge, match="more than 8 bytes"):
        await read_json(request(b"{", b'"a": 12', b"}"), 8)


async def test_declared_length_is_refused_before_reading() -> None:
    headers = [("Content-Type", "application/json"), ("Content-Length", "9")]
    with pytest.raises(MessageTooLarge):
        await read_json(request(headers=headers), 8)


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ([], "not as nothing named"),
        ([("Content-Type", "text/plain")], "not as text/plain"),
        ([("Content-Type", "application/json"), ("Content-Encoding", "gzip")], "not encoded with gzip"),
    ],
)
async def test_another_form_is_refused(headers: list[tuple[str, str]], why: str) -> None:
    with pytest.raises(StatusError, match=why) as refused:
        await read_json(request(b"{}", headers=headers))
    assert refused.value.status == 415


@pytest.mark.parametrize("value", ["application/json; charset=utf-8", "Application/JSON"])
async def test_parameters_and_case_do_not_matter(value: str) -> None:
    assert await read_json(request(b"{}", headers=[("Content-Type", value)])) == b"{}"


@pytest.mark.parametrize(
    ("data", "field"), [(b"", None), (b"{", None), (b"\xff", None), (b"[" * 100_000, None), (b'{"a": "b"}', "a")]
)
def test_what_cannot_be_read_names_its_field(data: bytes, field: str | None) -> None:
    with pytest.raises(InvalidMessage) as refused:
        decoded(_BODY, data)
    assert refused.value.field == field


class _Body(msgspec.Struct):
    a: int


_BODY = msgspec.json.Decoder(_Body)


def test_whole_numbers_may_be_floats() -> None:
    """JSON has one kind of number, and so have some languages."""

    class Asked(msgspec.Struct):
        for_s: int | None = None

    decoder = msgspec.json.Decoder(Asked)
    assert decoded(decoder, b'{"for_s": 600.0}') == Asked(600)
    assert decoded(decoder, b'{"for_s": 6e2}') == Asked(600)
    with pytest.raises(InvalidMessage) as refused:
        decoded(decoder, b'{"for_s": 1.5}')
    assert refused.value.field == "for_s"
