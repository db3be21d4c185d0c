"""`python -m loadtest`: the subcommands.

Knows: which there are, what they have in common. Must not know: their options, or how anything is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from loadtest.capacity.command import CAPACITY, RECOMMEND, SWEEP
from loadtest.capacity.shown import extras as capacity_extras
from loadtest.commands import Command
from loadtest.journey.command import JOURNEY
from loadtest.journey.shown import extras as journey_extras
from loadtest.machine import command_line
from loadtest.partials.command import PARTIALS
from loadtest.partials.report import shown as partials_shown
from loadtest.partials.result import PartialsResult
from loadtest.peers.command import PEERS
from loadtest.peers.table import extras as peers_extras
from loadtest.report.command import report_command
from loadtest.report.folder import read
from loadtest.results import LoadtestError
from loadtest.run.command import RUN
from loadtest.soak.command import SOAK
from loadtest.soak.report import shown as soak_shown
from loadtest.soak.result import SoakResult
from loadtest.terminal import Progress, terminal
from loadtest.trial.report import Extras, again

__all__ = ["main"]

# Kind of a result → what is shown of it.
_REPORT = report_command(
    {
        "run": again(lambda _report: Extras()),
        "sweep": again(capacity_extras),
        "capacity": again(capacity_extras),
        "recommend": again(capacity_extras),
        "peers": again(peers_extras),
        "journey": again(journey_extras),
        "soak": lambda folder: soak_shown(read(folder, SoakResult)),
        "partials": lambda folder: partials_shown(read(folder, PartialsResult)),
    }
)
_COMMANDS: tuple[Command[Any], ...] = (
    *(RUN, SWEEP, CAPACITY, RECOMMEND, PEERS, JOURNEY),
    *(SOAK, PARTIALS),
    _REPORT,
)

_Result = TypeVar("_Result")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one load test; the exit status of the process."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    command: Command[Any] = options.command
    # Ended in any way short of a kill, it takes the engine's processes and the client's along. A shell without job
    # control starts what runs in the background with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with terminal() as stream:
        progress = Progress(stream)
        try:
            # The loop that `gateway serve` runs on.
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                result = runner.run(_until_told(command.run(options, command_line("loadtest", given), progress)))
        except LoadtestError as error:
            progress.clear()
            stream.write(f"loadtest: {error}\n")
            return 1
        except (KeyboardInterrupt, asyncio.CancelledError):
            progress.clear()
            stream.write("loadtest: interrupted; nothing was written.\n")
            return 130
        progress.clear()
    command.write(result, options.out)
    sys.stdout.write(command.table(result))
    sys.stdout.write(f"\nWritten to {options.out}, which holds {_files(options.out)}\n")
    return 0 if command.passed(result) else 1


def _files(folder: Path) -> str:
    return ", ".join(sorted(file.name for file in folder.iterdir() if file.is_file()))


async def _until_told(measuring: Coroutine[None, None, _Result]) -> _Result:
    """Run it; SIGTERM cancels it as Ctrl-C does."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 -- we run in one
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await measuring


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m loadtest", description="Load tests of the gateway on this machine."
    )
    tests = parser.add_subparsers(required=True, metavar="TEST")
    for command in _COMMANDS:
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
