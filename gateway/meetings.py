"""The meeting: who is in it, what was said, and who gets to read what.

Knows: members and their languages, the position in the meeting's log, which translations are outstanding.
Must not know: how a translation is made (`publisher`), sockets, session rules.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from msgspec import Struct

from gateway.events import Utterance
from gateway.messages import Caption, ServerMessage, UtteranceAccepted
from gateway.outbox import Outbox

__all__ = ["Meeting", "Member"]


class Member(Struct, eq=False):
    """One session's presence: what it reads, where its messages go, and whom to tell when its own work is done.

    settled: called with the id of an utterance of this member once every language of it has ended, and whether
        any of them failed.
    """

    session: str
    name: str
    reads: tuple[str, ...]
    outbox: Outbox
    settled: Callable[[str, bool], None]


class _Outstanding(Struct):
    """An accepted utterance: the languages that have not ended, and whether one that has, failed."""

    languages: set[str]
    failed: bool = False


class Meeting:
    """Speakers publish into it, readers receive from it."""

    def __init__(self, meeting_id: str) -> None:
        self.id = meeting_id
        self.epoch = secrets.token_hex(4)
        self.offset = 0
        self._members: dict[str, Member] = {}
        self._outstanding: dict[tuple[str, str], _Outstanding] = {}

    def join(self, member: Member) -> None:
        self._members[member.session] = member

    def leave(self, session: str) -> None:
        self._members.pop(session, None)

    def languages(self) -> tuple[str, ...]:
        """Every language somebody reads, in the order of first mention."""
        return tuple(dict.fromkeys(lang for member in self._members.values() for lang in member.reads))

    def next_offset(self) -> int:
        """The position of the publication about to be made."""
        self.offset += 1
        return self.offset

    def accept(self, session: str, utterance: Utterance, languages: tuple[str, ...]) -> None:
        """A final utterance is now the meeting's duty: acknowledge it, show it, expect its translations."""
        self._outstanding[session, utterance.id] = _Outstanding(set(languages))
        speaker = self._members[session]
        speaker.outbox.put(UtteranceAccepted(utterance.id, utterance.rev, self.next_offset()))
        caption = Caption(
            utterance.id, utterance.speaker, utterance.lang, utterance.rev, utterance.text, final=True
        )
        for member in self._members.values():
            if member is speaker or utterance.lang in member.reads:
                member.outbox.put(caption)
        self._settle(session, utterance.id)

    def readers(self, lang: str) -> list[Member]:
        """Who reads `lang` now: whoever changes their languages still gets what was begun for them."""
        return [member for member in self._members.values() if lang in member.reads]

    def publish(self, readers: list[Member], message: ServerMessage) -> None:
        """Send to those of `readers` that are still here."""
        for reader in readers:
            if reader.session in self._members:
                reader.outbox.put(message)

    def ended(self, session: str, utterance: str, lang: str, *, failed: bool) -> None:
        """The translation of an accepted utterance into `lang` has ended, one way or the other."""
        if (outstanding := self._outstanding.get((session, utterance))) is not None:
            outstanding.languages.discard(lang)
            outstanding.failed |= failed
            self._settle(session, utterance)

    def _settle(self, session: str, utterance: str) -> None:
        outstanding = self._outstanding[session, utterance]
        if outstanding.languages:
            return
        del self._outstanding[session, utterance]
        if (member := self._members.get(session)) is not None:
            member.settled(utterance, outstanding.failed)
