"""Translates accepted utterances, and puts what becomes of each into the log.

Knows: one task per utterance and language that this gateway owns, and that each ends in an entry of the log.
Must not know: sockets, sessions, which engine it is, who reads.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from types import TracebackType
from typing import Self

from gateway import metrics
from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import (
    Cancelled,
    DailyQuotaExceeded,
    Draining,
    EngineFailed,
    GatewayError,
    LogUnavailable,
)
from gateway.domain.log import Accepted, Translated, Unfinished, Untranslated, Utterance, UtteranceKey
from gateway.domain.register import Fence
from gateway.meeting.live_text import LiveTranslation
from gateway.meeting.room import Room
from gateway.translation.commit_policy import FINAL_TOLERANCE
from gateway.translation.outcomes import Outcomes, one_less, untranslated
from gateway.translation.owned import Owned
from gateway.translation.pacing import Throttle
from gateway.translation.partials import Partials
from gateway.translation.scheduling.scheduler import Scheduler
from gateway.translation.scheduling.ticket import CATCHING_UP, FINAL, Ticket, request_id

_log = logging.getLogger(__name__)

# Of a language. Looking it up takes longer than counting.
_finals = cache(partial(metrics.TRANSLATIONS.labels, "final"))

# A text that so many gateways have taken on may be what ends them.
_MOST_TRIES = 3


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
        delta_interval_s: float,
    ) -> None:
        self._scheduler = scheduler
        self._partials = partials
        self._leaves_unfinished = leaves_unfinished
        self._delta_interval_s = delta_interval_s
        self._tasks = asyncio.TaskGroup()
        # Utterance → language → translation, for meetings in which something waits or runs.
        self._running: dict[Room, dict[UtteranceKey, dict[str, _Translation]]] = {}
        self._owned = Owned()
        self._outcomes = Outcomes(self._owned)
        # Utterances that are being written to the log → how many times over.
        self._accepting: Counter[tuple[Room, UtteranceKey]] = Counter()
        # Meetings in which something is being accepted or claimed → how much.
        self._asking: Counter[Room] = Counter()
        # Nothing more is begun.
        self._leaving = False
        self._quiet = asyncio.Event()
        self._quiet.set()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaving = True
        self._outcomes.leave()
        for room in list(self._running):
            self._give_up(room, Draining("The gateway stopped before this was translated; send it again."))
        await self._tasks.__aexit__(kind, error, trace)

    async def accept(self, room: Room, utterance: Utterance, fence: Fence | None = None) -> Accepted:
        """Log a final utterance and translate it into every language the meeting reads.

        Of one that is in the log already, only what is missing is done. fence: as in `EventLog.accept`. Raises
        what that and `Scheduler.admit` raise; then nobody was told anything. Where the tenant's quota for the day
        is used up, it is accepted, and ends untranslated.
        """
        self._partials.stop(room, utterance.key)
        expected = self._expected(room, utterance)
        used_up = None
        try:
            tickets = self._admit(room, utterance, expected, FINAL)
        except DailyQuotaExceeded as error:
            expected, tickets, used_up = [], [], error
        said = (room, utterance.key)
        self._accepting[said] += 1
        self._asking[room] += 1
        try:
            accepted, owned = await self._log_said(room, utterance, tickets, fence)
            metrics.UTTERANCES.labels("accepted").inc()
            self._partials.said(room, utterance)
            owned = [lang for lang in owned if lang not in self._running_of(room, utterance.key)]
            if used_up is not None:
                await self._outcomes.leave_out(room, utterance, accepted.offset, owned, used_up)
            else:
                self._begin(room, utterance, accepted.offset, owned, dict(zip(expected, tickets, strict=True)))
        finally:
            one_less(self._accepting, said)
            one_less(self._asking, room)
        if used_up is None and not set(owned) <= set(expected):
            self._resume(room)  # it is read in languages that were not expected
        return accepted

    def catch_up(self, room: Room, languages: Sequence[str]) -> None:
        """Translate what a latecomer is shown into languages in which it is missing, as far as there is room."""
        self._asking[room] += 1  # from now on the meeting is busy, not when the task begins
        self._tasks.create_task(self._catch_up(room, languages))

    async def take_over(self, room: Room, work: Unfinished) -> None:
        """Go on with what another gateway left, as far as there is room now, and with the rest later."""
        self._owned.add(room, work.utterance, work.said, work.languages)
        if work.tries > _MOST_TRIES:
            lost = EngineFailed("The gateways that were to translate this were lost; it was not translated.")
            await self._outcomes.leave_out(room, work.utterance, work.said, work.languages, lost)
        self._resume(room)

    def resume(self) -> None:
        """Go on with what this gateway owns and is not translating, as far as there is room now."""
        for room in self._owned:
            self._resume(room)

    def cancel(self, room: Room, key: UtteranceKey) -> None:
        """Stop what is left of an utterance, also at other gateways, as far as they can be reached.

        Each language gets an `Untranslated` with code `cancelled`.
        """
        self.cancel_here(room, key)
        room.elsewhere.tell_cancelled(key)

    def cancel_here(self, room: Room, key: UtteranceKey) -> None:
        """As `cancel`, at this gateway."""
        cancelled, running = Cancelled("The utterance was cancelled."), self._running_of(room, key)
        for translation in running.values():
            self._scheduler.give_up(translation.ticket, cancelled)
        # What finds no place yet.
        waiting = self._owned.where(room, lambda utterance, lang: utterance.key == key and lang not in running)
        for utterance, said, languages in waiting:
            self._tasks.create_task(self._outcomes.leave_out(room, utterance, said, languages, cancelled))

    def abandon(self, room: Room) -> None:
        """Stop everything a meeting has running: nobody is left to read it, now or later."""
        self._give_up(room, Cancelled("Everybody left."))

    def busy(self, room: Room) -> bool:
        """Whether anything of a meeting waits, runs, or is still to be resumed."""
        return any(room in work for work in (self._running, self._owned, self._outcomes, self._asking))

    async def quiet(self) -> None:
        """Wait until the outcome of everything accepted is in the log."""
        await self._quiet.wait()
        await self._outcomes.quiet()

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
                    traceparent=utterance.traceparent,
                )
            )
        account = room.account_of(utterance.participant)
        lane = self._partials.died_on(room, utterance.key)
        return self._scheduler.admit(room.id, requests, account=account, promised=promised, suspected_on=lane)

    def _expected(self, room: Room, utterance: Utterance) -> list[str]:
        """The languages in which it will probably be promised; what is on its way for a latecomer counts."""
        record = room.history.get(utterance.key)
        translated = {lang for lang, done in record.outcomes.items() if done} if record is not None else set()
        there = {utterance.lang, *translated, *self._running_of(room, utterance.key)}
        return [lang for lang in sorted(room.languages()) if lang not in there and self._can(utterance, lang)]

    def _can(self, utterance: Utterance, lang: str) -> bool:
        return self._scheduler.refusal(utterance.lang, lang) is None

    async def _log_said(
        self, room: Room, utterance: Utterance, tickets: list[Ticket], fence: Fence | None
    ) -> tuple[Accepted, list[str]]:
        """Write it down, and wait until readers have it: no translation of it is shown before.

        Returns also the languages in which it is to be translated here.
        """
        try:
            await room.tell_languages()
            with room.history.following(utterance) as record:
                accepted = await room.log.accept(room.id, utterance, fence)
                # Their outcomes may have come before this answer.
                owned = [lang for lang in accepted.owned if record().ended.get(lang, 0) <= accepted.last]
                self._owned.add(room, utterance, accepted.offset, owned)
                if accepted.known:
                    room.promise(record(), accepted)
            await room.reached(accepted.offset)
        except BaseException:
            for ticket in tickets:
                self._scheduler.withdraw(ticket)
            raise
        return accepted, owned

    async def _catch_up(self, room: Room, languages: Sequence[str]) -> None:
        admitted: dict[int, tuple[Utterance, dict[str, Ticket]]] = {}
        claimed: dict[int, tuple[str, ...]] = {}
        try:
            for record in [] if self._leaving else room.history.newest():
                utterance = record.utterance
                running = self._running_of(room, utterance.key)
                there = {utterance.lang, *record.outcomes, *record.languages, *running}
                missing = [lang for lang in languages if lang not in there and self._can(utterance, lang)]
                if missing:
                    tickets = self._admit(room, utterance, missing, CATCHING_UP)
                    admitted[record.said] = (utterance, dict(zip(missing, tickets, strict=True)))
        except GatewayError as error:
            _log.info("recent utterances of a meeting are left untranslated: %s", error.code)
        try:
            if admitted:
                claimed = await room.log.claim(
                    room.id, {said: [*by_lang] for said, (_, by_lang) in admitted.items()}
                )
        except LogUnavailable as error:
            _log.info("recent utterances of a meeting are left untranslated: %s", error.code)
        except Exception:
            _log.exception("recent utterances of a meeting are left untranslated")
        finally:
            for said, (utterance, by_lang) in admitted.items():
                self._owned.add(room, utterance, said, claimed.get(said, ()))
                self._begin(room, utterance, said, claimed.get(said, ()), by_lang)
            one_less(self._asking, room)

    def _resume(self, room: Room) -> None:
        def missing(utterance: Utterance, lang: str) -> bool:
            is_accepting = (room, utterance.key) in self._accepting
            return not is_accepting and lang not in self._running_of(room, utterance.key)

        for utterance, said, languages in [] if self._leaving else self._owned.where(room, missing):
            languages = self._possible(room, utterance, said, languages)
            try:
                tickets = self._admit(room, utterance, languages, FINAL, promised=True)
            except Draining as error:
                if not self._leaves_unfinished:
                    self._tasks.create_task(self._outcomes.leave_out(room, utterance, said, languages, error))
                continue
            except GatewayError:
                continue  # later; others may be of languages that can be translated now
            self._begin(room, utterance, said, languages, dict(zip(languages, tickets, strict=True)))

    def _possible(self, room: Room, utterance: Utterance, said: int, languages: Sequence[str]) -> list[str]:
        """Those of the languages into which it can be translated; of the others it is logged why it cannot."""
        possible = []
        for lang in languages:
            if (refusal := self._scheduler.refusal(utterance.lang, lang)) is None:
                possible.append(lang)
            else:
                self._tasks.create_task(self._outcomes.leave_out(room, utterance, said, [lang], refusal))
        return possible

    def _begin(
        self,
        room: Room,
        utterance: Utterance,
        said: int,
        languages: Collection[str],
        tickets: Mapping[str, Ticket],
    ) -> None:
        """Translate into those of the languages that have a ticket; the other tickets are given back."""
        for lang, ticket in tickets.items():
            if lang not in languages or lang in self._running_of(room, utterance.key):
                self._scheduler.withdraw(ticket)
                continue
            shown = room.live.final(utterance, lang, said, ticket.request.prefix)
            translation = _Translation(utterance, said, lang, ticket, shown)
            self._running.setdefault(room, {}).setdefault(utterance.key, {})[lang] = translation
            self._quiet.clear()
            self._tasks.create_task(self._translate(room, translation))

    def _give_up(self, room: Room, reason: GatewayError) -> None:
        for running in self._running.get(room, {}).values():
            for translation in running.values():
                self._scheduler.give_up(translation.ticket, reason)

    # ------------------------------------------------------------ one translation

    async def _translate(self, room: Room, translation: _Translation) -> None:
        shown = translation.shown
        throttle = Throttle(
            lambda fresh: room.show_final(shown, fresh), interval_s=self._delta_interval_s, shown=shown.committed
        )
        try:
            outcome = await self._outcome(translation, throttle)
            if outcome is not None:
                # It says all that is left to show, unless the log does not take it now.
                await self._outcomes.write(room, outcome, delayed=partial(_show_rest, throttle))
            else:
                self._owned.remove(room, translation.said, translation.lang)
        finally:
            self._ended(room, translation)

    async def _outcome(self, translation: _Translation, throttle: Throttle) -> Translated | Untranslated | None:
        """None: it is left to another process."""
        utterance, lang = translation.utterance, translation.lang
        try:
            generated = await self._scheduler.collect(translation.ticket, throttle.grow)
        except GatewayError as error:
            metrics.TRANSLATIONS.labels(error.code, lang).inc()
            if self._leaves_unfinished and isinstance(error, Draining):
                return None
            return untranslated(utterance, translation.said, lang, error)
        finally:
            throttle.stop()
        _finals(lang).inc()
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
            source=utterance.lang if utterance.detected else "",
            confidence=generated.confidence,
        )

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
        if room in self._owned:
            self._resume(room)  # it may have been promised again meanwhile


def _show_rest(throttle: Throttle) -> None:
    try:
        throttle.end()
    except Exception:  # the final has all of it
        _log.exception("the last text of a translation could not be shown")
