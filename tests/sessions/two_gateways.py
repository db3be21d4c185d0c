"""Two gateways on one store, without sockets: what clients at both of them see."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from gateway.domain.log import Translated
from gateway.protocol.limits import Limits
from gateway.protocol.messages import UtteranceFinal
from gateway.sessions.entrance import Entry
from gateway.sessions.machine import Accept
from gateway.stores.memory_session_store import MemorySessions, MemorySessionStore
from tests.live_channel import MemoryLiveChannel, Switchboard
from tests.sessions.desk import Connection, Desk, desk
from tests.sessions.talk import only
from tests.translation.stage import Log, idle
from tests.usual import usual


class Two:
    """`here` and `there` share a log and a session store, whose clock is `now_s`."""

    here: Desk
    there: Desk

    def __init__(self) -> None:
        self.now_s = 0.0

    async def pass_time(self, seconds: int, *gateways: Desk) -> None:
        """Second by second; the others are not heard of."""
        for _ in range(seconds):
            self.now_s += 1
            for gateway in gateways:
                gateway.now_s += 1
                await gateway.session_store.sweep()
                await gateway.sessions.sweep()
            await idle()


@contextlib.asynccontextmanager
async def two(limits: Limits | None = None, *, live: bool = False, **options: Any) -> AsyncIterator[Two]:
    """With `live`, each hears what is being said at the other."""
    both, log, limits = Two(), Log(), limits or Limits(keep_s=60)
    switchboard = Switchboard()
    one_channel, another_channel = (MemoryLiveChannel(switchboard) if live else None for _ in range(2))
    store = usual(MemorySessions, keep_s=limits.keep_s, wall_clock=lambda: both.now_s)
    log.store.fence_of = store.fence_of
    one, another = MemorySessionStore(store), MemorySessionStore(store)
    async with (
        desk(limits, log=log, session_store=one, channel=one_channel, **options) as both.here,
        desk(
            limits, log=Log(store=log.store), session_store=another, channel=another_channel, **options
        ) as both.there,
    ):
        yield both


async def says(d: Desk, entry: Entry, connection: Connection, text: str) -> bool:
    """A final with its text as its id. Returns whether it was known."""
    accept = only(Accept, connection.send(UtteranceFinal(text, 1, text)))
    return await d.sessions.accept(entry.session, accept)


async def translated(d: Desk, meeting: str = "m") -> list[tuple[str, str]]:
    """Utterance and language of each translation in the log."""
    events = [publication.event for publication in (await d.core.log.read(meeting, 0)).publications]
    return [(event.utterance, event.lang) for event in events if isinstance(event, Translated)]
