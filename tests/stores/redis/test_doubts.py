"""What the store may have done without an answer."""

from __future__ import annotations

import asyncio

import pytest

from gateway.stores.redis.doubts import Doubt, Doubts

ONE, TWO = Doubt("standup", key=b"one"), Doubt("standup", offset=2)


def test_what_was_answered_is_not_in_doubt() -> None:
    doubts = Doubts()
    with doubts.until_answered(ONE):
        pass
    assert doubts.to_be_settled() == ()


@pytest.mark.parametrize("error", [LookupError, asyncio.CancelledError])
def test_what_was_not_answered_is_in_doubt_until_it_is(error: type[BaseException]) -> None:
    doubts = Doubts()
    with pytest.raises(error), doubts.until_answered(ONE, TWO):
        raise error
    assert doubts.to_be_settled() == (ONE, TWO)
    with doubts.until_answered(ONE):
        pass
    assert doubts.to_be_settled() == (TWO,)


def test_what_was_found_is_settled_and_what_was_not_is_asked_for_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1_000.0
    monkeypatch.setattr("gateway.stores.redis.doubts.time.monotonic", lambda: now)
    doubts = Doubts()
    with pytest.raises(LookupError), doubts.until_answered(ONE, TWO):
        raise LookupError
    doubts.settle(ONE, found=True)
    doubts.settle(TWO, found=False)
    assert doubts.to_be_settled() == (TWO,)
    now += 61
    doubts.settle(TWO, found=False)
    assert doubts.to_be_settled() == ()


def test_each_has_its_turn() -> None:
    doubts = Doubts()
    many = [Doubt("standup", offset=offset) for offset in range(150)]
    with pytest.raises(LookupError), doubts.until_answered(*many):
        raise LookupError
    assert {*doubts.to_be_settled(), *doubts.to_be_settled()} == set(many)
