"""An engine that follows a script: for measuring the gateway itself and for fault tests.

Knows: how long each stage is to take and what is to go wrong. It never shows that translation works.
Its "translation" is the source text word by word behind the target language's tag, one word a token.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from msgspec import Struct

from gateway.errors import EngineFailed, EngineUnavailable
from gateway.events import (
    EngineCapacity,
    EngineHealth,
    EngineProfile,
    EngineState,
    FinishReason,
    TokenEvent,
    TranslationRequest,
)

__all__ = ["Rule", "Script", "SimulatedEngine"]


class Rule(Struct, frozen=True):
    """What happens to a text that contains `match`.

    fail_after: raise `EngineFailed` after so many tokens. stall_after: say nothing more after so many tokens,
    until aborted. repeat: say the text so many times, for a long generation. token_s: another pace than the
    script's.
    """

    match: str
    fail_after: int | None = None
    stall_after: int | None = None
    repeat: int = 1
    token_s: float | None = None


class Script(Struct, frozen=True):
    """Times in seconds. max_running: sequences generated together; the others wait."""

    load_s: float = 0.0
    first_token_s: float = 0.02
    token_s: float = 0.005
    max_running: int = 16
    languages: tuple[str, ...] = ("en", "ja", "es", "de", "fr", "zh")
    options: frozenset[str] = frozenset()
    max_text_tokens: int = 512
    rules: tuple[Rule, ...] = ()


_NO_RULE = Rule(match="")


class SimulatedEngine:
    """Engine port, played from a script. Units: seconds and words."""

    def __init__(self, script: Script | None = None) -> None:
        self._script = script or Script()
        self._slots = asyncio.Semaphore(self._script.max_running)
        self._health = EngineHealth(EngineState.STARTING, "starting")
        self._waiting = 0
        self._running = 0

    async def start(self) -> None:
        self._health = EngineHealth(EngineState.STARTING, "the simulated engine is loading")
        await asyncio.sleep(self._script.load_s)
        self._health = EngineHealth(EngineState.READY)

    async def stop(self) -> None:
        self._health = EngineHealth(EngineState.STOPPED, "the engine was stopped")

    def fail(self, reason: str) -> None:
        """The engine dies: for fault tests."""
        self._health = EngineHealth(EngineState.FAILED, reason)

    async def generate(self, request: TranslationRequest) -> AsyncGenerator[TokenEvent, None]:
        script, rule = self._script, self._rule(request.text)
        self._check()
        token_s = script.token_s if rule.token_s is None else rule.token_s
        words = f"[{request.target}] {request.text}".split() * rule.repeat
        if len(words) > script.max_text_tokens * rule.repeat:
            raise EngineFailed(f"The text is longer than {script.max_text_tokens} tokens.")
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        self._running += 1
        try:
            for index, word in enumerate(words):
                await asyncio.sleep(token_s if index else script.first_token_s)
                self._check()
                if index == rule.fail_after:
                    raise EngineFailed("The script says that this text fails.")
                if index == rule.stall_after:
                    await asyncio.Event().wait()
                last = index == len(words) - 1
                yield TokenEvent(
                    text=word if index == 0 else f" {word}",
                    tokens=1,
                    finish=FinishReason.STOP if last else None,
                    prompt_tokens=len(words) if last else 0,
                )
        finally:
            self._running -= 1
            self._slots.release()

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

    def _check(self) -> None:
        if self._health.state is not EngineState.READY:
            raise EngineUnavailable(f"The engine is not ready: {self._health.reason}", retry_after_ms=1_000)

    def _rule(self, text: str) -> Rule:
        return next((rule for rule in self._script.rules if rule.match in text), _NO_RULE)
