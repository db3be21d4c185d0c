"""The meetings that have members, or in which something is still to be translated.

Knows: which rooms are open, and when one is not needed any more. Must not know: sessions, what a room does.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Protocol

from gateway.meeting.room import Room


class NewRoom(Protocol):
    """Makes the room of a meeting, not open yet; arguments as those of `Room`."""

    def __call__(self, meeting: str, /, *, private: bool, account: str, record: bool | None) -> Room: ...


class Rooms:
    """Opens and closes rooms."""

    def __init__(self, new_room: NewRoom) -> None:
        self._new_room = new_room
        # By the meeting's key.
        self._rooms: dict[str, Room] = {}
        # Rooms that are about to get a member → how many.
        self._entering: dict[Room, int] = {}

    def __len__(self) -> int:
        return len(self._rooms)

    def __iter__(self) -> Iterator[Room]:
        return iter(self._rooms.values())

    @contextlib.asynccontextmanager
    async def enter(
        self, meeting: str, *, private: bool, account: str = "", record: bool | None = None
    ) -> AsyncIterator[Room]:
        """The meeting's room, open; it stays while the context lasts, and as long as it has members.

        record: as in `EventLog.subscribe`, if this begins the meeting.
        """
        room = self._rooms.get(meeting)
        if room is None:
            room = self._new_room(meeting, private=private, account=account, record=record)
            self._rooms[meeting] = room
        # It may have been opened for what was left unfinished.
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
        """Let go of rooms without members, and of languages without readers.

        busy: whether something is still to be done in a room. Raises `LogUnavailable`.
        """
        empty = [room for room in self if not (room.members or busy(room) or room in self._entering)]
        for room in empty:
            del self._rooms[room.id]
        await asyncio.gather(*(room.close() for room in empty))
        for room in list(self):
            room.elsewhere.sweep()
            await room.tell_languages()
