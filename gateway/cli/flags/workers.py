"""Flags of a gateway with several workers, and the command `reload`.

Knows: argparse. Must not know: what workers are.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from gateway.cli.flags.command import Commands, add_command, count


def add_reload(commands: Commands[argparse.ArgumentParser]) -> None:
    """The command `reload`."""
    reload = add_command(
        commands,
        "reload",
        help="replace the workers of a running gateway",
        description="""\
Lets a gateway that was started with --workers read its settings again and replace its workers, one after
another. Each finishes what it has accepted; the engine goes on running.""",
    )
    add_state_dir(reload)


def add_state_dir(parser: argparse._ActionsContainer) -> None:
    """The flag `--state-dir`."""
    parser.add_argument(
        "--state-dir",
        type=Path,
        metavar="FOLDER",
        help="where a gateway with workers keeps its process id and the data of its own store, and where engines "
        "wait with --keep-engine "
        "(default: ~/.local/state/translation-gateway)",
    )


def workers(text: str) -> int:
    """The value of `--workers`. Raises `ArgumentTypeError`."""
    if text == "auto":
        return len(os.sched_getaffinity(0))
    return count(text)
