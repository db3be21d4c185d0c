"""What is said in the meeting that the page shows: an endless schedule of revisions and finals.

Knows: texts, languages, times. Must not know: sockets, browsers, clocks.

A caption is a final text that the page is sent: what was said, or its translation into one language. Somebody who
reads all six languages is sent six of them for each utterance, so captions come six times as often as utterances.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator

from msgspec import Struct

from demo_model import LANGUAGES
from loadtest.workload import Workload, utterances

__all__ = ["CAPTIONS_PER_UTTERANCE", "speech"]

CAPTIONS_PER_UTTERANCE = len(LANGUAGES)

# A recogniser revises what it believes so often; nobody speaks longer than this without a final.
_REVISION_S = 0.3
_LONGEST_S = 3.0
# Of the time from one of a speaker's finals to the next; the rest is a pause.
_SPEAKING_SHARE = 0.8

_TEXTS = 60


class Said(Struct, frozen=True):
    """One message of a speaker. at_s: after the beginning. speaker: place of its language in `LANGUAGES`.
    utterance: counted over all speakers."""

    at_s: float
    speaker: int
    utterance: int
    text: str
    final: bool


def speech(captions_per_s: float, seed: int) -> Iterator[Said]:
    """What one speaker in each language says, in order of time; without end, or nothing at 0 a second."""
    if captions_per_s <= 0:
        return iter(())
    every_s = CAPTIONS_PER_UTTERANCE / captions_per_s
    speakers = [_speaker(number, every_s, seed) for number in range(len(LANGUAGES))]
    return heapq.merge(*speakers, key=lambda said: said.at_s)


def _speaker(number: int, every_s: float, seed: int) -> Iterator[Said]:
    """Every so many seconds somebody is done with an utterance; they take turns."""
    source = LANGUAGES[number]
    target = LANGUAGES[(number + 1) % len(LANGUAGES)]
    texts = [each.text for each in utterances(Workload(seed, source, target), _TEXTS)]
    lasts_s = min(_SPEAKING_SHARE * every_s * len(LANGUAGES), _LONGEST_S)
    revisions = int(lasts_s / _REVISION_S)
    for turn, text in enumerate(itertools.cycle(texts)):
        utterance = turn * len(LANGUAGES) + number
        ends_s = (utterance + len(LANGUAGES)) * every_s
        for revision in range(revisions):
            at_s = ends_s - lasts_s + revision * _REVISION_S
            yield Said(at_s, number, utterance, _beginning(text, (revision + 1) / (revisions + 1)), final=False)
        yield Said(ends_s, number, utterance, text, final=True)


def _beginning(text: str, share: float) -> str:
    """So much of a text, in whole words where it has them; never nothing."""
    words = text.split(" ")
    if len(words) > 2:
        return " ".join(words[: max(1, int(len(words) * share))])
    return text[: max(1, int(len(text) * share))]
