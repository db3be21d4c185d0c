"""What a process says that is started meanwhile goes to the file, and everything after it where it went before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.engines.vllm.output import output_to

SAYS = [sys.executable, "-c", "import sys; print('said', flush=True); print('complained', file=sys.stderr)"]


def test_a_process_writes_to_the_file_only_inside(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    handle = os.open(log, os.O_WRONLY | os.O_CREAT)
    print("before")
    with output_to(handle):
        subprocess.run(SAYS, check=True)
    os.close(handle)
    subprocess.run(SAYS, check=True)
    assert log.read_text() == "said\ncomplained\n"
    assert capfd.readouterr() == ("before\nsaid\n", "complained\n")
