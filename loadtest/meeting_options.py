"""Options of the load tests of one gateway: which gateway it is, and what is said to it.

Knows: argparse, gateways, scenarios. Must not know: how anything is measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, cast, get_args

from loadtest import options as common
from loadtest.commands import Say, add_out, between, flags, from_
from loadtest.results import LoadtestError
from loadtest.systems.gateway import existing, gateway
from loadtest.systems.running import Running
from loadtest.talk.scenario import Scenario, Shape

__all__ = ["HELD", "add_list", "add_talk", "add_url", "file", "languages", "model", "refuse", "scenario", "system"]

_PARTIAL_EVERY_S = 0.3

HELD: dict[str, object] = {"people": 6, "partial_every_s": _PARTIAL_EVERY_S}
"""Options that mean something in meetings alone → their defaults."""


def add_talk(parser: argparse.ArgumentParser, *, targets: str, time_limit_s: int) -> None:
    """Where the report goes, what is started, what is said, what has to be kept, by how many client processes."""
    add = parser.add_argument
    add_out(parser)
    common.add_engine(parser)
    common.add_workload(parser)
    add_list(
        parser,
        *("--targets", "--target"),
        dest="targets",
        type=languages,
        default=languages(targets),
        metavar="LANG,LANG",
        help="languages that are read",
    )
    # What a file of talk says itself is refused beside it.
    parser.set_defaults(drawn={"source": "en", "targets": languages(targets), **HELD})
    add("--people", type=between(1, 1_000), default=HELD["people"], metavar="N", help="people in a meeting")
    add(
        "--partial-every-s",
        type=from_(0, 60),
        default=_PARTIAL_EVERY_S,
        metavar="S",
        help="in meetings: between two revisions of what is being said; 0: finals alone",
    )
    common.add_objective(parser)
    common.add_driver(parser, time_limit_s=time_limit_s)


def add_list(parser: argparse.ArgumentParser, *names: str, **how: Any) -> None:
    """An option that takes a list where the common one of this name takes one value; it takes its place."""
    parser.add_argument_group(conflict_handler="resolve").add_argument(*names, **how)


def add_url(parser: argparse.ArgumentParser) -> None:
    """A gateway that runs already."""
    parser.add_argument("--url", metavar="URL", help="of a gateway that runs already; without it one is started")


def languages(text: str) -> tuple[str, ...]:
    """With commas between them, each once."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(",")))


def refuse(options: argparse.Namespace, without: Mapping[str, object], why: str) -> None:
    """Raises `LoadtestError` for options that would do nothing. without: what they are where nobody gives them."""
    given = [name for name, value in without.items() if getattr(options, name) != value]
    if given:
        raise LoadtestError(f"{flags(given)}: {why}")


def file(options: argparse.Namespace) -> Path | None:
    """The file of talk, where one is named. Raises `LoadtestError` for options that it says itself."""
    if options.scenario in get_args(Shape):
        return None
    refuse(options, options.drawn, "the lines of a file say who speaks, and in which languages; leave it out.")
    return Path(options.scenario)


def scenario(options: argparse.Namespace, **more: Any) -> Scenario:
    """What is said; beside a file, only whether there are partials."""
    shape = options.scenario if options.scenario in get_args(Shape) else "natural"
    return Scenario(
        seed=options.seed,
        source=options.source,
        targets=options.targets,
        shape=cast(Shape, shape),
        people=options.people,
        partial_every_s=options.partial_every_s or None,
        **more,
    )


def system(
    options: argparse.Namespace, say: Say, settings: Mapping[str, Any] | None = None
) -> AbstractAsyncContextManager[Running]:
    """The gateway under test, with the settings of the options or with these. Raises `LoadtestError` for settings
    with which none would start, and for any of a gateway that runs already."""
    if options.url is None:
        return gateway(common.settings(options) if settings is None else settings, say)
    why = "a gateway that runs already has its settings; --url leaves no room for others."
    refuse(options, common.ENGINE_OPTIONS, why)
    return existing(options.url)


def model(options: argparse.Namespace) -> str:
    """Its name, for people."""
    if getattr(options, "url", None) is not None:
        return f"whatever {options.url} runs"
    return common.model_name(common.settings(options))
