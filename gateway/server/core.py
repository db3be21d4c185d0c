"""The parts of the gateway that a connection works with, and what they tell a session that starts.

Knows: which they are. Must not know: sockets, messages that come.
"""

from __future__ import annotations

from msgspec import UNSET, Struct

from gateway.domain.engine import EngineProfile, EngineState
from gateway.domain.errors import Draining, EngineRestarting, EngineUnavailable
from gateway.domain.grants import meeting_name
from gateway.domain.languages import AUTO
from gateway.domain.ports import Engine
from gateway.protocol.checks import targets_by_source
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    ClientMessage,
    SessionStart,
    SessionStarted,
    SessionUpdate,
    UtteranceFinal,
    UtterancePartial,
)
from gateway.server.guard.audit import Audit
from gateway.server.guard.identity import Identity
from gateway.server.translate.detection import Detector
from gateway.sessions.entrance import Entry
from gateway.sessions.sessions import Sessions
from gateway.translation.scheduling.scheduler import Scheduler


class Core(Struct, frozen=True):
    """What a connection carries effects out with."""

    engine: Engine
    scheduler: Scheduler
    sessions: Sessions
    limits: Limits
    identity: Identity
    audit: Audit
    detector: Detector

    @property
    def draining(self) -> bool:
        """Whether newcomers are turned away because the gateway is about to stop."""
        return self.scheduler.draining

    def restarting(self) -> EngineRestarting | None:
        """What a newcomer is told while the engine is built again."""
        health = self.engine.health()
        return EngineRestarting(health.reason) if health.state is EngineState.RESTARTING else None

    def profile(self) -> EngineProfile | None:
        """What the model can do; None while the engine is loading."""
        try:
            return self.engine.profile()
        except EngineUnavailable:
            return None

    async def prepare(self, message: ClientMessage) -> None:
        """What is needed to handle a message: the detector's model, where a language is to be detected."""
        match message:
            case SessionStart(speaks=str() as lang) | SessionUpdate(speaks=str() as lang):
                pass
            case UtterancePartial(lang=str() as lang) | UtteranceFinal(lang=str() as lang):
                pass
            case _:
                return
        if lang.lower() == AUTO:
            await self.detector.load()

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
            record=UNSET if seat.room.recorded else False,
        )


def leaving() -> Draining:
    """Why a newcomer is turned away while the gateway drains."""
    return Draining("The gateway is shutting down; reconnect.", retry_after_ms=1_000)
