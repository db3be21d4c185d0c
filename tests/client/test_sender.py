"""What has to get through gets through once, in order, and at the pace of the gateway."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from gateway.client import (
    Reconnecting,
    SessionClosed,
)
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Ping,
    UtteranceCancel,
    UtteranceFinal,
)
from tests.client.reading import everything, kinds, session_of, until
from tests.scripted_gateway import (
    STARTED,
    Peer,
    accepted,
)


async def test_a_final_said_while_there_is_no_connection_arrives_once() -> None:
    received: list[UtteranceFinal] = []

    async def script(peer: Peer) -> None:
        await peer.start()
        if peer.visit == 1:
            peer.drop()
            return
        received.append(await peer.take())
        received.append(await peer.take())
        await peer.end()

    async with session_of(script) as session:
        assert kinds(await until(session, Reconnecting)) == ["Reconnecting"]
        ids = [await session.final("One"), await session.final("Two", start_ms=1, end_ms=2)]
        await session.partial("dropped")
        await session.ping()
        await session.cancel("nothing")
        assert [each.id for each in session.unacknowledged] == ids
        await session.end()
        assert kinds(await everything(session)) == ["Reconnected", *["UtteranceAccepted"] * 2]
        assert len(session.unacknowledged) == 0
    assert received == [UtteranceFinal(ids[0], 1, "One"), UtteranceFinal(ids[1], 1, "Two", None, 1, 2)]


async def test_final_of_another_task_wakes_the_reader() -> None:
    """The reader waits for nothing when the final comes whose turn is later."""

    async def script(peer: Peer) -> None:
        await peer.start(replace(STARTED, limits=Limits(messages_per_s=20, messages_burst=2)))
        # Nothing is answered, which would wake it up as well, before all are there.
        finals = [await peer.expect(UtteranceFinal) for _ in range(4)]
        assert [final.text for final in finals] == ["0", "1", "2", "3"]
        await peer.leave(1000, *map(accepted, finals))

    async with session_of(script) as session, asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(everything(session))
        await asyncio.sleep(0)
        for number in range(4):
            await session.final(str(number))
        assert kinds(await reading) == ["UtteranceAccepted"] * 4


async def test_full_queue_makes_final_wait() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        for _ in range(3):
            await peer.take()
        await peer.leave(1000)

    async with session_of(script, max_unacknowledged=2) as session, asyncio.TaskGroup() as tasks:
        await session.final("one")
        await session.final("two")
        third = tasks.create_task(session.final("three"))
        await asyncio.sleep(0)
        assert not third.done()
        assert len(await everything(session)) == 3
        await third


async def test_waiting_final_learns_of_the_end() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        await peer.expect(UtteranceFinal)
        await peer.leave(4510)

    async with session_of(script, max_unacknowledged=1) as session, asyncio.TaskGroup() as tasks:
        await session.final("one")

        async def say_more() -> None:
            with pytest.raises(SessionClosed):
                await session.final("two")

        tasks.create_task(say_more())
        with pytest.raises(SessionClosed):
            await everything(session)


async def test_a_cancelled_utterance() -> None:
    async def script(peer: Peer) -> None:
        await peer.start(replace(STARTED, limits=Limits(utterances_in_flight=1)))
        await peer.expect(UtteranceFinal)
        assert await peer.receive() == UtteranceCancel("sent")
        assert await peer.receive() == Ping()
        peer.drop()

    async with session_of(script) as session:
        await session.final("one", "sent")
        await session.final("two", "kept")
        await session.cancel("sent")
        await session.cancel("kept")
        await session.ping()
        assert [each.id for each in session.unacknowledged] == ["sent"]
        await until(session, Reconnecting)
        await session.cancel("sent")
        assert len(session.unacknowledged) == 0


async def test_a_cancelled_caller_takes_nothing_back() -> None:
    """A final that was kept is sent, even if the task that said it is cancelled."""
    texts: list[str] = []

    async def script(peer: Peer) -> None:
        await peer.start()
        texts.append((await peer.take()).text)
        await peer.leave(1000)

    async with session_of(script) as session:
        connection = session._sender.connection
        assert connection is not None
        send, stuck = connection.send, asyncio.Event()

        async def hang(_message: object) -> None:
            stuck.set()
            await asyncio.get_running_loop().create_future()

        connection.send = hang  # type: ignore[method-assign, assignment]
        saying = asyncio.ensure_future(session.final("Hello"))
        await stuck.wait()
        reading = asyncio.ensure_future(everything(session))
        await asyncio.sleep(0)
        connection.send = send  # type: ignore[method-assign]
        saying.cancel()
        assert kinds(await reading) == ["UtteranceAccepted"]
    assert texts == ["Hello"]
