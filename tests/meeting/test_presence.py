"""Who is present at every gateway, and what the members here are told of it."""

from __future__ import annotations

from typing import Any

from gateway.domain.register import Present
from gateway.meeting.feed import Feed
from gateway.meeting.members import Member, Members
from gateway.meeting.outbox import Outbox
from gateway.meeting.presence import Presence
from gateway.protocol.messages import Participant, ParticipantJoined, ParticipantLeft, ParticipantUpdated

ANA, BO = Present("Ana", "en", ("de",)), Present("Bo", None, ())


class Meeting:
    def __init__(self, *here: str) -> None:
        self.members = Members()
        self.outboxes: dict[str, Outbox] = {}
        for participant in here:
            member = Member(participant=participant, name="", speaks=None, reads=(), stability="live")
            self.outboxes[participant] = Outbox(10**6)
            member.feed = Feed(self.outboxes[participant], 0, participant=participant, wants=member.wants)
            self.members.add(member)
        self.presence = Presence(self.members)

    async def told(self, participant: str) -> list[Any]:
        outbox = self.outboxes[participant]
        return [payload.message for payload in await outbox.get()] if outbox.bytes else []


async def test_members_are_told_of_the_others_wherever_they_are() -> None:
    meeting = Meeting("ana", "cy")
    meeting.presence.put("ana", ANA)
    assert await meeting.told("ana") == []
    assert await meeting.told("cy") == [ParticipantJoined("ana", "Ana", "en", ["de"])]
    for present, message in (
        (BO, ParticipantJoined("bo", "Bo", None, [])),
        (Present("Bob", "fr", ("de",)), ParticipantUpdated("bo", "Bob", "fr", ["de"])),
        (None, ParticipantLeft("bo", "Bob", "fr", ["de"])),
    ):
        meeting.presence.put("bo", present)
        assert await meeting.told("ana") == await meeting.told("cy") == [message]


async def test_what_is_known_is_not_told_again() -> None:
    meeting = Meeting("cy")
    meeting.presence.put("bo", None)
    for _ in range(2):
        meeting.presence.put("ana", ANA)
    assert [type(message) for message in await meeting.told("cy")] == [ParticipantJoined]


async def test_who_is_away_is_told_nothing() -> None:
    meeting = Meeting("cy")
    for member in meeting.members:
        member.feed = None
    meeting.presence.put("ana", ANA)
    assert await meeting.told("cy") == []


def test_everybody_else_in_the_order_in_which_they_came() -> None:
    presence = Meeting().presence
    presence.put("bo", BO)
    presence.put("ana", ANA)
    presence.put("bo", Present("Bob", None, ()))
    assert presence.participants(but="cy") == [
        Participant("bo", "Bob", None, []),
        Participant("ana", "Ana", "en", ["de"]),
    ]
    assert [other.participant for other in presence.participants(but="bo")] == ["ana"]
