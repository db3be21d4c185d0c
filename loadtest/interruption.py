"""Ctrl-C in the middle of a load test: what is measured by then is kept.

Knows: tasks. Must not know: what is measured.
"""

from __future__ import annotations

import asyncio

__all__ = ["INTERRUPTED", "go_on"]

INTERRUPTED = "It was interrupted."
"""Why something is missing, for people."""


def go_on() -> None:
    """Whoever interrupted wants what there is: what is left to be done, to stop gateways and to tell, is not
    cancelled. To be called where a cancellation ends."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 -- it was cancelled
    task.uncancel()
