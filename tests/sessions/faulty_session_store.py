"""A session store in memory that does not answer when a test says so."""

from __future__ import annotations

import asyncio
from typing import Any

from gateway.domain.errors import LogUnavailable
from gateway.stores.memory_session_store import MemorySessions, MemorySessionStore
from tests.usual import usual


class FaultySessionStore(MemorySessionStore):
    """Operations in `down` are not done; of those in `silent` the answers are lost."""

    def __init__(self, store: MemorySessions | None = None) -> None:
        self.store = store or usual(MemorySessions, keep_s=60.0)
        super().__init__(self.store)
        self.down: set[str] = set()
        self.silent: set[str] = set()
        # Operations that are about to be done wait for this one.
        self.go_on = asyncio.Event()
        self.go_on.set()
        # Those that were asked for.
        self.asked: list[str] = []

    async def begin(self, *arguments: Any) -> int:
        return await self._do("begin", super().begin(*arguments))  # type: ignore[no-any-return]

    async def take(self, *arguments: Any) -> int | None:
        return await self._do("take", super().take(*arguments))  # type: ignore[no-any-return]

    async def find(self, *arguments: Any) -> Any:
        return await self._do("find", super().find(*arguments))

    async def save(self, *arguments: Any, **options: Any) -> bool:
        return await self._do("save", super().save(*arguments, **options))  # type: ignore[no-any-return]

    async def end(self, *arguments: Any) -> None:
        await self._do("end", super().end(*arguments))

    async def release(self, *arguments: Any) -> None:
        await self._do("release", super().release(*arguments))

    async def revoke(self, *arguments: Any) -> None:
        await self._do("revoke", super().revoke(*arguments))

    async def _do(self, what: str, operation: Any) -> Any:
        self.asked.append(what)
        try:
            await self.go_on.wait()
            if what in self.down:
                raise LogUnavailable("The test says so.", retry_after_ms=1_000)
        except BaseException:
            operation.close()
            raise
        answer = await operation
        if what in self.silent:
            raise LogUnavailable("The test says so.", retry_after_ms=1_000)
        return answer
