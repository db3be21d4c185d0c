"""Translates accepted utterances, and puts what becomes of each into the log.

Knows: one task per utterance and language, and that each ends in exactly one entry of the log.
Must not know: sockets, sessions, which engine it is, who reads.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from gateway import metrics
from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import Cancelled, DailyQuotaExceeded, Draining, GatewayError, LogUnavailable
from gateway.domain.log import Said, Translated, Untranslated, Utterance, UtteranceKey
from gateway.meeting.live_text import LiveTranslation
from gateway.meeting.room import Room
from gateway.translation.commit_policy import FINAL_TOLERANCE
from gateway.translation.pacing import Throttle
from gateway.translation.partials import Partials
from gateway.translation.scheduler import Scheduler
from gateway.translation.ticket import CATCHING_UP, FINAL, Generated, Ticket, request_id

__all__ = ["Finals"]

_log = logging.getLogger(__name__)

# An outcome that the log does not take is offered again, after so many seconds, and then every `_LOG_RETRY_S`.
_LOG_RETRIES_S = (0.1, 0.5, 2.0)
_LOG_RETRY_S = 5.0


@dataclass(eq=False)
class _Translation:
    """One that waits or runs."""

    utterance: Utterance
    # Offset of the utterance's `Said`.
    said: int
    lang: str
    ticket: Ticket
    shown: LiveTranslation


class Finals:
    """Owns every translation task; leaving the context ends those that are left."""

    def __init__(
        self,
        scheduler: Scheduler,
        partials: Partials,
        *,
        # Another process goes on with what is not done when this one stops, so nothing is logged of it. Otherwise
        # it ends as `Untranslated` with code `draining`.
        leaves_unfinished: bool = False,
        # The least time between two deltas of a translation, seconds.
        delta_interval_s: float = 0.0,
    ) -> None:
        self._scheduler = scheduler
        self._partials = partials
        self._leaves_unfinished = leaves_unfinished
        self._delta_interval_s = delta_interval_s
        self._tasks = asyncio.TaskGroup()
        # Utterance → language → translation, for meetings in which something waits or runs.
        self._running: dict[Room, dict[UtteranceKey, dict[str, _Translation]]] = {}
        # Those that are being written to the log, which promises their languages before their tasks begin.
        self._accepting: set[tuple[Room, UtteranceKey]] = set()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._leaving = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaving.set()
        for room in list(self._running):
            self._give_up(room, Draining("The gateway stopped before this was translated; send it again."))
        await self._tasks.__aexit__(kind, error, trace)

    async def accept(self, room: Room, utterance: Utterance, *, again: bool = False) -> None:
        """Log a final utterance and translate it into every language the meeting reads.

        again: it is in the log already, and only what is missing is to be done. Raises what `Scheduler.admit` and
        `EventLog.append` raise; then nothing was accepted and nobody was told anything. Where the tenant's quota
        for the day is used up, it is accepted, and ends untranslated.
        """
        self._partials.stop(room, utterance.key)
        record = await room.find(utterance.key) if again else None
        translated = {lang for lang, done in record.outcomes.items() if done} if record is not None else set()
        languages = [lang for lang in room.members.languages() if lang not in (utterance.lang, *translated)]
        # What is on its way for a latecomer is not done twice, and counts.
        wanted = [lang for lang in languages if lang not in self._running_of(room, utterance.key)]
        used_up = None
        try:
            tickets = self._admit(room, utterance, wanted, FINAL)
        except DailyQuotaExceeded as error:
            tickets, used_up = [], error
        self._accepting.add((room, utterance.key))
        try:
            said = record.said if record is not None else await self._log_said(room, utterance, languages, tickets)
            metrics.UTTERANCES.labels("accepted").inc()
            self._partials.forget(room, utterance.key)
            self._begin(room, utterance, said, wanted if used_up is None else [], tickets)
            if record is not None:
                room.promise(record, languages)
            else:
                await self._join_in(room, utterance, said, languages)
            if used_up is not None:
                await self._leave_out(room, utterance, said, wanted, used_up)
        finally:
            self._accepting.discard((room, utterance.key))

    def catch_up(self, room: Room, languages: Sequence[str]) -> None:
        """Translate what a latecomer is shown into languages in which it is missing, as far as there is room."""
        for record in room.history.newest():
            utterance = record.utterance
            there = {utterance.lang, *record.outcomes, *record.languages, *self._running_of(room, utterance.key)}
            missing = [lang for lang in languages if lang not in there]
            try:
                tickets = self._admit(room, utterance, missing, CATCHING_UP)
            except GatewayError as error:
                _log.info("recent utterances of a meeting are left untranslated: %s", error.code)
                return
            self._begin(room, utterance, record.said, missing, tickets)

    def resume_unfinished(self, room: Room) -> None:
        """Go on with what was promised and nobody is translating, as far as there is room now.

        It takes all that is unfinished in the log for this process's own: one gateway writes a meeting's log.
        """
        for record in room.history.unfinished():
            utterance = record.utterance
            if (room, utterance.key) in self._accepting:
                continue
            running = self._running_of(room, utterance.key)
            missing = [lang for lang in record.missing() if lang not in running]
            try:
                tickets = self._admit(room, utterance, missing, FINAL, promised=True)
            except GatewayError:
                return
            self._begin(room, utterance, record.said, missing, tickets)

    def cancel(self, room: Room, key: UtteranceKey) -> None:
        """Stop what is left of an utterance; each language gets an `Untranslated` with code `cancelled`."""
        for translation in self._running_of(room, key).values():
            self._scheduler.give_up(translation.ticket, Cancelled("The utterance was cancelled."))

    def abandon(self, room: Room) -> None:
        """Stop everything a meeting has running: nobody is left to read it, now or later."""
        self._give_up(room, Cancelled("Everybody left."))

    def busy(self, room: Room) -> bool:
        """Whether anything of a meeting waits, runs, or is still to be resumed."""
        return room in self._running or bool(room.history.unfinished())

    async def quiet(self) -> None:
        """Wait until the outcome of everything accepted is in the log."""
        await self._quiet.wait()

    # ------------------------------------------------------------ beginning

    def _running_of(self, room: Room, key: UtteranceKey) -> dict[str, _Translation]:
        return self._running.get(room, {}).get(key, {})

    def _admit(
        self, room: Room, utterance: Utterance, languages: list[str], priority: int, *, promised: bool = False
    ) -> list[Ticket]:
        requests = []
        for lang in languages:
            # What readers have seen of it is gone on from, unless the whole text makes it implausible.
            prefix, draft = self._partials.draft(room, utterance.key, lang)
            requests.append(
                TranslationRequest(
                    id=request_id("final"),
                    text=utterance.text,
                    source=utterance.lang,
                    target=lang,
                    options=utterance.options_for(lang),
                    final=utterance.final,
                    priority=priority,
                    prefix=prefix,
                    draft=draft,
                    tolerance=FINAL_TOLERANCE,
                    cache_scope=room.id,
                )
            )
        account = room.account_of(utterance.participant)
        return self._scheduler.admit(room.id, requests, account=account, promised=promised)

    async def _log_said(
        self, room: Room, utterance: Utterance, languages: list[str], tickets: list[Ticket]
    ) -> int:
        """Its offset. Raises `LogUnavailable`; then nothing is to be translated."""
        try:
            return (await room.log.append(room.id, Said(utterance, tuple(languages)))).offset
        except BaseException:
            for ticket in tickets:
                self._scheduler.withdraw(ticket)
            raise

    async def _join_in(self, room: Room, utterance: Utterance, said: int, languages: list[str]) -> None:
        """Somebody may have come with another language while the log was written to."""
        there = {utterance.lang, *languages, *self._running_of(room, utterance.key)}
        late = [lang for lang in room.members.languages() if lang not in there]
        if late and (record := room.history.get(utterance.key)) is not None:
            room.promise(record, late)
        for lang in late:
            try:
                tickets = self._admit(room, utterance, [lang], FINAL, promised=True)
            except GatewayError as error:
                await self._leave_out(room, utterance, said, [lang], error)
            else:
                self._begin(room, utterance, said, [lang], tickets)

    async def _leave_out(
        self, room: Room, utterance: Utterance, said: int, languages: list[str], error: GatewayError
    ) -> None:
        """It is in the log, and is not translated into these languages."""
        for lang in languages:
            metrics.TRANSLATIONS.labels(error.code, lang).inc()
            await self._log_outcome(room, _untranslated(utterance, said, lang, error))

    def _begin(
        self, room: Room, utterance: Utterance, said: int, languages: list[str], tickets: list[Ticket]
    ) -> None:
        for lang, ticket in zip(languages, tickets, strict=True):
            running = self._running.setdefault(room, {}).setdefault(utterance.key, {})
            if lang in running:
                self._scheduler.withdraw(ticket)
                continue
            shown = room.live.final(utterance, lang, said, ticket.request.prefix)
            running[lang] = translation = _Translation(utterance, said, lang, ticket, shown)
            self._quiet.clear()
            self._tasks.create_task(self._translate(room, translation))

    def _give_up(self, room: Room, reason: GatewayError) -> None:
        for running in self._running.get(room, {}).values():
            for translation in running.values():
                self._scheduler.give_up(translation.ticket, reason)

    # ------------------------------------------------------------ one translation

    async def _translate(self, room: Room, translation: _Translation) -> None:
        try:
            outcome = await self._outcome(room, translation)
            if outcome is not None:
                await self._log_outcome(room, outcome)
        finally:
            self._ended(room, translation)

    async def _outcome(self, room: Room, translation: _Translation) -> Translated | Untranslated | None:
        """None: it is left to another process."""
        utterance, lang = translation.utterance, translation.lang
        try:
            generated = await self._generate(room, translation)
        except GatewayError as error:
            metrics.TRANSLATIONS.labels(error.code, lang).inc()
            if self._leaves_unfinished and isinstance(error, Draining):
                return None
            return _untranslated(utterance, translation.said, lang, error)
        metrics.TRANSLATIONS.labels("final", lang).inc()
        return Translated(
            participant=utterance.participant,
            utterance=utterance.id,
            speaker=utterance.speaker,
            lang=lang,
            rev=utterance.rev,
            text=generated.text,
            timings=translation.ticket.timings(),
            tokens=translation.ticket.tokens,
            truncated=generated.truncated,
            said=translation.said,
        )

    async def _generate(self, room: Room, translation: _Translation) -> Generated:
        shown = translation.shown
        throttle = Throttle(
            lambda fresh: room.show_final(shown, fresh), interval_s=self._delta_interval_s, shown=shown.committed
        )
        try:
            generated = await self._scheduler.collect(translation.ticket, throttle.grow)
            try:
                throttle.end()
            except Exception:  # the final has all of it
                _log.exception("the last text of a translation could not be shown")
            return generated
        finally:
            throttle.stop()

    async def _log_outcome(self, room: Room, outcome: Translated | Untranslated) -> None:
        """Offer an outcome until the log takes it."""
        for wait_s in itertools.chain(_LOG_RETRIES_S, itertools.repeat(_LOG_RETRY_S)):
            try:
                await room.log.append(room.id, outcome)
                return
            except LogUnavailable:
                if self._leaving.is_set():
                    _log.error("the log of a meeting took no outcome before the gateway stopped")
                    return
            except Exception:
                _log.exception("the log of a meeting failed; its readers will not see an outcome")
                room.end_unlogged(outcome)
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._leaving.wait()

    def _ended(self, room: Room, translation: _Translation) -> None:
        self._scheduler.withdraw(translation.ticket)
        key, lang = translation.utterance.key, translation.lang
        room.live.end_final(key, lang)
        running = self._running[room]
        del running[key][lang]
        if not running[key]:
            del running[key]
        if not running:
            del self._running[room]
        if not self._running:
            self._quiet.set()


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
