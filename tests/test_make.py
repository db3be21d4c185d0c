"""What `make` runs."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.cli.commands import ROOT


def test_the_demo_has_the_model_that_is_named() -> None:
    for given, flag in (([], ""), (["MODEL=./my model"], '--model "./my model"')):
        said = subprocess.run(["make", "-n", "demo", *given], capture_output=True, text=True, cwd=ROOT, check=True)
        [serve] = [line for line in said.stdout.splitlines() if "gateway serve" in line]
        assert serve.partition("--port 8000")[2].strip() == flag


@pytest.mark.parametrize(
    ("goals", "hints"),
    [
        ("install", True),
        ("install-dev", True),
        ("clean-venv install", True),
        ("demo", False),
        ("install demo", False),
        ("check", False),
    ],
)
def test_the_installer_says_what_is_next_only_where_nothing_follows(goals: str, hints: bool) -> None:
    plan = subprocess.run(["make", "-n", *goals.split()], capture_output=True, text=True, cwd=ROOT, check=True)
    (command,) = set(re.findall(r"^scripts/install\.sh.*$", plan.stdout, re.MULTILINE))
    assert ("--next" in command.split()) is hints
