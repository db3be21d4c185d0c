"""Who is in a meeting and who reads what, against what a look at every member finds."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from gateway.domain.log import Utterance
from gateway.domain.session_store import Present
from gateway.domain.sessions import Preferences, Stability
from gateway.meeting.feed import Feed
from gateway.meeting.members import Member, Members, Presence
from gateway.meeting.outbox import Outbox
from gateway.meeting.room import Room
from gateway.protocol.messages import Participant, ParticipantJoined, ParticipantLeft, ParticipantUpdated
from gateway.stores.memory_log import MemoryEventLog, MemoryStore
from tests.usual import usual

LANGUAGES = ("de", "en", "ja")
STABILITIES: tuple[Stability, ...] = ("live", "stable", "final")

reading = st.fixed_dictionaries(
    {
        "reads": st.lists(st.sampled_from(LANGUAGES), unique=True).map(tuple),
        "stability": st.sampled_from(STABILITIES),
        "originals": st.booleans(),
    }
)


def meeting() -> Room:
    return Room(
        "m",
        MemoryEventLog(usual(MemoryStore, max_publications=10, keep_s=60, max_bytes=10**6)),
        private=False,
        snapshot=5,
    )


def a_member(name: str, **fields: Any) -> Member:
    fields = {"reads": (), "stability": "live", **fields}
    return Member(participant=name, name=name, speaks=None, **fields)


def said(participant: str, lang: str) -> Utterance:
    return Utterance("1", 1, "text", lang, participant, participant, final=False)


class ComingAndGoing(RuleBasedStateMachine):
    """What the meeting keeps is what its members say, after whatever they did."""

    members = Bundle("members")

    def __init__(self) -> None:
        super().__init__()
        self.meeting = meeting()
        self.here: list[Member] = []
        self.joined = 0

    @rule(target=members, reading=reading, stopped=st.sets(st.sampled_from(LANGUAGES)))
    def join(self, reading: dict[str, Any], stopped: set[str]) -> Member:
        self.joined += 1
        member = a_member(f"p{self.joined}", stopped=dict.fromkeys(stopped, 0), **reading)
        self.meeting.join(member)
        self.here.append(member)
        return member

    @rule(member=members, reading=reading, name=st.sampled_from(["Ana", "Bo"]))
    def update(self, member: Member, reading: dict[str, Any], name: str) -> None:
        self.meeting.update(member, name, Preferences(None, **reading))

    @rule(member=members)
    def start_over(self, member: Member) -> None:
        self.meeting.start_over(member, 1)

    @rule(member=consumes(members))
    def leave(self, member: Member) -> None:
        for _ in range(2):  # the second time nothing happens
            self.meeting.leave(member)
        self.here.remove(member)

    @invariant()
    def members_are_those_who_are_here(self) -> None:
        assert list(self.meeting.members) == self.here
        assert len(self.meeting.members) == len(self.here)

    @invariant()
    def languages_are_those_that_are_read(self) -> None:
        for but in (None, *self.here):
            others = [member for member in self.here if member is not but]
            assert sorted(self.meeting.members.languages(but)) == sorted(
                {lang for m in others for lang in m.reads}
            )
        live = {lang for member in self.here if member.stability != "final" for lang in member.reads}
        assert sorted(self.meeting.members.live_languages()) == sorted(live)

    @invariant()
    def readers_read_it_now_or_did_before(self) -> None:
        for lang in LANGUAGES:
            readers = {member for member in self.here if lang in member.reads or lang in member.stopped}
            kept = self.meeting.members.readers(lang)
            assert set(kept) == readers
            assert len(kept) == len(readers)

    @invariant()
    def hearers_are_readers_speaker_and_who_asked(self) -> None:
        for lang in LANGUAGES:
            for speaker in ("nobody", *(member.participant for member in self.here)):
                hearers = {
                    member
                    for member in self.here
                    if lang in (*member.reads, *member.stopped)
                    or member.originals
                    or member.participant == speaker
                }
                kept = self.meeting.members.hearers(said(speaker, lang))
                assert set(kept) == hearers
                assert len(kept) == len(hearers)


TestComingAndGoing = ComingAndGoing.TestCase
TestComingAndGoing.settings = settings(max_examples=60, stateful_step_count=25)


def test_leaving_reader_does_not_cost_others_their_turn() -> None:
    ours = meeting()
    members = [a_member(f"p{n}", reads=("ja",), originals=n % 2 == 0) for n in range(4)]
    for member in members:
        ours.join(member)
    for told in (ours.members, ours.members.readers("ja"), ours.members.hearers(said("p0", "ja"))):
        seen = []
        for member in told:
            seen.append(member)
            ours.leave(members[-1])
            ours.join(a_member(f"{len(seen)} more", reads=("ja",)))
        assert seen[:3] == members[:3]
        assert members[-1] in seen
        for member in list(ours.members)[3:]:
            ours.leave(member)
        ours.join(members[-1])


def test_languages_keep_their_first_read_order() -> None:
    ours = meeting()
    first, second = a_member("a", reads=("ja", "en")), a_member("b", reads=("de", "ja"))
    ours.join(first)
    ours.join(second)
    assert ours.members.languages() == ("ja", "en", "de")
    ours.update(first, "a", Preferences(None, ("fr",), "final"))
    assert ours.members.languages() == ("ja", "de", "fr")
    assert ours.members.live_languages() == ("ja", "de")
    assert ours.members.languages(but=second) == ("fr",)


# ---------------------------------------------------------------- presence


ANA, BO = Present("Ana", "en", ("de",)), Present("Bo", None, ())


class Told:
    def __init__(self, *here: str) -> None:
        self.members = Members()
        self.outboxes: dict[str, Outbox] = {}
        for participant in here:
            member = Member(participant=participant, name="", speaks=None, reads=(), stability="live")
            self.outboxes[participant] = Outbox(10**6)
            member.feed = Feed(self.outboxes[participant], 0, participant=participant, wants=member.wants)
            self.members.add(member)
        self.presence = Presence(self.members)

    def put(self, participant: str, present: Present | None) -> None:
        if self.presence.put(participant, present):
            self.presence.tell_members(participant)

    async def told(self, participant: str) -> list[Any]:
        outbox = self.outboxes[participant]
        return [payload.message for payload in await outbox.get()] if outbox.bytes else []


async def test_members_see_participants_of_every_gateway() -> None:
    meeting = Told("ana", "cy")
    meeting.put("ana", ANA)
    assert await meeting.told("ana") == []
    assert await meeting.told("cy") == [ParticipantJoined("ana", "Ana", "en", ["de"])]
    for present, message in (
        (BO, ParticipantJoined("bo", "Bo", None, [])),
        (Present("Bob", "fr", ("de",)), ParticipantUpdated("bo", "Bob", "fr", ["de"])),
        (None, ParticipantLeft("bo", "Bob", "fr", ["de"])),
    ):
        meeting.put("bo", present)
        assert await meeting.told("ana") == await meeting.told("cy") == [message]


async def test_what_is_known_is_not_told_again() -> None:
    meeting = Told("cy")
    meeting.put("bo", None)
    for _ in range(2):
        meeting.put("ana", ANA)
    assert [type(message) for message in await meeting.told("cy")] == [ParticipantJoined]


async def test_who_is_away_is_told_nothing() -> None:
    meeting = Told("cy")
    for member in meeting.members:
        member.feed = None
    meeting.put("ana", ANA)
    assert await meeting.told("cy") == []


def test_everybody_else_in_the_order_in_which_they_came() -> None:
    meeting = Told()
    meeting.put("bo", BO)
    meeting.put("ana", ANA)
    meeting.put("bo", Present("Bob", None, ()))
    presence = meeting.presence
    assert presence.participants(but="cy") == [
        Participant("bo", "Bob", None, []),
        Participant("ana", "Ana", "en", ["de"]),
    ]
    assert [other.participant for other in presence.participants(but="bo")] == ["ana"]


async def test_who_comes_and_leaves_before_anybody_is_told() -> None:
    meeting = Told("cy")
    presence = meeting.presence
    presence.put("bo", BO)
    presence.put("ana", ANA)
    assert presence.participants(but="cy") == []
    presence.put("bo", None)
    presence.put("ana", Present("Anna", "en", ()))
    for participant in ("bo", "ana"):
        presence.tell_members(participant)
    assert await meeting.told("cy") == [ParticipantJoined("ana", "Anna", "en", [])]
    assert [each.participant for each in presence.participants(but="cy")] == ["ana"]
