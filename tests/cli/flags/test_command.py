"""What the parsers of all commands have in common."""

from __future__ import annotations

import argparse

import pytest

from gateway.cli.flags.command import Help, add_command


def command(**more: str) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """A program with one command, and this command's parser."""
    program = argparse.ArgumentParser(prog="gateway", formatter_class=Help)
    commands = program.add_subparsers(title="commands", metavar="COMMAND")
    return program, add_command(commands, "fly", help="take off", description="Takes\noff.", **more)


def test_a_command_says_which_it_is() -> None:
    program, fly = command()
    args = program.parse_args(["fly"])
    assert (args.command, args.parser) == ("fly", fly)


def test_help_keeps_the_lines_of_examples() -> None:
    _, fly = command(epilog="examples:\n  gateway fly      high\n  gateway fly low")
    shown = fly.format_help()
    assert "Takes\noff.\n" in shown
    assert shown.endswith("examples:\n  gateway fly      high\n  gateway fly low\n")


def test_names_of_commands_have_room() -> None:
    program, _ = command()
    assert "\n    fly         take off\n" in program.format_help()


@pytest.mark.parametrize(("columns", "widest"), [("40", 40), ("100", 100), ("300", 100)])
def test_help_is_as_wide_as_the_terminal(columns: str, widest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    _, fly = command()
    fly.add_argument("--high", help="word " * 100)
    width = max(map(len, fly.format_help().splitlines()))
    assert widest - len("word ") <= width <= widest
