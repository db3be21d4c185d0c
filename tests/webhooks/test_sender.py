"""One event over real HTTP, and what can come of it."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from gateway.domain.errors import StartupError
from gateway.domain.webhooks import Event
from gateway.runtime import proxy_of
from gateway.webhooks.sender import PING, Answer, Sender, body, headers, read_secrets
from tests.certificates import certificate
from tests.webhooks.receiver import receiver

pytestmark = pytest.mark.usefixtures("no_proxies")


async def test_an_event_arrives_as_it_was_sent() -> None:
    with receiver(lambda _: 204) as other:
        answer = await Sender().post(f"{other.url}?token=t", b'{"a":1}', {"webhook-id": "evt_1"})
        assert answer == Answer(204, "It answered with status 204.")
        [one] = other.received
    assert (one.path, one.body) == ("/hook?token=t", b'{"a":1}')
    assert one.headers["webhook-id"] == "evt_1"
    assert one.headers["Content-Type"] == "application/json"
    assert one.headers["User-Agent"].startswith("translation-gateway/")


async def test_a_redirect_is_not_followed() -> None:
    with receiver(lambda _: 307) as other:
        assert (await Sender().post(other.url, b"{}", {})).status == 307
        assert [one.path for one in other.received] == ["/hook"]


async def test_who_does_not_answer_is_not_waited_for() -> None:
    done = threading.Event()
    with receiver(lambda _: done.wait() and 200) as other:
        assert await Sender(total_s=0.2).post(other.url, b"{}", {}) == Answer(0, "It did not answer within 0.2 s.")
        done.set()


async def test_where_nobody_listens_it_is_said_without_the_address() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/secret"
        status, said, _ = await Sender().post(url, b"{}", {})
    assert (status, "secret" in said, said[:22]) == (0, False, "It cannot be reached: ")


async def test_a_certificate_that_nobody_signed_is_not_accepted(tmp_path: Path) -> None:
    async with unsigned(tmp_path) as port:
        status, said, _ = await Sender().post(f"https://127.0.0.1:{port}/hook", b"{}", {})
    assert (status, said[:31]) == (0, "Its certificate is not accepted")


@asynccontextmanager
async def unsigned(folder: Path) -> AsyncIterator[int]:
    """The port of a server whose certificate nobody signed."""
    own = certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.cert, own.key)
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def tunnels(port: int) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A proxy that takes whoever asks to a port of this machine; 0: nobody. Its address, and what it was asked."""
    asked: list[bytes] = []
    serving: list[asyncio.Task[None] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.current_task())
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        if port:
            writer.write(b"HTTP/1.1 200 Go on\r\n\r\n")
            there, back = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(pipe(reader, back), pipe(there, writer))
        else:
            writer.write(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
            await close(writer)

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
        await close(writer)

    async def close(writer: asyncio.StreamWriter) -> None:
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
        await asyncio.gather(*filter(None, serving))


async def test_proxy_tunnels_without_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with unsigned(tmp_path) as port, tunnels(port) as (proxy, asked):
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        status, said, _ = await Sender().post("https://hooks.invalid/s3cret", b"{}", {})
    # The certificate that counts is the host's own.
    assert (status, said[:31]) == (0, "Its certificate is not accepted")
    [one] = asked
    assert one.startswith(b"CONNECT hooks.invalid:443 ")
    assert b"s3cret" not in one


async def test_what_a_proxy_answers_is_not_the_hosts_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with tunnels(0) as (proxy, _):
        monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy}")
        answer = await Sender().post("https://hooks.invalid/hook", b"{}", {})
    assert answer == Answer(0, "The proxy answered with status 407.")
    for unreachable in ("http://127.0.0.1:1", "http://nowhere.invalid:3128", "http://127.0.0.1:99999"):
        monkeypatch.setenv("HTTPS_PROXY", unreachable)
        status, said, _ = await Sender().post("https://hooks.invalid/hook", b"{}", {})
        assert (status, said[:29]) == (0, "The proxy cannot be reached: ")


async def test_proxy_for_http_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiver() as other:
        monkeypatch.setenv("HTTP_PROXY", other.url.replace("//", "//ana:s3cret@"))
        assert (await Sender().post("http://hooks.invalid/hook", b"{}", {})).status == 200
        [one] = other.received
    assert one.path == "http://hooks.invalid/hook"
    assert one.headers["Proxy-Authorization"] == "Basic YW5hOnMzY3JldA=="


def test_excluded_hosts_are_reached_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proxy_of("https://hooks.example.com") is None
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "example.com,10.0.0.1:8443")
    for url in ("https://hooks.example.com", "https://10.0.0.1:8443", "https://localhost:1", "https://[::1]:1"):
        assert proxy_of(url) is None
    for url in ("https://hooks.example.org", "https://10.0.0.1"):
        assert proxy_of(url) == "http://proxy:3128"


async def test_passwords_of_the_machine_are_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login ana password s3cret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    with receiver() as other:
        await Sender().post(other.url, b"{}", {})
        assert "Authorization" not in other.received[0].headers


@pytest.mark.parametrize("status", [429, 503])
async def test_one_that_is_busy_says_for_how_long(status: int) -> None:
    with receiver(lambda _: status, retry_after="120") as other:
        answer = await Sender().post(other.url, b"{}", {})
    assert answer == Answer(status, f"It answered with status {status} and wants nothing for 120 s.", 120.0)
    in_an_hour = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    with receiver(lambda _: status, retry_after=in_an_hour) as other:
        after_s = (await Sender().post(other.url, b"{}", {})).retry_after_s
    assert after_s is not None
    assert 0 < after_s <= 3_600


@pytest.mark.parametrize(
    ("status", "retry_after", "after_s"),
    [
        (503, "Sun, 06 Nov 1994 08:49:37 GMT", 0.0),
        (503, "Sun Nov  6 08:49:37 1994", 0.0),
        (503, "soon", None),
        (503, "-5", None),
        (503, "1.5", None),
        (503, "Sun, 06 Nov 1994 08:49:37 +99999999999999999999", None),
        (500, "120", None),
        (301, "120", None),
    ],
)
async def test_only_a_clear_retry_after_is_obeyed(status: int, retry_after: str, after_s: float | None) -> None:
    with receiver(lambda _: status, retry_after=retry_after) as other:
        assert (await Sender().post(other.url, b"{}", {})).retry_after_s == after_s


STARTED_MS, ENDED_MS = 1_764_072_000_123, 1_764_075_600_000
ID = "evt_0123456789abcdef01234567"


def test_ended_meeting_is_told_without_its_words() -> None:
    event = Event(ID, "transcript.ready", "acme/standup", ENDED_MS + 1_500, STARTED_MS, ENDED_MS)
    assert json.loads(body(event)) == {
        "id": ID,
        "type": "transcript.ready",
        "timestamp": "2025-11-25T13:00:01.500Z",
        "data": {
            "tenant": "acme",
            "meeting": "standup",
            "started_at": "2025-11-25T12:00:00.123Z",
            "ended_at": "2025-11-25T13:00:00.000Z",
        },
    }


def test_running_meeting_has_no_end_in_its_event() -> None:
    started = json.loads(body(Event(ID, "meeting.started", "standup", STARTED_MS, STARTED_MS)))
    assert started["data"] == {
        "tenant": "default",
        "meeting": "standup",
        "started_at": "2025-11-25T12:00:00.123Z",
    }
    assert json.loads(body(Event(ID, PING, "", STARTED_MS, 0)))["data"] == {}


def test_the_signature_is_that_of_the_specification(tmp_path: Path) -> None:
    # The example of Standard Webhooks.
    (tmp_path / "secret").write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
    found = headers(
        read_secrets(str(tmp_path / "secret")),
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1_614_265_330,
        b'{"test": 2432232314}',
    )
    assert found == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_two_secrets_both_sign(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"whsec_{'A' * 32}\nwhsec_{'B' * 32}\n")
    both = read_secrets(str(tmp_path / "secret"))
    signed = headers(both, "id", 1, b"{}")["webhook-signature"].split(" ")
    assert signed == [headers([each], "id", 1, b"{}")["webhook-signature"] for each in both]
    assert len(set(signed)) == 2


@pytest.mark.parametrize(
    "content",
    [
        "",
        "secret",
        "whsec_",
        "whsec_!!!!",
        f"whsec_{'A' * 28}",
        f"whsec_{'A' * 88}",
        " ".join([f"whsec_{'A' * 32}"] * 3),
    ],
)
def test_bad_secret_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "secret").write_text(content)
    with pytest.raises(StartupError, match="openssl rand"):
        read_secrets(str(tmp_path / "secret"))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="nowhere of a webhook cannot be read: No such file"):
        read_secrets(str(tmp_path / "nowhere"))
