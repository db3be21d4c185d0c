"""Reads from a meeting's log what an earlier process knew of its sessions.

Knows: logs, and the protocol state of a session. Must not know: which sessions there are (`registry`).
"""

from __future__ import annotations

from gateway.domain.sessions import KeptSession
from gateway.meeting.room import Room
from gateway.protocol.limits import Limits
from gateway.sessions.machine import Session

__all__ = ["recalled"]


async def recalled(room: Room, kept: KeptSession, limits: Limits) -> Session:
    """A session's protocol state, as far as the log tells it. Raises `LogUnavailable`."""
    state = Session(limits)
    state.participant, state.grant = kept.participant, kept.grant
    for record in await room.said_by(kept.participant):
        missing = bool(record.missing())
        state.recall(record.utterance, failed=not missing and record.failed, in_flight=missing)
    return state
