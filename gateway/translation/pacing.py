"""Throttles deltas: the first at once, then one per interval.

Knows: a text that grows, and what was handed on of it. Must not know: engines, who reads, turns.

Tokens that come faster than a screen is drawn are not seen, but each frame costs the gateway and its clients time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class Throttle:
    """Hands the growing text of one translation on as deltas, over all attempts of the engine.

    What was handed on is never taken back: another attempt adds to it as soon as it is longer and agrees with it.
    """

    def __init__(
        self,
        # Gets each delta.
        show: Callable[[str], None],
        *,
        # The least time between two deltas, seconds. 0: every new piece of text is a delta.
        interval_s: float,
        # What readers have seen already.
        shown: str = "",
        # Monotonic, seconds.
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._show = show
        self._interval_s = interval_s
        self._shown = shown
        self._clock = clock or time.monotonic
        self._text = ""
        self._due_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def grow(self, text: str) -> None:
        """This is the whole text now."""
        self._text = text
        if len(text) <= len(self._shown) or self._timer is not None:
            return
        now_s = self._clock()
        if now_s >= self._due_s:
            self._due_s = now_s + self._interval_s
            self._hand_on()
        else:
            # The engine may say nothing more for a while, so a timer hands this on.
            self._timer = asyncio.get_running_loop().call_later(self._due_s - now_s, self._on_time)

    def end(self) -> None:
        """Nothing more will come: hand on what is left."""
        self.stop()
        self._hand_on()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_time(self) -> None:
        self._timer = None
        self._due_s = self._clock() + self._interval_s
        self._hand_on()

    def _hand_on(self) -> None:
        if len(self._text) > len(self._shown) and self._text.startswith(self._shown):
            delta = self._text[len(self._shown) :]
            self._shown = self._text
            self._show(delta)
