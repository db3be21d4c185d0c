"""Options that `sweep`, `capacity` and `recommend` have in common, and what they stand for.

Knows: argparse, the plans. Must not know: how anything is measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, cast, get_args

from msgspec.structs import replace

from loadtest.capacity.offer import Offer, Unit
from loadtest.commands import Say, add_out, between, flags, from_
from loadtest.results import LoadtestError
from loadtest.systems.gateway import existing, gateway
from loadtest.systems.running import Running
from loadtest.talk import replay
from loadtest.talk.scenario import Scenario, Shape
from loadtest.trial import options as common

__all__ = [
    "UNITS",
    "add_common",
    "add_list",
    "add_unit",
    "add_url",
    "floats",
    "languages",
    "model",
    "offer",
    "refuse",
    "system",
]

UNITS = {"meetings": Unit.MEETINGS, "requests": Unit.REQUESTS}

_SOURCE = "en"
_TARGETS = "de"
_PEOPLE = 6
_PARTIAL_EVERY_S = 0.3

# Of a scenario that is drawn; and of those alone that are held in meetings.
_DRAWN = {"source": _SOURCE, "targets": (_TARGETS,), "people": _PEOPLE, "partial_every_s": _PARTIAL_EVERY_S}
_HELD = {"people": _PEOPLE, "partial_every_s": _PARTIAL_EVERY_S}


def add_common(parser: argparse.ArgumentParser, *, time_limit_s: int) -> None:
    """What is started, what is said, what has to be kept, how long a run and everything may take."""
    add = parser.add_argument
    add_out(parser)
    common.add_engine(parser)
    common.add_workload(parser)
    add_list(
        parser,
        *("--targets", "--target"),
        dest="targets",
        type=languages,
        default=_TARGETS,
        metavar="LANG,LANG",
        help="languages that are read",
    )
    add("--people", type=between(1, 100), default=_PEOPLE, metavar="N", help="people in a meeting")
    add(
        "--partial-every-s",
        type=from_(0, 60),
        default=_PARTIAL_EVERY_S,
        metavar="S",
        help="in meetings: between two revisions of what is being said; 0: finals alone",
    )
    common.add_objective(parser)
    add("--quantile", type=from_(0.5, 1), default=0.99, metavar="SHARE", help="so many have to keep the objective")
    add(
        "--total-ms",
        type=from_(1, 600_000),
        metavar="MS",
        help="the whole translation too, from when its line was due; without it, its length is not judged",
    )
    add("--step-s", type=from_(0.5, 3_600), default=20.0, metavar="S", help="measured of each run")
    common.add_driver(parser, time_limit_s=time_limit_s)


def add_list(parser: argparse.ArgumentParser, *names: str, **how: Any) -> None:
    """An option that takes a list where the common one of this name takes one value; it takes its place."""
    parser.add_argument_group(conflict_handler="resolve").add_argument(*names, **how)


def add_url(parser: argparse.ArgumentParser) -> None:
    """A gateway that runs already."""
    parser.add_argument("--url", metavar="URL", help="of a gateway that runs already; without it one is started")


def add_unit(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument("--unit", choices=tuple(UNITS), default=default, help="what is counted")


def refuse(options: argparse.Namespace, without: Mapping[str, object], why: str) -> None:
    """Raises `LoadtestError` for options that would do nothing. without: what they are where nobody gives them."""
    given = [name for name, value in without.items() if getattr(options, name) != value]
    if given:
        raise LoadtestError(f"{flags(given)}: {why}")


def languages(text: str) -> tuple[str, ...]:
    """With commas between them, each once."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(",")))


def floats(text: str) -> tuple[float, ...]:
    """Loads with commas between them."""
    number = from_(0.001, 1e6)
    return tuple(dict.fromkeys(number(part) for part in text.split(",")))


def offer(options: argparse.Namespace, unit: Unit) -> Offer:
    """What is said, counted in this unit. Raises `LoadtestError` for what cannot be said, a file that cannot be
    read, and options that would do nothing."""
    named = options.scenario in get_args(Shape)
    if not named:
        refuse(options, _DRAWN, "the lines of a file say who speaks, and in which languages; leave it out.")
    elif unit is Unit.REQUESTS:
        refuse(options, _HELD, "single requests come from nobody and have no revisions; leave it out.")
    offered = Offer(
        scenario=Scenario(
            seed=options.seed,
            source=options.source,
            targets=options.targets,
            shape=cast(Shape, options.scenario) if named else "natural",
            people=options.people,
            partial_every_s=options.partial_every_s or None,
        ),
        unit=unit,
        objective=replace(common.objective(options), quantile=options.quantile),
        total_ms=options.total_ms,
        step_s=options.step_s,
        replayed=() if named else tuple(replay.read(Path(options.scenario))),
    )
    offered.check()
    return offered


def system(options: argparse.Namespace, say: Say) -> AbstractAsyncContextManager[Running]:
    """The gateway under test. Raises `LoadtestError` for settings with which none would start, and for any of a
    gateway that runs already."""
    if options.url is not None:
        refuse(
            options,
            common.ENGINE_OPTIONS,
            "a gateway that runs already has its settings; --url leaves no room for others.",
        )
        return existing(options.url)
    return gateway(common.settings(options), say)


def model(options: argparse.Namespace) -> str:
    """Its name, for people."""
    if getattr(options, "url", None) is not None:
        return f"whatever {options.url} runs"
    return common.model_name(common.settings(options))
