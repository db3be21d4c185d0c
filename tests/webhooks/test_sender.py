"""One event over real HTTP, and what can come of it."""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
import threading
from pathlib import Path

import pytest

from gateway.domain.errors import StartupError
from gateway.webhooks.sender import Sender
from tests.certificates import certificate
from tests.webhooks.receiver import receiver


async def test_an_event_arrives_as_it_was_sent() -> None:
    with receiver(lambda _: 204) as other:
        answer = await Sender().post(f"{other.url}?token=t", b'{"a":1}', {"webhook-id": "evt_1"})
        assert answer == (204, "It answered with status 204.")
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
        assert await Sender(total_s=0.2).post(other.url, b"{}", {}) == (0, "It did not answer within 0.2 s.")
        done.set()


async def test_where_nobody_listens_it_is_said_without_the_address() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/secret"
        status, said = await Sender().post(url, b"{}", {})
    assert (status, "secret" in said, said[:22]) == (0, False, "It cannot be reached: ")


async def test_a_certificate_that_nobody_signed_is_not_accepted(tmp_path: Path) -> None:
    own = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.cert, own.key)
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, ssl=context)
    async with server:
        port = server.sockets[0].getsockname()[1]
        status, said = await Sender().post(f"https://127.0.0.1:{port}/hook", b"{}", {})
    assert (status, said[:31]) == (0, "Its certificate is not accepted")


def test_without_a_client_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(StartupError, match=r"pip install 'translation-gateway\[remote\]'"):
        Sender()
