"""`gateway translate`: translates texts through one session of a running gateway, and prints a line per language.

Knows: sessions (`gateway.client`), how many texts are under way at once, what is printed where.
Must not know: how flags are spelled (`cli.flags`), the server's code.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import sys
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress

import msgspec
from msgspec import Struct

from gateway.cli.terminal import LiveLines, can_redraw, printable
from gateway.client import (
    ClientError,
    ClientSession,
    Reconnected,
    Reconnecting,
    SessionClosed,
    SessionEvent,
    SessionRefused,
    connect,
)
from gateway.domain.engine import Formality
from gateway.domain.errors import (
    CloseCode,
    Draining,
    EngineRestarting,
    EngineUnavailable,
    GatewayError,
    MessageTooLarge,
    SlowReader,
    UnsupportedOption,
)
from gateway.protocol.messages import (
    Error,
    ServerMessage,
    SessionUpdated,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
)

__all__ = [
    "EXIT_FAILED",
    "EXIT_UNREACHABLE",
    "LAST_WORDS",
    "CutOff",
    "Job",
    "Patience",
    "SessionOptions",
    "announce",
    "lines_of",
    "note",
    "one_text",
    "open_session",
    "translate",
]

EXIT_UNREACHABLE = 1
EXIT_FAILED = 3

# Texts under way at once when the output is not a terminal.
_WINDOW = 8

# After this many refusals a text is given up.
_ATTEMPTS = 20
# Wait before a text is sent again if the gateway does not say how long to wait.
_RETRY_MS = 500

# How long to read further input, to find out which lines a restart left untranslated.
_REST_S = 0.2

# Errors that come right before the gateway closes. They are shown as the reason for the close.
LAST_WORDS = frozenset(cls.code for cls in (GatewayError, Draining, SlowReader))


class CutOff(ClientError):
    """The session ended before everything was translated. The text says what is missing."""


class SessionOptions(Struct, frozen=True):
    """The options of a session, as given by the flags."""

    url: str
    # Language of the texts.
    source: str
    # Languages to translate into. Empty: every language that the gateway knows.
    targets: tuple[str, ...] = ()
    # (target language, source term, target term). The language None stands for every target.
    glossary: tuple[tuple[str | None, str, str], ...] = ()
    context: str | None = None
    formality: Formality | None = None
    # How long to wait for an engine that is loading, and for a lost gateway, in seconds.
    wait_s: float = 300.0


class Patience:
    """How much longer to wait for an engine, counted from the first time that it was not ready."""

    def __init__(self, wait_s: float) -> None:
        self._wait_s = wait_s
        self._until_s: float | None = None

    def lasts(self, more_s: float) -> bool:
        """Whether to wait `more_s` more seconds. Prints a note the first time."""
        now_s = asyncio.get_running_loop().time()
        if self._until_s is None:
            self._until_s = now_s + self._wait_s
            if more_s <= self._wait_s:
                note("The gateway's engine is not ready yet; waiting for it.")
        return now_s + more_s <= self._until_s

    def begins(self, error: Error) -> None:
        """Note that `session.start` has to wait; the client itself does the waiting."""
        self.lasts((error.retry_after_ms or 0) / 1000)


class Job:
    """The translation of one text into its languages: the text so far, and how each language ended."""

    def __init__(self, number: int, text: str, targets: Sequence[str], patience: Patience) -> None:
        self.number = number
        self.id = str(number)
        self.text = text
        self.ended: dict[str, TranslationFinal | TranslationFailed] = {}
        self.refusal: Error | None = None
        self._refusals = 0
        self._patience = patience
        self._committed = dict.fromkeys(targets, "")
        self._shown = dict.fromkeys(targets, "")

    @property
    def done(self) -> bool:
        """Whether it was refused or every language has ended."""
        return self.refusal is not None or len(self.ended) == len(self._shown)

    @property
    def stopped(self) -> bool:
        """Whether a restart stopped a translation of the text; it is then sent again."""
        return any(_stopped(end) for end in self.ended.values())

    @property
    def shown(self) -> list[str]:
        """The text so far in each language, in the order of the languages."""
        return list(self._shown.values())

    def take(self, message: SessionEvent) -> None:
        """Note what a message says about this text; other messages change nothing."""
        match message:
            case TranslationDelta(lang=lang) if message.utterance == self.id and lang in self._shown:
                self._committed[lang] += message.committed
                self._shown[lang] = self._committed[lang] + message.tentative
            case TranslationFinal(lang=lang) | TranslationFailed(lang=lang) if (
                message.utterance == self.id and lang in self._shown
            ):
                self.ended[lang] = message
                self._shown[lang] = message.text if isinstance(message, TranslationFinal) else ""

    async def send(self, session: ClientSession) -> None:
        """Send the text. If the session is over, reading it raises the reason."""
        try:
            await session.final(self.text, self.id)
        except ValueError as error:
            self.refusal = Error(MessageTooLarge.code, str(error), utterance=self.id)
        except ClientError:
            pass

    async def refused(self, session: ClientSession, error: Error) -> None:
        """The gateway refused the text. The session sends it again if it is retryable; decide for how long."""
        if error.code == Draining.code:
            return  # sent again after the restart
        wait_s = (_RETRY_MS if error.retry_after_ms is None else error.retry_after_ms) / 1000
        if error.code in (EngineUnavailable.code, EngineRestarting.code):
            hopeful = self._patience.lasts(wait_s)
        else:
            self._refusals += 1
            hopeful = error.retryable and self._refusals < _ATTEMPTS
        if not hopeful:
            self.refusal = error
            if error.retryable:
                with suppress(ClientError):
                    await session.cancel(self.id)  # otherwise the session would keep sending it

    async def reconnected(self, session: ClientSession) -> None:
        """The connection is back: send the text again unless the session does that itself.

        The text of unfinished translations comes again. A session that was not recovered does not know what an
        earlier one accepted.
        """
        stopped = self.stopped
        self.ended = {lang: end for lang, end in self.ended.items() if not _stopped(end)}
        for lang in self._shown:
            if lang not in self.ended:
                self._committed[lang] = self._shown[lang] = ""
        waits = any(final.id == self.id for final in session.unacknowledged)
        if not self.done and not waits and (stopped or not session.started.recovered):
            await self.send(session)


def _stopped(end: TranslationFinal | TranslationFailed) -> bool:
    return isinstance(end, TranslationFailed) and end.code == Draining.code


def announce(event: SessionEvent) -> None:
    """Print a note when the connection is lost, and when it is back; once each, not for every attempt."""
    match event:
        case Reconnecting(attempt=1):
            note(f"{event.reason} Trying to reach it again.")
        case Reconnected():
            note("The gateway is back; continuing.")


def note(sentence: str) -> None:
    """Print a sentence for people on stderr."""
    print(f"gateway: {printable(sentence)}", file=sys.stderr, flush=True)


@asynccontextmanager
async def open_session(
    options: SessionOptions, patience: Patience, *, growing: bool
) -> AsyncGenerator[tuple[ClientSession, tuple[str, ...]], None]:
    """Start a session. Yields it with the languages it translates into. Raises `ClientError`.

    growing: whether translations are shown before they are done; if not, the gateway sends only finals.
    """
    targets = tuple(lang for lang in options.targets if lang != options.source)
    async with connect(
        options.url,
        reads=targets,
        speaks=options.source,
        stability="live" if growing else "final",
        glossary=_glossary(options.glossary, targets),
        context=options.context,
        formality=options.formality,
        ready_timeout_s=options.wait_s,
        give_up_s=options.wait_s,
        on_waiting=patience.begins,
    ) as session:
        if not targets:
            targets = await _read_everything(session, options)
        yield session, targets


async def _read_everything(session: ClientSession, options: SessionOptions) -> tuple[str, ...]:
    """Read every language except the source, up to the gateway's limit. Returns these languages."""
    others = [lang for lang in session.started.languages if lang != options.source]
    targets = tuple(others[: session.started.limits.languages])
    await session.update(reads=targets, glossary=_glossary(options.glossary, targets))
    async for message in session:
        announce(message)
        match message:
            case SessionUpdated():
                break
            case Error(code=UnsupportedOption.code):
                note(message.message)
            case Error() if not message.retryable:
                raise SessionRefused(message)
    else:
        raise SessionClosed(session.url, CloseCode.NORMAL, None)
    return targets


def _glossary(
    terms: Iterable[tuple[str | None, str, str]], targets: Sequence[str]
) -> dict[str, dict[str, str]] | None:
    glossary: dict[str, dict[str, str]] = {}
    for lang, source, target in terms:
        for each in targets if lang is None else (lang,):
            glossary.setdefault(each, {})[source] = target
    return glossary or None


async def translate(
    options: SessionOptions, texts: AsyncIterator[str], *, as_json: bool, timings: bool, numbered: bool
) -> int:
    """Translate texts until they end. Returns the exit status.

    numbered: whether notes name the line of the text. Raises `ClientError`; `CutOff` if texts are left.
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
    session: ClientSession, lines: _Lines, targets: Sequence[str], patience: Patience, page: _Page
) -> None:
    async for number, text in lines:
        job = Job(number, text, targets, patience)
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
        note(error.message)
        if not error.retryable and error.code != UnsupportedOption.code:
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


async def lines_of(fd: int) -> AsyncGenerator[str, None]:
    """The lines of a file or pipe as they arrive, without line ends. Bytes that are not UTF-8 are replaced."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    rest = ""
    while chunk := await _read(fd):
        *lines, rest = (rest + decoder.decode(chunk)).split("\n")
        for line in lines:
            yield line
    if rest := rest + decoder.decode(b"", True):
        yield rest


async def _read(fd: int) -> bytes:
    # Not in a thread: Ctrl-C cannot interrupt a thread that is blocked in a read.
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    try:
        loop.add_reader(fd, readable.set)
    except PermissionError:  # a regular file, whose reads do not block
        return os.read(fd, 65_536)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(fd)
    return os.read(fd, 65_536)
