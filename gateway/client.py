"""A client of the gateway: one session over one WebSocket, for the command line, tests and load generators.

Knows: the address of a gateway, the order of the first messages, and how failures read to people.
Must not know: the gateway's inside, terminals, what is done with the messages. It does not reconnect.

    ClientError
    ├── InvalidAddress       the address cannot be one of a gateway
    ├── GatewayUnreachable   no gateway answers there
    ├── EngineNotReady       it answers, and its engine was still loading when the patience ended
    ├── SessionRefused       `session.start` was answered with an error, kept in `error`
    ├── UnreadableMessage    the gateway sent what this version cannot read
    └── SessionClosed        the connection ended; `code` and, where the gateway said why, `error`
"""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from socket import gaierror
from typing import Self
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_websocket
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from gateway.codec import JSON, Codec
from gateway.errors import CloseCode, EngineUnavailable, InvalidMessage, UnknownType
from gateway.events import Formality
from gateway.messages import (
    ClientMessage,
    Error,
    Ping,
    ServerMessage,
    SessionEnd,
    SessionStart,
    SessionStarted,
    SessionUpdate,
    UtteranceAccepted,
    UtteranceCancel,
    UtteranceFinal,
    UtterancePartial,
)

__all__ = [
    "ClientError",
    "ClientSession",
    "EngineNotReady",
    "GatewayUnreachable",
    "InvalidAddress",
    "SessionClosed",
    "SessionRefused",
    "UnreadableMessage",
    "connect",
    "stream_url",
]

STREAM_PATH = "/v1/stream"

# To open a connection, and for the gateway to answer `session.start`.
_ANSWER_S = 10.0

# For the closing handshake, when the gateway hangs.
_CLOSE_S = 2.0

# Between two `session.start` when the gateway does not say how long to wait.
_RETRY_MS = 2_000

# Utterances whose revision is remembered: those of which the gateway has not accepted a final.
_REVISIONS = 1_000

_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class ClientError(Exception):
    """Base of the tree; its text is one sentence for people."""


class InvalidAddress(ClientError):
    """The address cannot be one of a gateway."""


class GatewayUnreachable(ClientError):
    """Nothing answers at the address, or what answers is no gateway."""


class EngineNotReady(ClientError):
    """The engine was still loading after `ready_timeout_s`."""


class SessionRefused(ClientError):
    """`session.start` was refused; `error` is the gateway's answer."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.message)
        self.error = error


class UnreadableMessage(ClientError):
    """The gateway sent what this version of the client cannot read."""


class SessionClosed(ClientError):
    """The connection is gone.

    `code`: the WebSocket close code, null when the connection broke; `error`: why, where the gateway said so.
    """

    def __init__(self, url: str, code: int | None, error: Error | None) -> None:
        if error is not None:
            sentence = f"The gateway closed the session: {error.message}"
        elif code is None:
            sentence = f"The connection to the gateway at {url} was lost."
        else:
            sentence = f"The gateway at {url} closed the session with code {code}."
        super().__init__(sentence)
        self.code = code
        self.error = error


def stream_url(address: str) -> str:
    """The WebSocket URL of the stream behind an address as people type it.

    Takes `http(s)://` and `ws(s)://`, or no scheme at all, with or without the path. Raises `InvalidAddress`.
    """
    address = address.strip()
    try:
        parts = urlsplit(address if "://" in address else f"ws://{address}")
        scheme, host, _ = _SCHEMES.get(parts.scheme.lower()), parts.hostname, parts.port
    except ValueError:
        scheme, host = None, None
    if scheme is None or not host:
        raise InvalidAddress(f"{address!r} is no address of a gateway; one looks like http://127.0.0.1:8000.")
    path = parts.path.rstrip("/")
    return f"{scheme}://{parts.netloc}{path if path.endswith(STREAM_PATH) else path + STREAM_PATH}"


class ClientSession:
    """A started session: send with the methods, read with `async for`; both may be done at the same time.

    `started` is the gateway's answer with its languages and limits. Every method raises `SessionClosed` once
    the connection is gone. What is not read is not buffered beyond a few frames: a caller that stops reading
    makes the gateway close the session as a slow reader.
    """

    def __init__(self, url: str, connection: ClientConnection, codec: Codec, started: SessionStarted) -> None:
        self.url = url
        self.started = started
        self._connection = connection
        self._codec = codec
        self._last_error: Error | None = None
        self._serial = 0
        self._revisions: OrderedDict[str, int] = OrderedDict()

    # ------------------------------------------------------------ reading

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ServerMessage:
        """The next message. Ends when the gateway is done with the session, else raises `SessionClosed`."""
        try:
            message = await _receive(self._connection, self._codec)
        except ConnectionClosed as closed:
            if closed.rcvd is not None and closed.rcvd.code == CloseCode.NORMAL:
                raise StopAsyncIteration from None
            raise _closed(self.url, closed, self._last_error) from None
        # The reason for a close is the error right before it; an older one explains nothing.
        self._last_error = message if isinstance(message, Error) else None
        if isinstance(message, UtteranceAccepted):
            self._revisions.pop(message.id, None)
        return message

    # ------------------------------------------------------------ sending

    async def partial(
        self,
        text: str,
        id: str | None = None,
        *,
        lang: str | None = None,
        rev: int | None = None,
        start_ms: int | None = None,
        end_ms: int | None = None,
    ) -> str:
        """Send a text that may still change, the next revision of utterance `id`; the utterance's id."""
        id, rev = self._next(id, rev)
        await self.send(UtterancePartial(id, rev, text, lang, start_ms, end_ms))
        return id

    async def final(
        self,
        text: str,
        id: str | None = None,
        *,
        lang: str | None = None,
        rev: int | None = None,
        start_ms: int | None = None,
        end_ms: int | None = None,
    ) -> str:
        """Send the last word on utterance `id`, a new one by default; the utterance's id."""
        id, rev = self._next(id, rev)
        await self.send(UtteranceFinal(id, rev, text, lang, start_ms, end_ms))
        return id

    async def cancel(self, id: str) -> None:
        """Stop the translation of an utterance."""
        await self.send(UtteranceCancel(id))

    async def update(
        self,
        *,
        reads: Sequence[str] | None = None,
        speaks: str | None = None,
        glossary: dict[str, dict[str, str]] | None = None,
        context: str | None = None,
        formality: Formality | None = None,
    ) -> None:
        """Change what is given, from the next utterance on; answered by `session.updated` or an error."""
        languages = None if reads is None else list(reads)
        await self.send(SessionUpdate(languages, speaks, glossary, context, formality))

    async def ping(self, nonce: str = "") -> None:
        """Ask for a `pong`."""
        await self.send(Ping(nonce))

    async def end(self) -> None:
        """Say that no more follows; the gateway finishes what it accepted, upon which the iteration ends."""
        await self.send(SessionEnd())

    async def send(self, message: ClientMessage) -> None:
        """Send any message; waits while the gateway does not keep up."""
        try:
            await self._connection.send(self._codec.encode(message))
        except ConnectionClosed as closed:
            raise _closed(self.url, closed, self._last_error) from None

    def _next(self, id: str | None, rev: int | None) -> tuple[str, int]:
        if id is None:
            self._serial += 1
            id = str(self._serial)
        rev = self._revisions.get(id, 0) + 1 if rev is None else rev
        self._revisions[id] = rev
        self._revisions.move_to_end(id)
        if len(self._revisions) > _REVISIONS:
            self._revisions.popitem(last=False)
        return id, rev


@asynccontextmanager
async def connect(
    url: str,
    *,
    reads: Sequence[str],
    speaks: str | None = None,
    meeting: str | None = None,
    name: str | None = None,
    glossary: dict[str, dict[str, str]] | None = None,
    context: str | None = None,
    formality: Formality | None = None,
    codec: Codec = JSON,
    ready_timeout_s: float = 300.0,
    on_waiting: Callable[[Error], object] | None = None,
) -> AsyncGenerator[ClientSession, None]:
    """Open a connection and start a session on it; leaving the context closes both at once.

    glossary: target language → source term → target term. ready_timeout_s: patience with an engine that is
    loading, seconds; `on_waiting` is called with each answer that asks for patience. To see unfinished
    translations through, call `ClientSession.end` and iterate to the end before leaving.

    Raises every class of the tree in this module's docstring.
    """
    start = SessionStart(
        reads=list(reads),
        speaks=speaks,
        meeting=meeting,
        name=name,
        glossary=glossary,
        context=context,
        formality=formality,
    )
    url = stream_url(url)
    address = url.removesuffix(STREAM_PATH)
    connection = await _open(url, address, codec)
    try:
        started = await _start(connection, codec, start, address, ready_timeout_s, on_waiting)
        yield ClientSession(address, connection, codec, started)
    finally:
        await connection.close()


async def _open(url: str, address: str, codec: Codec) -> ClientConnection:
    try:
        connection = await open_websocket(
            url,
            subprotocols=[Subprotocol(codec.subprotocol)],
            # Frames are short and latency counts.
            compression=None,
            # A proxy for the outside world cannot reach this machine's own ports.
            proxy=None if urlsplit(url).hostname in _LOOPBACK else True,
            open_timeout=_ANSWER_S,
            close_timeout=_CLOSE_S,
        )
    except InvalidStatus as refused:
        status = refused.response.status_code
        raise GatewayUnreachable(
            f"What answers at {address} refused the stream with HTTP status {status}; is it a gateway?"
        ) from None
    except (WebSocketException, EOFError, ConnectionResetError):
        kind = "secure gateway" if address.startswith("wss:") else "gateway"
        raise GatewayUnreachable(f"What answers at {address} is no {kind}.") from None
    except TimeoutError:
        raise GatewayUnreachable(f"Nothing answered at {address} within {_ANSWER_S:g} s.") from None
    except gaierror:
        raise GatewayUnreachable(f"The host of {address} is not known.") from None
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", "") or error.reason
        raise GatewayUnreachable(f"No secure connection to {address}: {reason}.") from None
    except OSError:
        raise GatewayUnreachable(f"No gateway answers at {address}: start one with `gateway serve`.") from None
    if connection.subprotocol != codec.subprotocol:
        await connection.close()
        raise GatewayUnreachable(f"What answers at {address} does not speak {codec.subprotocol}.")
    return connection


async def _start(
    connection: ClientConnection,
    codec: Codec,
    start: SessionStart,
    address: str,
    ready_timeout_s: float,
    on_waiting: Callable[[Error], object] | None,
) -> SessionStarted:
    """Send `session.start` until the engine is there to take it."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + ready_timeout_s
    while True:
        try:
            # Somebody turned away may be told why, and closed, before the start is even sent.
            with suppress(ConnectionClosed):
                await connection.send(codec.encode(start))
            async with asyncio.timeout(_ANSWER_S):
                answer = await _receive(connection, codec)
        except ConnectionClosed as closed:
            raise _closed(address, closed, None) from None
        except TimeoutError:
            raise GatewayUnreachable(
                f"The gateway at {address} did not start a session within {_ANSWER_S:g} s."
            ) from None
        match answer:
            case SessionStarted():
                return answer
            case Error(code=EngineUnavailable.code):
                wait_s = (_RETRY_MS if answer.retry_after_ms is None else answer.retry_after_ms) / 1000
                if loop.time() + wait_s > deadline_s:
                    state = f"not ready after {ready_timeout_s:g} s" if ready_timeout_s else "still loading"
                    raise EngineNotReady(f"The engine of the gateway at {address} is {state}.")
                if on_waiting is not None:
                    on_waiting(answer)
                await asyncio.sleep(wait_s)
            case Error():
                raise SessionRefused(answer)
            case _:
                raise UnreadableMessage(f"The gateway at {address} answered the start with something else.")


async def _receive(connection: ClientConnection, codec: Codec) -> ServerMessage:
    while True:
        frame = await connection.recv()
        try:
            return codec.decode_server(frame)
        except UnknownType:
            continue  # a newer gateway tells more than this client knows
        except InvalidMessage as error:
            raise UnreadableMessage(error.message) from None


def _closed(address: str, closed: ConnectionClosed, error: Error | None) -> SessionClosed:
    return SessionClosed(address, None if closed.rcvd is None else closed.rcvd.code, error)
