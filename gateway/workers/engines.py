"""The engines that all workers of a gateway share: each in a process that the parent starts, again when it dies.

Knows: where each engine is reached, what workers are to be told of it, which come and go with new settings.
Must not know: workers, what they do with it.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

from gateway import config, metrics
from gateway.config import EngineSettings, LaneSettings, Settings
from gateway.domain.engine import EngineHealth, EngineProfile, EngineState
from gateway.domain.errors import EngineUnavailable
from gateway.domain.ports import Engine
from gateway.engine import engine_builder, hosted, lane_changes, pool_lane, show_engines
from gateway.engines.host.kept_hosts import KeptHosts
from gateway.engines.host.proxy import HostedEngine
from gateway.engines.pool import Lane, Pool
from gateway.engines.supervisor import RestartPolicy, Supervisor
from gateway.workers.messages import EngineIs

# No two hosts have one path, so that a worker never takes an old host for the new one.
_numbers = itertools.count(1)


class RestartedEngine:
    """An engine that is started again when it dies, each time in another host."""

    def __init__(self, engine: EngineSettings, settings: Settings, folder: Path, kept: KeptHosts | None) -> None:
        self.settings = engine
        # One of several; None: the only one.
        self.lane = engine if isinstance(engine, LaneSettings) else None
        self.name = "" if self.lane is None else self.lane.name
        self.hosted: HostedEngine | None = None
        self._all_settings = settings
        self._folder = folder
        self._kept = kept
        # What it could do when it was last ready: for workers that start while it is not.
        self._profile: EngineProfile | None = None
        self.supervisor = Supervisor(
            self._build,
            config.part(RestartPolicy, engine),
            name=self.name or metrics.DEFAULT_ENGINE,
            silent_s=lambda: 0.0 if self.hosted is None else self.hosted.silent_s(),
        )

    def _build(self) -> Engine:
        if not self.name and not self.settings.is_shared:
            # For the whole to be ready; each worker has its own.
            return engine_builder(self.settings, self._all_settings)()
        path = self._folder / f"engine-{next(_numbers)}.sock"
        self.hosted = hosted(self.settings, self._all_settings, self._kept, path)
        return self.hosted

    def message_of(self, health: EngineHealth) -> EngineIs:
        """What workers are told if it is like this."""
        if self.lane is not None:
            with contextlib.suppress(EngineUnavailable):
                self._profile = self.supervisor.profile()
        path = None if self.hosted is None else self.hosted.shared_at
        return EngineIs(health, None if path is None else str(path), self.name, self._profile)


class Engines:
    """folder: private, for sockets. say: tells all workers something. kept: as of `hosted`."""

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        say: Callable[[EngineIs], None],
        kept: KeptHosts | None = None,
    ) -> None:
        self._folder = folder
        self._kept = kept
        self._say = say
        self._told: dict[str, EngineIs] = {}
        each = [self._restarted(engine, settings) for engine in config.engines_of(settings)]
        self._engines = {engine.name: engine for engine in each}
        self.engine: Supervisor | Pool
        if settings.engines:
            self.engine = pool = Pool([self._lane(engine) for engine in each])
            pool.on_lane = self.tell_workers
        else:
            self.engine = each[0].supervisor
        self.engine.on_change = lambda _: self.tell_workers()
        self._shown = show_engines(self.engine)

    @property
    def hosted(self) -> dict[str, HostedEngine]:
        """Name → what it runs in now."""
        return {name: each.hosted for name, each in self._engines.items() if each.hosted is not None}

    def _restarted(self, engine: EngineSettings, settings: Settings) -> RestartedEngine:
        return RestartedEngine(engine, settings, self._folder, self._kept)

    def _lane(self, engine: RestartedEngine) -> Lane:
        assert engine.lane is not None  # noqa: S101 -- one of several
        return pool_lane(engine.lane, engine.supervisor)

    def all_messages(self) -> Iterator[EngineIs]:
        """What a worker is to know from its start."""
        whole = self.engine.health()
        for engine in self._engines.values():
            health = engine.supervisor.health()
            # Workers begin with all of them, or they would refuse the languages of those that still load.
            if isinstance(self.engine, Pool) and whole.state is EngineState.STARTING:
                health = EngineHealth(EngineState.STARTING, whole.reason)
            yield engine.message_of(health)

    def tell_workers(self) -> None:
        """Let all workers know how the engines are, if that has changed."""
        self._shown = show_engines(self.engine, self._shown)
        for said in self.all_messages():
            if said != self._told.get(said.name):
                self._told[said.name] = said
                self._say(said)

    # ------------------------------------------------------------ new settings

    async def add(self, wanted: Settings) -> None:
        """Start the engines that are new in these settings. Raises `StartupError`; then all stays as it was."""
        added = [self._restarted(lane, wanted) for lane in self._changes(wanted)[0]]
        if added:
            assert isinstance(self.engine, Pool)  # noqa: S101 -- there are several
            await self.engine.add([self._lane(each) for each in added])
            self._engines |= {each.name: each for each in added}
            self.tell_workers()

    async def remove(self, wanted: Settings) -> None:
        """Let those end what they run and go that are not in these settings, once no worker asks them for more."""
        for name in self._changes(wanted)[1]:
            assert isinstance(self.engine, Pool)  # noqa: S101 -- there are several
            await self.engine.drain(name)
            del self._engines[name], self._told[name]

    def _changes(self, wanted: Settings) -> tuple[list[LaneSettings], list[str]]:
        there = [each.lane for each in self._engines.values() if each.lane is not None]
        return lane_changes(there, wanted.engines)
