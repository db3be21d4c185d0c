"""Translates accepted utterances, and puts what becomes of each into the log.

Knows: one task per utterance and language that this gateway owns, and that each ends in an entry of the log.
Must not know: sockets, sessions, which engine it is, who reads.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
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
from gateway.domain.log import (
    Accepted,
    Translated,
    Unfinished,
    Untranslated,
    Utterance,
    UtteranceKey,
    segment_id,
    segment_number,
)
from gateway.domain.session_store import Fence
from gateway.meeting.live_view import LiveTranslation
from gateway.meeting.room import Room
from gateway.runtime import within
from gateway.translation.commit_policy import FINAL_TOLERANCE
from gateway.translation.partials import Partials
from gateway.translation.scheduling.scheduler import Scheduler, Throttle
from gateway.translation.scheduling.ticket import CATCHING_UP, FINAL, Ticket, request_id

_log = logging.getLogger(__name__)

# A language's counter. Looking it up takes longer than counting.
_finals = cache(partial(metrics.TRANSLATIONS.labels, "final"))

# A text that was perhaps running at so many gateways that died may be what ended them.
_MOST_TRIES = 3


# An outcome that the log does not take is offered again, after so many seconds, and then every `_RETRY_S`.
_RETRIES_S = (0.1, 0.5, 2.0)
_RETRY_S = 5.0


@dataclass(eq=False)
class _Promise:
    """A language into which this gateway is to translate an utterance that is in the log."""

    room: Room
    utterance: Utterance
    # Offset of the utterance's `Said`.
    said: int
    lang: str
    # Its outcome has not been handed in.
    owed: bool = True
    # It was left by another gateway, and the store does not know yet that it is begun here.
    left: bool = False
    # How many times over the utterance is being accepted; until that is done, nothing is begun.
    accepting: int = 0
    # The ticket of the translation that waits or runs; None while none does.
    ticket: Ticket | None = None
    # Translations that wait or run, and outcomes that are being written.
    work: int = 0
    # Set once it is not worked on any more: the next segment of the same talk is written then.
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def waits(self) -> bool:
        return self.owed and self.ticket is None and not self.accepting


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
        # Utterance → language → promise, for meetings in which there is one.
        self._promises: dict[Room, dict[UtteranceKey, dict[str, _Promise]]] = {}
        # Meetings in which something is being accepted or claimed → how much.
        self._asking: Counter[Room] = Counter()
        # The sum of `work` over all promises; quiet: it is 0.
        self._work = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        # Nothing more is begun, and a log that takes nothing is not waited for.
        self._leaving = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaving.set()
        for room in list(self._promises):
            self._give_up(room, Draining("The gateway stopped before this was translated; send it again."))
        await self._tasks.__aexit__(kind, error, trace)

    async def accept(self, room: Room, utterance: Utterance, fence: Fence | None = None) -> Accepted:
        """Log a final utterance and translate it into every language the meeting reads.

        Of one that is in the log already, only what is missing is done. fence: as in `EventLog.accept`. Raises
        what that and `Scheduler.admit` raise; then no reader was told anything. Where the tenant's quota for the
        day is used up, it is accepted, and ends untranslated.
        """
        self._partials.stop(room, utterance.key)
        expected = self._expected(room, utterance)
        tickets: dict[str, Ticket] = {}
        used_up = None
        try:
            tickets = self._admit(room, utterance, expected, FINAL)
        except DailyQuotaExceeded as error:
            used_up = error
        self._asking[room] += 1
        try:
            accepted, promised = await self._log_said(room, utterance, tickets, fence)
            metrics.UTTERANCES.labels("accepted").inc()
            self._partials.said(room, utterance)
            if used_up is not None:
                await self._leave_out([promise for promise in promised if promise.waits], used_up)
            else:
                self._begin(promised, tickets)
        finally:
            self._asked(room)
        if any(promise.waits for promise in promised):
            self._resume(room)  # it is read in languages that were not expected
        return accepted

    def catch_up(self, room: Room, languages: Sequence[str]) -> None:
        """Translate what a latecomer is shown into languages in which it is missing, as far as there is room."""
        self._asking[room] += 1  # from now on the meeting is busy, not when the task begins
        self._tasks.create_task(self._catch_up(room, languages))

    async def take_over(self, room: Room, work: Unfinished) -> None:
        """Go on with what another gateway left, as far as there is room now, and with the rest later."""
        promised = self._promise(room, work.utterance, work.said, work.languages)
        for promise in promised:
            promise.left = True
        if work.tries > _MOST_TRIES:
            lost = EngineFailed("The gateways that were to translate this were lost; it was not translated.")
            await self._leave_out(promised, lost)
        record = room.history.get(work.utterance.key)
        if record is not None and record.replaced_by is not None:
            self.cancel_here(room, work.utterance.key)
        self._resume(room)

    def resume(self) -> None:
        """Go on with what this gateway owns and is not translating, as far as there is room now."""
        for room in list(self._promises):
            self._resume(room)

    def cancel(self, room: Room, key: UtteranceKey) -> None:
        """Stop what is left of an utterance, also at other gateways, as far as they can be reached.

        Each language gets an `Untranslated` with code `cancelled`.
        """
        self.cancel_here(room, key)
        room.other_gateways.tell_cancelled(key)

    def cancel_here(self, room: Room, key: UtteranceKey) -> None:
        cancelled = Cancelled("The utterance was cancelled.")
        promised = list(self._promised(room, key).values())
        for promise in promised:
            if promise.ticket is not None:
                self._scheduler.give_up(promise.ticket, cancelled)
        # What finds no place yet.
        if waiting := [promise for promise in promised if promise.owed and promise.ticket is None]:
            self._tasks.create_task(self._leave_out(waiting, cancelled))

    def abandon(self, room: Room) -> None:
        """Stop everything a meeting has running: no reader is left, now or later."""
        self._give_up(room, Cancelled("Everybody left."))

    def busy(self, room: Room) -> bool:
        """Whether anything of a meeting waits, runs, or is still to be resumed."""
        return room in self._promises or room in self._asking

    async def quiet(self) -> None:
        """Wait until the outcome of everything accepted is in the log."""
        await self._quiet.wait()

    # ------------------------------------------------------------ promises

    def _promised(self, room: Room, key: UtteranceKey) -> dict[str, _Promise]:
        return self._promises.get(room, {}).get(key, {})

    def _running(self, room: Room, key: UtteranceKey) -> set[str]:
        """The languages into which an utterance is being translated."""
        return {lang for lang, promise in self._promised(room, key).items() if promise.ticket is not None}

    def _waiting(self, room: Room) -> list[list[_Promise]]:
        """Promises by accepted utterance, in the order of acceptance: after a new log an id may be there twice."""
        waiting: dict[int, list[_Promise]] = {}
        for by_lang in self._promises.get(room, {}).values():
            for promise in by_lang.values():
                if promise.waits:
                    waiting.setdefault(promise.said, []).append(promise)
        return [waiting[said] for said in sorted(waiting)]

    def _promise(self, room: Room, utterance: Utterance, said: int, languages: Collection[str]) -> list[_Promise]:
        if not languages:
            return []
        by_lang = self._promises.setdefault(room, {}).setdefault(utterance.key, {})
        for lang in languages:
            promise = by_lang.setdefault(lang, _Promise(room, utterance, said, lang))
            promise.utterance, promise.said, promise.owed = utterance, said, True
        return [by_lang[lang] for lang in languages]

    def _begin_work(self, promise: _Promise) -> None:
        promise.work += 1
        self._work += 1
        self._quiet.clear()

    def _end_work(self, promise: _Promise) -> None:
        promise.work -= 1
        self._work -= 1
        if not promise.work:
            promise.ended.set()
        if not self._work:
            self._quiet.set()
        room, key, lang = promise.room, promise.utterance.key, promise.lang
        if promise.work or promise.owed or self._promised(room, key).get(lang) is not promise:
            return
        del self._promises[room][key][lang]
        if not self._promises[room][key]:
            del self._promises[room][key]
        if not self._promises[room]:
            del self._promises[room]

    def _asked(self, room: Room) -> None:
        self._asking[room] -= 1
        if not self._asking[room]:
            del self._asking[room]

    # ------------------------------------------------------------ beginning

    def _admit(
        self, room: Room, utterance: Utterance, languages: list[str], priority: int, *, promised: bool = False
    ) -> dict[str, Ticket]:
        """By language. Raises what `Scheduler.admit` raises."""
        requests = []
        for lang in languages:
            # It continues what readers have seen of it, unless the whole text makes that implausible.
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
        account = room.account_of(utterance.sent_by)
        lane = self._partials.died_on(room, utterance.key)
        tickets = self._scheduler.admit(room.id, requests, account=account, promised=promised, suspected_on=lane)
        return dict(zip(languages, tickets, strict=True))

    def _expected(self, room: Room, utterance: Utterance) -> list[str]:
        """The languages in which it will probably be promised; what is on its way for a latecomer counts."""
        record = room.history.get(utterance.key)
        translated = {lang for lang, done in record.outcomes.items() if done} if record is not None else set()
        there = {utterance.lang, *translated, *self._running(room, utterance.key)}
        read = [] if utterance.is_taking_back else sorted(room.languages())
        return [lang for lang in read if lang not in there and self._can(utterance, lang)]

    def _can(self, utterance: Utterance, lang: str) -> bool:
        return self._scheduler.refusal(utterance.lang, lang) is None

    async def _log_said(
        self, room: Room, utterance: Utterance, tickets: Mapping[str, Ticket], fence: Fence | None
    ) -> tuple[Accepted, list[_Promise]]:
        """Write it down, and wait until readers have it: no translation of it is shown before.

        Returns also what is promised here with it. If it is not written down, the tickets are given back.
        """
        promised: list[_Promise] = []
        try:
            await room.tell_languages()
            with room.history.following(utterance) as record:
                accepted = await room.log.accept(room.id, utterance, fence)
                # Their outcomes may have come before this answer.
                owned = [lang for lang in accepted.owned if record().ended.get(lang, 0) <= accepted.last]
                promised = self._promise(room, utterance, accepted.offset, owned)
                for promise in promised:
                    promise.accepting += 1
                if accepted.known:
                    room.promise(record(), accepted)
            await room.reached(accepted.offset)
        except BaseException:
            for ticket in tickets.values():
                self._scheduler.withdraw(ticket)
            raise
        finally:
            for promise in promised:
                promise.accepting -= 1
        return accepted, promised

    async def _catch_up(self, room: Room, languages: Sequence[str]) -> None:
        admitted: dict[int, tuple[Utterance, dict[str, Ticket]]] = {}
        claimed: dict[int, tuple[str, ...]] = {}
        try:
            for record in [] if self._leaving.is_set() else room.history.newest():
                utterance = record.utterance
                running = self._running(room, utterance.key)
                there = {utterance.lang, *record.outcomes, *record.languages, *running}
                missing = [lang for lang in languages if lang not in there and self._can(utterance, lang)]
                if missing:
                    admitted[record.said] = utterance, self._admit(room, utterance, missing, CATCHING_UP)
        except GatewayError as error:
            _log.info("recent utterances of a meeting are left untranslated: %s", error.code)
        try:
            if admitted:
                claimed = await room.log.claim(
                    room.id, {said: [*tickets] for said, (_, tickets) in admitted.items()}
                )
        except LogUnavailable as error:
            _log.info("recent utterances of a meeting are left untranslated: %s", error.code)
        except Exception:
            _log.exception("recent utterances of a meeting are left untranslated")
        finally:
            for said, (utterance, tickets) in admitted.items():
                self._begin(self._promise(room, utterance, said, claimed.get(said, ())), tickets)
            self._asked(room)

    def _resume(self, room: Room) -> None:
        for promised in [] if self._leaving.is_set() else self._waiting(room):
            possible = self._possible(promised)
            languages = [promise.lang for promise in possible]
            try:
                tickets = self._admit(room, promised[0].utterance, languages, FINAL, promised=True)
            except Draining as error:
                if not self._leaves_unfinished:
                    self._tasks.create_task(self._leave_out(possible, error))
                continue
            except GatewayError:
                continue  # later; others may be of languages that can be translated now
            self._begin(possible, tickets)

    def _possible(self, promised: Sequence[_Promise]) -> list[_Promise]:
        """Those that can be translated; of the others it is logged why they cannot."""
        possible = []
        for promise in promised:
            if (refusal := self._scheduler.refusal(promise.utterance.lang, promise.lang)) is None:
                possible.append(promise)
            else:
                self._tasks.create_task(self._leave_out([promise], refusal))
        return possible

    def _begin(self, promised: Sequence[_Promise], tickets: Mapping[str, Ticket]) -> None:
        """Translate what waits and has a ticket; the other tickets are given back."""
        waiting = {promise.lang: promise for promise in promised if promise.waits}
        for lang, ticket in tickets.items():
            if (promise := waiting.get(lang)) is None:
                self._scheduler.withdraw(ticket)
                continue
            promise.ticket = ticket
            self._begin_work(promise)
            shown = promise.room.live.final(promise.utterance, lang, promise.said, ticket.request.prefix)
            self._tasks.create_task(self._translate(promise, ticket, shown))

    def _give_up(self, room: Room, reason: GatewayError) -> None:
        for promised in self._promises.get(room, {}).values():
            for promise in promised.values():
                promise.ended.set()
                if promise.ticket is not None:
                    self._scheduler.give_up(promise.ticket, reason)

    # ------------------------------------------------------------ one translation

    async def _translate(self, promise: _Promise, ticket: Ticket, shown: LiveTranslation) -> None:
        room, said = promise.room, promise.said
        throttle = Throttle(
            lambda fresh: room.show_final(shown, fresh), interval_s=self._delta_interval_s, shown=shown.committed
        )
        try:
            outcome = await self._outcome(promise, ticket, throttle)
            if promise.said == said:  # else it was promised in another log meanwhile
                promise.owed = False
            if outcome is not None:
                await self._earlier_ended(promise)
                # It says all that is left to show, unless the log does not take it now.
                await self._write(room, outcome, delayed=partial(_show_rest, throttle))
        finally:
            self._scheduler.withdraw(ticket)
            room.live.end_final(promise.utterance.key, promise.lang)
            promise.ticket = None
            self._end_work(promise)
            if room in self._promises:
                self._resume(room)  # it may have been promised again meanwhile

    async def _earlier_ended(self, promise: _Promise) -> None:
        """Segments of one talk end in their order: who reads one final after the other reads a talk."""
        utterance = promise.utterance
        if not utterance.part_of or self._leaving.is_set():
            return
        earlier = utterance.participant, segment_id(utterance.part_of, segment_number(utterance.id) - 1)
        before = self._promised(promise.room, earlier).get(promise.lang)
        if before is not None and (before.owed or before.work):
            await before.ended.wait()

    async def _outcome(
        self, promise: _Promise, ticket: Ticket, throttle: Throttle
    ) -> Translated | Untranslated | None:
        """None: it is left to another process."""
        utterance, said, lang = promise.utterance, promise.said, promise.lang
        try:
            generated = await self._scheduler.collect(ticket, throttle.grow, partial(self._note_begun, promise))
        except GatewayError as error:
            metrics.TRANSLATIONS.labels(error.code, lang).inc()
            if self._leaves_unfinished and isinstance(error, Draining):
                return None
            return _untranslated(utterance, said, lang, error)
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
            timings=ticket.timings(),
            tokens=ticket.tokens,
            truncated=generated.truncated,
            said=said,
            source=utterance.lang if utterance.detected else "",
            confidence=generated.confidence,
        )

    async def _note_begun(self, promise: _Promise) -> None:
        """Its turn has come. If another gateway left it, the store is to know: that one may have died of it."""
        if promise.left:
            with contextlib.suppress(LogUnavailable):  # then it is not counted
                await promise.room.log.claim(promise.room.id, {promise.said: (promise.lang,)})
                promise.left = False

    # ------------------------------------------------------------ outcomes

    def _leave_out(self, promised: Sequence[_Promise], error: GatewayError) -> Coroutine[None, None, None]:
        """They are not translated: write why. From now on they are not owed, whenever this is awaited."""
        outcomes = []
        for promise in promised:
            promise.owed = False
            self._begin_work(promise)
            outcomes.append(_untranslated(promise.utterance, promise.said, promise.lang, error))
        return self._write_untranslated(promised, outcomes)

    async def _write_untranslated(self, promised: Sequence[_Promise], outcomes: Sequence[Untranslated]) -> None:
        try:
            for promise, outcome in zip(promised, outcomes, strict=True):
                metrics.TRANSLATIONS.labels(outcome.code, outcome.lang).inc()
                await self._write(promise.room, outcome)
        finally:
            for promise in promised:
                self._end_work(promise)

    async def _write(
        self, room: Room, outcome: Translated | Untranslated, delayed: Callable[[], None] = lambda: None
    ) -> None:
        """Offer an outcome until the log takes it, and wait until readers have it.

        Its promise is not owed any more before that: once the log has it, its speaker may have it promised again.
        delayed: is called whenever the log does not take it.
        """
        for wait_s in itertools.chain(_RETRIES_S, itertools.repeat(_RETRY_S)):
            try:
                concluded = await room.log.conclude(room.id, outcome)
                if concluded is not None:
                    await room.reached(concluded.offset)
                return
            except LogUnavailable:
                if self._leaving.is_set():
                    _log.error("the log of a meeting took no outcome before the gateway stopped")
                    return
            except Exception:
                _log.exception("the log of a meeting failed; its readers will not see an outcome")
                delayed()
                room.end_unlogged(outcome)
                return
            delayed()
            await within(wait_s, self._leaving.wait())


def _show_rest(throttle: Throttle) -> None:
    try:
        throttle.end()
    except Exception:  # the final has all of it
        _log.exception("the last text of a translation could not be shown")


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
