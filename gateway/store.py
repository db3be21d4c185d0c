"""Where meetings are kept, as the settings say: the one place that names the adapters of the store's ports.

Knows: which adapters there are. Must not know: what any of them does, who uses them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from gateway import config, metrics
from gateway.config import Settings
from gateway.domain.errors import LogUnavailable, StartupError
from gateway.domain.glossaries import Glossaries
from gateway.domain.grants import Revocation
from gateway.domain.log import LogBounds
from gateway.domain.ports import EventLog, LiveChannel, Meter, SessionStore
from gateway.domain.sessions import Handover, KeptSession
from gateway.domain.webhooks import WebhookOutbox
from gateway.stores.memory_glossaries import MemoryGlossaries
from gateway.stores.memory_log import MemoryEventLog, MemoryStore
from gateway.stores.memory_meter import MemoryMeter, MemoryMeterStore
from gateway.stores.memory_session_store import MemorySessions, MemorySessionStore
from gateway.stores.memory_webhooks import MemoryWebhookOutbox
from gateway.stores.redis.checks import ids_of, remember
from gateway.stores.redis.glossaries import RedisGlossaries
from gateway.stores.redis.live_channel import RedisLiveChannel
from gateway.stores.redis.log import RedisEventLog
from gateway.stores.redis.meter import RedisMeter
from gateway.stores.redis.session_store import RedisSessionStore
from gateway.stores.redis.store import RedisStore
from gateway.stores.redis.webhooks import RedisWebhookOutbox
from gateway.stores.sealing import Seal, read_keys
from gateway.stores.sharded import (
    Placement,
    ShardedEventLog,
    ShardedLiveChannel,
    ShardedSessionStore,
    ShardedWebhookOutbox,
)

# How long a sweep waits for a store.
_PATIENCE_S = 1.0


class Store:
    """What one gateway shares with others, or has for itself. Raises `StartupError` if its key cannot be read.

    account_bytes: what the logs of an account may hold; None: `event_log.max_bytes`. earlier: what another process
    kept, for a store in memory.
    """

    def __init__(
        self,
        settings: Settings,
        account_bytes: Callable[[str], int | None],
        earlier: Handover | None = None,
    ) -> None:
        bounds, keep_s = config.part(LogBounds, settings.event_log), settings.limits.keep_s
        self._redis: list[RedisStore] = []
        # To other gateways; None if there are none.
        self.channel: LiveChannel | None = None
        self._channels: list[RedisLiveChannel] = []
        self._ids: list[str] = []
        self._placement = Placement()
        self.log: EventLog
        self.session_store: SessionStore
        self.meter: Meter
        self.glossaries: Glossaries
        self.webhooks: WebhookOutbox
        # What would be lost with this process; None where the store outlives it.
        self._kept: Callable[[], Handover] | None = None
        if not settings.store.urls:
            earlier = earlier or Handover()
            webhooks = MemoryWebhookOutbox(lambda meeting: memory.is_unfinished(meeting), earlier.webhooks)
            sessions = MemorySessions(
                keep_s=keep_s, started=webhooks.meeting_started, ended=webhooks.meeting_ended
            )
            memory = MemoryStore(
                bounds, account_bytes=account_bytes, earlier=earlier.meetings, fence_of=sessions.fence_of
            )
            self.log = log = MemoryEventLog(memory)
            self.session_store = session_store = MemorySessionStore(sessions)
            self.meter = meter = MemoryMeter(MemoryMeterStore(earlier.days))
            self.glossaries = glossaries = MemoryGlossaries(earlier.glossaries)
            self.webhooks = webhooks
            self._kept = lambda: Handover(
                meetings=log.kept_meetings(),
                used_tokens=session_store.kept_tokens(),
                locked=session_store.kept_locks(),
                muted=session_store.kept_muted(),
                days=meter.kept_days(),
                glossaries=glossaries.kept_glossaries(),
                webhooks=webhooks.kept_webhooks(),
            )
            return
        keys = read_keys(Path(file)) if (file := settings.store.key_file) is not None else ()
        seal, prefix = Seal(keys), settings.store.prefix
        stores = self._redis = [RedisStore(url, prefix=prefix, seal=seal) for url in settings.store.urls]
        channels = self._channels = [RedisLiveChannel(store) for store in stores]
        logs = [RedisEventLog(store, bounds, account_bytes=account_bytes) for store in stores]
        session_stores = [RedisSessionStore(store, keep_s=keep_s) for store in stores]
        outboxes = [RedisWebhookOutbox(store) for store in stores]
        self.meter = RedisMeter(stores[0])
        self.glossaries = RedisGlossaries(stores[0])
        if len(stores) == 1:
            self.channel, self.log, self.session_store = channels[0], logs[0], session_stores[0]
            self.webhooks = outboxes[0]
        else:
            self.channel = ShardedLiveChannel(channels, self._placement)
            self.log = ShardedEventLog(logs, self._placement)
            self.session_store = ShardedSessionStore(session_stores, self._placement)
            self.webhooks = ShardedWebhookOutbox(outboxes, self._placement)

    @property
    def is_shared(self) -> bool:
        """Whether other gateways take over what this one leaves."""
        return bool(self._redis)

    @property
    def fault(self) -> str:
        """Why no new session or utterance is accepted, in a sentence; empty: they are."""
        commands = [store.commands for store in self._redis]
        if not all([each.is_answered for each in commands]):
            return "The store cannot be reached: new sessions and utterances are refused."
        if any(each.is_full for each in commands):
            return "The store is full: new sessions and utterances are refused."
        return ""

    async def open(self) -> None:
        """Reach it, before anybody is served. Raises `StartupError`; then nothing is left open."""
        try:
            await self.reach()
            await self.log.start()
        except LogUnavailable as error:
            await self.leave()
            raise StartupError(error.message) from None
        except BaseException:  # also when cancelled
            await self.leave()
            raise

    async def reach(self) -> None:
        """Only be able to ask it, without being a gateway that others know of; `close` ends it.

        Raises `StartupError`.
        """
        if stores := self._redis:
            for store in stores:
                await store.start()
            self._ids = await ids_of(stores)
            self._placement.set_stores(self._ids)
            self.meter = RedisMeter(stores[self._placement.common])
            self.glossaries = RedisGlossaries(stores[self._placement.common])
            metrics.STORE_AVAILABLE.set_function(lambda: all([store.commands.is_answered for store in stores]))
            metrics.STORE_ANSWER_S.set_function(lambda: max(store.commands.answered_s for store in stores))

    async def sweep(self) -> None:
        """Be there; to be called every second. Never raises."""
        rooms = [store.find_room() for store in self._redis]
        await asyncio.gather(self.log.sweep(), self.session_store.sweep(), self._remember(), *rooms)

    async def _remember(self) -> None:
        # A store may have lost its data.
        if len(self._redis) > 1:
            with contextlib.suppress(LogUnavailable):
                await remember(self._redis, self._ids, _PATIENCE_S)

    def handover(self, sessions: Sequence[KeptSession], revocations: Sequence[Revocation]) -> Handover:
        """What would be lost with this process, with its revocations and its sessions, for the next one."""
        if self._kept is None:
            return Handover(revocations=tuple(revocations))
        return replace(self._kept(), sessions=tuple(sessions), revocations=tuple(revocations))

    async def leave(self) -> None:
        """Let go of it without having served. Never raises."""
        await self.log.close()
        await self.close()

    async def close(self) -> None:
        """Let go of it, after the log and the session store have left. Never raises."""
        for channel in self._channels:
            await channel.close()
        for store in self._redis:
            await store.close()
