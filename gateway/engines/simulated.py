"""An engine that follows a script: for measuring the gateway itself and for fault tests.

Knows: how long each stage is to take and what is to go wrong. It never shows that translation works.
Its "translation" is the source text word by word behind the target language's tag, one word a token. Prefix and
draft of a request are compared with that word by word, which counts as one generated token and takes as long.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from itertools import takewhile
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from gateway.domain.engine import (
    EngineCapacity,
    EngineHealth,
    EngineProfile,
    EngineState,
    FinishReason,
    TokenEvent,
    TranslationRequest,
)
from gateway.domain.errors import EngineFailed, EngineUnavailable, StartupError
from gateway.engines.in_flight import Generation, Generations

__all__ = ["Rule", "Script", "SimulatedEngine", "simulated_engines"]


class Rule(Struct, frozen=True):
    """What happens to a text that contains `match`."""

    # A part of the text.
    match: str
    # Raise `EngineFailed` after so many tokens.
    fail_after: int | None = None
    # Say nothing more after so many tokens, until aborted.
    stall_after: int | None = None
    # The engine dies after so many tokens,
    crash_after: Annotated[int, Meta(ge=0)] | None = None
    # so many times in all, however often it is built again.
    crashes: Annotated[int, Meta(ge=0)] = 1
    # Say the text so many times, for a long generation.
    repeat: int = 1
    # Another pace than the script's, seconds.
    token_s: Annotated[float, Meta(ge=0, le=86_400)] | None = None


class Script(Struct, frozen=True):
    """What the engine can do, how long that takes, and what goes wrong."""

    # Until the engine is ready, seconds.
    load_s: Annotated[float, Meta(ge=0, le=86_400)] = 0.0
    # Until a sequence's first token, seconds.
    first_token_s: Annotated[float, Meta(ge=0, le=86_400)] = 0.02
    # Every further token, seconds.
    token_s: Annotated[float, Meta(ge=0, le=86_400)] = 0.005
    # Sequences generated together; the others wait.
    max_running: Annotated[int, Meta(ge=1)] = 16
    # Languages that it claims to know.
    languages: tuple[str, ...] = ("en", "ja", "es", "de", "fr", "zh")
    # Of `glossary`, `context`, `formality`.
    options: frozenset[str] = frozenset()
    # Longest text that it takes, in words.
    max_text_tokens: int = 512
    # What happens to which texts; the first that matches counts.
    rules: tuple[Rule, ...] = ()


_NO_RULE = Rule(match="")


class SimulatedEngine:
    """Engine port, played from a script. Units: seconds and words.

    crashed: how often each rule has killed an engine, kept over the engines of one factory.
    """

    def __init__(self, script: Script | None = None, crashed: Counter[Rule] | None = None) -> None:
        self._script = script or Script()
        self._crashed = Counter() if crashed is None else crashed
        self._slots = asyncio.Semaphore(self._script.max_running)
        self._health = EngineHealth(EngineState.STARTING, "starting")
        self._generations = Generations()
        self._waiting = 0
        self._running = 0

    async def start(self) -> None:
        self._health = EngineHealth(EngineState.STARTING, "the simulated engine is loading")
        await asyncio.sleep(self._script.load_s)
        if self._health.state is not EngineState.STARTING:
            raise StartupError(f"The simulated engine was not started: {self._health.reason}.")
        self._health = EngineHealth(EngineState.READY)

    async def stop(self) -> None:
        self._health = EngineHealth(EngineState.STOPPED, "the engine was stopped")
        self._generations.end("The engine was stopped.")

    def fail(self, reason: str) -> None:
        """The engine dies: for fault tests."""
        self._health = EngineHealth(EngineState.FAILED, reason)
        self._generations.end(f"The engine died: {reason}.")

    async def generate(self, request: TranslationRequest) -> AsyncGenerator[TokenEvent, None]:
        script, rule = self._script, self._rule(request.text)
        self._check()
        words = f"[{request.target}] {request.text}".split() * rule.repeat
        if len(words) > script.max_text_tokens * rule.repeat:
            raise EngineFailed(f"The text is longer than {script.max_text_tokens} tokens.")
        generation = self._generations.open()
        try:
            self._waiting += 1
            try:
                with generation:
                    await self._slots.acquire()
            finally:
                self._waiting -= 1
            self._running += 1
            try:
                asked = len(words) + len(_pieces(request.prefix + request.draft))
                for index, event in enumerate(_events(request, words)):
                    await self._step(generation, rule, index)
                    yield event if event.finish is None else replace(event, prompt_tokens=asked)
            finally:
                self._running -= 1
                self._slots.release()
        finally:
            generation.close()

    async def _step(self, generation: Generation, rule: Rule, index: int) -> None:
        """Take the time of one token; what is to go wrong with it goes wrong here."""
        token_s = self._script.token_s if rule.token_s is None else rule.token_s
        with generation:
            await asyncio.sleep(token_s if index else self._script.first_token_s)
            if index == rule.stall_after:
                await asyncio.Event().wait()
        if index == rule.fail_after:
            raise EngineFailed("The script says that this text fails.")
        if index == rule.crash_after and self._crashed[rule] < rule.crashes:
            self._crashed[rule] += 1
            self.fail("the script says that this text kills it")
            self._check()

    def health(self) -> EngineHealth:
        return self._health

    def capacity(self) -> EngineCapacity:
        return EngineCapacity(self._script.max_running, self._running, self._waiting)

    def profile(self) -> EngineProfile:
        if self._health.state is EngineState.STARTING:
            self._check()
        return EngineProfile(
            model="simulated",
            family="simulated",
            languages=self._script.languages,
            options=self._script.options,
            max_text_tokens=self._script.max_text_tokens,
        )

    async def metrics(self, _names: Sequence[str] = ()) -> bytes:
        return b""

    def _check(self) -> None:
        if self._health.state is not EngineState.READY:
            raise EngineUnavailable(f"The engine is not ready: {self._health.reason}", retry_after_ms=1_000)

    def _rule(self, text: str) -> Rule:
        return next((rule for rule in self._script.rules if rule.match in text), _NO_RULE)


def _pieces(text: str) -> list[str]:
    """The words of a text, each with the space before it, the last with that behind it, too."""
    return re.findall(r"\s*\S+(?:\s+$)?", text)


def _events(request: TranslationRequest, words: list[str]) -> Iterator[TokenEvent]:
    """All that is said of a request whose own translation is `words`."""
    own, prefix = " ".join(words), request.prefix
    if not own.startswith(prefix):
        if request.tolerance is None:
            own = " ".join([prefix, *words[len(prefix.split()) :]])
        elif request.final:
            prefix = ""
        else:
            yield TokenEvent(text="", tokens=1, finish=FinishReason.REJECTED)
            return
    pieces = _pieces(own)
    if proposed := _pieces(request.prefix + request.draft):
        pairs = zip(pieces, proposed, strict=False)
        given = "".join(piece for piece, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        # A prefix may end within a word.
        given = max(given, prefix, key=len)
        pieces = _pieces(own[len(given) :])
        if given:
            finish = None if pieces else FinishReason.STOP
            yield TokenEvent(text=given, tokens=1, finish=finish, reused=len(_pieces(given)))
    for number, piece in enumerate(pieces, start=1):
        yield TokenEvent(text=piece, tokens=1, finish=FinishReason.STOP if number == len(pieces) else None)


def simulated_engines(script: Script) -> Callable[[], SimulatedEngine]:
    """A factory of engines that play one script between them: what one did, the next does not do again."""
    crashed: Counter[Rule] = Counter()
    return lambda: SimulatedEngine(script, crashed)
