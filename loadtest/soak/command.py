"""`python -m loadtest soak`: its options.

Knows: the names of the options. Must not know: how anything is measured.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from loadtest.commands import Command, Say, add_out, between, from_
from loadtest.options import fields_of
from loadtest.results import LoadtestError
from loadtest.soak.faults import OF_ENGINE, OF_EVERYBODY, OF_WORKERS, FaultKind
from loadtest.soak.report import results
from loadtest.soak.result import SoakPlan
from loadtest.soak.run import run
from loadtest.trial.values import Results

# By the name of the option's value.
_KINDS = {kind.value.replace(" ", "-"): kind for kind in OF_EVERYBODY}


def _add(parser: argparse.ArgumentParser) -> None:
    plan = SoakPlan()
    add_out(parser)
    add = parser.add_argument
    add("--engine", choices=("vllm", "simulated"), default=plan.engine, help="which engine")
    add(
        "--engines", type=between(1, 64), default=plan.engines, metavar="N", help="of these; one of them is broken"
    )
    add("--minutes", type=from_(0.5, 1_440), default=plan.minutes, metavar="M", help="of load; the rest is extra")
    add("--sessions", type=between(12, 5_000), default=plan.sessions, metavar="N", help="held at the same time")
    add("--seed", type=int, default=plan.seed, help="who is there, what is said, what breaks when")
    add("--workers", type=between(1, 64), metavar="N", help="of the gateway, with a store; without it one process")
    add("--only", type=_kind, metavar="KIND", help=f"break nothing else: {', '.join(_KINDS)}")
    add("--times", type=between(1, 1_000), default=plan.times, metavar="N", help="how often, with --only")
    add(
        "--loss",
        type=from_(0, 50),
        default=plan.loss,
        metavar="%%",
        help="of packets to and from the store are lost",
    )
    add("--keep", type=Path, metavar="FOLDER", help="where every record and the gateway's logs stay")


def _kind(text: str) -> FaultKind:
    if text not in _KINDS:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(_KINDS)}")
    return _KINDS[text]


def plan(options: argparse.Namespace) -> SoakPlan:
    """What the options say. Raises `LoadtestError` for what cannot be broken."""
    plan = SoakPlan(**fields_of(options, SoakPlan))
    if plan.only in OF_WORKERS and plan.workers is None:
        raise LoadtestError("Without --workers there are neither workers nor a store to break.")
    if plan.loss and plan.workers is None:
        raise LoadtestError("Without --workers there is no store to which packets could be lost (--loss).")
    if plan.only in OF_ENGINE and plan.engine == "simulated" and plan.workers is None:
        raise LoadtestError("A simulated engine is not a process of its own unless there are --workers.")
    return plan


async def _run(options: argparse.Namespace, say: Say) -> Results:
    return results(await run(plan(options), say, keep=options.keep))


SOAK = Command(
    name="soak",
    help="faults under load, and the proof that nothing accepted was lost",
    description="A gateway with its engine in processes of their own, meetings full of clients, and faults: "
    "lost and silent connections, clients that are stopped, an engine that is killed or hangs, restarts; with "
    "--workers also workers that are killed or hang, and their store that is killed. A "
    "checker that knows every accepted utterance counts what each reader ended up with. Exit status 1 unless "
    "nothing was lost or came twice and everything was given back.",
    add=_add,
    run=_run,
)
