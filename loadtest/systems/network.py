"""A network of this process's own that loses packets.

Knows: Linux's network namespaces, nft. Must not know: who listens there.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess

from loadtest.results import LoadtestError

# See unshare(2).
_CLONE_NEWNET = 0x40000000

_RULES = """
table inet loss {{
    chain input {{
        type filter hook input priority 0; policy accept;
        tcp dport {port} numgen random mod 10000 < {parts} drop
        tcp sport {port} numgen random mod 10000 < {parts} drop
    }}
}}
"""


def enter_lossy_network(port: int, percent: float) -> None:
    """Leave the machine's network for one that is only a loopback interface, where so many of the TCP packets from
    and to the port are lost.

    What this thread starts from now on is in it too. It is gone with the last of these processes; the machine's
    own is not touched. Raises `LoadtestError` where that is not allowed.
    """
    for program in ("ip", "nft"):
        if shutil.which(program) is None:
            raise LoadtestError(f"Packets cannot be lost without `{program}`: install it, or leave out --loss.")
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET):
        why = os.strerror(ctypes.get_errno())
        raise LoadtestError(f"This machine allows no network of its own ({why}), so leave out --loss.")
    _run(["ip", "link", "set", "lo", "up"], "")
    _run(["nft", "-f", "-"], _RULES.format(port=port, parts=round(percent * 100)))


def _run(command: list[str], text: str) -> None:
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        said = " ".join(done.stderr.split()) or f"status {done.returncode}"
        raise LoadtestError(f"Packets cannot be lost on this machine: `{' '.join(command)}` failed ({said}).")
