"""The stores on which the contracts of log, session_store and the rest are tested, each with two gateways.

The one in memory runs twice: as it is, and with suspensions around every call, because the core must not come to
depend on an adapter that happens never to suspend. Redis is a real one, and time passes there as it does here.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol, cast
from unittest import mock

from gateway.domain.glossaries import Glossaries
from gateway.domain.log import Publication
from gateway.domain.ports import EventLog, Meter, SessionStore, Subscription
from gateway.domain.session_store import Hosted, Present
from gateway.domain.webhooks import WebhookOutbox
from gateway.stores.memory_glossaries import MemoryGlossaries
from gateway.stores.memory_log import MemoryEventLog, MemoryStore
from gateway.stores.memory_meter import MemoryMeter, MemoryMeterStore
from gateway.stores.memory_session_store import MemorySessions, MemorySessionStore
from gateway.stores.memory_webhooks import MemoryWebhookOutbox
from gateway.stores.redis import log as redis_log
from gateway.stores.redis import meter as redis_meter
from gateway.stores.redis import session_store as redis_session_store
from gateway.stores.redis import webhooks as redis_webhooks
from gateway.stores.redis.glossaries import RedisGlossaries
from gateway.stores.redis.log import RedisEventLog
from gateway.stores.redis.meter import RedisMeter
from gateway.stores.redis.session_store import RedisSessionStore
from gateway.stores.redis.store import RedisStore
from gateway.stores.redis.webhooks import RedisWebhookOutbox
from gateway.stores.sharded import Placement, ShardedEventLog, ShardedSessionStore, ShardedWebhookOutbox
from tests.redis_server import RedisServer, shared_server
from tests.usual import usual


class Store(Protocol):
    """A store that gateways share."""

    async def gateway(self) -> EventLog:
        """One more gateway; the store's end is its end."""

    async def session_store(self) -> SessionStore:
        """The session store of one more gateway, which is not open yet; the store's end is its end."""

    async def meter(self) -> Meter:
        """The meter of one more gateway."""

    async def glossaries(self) -> Glossaries:
        """The glossaries as one more gateway has them."""

    async def webhooks(self) -> WebhookOutbox:
        """The events that wait for webhooks, as one more gateway has them."""

    async def leave(self, session_store: SessionStore) -> None:
        """This gateway closes its session_store."""

    async def pass_time(self, seconds: float) -> None:
        """So much time passes, and more. Every gateway is heard of meanwhile."""

    async def lose(self, gateway: EventLog | SessionStore) -> None:
        """This gateway is not heard of, until it counts as gone."""

    async def holds(self, words: str) -> bool:
        """Whether these words are anywhere in what the store holds: in names and values, whatever they are for."""


class OpenStore(Protocol):
    """Opens an empty store with these bounds."""

    def __call__(
        self,
        *,
        max_publications: int = ...,
        keep_s: float = ...,
        unrecorded_s: float = ...,
        record: bool = ...,
        keep_sessions_s: float = ...,
        account_bytes: Callable[[str], int | None] = ...,
    ) -> AbstractAsyncContextManager[Store]: ...


class _Memory:
    def __init__(self, keep_sessions_s: float = 60.0, **bounds: Any) -> None:
        self._now = 1_700_000_000.0
        self._webhooks = MemoryWebhookOutbox(
            lambda meeting: self._store.is_unfinished(meeting), wall_clock=lambda: self._now
        )
        self._sessions = usual(
            MemorySessions,
            keep_s=keep_sessions_s,
            started=self._webhooks.meeting_started,
            ended=self._webhooks.meeting_ended,
            wall_clock=lambda: self._now,
        )
        self._glossaries = MemoryGlossaries()
        self._meters = MemoryMeterStore(wall_clock=lambda: self._now)
        self._store = usual(MemoryStore, **bounds, fence_of=self._sessions.fence_of, wall_clock=lambda: self._now)
        self._gateways: list[EventLog | SessionStore] = []

    async def gateway(self) -> EventLog:
        log = MemoryEventLog(self._store)
        self._gateways.append(log)
        return log

    async def session_store(self) -> SessionStore:
        session_store = MemorySessionStore(self._sessions)
        self._gateways.append(session_store)
        return session_store

    async def meter(self) -> Meter:
        return MemoryMeter(self._meters)

    async def glossaries(self) -> Glossaries:
        return self._glossaries

    async def webhooks(self) -> WebhookOutbox:
        return self._webhooks

    async def leave(self, session_store: SessionStore) -> None:
        self._gateways.remove(session_store)
        await session_store.close()

    async def pass_time(self, seconds: float) -> None:
        self._now += seconds
        await asyncio.gather(*(gateway.sweep() for gateway in self._gateways))

    async def lose(self, gateway: EventLog | SessionStore) -> None:
        self._gateways.remove(gateway)
        for _ in range(10):
            await self.pass_time(1.0)

    async def holds(self, words: str) -> bool:
        return words in repr((self._store.logs.dump(), self._store.meetings, self._sessions.sessions))


@asynccontextmanager
async def _memory(**bounds: Any) -> AsyncIterator[Store]:
    yield _Memory(**bounds)


# Type of a key → what reads all of it.
_READ = {
    "hash": "HGETALL key",
    "stream": "XRANGE key - +",
    "set": "SMEMBERS key",
    "string": "GET key",
    "zset": "ZRANGE key 0 -1",
}


_FOREVER_S = 86_400.0
_FOREVER_MS = 86_400_000


def _parts(answer: Any) -> Iterator[bytes]:
    if isinstance(answer, list):
        for part in answer:
            yield from _parts(part)
    elif isinstance(answer, bytes):
        yield answer


class _Redis:
    def __init__(self, server: RedisServer, keep_sessions_s: float = 60.0, **bounds: Any) -> None:
        self._server = server
        self._bounds = bounds
        self._keep_sessions_s = keep_sessions_s
        self._prefix = f"{secrets.token_hex(4)}:"
        self._heard_of: list[RedisEventLog | RedisSessionStore] = []
        self._all: list[RedisEventLog | RedisSessionStore] = []
        self._stores: list[RedisStore] = []
        # In ms, also of what is not recorded.
        self._keep_of: dict[RedisEventLog | RedisSessionStore, tuple[int, int]] = {}

    async def _another(self) -> RedisStore:
        store = usual(RedisStore, self._server.url, prefix=self._prefix, patience_s=_FOREVER_S)
        await store.start()
        self._stores.append(store)
        return store

    async def gateway(self) -> EventLog:
        log = usual(RedisEventLog, await self._another(), **self._bounds)
        self._keep_of[log] = log._bounds[0], log._unrecorded_ms
        self._keep(log, forever=True)
        await log.start()
        self._all.append(log)
        self._heard_of.append(log)
        return log

    async def session_store(self) -> SessionStore:
        session_store = usual(RedisSessionStore, await self._another(), keep_s=self._keep_sessions_s)
        self._keep_of[session_store] = session_store._keep_ms, 0
        self._keep(session_store, forever=True)
        self._all.append(session_store)
        self._heard_of.append(session_store)
        return session_store

    async def meter(self) -> Meter:
        return RedisMeter(await self._another())

    async def glossaries(self) -> Glossaries:
        return RedisGlossaries(await self._another())

    async def webhooks(self) -> WebhookOutbox:
        return RedisWebhookOutbox(await self._another())

    async def leave(self, session_store: SessionStore) -> None:
        assert isinstance(session_store, RedisSessionStore)
        self._heard_of.remove(session_store)
        await session_store.close()

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds + 0.01)
        # For how long something is kept counts here alone, or a busy machine would be too late for it elsewhere.
        for forever in (False, True):
            for each in self._heard_of:
                self._keep(each, forever=forever)
            due = self._server.ask(f"ZRANGE {self._prefix}due 0 -1").split()[2::2]
            if due:
                self._server.ask(f"ZADD {self._prefix}due {' '.join(f'0 {name}' for name in due)}")
            await self.sweep()

    def _keep(self, gateway: RedisEventLog | RedisSessionStore, *, forever: bool) -> None:
        kept_ms = (_FOREVER_MS, _FOREVER_MS) if forever else self._keep_of[gateway]
        if isinstance(gateway, RedisSessionStore):
            gateway._keep_ms = kept_ms[0]
        else:
            gateway._bounds = (kept_ms[0], *gateway._bounds[1:])
            gateway._unrecorded_ms = kept_ms[1]

    async def lose(self, gateway: EventLog | SessionStore) -> None:
        assert isinstance(gateway, RedisEventLog | RedisSessionStore)
        self._heard_of.remove(gateway)
        if isinstance(gateway, RedisSessionStore):
            self._server.ask(f"ZINCRBY {self._prefix}heard -10000 {gateway.store.id}")
            await self.sweep()
            return
        key = f"{self._prefix}gateway:{gateway.store.id}"
        assert self._server.ask(f"PEXPIRE {key} 1") == ":1\r\n"
        while self._server.ask(f"EXISTS {key}") == ":1\r\n":
            await asyncio.sleep(0.001)

    async def holds(self, words: str) -> bool:
        run = (await self._another()).commands.run
        found: list[Any] = []
        for key in await run("KEYS", f"{self._prefix}*"):
            if (kind := (await run("TYPE", key)).decode()) != "none":  # it has expired meanwhile
                found += [key, await run(*(key if part == "key" else part for part in _READ[kind].split()))]
        return words.encode() in b"".join(_parts(found))

    async def sweep(self) -> None:
        await asyncio.gather(*(log.sweep() for log in self._heard_of))

    async def keep_sweeping(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            await self.sweep()

    async def close(self) -> None:
        await asyncio.gather(*(log.close() for log in self._all))
        await asyncio.gather(*(store.close() for store in self._stores))


@asynccontextmanager
async def _redis(**bounds: Any) -> AsyncIterator[Store]:
    with contextlib.ExitStack() as patient:
        # A store that is slow is there.
        for module in (redis_log, redis_session_store, redis_webhooks, redis_meter):
            patient.enter_context(mock.patch.object(module, "_SHORT_PATIENCE_S", _FOREVER_S))
        store = _Redis(shared_server(), **bounds)
        sweeping = asyncio.create_task(store.keep_sweeping())
        try:
            yield store
        finally:
            sweeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sweeping
            await store.close()


class _OnTheSecond(Placement):
    """Whatever sessions and meetings a test has, they are on the second of two stores."""

    def store_of(self, key: str | bytes) -> int:
        return 1 if key else 0


class _Sharded:
    """Two stores; nothing but used tokens and revocations is on the first."""

    def __init__(self, first: _Redis, second: _Redis) -> None:
        self._both = (first, second)
        # A gateway's access to both → to each.
        self._parts: dict[EventLog | SessionStore, tuple[EventLog | SessionStore, ...]] = {}

    async def gateway(self) -> EventLog:
        parts = [await store.gateway() for store in self._both]
        log = ShardedEventLog(parts, _OnTheSecond())
        self._parts[log] = tuple(parts)
        return log

    async def session_store(self) -> SessionStore:
        parts = [await store.session_store() for store in self._both]
        session_store = ShardedSessionStore(parts, _OnTheSecond())
        self._parts[session_store] = tuple(parts)
        return session_store

    async def meter(self) -> Meter:
        return await self._both[0].meter()

    async def glossaries(self) -> Glossaries:
        return await self._both[0].glossaries()

    async def webhooks(self) -> WebhookOutbox:
        return ShardedWebhookOutbox([await store.webhooks() for store in self._both], _OnTheSecond())

    async def leave(self, session_store: SessionStore) -> None:
        for store, part in zip(self._both, self._parts[session_store], strict=True):
            await store.leave(cast(SessionStore, part))

    async def pass_time(self, seconds: float) -> None:
        await asyncio.gather(*(store.pass_time(seconds) for store in self._both))

    async def lose(self, gateway: EventLog | SessionStore) -> None:
        for store, part in zip(self._both, self._parts[gateway], strict=True):
            await store.lose(part)

    async def holds(self, words: str) -> bool:
        return any([await store.holds(words) for store in self._both])


@asynccontextmanager
async def _sharded(**bounds: Any) -> AsyncIterator[Store]:
    async with _redis(**bounds) as first, _redis(**bounds) as second:
        yield _Sharded(cast(_Redis, first), cast(_Redis, second))


class _Delayed:
    """A gateway with a suspension before and after everything that may suspend."""

    def __init__(self, adapter: Any) -> None:
        self.adapter = adapter

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self.adapter, name)

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
        async with self.adapter.subscribe(meeting, deliver, **options) as subscription:
            await asyncio.sleep(0)
            yield subscription
            await asyncio.sleep(0)


class _DelayedSessionStore(_Delayed):
    @asynccontextmanager
    async def subscribe(  # type: ignore[override]
        self,
        meeting: str,
        deliver: Callable[[str, Present | None], None],
        hosted: Callable[[Hosted], None] = lambda _: None,
    ) -> AsyncIterator[None]:
        await asyncio.sleep(0)
        async with self.adapter.subscribe(meeting, deliver, hosted):
            await asyncio.sleep(0)
            yield
            await asyncio.sleep(0)


class _DelayedStore:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def gateway(self) -> EventLog:
        return cast(EventLog, _Delayed(await self._store.gateway()))

    async def session_store(self) -> SessionStore:
        return cast(SessionStore, _DelayedSessionStore(await self._store.session_store()))

    async def meter(self) -> Meter:
        return cast(Meter, _Delayed(await self._store.meter()))

    async def glossaries(self) -> Glossaries:
        return cast(Glossaries, _Delayed(await self._store.glossaries()))

    async def webhooks(self) -> WebhookOutbox:
        return cast(WebhookOutbox, _Delayed(await self._store.webhooks()))

    async def leave(self, session_store: SessionStore) -> None:
        await self._store.leave(cast(Any, session_store).adapter)

    async def pass_time(self, seconds: float) -> None:
        await self._store.pass_time(seconds)

    async def lose(self, gateway: EventLog | SessionStore) -> None:
        await self._store.lose(cast(Any, gateway).adapter)

    async def holds(self, words: str) -> bool:
        return await self._store.holds(words)


def _delayed(open_store: OpenStore) -> OpenStore:
    @asynccontextmanager
    async def opened(**bounds: Any) -> AsyncIterator[Store]:
        async with open_store(**bounds) as store:
            yield _DelayedStore(store)

    return opened


# Name → how it is opened.
STORES: dict[str, OpenStore] = {
    "memory": _memory,
    "memory-delayed": _delayed(_memory),
    "redis": _redis,
    "two-redis": _sharded,
}
