"""`python -m loadtest sweep`, `capacity` and `recommend`: their options.

Knows: the names of the options. Must not know: how anything is measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from loadtest.capacity import shown
from loadtest.capacity.curve import CurvePlan, curve
from loadtest.capacity.offer import Offer, Unit
from loadtest.capacity.recommend import RecommendPlan, recommend
from loadtest.capacity.search import Bounds
from loadtest.commands import Command, Say, between, from_, numbers
from loadtest.measuring.gpu import gpu_mib
from loadtest.meeting_options import HELD, add_list, add_talk, add_url, file, model, refuse, scenario, system
from loadtest.options import model_name, objective, settings
from loadtest.systems.gateway import gateway
from loadtest.systems.running import Running
from loadtest.talk import replay
from loadtest.trial import report as files
from loadtest.trial.values import Report

__all__ = ["CAPACITY", "RECOMMEND", "SWEEP", "offer"]

_SEQS = "8,16,32,64"
# Around what the gateway chooses by itself where all steps run inside captured graphs.
_GPU_BUDGETS = (512, 2_048)


UNITS = {"meetings": Unit.MEETINGS, "requests": Unit.REQUESTS}


def _add_common(parser: argparse.ArgumentParser, *, time_limit_s: int, unit: str | None = None) -> None:
    """What all three have in common. unit: what is counted, where that can be chosen."""
    add_talk(parser, targets="de", time_limit_s=time_limit_s)
    add = parser.add_argument
    add("--quantile", type=from_(0.5, 1), default=0.99, metavar="SHARE", help="so many have to keep the objective")
    add(
        "--total-ms",
        type=from_(1, 600_000),
        metavar="MS",
        help="the whole translation too, from when its line was due; without it, its length is not judged",
    )
    add("--step-s", type=from_(0.5, 3_600), default=20.0, metavar="S", help="measured of each run")
    if unit is not None:
        add("--unit", choices=tuple(UNITS), default=unit, help="what is counted")


def offer(options: argparse.Namespace, unit: Unit) -> Offer:
    """What is said, counted in this unit. Raises `LoadtestError` for what cannot be said, a file that cannot be
    read, and options that would do nothing."""
    named = file(options)
    if named is None and unit is Unit.REQUESTS:
        refuse(options, HELD, "single requests come from nobody and have no revisions; leave it out.")
    offered = Offer(
        scenario=scenario(options),
        unit=unit,
        objective=replace(objective(options), quantile=options.quantile),
        total_ms=options.total_ms,
        step_s=options.step_s,
        replayed=() if named is None else tuple(replay.read(named)),
    )
    offered.check()
    return offered


def _loads_given(text: str) -> tuple[float, ...]:
    """Loads with commas between them."""
    number = from_(0.001, 1e6)
    return tuple(dict.fromkeys(number(part) for part in text.split(",")))


def _bounds(options: argparse.Namespace, unit: Unit, **more: Any) -> Bounds:
    low = 1.0 if unit is Unit.MEETINGS else 0.1
    return Bounds(low=low, high=float(options.most), whole=unit is Unit.MEETINGS, runs=options.runs, **more)


_START, _MOST, _SWEEP_RUNS = 4, 20_000, 24


def _add_search(parser: argparse.ArgumentParser, *, runs: int) -> None:
    add = parser.add_argument
    add("--start", type=from_(0.1, 1e6), default=_START, metavar="LOAD", help="the first load that is tried")
    add("--most", type=from_(1, 1e6), default=_MOST, metavar="LOAD", help="no larger load is tried")
    add("--runs", type=between(2, 200), default=runs, metavar="N", help="no more runs than this for one gateway")


# ---------------------------------------------------------------- sweep


def _add_sweep(parser: argparse.ArgumentParser) -> None:
    _add_common(parser, time_limit_s=1_800)
    add_url(parser)
    loads = parser.add_mutually_exclusive_group()
    loads.add_argument(
        "--rates", type=_loads_given, metavar="N,N", help="translations a second; without it they are found"
    )
    loads.add_argument("--meetings", type=numbers, metavar="N,N", help="meetings with partials, instead of rates")
    parser.add_argument(
        "--unit", choices=tuple(UNITS), help="what is counted where the loads are found; without it requests"
    )
    _add_search(parser, runs=_SWEEP_RUNS)


async def _sweep(options: argparse.Namespace, command: str, say: Say) -> Report:
    unit, loads = _loads(options)
    bounds = _bounds(options, unit, resolution=0.1, confirms=False, past=(1.5, 2.0))
    return await _curve("sweep", options, unit, bounds, loads, command, say)


async def _curve(
    kind: str,
    options: argparse.Namespace,
    unit: Unit,
    bounds: Bounds,
    loads: tuple[float, ...] | None,
    command: str,
    say: Say,
) -> Report:
    plan = CurvePlan(
        offer=offer(options, unit),
        model=model(options),
        processes=options.processes,
        time_limit_s=options.time_limit_s,
        start=options.start,
        bounds=bounds,
        loads=loads,
    )
    return await curve(kind, plan, system(options, say), command, say)


def _loads(options: argparse.Namespace) -> tuple[Unit, tuple[float, ...] | None]:
    """In what loads are counted, and those that were given; None: they are found."""
    if options.rates is None and options.meetings is None:
        return UNITS[options.unit or "requests"], None
    given = {"unit": None, "start": _START, "most": _MOST, "runs": _SWEEP_RUNS}
    refuse(options, given, "--rates and --meetings say which loads are offered, and in what they are counted.")
    if options.meetings is not None:
        return Unit.MEETINGS, tuple(map(float, options.meetings))
    return Unit.REQUESTS, options.rates


# ---------------------------------------------------------------- capacity


def _add_capacity(parser: argparse.ArgumentParser) -> None:
    _add_common(parser, time_limit_s=1_800, unit="meetings")
    add_url(parser)
    _add_search(parser, runs=16)


async def _capacity(options: argparse.Namespace, command: str, say: Say) -> Report:
    unit = UNITS[options.unit]
    bounds = _bounds(options, unit, resolution=0.05, both_sides=True)
    return await _curve("capacity", options, unit, bounds, None, command, say)


# ---------------------------------------------------------------- recommend


def _add_recommend(parser: argparse.ArgumentParser) -> None:
    _add_common(parser, time_limit_s=3_600, unit="meetings")
    _add_search(parser, runs=14)
    add = parser.add_argument
    add_list(
        *(parser, "--max-num-seqs"),
        dest="seqs",
        type=numbers,
        default=_SEQS,
        metavar="N,N",
        help="sizes of the batch to try",
    )
    # What the common option of this name would have set.
    parser.set_defaults(max_num_seqs=None)
    add(
        "--max-num-batched-tokens",
        dest="budgets",
        type=_budgets,
        metavar="N,N",
        help="tokens of a step to try, besides the gateway's own choice; 'own' for that alone (default: "
        f"{','.join(map(str, _GPU_BUDGETS))} on a GPU, own on a CPU)",
    )
    add("--group", type=between(1, 16), default=1, metavar="N", help="gateways that are started at a time")


def _budgets(text: str) -> tuple[int, ...]:
    """Whole numbers with commas between them, or none."""
    if text == "own":
        return ()
    number = between(16, 1_000_000)
    return tuple(dict.fromkeys(number(part) for part in text.split(",")))


async def _recommend(options: argparse.Namespace, command: str, say: Say) -> Report:
    own, unit = settings(options), UNITS[options.unit]
    memory_mib = None if own.get("engine", {}).get("kind") == "simulated" else gpu_mib()
    budgets = options.budgets
    if budgets is None:
        budgets = () if memory_mib is None else _GPU_BUDGETS
    plan = RecommendPlan(
        offer=offer(options, unit),
        model=model_name(own),
        settings=own,
        seqs=tuple(sorted(options.seqs)),
        budgets=budgets,
        group=options.group,
        start=options.start,
        bounds=_bounds(options, unit, resolution=0.03),
        processes=options.processes,
        time_limit_s=options.time_limit_s,
        gpu_mib=memory_mib,
    )

    def start(tree: Mapping[str, Any], name: str) -> AbstractAsyncContextManager[Running]:
        return gateway(tree, say, name=name)

    return await recommend(plan, start, command, say)


# ---------------------------------------------------------------- what comes of them


def _write(report: Report, folder: Path) -> None:
    files.write(report, folder, shown.figures(report), extra_tables=shown.tables(report))
    if toml := report.details.get("toml"):
        (folder / "recommended.toml").write_text(toml)


def _table(report: Report) -> str:
    toml = report.details.get("toml", "")
    return (f"{toml}\n" if toml else "") + files.table(report, shown.tables(report))


def _command(name: str, help_: str, description: str, add: Any, run: Any) -> Command[Report]:
    return Command(
        name=name,
        help=help_,
        description=description,
        add=add,
        run=run,
        write=_write,
        table=_table,
        passed=files.passed,
    )


SWEEP = _command(
    "sweep",
    "latency and goodput under rising load, past the knee",
    "One gateway under rising load, open loop, until it is plainly overloaded: where it begins to break the "
    "objective, what comes out there, what is full then. Exit status 1 when the driver was the limit.",
    _add_sweep,
    _sweep,
)

CAPACITY = _command(
    "capacity",
    "the most meetings, or requests a second, under an objective",
    "Finds the largest load that one gateway carries while it keeps an objective, by bisection over real runs, "
    "and confirms it with other talk. Exit status 1 where it could not be confirmed.",
    _add_capacity,
    _capacity,
)

RECOMMEND = _command(
    "recommend",
    "settings for a workload and an objective, with the curve",
    "From a scenario to max_num_seqs, max_num_batched_tokens and meetings per GPU: each setting is tried for "
    "real. Writes recommended.toml too. Exit status 1 where what is "
    "recommended could not be confirmed.",
    _add_recommend,
    _recommend,
)
