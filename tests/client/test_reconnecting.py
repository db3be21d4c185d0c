"""A session over several connections, against a gateway that plays transcripts and drops its clients."""

from __future__ import annotations

import asyncio
import functools
import gc
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from msgspec.structs import replace

from gateway.client import (
    ClientError,
    ClientSession,
    GatewayUnreachable,
    Reconnected,
    Reconnecting,
    SessionClosed,
    SessionEvent,
    SessionRefused,
    UnreadableMessage,
    connect,
)
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Error,
    Ping,
    Pong,
    Resume,
    ServerMessage,
    SessionDraining,
    SessionEnd,
    SessionStart,
    SessionUpdate,
    SessionUpdated,
    TranslationFinal,
    UtteranceAccepted,
    UtteranceCancel,
    UtteranceFinal,
)
from tests.clocks import swiftly
from tests.scripted_gateway import (
    ANOTHER,
    STARTED,
    Peer,
    accepted,
    refused,
    resumed,
    said,
    scripted_gateway,
    translated,
)

connect_at_once = functools.partial(connect, jitter=lambda: 0.0, reads=["ja"])


async def everything(session: ClientSession) -> list[SessionEvent]:
    return [event async for event in session]


async def until(session: ClientSession, kind: type[SessionEvent]) -> list[SessionEvent]:
    """Everything up to the first event of a kind."""
    events: list[SessionEvent] = []
    async for event in session:
        events.append(event)
        if isinstance(event, kind):
            break
    return events


def kinds(events: list[SessionEvent]) -> list[str]:
    return [type(event).__name__ for event in events]


# ---------------------------------------------------------------- losing and finding


@pytest.mark.parametrize("code", [None, 1001, 1011, 1012, 4008, 4010, 4012])
async def test_a_lost_connection_is_resumed_where_it_ended(code: int | None) -> None:
    starts: list[SessionStart] = []

    async def script(peer: Peer) -> None:
        starts.append(await peer.start())
        if peer.visit == 1:
            await peer.say(said(UtteranceFinal("a", 1, "Hello"), 7))
            await peer.expect(Ping)
            if code is None:
                peer.drop()
            else:
                await peer.leave(code)
        await peer.leave(1000)

    async with (
        scripted_gateway(script) as url,
        connect_at_once(url, speaks="en", meeting="standup", name="Ana") as session,
    ):
        assert session.position == Resume("s1", "e1", 0)
        await anext(session)
        assert session.position == Resume("s1", "e1", 7)
        await session.ping()
        events = await everything(session)
    lost, found = events
    assert isinstance(lost, Reconnecting)
    assert (lost.attempt, lost.delay_s) == (1, 0.0)
    assert ("was lost." in lost.reason) is (code is None)
    assert (f"with code {code}." in lost.reason) is (code is not None)
    assert found == Reconnected(replace(STARTED, offset=7, recovered=True))
    assert session.started == replace(STARTED, offset=7, recovered=True)
    first = SessionStart(reads=["ja"], speaks="en", meeting="standup", name="Ana")
    assert starts == [first, replace(first, resume=Resume("s1", "e1", 7))]


@pytest.mark.parametrize("code", [1002, 1008, 1009, 4509, 4510, 4999])
async def test_an_end_is_an_end(code: int) -> None:
    visits = 0

    async def script(peer: Peer) -> None:
        nonlocal visits
        visits += 1
        await peer.start()
        await peer.leave(code, refused("session_replaced", "Another connection took over."))

    async with scripted_gateway(script) as url, connect_at_once(url) as session:
        with pytest.raises(SessionClosed, match="Another connection took over") as caught:
            await everything(session)
        with pytest.raises(SessionClosed):
            await anext(session)
        with pytest.raises(SessionClosed):
            await session.final("Anybody?")
    assert caught.value.code == code
    assert visits == 1


async def test_nobody_there_for_a_moment() -> None:
    """A proxy whose gateway restarts, then a gateway that closes at once, drains, and loads; then it is there."""

    async def script(peer: Peer) -> None:
        match peer.visit:
            case 1:
                await peer.start()
                await peer.leave(1012, refused("draining", "The gateway restarts; reconnect.", retry_after_ms=1))
            case 2:
                await peer.leave(1011)
            case 3:
                await peer.leave(4012, refused("draining", "Still leaving.", retry_after_ms=2))
            case 4:
                await peer.expect(SessionStart)
                await peer.say(refused("engine_unavailable", "Loading.", retry_after_ms=3))
                await peer.connection.wait_closed()
            case _:
                await peer.start()
                await peer.leave(1000)

    async with scripted_gateway(script, statuses=(503, 502)) as url, connect_at_once(url) as session:
        events = await everything(session)
    steps = [(each.attempt, each.delay_s, each.reason) for each in events if isinstance(each, Reconnecting)]
    address = url.replace("http:", "ws:")
    refusal = f"The server at {address} refused the stream with HTTP status {{}}; is it a gateway?"
    assert steps == [
        (1, 0.001, "The gateway closed the session: The gateway restarts; reconnect."),
        (2, 0.0, refusal.format(503)),
        (3, 0.0, refusal.format(502)),
        (4, 0.0, f"The gateway at {address} closed the session with code 1011."),
        (5, 0.002, "Still leaving."),
        (6, 0.003, "Loading."),
    ]
    assert kinds(events) == ["Error", *["Reconnecting"] * 6, "Reconnected"]


async def test_a_refusal_is_an_end() -> None:
    async def script(peer: Peer) -> None:
        if peer.visit == 1:
            await peer.start()
            peer.drop()
        await peer.leave(4509, refused("too_many_sessions", "This gateway is full."))

    async with scripted_gateway(script) as url, connect_at_once(url) as session:
        with pytest.raises(SessionRefused, match="This gateway is full"):
            await everything(session)
        with pytest.raises(SessionRefused):
            await session.final("Anybody?")


async def test_what_answers_is_no_gateway_any_more() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        peer.drop()

    async with scripted_gateway(script, statuses=(404,)) as url, connect_at_once(url) as session:
        with pytest.raises(GatewayUnreachable, match="HTTP status 404"):
            await everything(session)


@pytest.mark.parametrize(("code", "error"), [(4510, SessionClosed), (None, UnreadableMessage)])
async def test_an_answer_that_ends_it(code: int | None, error: type[ClientError]) -> None:
    async def script(peer: Peer) -> None:
        if peer.visit == 1:
            await peer.start()
            peer.drop()
        elif code is None:
            await peer.say(Pong())
            await peer.connection.wait_closed()
        else:
            await peer.leave(code)

    async with scripted_gateway(script) as url, connect_at_once(url) as session:
        with pytest.raises(error):
            await everything(session)


@asynccontextmanager
async def gateway_that_leaves() -> AsyncGenerator[tuple[str, Callable[[], object]], None]:
    """Its address, and what makes it go: connections are dropped and nothing listens any more."""
    peers: list[Peer] = []

    async def script(peer: Peer) -> None:
        peers.append(peer)
        await peer.start()
        await peer.connection.wait_closed()

    # The gateway's own port stays taken; it is the way to it that goes.
    async with scripted_gateway(script) as url:
        port = int(url.rpartition(":")[2])

        async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            there, back = await asyncio.open_connection("127.0.0.1", port)

            async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
                try:
                    while chunk := await source.read(65_536):
                        sink.write(chunk)
                except ConnectionError:
                    pass
                sink.close()

            await asyncio.gather(copy(reader, back), copy(there, writer))

        front = await asyncio.start_server(forward, "127.0.0.1", 0)

        def leave() -> None:
            front.close()
            for peer in peers:
                peer.drop()

        yield f"http://127.0.0.1:{front.sockets[0].getsockname()[1]}", leave
        front.close()


async def test_patience_ends() -> None:
    async with gateway_that_leaves() as (url, leave), connect_at_once(url, give_up_s=0.3) as session:
        leave()
        await session.final("Hello")
        events: list[SessionEvent] = []

        async def read() -> None:
            async for event in session:
                events.append(event)

        with pytest.raises(SessionClosed) as caught:
            await read()
        address = url.replace("http:", "ws:")
        nobody = f"No gateway answers at {address}: start one with `gateway serve`."
        assert str(caught.value) == (
            f"The connection to the gateway at {address} was lost. It could not be resumed: {nobody}"
        )
        assert set(kinds(events)) == {"Reconnecting"}
        assert isinstance(events[-1], Reconnecting)
        assert events[-1].reason == nobody
        assert [each.text for each in session.unacknowledged] == ["Hello"]
        with pytest.raises(SessionClosed):
            await session.final("Anybody?")


async def test_a_gateway_that_answers_nothing_ends_the_patience_too() -> None:
    async def script(peer: Peer) -> None:
        if peer.visit == 1:
            await peer.start()
            peer.drop()
        else:
            await peer.expect(SessionStart)
            await peer.connection.wait_closed()

    async with scripted_gateway(script) as url, connect_at_once(url, give_up_s=0.3) as session:
        with pytest.raises(SessionClosed, match=r"It could not be resumed: .* did not answer in time"):
            await everything(session)


@swiftly
async def test_a_gateway_that_stops_answering_is_lost() -> None:
    """As with SIGSTOP: the connection is open and nobody reads."""

    async def script(peer: Peer) -> None:
        await peer.start()
        if peer.visit == 1:
            peer.connection.transport.pause_reading()
            await peer.connection.wait_closed()
        await peer.leave(1000)

    async with (
        scripted_gateway(script) as url,
        connect_at_once(url, ping_interval_s=0.05, ping_timeout_s=0.05) as session,
    ):
        assert kinds(await everything(session)) == ["Reconnecting", "Reconnected"]


@swiftly
async def test_a_gateway_that_stops_reading_is_lost() -> None:
    """What is sent does not fit into the buffers between us, and a ping would have to wait behind it."""

    async def script(peer: Peer) -> None:
        await peer.start()
        if peer.visit == 1:
            peer.connection.transport.pause_reading()
            await peer.connection.wait_closed()
            return
        while isinstance(await peer.receive(), UtteranceFinal):
            pass

    limits = Limits(message_bytes=10**8, messages_per_s=10**6, messages_burst=10**6)

    async def roomy(peer: Peer) -> None:
        peer.start = functools.partial(peer.start, replace(STARTED, limits=limits))  # type: ignore[method-assign]
        await script(peer)

    async with (
        scripted_gateway(roomy) as url,
        connect_at_once(url, ping_interval_s=0.1, ping_timeout_s=0.1) as session,
    ):
        for _ in range(4):
            await session.final("a" * 4_000_000, None)
        assert kinds(await until(session, Reconnected)) == ["Reconnecting", "Reconnected"]


async def test_a_dropped_connection_is_resumed() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        if peer.visit == 1:
            await peer.connection.wait_closed()
        await peer.leave(1000)

    async with scripted_gateway(script) as url, connect_at_once(url) as session:
        await session.drop()
        assert kinds(await everything(session)) == ["Reconnecting", "Reconnected"]
        await session.drop()


# ---------------------------------------------------------------- finals


async def test_a_final_said_while_there_is_no_connection_arrives_once() -> None:
    received: list[UtteranceFinal] = []

    async def script(peer: Peer) -> None:
        await peer.start()
        if peer.visit == 1:
            peer.drop()
            return
        received.append(await peer.take())
        received.append(await peer.take())
        await peer.expect(SessionEnd)
        await peer.leave(1000)

    async with scripted_gateway(script) as url, connect_at_once(url) as session:
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


@pytest.mark.parametrize("recovered", [True, False])
async def test_what_was_not_acknowledged_is_sent_again_and_nothing_else(recovered: bool) -> None:
    received: list[list[UtteranceFinal]] = []

    async def script(peer: Peer) -> None:
        await peer.start(None if recovered or peer.visit == 1 else ANOTHER)
        received.append([await peer.expect(UtteranceFinal) for _ in range(3 if peer.visit == 1 else 2)])
        if peer.visit == 1:
            await peer.say(accepted(received[0][1]))
            await peer.expect(Ping)
            peer.drop()
            return
        for utterance in received[1]:
            await peer.say(accepted(utterance))
        await peer.expect(SessionEnd)
        await peer.leave(1000)

    async with scripted_gateway(script) as url, connect_at_once(url) as session:
        for number in range(3):
            await session.final(f"Text {number}")
        assert isinstance(await anext(session), UtteranceAccepted)
        await session.ping()
        await session.end()
        events = await everything(session)
    first, again = received
    assert again == [first[0], first[2]]
    assert kinds(events) == ["Reconnecting", "Reconnected", *["UtteranceAccepted"] * 2]
    assert session.started.recovered is recovered


async def test_what_was_said_before_goes_before_what_is_said_after() -> None:
    received: list[str] = []

    async def script(peer: Peer) -> None:
        await peer.start()
        if peer.visit == 1:
            await peer.expect(UtteranceFinal)
            peer.drop()
            return
        for _ in range(3):
            received.append((await peer.take()).text)
        await peer.leave(1000)

    async with scripted_gateway(script) as url, connect_at_once(url) as session:
        await session.final("sent")
        await until(session, Reconnecting)
        await session.final("kept")
        await until(session, Reconnected)
        await session.final("new")  # before anything else of this session is sent again
        await everything(session)
    assert received == ["sent", "kept", "new"]


async def test_a_refusal_for_the_moment_is_answered_with_patience_in_order() -> None:
    received: list[str] = []

    async def script(peer: Peer) -> None:
        await peer.start()
        one, two = await peer.expect(UtteranceFinal), await peer.expect(UtteranceFinal)
        await peer.say(
            refused("overloaded", "Full.", one.id, retry_after_ms=30),
            refused("rate_limited", "Too fast.", two.id, retry_after_ms=1),
        )
        for _ in range(3):
            received.append((await peer.take()).text)
        await peer.expect(SessionEnd)
        await peer.leave(1000)

    async with scripted_gateway(script) as url, connect_at_once(url) as session:
        await session.final("one")
        await session.final("two")
        first = await anext(session)
        assert isinstance(first, Error)
        assert first.code == "overloaded"
        await session.final("three")
        await session.end()
        assert kinds(await everything(session)) == ["Error", *["UtteranceAccepted"] * 3]
    assert received == ["one", "two", "three"]


async def test_a_final_kept_by_another_task_wakes_whoever_reads() -> None:
    """The reader waits for nothing when the final comes whose turn is later."""

    async def script(peer: Peer) -> None:
        await peer.start(replace(STARTED, limits=Limits(messages_per_s=20, messages_burst=2)))
        # Nothing is answered, which would wake it up as well, before all are there.
        finals = [await peer.expect(UtteranceFinal) for _ in range(4)]
        assert [final.text for final in finals] == ["0", "1", "2", "3"]
        await peer.leave(1000, *map(accepted, finals))

    async with scripted_gateway(script) as url, connect_at_once(url) as session, asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(everything(session))
        await asyncio.sleep(0)
        for number in range(4):
            await session.final(str(number))
        assert kinds(await reading) == ["UtteranceAccepted"] * 4


async def test_a_final_refused_for_good_is_forgotten() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        if peer.visit == 1:
            utterance = await peer.expect(UtteranceFinal)
            await peer.say(refused("limit_exceeded", "Too long.", utterance.id))
            await peer.expect(Ping)
            peer.drop()
            return
        await peer.expect(SessionEnd)
        await peer.leave(1000)

    async with scripted_gateway(script) as url, connect_at_once(url) as session:
        await session.final("long")
        assert isinstance(await anext(session), Error)
        assert len(session.unacknowledged) == 0
        await session.ping()
        await session.end()
        assert kinds(await everything(session)) == ["Reconnecting", "Reconnected"]


async def test_no_more_are_under_way_than_the_gateway_takes() -> None:
    async def script(peer: Peer) -> None:
        await peer.start(replace(STARTED, limits=Limits(utterances_in_flight=2)))
        one, two = await peer.expect(UtteranceFinal), await peer.expect(UtteranceFinal)
        await peer.expect(Ping)  # nothing in between: the third waits
        await peer.say(accepted(one), accepted(two))
        assert (await peer.take()).text == "three"
        await peer.leave(1000)

    async with scripted_gateway(script) as url, connect_at_once(url) as session:
        for text in ("one", "two", "three"):
            await session.final(text)
        await session.ping()
        assert kinds(await everything(session)) == ["UtteranceAccepted"] * 3


async def test_whoever_says_too_much_waits() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        for _ in range(3):
            await peer.take()
        await peer.leave(1000)

    async with (
        scripted_gateway(script) as url,
        connect_at_once(url, max_unacknowledged=2) as session,
        asyncio.TaskGroup() as tasks,
    ):
        await session.final("one")
        await session.final("two")
        third = tasks.create_task(session.final("three"))
        await asyncio.sleep(0)
        assert not third.done()
        assert len(await everything(session)) == 3
        await third


async def test_whoever_waits_to_say_something_learns_of_the_end() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        await peer.expect(UtteranceFinal)
        await peer.leave(4510)

    async with (
        scripted_gateway(script) as url,
        connect_at_once(url, max_unacknowledged=1) as session,
        asyncio.TaskGroup() as tasks,
    ):
        await session.final("one")

        async def say_more() -> None:
            with pytest.raises(SessionClosed):
                await session.final("two")

        tasks.create_task(say_more())
        with pytest.raises(SessionClosed):
            await everything(session)


async def test_nothing_is_said_to_a_gateway_that_leaves() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        if peer.visit == 1:
            await peer.say(SessionDraining(1_000))
            await peer.expect(Ping)  # and not a final
            await peer.leave(1012)
        else:
            assert (await peer.take()).text == "kept"
            await peer.leave(1000)

    async with scripted_gateway(script) as url, connect_at_once(url) as session:
        await anext(session)
        await session.final("kept")
        await session.ping()
        assert kinds(await everything(session)) == ["Reconnecting", "Reconnected", "UtteranceAccepted"]


async def test_a_cancelled_utterance() -> None:
    async def script(peer: Peer) -> None:
        await peer.start(replace(STARTED, limits=Limits(utterances_in_flight=1)))
        await peer.expect(UtteranceFinal)
        assert await peer.receive() == UtteranceCancel("sent")
        assert await peer.receive() == Ping()
        peer.drop()

    async with scripted_gateway(script) as url, connect_at_once(url) as session:
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
    """A final that was kept is sent, whatever becomes of whoever said it."""
    texts: list[str] = []

    async def script(peer: Peer) -> None:
        await peer.start()
        texts.append((await peer.take()).text)
        await peer.leave(1000)

    async with scripted_gateway(script) as url, connect_at_once(url) as session:
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


# ---------------------------------------------------------------- updates and the end


async def test_an_update_holds_when_the_session_is_resumed() -> None:
    starts: list[SessionStart] = []

    async def script(peer: Peer) -> None:
        starts.append(await peer.start())
        if peer.visit == 1:
            await peer.expect(SessionUpdate)
            await peer.say(SessionUpdated(["fr"], "en", "final"))
            assert (await peer.expect(SessionUpdate)).speaks == "de"
            peer.drop()
            return
        # The one that was not answered is sent again; so is the one made meanwhile.
        for speaks in ("de", "fr"):
            assert await peer.receive() == SessionUpdate(speaks=speaks)
            await peer.say(SessionUpdated(["fr"], speaks, "final"))
        await peer.leave(1000 if peer.visit == 3 else 4010)

    async with (
        scripted_gateway(script) as url,
        connect_at_once(url, speaks="en", stability="stable", context="Sales.") as session,
    ):
        await session.update(reads=["fr"], stability="final")
        await anext(session)
        await session.update(speaks="de")
        await until(session, Reconnecting)
        await session.update(speaks="fr")
        await until(session, Reconnected)
        assert kinds(await until(session, Reconnecting))[:2] == ["SessionUpdated"] * 2
        await until(session, Reconnected)
    changed = [(start.reads, start.speaks, start.stability) for start in starts]
    assert changed == [(["ja"], "en", "stable"), (["fr"], "en", "final"), (["fr"], "fr", "final")]
    assert {start.context for start in starts} == {"Sales."}


async def test_an_end_that_was_lost_is_said_again() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        await peer.expect(SessionEnd)
        if peer.visit == 1:
            peer.drop()
        else:
            await peer.leave(1000)

    async with scripted_gateway(script) as url, connect_at_once(url) as session:
        await session.end()
        assert kinds(await everything(session)) == ["Reconnecting", "Reconnected"]


# ---------------------------------------------------------------- publications


async def test_repeated_publications_do_not_reach_the_caller() -> None:
    hello = UtteranceFinal("a", 1, "Hello")

    async def script(peer: Peer) -> None:
        match peer.visit:
            case 1:
                await peer.start()
                await peer.say(said(hello, 1), translated(hello, "ja", "はい", offset=2))
                await peer.expect(Ping)
                peer.drop()
            case 2:
                await peer.start()
                await peer.say(translated(hello, "ja", "はい", offset=2), translated(hello, "fr", "Oui", offset=3))
                await peer.leave(4008)
            case _:
                start = await peer.expect(SessionStart)
                assert start.resume == Resume("s1", "e1", 3)
                await peer.say(ANOTHER)
                await peer.say(translated(hello, "fr", "Oui", offset=1), translated(hello, "de", "Ja", offset=2))
                await peer.leave(1000)

    async with scripted_gateway(script) as url, connect_at_once(url) as session:
        await until(session, TranslationFinal)
        await session.ping()
        events = await everything(session)
    assert [event.lang for event in events if isinstance(event, TranslationFinal)] == ["fr", "de"]
    assert session.position == Resume("s2", "e2", 2)


async def test_a_session_goes_on_in_another_process() -> None:
    async def script(peer: Peer) -> None:
        start = await peer.start()
        if peer.visit == 1:
            await peer.say(said(UtteranceFinal("a", 1, "Hello"), 5))
            await peer.connection.wait_closed()
            return
        assert start.resume == Resume("s1", "e1", 5)
        await peer.say(said(UtteranceFinal("a", 1, "Hello"), 5), said(UtteranceFinal("b", 1, "Next"), 6))
        assert await peer.take() == UtteranceFinal("mine", 4, "Unanswered")
        await peer.leave(1000)

    async with scripted_gateway(script) as url:
        async with connect_at_once(url) as before:
            await anext(before)
            await before.final("Unanswered", "mine", rev=4)
            position, kept = before.position, before.unacknowledged
            await before.drop()
        async with connect_at_once(url, resume=position) as after:
            assert after.started.recovered is True
            for final in kept:
                await after.send(final)
            events = await everything(after)
    assert kinds(events) == ["Caption", "UtteranceAccepted"]
    assert after.position == Resume("s1", "e1", 6)


# ---------------------------------------------------------------- leaving, cancelling


def connected_in(stage: str) -> AbstractAsyncContextManager[str]:
    """A gateway that drops a client and then keeps it waiting in some stage of its return."""

    async def script(peer: Peer) -> None:
        if peer.visit == 1:
            await peer.start()
            peer.drop()
            return
        await peer.expect(SessionStart)
        if stage == "the gateway answers late":
            await peer.connection.wait_closed()
        else:
            await peer.say(refused("draining", "Not now.", retry_after_ms=60_000))
            await peer.connection.wait_closed()

    return scripted_gateway(script)


STAGES = ["the gateway answers late", "the delay is long"]


@pytest.mark.parametrize("stage", STAGES)
async def test_leaving_while_reconnecting(stage: str) -> None:
    async with connected_in(stage) as url, asyncio.TaskGroup() as tasks:
        async with connect_at_once(url) as session:
            await until(session, Reconnecting)
            reading = tasks.create_task(everything(session))
            while session._alarm is None:
                await asyncio.sleep(0)
            if stage == "the delay is long":
                while session._outage is None or session._outage.attempt < 2:
                    await asyncio.sleep(0.005)
        assert set(kinds(await reading)) <= {"Reconnecting"}
    assert asyncio.all_tasks() == {asyncio.current_task()}
    gc.collect()


@pytest.mark.parametrize("stage", STAGES)
@swiftly
async def test_whoever_iterates_may_be_cancelled_while_reconnecting(stage: str) -> None:
    async with connected_in(stage) as url, connect_at_once(url) as session:
        await until(session, Reconnecting)
        for _ in range(2):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await everything(session)
        assert session._alarm is None
    gc.collect()


async def test_a_cancelled_iteration_goes_on_where_it_was() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        if peer.visit == 1:
            peer.drop()
            return
        await peer.expect(Ping)
        await peer.say(Pong("first"))
        await peer.leave(1000)

    async with scripted_gateway(script) as url, connect_at_once(url) as session:
        await until(session, Reconnecting)
        # Cancelled at every step that it takes to come back.
        for steps in range(400):
            reading = asyncio.ensure_future(anext(session))
            for _ in range(steps):
                await asyncio.sleep(0)
            if reading.done():
                break
            reading.cancel()
            await asyncio.wait([reading])
            if not reading.cancelled():
                break
        assert isinstance(reading.result(), Reconnected | Reconnecting)
        if isinstance(reading.result(), Reconnecting):
            await until(session, Reconnected)
        await session.ping()
        assert await everything(session) == [Pong("first")]


# ---------------------------------------------------------------- chaos


class Hall:
    """A gateway that keeps sessions and drops connections at random moments; it accepts a final once.

    accepted: id to text, in the order of acceptance. put_off: ids that were refused once, whether or not the
    client was still there to be told.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.accepted: dict[str, str] = {}
        self.put_off: set[str] = set()
        self.copies: dict[str, UtteranceFinal] = {}
        self.sessions = 0
        self.calm = False

    def unlucky(self, share: float) -> bool:
        return not self.calm and self.random.random() < share

    async def script(self, peer: Peer) -> None:
        start = await peer.expect(SessionStart)
        if self.unlucky(0.2):
            return peer.drop()
        if start.resume is None or self.unlucky(0.2):
            self.sessions += 1
            started: ServerMessage = replace(STARTED, session=f"s{self.sessions}", epoch=f"e{self.sessions}")
        else:
            started = resumed(start)
        await peer.say(started)
        while True:
            match await peer.receive():
                case UtteranceFinal() as final:
                    assert self.copies.setdefault(final.id, final) == final
                    if self.unlucky(0.1):
                        return peer.drop()
                    if final.id not in self.accepted and self.unlucky(0.1):
                        self.put_off.add(final.id)
                        await peer.say(refused("overloaded", "Full.", final.id, retry_after_ms=1))
                        continue
                    self.accepted.setdefault(final.id, final.text)
                    if self.unlucky(0.1):
                        return peer.drop()
                    await peer.say(accepted(final))
                    if self.unlucky(0.1):
                        return peer.drop()  # the answer is on its way, and arrives or does not
                case SessionEnd():
                    return await peer.leave(1000)
                case _:
                    pass


@pytest.mark.parametrize("seed", range(12))
async def test_order_under_chaos(seed: int) -> None:
    """Every final is accepted; in order, but for what was under way when an older one was put off."""
    hall = Hall(seed)
    acknowledged: list[str] = []

    async with scripted_gateway(hall.script) as url:
        # The first connect has no second chance.
        hall.calm = True
        async with connect_at_once(url, give_up_s=60) as session, asyncio.TaskGroup() as tasks:
            hall.calm = False

            async def say() -> None:
                for number in range(60):
                    await session.final(f"text {number}", str(number))
                    if hall.random.random() < 0.3:
                        await asyncio.sleep(hall.random.random() / 100)
                hall.calm = True
                await session.end()

            tasks.create_task(say())
            async for event in session:
                if isinstance(event, UtteranceAccepted):
                    acknowledged.append(event.id)
            assert len(session.unacknowledged) == 0
    assert hall.accepted == {str(number): f"text {number}" for number in range(60)}
    assert set(acknowledged) == set(hall.accepted)
    in_order = [int(id) for id in hall.accepted if id not in hall.put_off]
    assert in_order == sorted(in_order)
