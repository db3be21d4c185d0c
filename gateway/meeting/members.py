"""The members of a meeting: who is in it, and who reads which language, kept as they come, change and go.

Knows: what members read and how. Must not know: what is said, who may join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from msgspec import UNSET
from msgspec.structs import asdict

from gateway.domain.log import Publication, Said, Translated, Untranslated, Utterance
from gateway.domain.session_store import NOTHING_HOSTED, Hosted, Present
from gateway.domain.sessions import Stability
from gateway.meeting.feed import Feed
from gateway.meeting.outbox import Payload
from gateway.protocol.messages import (
    MeetingLocked,
    Participant,
    ParticipantJoined,
    ParticipantLeft,
    ParticipantUpdated,
    ServerMessage,
    SessionMuted,
)


@dataclass(eq=False, kw_only=True)
class Member:
    """One participant as the meeting sees it: what it reads, and where that goes."""

    # Public id.
    participant: str
    name: str
    speaks: str | None
    reads: tuple[str, ...]
    stability: Stability
    # Whether it gets captions of every language, not only of those it reads.
    originals: bool = False
    # Who is charged for what it says.
    account: str = ""
    # Offset from which on it gets what is said.
    since: int = 0
    # Languages it no longer reads → offset up to which it still gets their translations.
    stopped: dict[str, int] = field(default_factory=dict)
    # Where it is sent what it reads; None while it is away.
    feed: Feed | None = None
    # Is told when all promised translations of an utterance of its own have an outcome: its id, if one failed.
    on_finished: Callable[[str, bool], None] | None = None
    # Is told when a host has muted it.
    on_muted: Callable[[], None] | None = None
    # As `grants.person_of`.
    person: str = ""

    def gets(self, lang: str, said: int) -> bool:
        """Whether it gets what becomes in `lang` of an utterance that was said at offset `said`."""
        return said >= self.since and (lang in self.reads or said <= self.stopped.get(lang, -1))

    def wants(self, publication: Publication) -> bool:
        """Captions go to their speaker, to readers of their language and to those who asked for all of them;
        outcomes to readers of theirs. What takes something back has no caption."""
        match publication.event:
            case Said(utterance=said):
                if said.is_taking_back:
                    return False
                own = self.participant in (said.participant, said.sender)
                asked = self.originals and publication.offset >= self.since
                return own or asked or self.gets(said.lang, publication.offset)
            case Translated() | Untranslated() as outcome:
                return self.gets(outcome.lang, outcome.said)

    def sees(self, utterance: Utterance) -> bool:
        """Whether it is shown an unfinished utterance as it is said."""
        return self.participant == utterance.participant or self.originals or utterance.lang in self.reads


class Members:
    """Those of one meeting. A change costs as much as the member has languages, however many members there are.

    What it hands out are copies, which stay as they are while members come and go.
    """

    def __init__(self) -> None:
        self._by_participant: dict[str, Member] = {}
        self._reading = _ByLanguage()
        self._reading_live = _ByLanguage()
        # Readers, and those who stopped reading a language and still get what was said before.
        self._getting = _ByLanguage()
        self._originals: dict[Member, None] = {}

    def __len__(self) -> int:
        return len(self._by_participant)

    def __iter__(self) -> Iterator[Member]:
        return iter(tuple(self._by_participant.values()))

    def get(self, participant: str) -> Member | None:
        return self._by_participant.get(participant)

    def add(self, member: Member) -> None:
        self._by_participant[member.participant] = member
        self.note(member)

    def remove(self, member: Member) -> None:
        self._by_participant.pop(member.participant, None)
        for languages in (self._reading, self._reading_live, self._getting):
            languages.put(member, ())
        self._originals.pop(member, None)

    def note(self, member: Member) -> None:
        """What a member reads, or how, may have changed; to be called after every such change."""
        self._reading.put(member, member.reads)
        self._reading_live.put(member, member.reads if member.stability != "final" else ())
        self._getting.put(member, (*member.reads, *member.stopped))
        if member.originals:
            self._originals[member] = None
        else:
            self._originals.pop(member, None)

    def languages(self, but: Member | None = None) -> tuple[str, ...]:
        """Every language that a member reads, in the order of first mention. but: a member that does not count."""
        return self._reading.languages(but)

    def live_languages(self) -> tuple[str, ...]:
        """Those of them that are read while it is being said."""
        return self._reading_live.languages()

    def readers(self, lang: str) -> tuple[Member, ...]:
        """Who reads `lang` now, or did for utterances that may still be translated."""
        return tuple(self._getting.members(lang))

    def hearers(self, utterance: Utterance) -> tuple[Member, ...]:
        """Readers of what was said, those who asked for whatever is said, and who said it.

        Everybody, if it stands in place of something else.
        """
        if utterance.replaces:
            return tuple(self)
        hearers = self._getting.members(utterance.lang) | self._originals
        if (speaker := self.get(utterance.participant)) is not None:
            hearers[speaker] = None
        return tuple(hearers)


class _ByLanguage:
    """Language → members, each in the order in which they came; a language without any is not there."""

    def __init__(self) -> None:
        self._members: dict[str, dict[Member, None]] = {}
        self._languages: dict[Member, tuple[str, ...]] = {}

    def put(self, member: Member, languages: tuple[str, ...]) -> None:
        """Under these languages, and under no others any more."""
        for lang in languages:
            self._members.setdefault(lang, {})[member] = None
        for lang in set(self._languages.pop(member, ())).difference(languages):
            del self._members[lang][member]
            if not self._members[lang]:
                del self._members[lang]
        if languages:
            self._languages[member] = languages

    def members(self, lang: str) -> dict[Member, None]:
        return self._members.get(lang, {})

    def languages(self, but: Member | None = None) -> tuple[str, ...]:
        return tuple(lang for lang, members in self._members.items() if len(members) > (but in members))


class Presence:
    """The participants of one meeting. members: those here, who are told of the others."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._hosted = NOTHING_HOSTED
        # Participant → how they are present now, in the order in which they came.
        self._present: dict[str, Present] = {}
        # Participant → what members were told of them.
        self._told: dict[str, Participant] = {}

    def put(self, participant: str, present: Present | None) -> bool:
        """A participant is present like this now; None: they left. Returns whether members are to be told."""
        if present == self._present.get(participant):
            return False
        if present is not None:
            self._present[participant] = present
        else:
            del self._present[participant]
        return True

    def host(self, hosted: Hosted) -> tuple[list[str], list[Member]]:
        """Hosts have set this. Returns the participants of whom members are to be told, and the members concerned.

        Those are told here whether they are muted now, and all members whether the meeting is locked.
        """
        before, self._hosted = self._hosted, hosted
        if before.locked != hosted.locked:
            self._tell_others("", MeetingLocked(hosted.locked))
        concerned = [each for each in self._members if _differs(before, hosted, each.participant, each.person)]
        for member in concerned:
            if member.feed is not None:
                member.feed.send_now(Payload(SessionMuted(self.is_muted(member))))
        present = self._present.items()
        return [id for id, each in present if _differs(before, hosted, id, each.person)], concerned

    @property
    def is_locked(self) -> bool:
        """Whether a host lets nobody else in."""
        return self._hosted.locked

    def is_muted(self, member: Member) -> bool:
        """Whether a host has muted a member."""
        return self._hosted.mutes(member.participant, member.person)

    def is_alone(self, member: Member) -> bool:
        """Whether nobody else is present, as far as that is shown."""
        return not any(each != member.participant for each in self._present) and len(self._members) == 1

    def clear(self) -> None:
        """Members are not told: all of them connect again, and learn then who is present."""
        self._hosted = NOTHING_HOSTED
        self._present.clear()
        self._told.clear()

    def participants(self, but: str) -> list[Participant]:
        """Everybody else, as members were told of them. but: a participant's id."""
        return [told for each, told in self._told.items() if each != but]

    def seen(self, participant: str) -> Participant | None:
        """As members were told of a participant; None: they were not."""
        return self._told.get(participant)

    def tell_members(self, participant: str) -> None:
        """Tell members what has changed about a participant since they were told."""
        before, present = self._told.get(participant), self._present.get(participant)
        now = None if present is None else self._seen(participant, present)
        if now == before:
            return
        if now is not None:
            self._told[participant] = now
            kind = ParticipantJoined if before is None else ParticipantUpdated
            self._tell_others(participant, kind(**asdict(now)))
        elif before is not None:
            del self._told[participant]
            self._tell_others(participant, ParticipantLeft(**asdict(before)))

    def _seen(self, participant: str, present: Present) -> Participant:
        return Participant(
            participant,
            present.name,
            present.speaks,
            list(present.reads),
            person=present.person or UNSET,
            muted=self._hosted.mutes(participant, present.person) or UNSET,
        )

    def _tell_others(self, participant: str, message: ServerMessage) -> None:
        payload = Payload(message)
        for member in self._members:
            if member.participant != participant and member.feed is not None:
                member.feed.send_now(payload)


def _differs(before: Hosted, after: Hosted, participant: str, person: str) -> bool:
    return before.mutes(participant, person) != after.mutes(participant, person)
