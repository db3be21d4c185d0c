"""`gateway doctor` and `gateway config check`: a line for each finding, and the exit status."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.cli.main import main
from loadtest.systems.server import free_port


def test_a_line_for_each_finding(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(f"port = {free_port()}\n[engine]\nkind = 'simulated'\n")
    assert main(["doctor", "--config", str(file)]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["ok", "settings", f"{file} can be used."]
    assert {about for _, about, _ in lines} == {"settings", "port", "keys", "connections", "memory", "engine"}
    # Flags win over it.
    assert main(["doctor", "--config", str(file), "--host", "0.0.0.0"]) == 1
    assert "problem\tkeys\t" in capsys.readouterr().out


def test_settings_that_cannot_be_used_are_the_only_finding(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text("prot = 1")
    assert main(["doctor", "--config", str(file)]) == 1
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("problem\tsettings\t")
    assert "did you mean 'port'?" in line


def test_every_mistake_of_a_file_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text("port = 'many'\nprot = 1\n[gateway]\nport = 1\n[engine]\nmax_num_seqs = []\n")
    assert main(["config", "check", str(file)]) == 1
    said = [line.split("\t")[2] for line in capsys.readouterr().out.splitlines()]
    assert [sentence.removeprefix(f"{file}: ") for sentence in said] == [
        "port: 'many' is not a whole number.",
        "there is no setting 'prot'; did you mean 'port'?",
        "there is no section [gateway]. Leave this heading out, and write its settings at the top of the file, "
        "before the first heading.",
        "engine.max_num_seqs: [] is not a whole number.",
    ]
    file.write_text("port = 70000\nmax_sessions = -1\n")
    assert main(["config", "check", str(file)]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_file_is_checked_without_a_look_at_the_machine(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "gateway.toml"
    # This model is not here.
    file.write_text("[engine]\nmodel = '/models/elsewhere'\n")
    assert main(["config", "check", str(file)]) == 0
    assert capsys.readouterr().out == f"ok\tsettings\t{file} can be used.\n"
    file.write_text("prot = 1")
    assert main(["config", "check", str(file)]) == 1
    assert "did you mean 'port'?" in capsys.readouterr().out
