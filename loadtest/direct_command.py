"""`python -m loadtest direct`: its options.

Knows: the names of the options. Must not know: how anything is measured.
"""

from __future__ import annotations

import argparse

from loadtest import report
from loadtest.commands import Command, Say, add_out, between, numbers
from loadtest.direct import DirectResult, Plan, measure
from loadtest.workload import Workload

__all__ = ["DIRECT"]


def _add(parser: argparse.ArgumentParser) -> None:
    plan = Plan()
    add_out(parser)
    add = parser.add_argument
    add("--engine", choices=("vllm", "simulated"), default=plan.engine, help="which engine")
    add("--model", help="a folder, or a name vLLM can resolve; without it the bundled model")
    add("--max-num-seqs", type=between(1, 1024), default=plan.max_num_seqs, metavar="N", help="the engine's batch")
    add("--dtype", default=plan.dtype, help="number format; auto chooses by the hardware")
    add(
        "--in-flight",
        type=numbers,
        default=",".join(map(str, plan.in_flight)),
        metavar="N,N",
        help="utterances in flight, one level each",
    )
    add(
        "--utterances",
        type=between(1, 100_000),
        default=plan.utterances,
        metavar="N",
        help="utterances in a round; at least 16 for each in flight",
    )
    add("--repetitions", type=between(1, 50), default=plan.repetitions, metavar="N", help="rounds of each route")
    add(
        "--quiet-wait-s",
        type=between(0, 3_600),
        default=0,
        metavar="S",
        help="before each round wait so long for other processes to let the CPU alone",
    )
    add("--seed", type=int, default=plan.workload.seed, help="which list of utterances")
    add("--source", default=plan.workload.source, metavar="LANG", help="language that is spoken")
    add("--target", default=plan.workload.target, metavar="LANG", help="language that is read")
    add("--time-limit-s", type=between(1, 86_400), default=round(plan.time_limit_s), metavar="S", help="stop then")


async def _run(options: argparse.Namespace, command: str, say: Say) -> DirectResult:
    plan = Plan(
        engine=options.engine,
        model=options.model,
        max_num_seqs=options.max_num_seqs,
        dtype=options.dtype,
        in_flight=options.in_flight,
        utterances=options.utterances,
        repetitions=options.repetitions,
        quiet_wait_s=options.quiet_wait_s,
        workload=Workload(options.seed, options.source, options.target),
        time_limit_s=options.time_limit_s,
    )
    return await measure(plan, command, say)


def _passed(result: DirectResult) -> bool:
    return all(level.direct.failed == level.websocket.failed == 0 for level in result.levels)


DIRECT = Command(
    name="direct",
    help="the WebSocket beside the same engine called directly",
    description="Tokens/s, requests/s and time to the first token through the WebSocket, beside the same "
    "engine called directly in the same run. Closed loop.",
    add=_add,
    run=_run,
    write=report.write,
    table=report.table,
    passed=_passed,
)
