"""The parts of the gateway that a connection works with, and what they tell a session that starts.

Knows: which they are. Must not know: sockets, messages that come.
"""

from __future__ import annotations

from msgspec import Struct

from gateway.domain.engine import EngineProfile
from gateway.domain.errors import EngineUnavailable
from gateway.domain.grants import meeting_name
from gateway.domain.ports import Engine
from gateway.protocol.checks import targets_by_source
from gateway.protocol.limits import Limits
from gateway.protocol.messages import SessionStarted
from gateway.server.guard.audit import Audit
from gateway.server.guard.identity import Identity
from gateway.sessions.entrance import Entry
from gateway.sessions.registry import Registry
from gateway.translation.finals import Finals
from gateway.translation.partials import Partials
from gateway.translation.scheduling.scheduler import Scheduler

__all__ = ["Core"]


class Core(Struct, frozen=True):
    """What a connection carries effects out with."""

    engine: Engine
    scheduler: Scheduler
    finals: Finals
    partials: Partials
    registry: Registry
    limits: Limits
    identity: Identity
    audit: Audit

    def profile(self) -> EngineProfile | None:
        """What the model can do; None while the engine is loading."""
        try:
            return self.engine.profile()
        except EngineUnavailable:
            return None

    def started(self, entry: Entry) -> SessionStarted:
        """The answer to a `session.start`. Raises `EngineUnavailable`."""
        seat, profile = entry.seat, self.engine.profile()
        return SessionStarted(
            session=seat.secret,
            participant=seat.member.participant,
            meeting=meeting_name(seat.room.id),
            epoch=seat.room.epoch,
            offset=entry.feed.position,
            recovered=entry.recovered,
            languages=list(profile.languages),
            participants=seat.room.presence.participants(but=seat.member.participant),
            options=sorted(profile.options),
            limits=self.limits,
            targets=targets_by_source(profile),
        )
