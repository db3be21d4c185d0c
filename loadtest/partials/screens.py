"""What one reader was sent of one utterance, what their screen made of it, and which promises that breaks.

Knows: deltas and finals as they came. Pure. Must not know: sockets, or how good a translation is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import pairwise

from msgspec import Struct

from gateway.domain.sessions import Stability
from loadtest.partials.scoring import State


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
