"""What readers see of a meeting that is not in its log: captions of unfinished utterances, translations so far.

Knows: texts, by utterance and language, and which gateway makes them. Must not know: how, who reads them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct

from gateway.domain.log import Utterance, UtteranceKey
from gateway.meeting.payload import Payload
from gateway.protocol.messages import TranslationDelta

# The origin of what this gateway makes, and of what some gateway is about to make.
HERE, SOMEWHERE = "", "?"


class LiveCaption(Struct, frozen=True):
    """The newest revision of an utterance that is being said, and its message."""

    utterance: Utterance
    payload: Payload
    # The gateway of its speaker.
    origin: str = HERE


class LiveTranslation(Struct):
    """All that was shown of one translation that is not complete."""

    # Of the utterance.
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
        """All of it, for somebody who saw nothing of it."""
        shown = self.tentative if tentative else ""
        if not self.committed and not shown:
            return None
        return self.message(self.committed, shown)

    def message(self, committed: str, tentative: str = "") -> TranslationDelta:
        """What tells of new text."""
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
        """Of utterances that are being said; in one language, or in all."""
        yield from _of(self._partials, lang)

    def finals(self, lang: str | None = None) -> Iterator[LiveTranslation]:
        """Of utterances that are in the log; in one language, or in all."""
        yield from _of(self._finals, lang)

    def caption(self, caption: LiveCaption) -> None:
        """A new revision."""
        self._captions[caption.utterance.key] = caption

    def partial(self, utterance: Utterance, lang: str) -> LiveTranslation:
        """The translation of an utterance that is being said, to be changed in place."""
        return self.partial_of(utterance.key, utterance.rev, lang, HERE)

    def partial_of(self, key: UtteranceKey, rev: int, lang: str, origin: str) -> LiveTranslation:
        """As `partial`. It goes on where another gateway has left it."""
        shown = self._partials.setdefault(lang, {}).setdefault(key, LiveTranslation(key, rev, lang))
        shown.origin = origin
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

    def end_partial(self, key: UtteranceKey) -> None:
        """It is final, or was given up."""
        self._captions.pop(key, None)
        for lang in [lang for lang, by_key in self._partials.items() if key in by_key]:
            _drop(self._partials, key, lang)

    def accepted(self, utterance: Utterance, said: int, languages: Collection[str]) -> None:
        """It is in the log now, and promised in these languages: its translations go on from what was shown."""
        for lang in languages:
            has_begun = utterance.key in self._finals.get(lang, {})
            if not has_begun and (committed := self.committed(utterance.key, lang)):
                self.final(utterance, lang, said, committed).origin = SOMEWHERE
        self.end_partial(utterance.key)

    def end_final(self, key: UtteranceKey, lang: str) -> None:
        """The translation has ended."""
        _drop(self._finals, key, lang)

    def end_final_elsewhere(self, key: UtteranceKey, lang: str) -> None:
        """As `end_final`, if another gateway makes it; what is made here ends with what makes it."""
        shown = self._finals.get(lang, {}).get(key)
        if shown is not None and shown.origin != HERE:
            _drop(self._finals, key, lang)

    def clear(self) -> None:
        """Nothing of it is shown any more."""
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
