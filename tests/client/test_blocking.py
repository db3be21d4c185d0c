"""The client without asyncio: the same session, whose calls wait."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable

import pytest

from gateway.client import ClientSession, NotAuthorized, Reconnected, Reconnecting, SessionRefused
from gateway.client import connect as connect_async
from gateway.client.blocking import BlockingSession, connect
from gateway.protocol.messages import TranslationFinal, UtteranceAccepted
from tests.client.reading import AT_ONCE
from tests.scripted_gateway import Peer, refused, scripted_gateway, translated


async def run(program: Callable[[], object]) -> object:
    """A program without asyncio, beside the gateway that the test plays."""
    return await asyncio.to_thread(program)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "gateway-client"]


async def test_what_is_said_comes_back_and_the_iteration_ends() -> None:
    async def play(peer: Peer) -> None:
        start = await peer.start()
        assert (start.speaks, start.reads, start.glossary) == ("en", ["ja"], {"ja": {"launch": "発売"}})
        await peer.say(translated(await peer.take(), "ja", "[ja] Hello."))
        await peer.end()

    async with scripted_gateway(play) as url:

        def program() -> list[object]:
            with connect(url, speaks="en", reads=["ja"], glossary={"ja": {"launch": "発売"}}) as session:
                assert session.started.languages[0] == "en"
                id = session.final("Hello.")
                assert [final.id for final in session.unacknowledged] == [id]
                session.end()
                return [type(event) for event in session]

        assert await run(program) == [UtteranceAccepted, TranslationFinal]
    assert threads() == []


async def test_timed_out_receive_loses_nothing() -> None:
    may_translate = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def play(peer: Peer) -> None:
        await peer.start()
        utterance = await peer.take()
        await may_translate.wait()
        await peer.leave(1000, translated(utterance, "ja", "[ja] Hello."))

    async with scripted_gateway(play) as url:

        def program() -> object:
            with connect(url, reads=["ja"]) as session:
                session.final("Hello.", lang="en")
                assert isinstance(session.receive(), UtteranceAccepted)
                with pytest.raises(TimeoutError):
                    session.receive(timeout_s=0)
                loop.call_soon_threadsafe(may_translate.set)
                event = session.receive()
                assert isinstance(event, TranslationFinal)
                assert session.receive() is None
                return event.text

        assert await run(program) == "[ja] Hello."


async def test_a_loop_over_lines_may_be_closed_after_its_session() -> None:
    async def play(peer: Peer) -> None:
        await peer.start()
        await peer.say(translated(await peer.take(), "ja", "[ja] Hello."))
        await peer.end()

    async with scripted_gateway(play) as url:

        def program() -> str:
            with connect(url, reads=["ja"]) as session:
                session.final("Hello.")
                session.end()
                finals = session.finals()
                line = next(finals)
            finals.close()
            return str(line)

        assert await run(program) == "[ja] Hello."


async def test_resumed_session_and_another_thread() -> None:
    async def play(peer: Peer) -> None:
        start = await peer.start()
        if peer.visit == 1:
            await peer.take()
            peer.drop()
            return
        assert start.resume is not None
        await peer.take()
        await peer.end()

    async with scripted_gateway(play) as url:

        def program() -> list[object]:
            with connect(url, reads=["ja"], speaks="en", reconnect=AT_ONCE) as session:
                session.final("One.")
                seen: list[object] = []
                for event in session:
                    seen.append(type(event))
                    if isinstance(event, Reconnected):

                        def speak() -> None:
                            session.final("Two.")
                            session.end()

                        speaker = threading.Thread(target=speak)
                        speaker.start()
                        speaker.join()
                return seen

        seen = await run(program)
    assert isinstance(seen, list)
    assert [kind for kind in seen if kind is not UtteranceAccepted] == [Reconnecting, Reconnected]


async def test_errors_leave_nothing_behind() -> None:
    async def play(peer: Peer) -> None:
        await peer.receive()
        await peer.leave(4501, refused("forbidden", "Not in this meeting."))

    async with scripted_gateway(play) as url:

        def program() -> None:
            with pytest.raises(NotAuthorized, match="Not in this meeting"), connect(url, reads=["ja"]):
                pytest.fail("there is no session")

        await run(program)
    assert issubclass(NotAuthorized, SessionRefused)
    assert threads() == []


async def test_a_function_for_tokens_may_wait() -> None:
    """It runs in a thread of its own: while it waits, the session goes on."""
    given: list[str | None] = []

    async def play(peer: Peer) -> None:
        assert peer.connection.request is not None
        given.append(peer.connection.request.headers.get("Authorization"))
        await peer.start()
        await peer.end()

    asked: list[str] = []

    def token() -> str:
        asked.append(threading.current_thread().name)
        return "secret"

    async with scripted_gateway(play) as url:

        def program() -> None:
            with connect(url, reads=["ja"], token=token) as session:
                session.end()
                assert list(session) == []

        await run(program)
    assert given == ["Bearer secret"]
    assert asked != ["gateway-client"]


def test_blocking_client_mirrors_the_async_one() -> None:
    assert inspect.signature(connect).parameters == inspect.signature(connect_async).parameters
    public = {name for name in vars(ClientSession) if not name.startswith("_")} - {"close"}
    assert public | {"receive"} == {name for name in vars(BlockingSession) if not name.startswith("_")}
    for name in ("final", "partial", "update"):
        assert inspect.signature(getattr(BlockingSession, name)) == inspect.signature(getattr(ClientSession, name))
