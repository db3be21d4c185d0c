"""One connection to a gateway: its address, its opening, its frames, and its end.

Knows: WebSockets, the order of the first two messages. Must not know: what follows them, other connections.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from socket import gaierror
from urllib.parse import urlsplit

from msgspec import Struct
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_websocket
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from gateway.client.errors import (
    GatewayUnreachable,
    InvalidAddress,
    SessionClosed,
    SessionRefused,
    UnreadableMessage,
)
from gateway.client.reconnecting import Outage, may_reconnect
from gateway.domain.errors import InvalidMessage, UnknownType
from gateway.protocol.codec import Codec
from gateway.protocol.messages import ClientMessage, Error, ServerMessage, SessionStart, SessionStarted

__all__ = ["STREAM_PATH", "Connection", "Endpoint", "close_code", "reopen", "stream_url"]

STREAM_PATH = "/v1/stream"

# To open a connection, and for the gateway to answer `session.start`.
_ANSWER_S = 10.0

# For the closing handshake, when the gateway hangs; and for everything else that leaving may wait for.
_CLOSE_S = 2.0
_LEAVE_S = 3.0

# HTTP statuses of a proxy whose gateway is away for the moment.
_PASSING_STATUSES = {429, 500, 502, 503, 504}

# Our own verdicts on what came in; a new connection would bring the same.
_OUR_VERDICTS = {1002, 1003, 1007, 1009}

_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class Endpoint(Struct, frozen=True):
    """Where the gateway is and how to talk to it.

    ping_interval_s, ping_timeout_s: how soon a gateway that does not answer counts as lost; null: never.
    """

    url: str
    codec: Codec
    ping_interval_s: float | None
    ping_timeout_s: float | None

    @property
    def address(self) -> str:
        """The URL as people know it."""
        return self.url.removesuffix(STREAM_PATH)


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


class Connection:
    """An open connection. `receive` and `send` raise `ConnectionClosed` of websockets once it is gone."""

    def __init__(self, websocket: ClientConnection, endpoint: Endpoint) -> None:
        self._websocket = websocket
        self._codec = endpoint.codec
        self._address = endpoint.address
        # A connection on which nothing can be written is as dead as one that answers no ping, and the pings of
        # websockets wait in the same queue.
        pings = (endpoint.ping_interval_s, endpoint.ping_timeout_s)
        self._stall_s = None if None in pings else sum(pings_s for pings_s in pings if pings_s is not None)

    @classmethod
    async def open(cls, endpoint: Endpoint) -> Connection:
        """Raises `GatewayUnreachable`."""
        address = endpoint.address
        try:
            websocket = await open_websocket(
                endpoint.url,
                subprotocols=[Subprotocol(endpoint.codec.subprotocol)],
                # Frames are short and latency counts.
                compression=None,
                # A proxy for the outside world cannot reach this machine's own ports.
                proxy=None if urlsplit(endpoint.url).hostname in _LOOPBACK else True,
                open_timeout=_ANSWER_S,
                close_timeout=_CLOSE_S,
                ping_interval=endpoint.ping_interval_s,
                ping_timeout=endpoint.ping_timeout_s,
            )
        except InvalidStatus as refused:
            status = refused.response.status_code
            raise GatewayUnreachable(
                f"What answers at {address} refused the stream with HTTP status {status}; is it a gateway?",
                passing=status in _PASSING_STATUSES,
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
            raise GatewayUnreachable(
                f"No secure connection to {address}: {reason}.",
                passing=not isinstance(error, ssl.SSLCertVerificationError),
            ) from None
        except OSError:
            raise GatewayUnreachable(f"No gateway answers at {address}: start one with `gateway serve`.") from None
        connection = cls(websocket, endpoint)
        if websocket.subprotocol != endpoint.codec.subprotocol:
            await connection.close()
            raise GatewayUnreachable(
                f"What answers at {address} does not speak {endpoint.codec.subprotocol}.", passing=False
            )
        return connection

    async def start(self, start: SessionStart) -> SessionStarted | Error:
        """Ask for a session. Raises `ClientError`."""
        try:
            # Somebody turned away may be told why, and closed, before the start is even sent.
            with suppress(ConnectionClosed):
                await self.send(start)
            async with asyncio.timeout(_ANSWER_S):
                answer = await self.receive()
        except ConnectionClosed as closed:
            raise SessionClosed(self._address, close_code(closed), None) from None
        except TimeoutError:
            raise GatewayUnreachable(
                f"The gateway at {self._address} did not start a session within {_ANSWER_S:g} s."
            ) from None
        if not isinstance(answer, SessionStarted | Error):
            raise UnreadableMessage(f"The gateway at {self._address} answered the start with something else.")
        return answer

    async def receive(self) -> ServerMessage:
        """The next message; cancelling it loses nothing. Raises `UnreadableMessage`."""
        while True:
            frame = await self._websocket.recv()
            try:
                return self._codec.decode_server(frame)
            except UnknownType:
                continue  # a newer gateway tells more than this client knows
            except InvalidMessage as error:
                raise UnreadableMessage(error.message) from None

    async def send(self, message: ClientMessage) -> None:
        """Send a message; waits while the gateway does not keep up, and drops the connection if it never does."""
        try:
            async with asyncio.timeout(self._stall_s) as stall:
                await self._websocket.send(self._codec.encode(message))
        except TimeoutError:
            if not stall.expired():
                raise
            self.drop()
            await self._websocket.send("")  # raises what says that it is closed

    async def close(self) -> None:
        """Say goodbye and wait for the answer, within bounds."""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LEAVE_S):
                    await self._websocket.close()
        finally:
            self.drop()

    def drop(self) -> None:
        """Break it without a goodbye."""
        self._websocket.transport.abort()


async def reopen(
    endpoint: Endpoint, start: SessionStart, outage: Outage
) -> tuple[Connection, SessionStarted] | None:
    """Open a connection and resume on it; null, with the outage told why, where another attempt may succeed.

    Raises `ClientError` where none will.
    """
    try:
        connection = await Connection.open(endpoint)
        try:
            answer = await connection.start(start)
            if isinstance(answer, SessionStarted):
                return connection, answer
            await connection.close()
        except BaseException:
            connection.drop()
            raise
    except GatewayUnreachable as error:
        if not error.passing:
            raise
        outage.failed(str(error))
    except SessionClosed as closed:
        if not may_reconnect(closed.code):
            raise
        outage.failed(str(closed))
    else:
        if not answer.retryable:
            raise SessionRefused(answer)
        outage.failed(answer.message, answer)
    return None


def close_code(closed: ConnectionClosed) -> int | None:
    """The code that a connection was closed with; null when it broke."""
    if closed.rcvd is not None:
        return closed.rcvd.code
    if closed.sent is not None and closed.sent.code in _OUR_VERDICTS:
        return closed.sent.code
    return None
