"""One WebSocket of a client that has thousands of them: no task, no queue, a few microseconds a frame. Sessions
are opened a bounded number at a time, each tried several times.

Knows: RFC 6455, as far as a gateway makes use of it, how a session begins. Must not know: what is said in it.
The handshake and what is sent are the `websockets` library's; frames that arrive are cut here, since the library's
own way, made for every case, would make the clients of a load test the limit before the gateway is.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import cast

import msgspec
from websockets.client import ClientProtocol
from websockets.exceptions import WebSocketException
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from gateway.protocol.messages import Error, SessionStart
from gateway.runtime import raise_file_limit
from loadtest.results import LoadtestError, first_error

_SUBPROTOCOL = Subprotocol("translation.v1.json")
_CONNECT_S = 15.0
_FINAL_TEXT = 0x81
_LONG, _LONGER = 126, 127
_NORMAL = (1000).to_bytes(2)


class Wire(asyncio.Protocol):
    """An open connection. take: gets each text message as it arrives. ended: gets why, once, when the connection
    is lost or the gateway closes it. lost: the same, afterwards; None while it is open."""

    __slots__ = ("_left", "_opened", "_opening", "_transport", "ended", "lost", "take")

    def __init__(self, url: str) -> None:
        self.take: Callable[[bytes], object] = _ignore
        self.ended: Callable[[str], object] = _ignore
        self.lost: str | None = None
        self._opening: ClientProtocol | None = ClientProtocol(parse_uri(url), subprotocols=[_SUBPROTOCOL])
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None
        self._left = b""

    async def opened(self) -> None:
        """Wait for the handshake. Raises `WebSocketException` or `OSError`."""
        await self._opened

    def send(self, text: bytes) -> None:
        """Send a text message; nothing waits, and on a lost connection nothing happens."""
        self._write(Opcode.TEXT, text)

    def close(self) -> None:
        """Leave for good, without waiting for the gateway to agree."""
        self.ended = _ignore
        if self._transport is not None and not self._transport.is_closing():
            self._write(Opcode.CLOSE, _NORMAL)
            self._transport.close()

    # ------------------------------------------------------------ called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert self._opening is not None  # noqa: S101 -- it begins with the handshake
        # A transport that writes; uvloop's is not a subclass of it.
        self._transport = cast(asyncio.Transport, transport)
        self._opening.send_request(self._opening.connect())
        self._transport.writelines(self._opening.data_to_send())

    def data_received(self, data: bytes) -> None:
        if self._opening is not None:
            data = self._shake_hands(self._opening, data)
        buffer = self._left + data if self._left else data
        at, end = 0, len(buffer)
        while end - at >= 2:
            length, body = buffer[at + 1], at + 2
            if length >= _LONG:
                body = at + (4 if length == _LONG else 10)
                if end < body:
                    break
                length = int.from_bytes(buffer[at + 2 : body])
            if end < body + length:
                break
            head, payload = buffer[at], buffer[body : body + length]
            at = body + length
            if head == _FINAL_TEXT:
                self.take(payload)
            else:
                self._control(head, payload)
        self._left = buffer[at:]

    def connection_lost(self, exc: Exception | None) -> None:
        self._end("the connection was lost")
        if not self._opened.done():
            self._opened.set_exception(exc if isinstance(exc, OSError) else ConnectionResetError("lost"))

    # ------------------------------------------------------------ inside

    def _shake_hands(self, opening: ClientProtocol, data: bytes) -> bytes:
        """Until the gateway has agreed; what it said after that is returned."""
        head, separator, rest = (self._left + data).partition(b"\r\n\r\n")
        if not separator:
            self._left = head
            return b""
        self._left = b""
        opening.receive_data(head + separator)
        responses = [event for event in opening.events_received() if isinstance(event, Response)]
        self._opening = None
        if not self._opened.done():
            if opening.handshake_exc is not None or not responses:
                self._opened.set_exception(opening.handshake_exc or ConnectionResetError("no handshake"))
            else:
                self._opened.set_result(None)
        return rest

    def _control(self, head: int, payload: bytes) -> None:
        match head:
            case 0x89:
                self._write(Opcode.PONG, payload)
            case 0x8A:
                pass
            case 0x88:
                code, reason = int.from_bytes(payload[:2]), payload[2:].decode(errors="replace")
                self._end(f"closed with {code}{reason and ': ' + reason}" if payload else "closed")
                if self._transport is not None:
                    self._transport.close()
            case _:
                self._end(f"a frame of a kind that no gateway sends ({head:#x})")
                if self._transport is not None:
                    self._transport.abort()

    def _write(self, opcode: Opcode, payload: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(Frame(opcode, payload).serialize(mask=True))

    def _end(self, why: str) -> None:
        if self.lost is None:
            self.lost = why
            self.ended(why)


def _ignore(_: object) -> None:
    pass


async def open_wire(url: str) -> Wire:
    """Connect to a gateway at `http://…`. Raises `OSError`, `TimeoutError` or `WebSocketException`."""
    stream = f"ws{url.rstrip('/').removeprefix('http')}/v1/stream"
    uri = parse_uri(stream)
    if uri.secure:
        raise LoadtestError("A load test speaks to a gateway without TLS: give it an http:// address.")
    # On the machine itself, each client process has an address of its own: of one there are some 28,000 ports.
    own = (f"127.0.1.{1 + os.getpid() % 254}", 0) if uri.host == "127.0.0.1" else None
    async with asyncio.timeout(_CONNECT_S):
        _, wire = await asyncio.get_running_loop().create_connection(
            lambda: Wire(stream), uri.host, uri.port, local_addr=own
        )
        try:
            await wire.opened()
        except BaseException:
            wire.close()
            raise
    return wire


# ---------------------------------------------------------------- opening sessions


# Connections that are being opened at a time: a gateway with one core takes them one after the other anyway.
_OPENING = 64
_OPEN_S = 60.0
_TRIES = 8
_PAUSE_S = 0.25

# Besides connections: the standard streams, the event loop's own files.
_FILES = 64

_STARTED = b'{"type":"session.started"'
_ERROR = b'{"type":"error"'


# A session that is to be opened, and the function that takes its wire then.
Wanted = tuple[SessionStart, Callable[[Wire], object]]


async def open_all(url: str, wanted: Sequence[Wanted]) -> None:
    """Open sessions and hand each over once it has begun. Raises `LoadtestError`."""
    left = iter(wanted)

    async def open_some() -> None:
        for start, take in left:
            take(await _open(url, start))

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(min(_OPENING, len(wanted))):
                tasks.create_task(open_some())
    except ExceptionGroup as errors:
        raise first_error(errors) from None


def allow_files(files: int) -> None:
    """Let this process have so many connections. Raises `LoadtestError` where the machine forbids it."""
    if (most := raise_file_limit()) < files + _FILES:
        raise LoadtestError(f"This machine allows a process no {files} connections (`ulimit -Hn` is {most}).")


async def _open(url: str, start: SessionStart) -> Wire:
    """A connection whose session has begun. Raises `LoadtestError`."""
    why = "it did not answer"
    for attempt in range(_TRIES):
        if attempt:
            await asyncio.sleep(_PAUSE_S * attempt)
        try:
            wire = await open_wire(url)
        except (OSError, TimeoutError, WebSocketException) as error:
            why = str(error) or type(error).__name__
            continue
        try:
            async with asyncio.timeout(_OPEN_S):
                why = await _start(wire, start)
        except TimeoutError:
            why = f"no session began within {_OPEN_S:g} s"
        except BaseException:
            wire.close()
            raise
        if not why:
            return wire
        wire.close()
    raise LoadtestError(f"The gateway opens no further session: {why}.")


async def _start(wire: Wire, start: SessionStart) -> str:
    """Ask for a session; what went wrong, empty when it has begun. Raises `LoadtestError` when it never will."""
    answers: asyncio.Queue[bytes] = asyncio.Queue()
    wire.take = answers.put_nowait
    wire.ended = lambda why: answers.put_nowait(b"")
    start = msgspec.structs.replace(start, token=os.environ.get("GATEWAY_TOKEN"))
    while True:
        wire.send(msgspec.json.encode(start))
        while not (answer := await answers.get()).startswith((_STARTED, _ERROR)):
            if not answer:
                return wire.lost or "the connection was lost"
        if answer.startswith(_STARTED):
            return ""
        error = msgspec.json.decode(answer, type=Error)
        if not error.retryable:
            raise LoadtestError(f"The gateway refuses a session: {error.message}")
        await asyncio.sleep((error.retry_after_ms or 1_000) / 1000)
