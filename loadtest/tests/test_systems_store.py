"""A store on a port: it keeps what it has confirmed, however often it is killed, and ends when it is told to."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from loadtest.results import LoadtestError
from loadtest.systems.server import free_port
from loadtest.systems.store import Store, enter_lossy_network

# Says what rules there are in its network, and which interfaces.
INSIDE = """
import socket, subprocess
from loadtest.systems.store import enter_lossy_network
enter_lossy_network({port}, {percent})
print(subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=True).stdout)
print([name for _, name in socket.if_nameindex()])
"""


def inside(percent: float) -> str:
    code = INSIDE.format(port=6379, percent=percent)
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def allowed() -> bool:
    unshare = shutil.which("unshare")
    return bool(
        shutil.which("nft") and unshare and not subprocess.run([unshare, "--net", "true"], check=False).returncode
    )


@pytest.mark.skipif(not allowed(), reason="needs root and nft")
def test_packets_of_one_port_are_lost_in_a_network_of_its_own() -> None:
    before = os.readlink("/proc/self/ns/net")
    said = inside(2.5)
    for direction in ("dport", "sport"):
        assert f"tcp {direction} 6379 numgen random mod 10000 < 250 drop" in said
    assert "['lo']" in said
    assert os.readlink("/proc/self/ns/net") == before


def test_a_machine_without_the_programs_is_told_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LoadtestError, match="Packets cannot be lost without `ip`"):
        enter_lossy_network(1, 2)


# ---------------------------------------------------------------- the store


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
