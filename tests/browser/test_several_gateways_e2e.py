"""The JavaScript client with two gateways on one store, behind a proxy that knows nothing of sessions."""

from __future__ import annotations

import secrets
from urllib.parse import urlsplit

import pytest

from tests.browser.conftest import StartGateway
from tests.browser.test_client import RELAYED, StartClient, client_of, of
from tests.redis_server import shared_server
from tests.round_robin import round_robin

__all__ = ["client_of"]

pytestmark = pytest.mark.browser


async def test_a_meeting_goes_on_whichever_gateway_each_connection_reaches(
    start_gateway: StartGateway, client_of: StartClient
) -> None:
    store = f'\n[store]\nurl = "{shared_server().url}"\nprefix = "{secrets.token_hex(4)}:"\n'
    one, another = (start_gateway(RELAYED + store).ready() for _ in range(2))
    ports = [urlsplit(gateway.url).port or 0 for gateway in (one, another)]
    async with (
        round_robin(*ports) as proxy,
        client_of(one, proxy.url, meeting="standup", name="Ana", speaks="en") as ana,
        client_of(one, proxy.url, meeting="standup", name="Bo", reads=["fr", "en"]) as bo,
    ):
        for client in (ana, bo):
            client.allow("ERR_")
            client.allow("WebSocket")
            await client.open()
        await ana.until("client.participants.size === 1")
        participants = [await client.do("client.participant") for client in (ana, bo)]
        for number in range(1, 5):
            await ana.do("(text) => client.partial({ text, lang: 'en' })", f"Number {number}")
            await bo.until(f"{of('caption', f'event.text === `Number {number}`')}.length === 1")
            if number % 2:
                proxy.cut()
            await ana.do("(text) => client.final({ text, lang: 'en' })", f"Number {number}.")
            await bo.until(f"{of('translation.final')}.length === {number}")
        finals = [final["text"] for final in await bo.heard("translation.final")]
        assert finals == [f"[fr] Number {number}." for number in range(1, 5)]
        captions = [each["text"] for each in await bo.heard("caption") if each["final"]]
        assert captions == [f"Number {number}." for number in range(1, 5)]
        assert [await client.do("client.participant") for client in (ana, bo)] == participants
        assert await bo.heard("participant.left") == []
