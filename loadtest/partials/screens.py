"""What one reader was sent of one utterance, what their screen made of it, and which promises that breaks; how
much it flickered, how far it was behind, how close it is to another.

Knows: deltas and finals as they came, texts, units, times. Pure. Must not know: sockets.

A unit is a word; in Japanese and Chinese a character, where a Latin word or a number counts as one. Units of two
texts are compared letter by letter, punctuation included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import pairwise, takewhile

from msgspec import Struct

from gateway.domain.sessions import Stability

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


# ---------------------------------------------------------------- what readers were sent


class Arm(Enum):
    """How revisions reach the gateway.

    OURS: as partials, then a final. NAIVE: each as a final utterance of its own. ALONE: the final only.
    """

    OURS = "ours"
    NAIVE = "naive"
    ALONE = "alone"


class Delta(Struct, frozen=True, array_like=True):
    """A `translation.delta`. at_ms: since the speaker began."""

    at_ms: float
    rev: int
    committed: str
    tentative: str


class Final(Struct, frozen=True, array_like=True):
    """A `translation.final`. In the naive arm `rev` is the revision it translates, 1 the first."""

    at_ms: float
    rev: int
    text: str
    tokens: int


class Reading(Struct, frozen=True):
    """All that one reader got of one stream. failed: the codes of `translation.failed`.

    late: how many deltas came behind a final.
    """

    arm: Arm
    stream: str
    lang: str
    stability: Stability
    deltas: list[Delta] = []
    finals: list[Final] = []
    failed: list[str] = []
    late: int = 0


def states(reading: Reading) -> list[State]:
    """What the screen showed, one after the other; the last state is the whole translation.

    In the naive arm a newer translation takes the place of an older one, and nothing is shown before it is whole.
    """
    if reading.arm is Arm.NAIVE:
        shown: list[State] = []
        newest = 0
        for final in reading.finals:
            if final.rev > newest:
                newest = final.rev
                shown.append(State(final.at_ms, "", final.text))
        return shown
    committed = ""
    shown = []
    for delta in reading.deltas:
        committed += delta.committed
        shown.append(State(delta.at_ms, committed, delta.tentative))
    return shown + [State(final.at_ms, final.text) for final in reading.finals[:1]]


def broken(reading: Reading, utterances: int = 1) -> Iterator[str]:
    """Sentences on what this reader was promised and did not get. utterances: finals that were sent."""
    about = f"{reading.stream} in {reading.lang} ({reading.arm.value}, {reading.stability})"
    for code in reading.failed:
        yield f"{about}: not translated, {code}"
    revisions = [final.rev for final in reading.finals]
    if len(revisions) != utterances or len(set(revisions)) != utterances:
        yield f"{about}: {len(revisions)} finals came, {utterances} should have"
    if reading.arm is Arm.NAIVE:
        return
    if reading.late:
        yield f"{about}: {reading.late} deltas came behind the final"
    if any(later.rev < sooner.rev for sooner, later in pairwise(reading.deltas)):
        yield f"{about}: a delta of an older revision came behind one of a newer"
    if reading.stability != "live" and any(delta.tentative for delta in reading.deltas):
        yield f"{about}: was shown text that may change"
    if reading.stability == "final" and reading.deltas:
        yield f"{about}: was shown {len(reading.deltas)} deltas"


def contradictions(readings: Sequence[Reading]) -> Iterator[str]:
    """Where readers of one stream in one language were promised or told different text."""
    finals = {final.text for reading in readings for final in reading.finals}
    about = f"{readings[0].stream} in {readings[0].lang} ({readings[0].arm.value})" if readings else ""
    if len(finals) > 1:
        yield f"{about}: readers got different finals"
    promised = [committed for reading in readings if (committed := "".join(d.committed for d in reading.deltas))]
    longest = max(promised, key=len, default="")
    if not all(longest.startswith(text) for text in promised):
        yield f"{about}: committed text differs between readers"
