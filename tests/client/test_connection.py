"""One connection: which addresses there are, and what may answer there."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from gateway.client import GatewayUnreachable, InvalidAddress, NotAuthorized, connect, stream_url
from gateway.client.connection import STREAM_PATH
from tests.clocks import swiftly
from tests.gateways import running
from tests.scripted_gateway import STARTED, scripted_gateway, silent

# ---------------------------------------------------------------- addresses


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("http://127.0.0.1:8000", "ws://127.0.0.1:8000/v1/stream"),
        ("http://127.0.0.1:8000/", "ws://127.0.0.1:8000/v1/stream"),
        ("ws://127.0.0.1:8000/v1/stream", "ws://127.0.0.1:8000/v1/stream"),
        ("http://127.0.0.1:8000/v1/stream/", "ws://127.0.0.1:8000/v1/stream"),
        ("https://meet.example.org", "wss://meet.example.org/v1/stream"),
        ("WSS://meet.example.org/captions", "wss://meet.example.org/captions/v1/stream"),
        ("localhost:8000", "ws://localhost:8000/v1/stream"),
        (" http://[::1]:8000 ", "ws://[::1]:8000/v1/stream"),
    ],
)
def test_an_address_may_be_written_as_people_write_it(address: str, url: str) -> None:
    assert stream_url(address) == url


@pytest.mark.parametrize(
    "address", ["", "http://", "ftp://127.0.0.1", "http://127.0.0.1:80000", "http://a:b", "http://[::1"]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InvalidAddress, match=r"is not the address of a gateway, such as http://127\.0"):
        stream_url(address)


# ---------------------------------------------------------------- who answers there


async def test_no_answer(closed_port: int) -> None:
    with pytest.raises(GatewayUnreachable) as caught:
        await no_session(f"http://127.0.0.1:{closed_port}")
    assert str(caught.value) == (f"No gateway answers at ws://127.0.0.1:{closed_port}: none runs there.")


async def test_the_host_is_not_known() -> None:
    with pytest.raises(GatewayUnreachable, match=r"The host of ws://gateway\.invalid is not known\."):
        await no_session("gateway.invalid")


@asynccontextmanager
async def server(status: int | None = None, body: str = "", **options: Any) -> AsyncGenerator[str, None]:
    """The address of a WebSocket server without our subprotocol, or one that answers with this status."""

    async def wait(connection: ServerConnection) -> None:
        await connection.wait_closed()

    def answer(connection: ServerConnection, _request: Request) -> Response | None:
        return None if status is None else connection.respond(status, body)

    async with serve(wait, "127.0.0.1", 0, process_request=answer, **options) as serving:
        yield f"127.0.0.1:{next(iter(serving.sockets)).getsockname()[1]}"


async def no_session(url: str, **options: Any) -> None:
    async with connect(url, reads=["ja"], **options):
        pytest.fail("there is no session")


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (404, r"^There is no gateway at ws://\S+: \S+ answers with HTTP status 404\.$"),
        (None, r"not speak translation\.v1\.json"),
    ],
)
async def test_a_web_server_answers(status: int | None, why: str) -> None:
    async with server(status) as url:
        with pytest.raises(GatewayUnreachable, match=why):
            await no_session(url)


@pytest.mark.parametrize(
    ("status", "body", "token", "sentence"),
    [
        (401, "No.", None, "The gateway at {url} needs a token."),
        (401, "No.", "t1", "The gateway at {url} did not accept the token."),
        (403, '{"detail":"This token is for another gateway."}', "t1", "This token is for another gateway."),
        (403, "No.", "t1", "The server at {url} does not let this client in (HTTP status 403)."),
        (403, "", None, "The server at {url} does not let this client in (HTTP status 403)."),
    ],
)
async def test_refused_handshake(status: int, body: str, token: str | None, sentence: str) -> None:
    async with server(status, body) as url:
        with pytest.raises(NotAuthorized) as caught:
            await no_session(url, token=token)
    assert str(caught.value) == sentence.format(url=f"ws://{url}")
    assert caught.value.error.code == {401: "unauthenticated", 403: "forbidden"}[status]


@pytest.mark.parametrize("greeting", [b"SSH-2.0-OpenSSH_9.6\r\n", b""], ids=["another protocol", "a hang-up"])
async def test_something_else_answers(greeting: bytes) -> None:
    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as other:
        port = other.sockets[0].getsockname()[1]
        with pytest.raises(GatewayUnreachable, match=f"The server at ws://127.0.0.1:{port} is not a gateway"):
            await no_session(f"127.0.0.1:{port}")


@swiftly
async def test_a_server_that_accepts_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.client.connection._ANSWER_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(GatewayUnreachable, match=r"Nothing answered at .* within 0\.2 s"):
            await no_session(f"127.0.0.1:{port}")


async def test_a_secure_address_of_an_insecure_gateway() -> None:
    async with scripted_gateway(silent) as url:
        with pytest.raises(
            GatewayUnreachable, match=r"wss://\S+ is not a secure gateway\. Without TLS .* http://\.$"
        ):
            await no_session(url.replace("http:", "https:"))


@pytest.fixture
def unknown_authority(tmp_path: Path) -> ssl.SSLContext:
    """A server's TLS with a certificate that it signed itself."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost"
    subprocess.run([*command.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


async def test_unknown_certificate_authority(unknown_authority: ssl.SSLContext) -> None:
    async with server(ssl=unknown_authority) as url:
        with pytest.raises(
            GatewayUnreachable, match=r"No secure connection to wss://\S+: self.signed certificate"
        ):
            await no_session(f"wss://{url}")


async def test_an_insecure_address_of_a_secure_gateway(unknown_authority: ssl.SSLContext) -> None:
    async with server(ssl=unknown_authority) as url:
        with pytest.raises(GatewayUnreachable, match=r"ws://\S+ is not a gateway\. With TLS .* https://\.$"):
            await no_session(f"http://{url}")


async def test_a_server_that_is_not_secure_at_all() -> None:
    """OpenSSL reads its first bytes as a version."""

    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as other:
        with pytest.raises(GatewayUnreachable, match=r"is not a secure gateway\. Without TLS") as caught:
            await no_session(f"https://127.0.0.1:{other.sockets[0].getsockname()[1]}")
    assert not caught.value.temporary


async def test_a_wrong_path_is_named() -> None:
    async with running() as serving:
        sentence = (
            r"There is no gateway at (\S+)/api: \S+ answers with HTTP status 404. Is the path right\? .* \1\."
        )
        with pytest.raises(GatewayUnreachable, match=sentence) as caught:
            await no_session(f"{serving.url.removesuffix(STREAM_PATH)}/api")
    assert not caught.value.temporary


async def test_a_proxy_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch, closed_port: int) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy", "ws_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port}")

    async with scripted_gateway(silent) as url, connect(url, reads=["ja"]) as session:
        assert session.started == STARTED
