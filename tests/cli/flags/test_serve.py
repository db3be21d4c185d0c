"""Flags of `serve` and `doctor`."""

from __future__ import annotations

from gateway.cli.flags.parser import parser


def test_doctor_takes_what_serve_takes() -> None:
    flags = ["--port", "0", "--workers", "2", "--model", "m", "--store", "unix:///s", "--log-format", "json"]
    serve, doctor = (vars(parser().parse_args([command, *flags])) for command in ("serve", "doctor"))
    own = {"command", "parser"}
    assert {name: doctor[name] for name in doctor.keys() - own} == {
        name: serve[name] for name in serve.keys() - own - {"traceback"}
    }
