"""The JavaScript client's own tests, `*.test.js` beside this file: each file is run by Node."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scripts.npm_package import NODE

FILES = sorted(Path(__file__).parent.glob("*.test.js"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_file(file: Path) -> None:
    done = subprocess.run([NODE, "--test", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
