"""What is said: a seeded list of utterances of different lengths.

Knows: the corpus of the bundled model and how utterances are drawn from it.
Must not know: engines, sockets, clocks.
"""

from __future__ import annotations

import random

from msgspec import Struct

from demo_model import LANGUAGES
from demo_model.generate import Kind, PairSource
from demo_model.patterns import bundled_patterns
from loadtest.results import LoadtestError

# Sentences in an utterance → its share. Load that is all of one length measures another system: every sequence of
# a batch then starts and ends together, which real talk never does.
SENTENCES = {1: 0.5, 2: 0.25, 3: 0.15, 4: 0.1}


class Utterance(Struct, frozen=True):
    """One thing to say. source, target: language tags."""

    id: str
    text: str
    source: str
    target: str
    sentences: int


class Workload(Struct, frozen=True):
    """Which list: the same values give the same list."""

    seed: int
    source: str
    target: str


def utterances(workload: Workload, count: int) -> list[Utterance]:
    """The first `count` utterances: one to four corpus sentences each, lengths as in `SENTENCES`.

    A shorter list is the beginning of a longer one. Raises `LoadtestError` for a language the corpus lacks.
    """
    for language in (workload.source, workload.target):
        if language not in LANGUAGES:
            raise LoadtestError(f"The corpus has no {language!r}; it has {', '.join(LANGUAGES)}.")
    if workload.source == workload.target:
        raise LoadtestError("Source and target are the same language: there is nothing to translate.")
    rng = random.Random(f"lengths/{workload.seed}")
    sentences = PairSource(f"loadtest/{workload.seed}", patterns=bundled_patterns())
    gap = "" if workload.source in ("ja", "zh") else " "
    said: list[Utterance] = []
    for number in range(count):
        parts = rng.choices(list(SENTENCES), list(SENTENCES.values()))[0]
        pairs = [sentences.draw([(workload.source, workload.target)], Kind.FULL)[0] for _ in range(parts)]
        text = gap.join(pair.source for pair in pairs)
        said.append(Utterance(str(number), text, workload.source, workload.target, parts))
    return said
