"""`python -m loadtest`: the subcommands.

Knows: which there are, what they have in common, the terminal. Must not know: their options, or how anything is
measured.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Self, TextIO

import uvloop

from demo_model import SMALL_MODEL
from gateway.bundled.folder import VARIABLE
from loadtest.capacity.recommend import RECOMMEND, SWEEP
from loadtest.journey import JOURNEY
from loadtest.machine import command_line, describe
from loadtest.options import Command, Say
from loadtest.page import PAGE
from loadtest.partials.run import PARTIALS
from loadtest.peers.comparison import PEERS
from loadtest.results import LoadtestError
from loadtest.run import RUN
from loadtest.soak.run import SOAK
from loadtest.trial import report
from loadtest.trial.values import Results


class Progress:
    """Shows the latest of what it is told."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._stage = ""

    def __call__(self, line: str) -> None:
        if self._stream.isatty():
            self._stream.write(f"\r\033[K{line}\r")
            self._stream.flush()
        elif (stage := line.rpartition(":")[0] or line) != self._stage:
            self._stage = stage
            self._stream.write(f"{line}\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Leave an empty line for what comes next."""
        if self._stream.isatty():
            self._stream.write("\r\033[K")
            self._stream.flush()


@contextmanager
def terminal() -> Iterator[TextIO]:
    """Our own way to the terminal: while an engine starts, descriptors 1 and 2 lead to its log."""
    with os.fdopen(os.dup(2), "w", buffering=1) as stream:
        yield stream


_TESTS = (RUN, SWEEP, RECOMMEND, PEERS, JOURNEY, SOAK, PARTIALS, PAGE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one load test; the exit status of the process."""
    # What is refused is in the report, and there may be much of it.
    logging.getLogger("gateway.client").setLevel(logging.CRITICAL)
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    # Measured are the gateway and the engine: with the small model they are compared in less time.
    os.environ.setdefault(VARIABLE, str(SMALL_MODEL))
    # Ended in any way short of a kill, it takes the engine's processes and the client's along. A shell without job
    # control starts what runs in the background with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with terminal() as stream:
        try:
            made = _measured(options, given, stream)
        except LoadtestError as error:
            stream.write(f"loadtest: {error}\n")
            return 1
        except (KeyboardInterrupt, asyncio.CancelledError):
            stream.write("loadtest: interrupted; nothing was written.\n")
            return 130
    sys.stdout.write(report.write(made, options.out))
    files = ", ".join(sorted(file.name for file in options.out.iterdir() if file.is_file()))
    sys.stdout.write(f"\nWritten to {options.out}, which holds {files}\n")
    return 0 if report.passed(made) else 1


def _measured(options: argparse.Namespace, given: Sequence[str], stream: TextIO) -> report.Report:
    command: Command = options.command
    began, machine = report.now(), describe()

    async def measured(say: Say) -> Results:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 -- we run in one
        # As Ctrl-C does.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await command.run(options, say)

    # The loop that `gateway serve` runs on.
    with Progress(stream) as progress, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        results = runner.run(measured(progress))
    line = command_line("loadtest", given)
    return report.report(results, kind=command.name, command=line, began=began, machine=machine)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m loadtest", description="Load tests of the gateway on this machine."
    )
    tests = parser.add_subparsers(required=True, metavar="TEST")
    for command in _TESTS:
        own = tests.add_parser(
            command.name,
            help=command.help,
            description=command.description,
            formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        )
        command.add(own)
        own.set_defaults(command=command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
