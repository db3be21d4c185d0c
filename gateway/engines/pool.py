"""Several engines as one: each lane has its own health, slots and pairs of languages.

A lane that dies ends only what it ran; the scheduler gives these texts to others, so nothing is
repeated here.
Knows: the lanes. Must not know: who waits, which lane is best for a text (the scheduler says that).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence, Set
from typing import Any, Protocol

from msgspec.structs import replace

from gateway.domain.engine import (
    EngineCapacity,
    EngineHealth,
    EngineProfile,
    EngineState,
    LaneHealth,
    OnEvent,
    TranslationOptions,
    TranslationRequest,
)
from gateway.domain.errors import EngineFailed, EngineRestarting, EngineUnavailable, StartupError
from gateway.domain.pairs import PairPattern, pairs_among
from gateway.domain.ports import Engine
from gateway.engines.lifecycle import unavailable
from gateway.exposition import merged

_log = logging.getLogger(__name__)


class Watched(Engine, Protocol):
    """An engine that says when its state is another: a supervisor, or what a worker has of its parent's engine."""

    on_change: Callable[[EngineHealth], None]


class Lane:
    """Engine port over one engine, which it leaves as it is but for the pairs and options of its profile.

    pairs: of what the model can translate, this is done here. devices: that it may use; None: all that there are,
    empty: none of this machine.
    """

    def __init__(
        self, name: str, engine: Watched, pairs: Sequence[PairPattern], devices: Set[str] | None = None
    ) -> None:
        self.name = name
        self.engine = engine
        self.devices = devices
        self._pairs = pairs
        self._profiles: tuple[EngineProfile, EngineProfile] | None = None

    def shares_device(self, other: Lane) -> bool:
        if self.devices is None or other.devices is None:
            return bool(self.devices is other.devices or self.devices or other.devices)
        return not self.devices.isdisjoint(other.devices)

    async def start(self) -> None:
        await self.engine.start()

    async def stop(self) -> None:
        await self.engine.stop()

    def generate(self, request: TranslationRequest, on_event: OnEvent) -> Coroutine[Any, Any, None]:
        # What only another lane's model takes was sent along for that one.
        if request.options != TranslationOptions():
            request = replace(request, options=_taken(request.options, self.profile().options))
        return self.engine.generate(request, on_event)

    def health(self) -> EngineHealth:
        return self.engine.health()

    @property
    def ready(self) -> bool:
        return self.engine.health().state is EngineState.READY

    def capacity(self) -> EngineCapacity:
        return self.engine.capacity()

    def profile(self) -> EngineProfile:
        whole = self.engine.profile()
        if self._profiles is None or self._profiles[0] is not whole:
            possible = (pair for pair in pairs_among(whole.languages, self._pairs) if whole.translates(*pair))
            self._profiles = whole, replace(whole, pairs=frozenset(possible))
        return self._profiles[1]

    async def metrics(self, names: Sequence[str] = ()) -> bytes:
        return await self.engine.metrics(names)


def _taken(options: TranslationOptions, takes: frozenset[str]) -> TranslationOptions:
    return TranslationOptions(
        glossary=options.glossary if "glossary" in takes else (),
        context=options.context if "context" in takes else (),
        formality=options.formality if "formality" in takes else None,
    )


# Time between two looks whether a lane that leaves has ended what it ran, and for how long it must have been so: a
# slot may have been given just before.
_LOOK_S, _QUIET_LOOKS = 0.25, 4


class Pool:
    """Engine port over lanes. It is ready while one of them is.

    late: lanes may be ready later than the others, since another process has seen that each could be started.
    on_change: called with each new state of the whole. on_lane: called whenever a lane's state is another, or a
    lane has come or gone; before `on_change`.
    """

    def __init__(self, lanes: Iterable[Lane], *, late: bool = False) -> None:
        self.on_change: Callable[[EngineHealth], None] = lambda _: None
        self.on_lane: Callable[[], None] = lambda: None
        self._lanes = {lane.name: lane for lane in lanes}
        self._leaving: set[str] = set()
        # Those that are being loaded while the others work, and are not among them yet.
        self._coming: list[Lane] = []
        self._late = late
        # Lanes that are not ready yet, while others are. Awaited by `stop`.
        self._starting: set[asyncio.Task[None]] = set()
        self._began = self._stopped = False
        self._told = EngineState.STARTING
        self._profile: EngineProfile | None = None
        for lane in self._lanes.values():
            self._watch(lane)

    def lanes(self) -> Mapping[str, Engine]:
        """Those that take more work when they are ready."""
        return {name: lane for name, lane in self._lanes.items() if name not in self._leaving}

    # ------------------------------------------------------------ life

    async def start(self) -> None:
        """Start every lane. Raises the `StartupError` of the first that cannot be started."""
        if self._late:
            self._starting = {asyncio.create_task(lane.start()) for lane in self._lanes.values()}
            done, self._starting = await asyncio.wait(self._starting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        else:
            await self._start_all()
        if self._stopped:
            raise StartupError("The engine was stopped while it started.")
        self._began = True
        self._changed()

    async def _start_all(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                for lanes in _apart(self._lanes.values()):
                    tasks.create_task(_start(lanes))
        except* StartupError as group:
            raise _first(group) from None

    async def stop(self) -> None:
        self._stopped = True
        await asyncio.gather(*(lane.stop() for lane in self._lanes.values()))
        await asyncio.gather(*self._starting, return_exceptions=True)
        self._changed()

    async def add(self, lanes: Sequence[Lane]) -> None:
        """Start more lanes; each is used from when it is ready. Raises `StartupError`; then none of them stays."""
        added: list[str] = []
        try:
            for lane in lanes:
                if lane.name in self._lanes:
                    raise StartupError(f"There is an engine {lane.name} already.")
                await self._add(lane)
                added.append(lane.name)
        except BaseException:
            for name in added:
                await self.drain(name)
            raise

    async def _add(self, lane: Lane) -> None:
        self._check_began()
        self._coming.append(lane)
        try:
            await _start([lane])
        except BaseException:
            await lane.stop()
            raise
        finally:
            self._coming.remove(lane)
        self._lanes[lane.name] = lane
        self._watch(lane)
        _log.info("engine %s takes work", lane.name)
        self._changed()

    async def drain(self, name: str) -> None:
        """Give a lane no more work, let it finish what it runs, and stop it.

        Raises `StartupError` while the first ones load.
        """
        self._check_began()
        lane = self._lanes[name]
        self._leaving.add(name)
        _log.info("engine %s takes no more work", name)
        self._changed()
        quiet = 0
        while quiet < _QUIET_LOOKS and lane.ready:
            await asyncio.sleep(_LOOK_S)
            capacity = lane.capacity()
            quiet = 0 if capacity.running or capacity.waiting else quiet + 1
        del self._lanes[name]
        self._leaving.discard(name)
        lane.engine.on_change = lambda _: None
        await lane.stop()
        _log.info("engine %s is gone", name)
        self._changed()

    def _check_began(self) -> None:
        if not self._began:
            raise StartupError("The engines are still being loaded: try again when all are ready.")

    def _watch(self, lane: Lane) -> None:
        lane.engine.on_change = lambda _: self._changed()

    def _changed(self) -> None:
        self._profile = None
        self.on_lane()
        if self._began and (health := self.health()).state is not self._told:
            self._told = health.state
            self.on_change(health)

    # ------------------------------------------------------------ generations

    def generate(self, request: TranslationRequest, on_event: OnEvent) -> Coroutine[Any, Any, None]:
        return self._lane(request).generate(request, on_event)

    def _lane(self, request: TranslationRequest) -> Lane:
        """The lane of the request's slot; without one, the one with the most room."""
        if request.lane:
            if (lane := self._lanes.get(request.lane)) is None:
                raise EngineRestarting(f"The engine {request.lane} is gone.", retry_after_ms=1_000)
            return lane
        if not self._began or self._stopped:
            raise unavailable(self.health())
        having = [lane for lane in self._lanes.values() if _has(lane, request)]
        if not having:
            raise EngineFailed(f"No engine translates {request.source} into {request.target}.")
        ready = [lane for lane in having if lane.ready and lane.name not in self._leaving]
        if not ready:
            raise EngineRestarting("The engine of these languages is not ready.", retry_after_ms=5_000)
        return min(ready, key=_fullness)

    # ------------------------------------------------------------ state

    def health(self) -> EngineHealth:
        if self._stopped:
            return EngineHealth(EngineState.STOPPED, "the engine was stopped")
        lanes = [(lane.name, lane.health()) for lane in self._lanes.values()]
        troubled = [(name, health) for name, health in lanes if health.state is not EngineState.READY]
        reason = " ".join(f"Engine {name}: {health.reason}" for name, health in troubled)
        states = {health.state for _, health in lanes}
        if not self._began:
            state = EngineState.FAILED if EngineState.FAILED in states else EngineState.STARTING
            return EngineHealth(state, reason or "starting")
        for state in (EngineState.READY, EngineState.RESTARTING):
            if state in states:
                return EngineHealth(state, reason)
        return EngineHealth(EngineState.FAILED, reason)

    def lane_health(self) -> tuple[LaneHealth, ...]:
        """Every lane, also those that are still being loaded or leave."""
        there = (_health(lane, leaves=lane.name in self._leaving) for lane in self._lanes.values())
        return (*there, *(_health(lane, leaves=False) for lane in self._coming))

    def capacity(self) -> EngineCapacity:
        all_of_them = [lane.capacity() for lane in self._lanes.values()]
        return EngineCapacity(
            sum(each.max_running for each in all_of_them),
            sum(each.running for each in all_of_them),
            sum(each.waiting for each in all_of_them),
            max((each.lag_s for each in all_of_them), default=0.0),
        )

    def profile(self) -> EngineProfile:
        """What all lanes together can do, also those that are being started again."""
        if self._profile is None:
            if not self._began:
                raise unavailable(self.health())
            known = {
                lane.name: profile for lane in self._lanes.values() if (profile := _profile(lane)) is not None
            }
            staying = [profile for name, profile in known.items() if name not in self._leaving]
            self._profile = _merged(staying or list(known.values()))
        return self._profile

    async def metrics(self, names: Sequence[str] = ()) -> bytes:
        lanes = list(self._lanes.values())
        pages = await asyncio.gather(*(lane.metrics(names) for lane in lanes))
        return merged(zip((lane.name for lane in lanes), pages, strict=True), label="engine")


def _apart(lanes: Iterable[Lane]) -> list[list[Lane]]:
    """Lanes in groups that have no device in common."""
    groups: list[list[Lane]] = []
    for lane in lanes:
        joined: list[list[Lane]] = []
        others: list[list[Lane]] = []
        for group in groups:
            (joined if any(map(lane.shares_device, group)) else others).append(group)
        groups = [*others, [*itertools.chain(*joined), lane]]
    return groups


async def _start(lanes: Iterable[Lane]) -> None:
    """One after another: each of them takes what it finds free on its device."""
    for lane in lanes:
        try:
            await lane.start()
        except StartupError as error:
            refusal = StartupError(f"Engine {lane.name}: {error.message}")
            for note in getattr(error, "__notes__", ()):
                refusal.add_note(note)
            raise refusal from error
        if not lane.profile().pairs:
            raise StartupError(f"Engine {lane.name}: its model translates none of its pairs.")


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _profile(lane: Lane) -> EngineProfile | None:
    try:
        return lane.profile()
    except EngineUnavailable:
        return None


def _has(lane: Lane, request: TranslationRequest) -> bool:
    profile = _profile(lane)
    return profile is not None and profile.translates(request.source, request.target)


def _fullness(lane: Lane) -> float:
    capacity = lane.capacity()
    return (capacity.running + capacity.waiting) / max(1, capacity.max_running)


def _health(lane: Lane, *, leaves: bool) -> LaneHealth:
    health, load = lane.health(), lane.capacity()
    return LaneHealth(lane.name, health.state, health.reason, leaves, load.max_running, load.running, load.waiting)


def _merged(profiles: Sequence[EngineProfile]) -> EngineProfile:
    pairs = frozenset(pair for profile in profiles for pair in profile.pairs or ())
    used = {lang for pair in pairs for lang in pair}
    languages = dict.fromkeys(lang for profile in profiles for lang in profile.languages if lang in used)
    return EngineProfile(
        model=", ".join(dict.fromkeys(profile.model for profile in profiles)),
        family=", ".join(dict.fromkeys(profile.family for profile in profiles)),
        languages=tuple(languages),
        options=frozenset(option for profile in profiles for option in profile.options),
        max_text_tokens=max(profile.max_text_tokens for profile in profiles),
        pairs=pairs,
    )
