"""The gateway's needs, as Protocols that adapters fulfil.

Knows: what the core asks of the outside. Must not know: any implementation.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from gateway.events import EngineCapacity, EngineHealth, EngineProfile, TokenEvent, TranslationRequest

__all__ = ["Engine"]


class Engine(Protocol):
    """Generates translations, many at a time, each at its own pace.

    Duties of every adapter (`tests/contract/test_engine_contract.py` runs on each):
    - events of one generation come in order; exactly one, the last, has `finish` set;
    - the joined `text` of a generation does not depend on what else is running;
    - closing or cancelling the iterator ends the generation inside the engine;
    - a request the model cannot take raises `EngineFailed` and harms no other generation;
    - an engine that is not ready raises `EngineUnavailable`.
    """

    async def start(self) -> None:
        """Load the model; returns once generations can run. Raises `StartupError`."""

    async def stop(self) -> None:
        """Release everything. Generations still running raise `EngineUnavailable`."""

    def generate(self, request: TranslationRequest) -> AsyncGenerator[TokenEvent, None]:
        """Translate one text. Closing the generator, or cancelling the task that reads it, is the abort."""

    def health(self) -> EngineHealth:
        """The state now; never blocks."""

    def capacity(self) -> EngineCapacity:
        """The load now, as the engine counts it; never blocks."""

    def profile(self) -> EngineProfile:
        """What the model can do. Raises `EngineUnavailable` until it is known."""
