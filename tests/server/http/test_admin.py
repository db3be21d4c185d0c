"""`/metrics`: what is on its page, and where it is served."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import httpx
import pytest

from gateway import metrics
from gateway.config import AuthSettings, Settings
from tests.keys import Keyring
from tests.over_http import NO_TLS, serving
from tests.processes import gateway_process


async def test_some_metrics_can_be_asked_for_by_name() -> None:
    async with serving() as (_, client):
        response = await client.get("/metrics?name[]=gateway_sessions&name[]=gateway_tokens_total&name[]=nothing")
    samples = {line.split()[0] for line in response.text.splitlines() if not line.startswith("#")}
    assert samples == {"gateway_sessions", "gateway_tokens_total"}


async def test_pages_of_metrics_are_written_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on, together = threading.Event(), threading.Event(), []

    def slow(names: list[str]) -> bytes:
        together.append(names)
        begun.set()
        assert go_on.wait(10)
        return b""

    async with serving() as (_, client):
        monkeypatch.setattr(metrics, "exposition", slow)
        asked = [asyncio.create_task(client.get(f"/metrics?name[]={number}")) for number in range(3)]
        await asyncio.to_thread(begun.wait, 10)
        # Answered behind all three on the one event loop: by then each of them has been taken up.
        await client.get("/healthz")
        assert len(together) == 1
        go_on.set()
        assert [response.status_code for response in await asyncio.gather(*asked)] == [200] * 3


async def test_with_keys_metrics_have_an_address_of_their_own(tmp_path: Path) -> None:
    async with serving(settings=Keyring(tmp_path).settings()) as (_, client):
        response = await client.get("/metrics")
    assert response.status_code == 404
    assert "admin_port" in response.text


@pytest.mark.parametrize(
    ("host", "admin_port", "status"), [("127.0.0.1", None, 200), ("0.0.0.0", None, 404), ("127.0.0.1", 0, 404)]
)
async def test_metrics_are_public_only_on_loopback(host: str, admin_port: int | None, status: int) -> None:
    settings = Settings(host=host, admin_port=admin_port, auth=AuthSettings(insecure_open=True))
    async with serving(settings=settings) as (_, client):
        response = await client.get("/metrics")
    assert response.status_code == status
    assert ("gateway_sessions" in response.text) == (status == 200)
    assert ("admin_port" in response.text) == (status == 404)


def test_admin_address_has_metrics_and_nothing_else() -> None:
    env = {"GATEWAY__ADMIN_PORT": "0"}
    with gateway_process("--engine", "simulated", "--host", "0.0.0.0", "--insecure-open", env=env) as gateway:
        gateway.ready()
        [line] = [line for line in gateway.said.splitlines() if line.startswith("Metrics: ")]
        address = line.removeprefix("Metrics: ")
        with httpx.Client(verify=NO_TLS) as client:
            assert "gateway_sessions" in client.get(address).text
            for path in ("/v1/languages", "/", "/healthz"):
                assert client.get(address.replace("/metrics", path)).status_code == 404
            assert client.get(address, headers={"Host": "rebound.example"}).status_code == 421
        assert gateway.end() == 0


def test_occupied_admin_port_is_refused_in_one_sentence() -> None:
    with gateway_process("--engine", "simulated") as first:
        first.ready()
        with gateway_process("--engine", "simulated", env={"GATEWAY__ADMIN_PORT": str(first.port)}) as second:
            assert second.process.wait(60) == 1
        assert f"Port {first.port} on 127.0.0.1 is taken" in second.said
        assert first.end() == 0
