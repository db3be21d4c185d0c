"""A network between a gateway and its store that loses answers when a test says so."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path


class Proxy:
    """Between a Unix socket of its own and that of the store."""

    def __init__(self, store: Path, folder: Path) -> None:
        self._store = store
        self.socket = folder / "proxy.sock"
        self.url = f"unix://{self.socket}"
        # A command with these bytes reaches the store; its answer is lost with the connection.
        self._fatal: bytes | None = None
        # Whether answers, or pushes, are lost, and nobody is told.
        self.loses_answers = False
        self.loses_pushes = False
        # Connections that pushes came or should have come over.
        self.for_pushes = 0
        self._writers: set[asyncio.StreamWriter] = set()

    def lose_the_answer_to(self, words: bytes) -> None:
        """Once."""
        self._fatal = words

    @property
    def has_lost(self) -> bool:
        return self._fatal is None

    def cut(self) -> None:
        """Every connection ends."""
        for writer in self._writers:
            writer.close()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, to_store = await asyncio.open_unix_connection(str(self._store))
        except OSError:
            writer.close()
            return
        self._writers |= {writer, to_store}
        link = _Link()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._to_store(reader, to_store, link))
                tasks.create_task(self._from_store(there, writer, link))
        except* (OSError, _Lost):
            pass
        finally:
            for each in (writer, to_store):
                self._writers.discard(each)
                each.close()

    async def _to_store(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: _Link) -> None:
        while data := await reader.read(65_536):
            if b"SUBSCRIBE" in data and not link.has_pushes:
                link.has_pushes = True
                self.for_pushes += 1
            if self._fatal is not None and self._fatal in data:
                self._fatal, link.is_fatal = None, True
            writer.write(data)
        raise _Lost

    async def _from_store(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: _Link) -> None:
        while data := await reader.read(65_536):
            if link.is_fatal:
                break
            if not (self.loses_pushes if link.has_pushes else self.loses_answers):
                writer.write(data)
        raise _Lost


class _Link:
    is_fatal = False
    has_pushes = False


class _Lost(Exception):
    pass


@asynccontextmanager
async def proxy(store: Path, folder: Path) -> AsyncIterator[Proxy]:
    running = Proxy(store, folder)
    links: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(running.connected(reader, writer))
        links.add(task)
        task.add_done_callback(links.discard)

    server = await asyncio.start_unix_server(connected, str(running.socket))
    try:
        yield running
    finally:
        server.close()
        running.cut()
        for task in tuple(links):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
