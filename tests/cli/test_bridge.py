"""`gateway bridge`: what a recogniser hears is said in a meeting, from a pipe or from its WebSocket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from gateway.protocol.messages import (
    Error,
    SessionEnd,
    SessionStart,
    UtteranceAccepted,
    UtteranceCancel,
    UtteranceFinal,
    UtterancePartial,
)
from tests.cli.commands import run
from tests.cli.meetings import command, started
from tests.scripted_gateway import Peer, scripted_gateway

Heard = list[tuple[Any, ...]]


def taking(heard: Heard) -> Callable[[Peer], Awaitable[None]]:
    """A gateway that notes what is said, and refuses what is called secret."""

    async def script(peer: Peer) -> None:
        start = await peer.expect(SessionStart)
        heard.append((start.speaks, start.meeting, start.name))
        await peer.say(started())
        while not isinstance(message := await peer.receive(), SessionEnd):
            match message:
                case UtterancePartial(id=id, text=text):
                    heard.append(("partial", id, text))
                case UtteranceFinal(id=id, text="secret"):
                    await peer.say(Error("limit_exceeded", "No.", utterance=id))
                case UtteranceFinal(id=id, rev=rev, text=text, start_ms=start_ms, end_ms=end_ms):
                    heard.append(("final", id, text, start_ms, end_ms))
                    await peer.say(UtteranceAccepted(id, rev, len(heard)))
                case UtteranceCancel(id=id):
                    heard.append(("cancel", id))
        await peer.leave(1000)

    return script


async def test_lines_of_a_recogniser_are_said() -> None:
    heard: Heard = []
    lines = [
        "INFO: the model is loaded",
        "[1, 2]",
        '{"partial": "good"}',
        '{"partial": "good"}',
        '{"partial": "good morning"}',
        '{"text": "good morning", "result": [{"start": 0.4, "end": 1.25}]}',
        '{"partial": "the"}',
        '{"text": ""}',
        '{"text": "secret"}',
        '{"alternatives": 7}',
        '{"partial": "that is all"}',
    ]
    async with scripted_gateway(taking(heard)) as url:
        argv = ["bridge", "--meeting", "standup", "--lang", "de-AT", "--name", "Ana", "--url", url]
        ran = await run(*argv, stdin="\n".join(lines))
    assert ran == (
        3,
        "",
        "gateway: This is not a recogniser's result: INFO: the model is loaded\n"
        "✓ good morning\ngateway: utterance u3: No.\n✓ that is all\n"
        "gateway: 3 said, 2 accepted, 1 refused.\n",
    )
    assert heard == [
        ("de", "standup", "Ana"),
        ("partial", "u1", "good"),
        ("partial", "u1", "good morning"),
        ("final", "u1", "good morning", 400, 1250),
        ("partial", "u2", "the"),
        ("cancel", "u2"),
        ("partial", "u4", "that is all"),
        ("final", "u4", "that is all", None, None),
    ]


# ---------------------------------------------------------------- a recogniser that is a WebSocket server


@asynccontextmanager
async def recogniser(listen: Callable[[ServerConnection], Awaitable[None]]) -> AsyncGenerator[str, None]:
    async with serve(listen, "127.0.0.1", 0) as server:
        (socket,) = server.sockets
        yield f"ws://127.0.0.1:{socket.getsockname()[1]}"


async def vosk(connection: ServerConnection) -> None:
    config = json.loads(await connection.recv())
    audio = 0
    while isinstance(message := await connection.recv(), bytes):
        audio += len(message)
    await connection.send(json.dumps({"text": f"{audio} bytes at {config['config']['sample_rate']}"}))


async def test_audio_goes_to_a_recogniser_and_words_come_back() -> None:
    heard: Heard = []
    async with scripted_gateway(taking(heard)) as url, recogniser(vosk) as ears:
        argv = ["bridge", "--meeting", "m", "--url", url, "--recogniser", ears, "--sample-rate", "16000"]
        ran = await run(*argv, stdin="x" * 5_000)
    assert ran == (0, "", "✓ 5000 bytes at 16000\ngateway: 1 said, 1 accepted, 0 refused.\n")


async def test_a_lost_recogniser_comes_back_to_the_sentence() -> None:
    heard: Heard = []
    visits = 0

    async def listen(connection: ServerConnection) -> None:
        nonlocal visits
        visits += 1
        if visits == 1:
            await connection.send('{"partial": "we\'re running out of"}')
            while len(heard) < 2:
                await asyncio.sleep(0.01)
            connection.transport.abort()
            return
        await connection.send('{"text": "time"}')
        await connection.close()

    async with (
        scripted_gateway(taking(heard)) as url,
        recogniser(listen) as ears,
        command("bridge", "--meeting", "m", "--url", url, "--recogniser", ears) as process,
    ):
        assert process.stderr is not None
        err = (await process.stderr.read()).decode()
        assert await process.wait() == 0
    assert err == (
        "gateway: The recogniser was lost, and is back.\n"
        "✓ we're running out of time\n"
        "gateway: 1 said, 1 accepted, 0 refused.\n"
    )
    assert [each[1:3] for each in heard[1:]] == [
        ("u1", "we're running out of"),
        ("u1", "we're running out of time"),
    ]


@pytest.mark.parametrize(
    ("flags", "status", "sentence"),
    [
        (["--recogniser", "ws://127.0.0.1:1", "--wait", "0"], 1, "No recogniser answers at ws://127.0.0.1:1."),
        (["--recogniser", "nothing"], 1, "nothing is not the address of a WebSocket."),
        (["--sample-rate", "16000"], 2, "--sample-rate goes with --recogniser"),
        (["--sample-rate", "0"], 2, "'0' is not a whole number above 0"),
    ],
)
async def test_what_cannot_be_is_said(flags: list[str], status: int, sentence: str) -> None:
    async with scripted_gateway(taking([])) as url:
        ran = await run("bridge", "--meeting", "m", "--url", url, *flags)
    assert (ran.status, sentence in ran.err) == (status, True), ran.err
