"""What a store must be set to, each with the sentence that an operator gets."""

from __future__ import annotations

import secrets
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from gateway.domain.errors import StartupError
from gateway.stores.redis.checks import check, ids_of
from gateway.stores.redis.store import RedisStore
from tests.redis_server import RedisServer, shared_server

Start = Callable[..., RedisServer]


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as running:

        def started(**settings: str) -> RedisServer:
            server = RedisServer(tmp_path, **settings)
            running.callback(server.kill)
            return server.start()

        yield started


async def refusal(url: str) -> str:
    with pytest.raises(StartupError) as error:
        await check(url)
    assert error.value.message.endswith(".")
    return error.value.message


async def test_a_store_with_the_right_settings_is_taken() -> None:
    await check(shared_server().url)


@pytest.mark.parametrize(
    ("setting", "value", "wanted"),
    [
        ("appendonly", "no", "`appendonly yes`"),
        ("appendfsync", "everysec", "`appendfsync always`"),
        ("maxmemory_policy", "allkeys-lru", "`maxmemory-policy noeviction`"),
        ("replicaof", "127.0.0.1 1", "primary"),
        ("rename_command", "CONFIG config-of-mine", "refuses the gateway"),
    ],
)
async def test_each_wrong_setting_is_named(start: Start, setting: str, value: str, wanted: str) -> None:
    message = await refusal(start(**{setting: value}).url)
    assert wanted in message
    assert "unix://" in message


async def test_a_cluster_is_refused(start: Start) -> None:
    cluster = start(cluster_enabled="yes", cluster_port=str(free_port()))
    assert "`cluster-enabled no`" in await refusal(cluster.url)


async def test_a_gateway_does_not_start_on_a_wrong_store(start: Start) -> None:
    store = RedisStore(start(appendfsync="everysec").url)
    with pytest.raises(StartupError, match="appendfsync always"):
        await store.start()
    await store.close()


@pytest.mark.parametrize("address", ["unix:///nowhere/redis.sock", "redis://:secret@127.0.0.1:1/0"])
async def test_a_store_that_is_not_there(address: str) -> None:
    message = await refusal(address)
    assert "cannot be reached" in message
    assert "secret" not in message


async def test_an_address_that_is_none() -> None:
    assert "not valid" in await refusal("http://:secret@store")


async def test_a_store_that_others_can_reach_needs_a_password(start: Start) -> None:
    port = free_port()
    start(port=str(port), requirepass="right")
    assert "requirepass" in await refusal(f"redis://127.0.0.1:{port}")
    assert "refuses the gateway" in await refusal(f"redis://:wrong@127.0.0.1:{port}")
    await check(f"redis://:right@127.0.0.1:{port}")


async def test_a_password_that_the_store_does_not_ask_for_is_none(start: Start) -> None:
    port = free_port()
    start(port=str(port))
    assert "refuses the gateway" in await refusal(f"redis://:right@127.0.0.1:{port}")


# Several stores


@asynccontextmanager
async def stores(*prefixes: str) -> AsyncIterator[list[RedisStore]]:
    """Each prefix is a store of its own."""
    async with AsyncExitStack() as closing:
        opened = []
        for prefix in prefixes:
            store = RedisStore(shared_server().url, prefix=prefix)
            await store.start()
            closing.push_async_callback(store.close)
            opened.append(store)
        yield opened


async def test_each_store_has_an_id_for_good() -> None:
    a, b = (f"{secrets.token_hex(4)}:" for _ in range(2))
    async with stores(a, b) as both:
        first, second = await ids_of(both)
        assert first != second
    async with stores(b, a) as both:
        assert await ids_of(both) == [second, first]


async def test_the_same_store_is_not_named_twice() -> None:
    prefix = f"{secrets.token_hex(4)}:"
    async with stores(prefix, prefix) as both:
        with pytest.raises(StartupError, match="named twice"):
            await ids_of(both)


@pytest.mark.parametrize("key", ["due", "tenants", "heard_of_one"])
async def test_other_stores_share_the_meetings_only_once_none_is_left(key: str) -> None:
    a, b, c = (f"{secrets.token_hex(4)}:" for _ in range(3))
    async with stores(a, b, c) as [first, second, third]:
        await first.commands.run("SET", f"{a}{key}", 1)  # of a version that knew one store
        await ids_of([first])
        with pytest.raises(StartupError, match=r"the same as before \(1 in all\)"):
            await ids_of([first, second])
        await first.commands.run("DEL", f"{a}{key}")
        await ids_of([first, second])
        await second.commands.run("SET", f"{b}{key}", 1)
        for others in ([first], [second], [first, third], [first, second, third]):
            if second in others:
                with pytest.raises(StartupError, match=r"the same as before \(2 in all\)"):
                    await ids_of(others)
        assert len(await ids_of([second, first])) == 2
