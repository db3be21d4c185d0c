"""How much a translation flickered, how far it was behind, how close it is to another: the arithmetic.

Knows: texts, units, times. Pure. Must not know: where texts come from.

A unit is a word; in Japanese and Chinese a character, where a Latin word or a number counts as one. Units of two
texts are compared letter by letter, punctuation included.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise, takewhile

from msgspec import Struct

_CJK = ("ja", "zh")
# Latin letters with and without accents, digits, and what stands between them: 5,500 or BUG-13.
_CJK_UNIT = re.compile(r"[0-9A-Za-zÀ-ÖØ-öø-ɏ]+(?:[-.,:'’][0-9A-Za-zÀ-ÖØ-öø-ɏ]+)*|\S")


class State(Struct, frozen=True):
    """What a screen shows of one utterance from `at_ms` on: text that stays, then text that may change."""

    at_ms: float
    committed: str
    tentative: str = ""

    @property
    def text(self) -> str:
        return self.committed + self.tentative


def units(text: str, lang: str) -> list[str]:
    """The units of a text; spaces are none."""
    return _CJK_UNIT.findall(text) if lang in _CJK else text.split()


def erased(before: str, after: str, lang: str) -> int:
    """Units of `before` from the first one on that is not in `after`.

    Text that only grew took nothing back, though its last word may be another unit now: `Frei` became `Freitag`.
    """
    if after.startswith(before.rstrip()):
        return 0
    own = units(before, lang)
    same = takewhile(lambda pair: pair[0] == pair[1], zip(own, units(after, lang), strict=False))
    return len(own) - sum(1 for _ in same)


def erasure(texts: Sequence[str], lang: str) -> int:
    """Units taken back while a screen showed these texts in turn.

    Over the units of the final text it is the normalised erasure of Arivazhagan et al. (2020),
    Re-translation versus Streaming for Simultaneous Translation.
    """
    return sum(erased(before, after, lang) for before, after in pairwise(texts))


def lags(
    shown: Sequence[tuple[float, int]],
    heard: Sequence[tuple[float, int]],
    end_ms: float,
    source_units: int,
    target_units: int,
) -> list[float]:
    """How many source units the screen is behind, for each revision at the moment before the next one comes.

    shown: from when on, how many target units; heard: when, how many source units a revision has; both in order.
    end_ms: when the last word came. Target units are counted in source units by the ratio of the whole texts.
    """
    if not target_units:
        return []
    found: list[float] = []
    for index, (_, count) in enumerate(heard):
        until_ms = heard[index + 1][0] if index + 1 < len(heard) else end_ms
        on_screen = next((many for at_ms, many in reversed(shown) if at_ms < until_ms), 0)
        found.append(count - on_screen * source_units / target_units)
    return found


def first_ms(states: Sequence[State]) -> float | None:
    """When there was something to read; null where there never was."""
    return next((state.at_ms for state in states if state.text.strip()), None)


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float | None:
    """sacrebleu's with its defaults, 0 to 100; null for nothing."""
    if not hypotheses:
        return None
    # Imported here: a wrong option need not wait for it.
    import sacrebleu

    return float(sacrebleu.corpus_chrf(list(hypotheses), [list(references)]).score)
