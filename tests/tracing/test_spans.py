"""What is passed on of a trace, and what costs nothing while there are none."""

from __future__ import annotations

import asyncio

import pytest

from gateway.tracing import spans
from gateway.tracing.spans import NOT_TRACED

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    "traceparent",
    [f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-00", f"cc-{TRACE}-{SPAN}-01-what-comes-later"],
)
def test_ids_are_read_also_of_later_versions(traceparent: str) -> None:
    assert spans.ids(traceparent) == (TRACE, SPAN)


@pytest.mark.parametrize(
    "traceparent",
    [
        "",
        "nonsense",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\n",
    ],
)
def test_what_is_not_valid_is_not_passed_on(traceparent: str) -> None:
    assert spans.ids(traceparent) is None
    assert spans.remote(traceparent) is NOT_TRACED


def test_while_nobody_records_there_is_nothing() -> None:
    assert not spans.is_on()
    span = spans.begin("utterance", {"lang": "en"}, parent=f"00-{TRACE}-{SPAN}-01")
    assert span is NOT_TRACED
    assert spans.exemplar(span) is None


async def test_tasks_inherit_their_span() -> None:
    async def current() -> str:
        return spans.current().traceparent

    theirs = spans.remote(f"00-{TRACE}-{SPAN}-01")
    with spans.within(theirs):
        begun = asyncio.create_task(current())
    assert await begun == theirs.traceparent
    assert spans.current() is NOT_TRACED
