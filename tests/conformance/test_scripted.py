"""The scripted gateway: what its clients are told, and what becomes of a script that fails."""

from __future__ import annotations

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from gateway.conformance.scripted import Visitor, scripted_gateway
from gateway.protocol.codec import MSGPACK
from gateway.protocol.messages import Pong


async def test_scripted_gateway_negotiates_and_counts() -> None:
    async def script(visitor: Visitor) -> None:
        await visitor.say(Pong(str(visitor.visit)))

    async with scripted_gateway(script) as address:
        url = address.replace("http", "ws")
        async with connect(url, subprotocols=[Subprotocol(MSGPACK.subprotocol)]) as connection:
            assert MSGPACK.decode_server(await connection.recv()) == Pong("1")
        async with connect(url) as connection:
            assert await connection.recv() == '{"type":"pong","nonce":"2"}'


async def test_later_visitors_may_be_refused() -> None:
    async def script(visitor: Visitor) -> None:
        await visitor.say(Pong())

    async with scripted_gateway(script, statuses=(503,)) as address:
        url = address.replace("http", "ws")
        async with connect(url) as connection:
            await connection.recv()
        with pytest.raises(InvalidStatus):
            await connect(url)


async def test_failed_script_is_raised() -> None:
    async def script(visitor: Visitor) -> None:
        raise RuntimeError("not in the script")

    with pytest.raises(RuntimeError, match="not in the script"):  # noqa: PT012 -- it is raised on leaving
        async with scripted_gateway(script) as address, connect(address.replace("http", "ws")) as connection:
            with pytest.raises(ConnectionClosed) as closed:
                await connection.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 4999
