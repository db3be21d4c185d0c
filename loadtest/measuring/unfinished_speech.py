"""How much of what is still being said a gateway translates.

Knows: when a gateway that has nothing else to do would translate a partial, which counter says that it did.
Must not know: who says what, how a pass is played.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from loadtest.systems.metrics import metric
from loadtest.trial.values import Line

PARTIALS = "gateway_partials_total"
"""The metric in which a gateway counts partials by their outcome."""

# The least time from one translation of an utterance into a language to the next, as the gateway has it.
PACE_S = 0.6


def could_be_translated(lines: Iterable[Line]) -> int:
    """Translations of partials that a gateway makes of these lines if each takes no time at all.

    The first revision is translated at once, then the newest text whenever its time has come, until the final.
    """
    return sum(_of_line(line) * len(line.targets) for line in lines)


def _of_line(line: Line) -> int:
    count, known, free_s = 0, "", -math.inf
    revisions = list(line.partials)
    while revisions:
        begins_s = max(free_s, revisions[0].due_s)
        if begins_s >= line.due_s:
            break
        said = [each for each in revisions if each.due_s <= begins_s]
        revisions = revisions[len(said) :]
        if said[-1].text != known:
            count, known, free_s = count + 1, said[-1].text, begins_s + PACE_S
    return count


def translated(text: str) -> float:
    """Partials that the gateway has translated so far, by its metrics."""
    return metric(text, PARTIALS, outcome="translated") or 0.0


def translated_part(lines: Iterable[Line], before: float, after: float) -> float | None:
    """The part that was translated, between two readings of the counter; None where there were no partials."""
    most = could_be_translated(lines)
    # The first of an utterance counts half of its pace, so that there may be some more.
    return round(min(1.0, (after - before) / most), 4) if most else None
