"""Parameters as the clients of other services send them. Whole calls: `test_deepl.py` and its neighbour."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qs

import pytest
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request

from gateway.domain.errors import ForeignOrigin, InvalidMessage
from gateway.server.compat.requests import Parts, parameters
from gateway.server.guard.fair_thread import FairThread
from gateway.server.guard.origins import Origins
from gateway.server.http.responses import StatusError

FORM = "application/x-www-form-urlencoded"


THREAD = FairThread("test")
PARTS = Parts(cast(Any, SimpleNamespace(thread=THREAD)), cast(Any, None), cast(Any, None), Origins())


class Fields(Struct):
    text: list[str] = []
    name: str = ""
    count: int = 0
    flag: bool = False


def request(body: bytes = b"", media_type: str = "", query: bytes = b"", encoding: str = "identity") -> Request:
    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    fields = {"content-type": media_type, "content-encoding": encoding}
    return Request(
        {
            "type": "http",
            "method": "POST",
            "scheme": "http",
            "path": "/",
            "query_string": query,
            "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
        },
        receive,
    )


@pytest.mark.parametrize(
    "sent",
    [
        request(b'{"text": ["a", "b&c"], "name": "n", "count": 3, "flag": true, "other": 1}', "application/json"),
        request(b"text=a&text=b%26c&name=m&name=n&count=3&flag=true&other=1", FORM),
        request(b"text=a&text=b%26c&count=3&flag=1", f"{FORM}; charset=utf-8", query=b"name=n"),
        # Without a type, as some send it with GET.
        request(b"text=a&text=b%26c&count=3&flag=1&name=n"),
        request(query=b"text=a&text=b%26c&count=3&flag=1&name=n"),
        request(b" ", "application/json", query=b"text=a&text=b%26c&count=3&flag=1&name=n"),
    ],
)
async def test_json_forms_and_addresses_say_the_same(sent: Request) -> None:
    assert await parameters(sent, PARTS, Fields, lists=("text",)) == Fields(["a", "b&c"], "n", 3, True)


async def test_long_forms_are_read_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []

    def watched(*args: Any, **options: Any) -> Any:
        threads.append(threading.current_thread().name)
        return parse_qs(*args, **options)

    monkeypatch.setattr("gateway.server.compat.requests.parse_qs", watched)
    escaped = b"name=" + b"%61" * 10_000
    for sent in (request(escaped, FORM), request(query=escaped)):
        assert (await parameters(sent, PARTS, Fields)).name == "a" * 10_000
    assert len(threads) == 4
    assert threading.main_thread().name not in threads


async def test_the_body_counts_more_than_the_address() -> None:
    sent = request(b'{"name": "b"}', "application/json", query=b"name=a&count=3")
    assert await parameters(sent, PARTS, Fields) == Fields(name="b", count=3)


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        (request(b"[1]", "application/json"), None),
        (request(b"[" * 100_000, "application/json"), None),
        (request(b'{"count": "x"}', "application/json"), "count"),
        (request(b"count=x", FORM), "count"),
        (request(b"name=%ff", FORM), None),
        (request(b"\xff", FORM), None),
        (request(b"x=1&" * 1_001, FORM), None),
        (request(query=b"name=%ff"), None),
        (request(query=b"name=\xff"), None),
        (request(query=b"x=1&" * 1_001), None),
    ],
)
async def test_what_cannot_be_read_is_named(sent: Request, field: str | None) -> None:
    with pytest.raises(InvalidMessage) as caught:
        await parameters(sent, PARTS, Fields, lists=("text",))
    assert caught.value.field == field


async def test_a_body_that_is_packed_is_refused() -> None:
    with pytest.raises(StatusError):
        await parameters(request(b"x", FORM, encoding="gzip"), PARTS, Fields)


async def test_foreign_page_is_refused() -> None:
    sent = request(b"name=n", FORM)
    sent.scope["headers"] += [(b"origin", b"https://evil.example"), (b"host", b"gateway.example")]
    with pytest.raises(ForeignOrigin):
        await parameters(sent, PARTS, Fields)
    assert await parameters(sent, replace(PARTS, origins=Origins(["https://evil.example"])), Fields) == Fields(
        name="n"
    )
