"""`python -m loadtest sweep`, `capacity` and `recommend`: their options.

Knows: the names of the options. Must not know: how anything is measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from msgspec.structs import asdict, replace

from gateway.engines import gpu
from loadtest import options as common
from loadtest.capacity.curve import Plan, curve
from loadtest.capacity.points import Offer, Unit
from loadtest.capacity.recommend import RecommendPlan, recommend
from loadtest.capacity.search import Bounds
from loadtest.options import Command, Say, between, from_, listed, numbers
from loadtest.systems.gateway import existing, gateway
from loadtest.systems.server import Running
from loadtest.talk.scenario import read_talk
from loadtest.trial.values import Results

_UNITS = {"meetings": Unit.MEETINGS, "requests": Unit.REQUESTS}


def _add(parser: argparse.ArgumentParser, *options: str, time_limit_s: int, unit: str, runs: int) -> None:
    """What all three have in common."""
    common.add_options(parser, *common.TALK, "--workers", *options, time_limit_s=time_limit_s)
    add = parser.add_argument
    add("--quantile", type=from_(0.5, 1), default=0.99, metavar="SHARE", help="so many have to keep the objective")
    add(
        "--first-words-ms",
        type=from_(1, 60_000),
        metavar="MS",
        help="of meetings with partials: first translated words of as many utterances, from when each began; with "
        "it, half of the partials have to be translated, too",
    )
    add("--step-s", type=from_(0.5, 3_600), default=20.0, metavar="S", help="measured of each run")
    add("--unit", choices=tuple(_UNITS), default=unit, help="what is counted")
    add("--start", type=from_(0.1, 1e6), default=4.0, metavar="LOAD", help="the first load that is tried")
    add("--most", type=from_(1, 1e6), default=20_000.0, metavar="LOAD", help="no larger load is tried")
    add("--runs", type=between(2, 200), default=runs, metavar="N", help="no more runs than this for one gateway")


def offer(options: argparse.Namespace) -> Offer:
    """What is said. Raises `LoadtestError` for what cannot be said, a file that cannot be read, and options that
    would do nothing."""
    named, unit = common.file(options), _UNITS[options.unit]
    if named is None and unit is Unit.REQUESTS:
        why = "single requests have no speaker and no revisions; leave it out."
        common.refuse(options, ["people", "partial_every_s"], why)
    if unit is Unit.REQUESTS or not options.partial_every_s:
        common.refuse(options, ["first_words_ms"], "it is for meetings with partials; leave it out.")
    offered = Offer(
        scenario=common.scenario(options),
        unit=unit,
        objective=replace(
            common.objective(options), quantile=options.quantile, first_words_ms=options.first_words_ms
        ),
        step_s=options.step_s,
        # Only `sweep` has it.
        retries=getattr(options, "retries", False),
        replayed=() if named is None else tuple(read_talk(named)),
    )
    offered.check()
    return offered


def _plan(options: argparse.Namespace, model: str, **bounds: Any) -> Plan:
    """bounds: what of `Bounds` the options do not say."""
    meetings = _UNITS[options.unit] is Unit.MEETINGS
    low = 1.0 if meetings else 0.1
    own = {
        "offer": offer(options),
        "model": model,
        "bounds": Bounds(low=low, high=options.most, whole=meetings, runs=options.runs, **bounds),
    }
    return Plan(**(common.fields_of(options, Plan) | own))


def _settings(options: argparse.Namespace, *, several: bool = False) -> dict[str, Any]:
    """Raises `LoadtestError` for what a model without weights cannot show."""
    settings = common.settings(options, several=several)
    engines = [settings.get("engine", {}), *settings.get("engines", [])]
    if any(engine.get("extra", {}).get("load_format") == "dummy" for engine in engines):
        # The gateway takes what runs into the limit of an answer for repetition, and shows it to no reader.
        why = "a model without weights ends no answer by itself, so no partial of it is ever shown; leave it out."
        common.refuse(options, ["first_words_ms"], why)
    return settings


def _system(options: argparse.Namespace, say: Say) -> tuple[str, AbstractAsyncContextManager[Running]]:
    """The gateway under test, and its model for people. Raises `LoadtestError` for settings with which none would
    start, and for any of a gateway that runs already."""
    if options.url is None:
        settings = _settings(options, several=True)
        return common.model_name(settings), gateway(settings, say, workers=options.workers)
    why = "a gateway that runs already has its settings; --url leaves no room for others."
    common.refuse(options, common.ENGINE_OPTIONS, why)
    return f"whatever {options.url} runs", existing(options.url)


def _add_sweep(parser: argparse.ArgumentParser) -> None:
    _add(parser, "--max-num-seqs", "--url", time_limit_s=1_800, unit="requests", runs=24)
    parser.add_argument(
        "--loads",
        type=listed(from_(0.001, 1e6)),
        metavar="N,N",
        help="translations a second, or meetings, as --unit says; without it they are found",
    )
    parser.add_argument(
        "--retries",
        action="store_true",
        help="what is refused is sent again when the gateway says, as clients do; of single requests",
    )


async def _sweep(options: argparse.Namespace, say: Say) -> Results:
    model, system = _system(options, say)
    if _UNITS[options.unit] is Unit.MEETINGS:
        common.refuse(options, ["retries"], "it is for single requests (--unit requests); leave it out.")
    plan = _plan(options, model, resolution=0.1, confirms=False, past=(1.5, 2.0))
    return await curve("sweep", plan, system, say)


async def _capacity(options: argparse.Namespace, say: Say) -> Results:
    model, system = _system(options, say)
    return await curve("capacity", _plan(options, model, both_sides=True), system, say)


def _add_recommend(parser: argparse.ArgumentParser) -> None:
    _add(parser, time_limit_s=3_600, unit="meetings", runs=14)
    parser.add_argument(
        "--max-num-seqs",
        dest="seqs",
        type=numbers,
        default="8,16,32,64",
        metavar="N,N",
        help="sizes of the batch to try",
    )


async def _recommend(options: argparse.Namespace, say: Say) -> Results:
    settings = _settings(options)
    on_gpu = settings.get("engine", {}).get("kind") != "simulated" and gpu.memory_mib() is not None
    plan = _plan(options, common.model_name(settings), resolution=0.03)
    own: dict[str, Any] = {
        "settings": settings,
        "seqs": tuple(sorted(options.seqs)),
        "device": "GPU" if on_gpu else "machine",
    }

    def start(tree: Mapping[str, Any], name: str) -> AbstractAsyncContextManager[Running]:
        return gateway(tree, say, name=name, workers=options.workers)

    return await recommend(RecommendPlan(**asdict(plan), **own), start, say)


SWEEP = Command(
    "sweep",
    "latency and goodput under rising load, past the knee",
    "One gateway under rising load, open loop, until it is plainly overloaded: where it begins to break the "
    "objective, what comes out there, what is full then. Exit status 1 when the driver was the limit.",
    _add_sweep,
    _sweep,
)

CAPACITY = Command(
    "capacity",
    "the most meetings, or requests a second, under an objective",
    "Finds the largest load that one gateway carries while it keeps an objective, by bisection over real runs, "
    "and confirms it with other talk. Exit status 1 where it could not be confirmed.",
    lambda parser: _add(parser, "--max-num-seqs", "--url", time_limit_s=1_800, unit="meetings", runs=16),
    _capacity,
)

RECOMMEND = Command(
    "recommend",
    "settings for a workload and an objective, with the curve",
    "From a scenario to max_num_seqs and meetings per GPU: each size of the batch is tried for real. Writes "
    "recommended.toml too. Exit status 1 where what is recommended could not be confirmed.",
    _add_recommend,
    _recommend,
)
