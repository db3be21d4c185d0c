"""A client of the soak's own: it says what arrives on the wire, and breaks in ways that the product's cannot.

Knows: the protocol, straight on a WebSocket. Must not know: what is counted. It drops nothing that it receives, so
that what the gateway sends twice is seen, and its buffers are small, so that it lags as soon as it does not read.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections import OrderedDict
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

from msgspec.structs import replace
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_websocket
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.typing import Subprotocol

from gateway.client import Reconnected, Reconnecting, SessionEvent
from gateway.domain.errors import CloseCode
from gateway.protocol.codec import JSON
from gateway.protocol.messages import (
    Caption,
    ClientMessage,
    Error,
    Ping,
    Resume,
    ServerMessage,
    SessionEnd,
    SessionStart,
    SessionStarted,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
    UtteranceCancel,
    UtteranceFinal,
    UtterancePartial,
)
from loadtest.results import LoadtestError
from loadtest.soak.relay import reset

__all__ = ["RawSession"]

# A receive buffer and segments of a thin line: the gateway's kernel then holds some 100 kB for it, not megabytes.
_RECEIVE_BYTES = 8_192
_SEGMENT_BYTES = 536

_OPEN_S = 10.0
_GIVE_UP_S = 300.0
_DELAY_S = (0.2, 2.0)
_RETRY_MS = 1_000

_FINAL_REV = 1_000


class RawSession:
    """A session over one or more connections. `open` first; then one task iterates, and any may send.

    Iterating yields every message as it comes, and `Reconnecting` and `Reconnected` as the product's client does.
    Raises `LoadtestError` when the gateway is gone for too long or says that the client must not come back.
    """

    def __init__(self, url: str, start: SessionStart, rng: random.Random) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._start_message = start
        self._rng = rng
        self._websocket: ClientConnection | None = None
        self._silent: list[ClientConnection] = []
        self._pending: OrderedDict[str, UtteranceFinal] = OrderedDict()
        self._again_s: dict[str, float] = {}
        self._absent_until_s = 0.0
        self._draining = False
        self._ending = False
        self._alarm: asyncio.Timeout | None = None
        self.started: SessionStarted | None = None
        self._position = 0
        self._rev = 0
        self._lost_by: str | None = None

    # ------------------------------------------------------------ sending

    async def final(self, text: str, id: str) -> None:
        """Kept, and sent again, until it is answered."""
        # Above the revisions of its partials.
        self._pending[id] = message = UtteranceFinal(id, _FINAL_REV, text)
        if not self._draining:
            await self._send(message)

    async def partial(self, text: str, id: str) -> None:
        """Lost when there is no connection."""
        self._rev = self._rev % (_FINAL_REV - 1) + 1
        await self._send(UtterancePartial(id, self._rev, text))

    async def cancel(self, id: str) -> None:
        await self._send(UtteranceCancel(id))

    async def ping(self, nonce: str) -> None:
        await self._send(Ping(nonce))

    async def end(self) -> None:
        self._ending = True
        await self._send(SessionEnd())

    async def _send(self, message: ClientMessage) -> None:
        if self._websocket is not None:
            with suppress(ConnectionClosed):
                await self._websocket.send(JSON.encode(message))

    # ------------------------------------------------------------ breaking

    async def drop(self, absent_s: float = 0.0) -> None:
        """Reset the connection, and stay away for so long."""
        self._absent_until_s = asyncio.get_running_loop().time() + absent_s
        if self._websocket is not None:
            reset(self._websocket.transport)

    def fall_silent(self, absent_s: float) -> None:
        """Leave the connection open, read and answer nothing on it, and come back on another after so long."""
        if self._websocket is None:
            return
        self._absent_until_s = asyncio.get_running_loop().time() + absent_s
        self._websocket.transport.pause_reading()
        self._silent.append(self._websocket)
        self._websocket, self._lost_by = None, "fell silent"
        if self._alarm is not None and not self._alarm.expired():
            self._alarm.reschedule(asyncio.get_running_loop().time())

    async def close(self) -> None:
        """Say goodbye, and reset what was left open."""
        for silent in self._silent:
            silent.transport.abort()
        self._silent.clear()
        if self._websocket is not None:
            await self._websocket.close()
            self._websocket = None

    # ------------------------------------------------------------ receiving

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionEvent:
        while True:
            websocket = self._websocket
            if websocket is None:
                if self._lost_by is None:
                    return Reconnected(await self.open())
                reason, self._lost_by = self._lost_by, None
                return Reconnecting(1, 0.0, reason)
            due_s = await self._send_again()
            try:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(due_s) as self._alarm:
                        frame = await websocket.recv()
                    message = JSON.decode_server(frame)
                    self._take(message)
                    return message
            except ConnectionClosed as closed:
                self._lost(closed)
            finally:
                self._alarm = None

    async def open(self) -> SessionStarted:
        """A connection with a session on it; the one there was, where the gateway still has it."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + _GIVE_UP_S + max(self._absent_until_s - loop.time(), 0.0)
        while loop.time() < until_s:
            await asyncio.sleep(max(self._absent_until_s - loop.time(), 0.0))
            try:
                async with asyncio.timeout(_OPEN_S):
                    websocket = await self._connect()
            except (OSError, TimeoutError, EOFError, WebSocketException):
                await asyncio.sleep(self._rng.uniform(*_DELAY_S))
                continue
            started = await self._start(websocket)
            if started is not None:
                return started
            await asyncio.sleep(self._rng.uniform(*_DELAY_S))
        raise LoadtestError(f"The gateway started no session within {_GIVE_UP_S:g} s.")

    async def _connect(self) -> ClientConnection:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, _SEGMENT_BYTES)
            await asyncio.get_running_loop().sock_connect(sock, (self._host, self._port))
            return await open_websocket(
                f"ws://{self._host}:{self._port}/v1/stream",
                sock=sock,
                proxy=None,
                subprotocols=[Subprotocol(JSON.subprotocol)],
                compression=None,
                ping_interval=None,
                max_queue=4,
                close_timeout=1,
            )
        except BaseException:
            sock.close()
            raise

    async def _start(self, websocket: ClientConnection) -> SessionStarted | None:
        """Send `session.start` until it is taken; null when the connection was lost over it."""
        before = self.started
        resume = None if before is None else Resume(before.session, before.epoch, self._position)
        try:
            while True:
                await websocket.send(JSON.encode(replace(self._start_message, resume=resume)))
                async with asyncio.timeout(_OPEN_S):
                    answer = JSON.decode_server(await websocket.recv())
                match answer:
                    case SessionStarted():
                        break
                    case Error(retryable=True):
                        await asyncio.sleep((answer.retry_after_ms or _RETRY_MS) / 1000)
                    case _:
                        raise LoadtestError(f"`session.start` was answered with {answer}.")
        except TimeoutError:
            websocket.transport.abort()
            return None
        except ConnectionClosed as closed:
            self._check(closed)
            return None
        if before is None or answer.epoch != before.epoch or not answer.recovered:
            self._position = answer.offset
        self.started = answer
        self._websocket = websocket
        self._draining = False
        self._again_s.clear()
        for message in list(self._pending.values()):
            await self._send(message)
        if self._ending:
            await self._send(SessionEnd())
        return answer

    async def _send_again(self) -> float | None:
        """What was refused for a while and is due; when the next is."""
        now_s = asyncio.get_running_loop().time()
        for id in [id for id, due_s in self._again_s.items() if due_s <= now_s]:
            del self._again_s[id]
            if id in self._pending:
                await self._send(self._pending[id])
        return min(self._again_s.values(), default=None)

    def _take(self, message: ServerMessage) -> None:
        match message:
            case UtteranceAccepted(id=id):
                self._pending.pop(id, None)
            case Error(utterance=str(id)) if id in self._pending:
                if message.code == "draining":
                    self._draining = True
                elif message.retryable:
                    wait_s = (message.retry_after_ms or _RETRY_MS) / 1000
                    self._again_s[id] = asyncio.get_running_loop().time() + wait_s
                else:
                    del self._pending[id]
            case Caption(offset=int(offset)) | TranslationFinal(offset=offset) | TranslationFailed(offset=offset):
                self._position = max(self._position, offset)

    def _lost(self, closed: ConnectionClosed) -> None:
        self._websocket = None
        self._lost_by = "broken" if closed.rcvd is None else f"closed with {closed.rcvd.code}"
        self._check(closed)
        loop = asyncio.get_running_loop()
        self._absent_until_s = max(self._absent_until_s, loop.time() + self._rng.uniform(*_DELAY_S))

    def _check(self, closed: ConnectionClosed) -> None:
        code = None if closed.rcvd is None else closed.rcvd.code
        if code == CloseCode.NORMAL:
            raise StopAsyncIteration
        if code is not None and (code >= 4500 or 1002 <= code < 1006 or 1007 <= code < 1011):
            raise LoadtestError(
                f"The gateway closed the session with {code} {closed.rcvd and closed.rcvd.reason}."
            )
