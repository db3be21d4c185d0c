"""The stores on which the contract of the event log is tested, each with two gateways.

The one in memory runs twice: as it is, and with suspensions around every call, because the core must not come to
depend on an adapter that happens never to suspend. Redis is a real one, and time passes there as it does here.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol, cast

from gateway.domain.log import Publication
from gateway.domain.ports import EventLog, Subscription
from gateway.stores.memory_log import MemoryEventLog, MemoryStore
from gateway.stores.redis.log import RedisEventLog
from gateway.stores.redis.store import RedisStore
from tests.redis_server import RedisServer, shared_server

__all__ = ["STORES", "OpenStore", "Store"]


class Store(Protocol):
    """A store that gateways share."""

    async def gateway(self) -> EventLog:
        """One more gateway; the store's end is its end."""

    async def pass_time(self, seconds: float) -> None:
        """So much time passes, and more. Every gateway is heard of meanwhile."""

    async def lose(self, gateway: EventLog) -> None:
        """This gateway is not heard of, until it counts as gone."""


class OpenStore(Protocol):
    """Opens an empty store with these bounds."""

    def __call__(
        self, *, max_publications: int = ..., keep_s: float = ...
    ) -> AbstractAsyncContextManager[Store]: ...


class _Memory:
    def __init__(self, **bounds: Any) -> None:
        self._now = 1_700_000_000.0
        self._store = MemoryStore(**bounds, wall_clock=lambda: self._now)
        self._gateways: list[EventLog] = []

    async def gateway(self) -> EventLog:
        self._gateways.append(MemoryEventLog(self._store))
        return self._gateways[-1]

    async def pass_time(self, seconds: float) -> None:
        self._now += seconds
        await asyncio.gather(*(gateway.sweep() for gateway in self._gateways))

    async def lose(self, gateway: EventLog) -> None:
        self._gateways.remove(gateway)
        for _ in range(10):
            await self.pass_time(1.0)


@asynccontextmanager
async def _memory(**bounds: Any) -> AsyncIterator[Store]:
    yield _Memory(**bounds)


class _Redis:
    def __init__(self, server: RedisServer, **bounds: Any) -> None:
        self._server = server
        self._bounds = bounds
        self._prefix = f"{secrets.token_hex(4)}:"
        self._heard_of: list[RedisEventLog] = []
        self._all: list[RedisEventLog] = []

    async def gateway(self) -> EventLog:
        store = RedisStore(self._server.url, prefix=self._prefix)
        await store.start()
        log = RedisEventLog(store, **self._bounds)
        await log.start()
        self._all.append(log)
        self._heard_of.append(log)
        return log

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds + 0.01)
        await self.sweep()

    async def lose(self, gateway: EventLog) -> None:
        assert isinstance(gateway, RedisEventLog)
        self._heard_of.remove(gateway)
        key = f"{self._prefix}gateway:{gateway.store.id}"
        assert self._server.ask(f"PEXPIRE {key} 1") == ":1\r\n"
        while self._server.ask(f"EXISTS {key}") == ":1\r\n":
            await asyncio.sleep(0.001)

    async def sweep(self) -> None:
        await asyncio.gather(*(log.sweep() for log in self._heard_of))

    async def keep_sweeping(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            await self.sweep()

    async def close(self) -> None:
        await asyncio.gather(*(log.close() for log in self._all))
        await asyncio.gather(*(log.store.close() for log in self._all))


@asynccontextmanager
async def _redis(**bounds: Any) -> AsyncIterator[Store]:
    store = _Redis(shared_server(), **bounds)
    sweeping = asyncio.create_task(store.keep_sweeping())
    try:
        yield store
    finally:
        sweeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sweeping
        await store.close()


class _Delayed:
    """A gateway with a suspension before and after everything that may suspend."""

    def __init__(self, log: Any) -> None:
        self.log = log

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self.log, name)

        async def delayed(*args: Any, **options: Any) -> Any:
            await asyncio.sleep(0)
            answer = await method(*args, **options)
            await asyncio.sleep(0)
            return answer

        return delayed

    @asynccontextmanager
    async def subscribe(
        self, meeting: str, deliver: Callable[[Publication], None], **options: Any
    ) -> AsyncIterator[Subscription]:
        await asyncio.sleep(0)
        async with self.log.subscribe(meeting, deliver, **options) as subscription:
            await asyncio.sleep(0)
            yield subscription
            await asyncio.sleep(0)


class _DelayedStore:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def gateway(self) -> EventLog:
        return cast(EventLog, _Delayed(await self._store.gateway()))

    async def pass_time(self, seconds: float) -> None:
        await self._store.pass_time(seconds)

    async def lose(self, gateway: EventLog) -> None:
        await self._store.lose(cast(Any, gateway).log)


def _delayed(open_store: OpenStore) -> OpenStore:
    @asynccontextmanager
    async def opened(**bounds: Any) -> AsyncIterator[Store]:
        async with open_store(**bounds) as store:
            yield _DelayedStore(store)

    return opened


# Name → how it is opened.
STORES: dict[str, OpenStore] = {"memory": _memory, "memory-delayed": _delayed(_memory), "redis": _redis}
