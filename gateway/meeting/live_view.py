"""Shows members what is not in the log: captions of what is being said, and translations as they grow.

Knows: who of the members sees what of it. Must not know: the log, how translations are made, other gateways.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gateway.domain.log import Utterance, UtteranceKey
from gateway.domain.sessions import Stability
from gateway.meeting.live_text import HERE, LiveCaption, LiveText, LiveTranslation
from gateway.meeting.members import Member, Members
from gateway.meeting.payload import Payload
from gateway.protocol.from_domain import caption_message
from gateway.protocol.messages import UtteranceCancelled


class LiveView:
    """What members see, and what a latecomer is shown of it."""

    def __init__(self, members: Members) -> None:
        self.text = LiveText()
        self._members = members

    # ------------------------------------------------------------ what happens

    def show_caption(self, utterance: Utterance, origin: str = HERE) -> None:
        """A revision of an utterance that is being said: to its speaker and to readers of its language."""
        before = self.text.caption_of(utterance.key)
        caption = LiveCaption(utterance, Payload(caption_message(utterance)), origin)
        self.text.caption(caption)
        for reader in self._members.hearers(utterance):
            if reader.feed is not None and reader.sees(utterance):
                reader.feed.show(caption.payload)
        if before is not None and before.utterance.lang != utterance.lang:
            # Whoever was shown it as their language learns that it is another one; the next they do not see.
            for reader in self._members.hearers(before.utterance):
                if reader.feed is not None and reader.sees(before.utterance) and not reader.sees(utterance):
                    reader.feed.show(caption.payload)

    def show_partial(self, shown: LiveTranslation, rev: int, committed: str, tentative: str) -> bool:
        """The translation of an utterance that is being said: all of it now. `shown` is of `text`, and changes.

        Returns whether it has.
        """
        fresh = committed[len(shown.committed) :]
        if not fresh and tentative == shown.tentative:
            return False
        shown.rev, shown.committed, shown.tentative = rev, committed, tentative
        lang = shown.lang
        live, stable = Payload(shown.message(fresh, tentative)), Payload(shown.message(fresh)) if fresh else None
        for reader in self._members.readers(lang):
            payload = live if reader.stability == "live" else stable if reader.stability == "stable" else None
            if payload is not None and reader.feed is not None and lang in reader.reads:
                reader.feed.show(payload)
        return True

    def show_final(self, shown: LiveTranslation, fresh: str) -> None:
        """New text of the translation of an utterance in the log. `shown` is of `text`, and changes."""
        shown.committed += fresh
        lang, said, payload = shown.lang, shown.said or 0, Payload(shown.message(fresh))
        for reader in self._members.readers(lang):
            if reader.stability != "final" and reader.feed is not None and reader.gets(lang, said):
                reader.feed.show(payload)

    def withdraw(self, key: UtteranceKey) -> None:
        """An utterance that is being said will not be finished."""
        self.text.end_partial(key)
        payload = Payload(UtteranceCancelled(*key))
        for member in self._members:
            if member.feed is not None:
                member.feed.show(payload)

    # ------------------------------------------------------------ what somebody sees

    def bring_up_to_date(self, member: Member) -> None:
        """Somebody who has seen nothing of it."""
        _show(member, self._captions_for(member))
        for lang in member.reads:
            _show(member, self.so_far(member, lang, member.since - 1))

    def so_far(self, member: Member, lang: str, after: int) -> Iterator[Payload]:
        """All that readers like this one saw of what is not translated yet and was said behind a position."""
        if member.stability == "final":
            return
        behind = (shown for shown in self.text.finals(lang) if (shown.said or 0) > after)
        for shown in (*behind, *self.text.partials(lang)):
            if (delta := shown.delta(tentative=member.stability == "live")) is not None:
                yield Payload(delta)

    def show_as(self, member: Member, stability: Stability) -> None:
        """Another stability: what is being said is shown as it would have been all along."""
        before, member.stability = member.stability, stability
        if before == stability:
            return
        self._members.note(member)
        for lang in member.reads:
            if before == "final":
                _show(member, self.so_far(member, lang, member.since - 1))
            else:
                _show(member, self._tentative(lang, shown=stability == "live"))

    def show_originals(self, member: Member, originals: bool) -> None:
        """Captions of every language, or of those that are read: what is being said is shown at once."""
        if member.originals == originals:
            return
        seen = list(self._captions_for(member))
        member.originals = originals
        self._members.note(member)
        _show(member, [caption for caption in self._captions_for(member) if caption not in seen])

    def _captions_for(self, member: Member) -> Iterator[Payload]:
        for caption in self.text.captions:
            if member.sees(caption.utterance):
                yield caption.payload

    def _tentative(self, lang: str, *, shown: bool) -> Iterator[Payload]:
        """The tentative text of what is being said, or its end."""
        for partial in self.text.partials(lang):
            if partial.tentative:
                yield Payload(partial.message("", partial.tentative if shown else ""))


def _show(member: Member, payloads: Iterable[Payload]) -> None:
    if member.feed is not None:
        for payload in payloads:
            member.feed.show(payload)
