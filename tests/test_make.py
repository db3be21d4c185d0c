"""What `make` runs."""

from __future__ import annotations

import re
import subprocess
from functools import partial
from itertools import combinations

import pytest
from _pytest.mark.expression import Expression

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
def test_installer_hints_only_where_nothing_follows(goals: str, hints: bool) -> None:
    """The hint says what is next."""
    plan = subprocess.run(["make", "-n", *goals.split()], capture_output=True, text=True, cwd=ROOT, check=True)
    (command,) = set(re.findall(r"^scripts/install\.sh.*$", plan.stdout, re.MULTILINE))
    assert ("--next" in command.split()) is hints


def among(marks: tuple[str, ...], name: str, /, **_options: object) -> bool:
    return name in marks


def test_each_test_is_in_one_stage() -> None:
    """Of `make test`, or else of `make test-long`."""
    said = subprocess.run(
        ["make", "-n", "test", "test-long"], capture_output=True, text=True, cwd=ROOT, check=True
    ).stdout
    found = re.findall(r'/pytest .*?-m (\w+|"[^"]+")', said)
    stages = [Expression.compile(each.strip('"')) for each in found if "hypothesis" not in each]
    others = ("browser", "engine", "long", "slow")
    for marks in [("image",), *(marks for count in range(5) for marks in combinations(others, count))]:
        wanted = [stage for stage in stages if stage.evaluate(partial(among, marks))]
        assert len(wanted) == 1, marks
