"""Shows members what is not in the log: captions of what is being said, and translations as they grow.

Knows: who of the members sees what of it. Must not know: the log, how translations are made, other gateways.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct

from gateway.domain.log import Utterance, UtteranceKey
from gateway.domain.sessions import Stability
from gateway.meeting.members import Member, Members
from gateway.meeting.outbox import Payload
from gateway.protocol.from_domain import caption_message
from gateway.protocol.messages import TranslationDelta, UtteranceCancelled

# The origin of what this gateway makes, and of what some gateway is about to make.
HERE, SOMEWHERE = "", "?"

# Open utterances of one participant: a recogniser has one, rarely two. One more closes the one that was revised
# least recently, which may have been forgotten by its client.
MOST_OPEN = 3

# Closed utterances of one participant that are remembered. One that was opened again would be shown from its
# beginning to readers who have a part of it.
MOST_CLOSED = 20
MOST_SHOWN = MOST_OPEN + MOST_CLOSED


class LiveCaption(Struct, frozen=True):
    """The newest revision of an utterance that is being said, and its message."""

    utterance: Utterance
    payload: Payload
    # The gateway of its speaker.
    origin: str = HERE

    def says(self, other: LiveCaption) -> bool:
        """Whether a reader of one needs not be shown the other."""
        mine, theirs = self.utterance, other.utterance
        return (mine.text, mine.lang, self.origin) == (theirs.text, theirs.lang, other.origin)


class LiveTranslation(Struct):
    """All that was shown of one translation that is not complete."""

    # The utterance's.
    key: UtteranceKey
    # The revision it was made of.
    rev: int
    lang: str
    # Never taken back.
    committed: str = ""
    # Replaced by what comes next; of partials only.
    tentative: str = ""
    # Offset of the utterance's `Said`; None while it is being said.
    said: int | None = None
    # The gateway that translates it.
    origin: str = HERE
    # Characters of it that other gateways were told.
    told: int = 0

    def delta(self, *, tentative: bool) -> TranslationDelta | None:
        """All of it, for a reader who saw nothing of it."""
        shown = self.tentative if tentative else ""
        if not self.committed and not shown:
            return None
        return self.message(self.committed, shown)

    def message(self, committed: str, tentative: str = "") -> TranslationDelta:
        return TranslationDelta(*self.key, self.lang, self.rev, committed, tentative)


class LiveText:
    """What a latecomer is shown beside the log."""

    def __init__(self) -> None:
        self._captions: dict[UtteranceKey, LiveCaption] = {}
        # Language → utterance → what was shown of its translation.
        self._partials: dict[str, dict[UtteranceKey, LiveTranslation]] = {}
        self._finals: dict[str, dict[UtteranceKey, LiveTranslation]] = {}

    @property
    def captions(self) -> Iterator[LiveCaption]:
        yield from self._captions.values()

    def caption_of(self, key: UtteranceKey) -> LiveCaption | None:
        """The newest revision of an utterance that is being said."""
        return self._captions.get(key)

    def partials(self, lang: str | None = None) -> Iterator[LiveTranslation]:
        """Translations of utterances that are being said; in one language, or in all."""
        yield from _of(self._partials, lang)

    def finals(self, lang: str | None = None) -> Iterator[LiveTranslation]:
        """Translations of utterances that are in the log; in one language, or in all."""
        yield from _of(self._finals, lang)

    def caption(self, caption: LiveCaption) -> None:
        self._captions[caption.utterance.key] = caption

    def partial(self, utterance: Utterance, lang: str) -> LiveTranslation:
        """The translation of an utterance that is being said; this is its newest revision."""
        return self.partial_of(utterance.key, utterance.rev, lang, HERE)

    def partial_of(self, key: UtteranceKey, rev: int, lang: str, origin: str) -> LiveTranslation:
        """As `partial`. It goes on where another gateway has left it."""
        shown = self._partials.setdefault(lang, {}).setdefault(key, LiveTranslation(key, rev, lang))
        shown.origin, shown.rev = origin, rev
        return shown

    def committed(self, key: UtteranceKey, lang: str) -> str:
        """What was shown for good of an utterance while it was being said."""
        shown = self._partials.get(lang, {}).get(key)
        return shown.committed if shown is not None else ""

    def final(self, utterance: Utterance, lang: str, said: int, shown: str) -> LiveTranslation:
        """The translation of an utterance in the log begins; `shown`: what readers have of it."""
        translation = LiveTranslation(utterance.key, utterance.rev, lang, shown, said=said)
        self._finals.setdefault(lang, {})[utterance.key] = translation
        return translation

    def final_of(self, key: UtteranceKey, rev: int, lang: str, said: int, origin: str) -> LiveTranslation:
        """The translation of an utterance in the log that another gateway makes."""
        shown = self._finals.setdefault(lang, {}).setdefault(key, LiveTranslation(key, rev, lang, said=said))
        shown.origin, shown.said = origin, said
        return shown

    def end_caption(self, key: UtteranceKey) -> None:
        """It is not being said any more, as far as is known; what was shown of its translations stays."""
        self._captions.pop(key, None)

    def end_partial(self, key: UtteranceKey, origin: str | None = None) -> None:
        """It is final, or was given up. origin: ends only what that gateway makes of it; None: all of it."""
        if (caption := self._captions.get(key)) is not None and origin in (None, caption.origin):
            del self._captions[key]
        found = [(lang, by_key[key]) for lang, by_key in self._partials.items() if key in by_key]
        for lang in [lang for lang, shown in found if origin in (None, shown.origin)]:
            _drop(self._partials, key, lang)

    def accepted(self, utterance: Utterance, said: int, languages: Collection[str]) -> None:
        """It is in the log now, and promised in these languages: its translations go on from what was shown."""
        for lang in languages:
            has_begun = utterance.key in self._finals.get(lang, {})
            if not has_begun and (committed := self.committed(utterance.key, lang)):
                self.final(utterance, lang, said, committed).origin = SOMEWHERE
        self.end_partial(utterance.key)

    def end_final(self, key: UtteranceKey, lang: str) -> None:
        _drop(self._finals, key, lang)

    def end_final_elsewhere(self, key: UtteranceKey, lang: str) -> None:
        """As `end_final`, if another gateway makes it; what is made here ends with what makes it."""
        shown = self._finals.get(lang, {}).get(key)
        if shown is not None and shown.origin != HERE:
            _drop(self._finals, key, lang)

    def clear(self) -> None:
        for texts in (self._captions, self._partials, self._finals):
            texts.clear()

    def forget(self, origins: Collection[str]) -> None:
        """These gateways are not there any more, and nothing that they make goes on."""
        for caption in [caption for caption in self.captions if caption.origin in origins]:
            del self._captions[caption.utterance.key]
        for translations in (self._partials, self._finals):
            for shown in [shown for shown in _of(translations, None) if shown.origin in origins]:
                _drop(translations, shown.key, shown.lang)


_Translations = dict[str, dict[UtteranceKey, LiveTranslation]]


def _of(translations: _Translations, lang: str | None) -> Iterator[LiveTranslation]:
    for by_key in translations.values() if lang is None else [translations.get(lang, {})]:
        yield from by_key.values()


def _drop(translations: _Translations, key: UtteranceKey, lang: str) -> None:
    if (by_key := translations.get(lang)) is not None:
        by_key.pop(key, None)
        if not by_key:
            del translations[lang]


class LiveView:
    """What members see, and what a latecomer is shown of it."""

    def __init__(self, members: Members) -> None:
        self.text = LiveText()
        self._members = members

    # ------------------------------------------------------------ what happens

    def show_caption(self, utterance: Utterance, origin: str = HERE) -> bool:
        """A revision of what is being said, to speaker and readers. False: they were shown the same before."""
        before = self.text.caption_of(utterance.key)
        caption = LiveCaption(utterance, Payload(caption_message(utterance)), origin)
        self.text.caption(caption)
        if before is not None and before.says(caption):
            return False
        for reader in self._members.hearers(utterance):
            if reader.feed is not None and reader.sees(utterance):
                reader.feed.show(caption.payload)
        if before is not None and before.utterance.lang != utterance.lang:
            # A reader who was shown it as their language learns that it is another one, and does not see the next.
            for reader in self._members.hearers(before.utterance):
                if reader.feed is not None and reader.sees(before.utterance) and not reader.sees(utterance):
                    reader.feed.show(caption.payload)
        return True

    def show_partial(self, shown: LiveTranslation, rev: int, committed: str, tentative: str) -> bool:
        """All of the translation of what is being said. `shown` is of `text`, and changes. False: it does not."""
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

    # ------------------------------------------------------------ what one member sees

    def bring_up_to_date(self, member: Member) -> None:
        """Show a member all of it who has seen nothing of it."""
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
