"""Pairs of languages: from which one a text is translated, and into which.

A pattern names one pair (`en-ja`), all into a language (`*-de`), all from one (`en-*`), or all (`*`).
Knows: language tags. Must not know: which pairs a model can translate (the engine says that).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from gateway.domain.errors import InvalidValue
from gateway.domain.languages import NAMES, normalise

# Normalised tags of the source and of the target, which differ.
Pair = tuple[str, str]

_ANY = "*"


class PairPattern(Struct, frozen=True):
    """Pairs with this source and this target. None: any."""

    source: str | None
    target: str | None

    @classmethod
    def parse(cls, text: str) -> PairPattern:
        """Read `en-ja`, `*-de`, `en-*` or `*`. Raises `InvalidValue`."""
        if text.strip() == _ANY:
            return cls(None, None)
        parts = text.strip().split("-")
        # Tags have hyphens as well: of all places to cut, one leaves a language on both sides.
        for cut in range(1, len(parts)):
            source, target = (_tag("-".join(side)) for side in (parts[:cut], parts[cut:]))
            if source and target:
                if source == target != _ANY:
                    raise InvalidValue(f"{text!r} is a pair of a language with itself.")
                return cls(*(None if tag == _ANY else tag for tag in (source, target)))
        raise InvalidValue(f"{text!r} is not a pair of languages like en-ja, *-de, en-* or *.")

    def covers(self, pair: Pair) -> bool:
        """Whether this names the pair."""
        return self.source in (None, pair[0]) and self.target in (None, pair[1])


def pairs_among(languages: Iterable[str], patterns: Iterable[PairPattern]) -> frozenset[Pair]:
    """The pairs of two different ones of these languages that one of the patterns names."""
    known, named = tuple(languages), tuple(patterns)
    pairs = ((source, target) for source in known for target in known if source != target)
    return frozenset(pair for pair in pairs if any(pattern.covers(pair) for pattern in named))


def _tag(text: str) -> str:
    """The normalised tag or `*`; empty if it is neither. A tag with a region that means nothing is not one."""
    tag = normalise(text)
    known = tag in NAMES and tag.count("-") == text.count("-")
    return tag if known or tag == _ANY else ""
