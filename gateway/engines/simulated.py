"""An engine that follows a script, to measure the gateway itself and to test faults.

Knows: how long each stage takes, and which faults happen.
Its "translation" is the target language's tag, then the source text; each word is a token. A request's prefix and
draft are compared with it word by word; this takes as long as one token. It never shows that translation works.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Sequence
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
from gateway.domain.languages import normalise_all
from gateway.engines.lifecycle import Generation
from gateway.engines.prompting.completions import Complete, News, OnNews, Prompt
from gateway.engines.translating import TranslatingEngine


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


class SimulatedModel(Struct, frozen=True, array_like=True, tag="simulated"):
    """What those who ask a simulated engine know of it."""

    script: Script

    def translator(self) -> Speech:
        return Speech(self.script)


class Speech:
    """The `Translator` of a script: knows the words, of which the engine gives only the numbers."""

    def __init__(self, script: Script) -> None:
        self._script = script

    async def translate(self, request: TranslationRequest, complete: Complete, on_event: OnEvent) -> None:
        script = self._script
        matching = (number for number, rule in enumerate(script.rules) if rule.match in request.text)
        number = next(matching, len(script.rules))
        repeat = (*script.rules, _NO_RULE)[number].repeat
        words = f"[{request.target}] {request.text}".split() * repeat
        if len(words) > script.max_text_tokens * repeat:
            raise TextTooLong(f"The text is longer than {script.max_text_tokens} tokens.")
        proposed = _pieces(request.prefix + request.draft)
        first, pieces = _said(request, words, proposed)
        events = [first] if first else []
        prompt_tokens = len(words) + len(proposed)

        def tell(news: News) -> None:
            for id in news.ids:
                place = id - len(events)
                event = events[id] if place < 0 else TokenEvent(pieces[place], 1, news.finish)
                on_event(event if event.finish is None else replace(event, prompt_tokens=prompt_tokens))

        given = (first.reused or first.tokens) if first else 1
        prompt = Prompt(
            request.id,
            [number, given],
            len(events) + len(pieces),
            priority=request.priority,
            final=request.final,
            alone=request.alone,
        )
        await complete(prompt, tell)


class SimulatedEngine(TranslatingEngine):
    """Engine port that follows a script. crashed: how often each rule has killed an engine of its factory.

    What it completes is the number of a rule, and of how many words its first event is; it gives the numbers of
    the events, each when its time has come.
    """

    def __init__(self, script: Script | None = None, crashed: Counter[Rule] | None = None) -> None:
        super().__init__()
        self._script = script or Script()
        self._languages = normalise_all(self._script.languages)
        self._model = SimulatedModel(self._script)
        self._translator = self._model.translator()
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

    async def _complete(self, generation: Generation, prompt: Prompt, on_news: OnNews) -> None:
        with generation:
            await self._run(prompt, on_news)

    async def _run(self, prompt: Prompt, on_news: OnNews) -> None:
        number, first = prompt.ids
        rule = (*self._script.rules, _NO_RULE)[number]
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        self._running += 1
        try:
            for place in range(prompt.max_tokens):
                await self._step(rule, place + first - 1 if place else 0)
                on_news(News([place], FinishReason.STOP if place == prompt.max_tokens - 1 else None))
        finally:
            self._running -= 1
            self._slots.release()

    async def _step(self, rule: Rule, given: int) -> None:
        """Wait for the time of one token, and apply the rule's fault; given: words of the translation so far."""
        self._generations.check()  # a reader may have ended them
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
            languages=self._languages,
            options=self._script.options,
            max_text_tokens=self._script.max_text_tokens,
        )

    async def metrics(self, _names: Sequence[str] = ()) -> bytes:
        return b""


# The words of a text, each with the space before it; the last also with the space after it.
_pieces = re.compile(r"\s*\S+(?:\s+$)?").findall


def _said(
    request: TranslationRequest, words: list[str], proposed: list[str]
) -> tuple[TokenEvent | None, list[str]]:
    """What is kept of `proposed`, the prefix and draft, and the words that follow.

    words: the translation without a prefix.
    """
    own, prefix = " ".join(words), request.prefix
    if not own.startswith(prefix):
        if request.tolerance is None:
            own = " ".join([prefix, *words[len(prefix.split()) :]])
        elif request.final:
            prefix = ""
        else:
            return TokenEvent(text="", tokens=1, finish=FinishReason.REJECTED), []
    pieces = _pieces(own)
    if proposed:
        same = 0
        while same < min(len(pieces), len(proposed)) and pieces[same] == proposed[same]:
            same += 1
        # A prefix may end within a word.
        if given := max("".join(pieces[:same]), prefix, key=len):
            pieces = _pieces(own[len(given) :])
            finish = None if pieces else FinishReason.STOP
            return TokenEvent(text=given, tokens=1, finish=finish, reused=len(_pieces(given))), pieces
    return None, pieces


def simulated_engines(script: Script) -> Callable[[], SimulatedEngine]:
    """A factory of engines that share one script: a crash that one engine had is not repeated by the next."""
    crashed: Counter[Rule] = Counter()
    return lambda: SimulatedEngine(script, crashed)
