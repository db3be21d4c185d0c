"""Pushes from a real Redis, whose connections are lost."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence

import pytest

from gateway.domain.errors import LogUnavailable
from gateway.stores.redis.connection import Command, Connection
from gateway.stores.redis.pushes import Pushes
from tests.patience import until
from tests.redis_server import shared_server


class Heard:
    def __init__(self) -> None:
        self.pushes: list[bytes] = []
        # How often it was subscribed.
        self.subscribed = 0
        self.channel = secrets.token_hex(4).encode()

    async def subscribe(self, pushes: Pushes) -> None:
        await pushes.subscribe(self.channel, self.pushes.append, self._count)

    def _count(self) -> None:
        self.subscribed += 1

    def publish(self, data: str) -> int:
        """How many have heard it."""
        return int(shared_server().ask(f"PUBLISH {self.channel.decode()} {data}")[1:])


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
async def pushes(heard: Heard) -> AsyncIterator[Pushes]:
    pushes = Pushes(lambda: Connection(shared_server().url))
    pushes.start()
    yield pushes
    await pushes.close()


async def test_what_is_published_after_subscribing_is_pushed(pushes: Pushes, heard: Heard) -> None:
    await heard.subscribe(pushes)
    await heard.subscribe(pushes)
    assert heard.publish("one") == 1
    await until(lambda: heard.pushes == [b"one"])


async def test_nothing_comes_after_unsubscribing(pushes: Pushes, heard: Heard) -> None:
    await heard.subscribe(pushes)
    await pushes.unsubscribe(heard.channel)
    await pushes.unsubscribe(heard.channel)
    while heard.publish("late"):
        pass
    await heard.subscribe(pushes)
    heard.publish("again")
    await until(lambda: heard.pushes[-1:] == [b"again"])
    assert heard.pushes == [b"again"]


async def test_leaving_and_coming_back_at_once_loses_nothing(pushes: Pushes, heard: Heard) -> None:
    for n in range(50):
        await heard.subscribe(pushes)
        assert heard.publish(str(n)) == 1
        await until(lambda n=n: str(n).encode() in heard.pushes)  # type: ignore[misc]
        await pushes.unsubscribe(heard.channel)


async def test_every_channel_is_subscribed_on_the_next_connection(pushes: Pushes, heard: Heard) -> None:
    await heard.subscribe(pushes)
    another = Heard()
    await another.subscribe(pushes)
    shared_server().ask("CLIENT KILL TYPE pubsub")
    await until(lambda: heard.subscribed == another.subscribed == 2)
    assert heard.publish("one") == 1
    await until(lambda: heard.pushes == [b"one"])


async def test_a_connection_that_seems_dead_is_replaced(pushes: Pushes, heard: Heard) -> None:
    await heard.subscribe(pushes)
    await pushes.renew()
    await until(lambda: heard.subscribed == 2)
    assert heard.publish("one") == 1


async def test_without_a_store_nothing_can_be_subscribed(heard: Heard) -> None:
    pushes = Pushes(lambda: Connection("unix:///nowhere/redis.sock"), patience_s=0.05)
    pushes.start()
    with pytest.raises(LogUnavailable):
        await heard.subscribe(pushes)
    await pushes.close()


class Slow:
    """A connection whose answers come when the test gives them."""

    def __init__(self) -> None:
        self.sent: list[Command] = []
        self.answers: asyncio.Queue[list[bytes | int]] = asyncio.Queue()

    async def connect(self) -> None:
        pass

    async def send(self, commands: Sequence[Command]) -> None:
        self.sent += commands

    async def receive(self) -> list[bytes | int]:
        return await self.answers.get()

    async def close(self) -> None:
        pass


async def test_a_confirmation_belongs_to_the_oldest_subscription(heard: Heard) -> None:
    wire = Slow()
    pushes = Pushes(lambda: wire)
    pushes.start()
    await asyncio.sleep(0)
    first = asyncio.create_task(heard.subscribe(pushes))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    await pushes.unsubscribe(heard.channel)
    second = asyncio.create_task(heard.subscribe(pushes))
    await until(lambda: len(wire.sent) == 3)
    wire.answers.put_nowait([b"subscribe", heard.channel, 1])
    await until(lambda: heard.subscribed)
    assert not second.done()
    wire.answers.put_nowait([b"unsubscribe", heard.channel, 0])
    wire.answers.put_nowait([b"subscribe", heard.channel, 1])
    await second
    await pushes.close()
