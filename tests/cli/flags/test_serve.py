"""Flags of `serve`, `doctor` and `reload`."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from gateway.cli.flags.parser import parser
from gateway.cli.flags.serve import workers
from gateway.cli.main import main


def test_doctor_takes_what_serve_takes() -> None:
    flags = ["--port", "0", "--workers", "2", "--model", "m", "--store", "unix:///s", "--log-format", "json"]
    serve, doctor = (vars(parser().parse_args([command, *flags])) for command in ("serve", "doctor"))
    own = {"command", "parser"}
    assert {name: doctor[name] for name in doctor.keys() - own} == {
        name: serve[name] for name in serve.keys() - own - {"traceback"}
    }


def test_so_many_or_one_for_each_core() -> None:
    assert workers("3") == 3
    assert workers("auto") == len(os.sched_getaffinity(0))
    for wrong in ("0", "-1", "many", ""):
        with pytest.raises(ArgumentTypeError, match="not a whole number above 0"):
            workers(wrong)


def test_without_them_there_is_one_process_and_no_folder(capsys: pytest.CaptureFixture[str]) -> None:
    args = parser().parse_args(["serve"])
    assert (args.workers, args.state_dir) == (None, None)
    assert main(["serve", "--engine", "simulated", "--state-dir", "/tmp"]) == 1  # noqa: S108 -- not used
    assert "--state-dir goes with --workers or --keep-engine" in capsys.readouterr().err


def test_a_reload_without_a_gateway(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reload", "--state-dir", str(tmp_path)]) == 1
    assert f"gateway: No gateway with workers has its state in {tmp_path}" in capsys.readouterr().err
