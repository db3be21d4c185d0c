"""Flags of `gateway conformance`."""

from __future__ import annotations

from gateway.cli.flags.parser import parser


def test_what_comes_after_two_dashes_is_the_drivers_own() -> None:
    args = parser().parse_args(
        ["conformance", "--only", "say", "--only", "restart", "--", "node", "d.mjs", "--only", "x"]
    )
    assert args.driver == ["node", "d.mjs", "--only", "x"]
    assert args.only == ["say", "restart"]
    assert args.wait == 15
