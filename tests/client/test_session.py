"""The client against a gateway that plays transcripts: what it sends, what it makes of the answers."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from gateway.client import (
    ClientError,
    EngineNotReady,
    GatewayUnreachable,
    Reconnected,
    Reconnecting,
    SessionClosed,
    SessionRefused,
    UnreadableMessage,
    connect,
)
from gateway.protocol.codec import JSON, MSGPACK, Codec
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    ClientMessage,
    LanguagesChanged,
    Ping,
    Pong,
    ServerMessage,
    SessionEnd,
    SessionStart,
    SessionUpdate,
    UtteranceAccepted,
    UtteranceCancel,
    UtteranceFinal,
    UtterancePartial,
)
from tests.client.reading import everything, kinds, session_of, until
from tests.clocks import swiftly
from tests.scripted_gateway import STARTED, Peer, accepted, refused, scripted_gateway, silent, translated

# ---------------------------------------------------------------- starting


@pytest.mark.parametrize("codec", [JSON, MSGPACK], ids=["json", "msgpack"])
async def test_a_session_starts_with_what_it_was_given(codec: Codec) -> None:
    seen: list[SessionStart] = []

    async def script(peer: Peer) -> None:
        assert peer.codec is codec
        # Compression is offered nowhere.
        request = peer.connection.request
        assert request is not None
        assert "Sec-WebSocket-Extensions" not in request.headers
        seen.append(await peer.start())
        await peer.leave(1000)

    async with session_of(script, reads=("ja", "de"), speaks="en", name="Ada", codec=codec) as session:
        assert session.started == STARTED
        assert await everything(session) == []
    assert seen == [SessionStart(reads=["ja", "de"], speaks="en", name="Ada")]


async def test_rate_limited_start_waits_or_fails() -> None:
    async def script(peer: Peer) -> None:
        await peer.expect(SessionStart)
        await peer.say(refused("rate_limited", "Too often.", retry_after_ms=1))
        await peer.start()
        await peer.connection.wait_closed()

    async with session_of(script) as session:
        assert session.started.session == "s1"

    async def full(peer: Peer) -> None:
        await peer.expect(SessionStart)
        await peer.say(refused("rate_limited", "Too often.", retry_after_ms=60_000))
        await peer.connection.wait_closed()

    async with scripted_gateway(full) as url:
        with pytest.raises(SessionRefused, match="Too often"):
            async with connect(url, reads=["ja"], ready_timeout_s=0.5):
                pass


@swiftly
async def test_the_wait_for_an_engine_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "gateway.client")

    async def script(peer: Peer) -> None:
        for _ in range(2):
            await peer.expect(SessionStart)
            await peer.say(refused("engine_unavailable", "Loading.", retry_after_ms=1))
        await peer.start()
        await peer.leave(1000)

    async with session_of(script) as session:
        await everything(session)
    async with session_of(script, on_waiting=lambda _: None) as session:
        await everything(session)
    assert [record.getMessage() for record in caplog.records] == ["Loading. Waiting for it, for 300 s at most."]


@swiftly
async def test_the_wait_for_an_engine_ends() -> None:
    async def script(peer: Peer) -> None:
        await peer.expect(SessionStart)
        await peer.say(refused("engine_unavailable", "Loading.", retry_after_ms=2_000))
        await peer.connection.wait_closed()

    async with scripted_gateway(script) as url:
        with pytest.raises(EngineNotReady, match=r"is not ready after 0\.5 s\.$"):
            async with connect(url, reads=["ja"], ready_timeout_s=0.5):
                pass
        with pytest.raises(EngineNotReady, match=r"is still loading\.$"):
            async with connect(url, reads=["ja"], ready_timeout_s=0):
                pass


@pytest.mark.parametrize(
    ("answer", "code", "error", "why"),
    [
        (
            refused("unsupported_language", "It does not know 'xx'."),
            None,
            SessionRefused,
            r"^It does not know 'xx'\.$",
        ),
        (refused("too_many_sessions", "It is full."), 4509, SessionRefused, r"^It is full\.$"),
        (None, 1011, SessionClosed, "closed the session with code 1011"),
        (Pong(), None, UnreadableMessage, "answered the start with something else"),
    ],
)
async def test_an_answer_that_is_no_session(
    answer: ServerMessage | None, code: int | None, error: type[ClientError], why: str
) -> None:
    async def script(peer: Peer) -> None:
        await peer.expect(SessionStart)
        if answer is not None:
            await peer.say(answer)
        await (peer.connection.wait_closed() if code is None else peer.connection.close(code))

    async with scripted_gateway(script) as url:
        with pytest.raises(error, match=why):
            async with connect(url, reads=["xx"]):
                pass


@swiftly
async def test_a_gateway_that_never_answers_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.client.connection._ANSWER_S", 0.2)

    async def script(peer: Peer) -> None:
        await peer.connection.wait_closed()

    async with scripted_gateway(script) as url:
        with pytest.raises(GatewayUnreachable, match=r"did not start a session within 0\.2 s"):
            async with connect(url, reads=["ja"]):
                pass


# ---------------------------------------------------------------- a session


async def test_revisions_grow_until_the_gateway_accepts_the_final_one() -> None:
    seen: list[object] = []

    async def script(peer: Peer) -> None:
        await peer.start()
        seen.extend([await peer.receive(), await peer.receive(), message := await peer.take()])
        await peer.say(translated(message, "ja", "はい"))
        seen.extend([await peer.receive(), await peer.receive()])
        await peer.leave(1000)

    async with session_of(script) as session:
        assert await session.partial("good", "1", lang="en") == "1"
        assert await session.partial("good morning", "1", start_ms=0, end_ms=900) == "1"
        assert await session.final("Good morning.", "1") == "1"
        assert await session.final("Good morning.", "1") == "1"  # it is on its way already
        assert isinstance(await anext(session), UtteranceAccepted)
        assert await session.final("Let us start.", "2") == "2"
        assert await session.final("A late one.", "1", rev=9) == "1"
        assert len(await everything(session)) == 1
    assert seen == [
        UtterancePartial("1", 1, "good", "en"),
        UtterancePartial("1", 2, "good morning", None, 0, 900),
        UtteranceFinal("1", 3, "Good morning."),
        UtteranceFinal("2", 1, "Let us start."),
        UtteranceFinal("1", 9, "A late one."),
    ]


async def test_unchanged_partials_are_not_sent() -> None:
    seen: list[object] = []

    async def script(peer: Peer) -> None:
        await peer.start()
        if peer.visit == 1:
            seen.extend([await peer.receive() for _ in range(4)])
            peer.drop()
            return
        seen.extend([await peer.receive(), await peer.receive(), await peer.take()])
        await peer.leave(1000)

    async with session_of(script) as session:
        assert await session.final(" \n") != ""  # nothing was begun
        for _ in range(3):
            await session.partial("we", "1", start_ms=0.6, end_ms=2.0)
        await session.final("", "1")
        await session.partial("we", "1", start_ms=-1, end_ms=2)
        assert await session.partial("good \ud83d", "2\ude00", start_ms=3, end_ms=1) == "2\ufffd"
        async for event in session:
            if isinstance(event, Reconnecting):
                await session.cancel("1")
            if isinstance(event, Reconnected):
                break
        await session.partial("good \ud83d", "2\ude00")
        await session.final("\ud83d\ude00 fine.", "2\ude00", start_ms=float("nan"))
        await everything(session)
    assert seen == [
        UtterancePartial("1", 1, "we", None, 1, 2),
        UtteranceCancel("1"),
        UtterancePartial("1", 2, "we"),
        UtterancePartial("2\ufffd", 1, "good \ufffd"),
        UtterancePartial("2\ufffd", 2, "good \ufffd"),
        UtteranceCancel("1"),
        UtteranceFinal("2\ufffd", 3, "😀 fine."),
    ]


async def test_ids_are_short_and_not_those_of_another_process() -> None:
    ids = []
    async with scripted_gateway(silent) as url:
        for _ in range(2):
            async with connect(url, reads=["ja"]) as session:
                ids.append([await session.final("Yes."), await session.final("No.")])
    for first, second in ids:
        assert re.fullmatch(r"[2-9a-z]{4}-1", first)
        assert second == first.replace("-1", "-2")
    assert ids[0] != ids[1]


async def test_what_the_gateway_would_not_read_is_not_sent() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        assert await peer.receive() == Ping()
        await peer.leave(1000)

    async with session_of(script) as session:
        with pytest.raises(ValueError, match=r"^The message has \d+ bytes; the gateway takes 65536\.$"):
            await session.final("あ" * 30_000)
        with pytest.raises(ValueError, match="the gateway takes 65536"):
            await session.partial("a" * 70_000)
        await session.ping()
        assert session.unacknowledged == ()
        assert await everything(session) == []


async def test_any_message_may_be_sent_as_one() -> None:
    final = UtteranceFinal("1", 1, "Yes.")
    others: list[ClientMessage] = [SessionUpdate(context="Sales."), Ping("n"), UtteranceCancel("1")]

    async def script(peer: Peer) -> None:
        await peer.start()
        assert await peer.take() == final
        assert [await peer.receive() for _ in others] == others
        assert await peer.receive() == SessionEnd()
        await peer.leave(1000)

    async with session_of(script) as session:
        for message in (final, *others, SessionEnd()):
            await session.send(message)
        assert session.unacknowledged == (final,)
        assert len(await everything(session)) == 1
        assert len(session.unacknowledged) == 0


async def test_one_task_at_a_time_iterates() -> None:
    async with session_of(silent) as session:
        first = asyncio.ensure_future(anext(session))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="one task at a time"):
            await anext(session)
        first.cancel()
        await asyncio.wait([first])


async def test_what_cannot_be_read_is_named() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        await peer.connection.send('{"type":"pong","nonce":1}')
        await peer.connection.wait_closed()

    async with session_of(script) as session:
        with pytest.raises(UnreadableMessage, match="nonce"):
            await everything(session)


# ---------------------------------------------------------------- endings


@pytest.mark.parametrize(
    ("last_words", "why"),
    [
        ([Pong(), refused("slow_reader", "Reconnect.")], r"^The gateway closed the session: Reconnect\.$"),
        ([refused("stale_revision", "Old."), Pong()], r"^The gateway at ws://\S+ closed .* with code 4008\.$"),
    ],
)
async def test_only_the_last_error_explains_a_close(last_words: list[ServerMessage], why: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        await peer.leave(4008, *last_words)

    async with session_of(script, reconnect=None) as session:
        with pytest.raises(SessionClosed, match=why) as caught:
            await everything(session)
        with pytest.raises(SessionClosed):
            await session.final("Anybody?")
    assert (caught.value.code, caught.value.error) == (4008, last_words[1] if last_words[0] == Pong() else None)


async def test_leaving_the_context_closes_the_connection() -> None:
    left = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.start()
        await peer.connection.wait_closed()
        left.set()

    async with scripted_gateway(script) as url:
        with pytest.raises(ZeroDivisionError):
            async with connect(url, reads=["ja"]) as session:
                raise ZeroDivisionError
        await left.wait()
        assert await everything(session) == []
        with pytest.raises(SessionClosed, match="code 1000"):
            await session.final("Anybody?")
        with pytest.raises(SessionClosed):
            await session.ping()


async def test_leaving_while_another_task_iterates_ends_its_iteration() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        await peer.say(Pong("here"))
        await peer.connection.wait_closed()

    async with scripted_gateway(script) as url, asyncio.TaskGroup() as tasks:
        async with connect(url, reads=["ja"]) as session:
            assert await anext(session) == Pong("here")
            reading = tasks.create_task(everything(session))
            await asyncio.sleep(0)
        assert await reading == []


async def test_a_string_is_no_list_of_languages() -> None:
    with pytest.raises(TypeError, match="list of languages"):
        async with connect("http://127.0.0.1:9", reads="ja"):
            pass


async def test_the_session_knows_what_is_translated_now() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        await peer.say(LanguagesChanged(["en", "ko"], ["glossary"], {"en": ["ko"]}))
        await peer.leave(1000)

    async with session_of(script) as session:
        [changed] = await everything(session)
        assert isinstance(changed, LanguagesChanged)
        now = session.started
        assert (now.languages, now.options, now.targets) == (["en", "ko"], ["glossary"], {"en": ["ko"]})
        assert now.limits == STARTED.limits


# ---------------------------------------------------------------- sending in turn


async def test_final_without_connection_arrives_once() -> None:
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
        connection = session._connection
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


@pytest.mark.parametrize(
    "codec", ["msgpack", msgspec.msgpack, Codec("other.v1", "JSON", msgspec.json, binary=False)]
)
async def test_codec_that_can_never_open_is_refused(codec: Any) -> None:
    with pytest.raises(TypeError, match="codec is JSON or MSGPACK"):
        async with connect("http://127.0.0.1:1", reads=(), codec=codec):
            pass
