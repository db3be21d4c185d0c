"""`gateway translate`: translates texts through one session of a running gateway, and prints a line per language.

Knows: sessions (`gateway.client`), how many texts are under way at once, what is printed where.
Must not know: how flags are spelled (`cli.flags`), the server's code.
"""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import suppress

import msgspec

from gateway.cli.jobs import Job, TextOptions, open_session
from gateway.cli.sessions import EXIT_FAILED, LAST_WORDS, EngineWait, note, note_reconnection, sentence_about
from gateway.cli.terminal.drawing import LiveLines, can_redraw, escaped, printable
from gateway.client import ClientError, ClientSession, Reconnected, SessionClosed
from gateway.domain.errors import Draining, Unauthenticated, UnsupportedOption
from gateway.protocol.messages import Error, ServerMessage, TranslationDelta, TranslationFailed, TranslationFinal

# Texts under way at once when the output is not a terminal.
_WINDOW = 8

# Said of a translation that the model is unsure of.
_UNSURE = "Unsure: the model may be wrong here. For meetings that matter, use a larger model: docs/models.md."

# How long to read further input, to find out which lines a restart left untranslated.
_REST_S = 0.2


class CutOff(ClientError):
    """The session ended before everything was translated. The text says what is missing."""


async def translate(
    options: TextOptions, texts: AsyncIterator[str], *, as_json: bool, timings: bool, numbered: bool
) -> int:
    """Translate texts until they end. Returns the exit status.

    numbered: whether notes name the line of the text. Raises `ClientError`; `CutOff` if texts are left.
    """
    engine_wait = EngineWait(options.wait_s)
    lines = _Lines(texts)
    growing = not as_json and can_redraw(sys.stdout, 1)
    async with open_session(options, engine_wait, growing=growing) as (session, targets):
        page = _Page(session, targets, lines, as_json=as_json, timings=timings, numbered=numbered)
        closed: ClientError | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                sending = tasks.create_task(_send(session, lines, targets, engine_wait, page))
                async for message in session:
                    note_reconnection(message)
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
                                job.note_message(message)
                                page.show()
                sending.cancel()
        except ExceptionGroup as failures:
            # The first error is the cause, and the caller can explain it.
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
    """The texts to translate, numbered by line, and which of them are not translated yet."""

    def __init__(self, texts: AsyncIterator[str]) -> None:
        # Numbers of the lines that were read and not printed.
        self.left: deque[int] = deque()
        # Whether the input has ended.
        self.ended = False
        # Lines read so far.
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
        """Read the lines that are available at once."""
        if self.ended:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_REST_S):
                async for _ in self:
                    pass
        if self._coming is not None:
            self._coming.cancel()

    async def _next(self) -> str | None:
        # If a waiting caller is cancelled, the next caller gets the line.
        if self._coming is None:
            self._coming = asyncio.create_task(self._read())
        text = await asyncio.shield(self._coming)
        self._coming = None
        return text

    async def _read(self) -> str | None:
        return await anext(self._texts, None)


def _what_is_missing(closed: ClientError | None, lines: _Lines | None) -> str:
    """Why the session ended, and which lines to run again. lines: None for a single text."""
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
    session: ClientSession, lines: _Lines, targets: Sequence[str], engine_wait: EngineWait, page: _Page
) -> None:
    async for number, text in lines:
        job = Job(number, text, targets, engine_wait)
        await page.admit(job)
        await job.send(session)
        if job.done:
            page.show()
    # The gateway accepts nothing after the end, so every text needs its answer first.
    await page.settle()
    with suppress(ClientError):
        await session.end()


class _Page:
    """Prints the texts under way in the order of their lines; the first one grows on the screen."""

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
        """Wait until every text is done."""
        for _ in range(self._window):
            await self._room.acquire()

    async def reconnected(self) -> None:
        """The connection is back: send texts again, in the order of their lines."""
        for job in list(self._jobs.values()):
            await job.reconnected(self._session)

    def job(self, utterance: str) -> Job | None:
        """The text under way with this utterance id."""
        return self._jobs.get(utterance)

    def complain(self, error: Error) -> None:
        """Print an error about the session, not about one text."""
        if error.code in LAST_WORDS:
            return
        note(sentence_about(error))
        # Neither is about a text: what is not translated because of a token is noticed when the session ends.
        if not error.retryable and error.code not in (UnsupportedOption.code, Unauthenticated.code):
            self.status = EXIT_FAILED

    def show(self) -> None:
        """Print the finished texts, which makes room for more, and draw the first unfinished one."""
        while self._jobs and (job := next(iter(self._jobs.values()))).done and not job.stopped:
            self._print(job)
            self._source.left.popleft()
            del self._jobs[job.id]
            self._room.release()
        if self._lines is not None and self._jobs:
            self._lines.draw(next(iter(self._jobs.values())).shown)

    def leave(self) -> None:
        """Stop printing; an unfinished text stays on the screen."""
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
        if end.unsure is True:
            note(f"{place}{_UNSURE}")
        if self._timings:
            times = end.timings
            note(
                f"{place}first token after {times.first_token_ms:.0f} ms, "
                f"{end.tokens} tokens after {times.total_ms:.0f} ms"
            )

    def _print_json(self, message: ServerMessage) -> None:
        if self._as_json:
            print(escaped(msgspec.json.encode(message).decode()), flush=True)


async def one_text(text: str) -> AsyncGenerator[str, None]:
    """A text from the command line."""
    yield text
