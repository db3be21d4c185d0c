"""`python -m loadtest journey`: its options.

Knows: the names of the options, which parts make a report. Must not know: how anything is measured.
"""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from gateway.engines import gpu
from loadtest import options as common
from loadtest.journey.outcome import findings, outcome, table
from loadtest.journey.run import Plan, Rounds, groups, journey, stages
from loadtest.options import Command, Say, add_out, between, from_, numbers
from loadtest.results import LoadtestError
from loadtest.talk.scenario import Scenario
from loadtest.trial.summary import summaries
from loadtest.trial.values import Results

_CONCURRENCY = (1, 5, 10, 15, 20, 25)

# Options that are in the report as they are.
_TOLD = ("round_s", "repetitions", "processes", "seed", "source", "targets")


def _settings(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise argparse.ArgumentTypeError(f"is no JSON object: {error}") from None


def _add(parser: argparse.ArgumentParser) -> None:
    add_out(parser)
    common.add_engine(parser)
    add = parser.add_argument
    common.add_languages(parser)
    common.add_driver(parser, time_limit_s=7_200)
    common.add_objective(parser)
    add(
        "--concurrency",
        type=numbers,
        default=",".join(map(str, _CONCURRENCY)),
        metavar="N,N",
        help="requests at a time, one level each; the table is of the highest",
    )
    add("--round-s", type=from_(0.5, 600), default=8.0, metavar="S", help="about how long one round takes")
    add("--repetitions", type=between(1, 20), default=1, metavar="N", help="rounds at each level")
    add(
        "--recommended",
        type=_settings,
        default="{}",
        metavar="JSON",
        help='settings of the gateway of the last stage, besides the others: {"engine": {"max_num_seqs": 32}}',
    )
    add(
        "--stages",
        type=lambda text: tuple(filter(None, text.split(","))),
        default="",
        metavar="NAME,NAME",
        help="one-worker, two-workers, static-batching, gateway-64-uniform, gateway-64 to gateway-8, recommended; "
        "without it, all",
    )
    add("--bars", action="store_true", help="exit status 1 unless the gateway reaches 7.5 × one worker")


async def _run(options: argparse.Namespace, say: Say) -> Results:
    settings = common.settings(options)
    common.check(common.merged(settings, options.recommended))
    rows, systems = stages(settings, options.recommended, options.stages)
    simulated = settings.get("engine", {}).get("kind") == "simulated"
    rounds = Rounds(
        scenario=Scenario(seed=options.seed, source=options.source, targets=options.targets),
        round_s=options.round_s,
        repetitions=options.repetitions,
        processes=options.processes,
        say=say,
    )
    played = await journey(
        Plan(
            stages=rows,
            groups=groups(systems, None if simulated else gpu.memory_mib()),
            concurrency=sorted(options.concurrency),
            rounds=rounds,
            time_limit_s=options.time_limit_s,
        )
    )
    if not played.rounds:
        why = " ".join(dict.fromkeys(played.missing.values()))
        raise LoadtestError(f"Not a single round could be played. {why}")
    objective = common.objective(options)
    found, trials = outcome(rows, played.rounds), [each.trial for each in played.rounds]
    told = summaries(trials, objective)
    return Results(
        model=common.model_name(settings),
        settings={
            **{name: getattr(options, name) for name in _TOLD},
            "concurrency": sorted(options.concurrency),
            "engine": common.shown({"engine": settings.get("engine", {})})["engine"],
            "recommended": common.shown(options.recommended),
        },
        objective=objective,
        findings=findings(found, told, played.missing, bars=options.bars),
        parts=[table(found, told)],
        trials=trials,
        details=msgspec.to_builtins(found),
    )


JOURNEY = Command(
    "journey",
    "from a queue in front of one worker to the gateway, every architecture in one run",
    "The architectures of the original reports and the gateway, with the same model and lines on this "
    "machine: an HTTP front with one worker, two workers, static batching, the gateway with batches of 64, 32, 16 "
    "and 8 on data of one length and of natural lengths, and with the recommended settings. One table beside the "
    "reports' own. Exit status 1 when a stage could not be measured under all loads, and when a bar is "
    "missed.",
    _add,
    _run,
)
