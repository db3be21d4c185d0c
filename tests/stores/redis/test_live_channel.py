"""The live channel in a real Redis that goes away and comes back.

What holds for every live channel is in `tests/contract/`.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import AsyncExitStack
from functools import partial

from prometheus_client import REGISTRY

from gateway.domain.live import Asked, LiveEvent, Withdrawn
from gateway.stores.redis.live_channel import RedisLiveChannel
from gateway.stores.redis.store import RedisStore
from gateway.stores.sealing import Seal
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
        await until(lambda: missed)
        told = len(missed)  # more than once where an answer was slow
        network.cut()
        await until(lambda: len(missed) > told)
        while Asked() not in heard:  # what is sent at once may still be lost
            ana.send("m", Asked())
            await asyncio.sleep(0.01)


async def test_event_copied_to_another_meeting_or_gateway_is_refused() -> None:
    prefix, seal = f"{secrets.token_hex(4)}:", Seal([secrets.token_bytes(32)])
    heard: list[tuple[str, LiveEvent]] = []
    copied: list[bytes] = []
    async with AsyncExitStack() as closing:
        ana, ben = [usual(RedisStore, shared_server().url, prefix=prefix, seal=seal) for _ in range(2)]
        for store in (ana, ben):
            await store.start()
            closing.push_async_callback(store.close)
        speaks, hears = RedisLiveChannel(ana), RedisLiveChannel(ben)
        for channel in (speaks, hears):
            closing.push_async_callback(channel.close)
        for meeting in ("acme/m", "other/m"):
            await closing.enter_async_context(
                hears.listen(meeting, lambda _, event: heard.append(("", event)), lambda: None)
            )
        await closing.enter_async_context(speaks.listen("acme/m", lambda *_: None, lambda: None))
        await ben.pushes.unsubscribe(ben.channel("acme/m", "live"))
        await ben.pushes.subscribe(ben.channel("acme/m", "live"), copied.append, lambda: None)
        speaks.send("acme/m", Withdrawn("ana", "1"))
        await until(lambda: len(copied) == 1)
        before = refused()
        publish = partial(ana.commands.run, "PUBLISH", ana.channel("other/m", "live"))
        await publish(copied[0])
        await publish(b"f" * len(ana.id) + copied[0][len(ana.id) :])
        await until(lambda: refused() == before + 2)
        assert heard == []


def refused() -> float:
    return REGISTRY.get_sample_value("gateway_store_entries_refused_total", {"reason": "changed"}) or 0.0
