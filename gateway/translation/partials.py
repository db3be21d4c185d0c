"""Translates what is being said while it is being said.

Knows: that each open utterance has at most one generation in flight per language, which revision it is of, and
what becomes of its outcome.
Must not know: sockets, which engine it is, who reads, what may be shown of a hypothesis (`stability`).

Everything here is best effort: a revision that finds no room is dropped without a word, because the next one says
more. How many revisions are translated follows from how busy the engine is: while a translation waits for its
turn, newer revisions take the place of the older one. An idle engine is not asked more often than somebody who
reads can follow, and the gateway's own process not more often than it has time for.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from gateway import metrics
from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import EngineUnavailable, GatewayError
from gateway.domain.log import Utterance
from gateway.meeting.live_utterances import LiveTranslation
from gateway.meeting.room import Meeting
from gateway.translation.commit_policy import TOLERANCE, CommitPolicy
from gateway.translation.scheduler import PARTIAL, Generated, Scheduler, Ticket

__all__ = ["Interpreter"]

_log = logging.getLogger(__name__)

# Longer texts are left to their final: nobody says so much in one breath, and comparing it takes its time.
_LONGEST = 1_000

# From one translation of an utterance into a language to the next, at least: the time of a word and a half. Half
# of it holds until there is something to read; all along it would show words half a word earlier, cost a sixth
# more tokens and take back twice as many words.
_PACE_S = 0.6

# So much is added to that for each second that the event loop is late, beyond how late it is on a machine whose
# cores others use as well: a loop that is 10 ms late, as is each of the turns that a final takes then, has half as
# much done for utterances of which there is something to read already. Never more than the last: who speaks on for
# so long is shown something all the same.
_YIELDING, _USUAL_LAG_S, _MOST_YIELDING_S = 100.0, 0.004, 5.0

# The event loop may have time again sooner than it seemed, or later.
_LOOK_S = 0.5


class Interpreter:
    """Owns the tasks that translate partials; leaving the context ends them.

    translates: whether it does at all; otherwise partials are only shown in their own language. pace_s: the least
    time between two translations of an utterance into a language; the newest revision waits for it. lag_s: how
    late the event loop is; it has less done for partials then, so that finals are not late.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        *,
        translates: bool = True,
        pace_s: float = _PACE_S,
        lag_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._scheduler = scheduler
        self._translates = translates
        self._pace_s = pace_s
        self._lag_s = lag_s
        self._tasks = asyncio.TaskGroup()
        self._following: set[LiveTranslation] = set()
        self._serial = itertools.count(1)

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for translation in self._following:
            translation.stop()
        await self._tasks.__aexit__(kind, error, trace)

    def hear(self, meeting: Meeting, utterance: Utterance) -> None:
        """A partial came: show it, and translate it into what is read while it is being said."""
        live = meeting.show_partial(utterance)
        if live is None or not self._translates or len(utterance.text) > _LONGEST:
            return
        for lang in meeting.live_languages():
            translation = live.translations.get(lang)
            if lang == utterance.lang:
                if translation is not None:  # the recogniser took it for another language before
                    translation.stop()
                continue
            if translation is None:
                policy = CommitPolicy(utterance.lang, lang)
                # The first is due at once where the event loop has time for it.
                begun_s = time.monotonic() - self._pace_s / 2
                translation = LiveTranslation(lang, policy, utterance, begun_s)
                live.translations[lang] = translation
            self._revise(meeting, translation, utterance)

    def _revise(self, meeting: Meeting, translation: LiveTranslation, utterance: Utterance) -> None:
        """Have the newest revision translated, and no older one any more."""
        lang, ticket = translation.lang, translation.ticket
        under_way = translation.pending or (ticket is not None and not ticket.ending)
        known = translation.revision.text if under_way else translation.translated
        translation.revision, translation.stopped = utterance, False
        if translation.broken:
            metrics.PARTIALS.labels("failed", lang).inc()
            return
        if known == utterance.text:
            metrics.PARTIALS.labels("unchanged", lang).inc()
            return
        if ticket is not None and ticket.exchange(self._request(translation)):
            translation.running = utterance
            metrics.PARTIALS.labels("superseded", lang).inc()
            return
        if translation.pending:
            metrics.PARTIALS.labels("superseded", lang).inc()
        elif ticket is not None:
            self._supersede_in(self._wait_s(translation), translation, ticket)
        translation.pending = True
        if translation not in self._following:
            self._following.add(translation)
            self._tasks.create_task(self._follow(meeting, translation))

    def _supersede_in(self, wait_s: float, translation: LiveTranslation, ticket: Ticket) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(min(max(0.0, wait_s), _LOOK_S), self._supersede, translation, ticket)

    def _supersede(self, translation: LiveTranslation, ticket: Ticket) -> None:
        """End a generation of a revision that is out of date; not two in a row, or nobody would see anything."""
        if translation.ticket is not ticket or not translation.pending or translation.superseded:
            return
        if (wait_s := self._wait_s(translation)) > 0:
            # Not before another one may begin.
            self._supersede_in(wait_s, translation, ticket)
            return
        translation.superseded = True
        ticket.withdraw()

    async def _follow(self, meeting: Meeting, translation: LiveTranslation) -> None:
        """Translate the newest revision, until there is none that was not."""
        try:
            # One at a time: the next is not admitted before the last has given its place back.
            while translation.pending and not translation.broken:
                if (wait_s := self._wait_s(translation)) > 0:
                    # Not all together, or the event loop would be late again.
                    await asyncio.sleep(min(wait_s, _LOOK_S * random.uniform(0.5, 1)))  # noqa: S311 -- no secret
                    continue
                translation.pending, translation.begun_s = False, time.monotonic()
                try:
                    [ticket] = self._scheduler.admit(meeting.id, [self._request(translation)])
                except GatewayError:
                    metrics.PARTIALS.labels("refused", translation.lang).inc()
                    continue
                translation.ticket, translation.running = ticket, translation.revision
                try:
                    await self._translate(meeting, translation, ticket)
                finally:
                    ticket.withdraw()
                    translation.ticket = translation.running = None
        except Exception:
            _log.exception("an unfinished utterance is left to its final")
            translation.broken = True
        finally:
            self._following.discard(translation)

    def _wait_s(self, translation: LiveTranslation) -> float:
        """Until its next generation may begin."""
        nothing_to_read = not translation.committed and not translation.tentative
        pace_s = self._pace_s / 2 if nothing_to_read else self._pace_s
        pace_s += min(_YIELDING * max(0.0, self._lag_s() - _USUAL_LAG_S), _MOST_YIELDING_S)
        return translation.begun_s + pace_s - time.monotonic()

    async def _translate(self, meeting: Meeting, translation: LiveTranslation, ticket: Ticket) -> None:
        policy = translation.policy
        try:
            generated = await ticket.collect()
        except GatewayError as error:
            policy.interrupted(ticket.text)
            if ticket.preempted:
                outcome = "preempted"
                translation.pending = not translation.stopped
            elif ticket.crashes or isinstance(error, EngineUnavailable):
                outcome, translation.broken = "failed", True
            else:
                outcome = "superseded" if translation.pending or translation.stopped else "failed"
        else:
            translation.superseded = False
            if translation.stopped:  # what readers saw is on its way to the final already
                outcome = "superseded"
            else:
                outcome = self._take(translation, generated)
                meeting.show_live(translation)
        metrics.PARTIALS.labels(outcome, translation.lang).inc()

    def _take(self, translation: LiveTranslation, generated: Generated) -> str:
        said = translation.running
        assert said is not None  # noqa: S101 -- set by the caller
        translation.translated = said.text
        # One that ran into the output limit is a model that repeats itself.
        if generated.rejected or generated.truncated:
            return "rejected"
        translation.policy.take(said.text, generated.text)
        return "translated"

    def _request(self, translation: LiveTranslation) -> TranslationRequest:
        said, policy = translation.revision, translation.policy
        return TranslationRequest(
            id=f"partial-{next(self._serial)}",
            text=said.text,
            source=said.lang,
            target=translation.lang,
            options=said.options_for(translation.lang),
            final=False,
            priority=PARTIAL,
            prefix=policy.committed,
            draft=policy.draft,
            tolerance=TOLERANCE,
        )
