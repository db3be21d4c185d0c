"""Where a reader is in its meeting, and which publications it had before."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gateway.client.received import Received
from gateway.protocol.messages import Caption, Pong, Resume, SessionStart, UtteranceFinal
from tests.scripted_gateway import ANOTHER, STARTED, failed, said, translated

HELLO = UtteranceFinal("a", 1, "Hello")


def test_the_position_is_the_highest_offset_received() -> None:
    received = Received(replace(STARTED, offset=4))
    assert received.position == Resume("s1", "e1", 4)
    assert received.is_new(said(HELLO, 5))
    assert received.is_new(translated(HELLO, "ja", "はい", offset=7))
    assert received.is_new(failed(HELLO, "de", "No.", offset=8))
    assert received.is_new(Pong())
    assert received.position == Resume("s1", "e1", 8)


def test_a_partial_caption_has_no_position() -> None:
    received = Received(STARTED)
    partial = Caption("p1", "a", "", "en", 1, "Hel", False)
    assert received.is_new(partial)
    assert received.is_new(partial)
    assert received.position.offset == 0


def test_what_comes_again_is_recognised_by_its_offset() -> None:
    received = Received(STARTED)
    for offset in (1, 2, 3):
        assert received.is_new(said(HELLO, offset))
    received.restarted(replace(STARTED, recovered=True, offset=3))
    assert not received.is_new(said(HELLO, 2))
    assert not received.is_new(said(HELLO, 3))
    assert received.is_new(said(HELLO, 4))


def test_a_failure_and_a_later_translation_are_two() -> None:
    received = Received(STARTED)
    assert received.is_new(failed(HELLO, "ja", "No.", offset=1))
    assert received.is_new(translated(HELLO, "ja", "はい", offset=2))


def test_snapshot_may_lie_before_position() -> None:
    received = Received(replace(STARTED, offset=9))
    assert received.is_new(said(HELLO, 5))
    assert received.position.offset == 9


def test_under_another_epoch_it_is_recognised_by_its_key() -> None:
    received = Received(STARTED)
    assert received.is_new(translated(HELLO, "ja", "はい", offset=40))
    received.restarted(ANOTHER)
    assert received.position == Resume("s2", "e2", 0)
    assert not received.is_new(translated(HELLO, "ja", "はい", offset=1))
    assert received.is_new(translated(HELLO, "de", "Ja", offset=2))
    assert received.is_new(translated(UtteranceFinal("a", 2, "Hello"), "ja", "はい", offset=3))
    assert received.position == Resume("s2", "e2", 3)


def test_new_session_in_the_same_log() -> None:
    received = Received(STARTED)
    assert received.is_new(said(HELLO, 5))
    received.restarted(replace(ANOTHER, epoch="e1", offset=3))
    assert not received.is_new(said(HELLO, 5))
    assert received.is_new(said(UtteranceFinal("b", 1, "Next."), 6))
    received.restarted(replace(ANOTHER, epoch="e1", offset=20))
    assert received.position == Resume("s2", "e1", 20)


@pytest.mark.parametrize(
    ("epoch", "recovered", "offset", "fresh"),
    [("e1", True, 9, False), ("e1", False, 9, False), ("e0", False, 0, True)],
)
def test_a_session_of_an_earlier_process(epoch: str, recovered: bool, offset: int, fresh: bool) -> None:
    received = Received(replace(STARTED, recovered=recovered), Resume("s0", epoch, 9))
    assert received.position == Resume("s1", "e1", offset)
    assert received.is_new(said(HELLO, 4)) is fresh
    assert received.is_new(said(HELLO, 10))


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.client.received._REMEMBERED", 2)
    received = Received(STARTED)
    for offset, id in enumerate("abc", 1):
        assert received.is_new(translated(UtteranceFinal(id, 1, "Hello"), "ja", "はい", offset=offset))
    received.restarted(ANOTHER)
    again = [translated(UtteranceFinal(id, 1, "Hello"), "ja", "はい", offset=n) for n, id in enumerate("bca", 1)]
    assert [received.is_new(message) for message in again] == [False, False, True]


@pytest.mark.parametrize("wanted", [None, False])
def test_unrecorded_meeting_stays_unrecorded(wanted: bool | None) -> None:
    start = SessionStart(reads=["ja"], record=wanted)
    received = Received(STARTED)
    assert received.start_to_resume(start) == replace(start, resume=received.position)
    received.restarted(replace(STARTED, record=False))
    assert received.start_to_resume(start) == replace(start, resume=received.position, record=False)
