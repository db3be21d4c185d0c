"""A plain TCP proxy in front of several gateways: each connection goes to the next one, whoever it comes from."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Sequence


class RoundRobin:
    def __init__(self, ports: Sequence[int]) -> None:
        self.port = 0
        # Where the next connections go.
        self.ports = list(ports)
        self._turn = itertools.count()
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/v1/stream"

    def cut(self) -> None:
        """Every connection is lost."""
        for writer in self._writers:
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = self.ports[next(self._turn) % len(self.ports)]
        try:
            there, to_gateway = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, to_gateway}
        self._writers |= both
        try:
            await asyncio.gather(_pump(reader, to_gateway), _pump(there, writer))
        except OSError:
            pass
        finally:
            self._writers -= both
            for each in both:
                each.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


@contextlib.asynccontextmanager
async def round_robin(*ports: int) -> AsyncIterator[RoundRobin]:
    proxy = RoundRobin(ports)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut()
        await server.wait_closed()
