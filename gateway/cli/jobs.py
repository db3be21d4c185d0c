"""The texts that a command translates: their session, and the state of each text.

Knows: sessions (`gateway.client`), and when a text is sent again.
Must not know: how flags are spelled (`cli.flags`), how translations are printed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress

from gateway.cli.sessions import EngineWait, SessionOptions, note, note_reconnection, sentence_about
from gateway.client import ClientError, ClientSession, SessionClosed, SessionEvent, SessionRefused, connect
from gateway.domain.close_codes import CloseCode
from gateway.domain.engine import Formality
from gateway.domain.errors import (
    Draining,
    EngineRestarting,
    EngineUnavailable,
    MessageTooLarge,
    Unauthenticated,
    UnsupportedOption,
)
from gateway.protocol.messages import Error, SessionUpdated, TranslationDelta, TranslationFailed, TranslationFinal

# After this many refusals a text is given up.
_ATTEMPTS = 20
# Wait before a text is sent again if the gateway does not say how long to wait.
_RETRY_MS = 500


class TextOptions(SessionOptions, frozen=True, kw_only=True):
    """How texts are translated, as given by the flags."""

    # Language of the texts.
    source: str
    # Languages to translate into. Empty: every language that the gateway knows.
    targets: tuple[str, ...] = ()
    # (target language, source term, target term). The language None stands for every target.
    glossary: tuple[tuple[str | None, str, str], ...] = ()
    # Background: what was said before; not translated.
    context: str | None = None
    formality: Formality | None = None


class Job:
    """The translation of one text into its languages: the text so far, and how each language ended."""

    def __init__(self, number: int, text: str, targets: Sequence[str], engine_wait: EngineWait) -> None:
        self.number = number
        self.id = str(number)
        self.text = text
        self.ended: dict[str, TranslationFinal | TranslationFailed] = {}
        self.refusal: Error | None = None
        self._refusals = 0
        self._engine_wait = engine_wait
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

    def note_message(self, message: SessionEvent) -> None:
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
            hopeful = self._engine_wait.allows(wait_s)
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


@asynccontextmanager
async def open_session(
    options: TextOptions, engine_wait: EngineWait, *, growing: bool
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
        **options.common(engine_wait),
    ) as session:
        if not targets:
            targets = await _read_everything(session, options)
        yield session, targets


async def _read_everything(session: ClientSession, options: TextOptions) -> tuple[str, ...]:
    """Read every language except the source, up to the gateway's limit. Returns these languages."""
    others = [lang for lang in session.started.languages if lang != options.source]
    targets = tuple(others[: session.started.limits.languages])
    await session.update(reads=targets, glossary=_glossary(options.glossary, targets))
    async for message in session:
        note_reconnection(message)
        match message:
            case SessionUpdated():
                break
            case Error(code=UnsupportedOption.code):
                note(message.message)
            case Error(code=Unauthenticated.code):
                note(sentence_about(message))
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
