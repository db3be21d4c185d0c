"""A network that loses packets: everything arrives in the end, and nobody else notices."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from loadtest.results import LoadtestError
from loadtest.systems.store import enter_lossy_network

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
