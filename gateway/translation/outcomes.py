"""Writes the outcomes of promises to the log.

Knows: that the log takes each in the end. Must not know: how a translation is made, who reads it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Collection, Coroutine
from typing import TypeVar

from gateway import metrics
from gateway.domain.errors import GatewayError, LogUnavailable
from gateway.domain.log import Translated, Untranslated, Utterance
from gateway.meeting.room import Room
from gateway.translation.owned import Owned

Of = TypeVar("Of")

_log = logging.getLogger(__name__)

# An outcome that the log does not take is offered again, after so many seconds, and then every `_RETRY_S`.
_RETRIES_S = (0.1, 0.5, 2.0)
_RETRY_S = 5.0


class Outcomes:
    """What is being written. From the moment an outcome is handed in, its promise is not owned any more."""

    def __init__(self, owned: Owned) -> None:
        self._owned = owned
        # Meeting → how many are being written.
        self._writing: Counter[Room] = Counter()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._leaving = asyncio.Event()

    def __contains__(self, room: Room) -> bool:
        """Whether an outcome of the meeting is being written."""
        return room in self._writing

    def leave(self) -> None:
        """Wait no longer for a log that takes nothing."""
        self._leaving.set()

    async def quiet(self) -> None:
        """Wait until nothing is being written."""
        await self._quiet.wait()

    async def write(
        self, room: Room, outcome: Translated | Untranslated, delayed: Callable[[], None] = lambda: None
    ) -> None:
        """Offer an outcome until the log takes it, and wait until readers have it.

        delayed: is called whenever the log does not take it.
        """
        # Before, not after: once the log has it, its speaker may have it promised again.
        self._owned.remove(room, outcome.said, outcome.lang)
        self._begin(room)
        try:
            await self._write(room, outcome, delayed)
        finally:
            self._end(room)

    def leave_out(
        self, room: Room, utterance: Utterance, said: int, languages: Collection[str], error: GatewayError
    ) -> Coroutine[None, None, None]:
        """It is in the log, and is not translated into these languages: write why."""
        for lang in languages:
            self._owned.remove(room, said, lang)
        self._begin(room)
        return self._leave_out(room, utterance, said, languages, error)

    async def _leave_out(
        self, room: Room, utterance: Utterance, said: int, languages: Collection[str], error: GatewayError
    ) -> None:
        try:
            for lang in languages:
                metrics.TRANSLATIONS.labels(error.code, lang).inc()
                await self._write(room, untranslated(utterance, said, lang, error))
        finally:
            self._end(room)

    async def _write(
        self, room: Room, outcome: Translated | Untranslated, delayed: Callable[[], None] = lambda: None
    ) -> None:
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
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._leaving.wait()

    def _begin(self, room: Room) -> None:
        self._writing[room] += 1
        self._quiet.clear()

    def _end(self, room: Room) -> None:
        one_less(self._writing, room)
        if not self._writing:
            self._quiet.set()


def one_less(counts: Counter[Of], of: Of) -> None:
    """Counts have nothing in them that is 0."""
    counts[of] -= 1
    if not counts[of]:
        del counts[of]


def untranslated(utterance: Utterance, said: int, lang: str, error: GatewayError) -> Untranslated:
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
