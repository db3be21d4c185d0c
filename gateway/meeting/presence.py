"""Who is present in a meeting, at every gateway, and telling the members here of it.

Knows: the participants that are announced, as the register delivers them. Must not know: which of them are members
here, who may join, what is said.
"""

from __future__ import annotations

from gateway.domain.register import Present
from gateway.meeting.members import Members
from gateway.meeting.payload import Payload
from gateway.protocol.messages import (
    Participant,
    ParticipantJoined,
    ParticipantLeft,
    ParticipantUpdated,
    ServerMessage,
)


class Presence:
    """The participants of one meeting. members: those here, who are told of the others."""

    def __init__(self, members: Members) -> None:
        self._members = members
        # Participant → how the others see them, in the order in which they came.
        self._present: dict[str, Present] = {}

    def put(self, participant: str, present: Present | None) -> None:
        """Somebody is present like this now; None: they left."""
        before = self._present.get(participant)
        if present == before:
            return
        if present is not None:
            self._present[participant] = present
            kind = ParticipantJoined if before is None else ParticipantUpdated
            self._tell_others(participant, kind(*_fields(participant, present)))
        elif before is not None:
            del self._present[participant]
            self._tell_others(participant, ParticipantLeft(*_fields(participant, before)))

    def clear(self) -> None:
        """Nobody is told: everybody here connects again, and is told who is present."""
        self._present.clear()

    def participants(self, but: str) -> list[Participant]:
        """Everybody else who is announced. but: a participant's id."""
        return [Participant(*_fields(each, present)) for each, present in self._present.items() if each != but]

    def _tell_others(self, participant: str, message: ServerMessage) -> None:
        payload = Payload(message)
        for member in self._members:
            if member.participant != participant and member.feed is not None:
                member.feed.tell(payload)


def _fields(participant: str, present: Present) -> tuple[str, str, str | None, list[str]]:
    return (participant, present.name, present.speaks, list(present.reads))
