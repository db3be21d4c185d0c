"""The proxy of deploy/, run by the real nginx in front of two gateways that share a store."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace
from websockets.asyncio.client import connect as websocket

from gateway.client import ClientSession, connect
from gateway.config import Settings, StoreSettings
from gateway.protocol.messages import TranslationFinal
from loadtest.systems.server import free_port
from scripts.stack import proxy_settings
from tests.certificates import certificate
from tests.deploy.programs import running as running_program
from tests.gateways import Running, running
from tests.redis_server import shared_server

pytestmark = pytest.mark.slow

TEXT = {"text": "good morning", "source_lang": "en", "target_lang": "de"}


class Proxied:
    """Two gateways behind the proxy."""

    def __init__(
        self, gateways: list[Running], port: int, plain_port: int, trusting: ssl.SSLContext, log: Path
    ) -> None:
        self.gateways = gateways
        self.port, self.plain_port = port, plain_port
        self.trusting = trusting
        self.log = log

    @property
    def url(self) -> str:
        return f"wss://localhost:{self.port}/v1/stream"

    @property
    def http(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=f"https://localhost:{self.port}", verify=self.trusting, timeout=None)  # noqa: S113


@pytest.fixture
async def proxied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Proxied]:
    tls = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tls.cert))
    port, plain_port = free_port(), free_port()
    store = StoreSettings(url=shared_server().url, prefix=f"{secrets.token_hex(4)}:")
    settings = replace(Settings(store=store), trusted_proxies=("127.0.0.1",), max_connections_per_address=3)
    # On ports that others can have again.
    async with running(settings, port=free_port()) as one, running(settings, port=free_port()) as another:
        gateways = {"gateway-1:8000": f"127.0.0.1:{one.port}", "gateway-2:8000": f"127.0.0.1:{another.port}"}
        config = proxy_settings(tmp_path, gateways, port, plain_port, tls.cert, tls.key)
        file, log = tmp_path / "nginx.conf", tmp_path / "nginx.log"
        file.write_text(config)
        with running_program("nginx", "-c", str(file), "-p", str(tmp_path), "-e", "stderr", log=log) as nginx:
            proxied = Proxied([one, another], port, plain_port, tls.trusting(), log)
            while True:
                assert nginx.poll() is None, log.read_text()
                with contextlib.suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                await asyncio.sleep(0.01)
            yield proxied


async def test_a_meeting_goes_on_when_one_gateway_goes_away(proxied: Proxied) -> None:
    async with (
        connect(proxied.url, meeting="m", speaks="en", reads=["de"]) as ana,
        connect(proxied.url, meeting="m", reads=["de"]) as ben,
    ):
        # Nobody is sent where the other one is.
        assert [each.gateway.stream.open_sessions for each in proxied.gateways] == [1, 1]
        await ana.final("good morning")
        await asyncio.gather(heard(ana, 1), heard(ben, 1))
        proxied.gateways[0].server.should_exit = True
        await ana.final("and welcome")
        both = await asyncio.gather(heard(ana, 1), heard(ben, 1))
        assert both[0] == both[1]


async def test_everybody_returns_at_once_after_an_outage(proxied: Proxied) -> None:
    """There was no gateway for a while."""
    settings, ports = proxied.gateways[0].gateway.settings, [each.port for each in proxied.gateways]
    for each in proxied.gateways:
        each.server.should_exit = True
    async with proxied.http as client:
        while (await client.get("/healthz")).status_code != 502:
            await asyncio.sleep(0.01)
    async with contextlib.AsyncExitStack() as open_ones:
        for port in ports:
            await open_ones.enter_async_context(running(settings, port=port))
        for _ in range(5):
            await open_ones.enter_async_context(websocket(proxied.url, ssl=proxied.trusting))


async def heard(session: ClientSession, count: int) -> list[str]:
    """The next translations."""
    texts: list[str] = []
    async for message in session:
        if isinstance(message, TranslationFinal):
            texts.append(message.text)
            if len(texts) == count:
                break
    return texts


async def test_plain_http_moves_to_tls_and_metrics_hide(proxied: Proxied) -> None:
    """The proxy does not publish the metrics."""
    async with proxied.http as client:
        moved = await client.get(f"http://localhost:{proxied.plain_port}/?meeting=standup")
        assert (moved.status_code, moved.headers["location"]) == (
            308,
            f"https://localhost:{proxied.port}/?meeting=standup",
        )
        assert (await client.get("/metrics")).status_code == 404
        page = await client.get("/?meeting=standup")
        assert page.headers["content-security-policy"]
        assert page.headers["strict-transport-security"]
    assert "standup" not in proxied.log.read_text()


async def test_proxy_speaks_http2_and_compresses(proxied: Proxied) -> None:
    proxied.trusting.set_alpn_protocols(["h2"])
    _, writer = await asyncio.open_connection("localhost", proxied.port, ssl=proxied.trusting)
    assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "h2"
    writer.close()
    proxied.trusting.set_alpn_protocols(["http/1.1"])
    async with proxied.http as client:
        assert (await client.get("/openapi.json")).headers["content-encoding"] == "gzip"


async def test_a_text_that_is_streamed_comes_word_by_word(proxied: Proxied) -> None:
    async with proxied.http as client:
        slow, accept = {**TEXT, "text": "SLOW " + "word " * 20}, {"Accept": "text/event-stream"}
        pieces = 0
        async with client.stream("POST", "/v1/translate", json=slow, headers=accept) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            async for _ in response.aiter_raw():
                pieces += 1
        assert pieces > 3


async def test_nobody_speaks_for_another_address(proxied: Proxied) -> None:
    async with contextlib.AsyncExitStack() as open_ones:
        for n in range(3):
            liar = {"X-Forwarded-For": f"192.0.2.{n}"}
            await open_ones.enter_async_context(
                websocket(proxied.url, additional_headers=liar, ssl=proxied.trusting)
            )
        accounts = {account for each in proxied.gateways for account in each.gateway.stream._accounts}
        assert accounts == {"127.0.0.1"}
