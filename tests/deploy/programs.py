"""The real programs that read what is in deploy/."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scripts.stack import DEPLOY as DEPLOY
from scripts.stack import program as program


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
