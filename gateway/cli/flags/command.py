"""What the parsers of several commands have in common.

Knows: argparse, the form of help texts, values that several flags take. Must not know: any single command.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable
from contextlib import suppress

from gateway.domain.languages import normalise_all

Commands = argparse._SubParsersAction


class Help(argparse.RawDescriptionHelpFormatter):
    """Keeps the line breaks of examples, and makes room for the names of commands."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=min(100, shutil.get_terminal_size().columns))
        self._action_max_length = 14


def add_command(
    commands: Commands[argparse.ArgumentParser],
    name: str,
    *,
    help: str,
    description: str,
    epilog: str | None = None,
) -> argparse.ArgumentParser:
    """The parser of one command. It sets `command`, its name, and `parser`, itself."""
    command = commands.add_parser(name, help=help, description=description, epilog=epilog, formatter_class=Help)
    command.set_defaults(command=name, parser=command)
    return command


def count(text: str) -> int:
    """The value of a flag that takes a number. Raises `ArgumentTypeError`."""
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")


def languages(text: str) -> tuple[str, ...]:
    """The value of a flag that takes languages, each once. Raises `ArgumentTypeError`."""
    if found := normalise_all(tag for tag in text.split(",") if tag.strip()):
        return found
    raise argparse.ArgumentTypeError("give languages such as ja,de")


def number(allows: Callable[[float], bool], complaint: str) -> Callable[[str], float]:
    """The type of a flag that takes a number. complaint: what is said of a value that it does not allow."""

    def read(text: str) -> float:
        with suppress(ValueError):
            if allows(value := float(text)):
                return value
        raise argparse.ArgumentTypeError(f"{text!r} {complaint}")

    return read
