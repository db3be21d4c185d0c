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

from gateway.config import BUNDLED_MODEL
from gateway.engines.vllm import hardware
from loadtest.capacity import shown
from loadtest.capacity.advice import Fit
from loadtest.capacity.capacity import CapacityPlan, capacity
from loadtest.capacity.memory import read_model
from loadtest.capacity.offer import Offer, Unit
from loadtest.capacity.options import (
    UNITS,
    add_common,
    add_list,
    add_unit,
    add_url,
    floats,
    model,
    offer,
    refuse,
    system,
)
from loadtest.capacity.recommend import RecommendPlan, recommend
from loadtest.capacity.recorded import Recorded, watch
from loadtest.capacity.search import Bounds
from loadtest.capacity.sweep import SweepPlan, sweep
from loadtest.commands import Command, Say, between, from_, numbers
from loadtest.measuring.gpu import gpu
from loadtest.options import model_name, settings
from loadtest.results import LoadtestError
from loadtest.systems.gateway import gateway
from loadtest.systems.running import Running
from loadtest.trial import report as files
from loadtest.trial.values import Report

__all__ = ["CAPACITY", "RECOMMEND", "SWEEP"]

_SEQS = "8,16,32,64"
# Around what the gateway chooses by itself where all steps run inside captured graphs.
_GPU_BUDGETS = (512, 2_048)

# vLLM's blocks: on a CPU the gateway asks for these.
_BLOCK, _CPU_BLOCK = 16, 32


def _bounds(options: argparse.Namespace, unit: Unit, *, resolution: float, both_sides: bool = False) -> Bounds:
    return Bounds(
        low=1.0 if unit is Unit.MEETINGS else 0.1,
        high=float(options.most),
        whole=unit is Unit.MEETINGS,
        resolution=resolution,
        runs=options.runs,
        both_sides=both_sides,
    )


_START, _MOST, _SWEEP_RUNS = 4, 20_000, 24


def _add_search(parser: argparse.ArgumentParser, *, runs: int) -> None:
    add = parser.add_argument
    add("--start", type=from_(0.1, 1e6), default=_START, metavar="LOAD", help="the first load that is tried")
    add("--most", type=from_(1, 1e6), default=_MOST, metavar="LOAD", help="no larger load is tried")
    add("--runs", type=between(2, 200), default=runs, metavar="N", help="no more runs than this for one gateway")


# ---------------------------------------------------------------- sweep


def _add_sweep(parser: argparse.ArgumentParser) -> None:
    add_common(parser, time_limit_s=1_800)
    add_url(parser)
    loads = parser.add_mutually_exclusive_group()
    loads.add_argument(
        "--rates", type=floats, metavar="N,N", help="translations a second; without it they are found"
    )
    loads.add_argument("--meetings", type=numbers, metavar="N,N", help="meetings with partials, instead of rates")
    parser.add_argument(
        "--unit", choices=tuple(UNITS), help="what is counted where the loads are found; without it requests"
    )
    _add_search(parser, runs=_SWEEP_RUNS)


async def _sweep(options: argparse.Namespace, command: str, say: Say) -> Report:
    unit, loads = _loads(options)
    plan = SweepPlan(
        offer=offer(options, unit),
        model=model(options),
        loads=loads,
        start=options.start,
        bounds=_bounds(options, unit, resolution=0.1),
        processes=options.processes,
        time_limit_s=options.time_limit_s,
    )
    return await sweep(plan, system(options, say), command, say)


def _loads(options: argparse.Namespace) -> tuple[Unit, tuple[float, ...] | None]:
    """In what loads are counted, and those that were given; null: they are found."""
    if options.rates is None and options.meetings is None:
        return UNITS[options.unit or "requests"], None
    given = {"unit": None, "start": _START, "most": _MOST, "runs": _SWEEP_RUNS}
    refuse(options, given, "--rates and --meetings say which loads are offered, and in what they are counted.")
    if options.meetings is not None:
        return Unit.MEETINGS, tuple(map(float, options.meetings))
    return Unit.REQUESTS, options.rates


# ---------------------------------------------------------------- capacity


def _add_capacity(parser: argparse.ArgumentParser) -> None:
    add_common(parser, time_limit_s=1_800)
    add_url(parser)
    add_unit(parser, "meetings")
    _add_search(parser, runs=16)


async def _capacity(options: argparse.Namespace, command: str, say: Say) -> Report:
    unit = UNITS[options.unit]
    plan = CapacityPlan(
        offer=offer(options, unit),
        model=model(options),
        start=options.start,
        bounds=_bounds(options, unit, resolution=0.05, both_sides=True),
        processes=options.processes,
        time_limit_s=options.time_limit_s,
    )
    return await capacity(plan, system(options, say), command, say)


# ---------------------------------------------------------------- recommend


def _add_recommend(parser: argparse.ArgumentParser) -> None:
    add_common(parser, time_limit_s=3_600)
    add_unit(parser, "meetings")
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
    add("--metrics", metavar="FILE|URL", help="of your gateway: its languages, pace and lengths are used")
    add("--metrics-again", metavar="FILE", help="the same, later: what happened in between is the workload")
    add(
        "--watch-s",
        type=from_(0, 86_400),
        default=60.0,
        metavar="S",
        help="how long a URL is watched; 0: since that gateway began",
    )


def _budgets(text: str) -> tuple[int, ...]:
    """Whole numbers with commas between them, or none."""
    if text == "own":
        return ()
    number = between(16, 1_000_000)
    return tuple(dict.fromkeys(number(part) for part in text.split(",")))


async def _recommend(options: argparse.Namespace, command: str, say: Say) -> Report:
    own, unit = settings(options), UNITS[options.unit]
    offered = offer(options, unit)
    gpu_mib = _gpu_mib() if own.get("engine", {}).get("kind") != "simulated" else None
    recorded = None
    if options.metrics is not None:
        recorded = await watch(options.metrics, options.metrics_again, options.watch_s, say)
    elif options.metrics_again is not None:
        raise LoadtestError("--metrics-again is the later one of two: the earlier one is --metrics.")
    if recorded is not None:
        offered = _like(offered, recorded)
    offered.check()
    plan = RecommendPlan(
        offer=offered,
        model=model_name(own),
        settings=own,
        seqs=tuple(sorted(options.seqs)),
        budgets=_default_budgets(gpu_mib) if options.budgets is None else options.budgets,
        group=options.group,
        start=options.start,
        bounds=_bounds(options, unit, resolution=0.03),
        processes=options.processes,
        time_limit_s=options.time_limit_s,
        recorded=recorded,
        gpu_mib=gpu_mib,
    )

    def start(tree: Mapping[str, Any], name: str) -> AbstractAsyncContextManager[Running]:
        return gateway(tree, say, name=name)

    return await recommend(plan, start, _fit(own, gpu_mib), command, say)


def _like(offered: Offer, recorded: Recorded) -> Offer:
    """The scenario with the languages of a recorded workload, and partials where it had them."""
    said = offered.scenario
    targets = tuple(lang for lang in recorded.scenario_targets if lang != said.source)
    partials = said.partial_every_s if recorded.partials_per_final else None
    return replace(offered, scenario=replace(said, targets=targets or said.targets, partial_every_s=partials))


def _gpu_mib() -> float | None:
    with gpu() as device:
        return device.total_mib() if device is not None else None


def _default_budgets(gpu_mib: float | None) -> tuple[int, ...]:
    return _GPU_BUDGETS if gpu_mib is not None else ()


def _fit(tree: Mapping[str, Any], gpu_mib: float | None) -> Fit:
    engine = tree.get("engine", {})
    if engine.get("kind") == "simulated":
        return Fit()
    dtype = str(engine.get("dtype", "auto"))
    if dtype == "auto" and gpu_mib is None:
        dtype = hardware.cpu_dtype()
    return Fit(
        model=read_model(Path(str(engine.get("model", BUNDLED_MODEL))).expanduser(), dtype),
        gpu_gib=gpu_mib / 1024 if gpu_mib is not None else None,
        block=_BLOCK if gpu_mib is not None else _CPU_BLOCK,
        batched_tokens=int(engine.get("max_num_batched_tokens") or Fit().batched_tokens),
    )


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
    "From a workload, a scenario or the metrics of a gateway of yours, to max_num_seqs, max_num_batched_tokens, "
    "meetings per GPU: each setting is tried for real. Writes recommended.toml too. Exit status 1 where what is "
    "recommended could not be confirmed.",
    _add_recommend,
    _recommend,
)
