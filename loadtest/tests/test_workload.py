"""The list of utterances: the same for the same seed, and of different lengths."""

from __future__ import annotations

import pytest

from loadtest.results import LoadtestError
from loadtest.workload import SENTENCES, Workload, utterances

ENGLISH = Workload(seed=1, source="en", target="de")


def test_the_same_seed_says_the_same() -> None:
    assert utterances(ENGLISH, 50) == utterances(ENGLISH, 50)


def test_another_seed_says_something_else() -> None:
    assert utterances(ENGLISH, 50) != utterances(Workload(seed=2, source="en", target="de"), 50)


def test_a_short_list_begins_a_longer_one() -> None:
    assert utterances(ENGLISH, 100)[:50] == utterances(ENGLISH, 50)


def test_ids_are_distinct_and_no_text_is_empty() -> None:
    said = utterances(ENGLISH, 100)
    assert len({each.id for each in said}) == 100
    assert all(each.text.strip() for each in said)


def test_lengths_differ_as_they_are_said_to() -> None:
    said = utterances(ENGLISH, 2_000)
    counts = [each.sentences for each in said]
    assert len(counts) == 2_000
    for count, share in SENTENCES.items():
        assert counts.count(count) / len(counts) == pytest.approx(share, abs=0.05)
    chars = sorted(len(each.text) for each in said)
    assert chars[1_000] < chars[1_800] < chars[-1]


@pytest.mark.parametrize(("source", "target"), [("en", "tlh"), ("tlh", "en"), ("en", "en")])
def test_a_pair_the_corpus_lacks_is_refused(source: str, target: str) -> None:
    with pytest.raises(LoadtestError):
        utterances(Workload(seed=1, source=source, target=target), 1)
