"""A session over several connections, against a gateway that plays transcripts and drops its clients."""

from __future__ import annotations

import asyncio
import gc
import random
from contextlib import AbstractAsyncContextManager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.client import (
    ClientError,
    GatewayUnreachable,
    Reconnected,
    Reconnecting,
    SessionClosed,
    SessionRefused,
    UnreadableMessage,
)
from gateway.client.reconnecting import RESTART_CAP_S, Outage, Reconnect, may_reconnect
from gateway.domain.close_codes import CloseCode
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Ping,
    Pong,
    ServerMessage,
    SessionEnd,
    SessionStart,
    UtteranceAccepted,
    UtteranceFinal,
)
from tests.client.reading import connect_at_once, everything, kinds, session_of, until
from tests.clocks import swiftly
from tests.scripted_gateway import STARTED, Peer, accepted, refused, resumed, scripted_gateway

# ---------------------------------------------------------------- losing and finding


@pytest.mark.parametrize(("reason", "code"), [("meeting_ended", 4505), ("meeting_ended", 1012), ("removed", 1012)])
async def test_end_for_everyone_or_for_one_ends_the_session(reason: str, code: int) -> None:
    """Also where a proxy closes with a code of its own."""

    async def script(peer: Peer) -> None:
        assert peer.visit == 1
        await peer.start()
        await peer.leave(code, refused(reason, "The host says so."))

    async with session_of(script) as session:
        with pytest.raises(SessionClosed) as closed:
            await everything(session)
    assert closed.value.error is not None
    assert closed.value.error.code == reason


async def test_outage_has_reasons_and_delays() -> None:
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


FULL = refused("too_many_sessions", "This gateway is full.")


@pytest.mark.parametrize(
    ("statuses", "answer", "code", "error"),
    [
        ((404,), None, 0, GatewayUnreachable),
        ((), FULL, 4509, SessionRefused),
        ((), None, 4510, SessionClosed),
        ((), Pong(), 4510, UnreadableMessage),
    ],
)
async def test_an_answer_that_ends_it(
    statuses: tuple[int, ...], answer: ServerMessage | None, code: int, error: type[ClientError]
) -> None:
    async def script(peer: Peer) -> None:
        if peer.visit == 1:
            await peer.start()
            peer.drop()
        else:
            await peer.leave(code, *([] if answer is None else [answer]))

    async with session_of(script, statuses=statuses) as session:
        for _ in range(2):
            with pytest.raises(error):
                await everything(session)
        with pytest.raises(error):
            await session.final("Anybody?")


@pytest.mark.parametrize(
    ("statuses", "reason"), [((503,) * 999, "with HTTP status 503"), ((), "did not answer in time")]
)
@swiftly
async def test_patience_ends(statuses: tuple[int, ...], reason: str) -> None:
    async def script(peer: Peer) -> None:
        if peer.visit == 1:
            await peer.start()
            peer.drop()
        else:
            await peer.expect(SessionStart)
            await peer.connection.wait_closed()

    async with session_of(script, statuses=statuses, reconnect=Reconnect(jitter=lambda: 1.0)) as session:
        await session.final("Hello")
        with pytest.raises(SessionClosed, match=rf"was lost\. It could not be resumed: .* {reason}"):
            await everything(session)
        assert [each.text for each in session.unacknowledged] == ["Hello"]
        with pytest.raises(SessionClosed):
            await session.final("Anybody?")


@swiftly
async def test_a_gateway_that_stops_answering_is_lost() -> None:
    """As with SIGSTOP: the connection is open and nobody reads."""

    async def script(peer: Peer) -> None:
        await peer.start()
        if peer.visit == 1:
            peer.connection.transport.pause_reading()
            await peer.connection.wait_closed()
        await peer.leave(1000)

    async with session_of(script, ping_interval_s=0.05, ping_timeout_s=0.05) as session:
        assert kinds(await everything(session)) == ["Reconnecting", "Reconnected"]


@swiftly
async def test_a_gateway_that_stops_reading_is_lost() -> None:
    """What is sent does not fit into the buffers between us, and a ping would have to wait behind it."""

    limits = Limits(message_bytes=10**8, messages_per_s=10**6, messages_burst=10**6)

    async def script(peer: Peer) -> None:
        await peer.start(replace(STARTED, limits=limits))
        if peer.visit == 1:
            peer.connection.transport.pause_reading()
            await peer.connection.wait_closed()
            return
        while isinstance(await peer.receive(), UtteranceFinal):
            pass

    async with session_of(script, ping_interval_s=0.1, ping_timeout_s=0.1) as session:
        for _ in range(4):
            await session.final("a" * 4_000_000, None)
        assert kinds(await until(session, Reconnected)) == ["Reconnecting", "Reconnected"]


# ---------------------------------------------------------------- leaving, cancelling


def connected_in(stage: str) -> AbstractAsyncContextManager[str]:
    """A gateway that drops a client and then keeps it waiting in some stage of its return."""

    async def script(peer: Peer) -> None:
        if peer.visit == 1:
            await peer.start()
            peer.drop()
            return
        await peer.expect(SessionStart)
        if stage == "the delay is long":
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
async def test_iteration_can_be_cancelled_while_reconnecting(stage: str) -> None:
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

    async with session_of(script) as session:
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
        async with (
            connect_at_once(url, reconnect=Reconnect(give_up_s=60, jitter=lambda: 0.0)) as session,
            asyncio.TaskGroup() as tasks,
        ):
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


# ---------------------------------------------------------------- when to reconnect


def test_which_closes_are_the_end() -> None:
    lost = [None, 1001, 1005, 1006, 1011, 1012, 1013, 4000, 4008, 4010, 4012, 4499]
    over = [1000, 1002, 1003, 1007, 1008, 1009, 3000, 4500, 4509, 4510, 4999, 5000]
    assert [code for code in (*lost, *over) if may_reconnect(code)] == lost


BASE_S, CAP_S = Reconnect().first_s, Reconnect().most_s


def outage(
    code: int | None = None,
    *,
    give_up_s: float = 1e9,
    earlier: int = 0,
    jitter: float = 1.0,
    first_s: float = 0.25,
    most_s: float = 15.0,
) -> Outage:
    policy = Reconnect(first_s=first_s, most_s=most_s, give_up_s=give_up_s, jitter=lambda: jitter)
    return Outage(SessionClosed("ws://x", code, None), 0.0, policy, earlier)


def delays(out: Outage, count: int) -> list[float | None]:
    return [out.announce(0.0) for _ in range(count)]


def test_the_cap_of_the_delay_doubles() -> None:
    assert delays(outage(), 8) == [BASE_S, 0.5, 1.0, 2.0, 4.0, 8.0, CAP_S, CAP_S]
    assert delays(outage(CloseCode.RESTART), 7)[4:] == [4.0, RESTART_CAP_S, RESTART_CAP_S]
    assert delays(outage(earlier=3), 2) == [2.0, 4.0]


@given(st.integers(0, 3_000), st.floats(0.0, 1.0))
def test_the_delay_is_bounded_and_may_be_anything_below(attempts: int, jitter: float) -> None:
    (delay_s,) = delays(outage(earlier=attempts, jitter=jitter), 1)
    assert delay_s is not None
    assert 0.0 <= delay_s == jitter * min(CAP_S, BASE_S * 2.0 ** min(attempts, 16))


def test_the_policy_has_bounds_of_its_own() -> None:
    assert delays(outage(first_s=1.0, most_s=3.0), 3) == [1.0, 2.0, 3.0]
    assert delays(outage(CloseCode.RESTART, first_s=1.0, most_s=3.0), 3) == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(("first_s", "most_s", "give_up_s"), [(0.0, 3.0, 1.0), (9.0, 3.0, 1.0), (1.0, 3.0, -1.0)])
def test_a_policy_that_cannot_be(first_s: float, most_s: float, give_up_s: float) -> None:
    with pytest.raises(ValueError, match="first_s"):
        Reconnect(first_s=first_s, most_s=most_s, give_up_s=give_up_s)


def test_what_the_gateway_asks_for_is_waited_on_top() -> None:
    closed = SessionClosed("ws://x", 1012, refused("draining", "Restarting.", retry_after_ms=1_000))
    out = Outage(closed, 0.0, Reconnect(give_up_s=1e9, jitter=lambda: 1.0))
    assert delays(out, 1) == [1.0 + BASE_S]
    out.failed("No gateway answers.")
    assert delays(out, 1) == [0.5]
    out.failed("Loading.", refused("engine_unavailable", "Loading.", retry_after_ms=2_000))
    assert out.reason == "Loading."
    assert delays(out, 1) == [3.0]


def test_a_gateway_that_says_it_drains_is_back_soon() -> None:
    out = outage(earlier=9)
    assert delays(out, 1) == [CAP_S]
    out.failed("Draining.", refused("draining", "Draining."))
    assert delays(out, 1) == [RESTART_CAP_S]


def test_the_patience_of_an_outage_ends() -> None:
    out = outage(give_up_s=3.0, earlier=9)
    assert out.announce(1.0) == 2.0
    assert out.attempt_at_s == 3.0
    out.failed("No gateway answers at ws://x.")
    assert out.attempt_at_s is None
    assert out.announce(3.0) is None
    assert str(out.gave_up()) == (
        "The connection to the gateway at ws://x was lost. It could not be resumed: No gateway answers at ws://x."
    )
