"""Which language a text is in, among those that the model knows.

Knows: the detector's library and its model. Must not know: who asks, engines, limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

# The beginning of a text tells its language; a detection takes about 0.2 ms for so many characters.
_MOST_CHARS = 400


class Detector:
    """Detects the language of texts. Its model is loaded when it is first needed."""

    def __init__(self) -> None:
        self._loading = asyncio.Lock()
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
        """One of `languages` (normalised tags); None if the text has no words. `load` comes first."""
        ranked = self.rank(text, languages)
        return ranked[0][0] if ranked else None

    def rank(self, text: str, languages: Collection[str]) -> list[tuple[str, float]]:
        """Languages by probability, the likeliest first; equally likely ones in the order of `languages`.

        Empty if the text has no words.
        """
        text = text[:_MOST_CHARS]
        if not any(map(str.isalpha, text)):
            return []
        identifier = self._restricted(tuple(languages))
        if not self._tags:
            return []
        order = {tag: place for place, tag in enumerate(languages)}
        found = [(self._tags[code], float(share)) for code, share in identifier.rank(text)]
        return sorted(found, key=lambda each: (-each[1], order[each[0]]))

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


def _loaded() -> LanguageIdentifier:
    # NumPy and the model take about a second, and most gateways are always told the language.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
