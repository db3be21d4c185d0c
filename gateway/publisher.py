"""From accepted utterances to their translations in the log.

Knows: one task per utterance and language, and that each ends in exactly one entry of the log.
Must not know: sockets, session rules, which engine it is, who reads.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

from msgspec import Struct

from gateway import metrics
from gateway.errors import Cancelled, Draining, GatewayError, LogUnavailable
from gateway.events import LoggedEvent, Said, Timings, Translated, TranslationRequest, Untranslated, Utterance
from gateway.meetings import Meeting, Translation
from gateway.scheduler import Scheduler, Ticket

__all__ = ["BEST_EFFORT", "FINAL", "Publisher", "timings"]

_log = logging.getLogger(__name__)

# Priorities, lower first: what was promised, and what a late joiner is shown of earlier.
FINAL = 0
BEST_EFFORT = 1

# An outcome that the log does not take is offered again, after so many seconds.
_LOG_RETRIES_S = (0.1, 0.5, 2.0, 5.0)

# Called once every language an utterance was accepted for has ended, with whether any of them failed.
Settled = Callable[[bool], None]


class _Outstanding(Struct):
    """An accepted utterance: the languages that have not ended, and whether one that has, failed."""

    settled: Settled
    languages: set[str]
    failed: bool = False


class Publisher:
    """Owns every translation task; leaving the context ends those that are left.

    leaves_unfinished: another process goes on with what is not done when this one stops, so nothing is logged
    of it; otherwise it ends as `Untranslated` with code `draining`.
    """

    def __init__(self, scheduler: Scheduler, *, leaves_unfinished: bool = False) -> None:
        self._scheduler = scheduler
        self._leaves_unfinished = leaves_unfinished
        self._tasks = asyncio.TaskGroup()
        self._meetings: dict[Meeting, int] = {}
        self._outstanding: dict[tuple[Meeting, str, str], _Outstanding] = {}
        self._serial = itertools.count(1)
        self._quiet = asyncio.Event()
        self._quiet.set()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for meeting in list(self._meetings):
            self._stop(meeting, Draining("The gateway stopped before this was translated; send it again."))
        await self._tasks.__aexit__(kind, error, trace)

    async def accept(
        self, meeting: Meeting, utterance: Utterance, settled: Settled, *, again: bool = False
    ) -> None:
        """Log a final utterance and translate it into every language the meeting reads.

        Raises what `Scheduler.admit` and `EventLog.append` raise; then nothing was accepted and nobody was told
        anything. Whoever awaits this may be cancelled; what was begun is carried through.
        """
        done: set[str] = set()
        if again and (recent := meeting.said(utterance.key)) is not None:
            done = {lang for lang, translated in recent.ended.items() if translated}
        languages = [lang for lang in meeting.languages() if lang != utterance.lang and lang not in done]
        tickets = self._admit(meeting, utterance, languages, FINAL)
        accepting = self._tasks.create_task(self._accept(meeting, utterance, languages, tickets, settled, again))
        if (refusal := await asyncio.shield(accepting)) is not None:
            raise refusal

    def fill(self, meeting: Meeting, languages: Iterable[str], *, everything: bool = False) -> None:
        """Translate recent utterances into languages in which they are missing, as far as there is room.

        everything: what was promised and not done, as after a restart, instead of what a newcomer is shown.
        """
        wanted = tuple(languages)
        for recent in meeting.recent() if everything else meeting.snapshot():
            utterance = recent.utterance
            running = meeting.running.get(utterance.key, {})
            missing = [
                lang
                for lang in wanted
                if lang != utterance.lang and lang not in recent.ended and lang not in running
            ]
            try:
                tickets = self._admit(meeting, utterance, missing, FINAL if everything else BEST_EFFORT)
            except GatewayError as error:
                _log.info("recent utterances of a meeting are left untranslated: %s", error.code)
                return
            for lang, ticket in zip(missing, tickets, strict=True):
                self._begin(meeting, Translation(utterance, recent.said, lang, ticket))

    def cancel(self, meeting: Meeting, participant: str, utterance: str) -> None:
        """Stop what is left of an utterance; each language gets an `Untranslated` with code `cancelled`."""
        for translation in meeting.running.get((participant, utterance), {}).values():
            translation.ticket.give_up(Cancelled("The utterance was cancelled."))

    def abandon(self, meeting: Meeting) -> None:
        """Stop everything a meeting has running: nobody is left to read it, now or later."""
        self._stop(meeting, Cancelled("Everybody left."))

    async def quiet(self) -> None:
        """Wait until the outcome of everything accepted is in the log."""
        await self._quiet.wait()

    # ------------------------------------------------------------ accepting

    def _admit(self, meeting: Meeting, utterance: Utterance, languages: list[str], priority: int) -> list[Ticket]:
        requests = [
            TranslationRequest(
                id=f"{meeting.id}-{next(self._serial)}",
                text=utterance.text,
                source=utterance.lang,
                target=lang,
                options=utterance.options_for(lang),
                final=utterance.final,
                priority=priority,
            )
            for lang in languages
        ]
        return self._scheduler.admit(meeting.id, requests)

    async def _accept(
        self,
        meeting: Meeting,
        utterance: Utterance,
        languages: list[str],
        tickets: list[Ticket],
        settled: Settled,
        again: bool,
    ) -> GatewayError | None:
        """The error that it was refused with, if it was: a task that raised would end all the others."""
        recent = meeting.said(utterance.key) if again else None
        try:
            said = recent.said if recent is not None else await self._said(meeting, utterance)
        except GatewayError as error:
            for ticket in tickets:
                ticket.withdraw()
            return error
        metrics.UTTERANCES.labels("accepted").inc()
        # Somebody may have come while the log was written to.
        late = [
            lang
            for lang in meeting.languages()
            if lang not in languages and lang != utterance.lang and recent is None
        ]
        outstanding = _Outstanding(settled, {*languages, *late})
        if outstanding.languages:
            self._outstanding[meeting, *utterance.key] = outstanding
        for lang, ticket in zip(languages, tickets, strict=True):
            self._begin(meeting, Translation(utterance, said, lang, ticket))
        for lang in late:
            try:
                (ticket,) = self._admit(meeting, utterance, [lang], FINAL)
            except GatewayError as error:
                await self._publish(meeting, _untranslated(utterance, said, lang, error))
                self._settle(meeting, utterance.key, lang, failed=True)
            else:
                self._begin(meeting, Translation(utterance, said, lang, ticket))
        if not outstanding.languages:
            settled(False)
        return None

    async def _said(self, meeting: Meeting, utterance: Utterance) -> int:
        return (await meeting.log.append(meeting.id, Said(utterance))).offset

    # ------------------------------------------------------------ one translation

    def _begin(self, meeting: Meeting, translation: Translation) -> None:
        meeting.running.setdefault(translation.utterance.key, {})[translation.lang] = translation
        self._meetings[meeting] = self._meetings.get(meeting, 0) + 1
        self._quiet.clear()
        self._tasks.create_task(self._translate(meeting, translation))

    def _stop(self, meeting: Meeting, reason: GatewayError) -> None:
        for running in meeting.running.values():
            for translation in running.values():
                translation.ticket.give_up(reason)

    async def _translate(self, meeting: Meeting, translation: Translation) -> None:
        utterance, lang, ticket = translation.utterance, translation.lang, translation.ticket
        outcome: Translated | Untranslated | None
        try:
            generated = await ticket.collect(lambda fresh: meeting.show_delta(translation, fresh))
        except GatewayError as error:
            metrics.TRANSLATIONS.labels(error.code, lang).inc()
            left = self._leaves_unfinished and isinstance(error, Draining)
            outcome = None if left else _untranslated(utterance, translation.said, lang, error)
        else:
            metrics.TRANSLATIONS.labels("final", lang).inc()
            outcome = Translated(
                participant=utterance.participant,
                utterance=utterance.id,
                speaker=utterance.speaker,
                lang=lang,
                rev=utterance.rev,
                text=generated.text,
                timings=timings(ticket),
                tokens=ticket.tokens,
                truncated=generated.truncated,
                said=translation.said,
            )
        try:
            if outcome is not None:
                await self._publish(meeting, outcome)
        finally:
            self._ended(meeting, translation, failed=not isinstance(outcome, Translated))

    async def _publish(self, meeting: Meeting, outcome: LoggedEvent) -> None:
        for wait_s in (*_LOG_RETRIES_S, None):
            try:
                await meeting.log.append(meeting.id, outcome)
            except LogUnavailable:
                if wait_s is None:
                    _log.error("the log of a meeting took no outcome; its readers will not see it")
                    return
                await asyncio.sleep(wait_s)
            else:
                return

    def _ended(self, meeting: Meeting, translation: Translation, *, failed: bool) -> None:
        translation.ticket.withdraw()
        key, lang = translation.utterance.key, translation.lang
        running = meeting.running[key]
        if running.get(lang) is translation:
            del running[lang]
            if not running:
                del meeting.running[key]
        self._meetings[meeting] -= 1
        if not self._meetings[meeting]:
            del self._meetings[meeting]
        if not self._meetings:
            self._quiet.set()
        self._settle(meeting, key, lang, failed=failed)

    def _settle(self, meeting: Meeting, key: tuple[str, str], lang: str, *, failed: bool) -> None:
        if (outstanding := self._outstanding.get((meeting, *key))) is not None:
            outstanding.languages.discard(lang)
            outstanding.failed |= failed
            if not outstanding.languages:
                del self._outstanding[meeting, *key]
                outstanding.settled(outstanding.failed)


def _untranslated(utterance: Utterance, said: int, lang: str, error: GatewayError) -> Untranslated:
    return Untranslated(
        participant=utterance.participant,
        utterance=utterance.id,
        speaker=utterance.speaker,
        lang=lang,
        rev=utterance.rev,
        code=error.code,
        message=error.message,
        said=said,
    )


def timings(ticket: Ticket) -> Timings:
    """Milliseconds since admission of a ticket that has ended; 0 where a stage was never reached."""

    def since_admission_ms(at_s: float | None) -> float:
        return 0.0 if at_s is None else round((at_s - ticket.admitted_s) * 1000, 1)

    return Timings(
        queue_ms=since_admission_ms(ticket.started_s),
        first_token_ms=since_admission_ms(ticket.first_token_s),
        total_ms=since_admission_ms(ticket.finished_s),
    )
