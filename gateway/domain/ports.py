"""The gateway's needs, as Protocols that adapters fulfil.

Knows: what the core asks of the outside. Must not know: any implementation.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from gateway.domain.engine import EngineCapacity, EngineHealth, EngineProfile, TokenEvent, TranslationRequest
from gateway.domain.log import LoggedEvent, Page, Publication

__all__ = ["Engine", "EventLog"]


class Engine(Protocol):
    """Generates translations, many at a time, each at its own pace.

    Duties of every adapter (`tests/contract/test_engine_contract.py` runs on each):
    - events of one generation come in order; exactly one, the last, has `finish` set;
    - the joined `text` of a generation is the whole translation, prefix included, and does not depend on what else
      is running, nor on the request's draft;
    - it begins with the request's prefix unless the tolerance let the model drop it; a generation that ends as
      `REJECTED` has no text;
    - closing or cancelling the iterator ends the generation inside the engine;
    - a request the model cannot take raises `EngineFailed` and harms no other generation;
    - an engine that is not ready raises `EngineUnavailable`, and so do generations that run when it dies;
    - `stop` returns also when the engine's process hangs, and leaves no process behind.
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

    async def metrics(self, names: Sequence[str] = ()) -> bytes:
        """What the engine measures itself, in Prometheus' text format: all, or by the names of samples.

        Never raises; empty where there is nothing to say, or the engine does not answer.
        """


class EventLog(Protocol):
    """What was said and translated in each meeting, in one order that every reader sees.

    Duties of every adapter (`tests/contract/test_event_log_contract.py` runs on each):
    - offsets of one meeting are 1, 2, 3 … without gap while its epoch lasts; nothing changes once appended;
    - when `append` returns, the publication can be read, and subscribers of this process had it delivered;
    - subscribers get every publication from their subscription on, each once, in the order of offsets;
    - a log that was lost, or begun anew after it expired, has another epoch;
    - it is bounded by count and by age; what is trimmed is the oldest, and `Page.first` tells;
    - reading or asking about a meeting that has no log makes none.
    """

    async def append(self, meeting: str, event: LoggedEvent) -> Publication:
        """Write behind everything else of this meeting. Raises `LogUnavailable`; then nothing was written."""

    async def read(self, meeting: str, after: int, limit: int = 200) -> Page:
        """At most `limit` publications with offsets above `after`, oldest first. Raises `LogUnavailable`."""

    def subscribe(self, meeting: str, deliver: Callable[[Publication], None]) -> AbstractAsyncContextManager[Page]:
        """Deliver every new publication while the context lasts; `deliver` must not block and must not raise.

        Gives an empty page with the position at which delivery begins; a meeting without log gets one, with an
        epoch. A meeting that is subscribed to does not expire.
        """
