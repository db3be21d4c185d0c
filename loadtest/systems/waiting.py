"""Waiting for a server that starts.

Knows: clocks. Must not know: what the server is, how it is asked.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from loadtest.commands import Say
from loadtest.results import LoadtestError
from loadtest.systems.child import Child

__all__ = ["until_ready"]

_START_LIMIT_S = 600.0
_LOOK_S = 0.25


async def until_ready(
    child: Child, title: str, say: Say, look: Callable[[], tuple[bool, str]], limit_s: float = _START_LIMIT_S
) -> None:
    """Return once `look`, which may block, says that it is ready; else it says what the server is doing.

    Raises `LoadtestError` when the process ends or the limit has passed.
    """
    began_s = time.monotonic()
    while True:
        child.check()
        ready, doing = await asyncio.to_thread(look)
        if ready:
            return
        elapsed_s = time.monotonic() - began_s
        if elapsed_s > limit_s:
            raise LoadtestError(f"After {limit_s:g} s of {title} it takes no requests. {child.last_words()}")
        say(f"{title}: {elapsed_s:.0f} s{f', {doing}' if doing else ''}")
        await asyncio.sleep(_LOOK_S)
