"""What load tests have in common: their error, an early end, a little arithmetic on what was measured, texts.

Knows: tasks, percentiles, spreads, how languages are written. Must not know: engines, sockets, files.
"""

from __future__ import annotations

import asyncio
import math
import statistics
from collections.abc import Callable, Coroutine, Iterable, Sequence

from msgspec import Struct

from gateway.text.units import UNSPACED


class LoadtestError(Exception):
    """The load test cannot go on; its text is one sentence for people."""


def first_error(error: BaseException) -> BaseException:
    """What went wrong first, of a group of errors."""
    return first_error(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


async def until_it_ends(
    measuring: Coroutine[None, None, None], limit_s: float, something: Callable[[], bool]
) -> str:
    """Measure until it is done, the time is up, or Ctrl-C; why it ended early, a sentence, or nothing.

    something: whether anything was measured. Before that, an interruption is raised as what it is.
    """
    try:
        async with asyncio.timeout(limit_s):
            await measuring
    except TimeoutError:
        return "There was no time for all of it (--time-limit-s)."
    except asyncio.CancelledError:
        if not something():
            raise
        go_on()
        return "It was interrupted."
    return ""


def go_on() -> None:
    """After an interruption: what is left to be done, to stop gateways and to report, is not cancelled."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 -- it was cancelled
    task.uncancel()


class Spread(Struct, frozen=True):
    """Over repetitions."""

    median: float
    low: float
    high: float


def spread(values: Iterable[float]) -> Spread:
    """The spread of at least one value."""
    every = list(values)
    return Spread(round(statistics.median(every), 4), round(min(every), 4), round(max(every), 4))


def nearest_rank(values: Sequence[float], quantile: float) -> float:
    """The smallest value that at least this share of `values` does not exceed; `values` is not empty."""
    ordered = sorted(values)
    return ordered[max(math.ceil(quantile * len(ordered)), 1) - 1]


def joined(texts: Iterable[str], lang: str) -> str:
    """Texts one behind the other, as the language writes them."""
    return ("" if lang.partition("-")[0] in UNSPACED else " ").join(texts)
