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
from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import Cancelled, Draining, GatewayError, LogUnavailable
from gateway.domain.log import LoggedEvent, Said, Timings, Translated, Untranslated, Utterance
from gateway.meeting.history import Recent
from gateway.meeting.room import Meeting, Translation
from gateway.translation.commit_policy import FINAL_TOLERANCE
from gateway.translation.scheduler import CATCHING_UP, FINAL, Scheduler, Ticket

__all__ = ["Publisher", "Settled", "timings"]

_log = logging.getLogger(__name__)

# Stands for a language in an `_Outstanding` while its utterance is being accepted.
_ACCEPTING = ""

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
        # Meetings in which something runs.
        self._busy: set[Meeting] = set()
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
        for meeting in self._busy:
            self._stop(meeting, Draining("The gateway stopped before this was translated; send it again."))
        await self._tasks.__aexit__(kind, error, trace)

    async def accept(
        self,
        meeting: Meeting,
        utterance: Utterance,
        settled: Settled,
        refused: Callable[[], None],
        *,
        again: bool = False,
    ) -> None:
        """Log a final utterance and translate it into every language the meeting reads.

        again: it is in the log already, and only what is missing is to be done. Raises what `Scheduler.admit`
        and `EventLog.append` raise; then nothing was accepted, nobody was told anything, and `refused` was called.
        Whoever awaits this may be cancelled; what was begun is carried through.
        """
        accepting = self._tasks.create_task(self._accept(meeting, utterance, settled, refused, again))
        if (refusal := await asyncio.shield(accepting)) is not None:
            raise refusal

    def fill(self, meeting: Meeting, languages: Iterable[str]) -> None:
        """Translate what a newcomer is shown into languages in which it is missing, as far as there is room."""
        wanted = tuple(languages)
        for recent in meeting.recent.newest():
            utterance, promised = recent.utterance, recent.missing()
            running = meeting.running.get(utterance.key, {})
            missing = [lang for lang in wanted if lang not in (utterance.lang, *recent.ended, *running, *promised)]
            try:
                tickets = self._admit(meeting, utterance, missing, CATCHING_UP)
            except GatewayError as error:
                _log.info("recent utterances of a meeting are left untranslated: %s", error.code)
                return
            self._begin(meeting, utterance, recent.said, missing, tickets)

    def pay(self, meeting: Meeting, settled: Callable[[Recent], Settled]) -> None:
        """Take up what another process promised and did not finish, as far as there is room now."""
        for key, debt in list(meeting.debts.items()):
            running = meeting.running.get(key, {})
            missing = debt.missing()
            try:
                wanted = [lang for lang in missing if lang not in running]
                tickets = self._admit(meeting, debt.utterance, wanted, FINAL)
            except GatewayError:
                return
            del meeting.debts[key]
            if missing:
                self._outstanding[meeting, *key] = _Outstanding(settled(debt), set(missing))
            self._begin(meeting, debt.utterance, debt.said, wanted, tickets)

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
        # What readers have seen of it is gone on from, unless the whole text makes it implausible.
        live = meeting.live.get(utterance.key)
        seen = {} if live is None else live.translations
        requests = [
            TranslationRequest(
                id=f"translation-{next(self._serial)}",
                text=utterance.text,
                source=utterance.lang,
                target=lang,
                options=utterance.options_for(lang),
                final=utterance.final,
                priority=priority,
                prefix=seen[lang].committed if lang in seen else "",
                draft=seen[lang].policy.draft if lang in seen else "",
                tolerance=FINAL_TOLERANCE,
            )
            for lang in languages
        ]
        return self._scheduler.admit(meeting.id, requests)

    async def _accept(
        self,
        meeting: Meeting,
        utterance: Utterance,
        settled: Settled,
        refused: Callable[[], None],
        again: bool,
    ) -> GatewayError | None:
        """The error that it was refused with, if it was: a task that raised would end all the others."""
        tickets: list[Ticket] = []
        try:
            if (live := meeting.live.get(utterance.key)) is not None:
                live.stop()
            recent = await meeting.find(utterance.key) if again else None
            translated = {lang for lang, done in recent.ended.items() if done} if recent is not None else set()
            languages = [lang for lang in meeting.languages() if lang not in (utterance.lang, *translated)]
            # What is on its way for a late joiner is not done twice, and counts.
            begun = set(meeting.running.get(utterance.key, {}))
            wanted = [lang for lang in languages if lang not in begun]
            tickets = self._admit(meeting, utterance, wanted, FINAL)
            if recent is None:
                publication = await meeting.log.append(meeting.id, Said(utterance, tuple(languages)))
                said = publication.offset
            else:
                said = recent.said
        except Exception as error:
            for ticket in tickets:
                ticket.withdraw()
            refused()
            if isinstance(error, GatewayError):
                return error
            _log.exception("an utterance could not be accepted")
            return GatewayError("The gateway failed; this is a bug of the gateway.")
        metrics.UTTERANCES.labels("accepted").inc()
        # Not settled before this is through, whatever ends meanwhile.
        self._outstanding[meeting, *utterance.key] = _Outstanding(settled, {_ACCEPTING, *languages})
        self._begin(meeting, utterance, said, wanted, tickets)
        if recent is None:
            await self._join_in(meeting, utterance, said, languages)
        self._settle(meeting, utterance.key, _ACCEPTING, failed=False)
        return None

    async def _join_in(self, meeting: Meeting, utterance: Utterance, said: int, languages: list[str]) -> None:
        """Somebody may have come with another language while the log was written to."""
        for lang in meeting.languages():
            if lang in (utterance.lang, *languages, *meeting.running.get(utterance.key, {})):
                continue
            self._outstanding[meeting, *utterance.key].languages.add(lang)
            try:
                tickets = self._admit(meeting, utterance, [lang], FINAL)
            except GatewayError as error:
                await self._publish(meeting, _untranslated(utterance, said, lang, error))
                self._settle(meeting, utterance.key, lang, failed=True)
            else:
                self._begin(meeting, utterance, said, [lang], tickets)

    # ------------------------------------------------------------ one translation

    def _begin(
        self, meeting: Meeting, utterance: Utterance, said: int, languages: list[str], tickets: list[Ticket]
    ) -> None:
        for lang, ticket in zip(languages, tickets, strict=True):
            running = meeting.running.setdefault(utterance.key, {})
            if lang in running:
                ticket.withdraw()
                continue
            running[lang] = translation = Translation(utterance, said, lang, ticket)
            self._busy.add(meeting)
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
            self._ended(meeting, translation, outcome)

    async def _publish(self, meeting: Meeting, outcome: LoggedEvent) -> None:
        for wait_s in (*_LOG_RETRIES_S, None):
            try:
                await meeting.log.append(meeting.id, outcome)
            except Exception as error:
                if wait_s is None or not isinstance(error, LogUnavailable):
                    _log.exception("the log of a meeting took no outcome; its readers will not see it")
                    return
                await asyncio.sleep(wait_s)
            else:
                return

    def _ended(
        self, meeting: Meeting, translation: Translation, outcome: Translated | Untranslated | None
    ) -> None:
        translation.ticket.withdraw()
        key, lang = translation.utterance.key, translation.lang
        running = meeting.running[key]
        del running[lang]
        if not running:
            del meeting.running[key]
        if not meeting.running:
            self._busy.discard(meeting)
        if not self._busy:
            self._quiet.set()
        if outcome is not None:  # what is left to another process is not settled here
            self._settle(meeting, key, lang, failed=isinstance(outcome, Untranslated))

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
