"""What every live channel does, with two gateways on one store."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import AsyncIterator

import pytest

from gateway.domain.live import Asked, Ended, GrowingFinal, LiveEvent, Partial, Reads, Revised, Unwanted, Withdrawn
from gateway.domain.ports import LiveChannel
from gateway.stores.redis.live_channel import RedisLiveChannel
from gateway.stores.redis.store import RedisStore
from gateway.stores.sharded import Placement, ShardedLiveChannel
from tests.live_channel import MemoryLiveChannel, Switchboard
from tests.logs import utterance
from tests.patience import until
from tests.redis_server import shared_server
from tests.usual import usual

Two = tuple[LiveChannel, LiveChannel]

EVENTS: tuple[LiveEvent, ...] = (
    Revised(utterance("good mor", glossary=(), context=())),
    Partial("ana", "1", "de", 2, "Guten ", "Mor"),
    GrowingFinal("ana", "1", "de", 3, 7, 6, "Morgen 🎤"),
    Withdrawn("ana", "1"),
    Ended("ana", "1", for_good=True),
    Unwanted("ana", "1"),
    Reads(("de", "ja"), ("ja",)),
    Asked(),
)


@pytest.fixture(params=["memory", "redis", "two-redis"])
async def two(request: pytest.FixtureRequest) -> AsyncIterator[Two]:
    if request.param == "memory":
        switchboard = Switchboard()
        yield MemoryLiveChannel(switchboard), MemoryLiveChannel(switchboard)
        return
    async with contextlib.AsyncExitStack() as closing:

        async def both(prefix: str) -> Two:
            channels = []
            for _ in range(2):
                store = usual(RedisStore, shared_server().url, prefix=prefix)
                await store.start()
                closing.push_async_callback(store.close)
                channels.append(RedisLiveChannel(store))
                closing.push_async_callback(channels[-1].close)
            return channels[0], channels[1]

        first = await both(f"{secrets.token_hex(4)}:")
        if request.param == "redis":
            yield first
            return
        second, placement = await both(f"{secrets.token_hex(4)}:"), Placement()
        placement.set_stores(("one", "two"))
        yield (
            ShardedLiveChannel([first[0], second[0]], placement),
            ShardedLiveChannel([first[1], second[1]], placement),
        )


class Ear:
    def __init__(self) -> None:
        self.heard: list[LiveEvent] = []
        self.origins: set[str] = set()
        self.missed = 0

    def deliver(self, origin: str, event: LiveEvent) -> None:
        self.heard.append(event)
        self.origins.add(origin)

    def may_have_missed(self) -> None:
        self.missed += 1

    def at(self, channel: LiveChannel, meeting: str = "standup") -> contextlib.AbstractAsyncContextManager[None]:
        return channel.listen(meeting, self.deliver, self.may_have_missed)


async def test_others_hear_everything_in_its_order(two: Two) -> None:
    one, another = two
    here, there, elsewhere = Ear(), Ear(), Ear()
    async with here.at(one), there.at(another), elsewhere.at(another, "demo"):
        for event in EVENTS:
            one.send("standup", event)
        await until(lambda: len(there.heard) == len(EVENTS))
        another.send("standup", Asked())
        await until(lambda: here.heard)
    assert there.heard == [*EVENTS]
    assert here.heard == [Asked()]
    assert elsewhere.heard == []
    assert len(there.origins) == len(here.origins) == 1
    assert here.origins != there.origins


async def test_whoever_begins_to_listen_may_have_missed_something(two: Two) -> None:
    ear = Ear()
    async with ear.at(two[0]):
        await until(lambda: ear.missed)


async def test_what_nobody_hears_is_not_sent(two: Two) -> None:
    one, another = two
    here, there = Ear(), Ear()
    async with here.at(one):
        one.send("standup", Asked())
        await until(lambda: not one.is_heard("standup"))
        one.send("standup", Asked())
        async with there.at(another):
            another.send("standup", Asked())
            await until(lambda: one.is_heard("standup"))
            one.send("standup", Withdrawn("ana", "1"))
            await until(lambda: there.heard)
            assert there.heard == [Withdrawn("ana", "1")]
        one.send("standup", Asked())
        await until(lambda: not one.is_heard("standup"))


async def test_nothing_is_heard_after_leaving(two: Two) -> None:
    one, another = two
    here, there, left = Ear(), Ear(), Ear()
    async with here.at(one):
        async with left.at(another):
            another.send("standup", Asked())
            await until(lambda: here.heard)
        async with there.at(another):
            another.send("standup", Asked())
            await until(lambda: len(here.heard) == 2)
            one.send("standup", Asked())
            await until(lambda: there.heard)
    assert left.heard == []


async def test_what_nobody_hears_yet_is_dropped(two: Two) -> None:
    one, another = two
    here, there = Ear(), Ear()
    one.send("standup", Asked())
    async with here.at(one), there.at(another):
        another.send("standup", Asked())
        await until(lambda: here.heard)
        one.send("standup", Withdrawn("ana", "1"))
        await until(lambda: there.heard)
    assert there.heard == [Withdrawn("ana", "1")]
