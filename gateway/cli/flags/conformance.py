"""Flags of the command `conformance`.

Knows: argparse. Must not know: what a transcript is.
"""

from __future__ import annotations

import argparse

from gateway.cli.flags.command import Commands, add_command, count


def add_conformance(commands: Commands[argparse.ArgumentParser]) -> None:
    """The command `conformance`."""
    conformance = add_command(
        commands,
        "conformance",
        help="test a client of your own",
        description="""\
Plays the gateway to a client in any language, one transcript of the protocol after the other, and says what
the client did differently. DRIVER is a program that does with the client what it is told on stdin; a new one is
started for each transcript. docs/write-a-client.md says what it has to do.""",
        epilog="""examples:
  gateway conformance -- node driver.mjs
  gateway conformance --only lost-connection -- ./driver --verbose""",
    )
    conformance.add_argument("driver", nargs="*", metavar="DRIVER", help="the program and its arguments, after --")
    conformance.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="play this transcript (repeatable)"
    )
    conformance.add_argument(
        "--wait",
        type=count,
        default=15,
        metavar="SECONDS",
        help="how long to wait for one thing to happen (default: 15)",
    )
    conformance.add_argument("--list", action="store_true", help="print the transcripts and what each is about")
    conformance.add_argument(
        "--json", action="store_true", help="print the transcripts as JSON, for a runner of your own"
    )
