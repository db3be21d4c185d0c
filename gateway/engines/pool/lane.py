"""One lane of a pool: an engine under a name, for some pairs of languages.

Knows: one engine, which pairs the settings give it. Must not know: other lanes, who chooses between them.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence, Set
from typing import Any, Protocol

from msgspec.structs import replace

from gateway.domain.engine import (
    EngineCapacity,
    EngineHealth,
    EngineProfile,
    EngineState,
    OnEvent,
    TranslationOptions,
    TranslationRequest,
)
from gateway.domain.pairs import PairPattern, pairs_among
from gateway.domain.ports import Engine


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
        """Whether both may use the same device."""
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
