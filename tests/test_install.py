"""The installer: what is done when a step fails."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import install
from scripts.install import SetupError, Step


@pytest.fixture
def done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An environment that is there, and the steps that are done in it."""
    monkeypatch.setattr(install, "RECORD", tmp_path / "installed.json")
    return []


def step(name: str, done: list[str], *, fails: bool = False, without: str = "") -> Step:
    def run() -> None:
        done.append(name)
        if fails:
            raise SetupError(f"{name} cannot be had")

    return Step(name, name, "v1", run, without)


def run(steps: list[Step]) -> None:
    install.install("cpu", "asked for", steps, None)


def test_optional_step_is_left_out_with_a_sentence(done: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    steps = [step("base", done, fails=True, without="The small model translates."), step("gateway", done)]
    run(steps)
    assert done == ["base", "gateway"]
    assert "base cannot be had\n      The small model translates.\n" in capsys.readouterr().out
    # It is tried again the next time, and nothing else is.
    assert [each.name for each in install.pending(steps)] == ["base"]


def test_what_is_needed_ends_the_installation(done: list[str]) -> None:
    with pytest.raises(SetupError, match="tools cannot be had"):
        run([step("tools", done, fails=True), step("gateway", done)])
    assert done == ["tools"]


def test_only_the_base_can_be_left_out() -> None:
    by_name = {each.name: each for each in install.list_steps("cpu", dev=True, project=True, base=True)}
    assert [name for name, each in by_name.items() if each.without] == ["base"]
    assert "Gemma Terms of Use" in by_name["base"].title
    assert "base" not in {each.name for each in install.list_steps("cpu", dev=True, project=True, base=False)}


def test_what_builds_packages_needs_no_engine() -> None:
    command = [sys.executable, "scripts/install.py", "--build", "--plan"]
    plan = subprocess.run(command, check=True, capture_output=True, text=True, cwd=install.ROOT).stdout
    titles = re.findall(r"  (Install[^(]*) \(", plan)
    assert titles == [
        "Install the installer's own tools",
        "Install developer tools",
        "Install what builds and checks the page",
    ]
