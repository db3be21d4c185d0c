"""Deltas of a growing translation: the first at once, then one per interval, never one taken back."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from gateway.translation.pacing import Throttle


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


async def test_first_text_is_shown_at_once() -> None:
    clock, seen = Clock(), list[str]()
    throttle = Throttle(seen.append, shown="", interval_s=5.0, clock=clock)
    throttle.grow("Gu")
    assert seen == ["Gu"]
    clock.now_s += 5.0
    throttle.grow("Guten")
    assert seen == ["Gu", "ten"]


async def test_held_text_is_shown_by_timer() -> None:
    seen = list[str]()
    throttle = Throttle(seen.append, shown="", interval_s=0.01, clock=asyncio.get_running_loop().time)
    throttle.grow("Gu")
    throttle.grow("Guten")
    throttle.grow("Guten Tag")
    assert seen == ["Gu"]
    while len(seen) < 2:
        await asyncio.sleep(0.001)
    assert seen == ["Gu", "ten Tag"]


async def test_nothing_is_shown_once_stopped() -> None:
    seen = list[str]()
    throttle = Throttle(seen.append, shown="", interval_s=0.001, clock=asyncio.get_running_loop().time)
    throttle.grow("Gu")
    throttle.grow("Guten")
    throttle.stop()
    await asyncio.sleep(0.01)
    assert seen == ["Gu"]


async def test_another_attempt_continues_what_was_shown() -> None:
    seen = list[str]()
    agrees = Throttle(seen.append, shown="Guten", interval_s=0.0, clock=Clock())
    for text in ("G", "Guten", "Guten Tag"):
        agrees.grow(text)
    agrees.end()
    assert seen == [" Tag"]
    other = Throttle(seen.append, shown="Guten", interval_s=0.0, clock=Clock())
    other.grow("Hallo zusammen")
    other.end()
    assert seen == [" Tag"]


@given(st.lists(st.text(alphabet="ab ", min_size=1), max_size=12), st.sampled_from((0.0, 60.0)))
def test_however_it_comes_all_of_it_is_shown_once(pieces: list[str], interval_s: float) -> None:
    async def play() -> list[str]:
        seen = list[str]()
        throttle = Throttle(seen.append, shown="", interval_s=interval_s, clock=Clock())
        text = ""
        for piece in pieces:
            text += piece
            throttle.grow(text)
        throttle.end()
        return seen

    assert "".join(asyncio.run(play())) == "".join(pieces)
