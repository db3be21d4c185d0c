"""Requests to a remote vLLM server: prompts of token ids, and their completions.

Knows: which of a server's failures are repeated, and how often. Must not know: texts, how a server is watched.

What was being generated goes on after a failure, from the tokens that have come, if the server still answers:
behind one address there may be several, of which one has died.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from msgspec.structs import asdict

from gateway.domain.engine import FinishReason
from gateway.domain.errors import EngineFailed, EngineUnavailable, TextTooLong
from gateway.engines.lifecycle import Generation
from gateway.engines.prompting.completions import News, OnNews, Prompt, tokens_a_piece
from gateway.engines.remote.events import GENERATE, Error, EventStream, Generated, generate_body, unstreamed
from gateway.engines.remote.server import Lost, NotTaken, Refused, Server, ServerError, failure

# How vLLM begins to name its limit: a server that does not tell it, as behind a router, may have a smaller one.
_TOO_LONG = re.compile(r"maximum (model|context) length")

# Other words, such as `abort`, say that the server leaves.
_FINISH = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH}

# How often a text may be lost in the middle. The third time, it is taken for what kills engines.
_MOST_LOST = 2
# How often a request is sent again of which nothing has come, and the first pause before; it doubles each time.
# Routers take seconds to notice that one of their servers has died.
_MOST_UNANSWERED, _PAUSE_S, _LONGEST_PAUSE_S = 7, 0.05, 3.2

# Refusals that are not about the text: the key or the certificate is not accepted any more, the route or the
# model is gone.
_OF_THE_SERVER = {0, 301, 302, 307, 308, 401, 403, 404, 405}

# Weight of the newest measurement in the mean time of a token.
_NEWEST = 0.1


class RemoteRequests:
    """Makes every request to one server.

    model: its name at the server. logprobs: whether the server tells how likely a prompt's tokens are.
    delta_interval_s: about how often new tokens are to be sent, in seconds; 0: every token.
    alive: whether the server answers; died: told why, once it does not.
    """

    def __init__(
        self,
        server: Server,
        *,
        model: str | None,
        logprobs: bool,
        delta_interval_s: float,
        alive: Callable[[], Awaitable[bool]],
        died: Callable[[str], None],
    ) -> None:
        self.server = server
        self.model = model
        self.logprobs = logprobs
        self.alive = alive
        self.died = died
        # Those for one prompt have its id with a number, as a server may refuse an id that it has.
        self.numbers = itertools.count(1)
        # Streams in flight.
        self.running = 0
        self._delta_interval_s = delta_interval_s
        # Mean time of a sequence's token, in seconds; 0 while it is not known.
        self._token_s = 0.0

    def tokens_a_piece(self) -> int:
        """How many tokens of a sequence the server is to send together."""
        return tokens_a_piece(self._delta_interval_s, self._token_s, self.running)

    def took(self, tokens: int, seconds: float) -> None:
        """So many tokens of one sequence came in this time."""
        if tokens:
            self._token_s += (_NEWEST if self._token_s else 1.0) * (seconds / tokens - self._token_s)


class Completing:
    """The requests for one prompt. generation: ends every wait when the engine dies."""

    def __init__(self, requests: RemoteRequests, generation: Generation, prompt: Prompt) -> None:
        self._requests = requests
        self._generation = generation
        self._prompt = prompt
        self._lost = self._unanswered = 0

    async def run(self, on_news: OnNews) -> None:
        """As `Complete`."""
        if self._prompt.rows_from is not None:
            on_news(await self._probe(self._prompt.rows_from))
            return
        prompt, have = self._prompt, list[int]()
        self._requests.running += 1
        try:
            while True:
                had = len(have)
                try:
                    stream = self._stream(prompt.ids + have, prompt.max_tokens - len(have))
                    async with aclosing(stream) as news:
                        async for new in news:
                            if new.finish is None:
                                have += new.ids
                                on_news(News(new.ids))
                                continue
                            on_news(News(new.ids, self._finish(new, "text"), new.cached_tokens or 0))
                            return
                except ServerError as error:
                    await self._recover(error, begun=len(have) > had)
        finally:
            self._requests.running -= 1

    @staticmethod
    def _finish(new: Generated, what: str) -> FinishReason:
        """Raises `Lost` if the server has ended it early."""
        if (finish := _FINISH.get(new.finish or "")) is None:
            raise Lost(f"it ended this {what} early ({new.finish})")
        return finish

    async def _probe(self, rows_from: int) -> News:
        # The prefix cache is never read, whatever the prompt says: not every server tells how much came from it,
        # and the rows of such tokens are unwritten memory. vLLM leaves it out by itself for these requests.
        if not self._requests.logprobs:
            return News([], FinishReason.LENGTH)
        ids = self._prompt.ids
        sampling = self._sampling(1, prompt_logprobs=2)
        while True:
            try:
                with self._generation:
                    body = await self._requests.server.post(GENERATE, self._body(ids, sampling, stream=False))
                try:
                    new, rows = unstreamed(body, ids)
                except ValueError as error:
                    raise Lost(f"it gave an answer that cannot be read: {error}") from None
                finish = self._finish(new, "probe")
            except ServerError as error:
                await self._recover(error, begun=False)
            else:
                return News(new.ids, finish, rows=None if rows is None else rows.last(len(ids) - rows_from))

    def _sampling(self, max_tokens: int, **more: Any) -> dict[str, Any]:
        own = {"stop_token_ids": self._prompt.stop, "max_tokens": max_tokens}
        return asdict(self._prompt.sampling) | own | more

    async def _stream(self, ids: list[int], max_tokens: int) -> AsyncGenerator[Generated, None]:
        """New tokens after a prompt, the last of them with `finish` set. Raises `ServerError`."""
        requests, generation = self._requests, self._generation
        sampling = self._sampling(max_tokens)
        if (tokens := requests.tokens_a_piece()) > 1:
            sampling["stream_interval"] = tokens
        with generation:
            body = self._body(ids, sampling, stream=True)
            answer = await requests.server.open(GENERATE, body, self._prompt.traceparent)
        events, last_s = EventStream(), 0.0
        try:
            while True:
                try:
                    with generation:
                        data = await answer.read()
                    event = events.feed(data)
                except ValueError as error:
                    raise Lost(f"it sent what cannot be read: {error}") from None
                except Lost:
                    if not events.finished:
                        raise
                    data, event = b"", events.feed(b"")
                match event:
                    case Generated():
                        now_s = time.monotonic()
                        if last_s:
                            requests.took(len(event.ids), now_s - last_s)
                        last_s = now_s
                        yield event
                        if event.finish is not None:
                            return
                    case Error():
                        raise failure(event)
                    case None if not data:
                        raise Lost("its answer was cut off")
        finally:
            answer.close()

    def _body(self, ids: list[int], sampling: dict[str, Any], *, stream: bool) -> bytes:
        return generate_body(
            f"{self._prompt.id}-{next(self._requests.numbers)}",
            ids,
            sampling,
            model=self._requests.model,
            priority=self._prompt.priority,
            cache_salt=self._prompt.salt,
            stream=stream,
        )

    async def _recover(self, error: ServerError, *, begun: bool) -> None:
        """Return if the request is to be sent again. Raises `EngineFailed` or `EngineUnavailable` if not.

        begun: whether tokens have come. If not, a server may have been dead before.
        """
        if isinstance(error, Refused) and error.status not in _OF_THE_SERVER:
            kind = TextTooLong if _TOO_LONG.search(str(error)) else EngineFailed
            raise kind(f"The server refused this text: {error}.") from error
        with self._generation:
            alive = not isinstance(error, Refused) and await self._requests.alive()
            # What no server has had room for waits for as long as the scheduler lets it.
            is_harmless = isinstance(error, NotTaken) or self._unanswered < _MOST_UNANSWERED
            if alive and not begun and is_harmless:
                await asyncio.sleep(min(_PAUSE_S * 2.0**self._unanswered, _LONGEST_PAUSE_S))
                self._unanswered += 1
                return
        if alive:
            self._lost += begun
            if begun and self._lost <= _MOST_LOST:
                return
            # Others are served, so it is about this text.
            tries = self._lost if begun else self._unanswered + 1
            raise EngineFailed(f"The servers did not finish this text in {tries} tries: {error}.") from error
        self._requests.died(str(error))
        raise EngineUnavailable(f"The server is gone: {error}.", retry_after_ms=2_000) from error
