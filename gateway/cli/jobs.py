"""Texts to translate for whoever sits at the terminal: the session they go through, and what becomes of each.

Knows: sessions (`client`), and when a text is said again.
Must not know: flags and their spelling (`flags`), what is printed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress

from msgspec import Struct

from gateway.cli.common import Patience, announce, note
from gateway.client import ClientError, ClientSession, SessionClosed, SessionEvent, SessionRefused, connect
from gateway.domain.engine import Formality
from gateway.domain.errors import (
    CloseCode,
    Draining,
    EngineRestarting,
    EngineUnavailable,
    MessageTooLarge,
    UnsupportedOption,
)
from gateway.protocol.messages import Error, SessionUpdated, TranslationDelta, TranslationFailed, TranslationFinal

__all__ = ["Job", "SessionOptions", "open_session"]

# A text that the gateway has no room for is given up after so many refusals.
_ATTEMPTS = 20
_RETRY_MS = 500


class SessionOptions(Struct, frozen=True):
    """What the flags say about the session."""

    # The gateway's address.
    url: str
    # The language of the texts.
    source: str
    # Languages to translate into; empty: every language the gateway knows.
    targets: tuple[str, ...] = ()
    # (Target language or None for all, source term, target term).
    glossary: tuple[tuple[str | None, str, str], ...] = ()
    # What was said before; not translated.
    context: str | None = None
    formality: Formality | None = None
    # Patience with an engine that is loading, and with a gateway that is gone.
    wait_s: float = 300.0


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
