"""From the engine's tokens to what a meeting's readers see.

Knows: one task per utterance and language, and that each ends in exactly one `final` or `failed` publication.
Must not know: sockets, session rules, which engine it is.
"""

from __future__ import annotations

import asyncio
import itertools
from functools import partial
from types import TracebackType
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from gateway import metrics
from gateway.errors import Cancelled, Draining, GatewayError
from gateway.events import TranslationRequest, Utterance
from gateway.meetings import Meeting, Member
from gateway.messages import Timings, TranslationDelta, TranslationFailed, TranslationFinal
from gateway.scheduler import Scheduler, Ticket

__all__ = ["Publisher", "timings"]


class _Translation(Struct, eq=False):
    """One running translation: where it goes and what holds its place."""

    meeting: Meeting
    session: str
    utterance: Utterance
    lang: str
    readers: list[Member]
    ticket: Ticket
    task: asyncio.Task[TranslationFinal | GatewayError] | None = None
    stopped: GatewayError | None = None


class Publisher:
    """Owns every translation task; leaving the context cancels those that are left."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._tasks = asyncio.TaskGroup()
        self._translations: dict[tuple[str, str], dict[str, _Translation]] = {}
        self._serial = itertools.count(1)
        self._quiet = asyncio.Event()
        self._quiet.set()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for translation in self._all():
            self._stop(translation, Draining("The gateway stopped before this was translated; send it again."))
        await self._tasks.__aexit__(kind, error, trace)

    def accept(self, meeting: Meeting, session: str, utterance: Utterance) -> None:
        """Translate a final utterance into every language the meeting reads.

        Raises what `Scheduler.admit` raises; then nothing was accepted and nobody was told anything.
        """
        languages = tuple(lang for lang in meeting.languages() if lang != utterance.lang)
        requests = [
            TranslationRequest(
                id=f"{session}-{next(self._serial)}",
                text=utterance.text,
                source=utterance.lang,
                target=lang,
                options=utterance.options_for(lang),
                final=utterance.final,
            )
            for lang in languages
        ]
        tickets = self._scheduler.admit(meeting.id, requests)
        metrics.UTTERANCES.labels("accepted").inc()
        running = self._translations.setdefault((session, utterance.id), {})
        for lang, ticket in zip(languages, tickets, strict=True):
            running[lang] = _Translation(meeting, session, utterance, lang, meeting.readers(lang), ticket)
        meeting.accept(session, utterance, languages)
        if not running:
            del self._translations[session, utterance.id]
        else:
            self._quiet.clear()
        for translation in running.values():
            translation.task = task = self._tasks.create_task(self._translate(translation))
            task.add_done_callback(partial(self._ended, translation))

    def cancel(self, session: str, utterance: str) -> None:
        """Stop what is left of an utterance; each language gets a `translation.failed` with code `cancelled`."""
        for translation in self._translations.get((session, utterance), {}).values():
            self._stop(translation, Cancelled("The utterance was cancelled."))

    def abandon(self, session: str) -> None:
        """Stop everything a session has running."""
        for translation in self._all():
            if translation.session == session:
                self._stop(translation, Cancelled("The session ended."))

    async def quiet(self) -> None:
        """Wait until the outcome of everything accepted is published."""
        await self._quiet.wait()

    # ------------------------------------------------------------ one translation

    def _all(self) -> list[_Translation]:
        return [translation for running in self._translations.values() for translation in running.values()]

    def _stop(self, translation: _Translation, reason: GatewayError) -> None:
        if translation.task is not None and translation.stopped is None:
            translation.stopped = reason
            translation.task.cancel()

    async def _translate(self, translation: _Translation) -> TranslationFinal | GatewayError:
        utterance, lang, ticket = translation.utterance, translation.lang, translation.ticket

        def show(fresh: str) -> None:
            delta = TranslationDelta(utterance.id, lang, utterance.rev, committed=fresh)
            translation.meeting.publish(translation.readers, delta)

        try:
            generated = await ticket.collect(show)
        except GatewayError as error:
            return error
        return TranslationFinal(
            utterance=utterance.id,
            speaker=utterance.speaker,
            lang=lang,
            rev=utterance.rev,
            text=generated.text,
            offset=0,
            timings=timings(ticket),
            tokens=ticket.tokens,
            truncated=generated.truncated,
        )

    def _ended(self, translation: _Translation, task: asyncio.Task[TranslationFinal | GatewayError]) -> None:
        # A done callback, because a task that is cancelled before its first step runs no code of its own.
        translation.ticket.withdraw()
        meeting, utterance, lang = translation.meeting, translation.utterance, translation.lang
        if task.cancelled():
            outcome: TranslationFinal | GatewayError = translation.stopped or Cancelled(
                "The translation was stopped."
            )
        else:
            outcome = task.result()
        offset = meeting.next_offset()
        match outcome:
            case TranslationFinal():
                metrics.TRANSLATIONS.labels("final", lang).inc()
                meeting.publish(translation.readers, replace(outcome, offset=offset))
            case error:
                metrics.TRANSLATIONS.labels(error.code, lang).inc()
                failed = TranslationFailed(
                    utterance.id, utterance.speaker, lang, utterance.rev, error.code, error.message, offset
                )
                meeting.publish(translation.readers, failed)
        key = (translation.session, utterance.id)
        running = self._translations[key]
        del running[lang]
        if not running:
            del self._translations[key]
        if not self._translations:
            self._quiet.set()
        meeting.ended(translation.session, utterance.id, lang, failed=not isinstance(outcome, TranslationFinal))


def timings(ticket: Ticket) -> Timings:
    """Milliseconds since admission of a ticket that has ended; 0 where a stage was never reached."""

    def since_admission_ms(at_s: float | None) -> float:
        return 0.0 if at_s is None else round((at_s - ticket.admitted_s) * 1000, 1)

    return Timings(
        queue_ms=since_admission_ms(ticket.started_s),
        first_token_ms=since_admission_ms(ticket.first_token_s),
        total_ms=since_admission_ms(ticket.finished_s),
    )
