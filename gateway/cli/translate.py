"""`gateway translate`: texts in, one line per language out, through one session of a running gateway.

Knows: sessions (`client`), how many texts to have under way, what to print where.
Must not know: flags and their spelling (`cli`), the gateway's inside.
"""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import suppress

import msgspec

from gateway.cli.common import EXIT_FAILED, LAST_WORDS, Patience, announce, note
from gateway.cli.jobs import Job, SessionOptions, open_session
from gateway.cli.terminal import LiveLines, can_redraw, printable
from gateway.client import ClientError, ClientSession, Reconnected, SessionClosed
from gateway.domain.errors import Draining, UnsupportedOption
from gateway.protocol.messages import (
    Error,
    ServerMessage,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
)

__all__ = ["CutOff", "one_text", "translate"]

# Texts under way at once when nobody watches: enough to fill the engine's batch, and short to wait for.
_WINDOW = 8

# For lines that are on their way while it is found out which ones a restart has cost.
_REST_S = 0.2


class CutOff(ClientError):
    """The session ended before everything was translated; the text says what is missing."""


async def translate(
    options: SessionOptions, texts: AsyncIterator[str], *, as_json: bool, timings: bool, numbered: bool
) -> int:
    """Translate texts until they end; the exit status. `numbered`: complaints name the text's line.

    Raises `ClientError`, `CutOff` where some texts were translated and others were not.
    """
    patience = Patience(options.wait_s)
    lines = _Lines(texts)
    growing = not as_json and can_redraw(sys.stdout, 1)
    async with open_session(options, patience, growing=growing) as (session, targets):
        page = _Page(session, targets, lines, as_json=as_json, timings=timings, numbered=numbered)
        closed: ClientError | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                sending = tasks.create_task(_send(session, lines, targets, patience, page))
                async for message in session:
                    announce(message)
                    match message:
                        case Reconnected():
                            await page.reconnected()
                        case Error(utterance=str(utterance)) if (job := page.job(utterance)) is not None:
                            await job.refused(session, message)
                            page.show()
                        case Error():
                            page.complain(message)
                        case TranslationDelta() | TranslationFinal() | TranslationFailed():
                            if (job := page.job(message.utterance)) is not None:
                                job.take(message)
                                page.show()
                sending.cancel()
        except ExceptionGroup as failures:
            # The first one is the cause, and what our caller knows how to explain.
            cause = failures.exceptions[0]
            if not isinstance(cause, ClientError):
                raise cause from None
            closed = cause
        await lines.look_ahead()
        if lines.ended and not lines.left:
            return page.status
        page.leave()
        raise CutOff(_what_is_missing(closed, lines if numbered else None)) from closed


class _Lines:
    """The texts to translate, numbered by their lines, and which of them are not translated yet.

    left: lines that were read and not printed. ended: there are no more than were read.
    """

    def __init__(self, texts: AsyncIterator[str]) -> None:
        self.left: deque[int] = deque()
        self.ended = False
        self.read = 0
        self._texts = texts
        self._coming: asyncio.Task[str | None] | None = None

    async def __aiter__(self) -> AsyncGenerator[tuple[int, str], None]:
        while (text := await self._next()) is not None:
            self.read += 1
            if text.strip():
                self.left.append(self.read)
                yield self.read, text.strip()
        self.ended = True

    async def look_ahead(self) -> None:
        """Read on, as far as there is something to read at once."""
        if self.ended:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_REST_S):
                async for _ in self:
                    pass
        if self._coming is not None:
            self._coming.cancel()

    async def _next(self) -> str | None:
        # Whoever waits for a line may be cancelled; the line is then for whoever asks next.
        if self._coming is None:
            self._coming = asyncio.create_task(self._read())
        text = await asyncio.shield(self._coming)
        self._coming = None
        return text

    async def _read(self) -> str | None:
        return await anext(self._texts, None)


def _what_is_missing(closed: ClientError | None, lines: _Lines | None) -> str:
    """Why the session ended, and which lines to run again; `lines` is null for a text without a number."""
    if lines is None:
        missing = "the text was not translated. Run it again."
    elif not lines.ended:
        first = lines.left[0] if lines.left else lines.read + 1
        missing = f"the lines from {first} on were not translated. Run it again for those."
    elif len(lines.left) == 1:
        missing = f"line {lines.left[0]} was not translated. Run it again for that one."
    else:
        missing = f"lines {lines.left[0]} to {lines.left[-1]} were not translated. Run it again for those."
    if isinstance(closed, SessionClosed) and closed.error is not None and closed.error.code == Draining.code:
        return f"The gateway is restarting: {missing}"
    return f"{closed or 'The gateway ended the session.'} {missing[0].upper()}{missing[1:]}"


async def _send(
    session: ClientSession, lines: _Lines, targets: Sequence[str], patience: Patience, page: _Page
) -> None:
    async for number, text in lines:
        job = Job(number, text, targets, patience)
        await page.admit(job)
        await job.send(session)
        if job.done:
            page.show()
    # The gateway takes nothing after the end, so whatever it may still refuse has to be through.
    await page.settle()
    with suppress(ClientError):
        await session.end()


class _Page:
    """The texts under way and what is printed of them: in the order they came in, the first one live."""

    def __init__(
        self,
        session: ClientSession,
        targets: Sequence[str],
        source: _Lines,
        *,
        as_json: bool,
        timings: bool,
        numbered: bool,
    ) -> None:
        self.status = 0
        self._session = session
        self._source = source
        self._targets = targets
        self._as_json = as_json
        self._timings = timings
        self._numbered = numbered
        live = not as_json and can_redraw(sys.stdout, len(targets))
        self._lines = LiveLines(sys.stdout, targets) if live else None
        self._window = 1 if live else min(_WINDOW, session.started.limits.utterances_in_flight)
        self._room = asyncio.Semaphore(self._window)
        self._jobs: OrderedDict[str, Job] = OrderedDict()

    async def admit(self, job: Job) -> None:
        """Wait until there is room for one more text."""
        await self._room.acquire()
        self._jobs[job.id] = job

    async def settle(self) -> None:
        """Wait until every text is through."""
        for _ in range(self._window):
            await self._room.acquire()

    async def reconnected(self) -> None:
        """The session was lost and found; texts are said again in the order they came in."""
        for job in list(self._jobs.values()):
            await job.reconnected(self._session)

    def job(self, utterance: str) -> Job | None:
        """The text under way with this utterance id."""
        return self._jobs.get(utterance)

    def complain(self, error: Error) -> None:
        """An error about the session, not about one text."""
        if error.code in LAST_WORDS:
            return
        note(error.message)
        if not error.retryable and error.code != UnsupportedOption.code:
            self.status = EXIT_FAILED

    def show(self) -> None:
        """Print what is finished, which makes room for more, and draw what is not."""
        while self._jobs and (job := next(iter(self._jobs.values()))).done and not job.stopped:
            self._print(job)
            self._source.left.popleft()
            del self._jobs[job.id]
            self._room.release()
        if self._lines is not None and self._jobs:
            self._lines.draw(next(iter(self._jobs.values())).shown)

    def leave(self) -> None:
        """Nothing more is printed; what is half there stays on the screen."""
        if self._lines is not None:
            self._lines.leave()

    def _print(self, job: Job) -> None:
        place = f"line {job.number}: " if self._numbered else ""
        if job.refusal is not None:
            self._print_json(job.refusal)
            note(place + job.refusal.message)
            self.status = EXIT_FAILED
            return
        if self._lines is not None:
            self._lines.finish(job.shown)
        for lang in self._targets:
            self._print_end(lang, job.ended[lang], f"{place}{lang}: ")

    def _print_end(self, lang: str, end: TranslationFinal | TranslationFailed, place: str) -> None:
        self._print_json(end)
        if isinstance(end, TranslationFailed):
            note(place + end.message)
            self.status = EXIT_FAILED
            return
        if self._lines is None and not self._as_json:
            print(f"{lang}\t{printable(end.text)}", flush=True)
        if end.truncated:
            note(f"{place}The translation was cut short by the output limit.")
        if self._timings:
            times = end.timings
            note(
                f"{place}first token after {times.first_token_ms:.0f} ms, "
                f"{end.tokens} tokens after {times.total_ms:.0f} ms"
            )

    def _print_json(self, message: ServerMessage) -> None:
        if self._as_json:
            print(msgspec.json.encode(message).decode(), flush=True)


async def one_text(text: str) -> AsyncGenerator[str, None]:
    """A text from the command line."""
    yield text
