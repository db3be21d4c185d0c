"""TLS on real sockets, in both event loops: places, times, failing handshakes, and what comes right behind one."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import inspect
import logging
import re
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, cast

import pytest
import uvloop

from gateway.config import Settings
from gateway.domain.errors import StartupError
from gateway.protocol.limits import Limits
from gateway.protocol.messages import SessionStart, SessionStarted
from gateway.server.guard.connections import Connections
from gateway.server.guard.http import HEAD_FIELDS
from gateway.server.guard.tls import HSTS, server_context
from tests.certificates import Certificate, certificate
from tests.clocks import swiftly
from tests.frames import UPGRADE
from tests.gateways import Running, running

HOST = b"Host: 127.0.0.1\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
TASK = "TlsHandshake._take_over"


def in_both_loops(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs a test in asyncio's event loop and in uvloop's, which is the one of production."""

    @functools.wraps(test)
    def run(*args: Any, new_loop: Callable[[], asyncio.AbstractEventLoop], **kwargs: Any) -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(test(*args, **kwargs))

    signature = inspect.signature(test)
    loop = inspect.Parameter("new_loop", inspect.Parameter.KEYWORD_ONLY)
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), loop])  # type: ignore[attr-defined]
    loops = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
    in_each: Callable[..., None] = pytest.mark.parametrize("new_loop", loops.values(), ids=loops.keys())(run)
    return in_each


@pytest.fixture
def pair(tmp_path: Path) -> Certificate:
    return certificate(tmp_path)


def settings(pair: Certificate, **others: Any) -> Settings:
    return Settings(tls_cert=str(pair.cert), tls_key=str(pair.key), **others)


def places(gateway: Running) -> Connections:
    return cast("Any", gateway.server.config.http).keywords["connections"]  # type: ignore[no-any-return]


async def taken(gateway: Running, count: int) -> None:
    """Waits until so many places are taken."""
    while len(places(gateway)) != count:
        await asyncio.sleep(0.01)


async def nothing_is_left(gateway: Running) -> None:
    """Waits until no connection, no place and no task is left; the suite's timeout is the bound."""
    while (
        len(places(gateway))
        or gateway.server.server_state.connections
        or any(TASK in repr(task.get_coro()) for task in asyncio.all_tasks())
    ):
        await asyncio.sleep(0.01)


@contextlib.contextmanager
def silence(caplog: pytest.LogCaptureFixture) -> Any:
    """Nothing is logged, and no exception goes unhandled."""
    unhandled: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    with caplog.at_level(logging.INFO):
        yield
    assert unhandled == []
    loud = [record.getMessage() for record in caplog.records if record.levelno > logging.INFO]
    assert loud == []


class Wire:
    """A client on one TCP connection that does TLS by hand, so that it can choose what is sent together."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self._loop = asyncio.get_running_loop()
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="127.0.0.1")
        # Connected by the kernel: the gateway has not accepted it yet.
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.sock.setblocking(False)

    def hello(self) -> bytes:
        """The first message of a handshake."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self._tls.do_handshake()
        return self._outgoing.read()

    async def finish(self, request: bytes) -> bytes:
        """The last message of a handshake, and right behind it a request."""
        while True:
            await self._read()
            with contextlib.suppress(ssl.SSLWantReadError):
                self._tls.do_handshake()
                break
        self._tls.write(request)
        return self._outgoing.read()

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self.sock, data)

    async def answer(self) -> bytes:
        """What comes until the body is there."""
        received = b""
        while b"\r\n\r\n" not in received or received.endswith(b"\r\n\r\n"):
            try:
                received += self._tls.read(65_536)
            except ssl.SSLWantReadError:
                await self._read()
        return received

    async def _read(self) -> None:
        self._incoming.write(await self._loop.sock_recv(self.sock, 65_536))

    async def rest(self) -> bytes:
        """What comes on the connection itself until the gateway closes it."""
        received = b""
        with contextlib.suppress(ConnectionError):
            while more := await self._loop.sock_recv(self.sock, 65_536):
                received += more
        return received

    def reset(self) -> None:
        """Break it, so that the gateway gets an error instead of an end."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


@contextlib.contextmanager
def wire(gateway: Running, pair: Certificate) -> Any:
    opened = Wire(gateway.port, pair.trusting())
    try:
        yield opened
    finally:
        opened.sock.close()


@contextlib.asynccontextmanager
async def https(
    gateway: Running, pair: Certificate
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """An ordinary client."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port, ssl=pair.trusting())
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def asked(gateway: Running, pair: Certificate, request: bytes) -> bytes:
    """The head of the answer to one request."""
    async with https(gateway, pair) as (reader, writer):
        writer.write(request)
        return await reader.readuntil(b"\r\n\r\n")


# ---------------------------------------------------------------- files


def refusal(cert: Path, key: Path) -> str:
    with pytest.raises(StartupError) as caught:
        server_context(cert, key)
    return caught.value.message


def test_it_is_tls_1_2_at_least(pair: Certificate) -> None:
    context = server_context(*pair)
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.options & ssl.OP_NO_RENEGOTIATION


def test_files_that_cannot_be_read(pair: Certificate, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere.pem"
    assert refusal(nowhere, pair.key) == f"There is no certificate file {nowhere}."
    assert refusal(pair.cert, nowhere) == f"There is no private key file {nowhere}."
    assert refusal(pair.cert, tmp_path) == f"The private key file {tmp_path} cannot be read: Is a directory."


def test_files_that_hold_something_else(pair: Certificate, tmp_path: Path) -> None:
    assert refusal(pair.key, pair.cert) == f"There is no certificate in {pair.key}: it must be in PEM format."
    der = tmp_path / "key.der"
    der.write_bytes(b"\x30\x82")
    assert refusal(pair.cert, der) == f"There is no private key in {der}: it must be in PEM format."
    cut = tmp_path / "cut.pem"
    cut.write_text(pair.cert.read_text()[:100])
    assert refusal(cut, pair.key).startswith(
        f"The certificate in {cut} and the private key in {pair.key} cannot be used: "
    )


def test_a_key_of_another_certificate(pair: Certificate, tmp_path: Path) -> None:
    other = certificate(tmp_path, "other")
    assert refusal(pair.cert, other.key) == (
        f"The private key in {other.key} is not that of the certificate in {pair.cert}."
    )


def test_an_encrypted_key_asks_nobody(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, password=b"secret")
    assert refusal(cert, key) == f"The private key in {key} is encrypted: give one that is not."


# ---------------------------------------------------------------- what works


@in_both_loops
async def test_requests_and_websockets_are_secure_and_known_as_such(pair: Certificate) -> None:
    schemes = []
    async with running(settings(pair)) as gateway:
        app = gateway.server.config.loaded_app

        async def noting(scope: Any, receive: Any, send: Any) -> None:
            schemes.append(scope["scheme"])
            await app(scope, receive, send)

        gateway.server.config.loaded_app = noting
        assert b" 200 " in await asked(gateway, pair, HEALTH)
        await nothing_is_left(gateway)
        async with gateway.peer(ssl=pair.trusting()) as peer:
            assert len(places(gateway)) == 1
            await peer.send(SessionStart(reads=[]))
            assert isinstance(await peer.receive(), SessionStarted)
        await nothing_is_left(gateway)
    assert schemes == ["https", "wss"]


@in_both_loops
async def test_what_is_sent_before_it_is_accepted_is_read(pair: Certificate) -> None:
    async with running(settings(pair)) as gateway:
        with wire(gateway, pair) as client:
            client.sock.send(client.hello())
            await client.send(await client.finish(HEALTH))
            assert b" 200 " in await client.answer()


@in_both_loops
async def test_data_behind_the_handshakes_end_is_read(pair: Certificate) -> None:
    async with running(settings(pair)) as gateway:
        with wire(gateway, pair) as client:
            hello = client.hello()
            for piece in (hello[:1], hello[1:100], hello[100:]):
                await client.send(piece)
                await asyncio.sleep(0.01)
            await client.send(await client.finish(HEALTH * 20))
            answered = b""
            while answered.count(b" 200 ") < 20:
                answered += await client.answer()


@in_both_loops
async def test_slow_reader_is_noticed_as_without_tls(pair: Certificate) -> None:
    async with running(settings(pair)) as gateway, gateway.peer(ssl=pair.trusting()):
        (connection,) = gateway.server.server_state.connections
        _, high = connection.transport.get_write_buffer_limits()
        assert high == 65_536


REFUSED = {
    "nothing there": b"GET /nowhere HTTP/1.1\r\n" + HOST + b"\r\n",
    "no method": b"PUT / HTTP/1.1\r\n" + HOST + b"\r\n",
    "a problem": b"GET /v1/languages/x HTTP/1.1\r\n" + HOST + b"\r\n",
    "another name": b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n",
    "no request": b"\x00\r\n\r\n",
    "too many fields": b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * (HEAD_FIELDS + 1) + b"\r\n",
}


async def test_every_answer_keeps_browsers_with_tls(pair: Certificate) -> None:
    requests = {"the page": b"GET / HTTP/1.1\r\n" + HOST + b"\r\n", "health": HEALTH, **REFUSED}
    async with running(settings(pair)) as gateway:
        for name, request in requests.items():
            head = await asked(gateway, pair, request)
            assert (b" 4" in head.splitlines()[0]) is (name in REFUSED), head
            assert head.lower().count(b"\r\nstrict-transport-security: max-age=31536000\r\n") == 1, name
    assert HSTS == ("Strict-Transport-Security", "max-age=31536000")


async def test_without_tls_no_answer_does() -> None:
    async with running() as gateway:
        for request in (HEALTH, *REFUSED.values()):
            reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
            writer.write(request)
            assert b"strict" not in (await reader.readuntil(b"\r\n\r\n")).lower()
            writer.transport.abort()


# ---------------------------------------------------------------- places


@in_both_loops
async def test_half_open_connections_lock_nobody_out(pair: Certificate) -> None:
    async with (
        running(settings(pair, max_connections_per_address=3)) as gateway,
        contextlib.AsyncExitStack() as stack,
    ):
        silent, began, third = (stack.enter_context(wire(gateway, pair)) for _ in range(3))
        await began.send(began.hello()[:50])
        await taken(gateway, 3)
        for oldest in (silent, began):
            assert b" 200 " in await asked(gateway, pair, HEALTH)
            assert await oldest.rest() == b""
            await taken(gateway, 2)
            await stack.enter_async_context(gateway.peer(ssl=pair.trusting()))
            assert len(places(gateway)) == 3
        # The one that is left still can, in the place that it has.
        await third.send(third.hello())
        await third.send(await third.finish(HEALTH))
        assert b" 200 " in await third.answer()
        assert len(places(gateway)) == 3


@in_both_loops
async def test_those_who_are_accepted_together_push_one_another_out(
    pair: Certificate, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(settings(pair, max_connections_per_address=1)) as gateway:
        with silence(caplog), contextlib.ExitStack() as stack:
            *others, last = (stack.enter_context(wire(gateway, pair)) for _ in range(20))
            for client in others:
                client.sock.send(client.hello())
            for client in others:
                await client.rest()
            await taken(gateway, 1)
            await last.send(last.hello())
            await last.send(await last.finish(HEALTH))
            assert b" 200 " in await last.answer()
            last.sock.close()
            await nothing_is_left(gateway)
        # No timer of a handshake waits on, either.
        gc.collect()
        assert [each for each in gc.get_objects() if type(each).__name__ == "SSLProtocol"] == []


@in_both_loops
async def test_excess_connection_may_ask_for_health(pair: Certificate) -> None:
    async with (
        running(settings(pair, max_connections_per_address=2)) as gateway,
        contextlib.AsyncExitStack() as stack,
    ):
        for _ in range(2):
            await stack.enter_async_context(gateway.peer(ssl=pair.trusting()))
        assert b" 200 " in await asked(gateway, pair, HEALTH)
        head = await asked(gateway, pair, b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
        assert b" 503 " in head
        assert b"strict-transport-security" in head.lower()


# ---------------------------------------------------------------- handshakes that fail


@swiftly
async def test_a_handshake_that_never_ends_is_closed(pair: Certificate, caplog: pytest.LogCaptureFixture) -> None:
    async with running(settings(pair)) as gateway:
        began_s = asyncio.get_running_loop().time()
        with silence(caplog), wire(gateway, pair) as silent, wire(gateway, pair) as slow:
            await slow.send(slow.hello()[:50])
            assert await silent.rest() == b""
            assert await slow.rest() == b""
            await nothing_is_left(gateway)
        # In this loop's own time, whatever the machine does.
        assert asyncio.get_running_loop().time() - began_s < 16


@swiftly
async def test_whoever_does_not_say_goodbye_is_closed_soon(pair: Certificate) -> None:
    async with running(settings(pair)) as gateway:
        with wire(gateway, pair) as client:
            await client.send(client.hello())
            await client.send(await client.finish(HEALTH))
            await client.answer()
            answered_s = asyncio.get_running_loop().time()
            # TLS's goodbye, which is not answered.
            assert await client.rest()
            await nothing_is_left(gateway)
        # In this loop's own time: five seconds for another request, and four for the goodbye.
        assert asyncio.get_running_loop().time() - answered_s < 10


@in_both_loops
async def test_what_is_no_tls_is_closed_without_a_word(
    pair: Certificate, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(settings(pair)) as gateway:
        with silence(caplog):
            for said in (HEALTH, b"\x00" * 100, b"\x16\x03\x01\xff\xff" + b"x" * 70_000, b"SSH-2.0-x\r\n"):
                with wire(gateway, pair) as client:
                    with contextlib.suppress(ConnectionError):
                        await client.send(said)
                    assert b"HTTP" not in await client.rest()
            await nothing_is_left(gateway)


@in_both_loops
async def test_whoever_goes_away_leaves_nothing_behind(
    pair: Certificate, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(settings(pair)) as gateway:
        with silence(caplog):
            for reset in (False, True):
                for sent in (0, 50, None, -1):
                    with wire(gateway, pair) as client:
                        hello = client.hello()
                        if sent == -1:
                            # The end of the handshake, a request, and gone.
                            await client.send(hello)
                            await client.send(await client.finish(HEALTH))
                        else:
                            await client.send(hello[:sent])
                        if reset:
                            client.reset()
                await nothing_is_left(gateway)


@in_both_loops
async def test_whoever_does_not_trust_the_certificate(
    pair: Certificate, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = certificate(tmp_path, "other")
    async with running(settings(pair)) as gateway:
        with silence(caplog):
            with pytest.raises(ssl.SSLCertVerificationError):
                await asked(gateway, other, HEALTH)
            await nothing_is_left(gateway)


@in_both_loops
async def test_a_gateway_that_stops_does_not_wait_for_handshakes(
    pair: Certificate, caplog: pytest.LogCaptureFixture
) -> None:
    with silence(caplog):
        async with running(settings(pair)) as gateway:
            with wire(gateway, pair) as silent, wire(gateway, pair) as began:
                await began.send(began.hello()[:50])
                await taken(gateway, 2)
                gateway.server.should_exit = True
                assert await silent.rest() == await began.rest() == b""
                await nothing_is_left(gateway)
    assert not re.search("timeout graceful shutdown exceeded", caplog.text)


@swiftly
async def test_silent_websocket_is_gone_within_its_time(pair: Certificate) -> None:
    """The handshake is a part of the time; neither a close frame nor TLS's goodbye is answered."""
    clock = asyncio.get_running_loop().time
    async with running(settings(pair)) as gateway:
        begun_s = clock()
        with wire(gateway, pair) as client:
            await asyncio.sleep(10)
            await client.send(client.hello())
            await client.send(await client.finish(UPGRADE))
            await client.rest()
            assert clock() - begun_s < Limits().start_timeout_s + 1
