"""A call without HTTP: what is taken on, and that it is given back. On a socket: `server/http/test_api.py`."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.requests import ClientDisconnect

from gateway.domain.errors import EngineFailed, Forbidden
from gateway.domain.grants import OPEN, Grant
from gateway.protocol.limits import Limits
from gateway.server.translate.call import Translated, Translator, while_connected
from gateway.server.translate.plan import Asked
from tests.gateways import Running, running
from tests.usual import usual


@pytest.fixture
async def gateway() -> AsyncIterator[Running]:
    async with running() as gateway:
        yield gateway


def translator(gateway: Running) -> Translator:
    return usual(Translator, gateway.gateway.scheduler, gateway.gateway.engine, Limits())


def asking(*texts: str, source: str = "en", target: str = "ja") -> Asked:
    return Asked(texts=[("text", text) for text in texts], targets=[("target_lang", target)], source=source)


async def never() -> Any:
    await asyncio.Event().wait()


async def gone() -> Any:
    return {"type": "http.disconnect"}


async def test_first_failure_stops_an_all_or_none_call(gateway: Running) -> None:
    scheduler = gateway.gateway.scheduler
    with await translator(gateway).admit(asking("a", "b"), OPEN, "1.1.1.1") as call:
        assert [each.text for each in await call.translate_whole(never)] == ["[ja] a", "[ja] b"]
    with (
        pytest.raises(EngineFailed),
        await translator(gateway).admit(asking("STALL", "FAIL"), OPEN, "1.1.1.1") as call,
    ):
        await call.translate_whole(never)
    assert (scheduler.running, scheduler.waiting) == (0, 0)


async def test_a_text_grows_in_the_order_of_its_sentences(gateway: Running) -> None:
    shown: list[str] = []
    with await translator(gateway).admit(asking("One two. STALL\nThree."), OPEN, "1.1.1.1") as call:
        stalled = asyncio.create_task(call.translate(0, shown.append))
        while shown[-1:] != ["[ja] One two."]:
            await asyncio.sleep(0.01)
        stalled.cancel()
    shown.clear()
    with await translator(gateway).admit(asking(" One two. Yes.\n\nThree. "), OPEN, "1.1.1.1") as call:
        done = await call.translate(0, shown.append)
    assert done.text == " [ja] One two.[ja] Yes.\n\n[ja] Three. "
    assert shown[-1] == done.text
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(shown))
    assert done.tokens == 7


async def test_long_text_waits_as_one(gateway: Running) -> None:
    scheduler, calls = gateway.gateway.scheduler, translator(gateway)
    with await calls.admit(asking("STALL now. STALL then.\nFAIL here.", "Yes."), OPEN, "1.1.1.1") as call:
        with pytest.raises(EngineFailed) as caught:
            await call.translate(0)
        assert caught.value.field == "text"
        assert (await call.translate(1)).text == "[ja] Yes."
    assert (scheduler.running, scheduler.waiting) == (0, 0)


async def test_gone_client_outweighs_an_error() -> None:
    async def both() -> None:
        async with while_connected(gone), asyncio.TaskGroup() as tasks:
            tasks.create_task(never())

    with pytest.raises(ClientDisconnect):
        await both()


@pytest.mark.parametrize(
    ("grant", "asked"),
    [
        (Grant(roles=frozenset({"read"})), asking("a")),
        (Grant(roles=frozenset({"read"})), asking("42", source="auto")),
        (Grant(roles=frozenset({"speak"})), asking("a")),
        (Grant(roles=frozenset({"speak", "read"}), speaks=frozenset({"de"})), asking("a")),
        (Grant(roles=frozenset({"speak", "read"}), langs=frozenset({"de"})), asking("a")),
        (
            Grant(roles=frozenset({"speak", "read"}), speaks=frozenset({"ja"})),
            asking("Good morning", source="auto"),
        ),
    ],
)
async def test_what_a_token_does_not_allow_is_refused(gateway: Running, grant: Grant, asked: Asked) -> None:
    calls = translator(gateway)
    await calls.detector.load()
    with pytest.raises(Forbidden):
        await calls.admit(asked, grant, "1.1.1.1")
    assert gateway.gateway.scheduler.waiting == 0


async def test_wordless_text_needs_no_language_of_the_token(gateway: Running) -> None:
    calls = translator(gateway)
    await calls.detector.load()
    grant = Grant(roles=frozenset({"speak", "read"}), speaks=frozenset({"en"}))
    with await calls.admit(asking("42", source="auto"), grant, "1.1.1.1") as call:
        (outcome,) = await call.translate_all(never)
    assert isinstance(outcome, Translated)
    assert outcome.text == "42"
