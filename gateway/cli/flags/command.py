"""What the parsers of all commands have in common.

Knows: argparse, the form of help texts. Must not know: any single command.
"""

from __future__ import annotations

import argparse
import shutil

__all__ = ["Commands", "Help", "add_command"]

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
