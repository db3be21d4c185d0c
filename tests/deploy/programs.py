"""The real programs that read what is in deploy/."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.commands import ROOT

__all__ = ["DEPLOY", "program", "run", "running"]

DEPLOY = ROOT / "deploy"

_TOOLS = ROOT / ".venv" / "tools" / "usr"


def program(name: str) -> str:
    """Its path."""
    path = os.pathsep.join((os.environ["PATH"], str(_TOOLS / "bin"), str(_TOOLS / "sbin"), "/usr/sbin"))
    if (found := shutil.which(name, path=path)) is None:
        raise RuntimeError(f"There is no {name}: scripts/deployment_tools.sh fetches what tests of deploy/ run.")
    return found


def run(name: str, *arguments: str) -> str:
    """What it says; fails unless it succeeds."""
    done = subprocess.run(
        [program(name), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@contextmanager
def running(name: str, *arguments: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """It ends with the test, however that ends. log: what it says."""
    with log.open("wb") as said:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", program(name), *arguments], stdout=said, stderr=said
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait()
