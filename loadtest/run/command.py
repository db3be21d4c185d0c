"""`python -m loadtest run`: its options.

Knows: the names of the options. Must not know: how anything is measured.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from loadtest.commands import Command, Say, add_out, between, from_
from loadtest.results import LoadtestError
from loadtest.run.plan import RunPlan
from loadtest.run.run import run
from loadtest.talk.scenario import Scenario
from loadtest.trial import report
from loadtest.trial.options import add_driver, add_engine, add_objective, objective, settings
from loadtest.trial.values import Report

__all__ = ["RUN"]

_SHAPES = ("natural", "uniform")


def _languages(text: str) -> tuple[str, ...]:
    """Language tags with commas between them, each once."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _add(parser: argparse.ArgumentParser) -> None:
    scenario = Scenario()
    add_out(parser)
    add = parser.add_argument
    add("--url", help="a gateway that runs already, http://…; without it one is started")
    add_engine(parser)
    add(
        "--scenario",
        default=scenario.shape,
        metavar="natural|uniform|FILE",
        help="talk as in real meetings, lines all of one length, or lines from a file",
    )
    add("--seed", type=int, default=scenario.seed, help="what is said")
    add("--source", default=scenario.source, metavar="LANG", help="language that is spoken")
    add("--targets", type=_languages, default="ja,es", metavar="LANG,LANG", help="languages that are read")
    add("--meetings", type=between(0, 100_000), default=10, metavar="N", help="at the same time")
    add(
        "--people",
        type=between(1, 1_000),
        default=scenario.people,
        metavar="N",
        help="of each, who speak in turns",
    )
    add(
        "--partials",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="send what is being said every 200 to 400 ms, not finals alone",
    )
    add("--readers", type=between(0, 100_000), default=0, metavar="N", help="more in each meeting, who only read")
    add("--idle", type=between(0, 1_000_000), default=0, metavar="N", help="sessions in which nothing is said")
    add("--seconds", type=from_(1, 86_400), metavar="S", help="how long; without it 30, or all of the file")
    add("--repetitions", type=between(1, 100), default=1, metavar="N", help="of the same")
    add_driver(parser)
    add(
        "--allow-bottleneck",
        action="store_true",
        help="report also what the client processes could not keep up with; it is noted",
    )
    add_objective(parser)


def plan(options: argparse.Namespace) -> RunPlan:
    """What the options say. Raises `LoadtestError` for a file that is none."""
    file = None if options.scenario in _SHAPES else Path(options.scenario)
    if file is not None and not file.is_file():
        raise LoadtestError(f"--scenario is natural, uniform or a file; there is no file {file}.")
    return RunPlan(
        settings=settings(options),
        objective=objective(options),
        url=options.url,
        scenario=Scenario(
            seed=options.seed,
            source=options.source,
            targets=options.targets,
            shape=options.scenario if file is None else "natural",
            meetings=options.meetings,
            people=options.people,
            partial_every_s=0.3 if options.partials else None,
        ),
        file=file,
        partials=options.partials,
        seconds=options.seconds,
        readers=options.readers,
        idle=options.idle,
        repetitions=options.repetitions,
        processes=options.processes,
        time_limit_s=options.time_limit_s,
        allow_bottleneck=options.allow_bottleneck,
    )


async def _run(options: argparse.Namespace, command: str, say: Say) -> Report:
    return await run(plan(options), command, say)


RUN = Command(
    name="run",
    help="meetings on a gateway: people who talk, readers, idle sessions",
    description="Holds meetings on a gateway, yours (--url) or one that is started: people take turns as in real "
    "meetings, at real speed, with what a recogniser says meanwhile, and everybody reads. With --engine simulated "
    "the gateway alone is measured: what it delivers with a core, what it adds to the engine's script, what a "
    "session weighs. Exit status 1 when sessions were lost.",
    add=_add,
    run=_run,
    write=report.write,
    table=report.table,
    passed=report.passed,
)
