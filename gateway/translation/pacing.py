"""What of a growing translation is shown, and when: at once after a pause, gathered while it comes fast.

Knows: a text that grows, and what readers saw of it. Must not know: engines, who reads, turns.

Nobody sees tokens that come faster than a screen is drawn, but each frame costs the gateway and its clients time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["Showing"]


class Showing:
    """The text of one generation. shown: all text that readers saw before, of an earlier attempt; what does not
    begin with it is not shown.

    interval_s: new text is shown about so often; 0: whenever there is some. clock: monotonic, seconds.
    """

    def __init__(
        self, show: Callable[[str], None], *, shown: str, interval_s: float, clock: Callable[[], float]
    ) -> None:
        self._shown = shown
        self._show = show
        self._interval_s = interval_s
        self._clock = clock
        self._text = ""
        self._due_s = 0.0
        self._later: asyncio.TimerHandle | None = None

    def grow(self, text: str) -> None:
        """This is the whole text now."""
        self._text = text
        if len(text) <= len(self._shown) or self._later is not None:
            return
        now_s = self._clock()
        if now_s >= self._due_s:
            self._due_s = now_s + self._interval_s
            self._hand_on()
        else:
            # The engine may say nothing more for a while: then this is shown all the same.
            self._later = asyncio.get_running_loop().call_later(self._due_s - now_s, self._on_time)

    def end(self) -> None:
        """Nothing more will come: what is left is shown now."""
        self.stop()
        self._hand_on()

    def stop(self) -> None:
        """Show nothing more."""
        if self._later is not None:
            self._later.cancel()
            self._later = None

    def _on_time(self) -> None:
        self._later = None
        self._due_s = self._clock() + self._interval_s
        self._hand_on()

    def _hand_on(self) -> None:
        if len(self._text) > len(self._shown) and self._text.startswith(self._shown):
            fresh = self._text[len(self._shown) :]
            self._shown = self._text
            self._show(fresh)
