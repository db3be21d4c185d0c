"""`python -m loadtest run`: its options.

Knows: the names of the options. Must not know: how anything is measured.
"""

from __future__ import annotations

import argparse

from loadtest.commands import Command, Say, between, from_
from loadtest.options import (
    ENGINE_OPTIONS,
    add_talk,
    add_url,
    add_workers,
    fields_of,
    file,
    objective,
    refuse,
    scenario,
    settings,
)
from loadtest.results import LoadtestError
from loadtest.run.run import RunPlan, run
from loadtest.trial.values import Results


def _add(parser: argparse.ArgumentParser) -> None:
    add_talk(parser, targets="ja,es", time_limit_s=3_600)
    add_url(parser)
    add_workers(parser)
    add = parser.add_argument
    add("--meetings", type=between(0, 100_000), default=10, metavar="N", help="at the same time")
    add("--readers", type=between(0, 100_000), default=0, metavar="N", help="more in each meeting, who only read")
    add("--idle", type=between(0, 1_000_000), default=0, metavar="N", help="sessions in which nothing is said")
    add("--seconds", type=from_(1, 86_400), metavar="S", help="how long; without it 30, or all of the file")
    add("--repetitions", type=between(1, 100), default=1, metavar="N", help="of the same")
    add(
        "--allow-bottleneck",
        action="store_true",
        help="report also what the client processes could not keep up with; it is noted",
    )


def plan(options: argparse.Namespace) -> RunPlan:
    """What the options say. Raises `LoadtestError` for a file that does not exist, and for options that would do
    nothing beside the others."""
    named = file(options)
    if named is not None:
        if not named.is_file():
            raise LoadtestError(f"--scenario is natural, uniform or a file; there is no file {named}.")
        refuse(options, ["meetings"], "the lines of a file say in which meeting they are.")
    if options.url is not None:
        refuse(options, ENGINE_OPTIONS, "the gateway at --url is measured as it runs.")
    own = {
        "settings": settings(options, several=True),
        "objective": objective(options),
        "scenario": scenario(options, meetings=options.meetings),
        "file": named,
    }
    return RunPlan(**(fields_of(options, RunPlan) | own))


async def _run(options: argparse.Namespace, say: Say) -> Results:
    return await run(plan(options), say)


RUN = Command(
    "run",
    "meetings on a gateway: people who talk, readers, idle sessions",
    "Holds meetings on a gateway, yours (--url) or one that is started: people take turns as in real "
    "meetings, at real speed, with what a recogniser says meanwhile, and everybody reads. With --engine simulated "
    "the gateway alone is measured: what it delivers with a core, what a session weighs. Exit status 1 when "
    "sessions were lost, when translations failed, and when not all that was asked for was measured.",
    _add,
    _run,
)
