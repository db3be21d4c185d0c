"""An engine that follows a script, to measure the gateway itself and to test faults.

Knows: how long each stage takes, and which faults happen.
Its "translation" is the target language's tag, then the source text; each word is a token. A request's prefix and
draft are compared with it word by word; this takes as long as one token. It never shows that translation works.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from gateway.domain.engine import (
    EngineCapacity,
    EngineProfile,
    EngineState,
    FinishReason,
    OnEvent,
    TokenEvent,
    TranslationRequest,
)
from gateway.domain.errors import EngineFailed, StartupError, TextTooLong
from gateway.engines.lifecycle import Adapter


class Rule(Struct, frozen=True):
    """What happens to a text that contains `match`."""

    # A part of the text.
    match: str
    # Raise `EngineFailed` after this many words of the translation, those of its prefix or draft included.
    fail_after: int | None = None
    # After this many such words, give no more until the generation is aborted.
    stall_after: int | None = None
    # The engine dies after this many such words.
    crash_after: Annotated[int, Meta(ge=0)] | None = None
    # How often it dies in all, counted over restarted engines.
    crashes: Annotated[int, Meta(ge=0)] = 1
    # How many times the text is repeated, for a long generation.
    repeat: int = 1
    # Seconds per token. None: as in the script.
    token_s: Annotated[float, Meta(ge=0, le=86_400)] | None = None


class Script(Struct, frozen=True):
    """How the engine behaves: what it can do, how long that takes, and which faults happen."""

    # Time until the engine is ready, in seconds.
    load_s: Annotated[float, Meta(ge=0, le=86_400)] = 0.0
    # Time until a sequence's first token, in seconds.
    first_token_s: Annotated[float, Meta(ge=0, le=86_400)] = 0.02
    # Time of each further token, in seconds.
    token_s: Annotated[float, Meta(ge=0, le=86_400)] = 0.005
    # Sequences generated together; the others wait.
    max_running: Annotated[int, Meta(ge=1)] = 16
    # Whether several workers share one engine, as they would share a real one. If not, each has its own, and what
    # is measured is the workers alone.
    shared: bool = True
    # Languages that it claims to know.
    languages: tuple[str, ...] = ("en", "ja", "es", "de", "fr", "zh")
    # Which of `glossary`, `context` and `formality` it takes.
    options: frozenset[str] = frozenset()
    # Longest text that it takes, in words.
    max_text_tokens: int = 512
    # The first rule that matches a text applies.
    rules: tuple[Rule, ...] = ()


_NO_RULE = Rule(match="")


class SimulatedEngine(Adapter):
    """Engine port that follows a script. crashed: how often each rule has killed an engine of its factory."""

    def __init__(self, script: Script | None = None, crashed: Counter[Rule] | None = None) -> None:
        super().__init__()
        self._script = script or Script()
        self._crashed = Counter() if crashed is None else crashed
        self._slots = asyncio.Semaphore(self._script.max_running)
        self._waiting = 0
        self._running = 0

    async def start(self) -> None:
        self._say("the simulated engine is loading")
        await asyncio.sleep(self._script.load_s)
        if self._life.state is not EngineState.STARTING:
            raise StartupError(f"The simulated engine was not started: {self._life.health.reason}.")
        self._life.become(EngineState.READY)

    async def stop(self) -> None:
        self._end_as_stopped()

    def fail(self, reason: str) -> None:
        """Let the engine die, for fault tests."""
        self._life.become(EngineState.FAILED, reason)
        self._generations.end(f"The engine died: {reason}.")

    async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
        script, rule = self._script, self._rule(request.text)
        self._life.check(retry_after_ms=1_000)
        words = f"[{request.target}] {request.text}".split() * rule.repeat
        if len(words) > script.max_text_tokens * rule.repeat:
            raise TextTooLong(f"The text is longer than {script.max_text_tokens} tokens.")
        generation = self._generations.open()
        try:
            with generation:
                await self._run(request, rule, words, on_event)
        finally:
            generation.close()

    async def _run(self, request: TranslationRequest, rule: Rule, words: list[str], on_event: OnEvent) -> None:
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        self._running += 1
        try:
            proposed = _pieces(request.prefix + request.draft)
            asked, given = len(words) + len(proposed), 0
            for event in _events(request, words, proposed):
                await self._step(rule, given)
                on_event(event if event.finish is None else replace(event, prompt_tokens=asked))
                given += event.reused or event.tokens
        finally:
            self._running -= 1
            self._slots.release()

    async def _step(self, rule: Rule, given: int) -> None:
        """Wait for the time of one token, and apply the rule's fault; given: words of the translation so far."""
        self._generations.check()  # `on_event` may have ended them
        token_s = self._script.token_s if rule.token_s is None else rule.token_s
        await asyncio.sleep(token_s if given else self._script.first_token_s)
        if rule.stall_after is not None and given >= rule.stall_after:
            await asyncio.Event().wait()
        if rule.fail_after is not None and given >= rule.fail_after:
            raise EngineFailed("The script says that this text fails.")
        if rule.crash_after is not None and given >= rule.crash_after and self._crashed[rule] < rule.crashes:
            self._crashed[rule] += 1
            self.fail("the script says that this text kills it")
            self._life.check(retry_after_ms=1_000)

    def capacity(self) -> EngineCapacity:
        return EngineCapacity(self._script.max_running, self._running, self._waiting)

    def profile(self) -> EngineProfile:
        if self._life.state is EngineState.STARTING:
            self._life.check(retry_after_ms=1_000)
        return EngineProfile(
            model="simulated",
            family="simulated",
            languages=self._script.languages,
            options=self._script.options,
            max_text_tokens=self._script.max_text_tokens,
        )

    async def metrics(self, _names: Sequence[str] = ()) -> bytes:
        return b""

    def _rule(self, text: str) -> Rule:
        return next((rule for rule in self._script.rules if rule.match in text), _NO_RULE)


# The words of a text, each with the space before it; the last also with the space after it.
_pieces = re.compile(r"\s*\S+(?:\s+$)?").findall


def _events(request: TranslationRequest, words: list[str], proposed: list[str]) -> Iterator[TokenEvent]:
    """The events of a request whose translation without a prefix is `words`. proposed: its prefix and draft."""
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
    if proposed:
        same = 0
        while same < min(len(pieces), len(proposed)) and pieces[same] == proposed[same]:
            same += 1
        # A prefix may end within a word.
        given = max("".join(pieces[:same]), prefix, key=len)
        pieces = _pieces(own[len(given) :])
        if given:
            finish = None if pieces else FinishReason.STOP
            yield TokenEvent(text=given, tokens=1, finish=finish, reused=len(_pieces(given)))
    for number, piece in enumerate(pieces, start=1):
        yield TokenEvent(text=piece, tokens=1, finish=FinishReason.STOP if number == len(pieces) else None)


def simulated_engines(script: Script) -> Callable[[], SimulatedEngine]:
    """A factory of engines that share one script: a crash that one engine had is not repeated by the next."""
    crashed: Counter[Rule] = Counter()
    return lambda: SimulatedEngine(script, crashed)
