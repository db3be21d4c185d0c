"""A gateway that somebody else runs.

Knows: its address. Must not know: how it was started. Nothing of it can be measured but what clients see and what
it says of itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from loadtest.results import LoadtestError
from loadtest.systems.metrics import get
from loadtest.systems.running import Running
from loadtest.trial.values import WebSocketGateway

__all__ = ["existing"]


@asynccontextmanager
async def existing(url: str) -> AsyncIterator[Running]:
    """The gateway at `url`, which is ready. Raises `LoadtestError` when it is not."""
    url = url.rstrip("/")
    status, _ = await asyncio.to_thread(get, f"{url}/readyz")
    if status != 200:
        raise LoadtestError(
            f"No gateway answers at {url}."
            if status == 0
            else f"The gateway at {url} is not ready (status {status})."
        )
    yield Running("gateway", WebSocketGateway(url), {"url": url}, metrics_url=f"{url}/metrics")
