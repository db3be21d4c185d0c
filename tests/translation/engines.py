"""Engines in the hand of a test: nothing is generated before it says so."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from gateway.domain.engine import (
    EngineCapacity,
    EngineHealth,
    EngineProfile,
    EngineState,
    FinishReason,
    OnEvent,
    TokenEvent,
    TranslationRequest,
)
from gateway.domain.errors import EngineFailed, EngineRestarting, EngineUnavailable
from gateway.domain.pairs import Pair
from gateway.domain.ports import Engine
from gateway.engines.lifecycle import Generations

EN_JA, EN_DE = frozenset({("en", "ja")}), frozenset({("en", "de")})


def request(
    request_id: str = "r1", text: str = "x", priority: int = 0, *, target: str = "ja", final: bool = True
) -> TranslationRequest:
    return TranslationRequest(
        id=request_id, text=text, source="en", target=target, priority=priority, final=final, cache_scope="m"
    )


class HandEngine:
    """What engines in the hand of a test have in common: their state is what the test says it is."""

    def __init__(self) -> None:
        self.state = EngineState.READY
        self.most_running = 0
        # What it translates; None: any of its languages into any other.
        self.pairs: frozenset[Pair] | None = None
        self.max_text_tokens = 512

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def health(self) -> EngineHealth:
        return EngineHealth(self.state, "because")

    def profile(self) -> EngineProfile:
        return EngineProfile(
            "hand", "hand", ("en", "de", "fr", "ja"), max_text_tokens=self.max_text_tokens, pairs=self.pairs
        )

    async def metrics(self, _names: Sequence[str] = ()) -> bytes:
        return b""


class AnsweredEngine(HandEngine):
    """An engine that ends a generation when the test says with what; the newest generation is `requests[-1]`."""

    def __init__(self, max_running: int = 4) -> None:
        super().__init__()
        self.requests: list[TranslationRequest] = []
        self.running: dict[str, asyncio.Future[TokenEvent]] = {}
        self.keeps_prefixes = True
        self._max_running = max_running

    async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
        self.requests.append(request)
        self.running[request.id] = answer = asyncio.get_running_loop().create_future()
        self.most_running = max(self.most_running, len(self.running))
        try:
            begun = request.prefix if self.keeps_prefixes else ""
            on_event(TokenEvent(begun, tokens=1))
            event = await answer
            on_event(replace(event, text=event.text.removeprefix(begun)))
        finally:
            del self.running[request.id]

    def says(self, text: str, finish: FinishReason = FinishReason.STOP, request: int = -1) -> None:
        """What the whole translation is."""
        self.running[self.requests[request].id].set_result(TokenEvent(text, tokens=2, finish=finish))

    def pending(self) -> list[TranslationRequest]:
        """Those that wait for their answer."""
        return [r for r in self.requests if r.id in self.running and not self.running[r.id].done()]

    def end(self, request: TranslationRequest, text: str, finish: FinishReason = FinishReason.STOP) -> None:
        self.running[request.id].set_result(TokenEvent(text, tokens=2, finish=finish))

    def fails(self, request: TranslationRequest) -> None:
        """It cannot translate this one text."""
        self.running[request.id].set_exception(EngineFailed("The test says so."))

    def dies(self) -> None:
        for answer in self.running.values():
            answer.set_exception(EngineUnavailable("The engine died."))

    def capacity(self) -> EngineCapacity:
        return EngineCapacity(self._max_running, len(self.running), 0)


class SteppedEngine(HandEngine):
    """An engine that generates when the test says so; records the order in which generations began.

    says: the tokens of every text, one after each `let`, but for the first, which comes at once.
    """

    def __init__(self, max_running: int = 1) -> None:
        super().__init__()
        self.begun: list[str] = []
        self.says: Sequence[str] = ("a", "b")
        # Generations do not begin, as if another one ran alone; they are in `begun` all the same.
        self.held = False
        self.running = 0
        self._max_running = max_running
        self._go: dict[str, asyncio.Event] = {}
        self._generations = Generations()

    def let(self, *request_ids: str) -> None:
        for request_id in request_ids:
            self._go.setdefault(request_id, asyncio.Event()).set()

    def die(self, state: EngineState = EngineState.RESTARTING) -> None:
        self.state = state
        self._generations.end("The engine died.")

    def revive(self) -> None:
        self.state = EngineState.READY
        self._generations = Generations()
        self._go.clear()

    async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
        self.begun.append(request.id)
        generation = self._generations.open()
        if self.held:
            try:
                with generation:
                    await asyncio.Event().wait()
            except EngineUnavailable as error:
                raise EngineRestarting(error.message) from None
            finally:
                generation.close()
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        try:
            on_event(TokenEvent(self.says[0], 1))
            for n, text in enumerate(self.says[1:], 2):
                with generation:
                    await self._go.setdefault(request.id, asyncio.Event()).wait()
                if request.text == "bad":
                    raise EngineFailed("bad text")
                on_event(TokenEvent(text, 1, FinishReason.STOP if n == len(self.says) else None))
        finally:
            generation.close()
            self.running -= 1

    def capacity(self) -> EngineCapacity:
        return EngineCapacity(self._max_running, self.running, 0)


class HandPool(HandEngine):
    """Engines in the hand of a test as the lanes of one."""

    def __init__(self, **lanes: HandEngine) -> None:
        super().__init__()
        self.by_name: dict[str, Any] = dict(lanes)
        self._gone: set[str] = set()

    def lanes(self) -> Mapping[str, Engine]:
        return {name: lane for name, lane in self.by_name.items() if name not in self._gone}

    def goes(self, name: str) -> None:
        """A lane takes no more work, and ends what it runs."""
        self._gone.add(name)

    def comes(self, name: str) -> None:
        """It takes work again."""
        self._gone.discard(name)

    def health(self) -> EngineHealth:
        states = [lane.state for lane in self.by_name.values()]
        for state in (EngineState.READY, EngineState.RESTARTING):
            if state in states:
                return EngineHealth(state, "because")
        return EngineHealth(self.state if self.state is EngineState.STOPPED else EngineState.FAILED, "because")

    def profile(self) -> EngineProfile:
        pairs = [pair for lane in self.by_name.values() for pair in lane.pairs or ()]
        return replace(super().profile(), pairs=frozenset(pairs) or None)

    async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
        await self.by_name[request.lane].generate(request, on_event)

    def capacity(self) -> EngineCapacity:
        return EngineCapacity(0, 0, 0)
