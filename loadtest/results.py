"""What load tests have in common: their error, and a little arithmetic on what was measured.

Knows: percentiles, spreads. Must not know: engines, sockets, clocks, files.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

__all__ = ["LoadtestError", "Spread", "first_error", "nearest_rank"]


class LoadtestError(Exception):
    """The load test cannot go on; its text is one sentence for people."""


def first_error(error: BaseException) -> BaseException:
    """What went wrong first, of a group of errors."""
    return first_error(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


class Spread(Struct, frozen=True):
    """Over repetitions."""

    median: float
    low: float
    high: float


def nearest_rank(values: Sequence[float], quantile: float) -> float:
    """The smallest value that at least this share of `values` does not exceed; `values` is not empty."""
    ordered = sorted(values)
    return ordered[max(math.ceil(quantile * len(ordered)), 1) - 1]
