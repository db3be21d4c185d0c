"""`python -m loadtest page`: its options.

Knows: the names of the options. Must not know: how anything is measured.
"""

from __future__ import annotations

import argparse

from loadtest.commands import Command, Say, add_out, between, from_
from loadtest.page import report
from loadtest.page.result import DEVICES, PagePlan, PageResult
from loadtest.page.run import run

__all__ = ["PAGE"]


def _rates(text: str) -> tuple[int, ...]:
    """Whole numbers with commas between them, each once; 0 is a meeting in which nobody speaks."""
    rate = between(0, 200)
    return tuple(dict.fromkeys(rate(part) for part in text.split(",")))


def _devices(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    for name in names:
        if name not in {each.name for each in DEVICES}:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(each.name for each in DEVICES)}")
    return names


def _add(parser: argparse.ArgumentParser) -> None:
    plan = PagePlan()
    add_out(parser)
    add = parser.add_argument
    add(
        "--captions-per-s",
        type=_rates,
        default=",".join(map(str, plan.captions_per_s)),
        metavar="N,N",
        help="final texts a second that arrive at the page, one phase each",
    )
    add("--seconds", type=from_(0.5, 3_600), default=plan.seconds, metavar="S", help="measured of each phase")
    add("--visits", type=between(1, 1_000), default=plan.visits, metavar="N", help="cold ones on each device")
    add(
        "--devices",
        type=_devices,
        default=",".join(each.name for each in plan.devices),
        metavar="NAME,NAME",
        help="what is imitated: a laptop, a phone with a quarter of the CPU",
    )
    add(
        "--quiet-wait-s",
        type=between(0, 3_600),
        default=0,
        metavar="S",
        help="before each phase wait so long for other processes to let the CPU alone",
    )
    add("--seed", type=int, default=plan.seed, help="what is said")
    add("--time-limit-s", type=between(1, 86_400), default=round(plan.time_limit_s), metavar="S", help="stop then")


async def _run(options: argparse.Namespace, command: str, say: Say) -> PageResult:
    plan = PagePlan(
        captions_per_s=options.captions_per_s,
        seconds=options.seconds,
        visits=options.visits,
        devices=tuple(each for each in DEVICES if each.name in options.devices),
        quiet_wait_s=options.quiet_wait_s,
        seed=options.seed,
        time_limit_s=options.time_limit_s,
    )
    return await run(plan, command, say)


PAGE = Command(
    name="page",
    help="the page in a real browser: weight, first paint, many captions a second",
    description="The gateway's page in Chromium: what it weighs on a first and a second visit, how long it takes "
    "to open, and what its main thread does while captions arrive from real speakers at a rising rate, at this "
    "machine's speed and at a quarter of it. Exit status 1 unless every utterance came to stand on the page and "
    "nothing was complained of.",
    add=_add,
    run=_run,
    write=report.write,
    table=report.table,
    passed=lambda result: not any(result.failures()),
)
