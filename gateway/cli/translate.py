"""`gateway translate`: texts in, one line per language out, through one session of a running gateway.

Knows: sessions (`client`), how many texts to have under way, what to print where.
Must not know: flags and their spelling (`cli`), the gateway's inside.
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

# Texts under way at once when nobody watches: enough to fill the engine's batch, and short to wait for.
_WINDOW = 8

# A text that the gateway has no room for is given up after so many refusals.
_ATTEMPTS = 20
_RETRY_MS = 500

# For lines that are on their way while it is found out which ones a restart has cost.
_REST_S = 0.2

# Errors that come right before the gateway closes; the close is explained with them.
LAST_WORDS = frozenset(cls.code for cls in (GatewayError, Draining, SlowReader))


class CutOff(ClientError):
    """The session ended before everything was translated; the text says what is missing."""


class SessionOptions(Struct, frozen=True):
    """What the flags say about the session.

    targets: languages to translate into; empty: every language the gateway knows. glossary: (target language
    or null for all, source term, target term). wait_s: patience with an engine that is loading and with a gateway
    that is gone, seconds.
    """

    url: str
    source: str
    targets: tuple[str, ...] = ()
    glossary: tuple[tuple[str | None, str, str], ...] = ()
    context: str | None = None
    formality: Formality | None = None
    wait_s: float = 300.0


class Patience:
    """How much longer an engine that is not ready is waited for, counted from the first time it was not."""

    def __init__(self, wait_s: float) -> None:
        self._wait_s = wait_s
        self._until_s: float | None = None

    def lasts(self, more_s: float) -> bool:
        """Whether to wait so many seconds more; says so the first time."""
        now_s = asyncio.get_running_loop().time()
        if self._until_s is None:
            self._until_s = now_s + self._wait_s
            if more_s <= self._wait_s:
                note("The gateway's engine is not ready yet; waiting for it.")
        return now_s + more_s <= self._until_s

    def begins(self, error: Error) -> None:
        """`session.start` has to wait, which the client sees to; only say so."""
        self.lasts((error.retry_after_ms or 0) / 1000)


class Job:
    """One text on its way into its languages: what is there so far, and how each language ended."""

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
        """Whether nothing more comes."""
        return self.refusal is not None or len(self.ended) == len(self._shown)

    @property
    def stopped(self) -> bool:
        """Whether a restart stopped translations of the text: it is said again after it."""
        return any(_stopped(end) for end in self.ended.values())

    @property
    def shown(self) -> list[str]:
        """The text of each language as far as it is known, in the order of the languages."""
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
        """Send the text. A session that is over says nothing here: reading it tells why."""
        try:
            await session.final(self.text, self.id)
        except ValueError as error:
            self.refusal = Error(MessageTooLarge.code, str(error), utterance=self.id)
        except ClientError:
            pass

    async def refused(self, session: ClientSession, error: Error) -> None:
        """The gateway refused the text: the session says it again where that makes sense; how long is our say."""
        if error.code == Draining.code:
            return  # the gateway goes, and with it the question
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
                    await session.cancel(self.id)  # or the session would go on saying it

    async def reconnected(self, session: ClientSession) -> None:
        """The session was lost and found: say the text again if nobody else sees to it.

        What was shown of unfinished translations comes again. A session that was not recovered knows nothing of
        what an earlier one accepted.
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
    """Tell when the connection is lost and when it is found again; once each, however many attempts it takes."""
    match event:
        case Reconnecting(attempt=1):
            note(f"{event.reason} Trying to reach it again.")
        case Reconnected():
            note("The gateway is back; going on.")


def note(sentence: str) -> None:
    """Say something on stderr that is no translation."""
    print(f"gateway: {printable(sentence)}", file=sys.stderr, flush=True)


@asynccontextmanager
async def open_session(
    options: SessionOptions, patience: Patience, *, growing: bool
) -> AsyncGenerator[tuple[ClientSession, tuple[str, ...]], None]:
    """A started session and the languages it translates into. Raises `ClientError`.

    growing: whether anybody sees a translation before it is done; otherwise none is sent before.
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
    """Read every language but the spoken one, up to the gateway's limit; which ones these are."""
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


async def lines_of(fd: int) -> AsyncGenerator[str, None]:
    """The lines of a file or pipe as they come, without their ends. Bytes that are no UTF-8 are replaced."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    rest = ""
    while chunk := await _read(fd):
        *lines, rest = (rest + decoder.decode(chunk)).split("\n")
        for line in lines:
            yield line
    if rest := rest + decoder.decode(b"", True):
        yield rest


async def _read(fd: int) -> bytes:
    # Not a thread that reads: one that is stuck in a read cannot be interrupted by Ctrl-C.
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    try:
        loop.add_reader(fd, readable.set)
    except PermissionError:  # a regular file, which never makes anybody wait
        return os.read(fd, 65_536)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(fd)
    return os.read(fd, 65_536)
