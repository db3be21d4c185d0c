"""Where meetings are kept, by the settings."""

from __future__ import annotations

import base64
import secrets
from pathlib import Path

import pytest

from gateway.config import Settings, StoreSettings
from gateway.domain.errors import StartupError
from gateway.domain.sessions import Handover, KeptSession
from gateway.store import Store
from gateway.stores.memory_log import MemoryEventLog
from gateway.stores.redis.log import RedisEventLog
from gateway.stores.sealing import Place
from gateway.stores.sharded import ShardedEventLog
from tests.logs import utterance
from tests.patience import until
from tests.redis_server import server_to_kill, shared_server, shared_urls


def nothing(_account: str) -> None:
    return None


async def test_without_a_store_everything_is_in_memory() -> None:
    store = Store(Settings(), nothing)
    await store.open()
    assert isinstance(store.log, MemoryEventLog)
    assert (store.channel, store.is_shared) == (None, False)
    await store.close()


async def test_store_is_shared_and_closed(tmp_path: Path) -> None:
    file = tmp_path / "store.key"
    file.write_text(base64.b64encode(bytes(32)).decode())
    settings = StoreSettings(url=shared_server().url, prefix="test-store:", key_file=str(file))
    store = Store(Settings(store=settings), nothing)
    await store.open()
    assert isinstance(store.log, RedisEventLog)
    assert store.log.store.seal.close(b"secret", Place("said", "m", "e")) != b"secret"
    assert store.channel is not None
    assert store.is_shared
    kept = KeptSession("ana", "m", False, "Ana", None, (), session="secret", left_s=60.0)
    assert store.handover((kept,), ()) == Handover(), "it outlives this process"
    await store.sweep()
    await store.log.close()
    await store.close()


async def test_store_that_takes_nothing_new_says_so() -> None:
    with server_to_kill() as server:
        store = Store(Settings(store=StoreSettings(url=server.url)), nothing)
        await store.open()
        await store.sweep()
        assert store.fault == ""
        # Nobody has to be refused first.
        server.ask("CONFIG SET maxmemory 1")
        await store.sweep()
        assert store.fault == "The store is full: new sessions and utterances are refused."
        server.ask("CONFIG SET maxmemory 0")
        await store.sweep()
        assert store.fault == ""
        server.kill()
        while not store.fault:
            await store.sweep()
        assert store.fault == "The store cannot be reached: new sessions and utterances are refused."
        await store.log.close()
        await store.close()


async def test_several_stores_share_the_meetings() -> None:
    settings = Settings(store=StoreSettings(url=shared_urls(2), prefix=f"{secrets.token_hex(4)}:"))
    store = Store(settings, nothing)
    await store.open()
    assert isinstance(store.log, ShardedEventLog)
    await store.session_store.open(lambda *_: None, lambda _: None)
    for n in range(50):
        await store.log.accept(f"meeting {n}", utterance("hello"))
    held = [(await log.usage()).publications for log in store.log.parts]
    assert sum(held) == 50
    assert all(held)
    await store.sweep()
    await store.log.close()
    await store.session_store.close()
    await store.close()


async def test_mismatched_stores_are_closed() -> None:
    before, url = shared_server().connections(), shared_server().url
    store = Store(Settings(store=StoreSettings(url=f"{url} {url}", prefix=f"{secrets.token_hex(4)}:")), nothing)
    with pytest.raises(StartupError, match="named twice"):
        await store.open()
    await until(lambda: shared_server().connections() <= before)


async def test_unreachable_store_fails_the_start() -> None:
    store = Store(Settings(store=StoreSettings(url="unix:///nowhere/redis.sock")), nothing)
    with pytest.raises(StartupError, match="cannot be reached"):
        await store.open()
    await store.close()
