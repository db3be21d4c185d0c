"""Which language a text is in, among those that the model knows: by its script, then by the detector.

Knows: the detector's library and model, what languages are written with. Must not know: who asks, engines, limits.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection
from functools import cache
from typing import TYPE_CHECKING

import regex

from gateway.domain.languages import likely_script
from gateway.translation.spoken_language import DETECTED_CHARS

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

# Scripts that are written with letters of others, by ISO 15924. Any other is its own.
_LETTERS = {"Jpan": ("Hani", "Hira", "Kana"), "Hans": ("Hani",), "Hant": ("Hani",), "Kore": ("Hang",)}
# The Chinese characters that a language is written with are all in one of these sets.
_IDEOGRAPHS = {"Jpan": ("shift_jis",), "Hans": ("gb2312", "big5"), "Hant": ("big5", "gb2312")}


class Detector:
    """Detects the language of texts. Its model is loaded when it is first needed."""

    def __init__(self) -> None:
        self._loading = asyncio.Lock()
        # Texts over HTTP are looked into in a thread; each takes less than a millisecond here.
        self._ranking = threading.Lock()
        self._identifier: LanguageIdentifier | None = None
        # The library's code of each language → the model's; what it was restricted to last.
        self._tags: dict[str, str] = {}
        self._languages: tuple[str, ...] = ()

    async def load(self) -> None:
        """Load the model, once; it takes about a second, in a thread."""
        async with self._loading:
            if self._identifier is None:
                self._identifier = await asyncio.to_thread(_loaded)

    def detect(self, text: str, languages: Collection[str]) -> str | None:
        """One of `languages` (normalised tags); None if the text has no words of any. `load` comes first."""
        ranked = self.rank(text, languages)
        return ranked[0][0] if ranked and ranked[0][1] else None

    def rank(self, text: str, languages: Collection[str]) -> list[tuple[str, float]]:
        """Languages by probability, the likeliest first; equally likely ones in the order of `languages`.

        A language that is not written with these letters has 0, and so has each if none is. Empty if the text has
        no words.
        """
        text = text[:DETECTED_CHARS]
        if not any(map(str.isalpha, text)):
            return []
        with self._ranking:
            identifier = self._restricted(tuple(languages))
            if not self._tags:
                return []
            found = {self._tags[code]: float(share) for code, share in identifier.rank(text)}
        order = {tag: place for place, tag in enumerate(languages)}
        written = _written(text, found)
        total = sum(found[tag] for tag in written)
        shares = {tag: found[tag] / total if total and tag in written else 0.0 for tag in found}
        return sorted(shares.items(), key=lambda each: (-each[1], order[each[0]]))

    def _restricted(self, languages: tuple[str, ...]) -> LanguageIdentifier:
        if self._identifier is None:
            raise RuntimeError("the detector is not loaded")
        if languages != self._languages:
            self._identifier.set_languages(None)
            known = set(self._identifier.labels)
            # The library has no codes for scripts: `zh` is Chinese however it is written, here the model's first.
            codes = [(tag.partition("-")[0], tag) for tag in languages]
            self._tags = {code: tag for code, tag in reversed(codes) if code in known}
            self._identifier.set_languages(list(self._tags))
            self._languages = languages
        return self._identifier


def _written(text: str, languages: Collection[str]) -> set[str]:
    """Those of the languages that are written with letters of this text."""
    written = {tag for tag in languages if _pattern(likely_script(tag)).search(text)}
    ideographs = "".join(_pattern("Hans").findall(text))
    if not ideographs:
        return written
    # Where languages share a script, those that have all of these characters, if there are any.
    sharing = {tag for tag in written if likely_script(tag) in _IDEOGRAPHS}
    having = {tag for tag in sharing if _has(likely_script(tag), ideographs)}
    return written - sharing | (having or sharing)


@cache
def _pattern(script: str | None) -> regex.Pattern[str]:
    names = _LETTERS.get(script or "", (script,))
    return regex.compile("[" + "".join(rf"\p{{Script={name}}}" for name in names) + "]" if script else r"\p{L}")


def _has(script: str | None, ideographs: str) -> bool:
    for encoding in _IDEOGRAPHS[script or ""]:
        try:
            ideographs.encode(encoding)
        except UnicodeEncodeError:
            continue
        return True
    return False


def _loaded() -> LanguageIdentifier:
    # NumPy and the model take about a second, and most gateways are always told the language.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
