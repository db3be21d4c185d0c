"""What a subcommand of `python -m loadtest` is; the options that load tests have in common, and what they mean.

Knows: argparse, TOML, the names of the gateway's settings, scenarios. Must not know: which subcommands there are,
or how anything is measured.
"""

from __future__ import annotations

import argparse
import math
import tomllib
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from msgspec import Struct

from gateway.bundled.folder import model_folder
from gateway.config import BUNDLED, load
from gateway.domain.errors import StartupError
from loadtest.results import LoadtestError
from loadtest.talk.scenario import Scenario, Shape
from loadtest.trial.values import Objective, Results

_Number = TypeVar("_Number", int, float)
_Value = TypeVar("_Value")

# Takes one short line on what is going on.
Say = Callable[[str], object]


@dataclass(frozen=True)
class Command:
    """A load test."""

    name: str
    help: str
    description: str
    # Adds the options of the load test.
    add: Callable[[argparse.ArgumentParser], None]
    # Measures, with the options and a function that is told what is going on. Raises `LoadtestError`.
    run: Callable[[argparse.Namespace, Say], Coroutine[None, None, Results]]


def between(low: _Number, high: _Number) -> Callable[[str], _Number]:
    """A number in this range: a whole one where `low` is."""

    def number(text: str) -> _Number:
        value = type(low)(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"has to be between {low:g} and {high:g}")
        return value

    return number


def listed(value: Callable[[str], _Value]) -> Callable[[str], tuple[_Value, ...]]:
    """Values with commas between them, each once."""

    def values(text: str) -> tuple[_Value, ...]:
        return tuple(dict.fromkeys(value(part.strip()) for part in text.split(",")))

    return values


numbers = listed(between(1, 16_384))


# A session of the driver stands for a crowd: what keeps one person from flooding a gateway would hold it back.
_LIMITS = {"messages_per_s": 100_000, "messages_burst": 100_000}

# The share of the GPU's memory for all engines together: vLLM's own default.
_TOGETHER = 0.9

# The part of its share that an engine gets for its cache; the rest is for the model, its steps and graphs.
_CACHE_PART = 0.5


def refuse(options: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """Raises `LoadtestError` for options that would do nothing, where they are given."""
    given = [name for name in names if getattr(options, name, None) != options.default(name)]
    if given:
        raise LoadtestError(", ".join("--" + name.replace("_", "-") for name in given) + f": {why}")


def fields_of(options: argparse.Namespace, plan: type[Struct]) -> dict[str, Any]:
    """What the options say of a plan: each is called as its field."""
    return {name: getattr(options, name) for name in plan.__struct_fields__ if name in options}


ENGINE_OPTIONS = ("engine", "model", "config", "max_num_seqs", "memory", "set", "workers")
"""Options of the gateway that is started."""


def settings(options: argparse.Namespace, *, several: bool = False) -> dict[str, Any]:
    """The gateway's settings, sections nested: the file's, then the options'. Raises `LoadtestError` for one that
    does not exist or cannot be.

    several: the file may have several engines, as no engine is measured by itself.
    """
    tree: dict[str, Any] = {"limits": dict(_LIMITS)}
    if options.config is not None:
        try:
            tree = merged(tree, tomllib.loads(options.config.read_text()))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise LoadtestError(f"The configuration file {options.config} cannot be read: {error}.") from None
    named = {
        "kind": options.engine,
        "model": options.model,
        "max_num_seqs": getattr(options, "max_num_seqs", None),
        "gpu_memory_utilization": options.memory,
    }
    given = {name: value for name, value in named.items() if value is not None}
    if tree.get("engines"):
        if not several:
            raise LoadtestError("This load test is about one engine, and the settings have several.")
        why = "the settings have several engines, each with its own; leave it out."
        refuse(options, ("engine", "model", "max_num_seqs", "memory"), why)
    else:
        tree = merged(tree, {"engine": given})
    if tree.get("engine", {}).get("kind") == "simulated":
        # Workers are to be measured, not what hands out their tokens.
        tree = merged({"engine": {"script": {"shared": False}}}, tree)
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


def with_share(settings: Mapping[str, Any], engines: int, gpu_mib: float | None) -> dict[str, Any]:
    """A gateway's settings with an equal part of the memory that they name for all engines together.

    gpu_mib: all the memory there is; None without a GPU, where each engine has what `kv_cache_gib` says. The cache
    is given in bytes, unless it is so already: when it looks for what is left, an engine takes what others load
    meanwhile for its own.
    """
    if engines == 1 or gpu_mib is None:
        return dict(settings)
    engine = settings.get("engine", {})
    share = math.floor(engine.get("gpu_memory_utilization", _TOGETHER) / engines * 1000) / 1000
    cache = int(share * _CACHE_PART * gpu_mib * 2**20)
    extra = {"kv_cache_memory_bytes": cache, **engine.get("extra", {})}
    return merged(settings, {"engine": {"gpu_memory_utilization": share, "extra": extra}})


def check(tree: Mapping[str, Any]) -> None:
    """Raises `LoadtestError` unless a gateway would start with these settings."""
    try:
        load(overrides=tree)
    except StartupError as error:
        raise LoadtestError(f"A gateway would not start with these settings: {error.message}") from None


def shown(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Settings for a report, which does not tell where on the machine anything lies: of the model's path and of
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
    if engines := tree.get("engines"):
        return ", ".join(dict.fromkeys(model_name({"engine": engine}) for engine in engines))
    engine = tree.get("engine", {})
    if engine.get("kind") == "simulated":
        return "simulated"
    model = str(engine.get("model", BUNDLED))
    return (model_folder() if model == BUNDLED else Path(model.rstrip("/"))).name


def file(options: argparse.Namespace) -> Path | None:
    """The file of talk, where one is named. Raises `LoadtestError` for options that it says itself."""
    if options.scenario in get_args(Shape):
        return None
    said = ("source", "targets", "people", "partial_every_s")
    refuse(options, said, "the lines of a file say who speaks, and in which languages; leave it out.")
    return Path(options.scenario)


def scenario(options: argparse.Namespace, **more: Any) -> Scenario:
    """What is said; `natural` where a file is replayed."""
    shape = options.scenario if options.scenario in get_args(Shape) else "natural"
    return Scenario(
        seed=options.seed,
        source=options.source,
        targets=options.targets,
        shape=cast(Shape, shape),
        # Load tests that hold no meetings do not have these.
        people=getattr(options, "people", 1),
        partial_every_s=getattr(options, "partial_every_s", None) or None,
        **more,
    )


def objective(options: argparse.Namespace) -> Objective:
    return Objective(first_token_ms=options.objective_ms)


def _assignment(text: str) -> dict[str, Any]:
    """`engine.extra.x=1` as nested sections. What is not a TOML value is taken as text."""
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


_OPTIONS: dict[str, dict[str, Any]] = {
    "--out": {"type": Path, "required": True, "metavar": "FOLDER", "help": "where the files of the report go"},
    "--engine": {
        "choices": ("vllm", "simulated"),
        "help": "which engine; where there is a --config, instead of the one there",
    },
    "--model": {"help": "a folder, or a name vLLM can resolve; without it the small model (demo_model)"},
    "--config": {
        **{"type": Path, "metavar": "FILE.toml"},
        "help": "settings of the gateway; the options here go before it",
    },
    "--max-num-seqs": {"type": between(1, 4_096), "metavar": "N", "help": "sequences in the engine's batch"},
    "--memory": {
        **{"type": between(0.01, 1.0), "metavar": "SHARE"},
        "help": "of the GPU's memory, for all engines of this load test together; without it the gateway's own "
        "share",
    },
    "--set": {
        **{"type": _assignment, "action": "append", "default": [], "metavar": "NAME=VALUE"},
        "help": "any setting, its value as in TOML: engine.extra.async_scheduling=true; may be repeated",
    },
    "--workers": {
        **{"type": between(1, 64), "metavar": "N"},
        "help": "processes of the gateway, with a store of their own; without it one, which needs none",
    },
    "--url": {"metavar": "URL", "help": "of a gateway that runs already; without it one is started"},
    "--scenario": {
        **{"default": "natural", "metavar": "natural|uniform|sentences|FILE"},
        "help": "lengths as people talk, all of one length, one to four sentences each, or lines from a file",
    },
    "--seed": {"type": int, "default": 1, "help": "which lines, people and faults: the same again"},
    "--source": {"default": "en", "metavar": "LANG", "help": "language that is spoken"},
    "--targets": {
        **{"type": listed(str), "default": ("de",), "metavar": "LANG,LANG"},
        "help": "languages that are read",
    },
    "--people": {"type": between(1, 1_000), "default": 6, "metavar": "N", "help": "people in a meeting"},
    "--partial-every-s": {
        **{"type": between(0.0, 60.0), "default": 0.3, "metavar": "S"},
        "help": "in meetings: between two revisions of what is being said; 0: finals alone",
    },
    "--objective-ms": {
        **{"type": between(1.0, 60_000.0), "default": Objective().first_token_ms, "metavar": "MS"},
        "help": "first token of 99 in 100 translations, from when their line was due",
    },
    "--repetitions": {
        "type": between(1, 100),
        "default": 1,
        "metavar": "N",
        "help": "rounds of each system and level",
    },
    "--processes": {"type": between(1, 64), "default": 1, "metavar": "N", "help": "client processes"},
    "--time-limit-s": {"type": between(1, 86_400), "default": 3_600, "metavar": "S", "help": "stop then"},
}

ENGINE = ("--engine", "--model", "--config", "--memory", "--set")
"""Which engine, with which settings; `settings` reads them, and `--max-num-seqs`, the size of its batch."""

LANGUAGES = ("--seed", "--source", "--targets")
"""Which of the lines, in which languages."""

DRIVER = ("--processes", "--time-limit-s")
"""How many client processes, and how long everything may take."""

TALK = ("--out", *ENGINE, "--scenario", *LANGUAGES, "--people", "--partial-every-s", "--objective-ms", *DRIVER)
"""Options of load tests that hold meetings."""


def add_options(parser: argparse.ArgumentParser, *names: str, **defaults: Any) -> None:
    """Options that load tests have in common. defaults: where they are others."""
    for name in names:
        flags = (name, "--target") if name == "--targets" else (name,)
        parser.add_argument(*flags, **_OPTIONS[name])
    # The last one: what an option is where it is not given, see `refuse`.
    parser.set_defaults(**defaults, default=parser.get_default)
