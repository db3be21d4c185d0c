"""`python -m loadtest run`: its options.

Knows: the names of the options. Must not know: how anything is measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from loadtest.commands import Command, Say, add_out, between, flags, from_
from loadtest.options import ENGINE_OPTIONS, add_driver, add_engine, add_objective, objective, settings
from loadtest.results import LoadtestError
from loadtest.run.plan import RunPlan
from loadtest.run.run import run
from loadtest.talk.scenario import Scenario
from loadtest.trial import report
from loadtest.trial.values import Report

__all__ = ["RUN"]

_SHAPES = ("natural", "uniform")

# Without options. What is given instead cannot be told from it by its value, so the options have no default of
# their own: one that is given beside a file would do nothing.
_SCENARIO = Scenario(targets=("ja", "es"), meetings=10)
_OF_A_SCENARIO = ("seed", "source", "targets", "meetings", "people")


def _languages(text: str) -> tuple[str, ...]:
    """Language tags with commas between them, each once."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _add(parser: argparse.ArgumentParser) -> None:
    add_out(parser)
    add = parser.add_argument
    add("--url", help="a gateway that runs already, http://…; without it one is started")
    add_engine(parser)
    add(
        "--scenario",
        default=_SCENARIO.shape,
        metavar="natural|uniform|FILE",
        help="talk as in real meetings, lines all of one length, or lines from a file, which has its own "
        "meetings, people and languages",
    )
    _add_talk(parser, "seed", "N", int, "what is said")
    _add_talk(parser, "source", "LANG", str, "language that is spoken")
    _add_talk(parser, "targets", "LANG,LANG", _languages, "languages that are read")
    _add_talk(parser, "meetings", "N", between(0, 100_000), "at the same time")
    _add_talk(parser, "people", "N", between(1, 1_000), "of each, who speak in turns")
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


def _add_talk(
    parser: argparse.ArgumentParser, name: str, metavar: str, type: Callable[[str], object], help: str
) -> None:
    default = getattr(_SCENARIO, name)
    shown = ",".join(default) if isinstance(default, tuple) else default
    parser.add_argument(
        f"--{name}",
        type=type,
        default=argparse.SUPPRESS,
        metavar=metavar,
        help=f"{help} (default: {shown})",
    )


def plan(options: argparse.Namespace) -> RunPlan:
    """What the options say. Raises `LoadtestError` for a file that is none, and for options that would do nothing
    beside the others."""
    file = None if options.scenario in _SHAPES else Path(options.scenario)
    if file is not None and not file.is_file():
        raise LoadtestError(f"--scenario is natural, uniform or a file; there is no file {file}.")
    talk = {name: value for name in _OF_A_SCENARIO if (value := getattr(options, name, None)) is not None}
    if file is not None and talk:
        raise LoadtestError(f"{file} says who says what in which language: it goes without {flags(talk)}.")
    own = [name for name, without in ENGINE_OPTIONS.items() if getattr(options, name) != without]
    if options.url is not None and own:
        raise LoadtestError(f"The gateway at --url is measured as it runs: it goes without {flags(own)}.")
    scenario = replace(
        _SCENARIO,
        **talk,
        shape=options.scenario if file is None else _SCENARIO.shape,
        partial_every_s=0.3 if options.partials else None,
    )
    if file is None and not scenario.meetings:
        if options.readers:
            raise LoadtestError("--readers are more in each meeting, and there is none (--meetings 0).")
        if options.repetitions > 1:
            raise LoadtestError("--repetitions are of what is said in meetings, and there is none (--meetings 0).")
    return RunPlan(
        settings=settings(options),
        objective=objective(options),
        url=options.url,
        scenario=scenario,
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
    "session weighs. Exit status 1 when sessions were lost, when translations failed, and when not all that was "
    "asked for was measured.",
    add=_add,
    run=_run,
    write=report.write,
    table=report.table,
    passed=report.passed,
)
