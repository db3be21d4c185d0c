"""How somebody waits for a state, and how long before it is taken for a hang. Others may use the machine, too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

PATIENCE_MS = 120_000


async def until(met: Callable[[], object]) -> None:
    """The suite's timeout is the bound."""
    while not met():
        await asyncio.sleep(0.005)
