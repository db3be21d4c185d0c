"""A gateway's access to a real Redis."""

from __future__ import annotations

import pytest

from gateway.domain.errors import LogUnavailable
from gateway.stores.redis.store import RedisStore
from tests.redis_server import shared_server


async def test_scripts_run_once_it_has_started_and_until_it_is_closed() -> None:
    store = RedisStore(shared_server().url)
    arguments = ("nobody:", "meeting", store.id, "epoch", 1_000, 100, 1_000, "", 0, 0, 10)
    with pytest.raises(LogUnavailable):
        await store.run_script("read", *arguments)
    await store.start()
    assert await store.run_script("read", *arguments) == []
    await store.close()
    with pytest.raises(LogUnavailable):
        await store.run_script("read", *arguments)


def test_gateways_and_meetings_are_told_apart() -> None:
    one, another = RedisStore("unix:///one", prefix="a:"), RedisStore("unix:///one", prefix="b:")
    assert one.id != another.id
    channels = {store.channel(meeting, "push") for store in (one, another) for meeting in ("standup", "demo")}
    assert len(channels) == 4
