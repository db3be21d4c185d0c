"""Translates what is being said while it is being said.

Knows: which utterances are open, that each has at most one generation in flight per language, which revision it is
of, and what becomes of its outcome.
Must not know: sockets, which engine it is, who reads, what may be shown of a hypothesis (`commit_policy`).

Everything here is best effort: a revision that finds no room is dropped without a word, because the next one says
more. How many revisions are translated follows from how busy the engine is: while a translation waits for its
turn, newer revisions take the place of the older one. An idle engine is not asked more often than a reader
can follow, and the gateway's own process not more often than it has time for.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cache
from types import TracebackType
from typing import Generic, Self, TypeVar

from gateway import metrics
from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import EngineUnavailable, GatewayError
from gateway.domain.log import Utterance, UtteranceKey
from gateway.meeting.live_view import MOST_CLOSED, MOST_OPEN
from gateway.meeting.room import Room
from gateway.tracing import spans
from gateway.tracing.spans import Value
from gateway.tracing.utterances import PartialsTrace
from gateway.translation.commit_policy import TOLERANCE, CommitPolicy, Heard
from gateway.translation.scheduling.scheduler import Scheduler
from gateway.translation.scheduling.ticket import PARTIAL, Generated, Ticket, request_id

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class OpenTranslation:
    """The translation of one open utterance into one language."""

    lang: str
    policy: CommitPolicy
    # The newest revision.
    revision: Utterance
    # When the last generation was begun, by the monotonic clock.
    begun_s: float
    # Since when readers wait for words that stay, and those who see what may change for any, by the same clock.
    waiting_s: float
    unseen_s: float
    # How long the last generation took, seconds.
    took_s: float = 0.0
    # The text whose translation readers see.
    translated: str | None = None
    # The generation in flight, and the revision that it translates.
    ticket: Ticket | None = None
    running: Utterance | None = None
    # The newest revision is still to be translated.
    pending: bool = False
    # Nothing happens to it until another revision comes.
    stopped: bool = False
    # The last generation was ended by a newer revision.
    superseded: bool = False
    # Generations in which the model would not go on from the committed text.
    rejections: int = 0
    # The engine died of it or with it: it is left to the final.
    broken: bool = False
    # The lane that it may have killed.
    died_on: str | None = None
    # What became of its generations; None while there was none, or nothing is traced.
    trace: PartialsTrace | None = None

    @property
    def nothing_to_read(self) -> bool:
        return not self.policy.committed and not self.policy.tentative

    def request(self, scope: str) -> TranslationRequest:
        """Its newest revision as a request. scope: whose prompts it may share the engine's prefix cache with."""
        said = self.revision
        return TranslationRequest(
            id=request_id("partial"),
            text=said.text,
            source=said.lang,
            target=self.lang,
            options=said.options_for(self.lang),
            final=False,
            priority=PARTIAL,
            prefix=self.policy.committed,
            draft=self.policy.draft,
            # It must not stand still because the model has changed its mind: the next one may like it less.
            tolerance=TOLERANCE * 2 ** min(self.rejections, _MOST_DOUBLINGS),
            cache_scope=scope,
        )


@dataclass(eq=False)
class OpenUtterance:
    """An utterance that is not final."""

    # By language.
    translations: dict[str, OpenTranslation] = field(default_factory=dict)
    # Looks again at which of them are due: the last that was set.
    timer: asyncio.TimerHandle | None = None
    # Withdraws it; None: its final was not refused, or it has gone on since.
    end: asyncio.TimerHandle | None = None
    heard: Heard = field(default_factory=Heard)
    # Its live translation has ended, though it may still be revised.
    closed: bool = False
    # Latecomers are shown its caption.
    captioned: bool = False

    def go_on(self) -> None:
        if self.end is not None:
            self.end.cancel()
            self.end = None


# The counter of an outcome and a language. Looking it up takes longer than counting.
_counter = cache(metrics.PARTIALS.labels)

# Estimated bytes of an open utterance and of each of its translations, besides their characters.
_UTTERANCE_BYTES = 1_024
# Bytes of CPython's widest character, and of its UTF-8 form, which a text keeps once it was encoded.
_CHAR_BYTES = 8
# Texts that are held of each translation: what readers have of it, its hypotheses, and what it is made of.
_TEXTS = 4

# Longer texts are left to their final: no speaker says so much in one breath, and comparing it takes its time.
_LONGEST_CHARS = 1_000

# How often the tolerance of a translation that is rejected doubles: with e^-128 any token may follow.
_MOST_DOUBLINGS = 6

# The least time from one translation of an utterance into a language to the next: a word and a half. Half of it
# holds until there is something to read; all along it would show words half a word earlier, cost a sixth more
# tokens and take back twice as many words.
_PACE_S = 0.6

# What is added to the pace for each second that the event loop is late, here or in the engine's host, beyond how
# late it is on a machine whose cores others use as well. A loop that is 10 ms late, as is each of the turns that a
# final takes then, has half as much done for utterances of which there is something to read already. Never more
# than the last: an utterance that goes on for so long is shown all the same.
_YIELDING, _USUAL_LAG_S, _MOST_YIELDING_S = 100.0, 0.004, 5.0

# How long readers wait for words that stay before words that may change are committed, and those who see these for
# others before they see what one hypothesis alone says: nobody should wait for more than 5 s while somebody
# speaks, and a generation takes its time. What it took the last time is not waited for as well, up to the last.
_OVERDUE_S, _MOST_TOOK_S = 4.0, 1.0

# The event loop may have time again sooner than it seemed, or later.
_LOOK_S = 0.5

_NOTHING = OpenUtterance()


class Partials:
    """Owns the tasks that translate partials; leaving the context ends them."""

    def __init__(
        self,
        scheduler: Scheduler,
        *,
        # Whether anything is translated; otherwise partials are only shown in their own language.
        translates: bool = True,
        # The least time between two translations of an utterance into a language, seconds; the newest revision
        # waits for it.
        pace_s: float = _PACE_S,
        # How late the event loop is, seconds; it has less done for partials then, so that finals are not late.
        lag_s: Callable[[], float] = lambda: 0.0,
        # Estimate of all that is being said; above it, utterances of the account that says the most are withdrawn.
        max_bytes: int,
    ) -> None:
        self._scheduler = scheduler
        self._translates = translates
        self._pace_s = pace_s
        self._lag_s = lag_s
        self._budget = LiveBudget[tuple[Room, UtteranceKey]](max_bytes)
        # One for each generation.
        self._tasks = asyncio.TaskGroup()
        # Participant → utterance, the least recently revised first.
        self._open: dict[Room, dict[str, OrderedDict[str, OpenUtterance]]] = {}

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for utterances in [utterances for of_room in self._open.values() for utterances in of_room.values()]:
            for spoken in utterances.values():
                self._stop_all(spoken)
        await self._tasks.__aexit__(kind, error, trace)

    # ------------------------------------------------------------ what speakers do

    def hear(
        self, room: Room, caption: Utterance, beginning: Utterance | None = None, *, held_chars: int = 0
    ) -> None:
        """A revision came: show it, and translate it into what is read while it is being said.

        beginning: what of it is translated; None: all. held_chars: characters that are held of it elsewhere.
        """
        room.show_caption(caption)
        utterance = beginning or caption
        spoken = self._revised(room, utterance)
        languages = room.live_languages() if self._translates else frozenset()
        if not self._fits(room, caption, len(languages), held_chars) or spoken.closed:
            return
        if len(utterance.text) > _LONGEST_CHARS:
            return
        for lang in languages:
            translation = spoken.translations.get(lang)
            if lang == utterance.lang:
                if translation is not None:  # the recogniser took it for another language before
                    self._stop(translation)
                continue
            if self._scheduler.refusal(utterance.lang, lang) is not None:
                continue  # its final says why
            if translation is None:
                translation = spoken.translations[lang] = OpenTranslation(
                    lang,
                    # Readers may have seen something of it that another gateway has made.
                    policy=CommitPolicy(
                        utterance.lang, lang, room.live.committed(utterance.key, lang), spoken.heard
                    ),
                    revision=utterance,
                    # The first is due at once where the event loop has time for it.
                    begun_s=time.monotonic() - self._pace_s / 2,
                    waiting_s=time.monotonic(),
                    # They have waited for some time already, where the speaker goes on behind a segment.
                    unseen_s=time.monotonic() - (_OVERDUE_S / 2 if utterance.part_of else 0.0),
                )
            room.live.partial(utterance, lang)
            self._revise(room, translation, utterance)
        self._go_on(room, spoken)

    def withdraw(self, room: Room, key: UtteranceKey) -> None:
        """The speaker gives an utterance up: it goes from every screen."""
        self.forget(room, key)
        room.withdraw(key)

    def withdraw_later(self, room: Room, key: UtteranceKey, wait_s: float) -> None:
        """Its final was refused for the moment: unless it goes on within `wait_s`, it goes from every screen."""
        if (spoken := self._spoken_by(room, key[0]).get(key[1])) is not None:
            spoken.go_on()
            spoken.end = asyncio.get_running_loop().call_later(wait_s, self.withdraw, room, key)

    def speaker_away(self, room: Room, participant: str) -> None:
        """A speaker has lost the connection: what is being said is not translated further."""
        for utterance, spoken in list(self._spoken_by(room, participant).items()):
            if spoken.captioned:
                self._close(room, (participant, utterance), spoken)

    def speaker_left(self, room: Room, participant: str, *, for_good: bool) -> None:
        """A speaker will not come back here. for_good: nor to another gateway."""
        for utterance in list(self._spoken_by(room, participant)):
            key = (participant, utterance)
            if for_good:  # not all are told who leaves
                self.withdraw(room, key)
            else:
                self.forget(room, key)
                room.other_gateways.tell_ended(key, for_good=True)

    # ------------------------------------------------------------ what finals need

    def draft(self, room: Room, key: UtteranceKey, lang: str) -> tuple[str, str]:
        """What readers were shown for good of an utterance, and a guess at what follows; empty if nothing was."""
        translation = self._spoken_by(room, key[0]).get(key[1], _NOTHING).translations.get(lang)
        if translation is None:
            return room.live.committed(key, lang), ""  # of another gateway
        return translation.policy.committed, translation.policy.draft

    def died_on(self, room: Room, key: UtteranceKey) -> str | None:
        """The lane that a translation of it may have killed."""
        spoken = self._spoken_by(room, key[0]).get(key[1], _NOTHING)
        return next((each.died_on for each in spoken.translations.values() if each.died_on is not None), None)

    def stop(self, room: Room, key: UtteranceKey) -> None:
        """Nothing more of it is translated or shown until another revision comes."""
        self._stop_all(self._spoken_by(room, key[0]).get(key[1], _NOTHING))

    def said(self, room: Room, utterance: Utterance) -> None:
        if utterance.traceparent:
            spoken = self._spoken_by(room, utterance.participant).get(utterance.id, _NOTHING)
            for translation in spoken.translations.values():
                if translation.trace is not None:
                    about = {"source": utterance.lang, "target": translation.lang}
                    translation.trace.record_span(utterance.traceparent, **about)
        self.forget(room, utterance.key)

    def forget(self, room: Room, key: UtteranceKey) -> None:
        """It is final, or will never be."""
        self.stop(room, key)
        room.live.end_partial(key)
        self._budget.release((room, key))
        participant, utterance = key
        if (of_room := self._open.get(room)) is not None and participant in of_room:
            of_room[participant].pop(utterance, None)
            if not of_room[participant]:
                del of_room[participant]
            if not of_room:
                del self._open[room]

    # ------------------------------------------------------------ open utterances

    def _spoken_by(self, room: Room, participant: str) -> dict[str, OpenUtterance]:
        return self._open.get(room, {}).get(participant, {})

    def _revised(self, room: Room, utterance: Utterance) -> OpenUtterance:
        """The utterance, now the most recently revised; another one may be closed for it."""
        utterances = self._open.setdefault(room, {}).setdefault(utterance.participant, OrderedDict())
        spoken = utterances.setdefault(utterance.id, OpenUtterance())
        spoken.go_on()
        spoken.captioned = True
        utterances.move_to_end(utterance.id)
        captioned = [(name, other) for name, other in utterances.items() if other.captioned]
        if len(captioned) > MOST_OPEN:
            name, oldest = captioned[0]
            self._close(room, (utterance.participant, name), oldest)
        return spoken

    def _close(self, room: Room, key: UtteranceKey, spoken: OpenUtterance) -> None:
        spoken.closed, spoken.captioned = True, False
        self.stop(room, key)
        room.end_caption(key)
        participant = key[0]
        closed = [name for name, other in self._spoken_by(room, participant).items() if other.closed]
        if len(closed) > MOST_CLOSED:
            self.withdraw(room, (participant, closed[0]))

    def _fits(self, room: Room, utterance: Utterance, translations: int, held_chars: int) -> bool:
        """Count what an utterance takes, and withdraw what is too much in all. False: this one was withdrawn."""
        chars = len(utterance.text) * (1 + _TEXTS * translations) + held_chars
        size = _UTTERANCE_BYTES * (1 + translations) + _CHAR_BYTES * chars
        self._budget.use(room.account_of(utterance.participant), (room, utterance.key), size)
        fits = True
        while (excess := self._budget.excess()) is not None:
            fits = fits and excess != (room, utterance.key)
            # Readers begin again with its next revision.
            self.withdraw(*excess)
        return fits

    # ------------------------------------------------------------ one translation

    def _revise(self, room: Room, translation: OpenTranslation, utterance: Utterance) -> None:
        """Have the newest revision translated, and no older one any more."""
        lang, ticket = translation.lang, translation.ticket
        under_way = translation.pending or (ticket is not None and not ticket.ending)
        known = translation.revision.text if under_way else translation.translated
        translation.revision, translation.stopped = utterance, False
        if translation.broken:
            _counter("failed", lang).inc()
            return
        if known == utterance.text:
            _counter("unchanged", lang).inc()
            return
        if ticket is not None and ticket.exchange(translation.request(room.id)):
            translation.running = utterance
            _counter("superseded", lang).inc()
            return
        if translation.pending:
            _counter("superseded", lang).inc()
        if not under_way and translation.policy.committed and not translation.policy.draft:
            # Readers have all of what was said before.
            translation.waiting_s = translation.unseen_s = time.monotonic()
        translation.pending = True

    def _stop_all(self, spoken: OpenUtterance) -> None:
        spoken.go_on()
        for translation in spoken.translations.values():
            self._stop(translation)

    def _stop(self, translation: OpenTranslation) -> None:
        if translation.pending:
            _counter("superseded", translation.lang).inc()
        translation.pending, translation.stopped = False, True
        if translation.ticket is not None:
            translation.policy.interrupted(translation.ticket.text)
            self._scheduler.withdraw(translation.ticket)

    def _go_on(self, room: Room, spoken: OpenUtterance) -> None:
        """Translate the newest revision into the languages in which it is due, and later into the others.

        One generation at a time for each: the next is not admitted before the last has given its place back. One
        of a revision that is out of date is ended, when the next may begin.
        """
        try:
            due: list[OpenTranslation] = []
            later_s: list[float] = []
            now_s = time.monotonic()
            yielding_s = min(_YIELDING * max(0.0, self._lag_s() - _USUAL_LAG_S), _MOST_YIELDING_S)
            looks_s: list[float] = []
            for translation in spoken.translations.values():
                if (overdue_s := self._show_overdue(room, translation, now_s)) is not None:
                    looks_s.append(overdue_s)
                if not translation.pending or translation.broken:
                    continue
                pace_s = self._pace_s / 2 if translation.nothing_to_read else self._pace_s
                if (wait_s := translation.begun_s + pace_s + yielding_s - now_s) > 0:
                    later_s.append(wait_s)
                elif translation.ticket is None:
                    due.append(translation)
                elif not translation.superseded:  # not two in a row, or readers would see nothing
                    translation.superseded = True
                    self._scheduler.withdraw(translation.ticket)
            if due:
                self._begin(room, spoken, due, now_s)
            if spoken.timer is not None:
                spoken.timer.cancel()
            if later_s:
                # Not all together, or the event loop would be late again.
                looks_s += [*later_s, _LOOK_S * random.uniform(0.5, 1)]  # noqa: S311 -- no secret
            if looks_s:
                spoken.timer = asyncio.get_running_loop().call_later(min(looks_s), self._go_on, room, spoken)
        except Exception:
            _leave_to_final(*spoken.translations.values())

    def _show_overdue(self, room: Room, translation: OpenTranslation, now_s: float) -> float | None:
        """Show what readers have waited for too long. Returns in how many seconds that may be due, or None."""
        policy = translation.policy
        # What is generated begins with what is committed now.
        if translation.stopped or translation.broken or translation.ticket is not None or not policy.draft:
            return None
        due_s = now_s - _OVERDUE_S + min(translation.took_s, _MOST_TOOK_S)
        waits_s = [since_s - due_s for since_s in (translation.waiting_s, translation.unseen_s) if since_s > due_s]
        if committed := translation.waiting_s <= due_s and policy.commit_overdue():
            translation.waiting_s = now_s
        if shown := translation.unseen_s <= due_s and policy.show_overdue():
            translation.unseen_s = now_s
        if committed or shown:
            room.show_partial(translation.revision, translation.lang, policy.committed, policy.tentative)
        return min(waits_s, default=None)

    def _begin(self, room: Room, spoken: OpenUtterance, due: list[OpenTranslation], now_s: float) -> None:
        account = room.account_of(due[0].revision.participant)
        for translation in due:
            translation.pending, translation.begun_s = False, now_s
        try:
            requests = [translation.request(room.id) for translation in due]
            tickets = self._scheduler.admit(room.id, requests, account=account)
        except GatewayError:
            if len(due) == 1:
                self._ended(due[0], "refused")
            else:  # there may be room for some of them
                for translation in due:
                    self._begin(room, spoken, [translation], now_s)
            return
        for translation, ticket in zip(due, tickets, strict=True):
            translation.ticket, translation.running = ticket, translation.revision
            self._tasks.create_task(self._translate(room, spoken, translation, ticket))

    async def _translate(
        self, room: Room, spoken: OpenUtterance, translation: OpenTranslation, ticket: Ticket
    ) -> None:
        try:
            try:
                outcome = self._generated(room, translation, await self._scheduler.collect(ticket))
            except GatewayError as error:
                outcome = self._failed(translation, ticket, error)
            self._ended(translation, outcome, ticket)
        except Exception:
            _leave_to_final(translation)
        finally:
            translation.ticket = translation.running = None
        self._go_on(room, spoken)

    def _generated(self, room: Room, translation: OpenTranslation, generated: Generated) -> str:
        """What became of a generation that has come to its end."""
        said, policy, translation.superseded = translation.running, translation.policy, False
        translation.took_s = time.monotonic() - translation.begun_s
        if translation.stopped:  # what readers saw is on its way to the final already
            return "superseded"
        assert said is not None  # noqa: S101 -- one generation at a time
        translation.translated = said.text
        # One that ran into the output limit is a model that repeats itself.
        rejected = generated.rejected or generated.truncated
        translation.rejections += generated.rejected
        if not rejected:
            committed, shown = policy.committed, policy.shown
            policy.take_hypothesis(said.text, generated.text)
            if policy.committed != committed:
                translation.waiting_s = time.monotonic()
            if not shown.startswith(policy.shown):
                translation.unseen_s = time.monotonic()
        room.show_partial(translation.revision, translation.lang, policy.committed, policy.tentative)
        return "rejected" if rejected else "translated"

    def _failed(self, translation: OpenTranslation, ticket: Ticket, error: GatewayError) -> str:
        """What became of one that has not."""
        translation.policy.interrupted(ticket.text)
        if ticket.preempted:
            translation.pending = not translation.stopped
            return "preempted"
        if ticket.crashes or isinstance(error, EngineUnavailable):
            translation.broken, translation.died_on = True, ticket.bound_to
            return "failed"
        return "superseded" if translation.pending or translation.stopped else "failed"

    def _ended(self, translation: OpenTranslation, outcome: str, ticket: Ticket | None = None) -> None:
        """A generation has ended, or was refused; of one that ran, ticket."""
        _counter(outcome, translation.lang).inc()
        if not spans.is_on():
            return
        trace = translation.trace = translation.trace or PartialsTrace()
        about: dict[str, Value] = {"rev": (translation.running or translation.revision).rev}
        if ticket is not None and ticket.started_s is not None:
            timings = ticket.timings()
            about |= {"lane": ticket.lane or metrics.DEFAULT_ENGINE, "tokens": ticket.tokens}
            about |= {"queue_ms": timings.queue_ms, "first_token_ms": timings.first_token_ms}
        trace.ended(outcome, time.monotonic() - translation.begun_s, **about)


def _leave_to_final(*translations: OpenTranslation) -> None:
    """After an error that should not be, which would end the tasks of all others."""
    _log.exception("an unfinished utterance is left to its final")
    for translation in translations:
        translation.broken = True


_Name = TypeVar("_Name", bound=Hashable)


class LiveBudget(Generic[_Name]):
    """What is held, by account; each in the order in which it was last used."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        # Account → name → bytes, the least recently used first.
        self._held: dict[str, OrderedDict[_Name, int]] = {}
        self._bytes_of: dict[str, int] = {}
        self._accounts: dict[_Name, str] = {}

    @property
    def bytes(self) -> int:
        return self._bytes

    def use(self, account: str, name: _Name, size: int) -> None:
        if self._accounts.get(name) != account:
            self.release(name)
            self._accounts[name] = account
        held = self._held.setdefault(account, OrderedDict())
        more = size - held.get(name, 0)
        held[name] = size
        held.move_to_end(name)
        self._bytes_of[account] = self._bytes_of.get(account, 0) + more
        self._bytes += more

    def release(self, name: _Name) -> None:
        """It is not held any more. Does nothing the second time."""
        account = self._accounts.pop(name, None)
        if account is None:
            return
        size = self._held[account].pop(name)
        self._bytes -= size
        self._bytes_of[account] -= size
        if not self._held[account]:
            del self._held[account], self._bytes_of[account]

    def excess(self) -> _Name | None:
        """What has to go while too much is held: the least recently used of the account that holds the most."""
        if self._bytes <= self._max_bytes:
            return None
        account = max(self._bytes_of, key=self._bytes_of.__getitem__)
        return next(iter(self._held[account]))
