"""Plays transcripts with one client; `gateway conformance` plays all of them, and reports.

Knows: what a step means, what any client must keep to, the report and the exit status.
Must not know: how flags are spelled (`cli.flags`), what happens in a transcript.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio import Queue
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar, cast

import msgspec
from websockets.exceptions import ConnectionClosed

from gateway.conformance.driver import Driver, DriverFailed
from gateway.conformance.scripted import Visitor, scripted_gateway
from gateway.conformance.transcripts import Names, Step, Transcript, filled, matches, transcripts
from gateway.domain.errors import GatewayError
from gateway.protocol.messages import ClientMessage, Ping, Pong, ServerMessage, SessionStart

_T = TypeVar("_T")

_MOST_BYTES = 65_536

# Exit status where a client did something else.
_FAILED = 3


class Deviation(Exception):
    """The client did something else than the transcript says; the text says at which step, and what."""


class _Connection:
    """What arrives over one connection; pings are answered in passing."""

    def __init__(self, visitor: Visitor) -> None:
        self.visitor = visitor
        # Messages in order. Last, a sentence that says how the connection ended, or what could not be read.
        self.received: Queue[dict[str, Any] | str] = Queue()
        request = visitor.connection.request
        header = "" if request is None else request.headers.get("Authorization", "")
        self._token = header.removeprefix("Bearer ") or None

    async def read(self) -> None:
        codec, connection = self.visitor.codec, self.visitor.connection
        try:
            async for frame in connection:
                message = codec.decode(frame, max_bytes=_MOST_BYTES)
                if isinstance(message, Ping):
                    await self.visitor.say(Pong(message.nonce))
                else:
                    await self.received.put(self._as_json(message))
            await self.received.put("closed the connection")
        except ConnectionClosed:
            await self.received.put("lost the connection")
        except GatewayError as error:
            field = "" if error.field is None else f" (field {error.field})"
            await self.received.put(f"sent a message that is not valid: {error.message}{field}")

    def _as_json(self, message: ClientMessage) -> dict[str, Any]:
        fields: dict[str, Any] = msgspec.to_builtins(message)
        if isinstance(message, SessionStart) and message.token is None:
            fields["token"] = self._token  # it may also come with the handshake
        return fields


class _Playing:
    def __init__(self, driver: Driver, address: str, connections: Queue[_Connection], wait_s: float) -> None:
        self.names: Names = {"$address": address}
        self._driver = driver
        self._connections = connections
        self._connection: _Connection | None = None
        self._wait_s = wait_s
        # Utterance → its newest revision and its text.
        self._revisions: dict[str, tuple[int, str]] = {}

    async def play_step(self, step: Step) -> None:
        """Raises `Deviation`."""
        if step.do is not None:
            await self._driver.do(filled(step.do, self.names))
        if step.client is not None:
            await self._expect_message(step.client)
        if step.gateway is not None:
            await self._say(filled(step.gateway, self.names))
        if step.shown is not None:
            await self._expect_shown(step.shown)
        if step.close is not None:
            connection = await self._connected()
            visitor, self._connection = connection.visitor, None
            if not connection.received.empty() and isinstance(unread := connection.received.get_nowait(), dict):
                raise Deviation(f"the client sent something once more: {_text(unread)}")
            if step.close:
                await visitor.connection.close(step.close)
            else:
                visitor.drop()

    async def finish(self) -> None:
        """The client may show nothing more, and may not connect again. Raises `Deviation`."""
        await self._in_time(self._driver.end(), "did not end when its stdin was closed")
        if (event := await self._in_time(self._driver.shown(), "did not close its stdout")) is not None:
            raise Deviation(f"the client showed something once more: {_text(event)}")
        if not self._connections.empty():
            raise Deviation("the client connected again")

    async def _connected(self) -> _Connection:
        if self._connection is None:
            self._connection = await self._in_time(self._connections.get(), "did not connect")
        return self._connection

    async def _say(self, message: dict[str, Any]) -> None:
        visitor = (await self._connected()).visitor
        # As it is in the transcript, also where no gateway of today would send it.
        frame = visitor.codec.encode(cast(ServerMessage, message))
        try:
            await visitor.connection.send(frame)
        except ConnectionClosed:
            raise Deviation("the client closed the connection") from None

    async def _expect_message(self, expected: dict[str, Any]) -> None:
        connection = await self._connected()
        message = await self._in_time(connection.received.get(), f"did not send {_text(expected)}")
        if isinstance(message, str):
            raise Deviation(f"instead of sending {_text(expected)} the client {message}")
        if not matches(expected, message, self.names):
            raise Deviation(f"expected {_text(expected)}\n      got      {_text(message)}")
        self._check_revision(message)

    def _check_revision(self, message: dict[str, Any]) -> None:
        if message["type"] not in ("utterance.partial", "utterance.final"):
            return
        revision = (message["rev"], message["text"])
        before = self._revisions.get(message["id"])
        if before is not None and message["rev"] <= before[0] and revision != before:
            raise Deviation(f"revision {revision[0]} of {message['id']} is not newer than {before[0]}")
        self._revisions[message["id"]] = revision

    async def _expect_shown(self, expected: dict[str, Any]) -> None:
        showing = self._last_shown() if expected["type"] == "closed" else self._driver.shown()
        event = await self._in_time(showing, f"did not show {_text(expected)}")
        if event is None:
            raise Deviation(f"instead of showing {_text(expected)} the driver ended")
        if not matches(expected, event, self.names):
            raise Deviation(f"expected shown {_text(expected)}\n      got            {_text(event)}")

    async def _last_shown(self) -> dict[str, Any] | None:
        """The next event, unless the client connects again: then the session is not over, and nothing may come."""
        showing = asyncio.create_task(self._driver.shown())
        connecting = asyncio.create_task(self._connections.get())
        try:
            await asyncio.wait((showing, connecting), return_when=asyncio.FIRST_COMPLETED)
            if connecting.done():
                raise Deviation("the client connected again")
            return showing.result()
        finally:
            showing.cancel()
            connecting.cancel()

    async def _in_time(self, waiting: Awaitable[_T], failure: str) -> _T:
        try:
            async with asyncio.timeout(self._wait_s):
                return await waiting
        except TimeoutError:
            raise Deviation(f"for {self._wait_s:g} s the client {failure}") from None


async def play(transcript: Transcript, command: Sequence[str], *, wait_s: float) -> None:
    """Run the driver and play the transcript to it.

    command: the program that drives the client, with its arguments. wait_s: longest wait for one thing to happen.
    Raises `Deviation`, `DriverFailed`, and `OSError` if the program cannot be started.
    """
    connections: Queue[_Connection] = Queue()

    async def visit(visitor: Visitor) -> None:
        connection = _Connection(visitor)
        await connections.put(connection)
        await connection.read()

    async with scripted_gateway(visit) as address, Driver.started(command) as driver:
        playing = _Playing(driver, address, connections, wait_s)
        for number, step in enumerate(transcript.steps, 1):
            try:
                await playing.play_step(step)
            except (Deviation, DriverFailed) as deviation:
                raise Deviation(f"step {number}: {deviation}") from None
        await playing.finish()


def _text(message: dict[str, Any]) -> str:
    return json.dumps(message, ensure_ascii=False)


# ---------------------------------------------------------------- the command


def list_transcripts(*, as_json: bool) -> int:
    """Print what a client must be able to do, by transcript, or all that happens in each."""
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(transcripts())).decode())
        return 0
    for transcript in transcripts():
        print(f"{transcript.name}: {transcript.about}")
    return 0


def run_conformance(command: Sequence[str], only: Sequence[str], *, wait_s: float) -> int:
    """Play the transcripts and print a line for each.

    command: the program that drives the client, with its arguments. only: names of transcripts; all if there are
    none. wait_s: longest wait for one thing to happen. Returns the exit status.
    """
    unknown = set(only) - {transcript.name for transcript in transcripts()}
    if unknown:
        print(f"gateway: There is no transcript {', '.join(sorted(unknown))}.", file=sys.stderr)
        return 2
    try:
        return asyncio.run(_run(command, only, wait_s))
    except OSError as error:
        print(f"gateway: {command[0]} cannot be started: {error.strerror}.", file=sys.stderr)
        return 1


async def _run(command: Sequence[str], only: Sequence[str], wait_s: float) -> int:
    chosen = [transcript for transcript in transcripts() if not only or transcript.name in only]
    failed = 0
    for transcript in chosen:
        try:
            await play(transcript, command, wait_s=wait_s)
        except (Deviation, DriverFailed) as deviation:
            failed += 1
            print(f"FAIL  {transcript.name}\n      {transcript.about}\n      {deviation}", flush=True)
        else:
            print(f"ok    {transcript.name}", flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} transcripts were kept to.")
    return _FAILED if failed else 0
