"""The live channel in a real Redis that goes away and comes back.

What holds for every live channel is in `tests/contract/`.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import AsyncExitStack

from gateway.domain.live import Asked, LiveEvent, Withdrawn
from gateway.stores.redis.live_channel import RedisLiveChannel
from gateway.stores.redis.store import RedisStore
from tests.patience import until
from tests.redis_server import shared_server
from tests.stores.redis.proxy import Proxy
from tests.usual import usual


async def test_cut_off_gateway_is_told_and_heard_again(network: Proxy) -> None:
    prefix = f"{secrets.token_hex(4)}:"
    heard: list[LiveEvent] = []
    missed: list[str] = []
    async with AsyncExitStack() as closing:
        channels = []
        for url in (network.url, shared_server().url):
            store = usual(RedisStore, url, prefix=prefix, answer_s=0.2)
            await store.start()
            closing.push_async_callback(store.close)
            channels.append(RedisLiveChannel(store))
            closing.push_async_callback(channels[-1].close)
        ana, ben = channels
        await closing.enter_async_context(ana.listen("m", lambda _, event: None, lambda: missed.append("ana")))
        await closing.enter_async_context(ben.listen("m", lambda _, event: heard.append(event), lambda: None))
        ana.send("m", Withdrawn("ana", "1"))
        await until(lambda: heard == [Withdrawn("ana", "1")])
        await until(lambda: missed == ["ana"])
        network.cut()
        await until(lambda: missed == ["ana", "ana"])
        while Asked() not in heard:  # what is sent at once may still be lost
            ana.send("m", Asked())
            await asyncio.sleep(0.01)
