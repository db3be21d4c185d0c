"""Options that load tests have in common, and what they stand for.

Knows: argparse, TOML, the names of the gateway's settings. Must not know: which load test it is.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from gateway.config import BUNDLED_MODEL, load
from gateway.domain.errors import StartupError
from loadtest.commands import between, from_
from loadtest.results import LoadtestError
from loadtest.talk.replay import read
from loadtest.talk.scenario import Scenario, Shape
from loadtest.trial.values import Line, Objective

__all__ = [
    "ENGINE_OPTIONS",
    "add_driver",
    "add_engine",
    "add_objective",
    "add_workload",
    "check",
    "merged",
    "model_name",
    "objective",
    "replayed",
    "scenario",
    "settings",
    "shown",
    "with_batch",
]

_SHAPES = get_args(Shape)

# A session of the driver stands for a crowd: what keeps one person from flooding a gateway would hold it back.
_LIMITS = {"messages_per_s": 100_000, "messages_burst": 100_000}


# ---------------------------------------------------------------- the engine

ENGINE_OPTIONS: dict[str, object] = {
    "engine": None,
    "model": None,
    "config": None,
    "max_num_seqs": None,
    "memory": None,
    "set": [],
}
"""What `add_engine` adds → its value where nobody gives it."""


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Which engine, with which settings; `settings` reads them."""
    add = parser.add_argument
    add("--engine", choices=("vllm", "simulated"), help="which engine; without it the one of --config, or vllm")
    add("--model", help="a folder, or a name vLLM can resolve; without it the bundled model")
    add("--config", type=Path, metavar="FILE.toml", help="settings of the gateway; the options here go before it")
    add("--max-num-seqs", type=between(1, 4_096), metavar="N", help="sequences in the engine's batch")
    add(
        "--memory",
        type=from_(0.01, 1.0),
        metavar="SHARE",
        help="of the GPU's memory, for all engines of this load test together; without it the gateway's own share",
    )
    add(
        "--set",
        type=_assignment,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any setting, its value as in TOML: engine.extra.async_scheduling=true; may be repeated",
    )


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """The gateway's settings, sections nested: the file's, then the options'. Raises `LoadtestError` for one that
    does not exist or cannot be."""
    tree: dict[str, Any] = {"limits": dict(_LIMITS)}
    if options.config is not None:
        tree = merged(tree, _read(options.config))
    named = {
        "kind": options.engine,
        "model": options.model,
        "max_num_seqs": options.max_num_seqs,
        "gpu_memory_utilization": options.memory,
    }
    tree = merged(tree, {"engine": {name: value for name, value in named.items() if value is not None}})
    for assignment in options.set:
        tree = merged(tree, assignment)
    check(tree)
    return tree


def merged(tree: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Both, sections merged; where both have a value, that of `more`."""
    result = dict(tree)
    for name, value in more.items():
        own = result.get(name)
        result[name] = merged(own, value) if isinstance(own, Mapping) and isinstance(value, Mapping) else value
    return result


def with_batch(tree: Mapping[str, Any], count: int) -> dict[str, Any]:
    """A gateway's settings with a batch of so many sequences."""
    simulated = tree.get("engine", {}).get("kind") == "simulated"
    own: dict[str, Any] = {"script": {"max_running": count}} if simulated else {"max_num_seqs": count}
    return merged(tree, {"engine": own})


def check(tree: Mapping[str, Any]) -> None:
    """Raises `LoadtestError` unless a gateway would start with these settings."""
    try:
        load(overrides=tree)
    except StartupError as error:
        raise LoadtestError(f"A gateway would not start with these settings: {error.message}") from None


def shown(tree: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a report, which does not tell where on the machine anything lies: of the model's path and of
    whatever else is an absolute one, only the name is left."""
    told: dict[str, Any] = {name: _without_paths(value) for name, value in tree.items()}
    model = told.get("engine", {}).get("model")
    return told if model is None else merged(told, {"engine": {"model": Path(str(model)).name}})


def _without_paths(value: Any) -> Any:
    match value:
        case str() if value.startswith(("/", "~")):
            return Path(value).name
        case Mapping():
            return {name: _without_paths(each) for name, each in value.items()}
        case list() | tuple():
            return [_without_paths(each) for each in value]
        case _:
            return value


def model_name(tree: Mapping[str, Any]) -> str:
    """For people: the last part of its path; that of the bundled one where none is named."""
    engine = tree.get("engine", {})
    if engine.get("kind") == "simulated":
        return "simulated"
    return Path(str(engine.get("model", BUNDLED_MODEL)).rstrip("/")).name


# ---------------------------------------------------------------- what is said, and by how many processes


def add_workload(parser: argparse.ArgumentParser) -> None:
    """What is said: `natural`, `uniform`, or a file to replay."""
    add = parser.add_argument
    add(
        "--scenario",
        default="natural",
        metavar="natural|uniform|sentences|FILE",
        help="lengths as people talk, all of one length, one to four sentences each, or lines from a file",
    )
    add("--seed", type=int, default=1, help="which lines")
    add("--source", default="en", metavar="LANG", help="language that is spoken")
    add("--target", default="de", metavar="LANG", help="language that is read")


def scenario(options: argparse.Namespace) -> Scenario:
    """With the shape that was chosen; `natural` where a file is replayed."""
    shape: Shape = options.scenario if options.scenario in _SHAPES else "natural"
    return Scenario(seed=options.seed, source=options.source, targets=(options.target,), shape=shape)


def replayed(options: argparse.Namespace) -> tuple[Line, ...]:
    """The lines of the file that was named, in order of time; none for a scenario. Raises `LoadtestError`."""
    return () if options.scenario in _SHAPES else tuple(read(Path(options.scenario)))


def add_driver(parser: argparse.ArgumentParser, *, processes: int = 1, time_limit_s: int = 3_600) -> None:
    """How many client processes, and how long everything may take."""
    add = parser.add_argument
    add("--processes", type=between(1, 64), default=processes, metavar="N", help="client processes")
    add("--time-limit-s", type=between(1, 86_400), default=time_limit_s, metavar="S", help="stop then")


def add_objective(parser: argparse.ArgumentParser) -> None:
    """By when a translation has to begin to be of use; `objective` reads it."""
    parser.add_argument(
        "--objective-ms",
        type=from_(1, 60_000),
        default=Objective().first_token_ms,
        metavar="MS",
        help="first token of 99 in 100 translations, from when their line was due",
    )


def objective(options: argparse.Namespace) -> Objective:
    return Objective(first_token_ms=options.objective_ms)


# ---------------------------------------------------------------- reading


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LoadtestError(f"The configuration file {file} cannot be read: {error}.") from None


def _assignment(text: str) -> dict[str, Any]:
    """`engine.extra.x=1` as nested sections. What is no TOML value is taken as text."""
    name, equals, written = text.partition("=")
    parts = [part.strip() for part in name.split(".")]
    if not equals or not all(parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        value: Any = tomllib.loads(f"value = {written.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        value = written.strip()
    for part in reversed(parts):
        value = {part: value}
    return dict(value)
