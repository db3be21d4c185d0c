"""How long a refusal waits, of an address that is refused all the time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from gateway.server.guard import refusals
from gateway.server.guard.refusals import SlowRefusals
from tests.clocks import swiftly


async def answers(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("", 200 if scope["path"] == "/" else 403)(scope, receive, send)


class Client:
    def __init__(self) -> None:
        self.app = SlowRefusals(answers)

    async def ask(self, path: str = "/wrong", address: str = "10.0.0.1", kind: str = "http") -> float:
        """Seconds until the answer."""
        clock = asyncio.get_running_loop().time
        began_s = clock()

        async def send(message: Any) -> None: ...

        scope = {"type": kind, "path": path, "headers": [], "client": (address, 1), "extensions": {}}
        await self.app(scope, asyncio.Event().wait, send)  # type: ignore[arg-type]
        return clock() - began_s


@swiftly
async def test_occasional_refusals_are_answered_at_once() -> None:
    client = Client()
    assert max([await client.ask() for _ in range(100)]) < 0.01
    await asyncio.sleep(2)
    assert max([await client.ask() for _ in range(100)]) < 0.01


@swiftly
async def test_flood_of_refusals_waits_others_do_not() -> None:
    client = Client()
    waits_s = await asyncio.gather(*(client.ask() for _ in range(1_000)))
    assert waits_s == sorted(waits_s)
    assert waits_s[150] == pytest.approx(1.0, abs=0.1)
    assert max(waits_s) == pytest.approx(2.0, abs=0.01)
    flood = asyncio.gather(*(client.ask() for _ in range(100)))
    await asyncio.sleep(0)
    assert await client.ask(address="10.0.0.2") < 0.01
    assert await client.ask("/") < 0.01
    assert await client.ask("/readyz") < 0.01
    await flood


@swiftly
async def test_one_after_another_is_paced() -> None:
    client, clock = Client(), asyncio.get_running_loop().time
    began_s = clock()
    for _ in range(1_000):
        await client.ask()
    assert clock() - began_s == pytest.approx((1_000 - 100) / 50, rel=0.05)


@swiftly
async def test_refused_handshakes_count() -> None:
    client = Client()
    waits_s = await asyncio.gather(*(client.ask(kind="websocket") for _ in range(200)))
    assert max(waits_s) > 1


@swiftly
async def test_addresses_that_owe_nothing_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "_MOST_ACCOUNTS", 10)
    client = Client()
    for n in range(100):
        await client.ask(address=f"10.0.0.{n}")
    assert len(client.app._paid_s) <= 10
