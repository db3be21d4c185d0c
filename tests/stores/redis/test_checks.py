"""What a store must be set to, each with the sentence that an operator gets."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from gateway.domain.errors import LogUnavailable, StartupError
from gateway.stores.redis.checks import check, ids_of, remember
from gateway.stores.redis.store import RedisStore
from loadtest.systems.server import free_port
from tests.redis_server import RedisServer, shared_server
from tests.usual import usual

Start = Callable[..., RedisServer]


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
    store = usual(RedisStore, start(appendfsync="everysec").url)
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


async def test_unasked_password_counts_as_none(start: Start) -> None:
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
            store = usual(RedisStore, shared_server().url, prefix=prefix)
            await store.start()
            closing.push_async_callback(store.close)
            opened.append(store)
        yield opened


def new_prefixes(count: int) -> list[str]:
    return [f"{secrets.token_hex(4)}:" for _ in range(count)]


async def refusal_of(stores: list[RedisStore]) -> str:
    with pytest.raises(StartupError) as error:
        await ids_of(stores)
    return error.value.message


async def test_each_store_has_an_id_for_good() -> None:
    a, b = new_prefixes(2)
    async with stores(a, b) as both:
        first, second = await ids_of(both)
        assert first != second
    async with stores(b, a) as both:
        assert await ids_of(both) == [second, first]


async def test_data_of_another_format_is_refused() -> None:
    (prefix,) = new_prefixes(1)
    async with stores(prefix) as [store]:
        await ids_of([store])
        await ids_of([store])
        await store.commands.run("SET", f"{prefix}format", "3")
        said = await refusal_of([store])
        assert "is of format 3, and this gateway reads format 2: start the version that wrote it" in said
        assert "store.prefix" in said


async def test_the_same_store_is_not_named_twice() -> None:
    async with stores(*new_prefixes(1) * 2) as both:
        for _ in range(2):
            assert "named twice" in await refusal_of(both)


@pytest.mark.parametrize("key", ["due", "tenants", "revocations", "heard_of_one"])
async def test_other_stores_share_only_once_nothing_is_left(key: str) -> None:
    a, b, c = new_prefixes(3)
    async with stores(a, b, c) as [first, second, third]:
        await first.commands.run("SET", f"{a}{key}", 1)
        assert await ids_of([first]) == [""]
        assert "does not share with these stores: name the same" in await refusal_of([first, second])
        await first.commands.run("DEL", f"{a}{key}")
        ids = await ids_of([first, second])
        await second.commands.run("SET", f"{b}{key}", 1)
        for others in ([second], [first, second, third]):
            assert "does not share with these stores" in await refusal_of(others)
        assert await ids_of([second, first]) == ids[::-1]
        await second.commands.run("DEL", f"{b}{key}")
        assert len(await ids_of([second])) == 1
        assert len({*await ids_of([first, second]), *ids}) == 4


async def test_emptied_store_is_the_missing_one() -> None:
    a, b, c = new_prefixes(3)
    async with stores(a, b, c) as [first, second, third]:
        ids = await ids_of([first, second, third])
        await first.commands.run("SET", f"{a}due", 1)
        await second.commands.run("DEL", f"{b}share")
        assert await ids_of([third, second, first]) == ids[::-1]
        # Nobody can tell apart two stores that have lost it; gateways that run can.
        await second.commands.run("DEL", f"{b}share")
        await third.commands.run("DEL", f"{c}share")
        assert "does not share" in await refusal_of([first, second, third])
        await remember([first, second, third], ids)
        assert await ids_of([first, second, third]) == ids


async def test_a_full_store_is_no_obstacle_to_a_start(start: Start) -> None:
    server = start()
    store = usual(RedisStore, server.url, prefix="a:")
    other = usual(RedisStore, shared_server().url, prefix=new_prefixes(1)[0])
    await store.start()
    await other.start()
    ids = await ids_of([store, other])
    server.ask("CONFIG SET maxmemory 1")
    with pytest.raises(LogUnavailable, match="full"):
        await store.commands.run("SET", "a", "b")
    assert await ids_of([store, other]) == ids
    await store.close()
    await other.close()
