"""Events in a real Redis: what it holds. What holds for every store is in `tests/contract/`."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator

import pytest

from gateway.domain.sessions import SessionRecord
from gateway.domain.webhooks import Settled, Webhook
from gateway.stores.redis import webhooks as redis_webhooks
from gateway.stores.redis.session_store import RedisSessionStore
from gateway.stores.redis.store import RedisStore
from gateway.stores.redis.webhooks import RedisWebhookOutbox
from tests.redis_server import shared_server
from tests.usual import usual

HOOK = Webhook(name="backend", url="https://example.com/hook?token=s3cret", secret_file="secret")
RECORD = SessionRecord("ana", "acme/m", False, "Ana", "en", ())


@pytest.fixture
async def store() -> AsyncIterator[RedisStore]:
    store = usual(RedisStore, shared_server().url, prefix=f"{secrets.token_hex(4)}:")
    await store.start()
    yield store
    await store.close()


async def keys(store: RedisStore) -> set[str]:
    found: list[bytes] = await store.commands.run("KEYS", f"{store.prefix}*webhook*")
    return {key.decode().removeprefix(store.prefix) for key in found}


async def test_store_has_no_address_and_forgets_deliveries(
    store: RedisStore,
) -> None:
    outbox, session_store = RedisWebhookOutbox(store), usual(RedisSessionStore, store)
    await outbox.tend(HOOK, 9)
    await session_store.begin(b"a" * 32, RECORD)
    assert await keys(store) == {
        *("webhooks", "webhook:backend"),
        *(f"webhook:backend:{part}" for part in ("events", "waiting", "due")),
    }
    assert b"s3cret" not in b"".join(await store.commands.run("HVALS", f"{store.prefix}webhook:backend"))
    [delivery] = (await outbox.tend(HOOK, 9)).deliveries
    await outbox.settle(HOOK, delivery, Settled("It answered with status 200."))
    assert await keys(store) == {"webhooks", "webhook:backend"}


async def test_untended_webhook_is_forgotten(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_webhooks, "KEPT_S", 0.2)
    outbox, session_store = RedisWebhookOutbox(store), usual(RedisSessionStore, store)
    await outbox.tend(HOOK, 9)
    await session_store.begin(b"a" * 32, RECORD)
    while await keys(store):
        await asyncio.sleep(0.01)
    # It is not in the way of others.
    monkeypatch.undo()
    await outbox.tend(Webhook(name="other", url="https://example.com", secret_file="secret"), 0)
    await session_store.end(b"a" * 32, 1)
    assert await keys(store) >= {"webhook:other:events"}
    assert "webhook:backend:events" not in await keys(store)


async def test_a_delivery_that_is_settled_too_late_leaves_nothing(store: RedisStore) -> None:
    outbox, session_store = RedisWebhookOutbox(store), usual(RedisSessionStore, store)
    await outbox.tend(HOOK, 0)
    await session_store.begin(b"a" * 32, RECORD)
    [delivery] = (await outbox.tend(HOOK, 9)).deliveries
    await store.commands.run("DEL", *(f"{store.prefix}{key}" for key in await keys(store)))
    await outbox.settle(HOOK, delivery, Settled("It answered with status 500.", 5.0))
    assert await keys(store) == set()


async def test_while_it_waits_for_nothing_a_look_writes_nothing(store: RedisStore) -> None:
    outbox = RedisWebhookOutbox(store)

    async def written() -> int:
        about: bytes = await store.commands.run("INFO", "persistence")
        return int(about.split(b"aof_current_size:")[1].split()[0])

    await outbox.tend(HOOK, 9)
    before = await written()
    await outbox.tend(HOOK, 9)
    assert await written() == before
