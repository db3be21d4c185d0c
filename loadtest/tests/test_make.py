"""What `make` and the documentation call: load tests with options that exist."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from loadtest.__main__ import _parser

ROOT = Path(__file__).parents[2]
TARGETS = ("soak", "loadtest", "bench-peers", "bench-journey", "bench-gateway", "bench-sweep", "bench-recommend")
PAGES = ("docs/loadtest.md", "docs/tuning.md")


def load_tests(text: str) -> list[list[str]]:
    """Arguments of every `python -m loadtest …` in a shell's text, up to the end of its command."""
    joined = text.replace("\\\n", " ")
    found = re.findall(r"python -m loadtest (\w.*?)(?:\|\||#|$)", joined, re.MULTILINE)
    return [shlex.split(arguments) for arguments in found]


def said_by_make(*target: str) -> str:
    make = shutil.which("make")
    assert make is not None
    # Without the installation, and without what the surroundings say to another make.
    command = [make, "--dry-run", "--assume-old=install-dev", "--no-print-directory", *target]
    quiet = {"PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=ROOT, env=quiet, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("target", TARGETS)
def test_make_calls_load_tests_as_they_want_it(target: str) -> None:
    calls = load_tests(said_by_make(target))
    assert calls
    folders = [_parser().parse_args(call).out for call in calls]
    assert len(set(folders)) == len(folders)


def test_make_soak_takes_workers() -> None:
    for words, workers in ((["soak"], None), (["soak", "WORKERS=3", "MINUTES=5"], 3)):
        [call] = load_tests(said_by_make(*words))
        assert _parser().parse_args(call).workers == workers


@pytest.mark.parametrize("page", PAGES)
def test_the_documentation_calls_load_tests_as_they_want_it(page: str) -> None:
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    calls = load_tests("\n".join(blocks))
    assert calls
    for call in calls:
        _parser().parse_args(call)
