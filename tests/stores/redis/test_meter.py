"""The meter in a real Redis: answers that are lost, gateways that are killed, and a store that is restarted.

What holds for every store is in `tests/contract/`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gateway.domain.errors import LogUnavailable
from gateway.domain.quotas import DayOfTenant, Metered, MinuteOfMeeting
from gateway.stores.redis.meter import RedisMeter
from gateway.stores.redis.store import RedisStore
from tests.redis_server import RedisServer, shared_server
from tests.stores.redis.proxy import Proxy
from tests.usual import usual

DAY = 20_000


@asynccontextmanager
async def opened(url: str, prefix: str, **options: Any) -> AsyncIterator[RedisMeter]:
    store = usual(RedisStore, url, prefix=prefix, **options)
    await store.start()
    try:
        yield RedisMeter(store)
    finally:
        await store.close()


def told(number: int, characters: int = 0, *minutes: int) -> Metered:
    of_meetings = tuple(MinuteOfMeeting("acme", "acme/m", "ja", minute) for minute in minutes)
    of_tenants = {"acme": characters} if characters else {}
    return Metered(number=number, day=DAY, characters=of_tenants, minutes=of_meetings)


def total(characters: int, minutes: int = 0) -> tuple[DayOfTenant, ...]:
    return (DayOfTenant(tenant="acme", day=DAY, characters=characters, minutes=minutes),)


async def test_repeated_report_counts_once(network: Proxy, prefix: str) -> None:
    async with opened(network.url, prefix) as here, opened(shared_server().url, prefix) as there:
        network.lose_the_answer_to(b"acme/m ja")
        assert (await here.record(told(1, 3, 7))).days == total(3, 1)
        assert network.has_lost
        assert (await there.record(told(1, 4, 7))).days == total(7, 1)


async def test_unanswered_report_is_repeated_and_counts_once(network: Proxy, prefix: str) -> None:
    async with opened(network.url, prefix) as here, opened(shared_server().url, prefix) as there:
        await here.record(told(1))
        network.loses_answers = True
        with pytest.raises(LogUnavailable):
            await here.record(told(2, 3))
        assert (await there.record(told(1))).days == total(3), "it has arrived all the same"
        network.loses_answers = False
        network.cut()
        assert (await here.record(told(2, 3))).days == total(3)
        assert (await here.record(told(3, 1))).days == total(4)
        assert (await there.record(told(2))).days == total(4)


async def test_only_what_has_changed_is_read(prefix: str) -> None:
    async with opened(shared_server().url, prefix) as here, opened(shared_server().url, prefix) as there:
        await here.record(told(1, 3))
        assert (await here.record(told(2))).days == ()
        await there.record(told(1, 1))
        assert (await here.record(told(3))).days == total(4)
        assert (await here.record(told(4))).days == ()


async def test_a_gateway_that_has_nothing_to_tell_writes_nothing(prefix: str) -> None:
    async with opened(shared_server().url, prefix) as here:
        await here.record(told(1))
        assert shared_server().ask(f"KEYS {prefix}*") == "*0\r\n"


async def test_days_usage_survives_gateways_and_store(server: RedisServer, prefix: str) -> None:
    async with opened(server.url, prefix) as here:
        await here.record(told(1, 3, 7))
    server.kill()
    server.start()
    async with opened(server.url, prefix) as later:
        assert (await later.record(told(1))).days == total(3, 1)
        assert (await later.record(told(2, 2, 7, 8))).days == total(5, 2)


async def test_what_is_counted_does_not_stay(prefix: str) -> None:
    async with opened(shared_server().url, prefix) as here:
        await here.record(told(1, 3, 7))
        keys = [f"day:{DAY}", f"day:{DAY}:changed", "minute:7", f"gateway:{here.store.id}:told"]
        for key in keys:
            lasts_ms = int(shared_server().ask(f"PTTL {prefix}{key}").strip().removeprefix(":"))
            assert 0 < lasts_ms <= 2 * 86_400_000, key
