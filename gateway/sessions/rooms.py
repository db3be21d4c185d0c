"""The meetings that somebody is in, or in which something is still to be translated.

Knows: which rooms are open, and when one is not needed any more. Must not know: sessions, what a room does.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator

from gateway.domain.log import UtteranceKey
from gateway.domain.ports import EventLog, LiveChannel, Register
from gateway.meeting.room import Room


class Rooms:
    """Opens and closes the rooms of a log and a register.

    snapshot: utterances that a latecomer is shown. channel: to other gateways; None if there are none.
    """

    def __init__(
        self,
        log: EventLog,
        register: Register,
        snapshot: int,
        channel: LiveChannel | None = None,
        # Stops what this gateway translates of an utterance that was cancelled at another one.
        cancel: Callable[[Room, UtteranceKey], None] = lambda _room, _key: None,
    ) -> None:
        self._cancel = cancel
        self._log = log
        self._register = register
        self._channel = channel
        self._snapshot = snapshot
        # By the meeting's key.
        self._rooms: dict[str, Room] = {}
        # Rooms that somebody is about to be in → how many.
        self._entering: dict[Room, int] = {}

    def __len__(self) -> int:
        return len(self._rooms)

    def __iter__(self) -> Iterator[Room]:
        return iter(self._rooms.values())

    @contextlib.asynccontextmanager
    async def enter(
        self, meeting: str, *, private: bool, account: str = "", record: bool | None = None
    ) -> AsyncIterator[Room]:
        """The meeting's room, open; it stays while the context lasts, and as long as somebody is in it.

        record: as in `EventLog.subscribe`, if nobody has begun the meeting yet.
        """
        room = self._rooms.get(meeting)
        if room is None:
            room = self._rooms[meeting] = Room(
                meeting,
                self._log,
                private=private,
                snapshot=self._snapshot,
                account=account,
                record=record,
                present=self._register.subscribe,
                channel=self._channel,
                cancel=self._cancel,
            )
        # Whoever opened it may have done so for what was left unfinished.
        room.private = room.private or private
        self._entering[room] = self._entering.get(room, 0) + 1
        try:
            await room.open()
            yield room
        finally:
            self._entering[room] -= 1
            if not self._entering[room]:
                del self._entering[room]

    def without_their_log(self) -> list[Room]:
        """Rooms whose log has been lost, and begun again."""
        return [room for room in self if room.has_lost_its_log]

    async def close(self) -> None:
        """Let go of all of them."""
        await asyncio.gather(*(room.close() for room in self))

    async def sweep(self, busy: Callable[[Room], bool]) -> None:
        """Let go of rooms that nobody is in, and of languages that nobody reads.

        busy: whether something is still to be done in a room. Raises `LogUnavailable`.
        """
        empty = [room for room in self if not (room.members or busy(room) or room in self._entering)]
        for room in empty:
            del self._rooms[room.id]
        await asyncio.gather(*(room.close() for room in empty))
        for room in list(self):
            room.elsewhere.sweep()
            await room.tell_languages()
