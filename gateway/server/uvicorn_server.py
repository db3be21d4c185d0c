"""uvicorn with a shutdown that finishes accepted work.

Knows: uvicorn, signals, listening sockets. Must not know: what the application does.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import uvicorn

from gateway.domain.errors import StartupError

_log = logging.getLogger(__name__)

_USER_TIMEOUT_MS = 60_000


def listen(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A listening socket, bound before anything slow starts. Raises `StartupError` in one sentence.

    shared: other processes of the same user listen there as well, and the kernel divides the connections.
    """
    return _bound(host, port, shared=shared, backlog=2_048)


def reserve(host: str, port: int) -> socket.socket:
    """A socket that keeps a port for processes that will `listen` there, `shared`. Raises `StartupError`."""
    # Whoever listens there now, with whatever options, is noticed only by somebody who would not share.
    with _bound(host, port, backlog=1) as alone:
        port = alone.getsockname()[1]
    sock = _bound(host, port, shared=True)
    # From now on others that would not share cannot have it, even while nobody listens.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    return sock


def _bound(host: str, port: int, *, shared: bool = False, backlog: int | None = None) -> socket.socket:
    sock: socket.socket | None = None
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # The protocol is given explicitly: event loops switch off Nagle's algorithm only if it is TCP.
        # With it, a token waits up to 40 ms for the client's delayed acknowledgement of the frame before.
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            # Every connection inherits this: if the peer acknowledges nothing for this long, the connection is
            # closed, and its buffers in the kernel and in the event loop are freed.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _USER_TIMEOUT_MS)
        sock.bind((host, port))
        if backlog is not None:
            sock.listen(backlog)
    except UnicodeError:
        raise StartupError(f"{host!r} is not a host name.") from None
    except OSError as error:
        if sock is not None:
            sock.close()
        if error.errno == errno.EADDRINUSE:
            raise StartupError(
                f"Port {port} on {host} is taken: stop what runs there, or choose another with --port."
            ) from None
        raise StartupError(f"Cannot listen on {host}, port {port}: {error.strerror or error}.") from None
    return sock


class SideServer(uvicorn.Server):
    """Serves beside another server, which gets the signals, until it is stopped."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        self.should_exit = True


class DrainingServer(uvicorn.Server):
    """SIGTERM, SIGINT or SIGHUP (a closed terminal): run `drain`, then stop. A second signal cancels the drain.

    shared: others listen at the same address, and get the new connections as soon as the drain begins.
    on_started: called once it serves. on_hangup: what SIGHUP does instead, also where it is ignored at the start.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        drain: Callable[[], Awaitable[None]],
        *,
        shared: bool = False,
        on_started: Callable[[], None] = lambda: None,
        on_hangup: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(config)
        self._drain = drain
        self._shared = shared
        self._on_started = on_started
        self._on_hangup = on_hangup
        self._sockets: list[socket.socket] = []
        self._draining: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn's own version raises the signal again at the end, so that the exit status would be 143.
        loop = asyncio.get_running_loop()
        # A signal that is ignored at the start stays ignored: SIGHUP under nohup, SIGINT after a script's `&`.
        candidates = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        signals = [number for number in candidates if signal.getsignal(number) is not signal.SIG_IGN]
        for number in signals:
            loop.add_signal_handler(number, self._on_signal, number)
        if self._on_hangup is not None:
            loop.add_signal_handler(signal.SIGHUP, self._on_hangup)
        try:
            yield
        finally:
            for number in {*signals, *([signal.SIGHUP] if self._on_hangup is not None else [])}:
                loop.remove_signal_handler(number)

    def drain_and_stop(self) -> None:
        """Drain and stop, as after a signal."""
        if self._draining is None:
            self._draining = asyncio.get_running_loop().create_task(self._stop_listening_and_drain())
            # Also where it is cancelled before it begins.
            self._draining.add_done_callback(lambda _: self.stop())

    def hurry(self) -> None:
        """Once it drains: stop without finishing accepted work."""
        if self._draining is not None:
            self._draining.cancel()

    def stop(self) -> None:
        """Stop without draining."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._sockets = sockets or []
            self._on_started()

    @property
    def listens(self) -> bool:
        """Whether new connections come; not where another process has shut down the listening socket."""
        return all(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) for sock in self._sockets)

    async def listen_at(self, sock: socket.socket) -> None:
        """Accept connections at this socket, in place of those before."""
        for server in self.servers:
            server.close()
        self._sockets = [sock]
        # As uvicorn does when it starts.
        config, state = self.config, self.lifespan.state
        accept: Callable[..., asyncio.Protocol] = config.http_protocol_class
        made = partial(accept, config=config, server_state=self.server_state, app_state=state)
        server = await asyncio.get_running_loop().create_server(made, sock=sock, backlog=config.backlog)
        self.servers = [server]

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        await super().serve(sockets)
        if self._draining is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._draining

    def _on_signal(self, number: int) -> None:
        if self._draining is not None:
            _log.warning("%s again: stopping without finishing accepted work", signal.Signals(number).name)
            self.hurry()
            return
        _log.info("%s: finishing accepted work, admitting no more", signal.Signals(number).name)
        self.drain_and_stop()

    async def _stop_listening_and_drain(self) -> None:
        if self._shared:
            for sock in self._sockets:
                with contextlib.suppress(OSError):  # another process has done it
                    # Closing is not enough where another process has the socket, too.
                    sock.shutdown(socket.SHUT_RDWR)
            for server in self.servers:
                server.close()
            for sock in self._sockets:
                sock.close()
        await self._drain()
