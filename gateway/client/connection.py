"""One connection to a gateway: address, opening, frames and close.

Knows: WebSockets, and the first two messages. Must not know: later messages, other connections.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from contextlib import suppress
from socket import gaierror
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_websocket
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from gateway.client.errors import (
    GatewayUnreachable,
    InvalidAddress,
    NotAuthorized,
    SessionClosed,
    TokenUnavailable,
    UnreadableMessage,
    refusal,
)
from gateway.client.reconnecting import Outage, may_reconnect
from gateway.client.tokens import Secret, Tokens
from gateway.domain.errors import Forbidden, InvalidMessage, Unauthenticated, UnknownType
from gateway.protocol.codec import Codec
from gateway.protocol.messages import ClientMessage, Error, ServerMessage, SessionStart, SessionStarted

STREAM_PATH = "/v1/stream"

# Longest wait to open a connection, for the answer to `session.start`, and for a token to reconnect with.
_ANSWER_S = 10.0

# Longest wait for the closing handshake.
_CLOSE_S = 2.0
# Longest wait for the whole close.
_LEAVE_S = 3.0

# HTTP statuses of a proxy that cannot reach its gateway at the moment.
_TEMPORARY_STATUSES = {429, 500, 502, 503, 504}

# Close codes that this client sends when it cannot read a frame. A new connection would not help.
_OUR_VERDICTS = {1002, 1003, 1007, 1009}

_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
LOOPBACK = {"localhost", "127.0.0.1", "::1"}


# What OpenSSL calls an answer that is not TLS: newer and older versions.
_NO_TLS = {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNKNOWN_PROTOCOL"}


class _Discreet(logging.LoggerAdapter[logging.Logger]):
    """At DEBUG websockets logs headers and frames: tokens, secrets of sessions and what is said."""

    def isEnabledFor(self, level: int) -> bool:
        return level > logging.DEBUG and super().isEnabledFor(level)


_LOG = _Discreet(logging.getLogger("websockets.client"))


class _Problem(Struct):
    """The field that is used of an error over HTTP."""

    detail: str


class Endpoint(Struct, frozen=True):
    """Where the gateway is and how to talk to it."""

    # WebSocket URL of the stream.
    url: str
    codec: Codec
    # How often to ping the gateway. None: never.
    ping_interval_s: float | None
    # How long to wait for the answer before the connection counts as lost. None: for ever.
    ping_timeout_s: float | None
    # Who we are: asked at every attempt to connect.
    tokens: Tokens

    @property
    def address(self) -> str:
        """The URL without the path of the stream, as people type it."""
        return self.url.removesuffix(STREAM_PATH)


def stream_url(address: str) -> str:
    """The WebSocket URL of the stream, from an address as people type it.

    Accepts `http(s)://`, `ws(s)://` or no scheme, with or without the path. Raises `InvalidAddress`.
    """
    address = address.strip()
    try:
        parts = urlsplit(address if "://" in address else f"ws://{address}")
        scheme, host, _ = _SCHEMES.get(parts.scheme.lower()), parts.hostname, parts.port
    except ValueError:
        scheme, host = None, None
    if scheme is None or not host:
        raise InvalidAddress(f"{address!r} is not the address of a gateway, such as http://127.0.0.1:8000.")
    path = parts.path.rstrip("/")
    return f"{scheme}://{parts.netloc}{path if path.endswith(STREAM_PATH) else path + STREAM_PATH}"


def _other_server(address: str) -> str:
    """What to say about a server that speaks something else, perhaps because the scheme is wrong."""
    if address.startswith("wss:"):
        return f"The server at {address} is not a secure gateway. Without TLS the address begins with http://."
    return f"The server at {address} is not a gateway. With TLS the address begins with https://."


def _not_found(url: str) -> str:
    """What to say about a server that has no stream at this address."""
    parts = urlsplit(url)
    sentence = (
        f"There is no gateway at {url.removesuffix(STREAM_PATH)}: {parts.netloc} answers with HTTP status 404"
    )
    if parts.path == STREAM_PATH:
        return f"{sentence}."
    return (
        f"{sentence}. Is the path right? Without a proxy in front, the address is {parts.scheme}://{parts.netloc}."
    )


class Connection:
    """An open connection. Once it is closed, `receive` and `send` raise `ConnectionClosed` of websockets."""

    def __init__(self, websocket: ClientConnection, endpoint: Endpoint) -> None:
        self._websocket = websocket
        self._codec = endpoint.codec
        self._address = endpoint.address
        # A connection that takes no data is as dead as one that answers no ping. The pings of websockets cannot
        # find it, because they wait in the same queue.
        pings = (endpoint.ping_interval_s, endpoint.ping_timeout_s)
        self._stall_s = None if None in pings else sum(pings_s for pings_s in pings if pings_s is not None)

    @classmethod
    async def open(cls, endpoint: Endpoint, token: Secret | None) -> Connection:
        """Open a connection. Raises `GatewayUnreachable` and `NotAuthorized`."""
        address = endpoint.address
        try:
            websocket = await open_websocket(
                endpoint.url,
                subprotocols=[Subprotocol(endpoint.codec.subprotocol)],
                # After a redirect to another host, websockets leaves this header out.
                additional_headers=None if token is None else {"Authorization": f"Bearer {token}"},
                logger=_LOG,
                # Frames are short, and compression costs latency.
                compression=None,
                # A proxy cannot reach the loopback address of this machine.
                proxy=None if urlsplit(endpoint.url).hostname in LOOPBACK else True,
                open_timeout=_ANSWER_S,
                close_timeout=_CLOSE_S,
                ping_interval=endpoint.ping_interval_s,
                ping_timeout=endpoint.ping_timeout_s,
            )
        except InvalidStatus as refused:
            status = refused.response.status_code
            if status in (401, 403):
                body = refused.response.body or b""
                raise not_authorized(address, status, body, given=token is not None) from None
            raise GatewayUnreachable(
                _not_found(endpoint.url)
                if status == 404
                else f"The server at {address} refused the stream with HTTP status {status}; is it a gateway?",
                temporary=status in _TEMPORARY_STATUSES,
            ) from None
        except (WebSocketException, EOFError, ConnectionResetError):
            raise GatewayUnreachable(_other_server(address)) from None
        except TimeoutError:
            raise GatewayUnreachable(f"Nothing answered at {address} within {_ANSWER_S:g} s.") from None
        except gaierror:
            raise GatewayUnreachable(f"The host of {address} is not known.") from None
        except ssl.SSLError as error:
            if error.reason in _NO_TLS:
                raise GatewayUnreachable(_other_server(address), temporary=False) from None
            reason = getattr(error, "verify_message", "") or error.reason
            raise GatewayUnreachable(
                f"No secure connection to {address}: {reason}.",
                temporary=not isinstance(error, ssl.SSLCertVerificationError),
            ) from None
        except OSError:
            raise GatewayUnreachable(f"No gateway answers at {address}: none runs there.") from None
        connection = cls(websocket, endpoint)
        if websocket.subprotocol != endpoint.codec.subprotocol:
            await connection.close()
            raise GatewayUnreachable(
                f"The server at {address} does not speak {endpoint.codec.subprotocol}.", temporary=False
            )
        return connection

    async def start(self, start: SessionStart) -> SessionStarted | Error:
        """Ask for a session. Raises `ClientError`."""
        try:
            # The gateway may refuse and close before the start is sent. Its reason can still be read.
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
        """The next message; no message is lost if this is cancelled. Raises `UnreadableMessage`."""
        while True:
            frame = await self._websocket.recv()
            try:
                return self._codec.decode_server(frame)
            except UnknownType:
                continue  # a newer gateway sends messages that this client does not know
            except InvalidMessage as error:
                raise UnreadableMessage(error.message) from None

    async def send(self, message: ClientMessage) -> None:
        """Send a message. Waits while the gateway does not keep up; drops the connection after a while."""
        try:
            async with asyncio.timeout(self._stall_s) as stall:
                await self._websocket.send(self._codec.encode(message))
        except TimeoutError:
            if not stall.expired():
                raise
            self.drop()
            await self._websocket.send("")  # raises `ConnectionClosed`

    async def close(self) -> None:
        """Close with a handshake, but wait only a few seconds for it."""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LEAVE_S):
                    await self._websocket.close()
        finally:
            self.drop()

    def drop(self) -> None:
        """Break the connection without a closing handshake."""
        self._websocket.transport.abort()


def not_authorized(address: str, status: int, body: bytes | bytearray, *, given: bool) -> NotAuthorized:
    """The exception for an answer with HTTP status 401 or 403. given: whether a token was sent."""
    if status == 401:
        verdict = "did not accept the token" if given else "needs a token"
        return NotAuthorized(Error(Unauthenticated.code, f"The gateway at {address} {verdict}."))
    try:
        reason = msgspec.json.decode(body, type=_Problem).detail
    except (msgspec.DecodeError, UnicodeError):
        reason = f"The server at {address} does not let this client in (HTTP status {status})."
    return NotAuthorized(Error(Forbidden.code, reason))


async def reopen(
    endpoint: Endpoint, start: SessionStart, outage: Outage
) -> tuple[Connection, SessionStarted] | None:
    """Open a connection and resume the session on it.

    Returns None, and notes the reason in `outage`, if another attempt may succeed. Raises `ClientError` if not.
    """
    try:
        # Asked for at every attempt: the last one may have expired by now.
        async with asyncio.timeout(_ANSWER_S):
            token = await endpoint.tokens.ask()
    except TimeoutError:
        outage.failed(f"There is no token: none came within {_ANSWER_S:g} s.")
        return None
    except (TokenUnavailable, ValueError) as error:
        outage.failed(str(error))
        return None
    try:
        connection = await Connection.open(endpoint, token)
        try:
            answer = await connection.start(start)
            if isinstance(answer, SessionStarted):
                return connection, answer
            await connection.close()
        except BaseException:
            connection.drop()
            raise
        if not answer.retryable:
            raise refusal(answer)
        outage.failed(answer.message, answer)
    except GatewayUnreachable as error:
        if not error.temporary:
            raise
        outage.failed(str(error))
    except NotAuthorized as error:
        renewable = endpoint.tokens.renewable and error.error.code == Unauthenticated.code
        if not renewable or not outage.may_try_another_token():
            raise
        outage.failed(str(error))
    except SessionClosed as closed:
        if not may_reconnect(closed.code):
            raise
        outage.failed(str(closed))
    return None


def close_code(closed: ConnectionClosed) -> int | None:
    """The code with which a connection was closed; None if it broke."""
    if closed.rcvd is not None:
        return closed.rcvd.code
    if closed.sent is not None and closed.sent.code in _OUR_VERDICTS:
        return closed.sent.code
    return None
