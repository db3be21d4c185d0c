"""A store on a port: it keeps what it has confirmed, however often it is killed, and ends when it is told to."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from loadtest.results import LoadtestError
from loadtest.systems.server import free_port
from loadtest.systems.store import Store


async def asked(store: Store, command: str) -> str:
    """The answer of a store that may have to be started again first."""
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(store.url.rpartition(":")[2]))
        except OSError:
            await asyncio.sleep(0.01)
            continue
        password = store.url.split(":")[2].partition("@")[0]
        writer.write(f"AUTH {password}\r\n{command}\r\n".encode())
        await reader.readline()
        answer = await reader.readline()
        writer.close()
        # While it reads its file it takes no commands.
        if answer and not answer.startswith(b"-LOADING"):
            return answer.decode().strip()


@pytest.mark.slow
async def test_what_was_confirmed_outlives_a_kill(tmp_path: Path) -> None:
    store = Store(free_port(), tmp_path / "store")
    assert not store.signal(signal.SIGKILL)
    try:
        await store.start()
        for count in range(1, 4):
            assert await asked(store, "INCR count") == f":{count}"
            killed = store.pid
            assert store.signal(signal.SIGKILL)
            while store.pid in (killed, None):
                await asyncio.sleep(0.01)
    finally:
        await store.end()
    assert store.pid is None
    with pytest.raises(OSError, match="Connect"):
        await asyncio.open_connection("127.0.0.1", int(store.url.rpartition(":")[2]))


async def test_a_machine_without_it_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LoadtestError, match="not installed"):
        await Store(free_port(), tmp_path / "store").start()
