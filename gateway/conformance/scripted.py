"""A gateway on a real socket that follows a script.

Knows: connections, subprotocols, messages one by one. Must not know: what a client should do.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, NegotiationError
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from gateway.domain.errors import InvalidMessage
from gateway.protocol.codec import CODECS, JSON, negotiate
from gateway.protocol.messages import ServerMessage


class Visitor:
    """The gateway's end of one connection; `visit` counts them from 1."""

    def __init__(self, connection: ServerConnection, visit: int = 1) -> None:
        self.connection = connection
        self.visit = visit
        self.codec = CODECS.get(connection.subprotocol or "", JSON)

    async def say(self, *messages: ServerMessage) -> None:
        for message in messages:
            await self.connection.send(self.codec.encode(message))

    def drop(self) -> None:
        """Break the connection without a goodbye; what was sent before may or may not arrive."""
        self.connection.transport.abort()


@asynccontextmanager
async def scripted_gateway(
    script: Callable[[Visitor], Awaitable[None]], *, statuses: tuple[int, ...] = ()
) -> AsyncGenerator[str, None]:
    """The address of a gateway that plays the script to every client. Raises what a script raised, at the end.

    statuses: HTTP statuses with which the connections after the first one are refused, one each.
    """
    failures: list[BaseException] = []
    visits = 0
    refusals = list(statuses)

    async def play(connection: ServerConnection) -> None:
        nonlocal visits
        visits += 1
        try:
            await script(Visitor(connection, visits))
        except ConnectionClosed:
            pass
        except BaseException as failure:
            failures.append(failure)
            # A client must not come back to a script that failed.
            await connection.close(4999)
            raise

    def refuse(connection: ServerConnection, _request: Request) -> Response | None:
        return connection.respond(refusals.pop(0), "") if visits and refusals else None

    def select(_connection: ServerConnection, offered: Sequence[Subprotocol]) -> Subprotocol | None:
        try:
            _, name = negotiate(offered)
        except InvalidMessage as error:
            raise NegotiationError(error.message) from None
        return None if name is None else Subprotocol(name)

    async with serve(
        play, "127.0.0.1", 0, select_subprotocol=select, close_timeout=1, process_request=refuse
    ) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    if failures:
        raise failures[0]
