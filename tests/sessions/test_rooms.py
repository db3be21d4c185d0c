"""Which rooms are open, and which are let go of."""

from __future__ import annotations

from functools import partial

from gateway.meeting.members import Member
from gateway.meeting.room import Room
from gateway.sessions.rooms import Rooms
from gateway.stores.memory_log import MemoryEventLog, MemoryStore
from tests.usual import usual


def quiet(_room: Room) -> bool:
    return False


def member(name: str) -> Member:
    return Member(participant=name, name=name, speaks=None, reads=("ja",), stability="live")


async def test_a_room_stays_while_somebody_is_in_it_or_about_to_be_or_something_is_to_be_done() -> None:
    rooms = Rooms(partial(Room, log=MemoryEventLog(usual(MemoryStore)), snapshot=10))
    ana = member("ana")
    async with rooms.enter("m", private=False) as room:
        await rooms.sweep(quiet)
        async with rooms.enter("m", private=False) as same:
            assert same is room
        await rooms.sweep(quiet)
        room.join(ana)
    await rooms.sweep(quiet)
    assert list(rooms) == [room]
    room.leave(ana)
    await rooms.sweep(lambda busy: busy is room)
    assert list(rooms) == [room]
    await rooms.sweep(quiet)
    assert len(rooms) == 0
    async with rooms.enter("m", private=False) as another:
        assert another is not room
