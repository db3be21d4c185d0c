"""`python -m loadtest partials`: its options.

Knows: the names of the options. Must not know: how anything is measured.
"""

from __future__ import annotations

import argparse

from msgspec.structs import replace

from loadtest.commands import Command, Say, add_out, between, from_
from loadtest.partials.report import shown
from loadtest.partials.result import PartialsPlan, PartialsResult
from loadtest.partials.run import run
from loadtest.report.folder import write
from loadtest.report.markdown import markdown

__all__ = ["PARTIALS"]


def _add(parser: argparse.ArgumentParser) -> None:
    plan = PartialsPlan()
    add_out(parser)
    add = parser.add_argument
    add("--engine", choices=("vllm", "simulated"), default=plan.engine, help="which engine")
    add("--max-num-seqs", type=between(1, 1024), default=plan.max_num_seqs, metavar="N", help="the engine's batch")
    add("--dtype", default=plan.dtype, help="number format; auto chooses by the hardware")
    add(
        "--streams",
        type=between(1, 10_000),
        default=plan.streams,
        metavar="N",
        help="utterances from the corpus in English; a quarter of it in each other language",
    )
    add(
        "--sources",
        type=lambda text: tuple(dict.fromkeys(text.split(","))),
        default=",".join(plan.sources),
        metavar="LANG,LANG",
        help="languages that are spoken; English is read in all others, they in English",
    )
    add(
        "--handwritten",
        type=between(0, 1_000),
        default=plan.handwritten,
        metavar="N",
        help="how many of the streams written by hand at most, in each language",
    )
    add(
        "--speakers",
        type=between(1, 100),
        default=plan.speakers,
        metavar="N",
        help="at the same time while five languages are read; five times as many while one is",
    )
    add("--speed", type=from_(0.1, 20), default=plan.speed, metavar="X", help="times the pace of speech")
    add("--seed", type=int, default=plan.seed, help="which streams")
    add("--time-limit-s", type=between(1, 86_400), default=round(plan.time_limit_s), metavar="S", help="stop then")
    add("--smoke", action="store_true", help="a few streams in two languages at twice the pace: does it run?")


async def _run(options: argparse.Namespace, command: str, say: Say) -> PartialsResult:
    plan = PartialsPlan(
        engine=options.engine,
        max_num_seqs=options.max_num_seqs,
        dtype=options.dtype,
        sources=options.sources,
        streams=options.streams,
        handwritten=options.handwritten,
        speakers=options.speakers,
        speed=options.speed,
        seed=options.seed,
        time_limit_s=options.time_limit_s,
    )
    if options.smoke:
        plan = replace(plan, sources=("en", "ja"), streams=3, handwritten=1, speed=2.0)
    return await run(plan, command, say)


PARTIALS = Command(
    name="partials",
    help="translations of speech that is going on: flicker, lag, cost, quality",
    description="Revisions as a recogniser sends them, in real time into meetings of the real gateway: as "
    "partials, each as a final of its own, and the finals alone. What readers were shown is scored. Exit status 1 "
    "unless every bar was cleared and no promise broken.",
    add=_add,
    run=_run,
    write=lambda result, folder: write(folder, result, shown(result)),
    table=lambda result: markdown(shown(result).parts),
    passed=lambda result: not any(result.failures()),
)
