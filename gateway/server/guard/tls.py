"""TLS below uvicorn's protocols: a connection has its place, and its time, before it has shaken hands.

Knows: certificate files, handshakes, connections that have sent nothing yet. Must not know: what comes afterwards.

uvicorn's own TLS hides a connection until its handshake is done, so half-open ones would be counted nowhere.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from uvicorn.protocols.utils import get_remote_addr
from uvicorn.server import ServerState

from gateway.domain.errors import StartupError
from gateway.server.guard.connections import Connections, Place

_log = logging.getLogger(__name__)

# A header of every answer: browsers stay with TLS at this address for a year.
HSTS = ("Strict-Transport-Security", "max-age=31536000")

# For the client to say goodbye in turn. At its end, uvicorn waits a second longer for connections.
_GOODBYE_S = 4.0

# Written and not sent yet, before the application has to wait: as much as without TLS.
_UNSENT_BYTES = 65_536


def server_context(cert: Path, key: Path) -> ssl.SSLContext:
    """TLS 1.2 or newer with the certificate (and its chain) and the private key in two PEM files, read now.

    Raises `StartupError` if a file cannot be read or used, and if the two do not belong together.
    """
    _check_pem(cert, "certificate", b"CERTIFICATE-----")
    _check_pem(key, "private key", b"PRIVATE KEY-----")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # A client could make the gateway shake hands without end.
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    asked: list[bool] = []

    def password() -> str:
        # Without this, OpenSSL would ask on the terminal.
        asked.append(True)
        return ""

    try:
        context.load_cert_chain(cert, key, password)
    except (OSError, ValueError) as error:
        if asked:
            why = f"The private key in {key} is encrypted: give one that is not."
        elif getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
            why = f"The private key in {key} is not that of the certificate in {cert}."
        else:
            reason = getattr(error, "reason", None) or error
            why = f"The certificate in {cert} and the private key in {key} cannot be used: {reason}."
        raise StartupError(why) from None
    return context


def _check_pem(file: Path, what: str, mark: bytes) -> None:
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise StartupError(f"There is no {what} file {file}.") from None
    except OSError as error:
        raise StartupError(f"The {what} file {file} cannot be read: {error.strerror or error}.") from None
    if mark not in content:
        raise StartupError(f"There is no {what} in {file}: it must be in PEM format.")


class TlsHandshake(asyncio.Protocol):
    """A connection until its handshake is done; then it belongs to a protocol that `then` makes.

    handshake_s: seconds for the handshake. Other arguments are those of a protocol of uvicorn, and passed on.
    """

    def __init__(
        self,
        *,
        context: ssl.SSLContext,
        connections: Connections,
        handshake_s: float,
        then: Callable[..., asyncio.Protocol],
        server_state: ServerState,
        **options: Any,
    ) -> None:
        self._context = context
        self._guard = connections
        self._handshake_s = handshake_s
        self._then = partial(then, server_state=server_state, **options)
        # uvicorn's, which shuts them down at its end.
        self._open: set[Any] = server_state.connections
        self._place: Place | None = None
        self._task: asyncio.Task[None] | None = None
        # Read and not given to anybody yet: first what is encrypted, later what is not.
        self._early = bytearray()
        self._loop = asyncio.get_running_loop()
        self._begun_s = self._loop.time()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._open.add(self)
        client = get_remote_addr(transport)
        self._place = self._guard.enter(client[0] if client else "", transport.abort)
        self._task = self._loop.create_task(self._take_over())

    def data_received(self, data: bytes) -> None:
        # Before TLS has begun, as uvloop reads at once; or right behind the handshake, before the task goes on.
        self._early += data

    def shutdown(self) -> None:
        """uvicorn stops: nothing was asked yet."""
        self._transport.abort()

    async def _take_over(self) -> None:
        try:
            transport = await self._shake_hands()
        finally:
            # In the same step as the next protocol takes a place, so no other connection gets this one.
            self._end()
        if transport is None or transport.is_closing():
            self._transport.abort()
            return
        transport.set_write_buffer_limits(_UNSENT_BYTES)
        # The handshake is a part of the time for the first request.
        protocol = self._then(begun_s=self._begun_s)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if self._early:
            protocol.data_received(bytes(self._early))

    async def _shake_hands(self) -> asyncio.Transport | None:
        """The transport of what is encrypted; None if there was no handshake."""
        if self._transport.is_closing():
            return None
        self._loop.call_soon(self._give_to_tls)
        try:
            # asyncio returns nothing for a connection that was aborted meanwhile.
            return await self._loop.start_tls(
                self._transport,
                self,
                self._context,
                server_side=True,
                ssl_handshake_timeout=self._handshake_s,
                ssl_shutdown_timeout=_GOODBYE_S,
            )
        except OSError as error:
            # Everyday: scanners, plain HTTP, clients that do not trust the certificate.
            _log.debug("no TLS handshake: %s", error)
            return None

    def _give_to_tls(self) -> None:
        """What was read before TLS began; `start_tls` has put its protocol in place, and reads on after this."""
        tls: Any = self._transport.get_protocol()
        while self._early and tls is not self:
            buffer = tls.get_buffer(len(self._early))
            count = min(len(buffer), len(self._early))
            buffer[:count] = self._early[:count]
            del self._early[:count]
            tls.buffer_updated(count)

    def _end(self) -> None:
        self._open.discard(self)
        if self._place is not None:
            self._guard.leave(self._place)
            self._place = None
