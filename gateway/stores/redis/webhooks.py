"""Events that wait for webhooks in Redis, for all gateways, until they are delivered.

Knows: the scripts' arguments. Must not know: how scripts work, HTTP.
"""

from __future__ import annotations

import hashlib

from gateway.domain.webhooks import (
    KEPT_S,
    LEASE_S,
    MOST_WAITING,
    Delivery,
    Event,
    Settled,
    Tended,
    Webhook,
    WebhookState,
)
from gateway.stores.redis.store import RedisStore

# How long a gateway that looks for what is due waits for the store.
_SHORT_PATIENCE_S = 1.0


class RedisWebhookOutbox:
    """One gateway's access to a store that gateways share, once it has started."""

    def __init__(self, store: RedisStore) -> None:
        self.store = store

    async def tend(self, webhook: Webhook, most: int) -> Tended:
        waiting, oldest_ms, dropped, claimed = await self.store.run_script(
            *("webhooks/tend", self.store.prefix, webhook.name, ",".join(webhook.events)),
            *(",".join(webhook.tenants), _digest(webhook.url), MOST_WAITING),
            *(round(LEASE_S * 1_000), most, round(KEPT_S * 1_000)),
            patience_s=_SHORT_PATIENCE_S,
        )
        deliveries = tuple(_delivery(*each) for each in claimed)
        return Tended(deliveries, waiting, int(oldest_ms) / 1_000, int(dropped))

    async def settle(self, webhook: Webhook, delivery: Delivery, settled: Settled) -> None:
        again_ms = -1 if settled.again_s is None else round(settled.again_s * 1_000)
        await self.store.run_script(
            *("webhooks/settle", self.store.prefix, webhook.name, delivery.event.id, delivery.tries, again_ms),
            *(settled.said, int(settled.gone), _digest(webhook.url)),
        )

    async def resume(self, webhook: Webhook) -> None:
        await self.store.commands.run("HDEL", self._key(webhook), "g")

    async def state(self, webhook: Webhook) -> WebhookState:
        run, key = self.store.commands.run, self._key(webhook)
        waiting = await run("ZCARD", f"{key}:waiting")
        oldest = await run("ZRANGE", f"{key}:waiting", 0, 0, "WITHSCORES")
        last, gone = await run("HMGET", key, "l", "g")
        tried_ms, _, said = (last or b"").decode().partition(" ")
        return WebhookState(
            waiting=waiting,
            oldest_ms=int(float(oldest[1])) if oldest else 0,
            tried_ms=int(tried_ms or 0),
            said=said,
            gone=gone is not None,
        )

    def _key(self, webhook: Webhook) -> str:
        return f"{self.store.prefix}webhook:{webhook.name}"


def _digest(url: str) -> str:
    """The address may hold a secret, and the store need not know it."""
    return hashlib.sha256(url.encode()).hexdigest()[:16]


def _delivery(id: bytes, age_ms: bytes, entry: bytes) -> Delivery:
    tries, kind, at_ms, started_ms, ended_ms, meeting = entry.decode().split(" ")
    event = Event(id.decode(), kind, meeting, int(at_ms), int(started_ms), int(ended_ms))
    return Delivery(event, int(tries), int(age_ms) / 1_000)
