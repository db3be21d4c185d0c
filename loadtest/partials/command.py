"""`python -m loadtest partials`: its options.

Knows: the names of the options. Must not know: how anything is measured.
"""

from __future__ import annotations

import argparse

from msgspec.structs import replace

from loadtest.commands import Command, Say, add_out, between
from loadtest.options import fields_of
from loadtest.partials.report import results
from loadtest.partials.result import PartialsPlan
from loadtest.partials.run import run
from loadtest.trial.values import Results


def _add(parser: argparse.ArgumentParser) -> None:
    plan = PartialsPlan()
    add_out(parser)
    add = parser.add_argument
    add("--engine", choices=("vllm", "simulated"), default=plan.engine, help="which engine")
    add("--max-num-seqs", type=between(1, 1024), default=plan.max_num_seqs, metavar="N", help="the engine's batch")
    add(
        "--streams",
        type=between(1, 10_000),
        default=plan.streams,
        metavar="N",
        help="utterances from the corpus in English; a quarter of it in each other language",
    )
    add(
        "--speakers",
        type=between(1, 100),
        default=plan.speakers,
        metavar="N",
        help="at the same time while five languages are read; five times as many while one is",
    )
    add("--seed", type=int, default=plan.seed, help="which streams")
    add("--time-limit-s", type=between(1, 86_400), default=round(plan.time_limit_s), metavar="S", help="stop then")
    add("--smoke", action="store_true", help="a few streams in two languages at twice the pace: does it run?")


async def _run(options: argparse.Namespace, say: Say) -> Results:
    plan = PartialsPlan(**fields_of(options, PartialsPlan))
    if options.smoke:
        plan = replace(plan, sources=("en", "ja"), streams=3, handwritten=1, speed=2.0)
    return results(await run(plan, say))


PARTIALS = Command(
    name="partials",
    help="translations of speech that is going on: flicker, lag, cost, quality",
    description="Revisions as a recogniser sends them, in real time into meetings of the real gateway: as "
    "partials, each as a final of its own, and the finals alone. What readers were shown is scored. Exit status 1 "
    "unless every bar was cleared and no promise broken.",
    add=_add,
    run=_run,
)
