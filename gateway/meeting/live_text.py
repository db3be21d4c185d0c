"""What readers see of a meeting that is not in its log: captions of unfinished utterances, translations so far.

Knows: texts, by utterance and language. Must not know: how they are made, who reads them.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from gateway.domain.log import Utterance, UtteranceKey
from gateway.meeting.payload import Payload
from gateway.protocol.messages import TranslationDelta

__all__ = ["LiveCaption", "LiveText", "LiveTranslation"]


class LiveCaption(Struct, frozen=True):
    """The newest revision of an utterance that is being said, and its message."""

    utterance: Utterance
    payload: Payload


class LiveTranslation(Struct):
    """All that was shown of one translation that is not complete."""

    # The revision it was made of.
    utterance: Utterance
    lang: str
    # Never taken back.
    committed: str = ""
    # Replaced by what comes next; of partials only.
    tentative: str = ""
    # Offset of the utterance's `Said`; None while it is being said.
    said: int | None = None

    def delta(self, *, tentative: bool) -> TranslationDelta | None:
        """All of it, for somebody who saw nothing of it."""
        shown = self.tentative if tentative else ""
        if not self.committed and not shown:
            return None
        said = self.utterance
        return TranslationDelta(said.participant, said.id, self.lang, said.rev, self.committed, shown)


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

    def partials(self, lang: str) -> Iterator[LiveTranslation]:
        """Of utterances that are being said."""
        yield from self._partials.get(lang, {}).values()

    def finals(self, lang: str) -> Iterator[LiveTranslation]:
        """Of utterances that are in the log."""
        yield from self._finals.get(lang, {}).values()

    def caption(self, caption: LiveCaption) -> None:
        """A new revision."""
        self._captions[caption.utterance.key] = caption

    def partial(self, utterance: Utterance, lang: str) -> LiveTranslation:
        """The translation of an utterance that is being said, to be changed in place."""
        by_key = self._partials.setdefault(lang, {})
        return by_key.setdefault(utterance.key, LiveTranslation(utterance, lang))

    def final(self, utterance: Utterance, lang: str, said: int, shown: str) -> LiveTranslation:
        """The translation of an utterance in the log begins; `shown`: what readers have of it."""
        by_key = self._finals.setdefault(lang, {})
        translation = by_key[utterance.key] = LiveTranslation(utterance, lang, shown, said=said)
        return translation

    def end_caption(self, key: UtteranceKey) -> None:
        """It is not being said any more, as far as is known; what was shown of its translations stays."""
        self._captions.pop(key, None)

    def end_partial(self, key: UtteranceKey) -> None:
        """It is final, or was given up."""
        self._captions.pop(key, None)
        _drop(self._partials, key)

    def end_final(self, key: UtteranceKey, lang: str) -> None:
        """The translation has ended."""
        if (by_key := self._finals.get(lang)) is not None:
            by_key.pop(key, None)
            if not by_key:
                del self._finals[lang]


def _drop(translations: dict[str, dict[UtteranceKey, LiveTranslation]], key: UtteranceKey) -> None:
    for lang in [lang for lang, by_key in translations.items() if key in by_key]:
        del translations[lang][key]
        if not translations[lang]:
            del translations[lang]
