"""What a session remembers of its utterances."""

from __future__ import annotations

import pytest

from gateway.sessions.known_utterances import REMEMBERED_UTTERANCES, KnownUtterance, KnownUtterances


def known(utterances: KnownUtterances, id: str) -> KnownUtterance:
    found = utterances.get(id)
    assert found is not None
    return found


def test_a_revision_is_remembered_and_the_newest_counts() -> None:
    utterances = KnownUtterances()
    assert utterances.get("u") is None
    for rev in (1, 4):
        utterances.revised("u", rev)
        assert (known(utterances, "u").rev, known(utterances, "u").final) == (rev, None)
    assert utterances.in_flight == 0


@pytest.mark.parametrize("text", ["good morning", "", "\ud800 half a character", "x" * 100_000])
def test_a_final_is_recognised_by_its_text(text: str) -> None:
    utterances = KnownUtterances()
    utterances.revised("u", 1)
    assert not known(utterances, "u").is_final_as(text)
    utterances.finished("u", 2, text)
    assert known(utterances, "u").is_final_as(text)
    assert not known(utterances, "u").is_final_as(f"{text}.")
    assert text not in repr(known(utterances, "u")) or len(text) < 3, "a digest of it, not the text"


def test_it_is_in_flight_until_it_is_settled() -> None:
    utterances = KnownUtterances()
    for id in ("u", "v", "u"):
        utterances.finished(id, 1, "One.")
    assert utterances.in_flight == 2
    utterances.settled("u", failed=False)
    utterances.settled("u", failed=False)
    utterances.settled("never said", failed=True)
    assert (utterances.in_flight, utterances.is_in_flight("u"), utterances.is_in_flight("v")) == (1, False, True)
    assert utterances.get("never said") is None


def test_what_failed_is_remembered_as_that_until_it_is_accepted_again() -> None:
    utterances = KnownUtterances()
    utterances.finished("u", 1, "One.")
    utterances.settled("u", failed=True)
    assert known(utterances, "u").failed
    utterances.finished("u", 1, "One.")
    assert not known(utterances, "u").failed
    utterances.settled("u", failed=False)
    assert not known(utterances, "u").failed


def test_what_was_recalled_is_in_flight_only_if_something_is_missing() -> None:
    utterances = KnownUtterances()
    utterances.finished("done", 1, "One.", in_flight=False)
    utterances.finished("failed", 1, "One.", failed=True, in_flight=False)
    assert utterances.in_flight == 0
    assert (known(utterances, "done").failed, known(utterances, "failed").failed) == (False, True)


def test_what_is_forgotten_is_as_if_it_had_never_been_said() -> None:
    utterances = KnownUtterances()
    utterances.revised("u", 7)
    utterances.forget("u")
    utterances.forget("u")
    assert utterances.get("u") is None


def test_the_oldest_that_is_settled_is_forgotten_first() -> None:
    utterances = KnownUtterances()
    utterances.finished("in flight", 1, "One.")
    for n in range(REMEMBERED_UTTERANCES - 1):
        utterances.revised(str(n), 1)
    utterances.revised("0", 2)
    utterances.revised("one more", 1)
    assert utterances.get("1") is None
    assert all(utterances.get(id) is not None for id in ("in flight", "0", "2", "one more"))
