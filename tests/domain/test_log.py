"""What an utterance in several segments is called."""

from __future__ import annotations

import pytest

from gateway.domain.log import Utterance, is_segment_id, segment_id


@pytest.mark.parametrize(
    ("id", "is_later"), [("u1", False), ("u1~2", True), ("~3", True), ("a~b", False), ("a~", False)]
)
def test_ids_of_later_segments(id: str, is_later: bool) -> None:
    assert is_segment_id(id) is is_later
    assert segment_id(id, 1) == id
    assert is_segment_id(segment_id(id, 2))


def test_segments_know_their_whole() -> None:
    whole = Utterance("u1", 1, "One. Two.", "en", "p", "Ana", True)
    assert (whole.whole, whole.is_segment) == (("p", "u1"), False)
    later = Utterance("u1~2", 1, "Two.", "en", "p", "Ana", True, part_of="u1")
    assert (later.whole, later.is_segment) == (("p", "u1"), True)
