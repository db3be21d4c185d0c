"""Which load to offer next, and what the runs so far say.

Knows: loads, and whether an objective was kept under them. Pure: each search is a generator that yields the next
run, is sent whether the objective was kept, or why there will be no more, and returns its answer. It asks for no
more runs than it was granted, however the runs contradict each other. Must not know: how a run is made, or what a
load is.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from enum import Enum

from msgspec import Struct


class Run(Struct, frozen=True):
    """What to offer. long: a confirmation, which takes longer."""

    load: float
    long: bool = False


class Bounds(Struct, frozen=True):
    """Where to look."""

    # The smallest and the largest load worth a run.
    low: float = 1.0
    high: float = 1e6
    # Whether loads are whole numbers.
    whole: bool = False
    # The answer may be too small by this part.
    resolution: float = 0.05
    # At most so many, at least 2.
    runs: int = 16
    # Whether the answer gets a second run, twice as long.
    confirms: bool = True
    # Multiples of the answer that are offered in the end, to show an overload.
    past: tuple[float, ...] = ()

    def fit(self, load: float) -> float:
        """The nearest load that can be offered: three digits, or a whole number."""
        rounded = float(round(load)) if self.whole else float(f"{load:.3g}")
        return min(max(rounded, self.low), self.high)


class Ended(Enum):
    """Why a search for a capacity ended."""

    CONFIRMED = "confirmed by a second run with another seed"
    CEILING = "confirmed at the largest load that was allowed"
    RUNS = "out of runs before it was confirmed"
    # These four also tell a search why there are no more runs.
    TIME = "out of time before it was confirmed"
    DRIVER = "stopped where the driver was the limit"
    FAILED = "ended by an error before it was confirmed"
    INTERRUPTED = "interrupted before it was confirmed"
    WORSE = "given up: clearly worse than the best so far"
    NOTHING = "not even the smallest load was kept"
    COMPLETE = "complete"

    @property
    def confirmed(self) -> bool:
        return self in (Ended.CONFIRMED, Ended.CEILING)

    @property
    def cut_short(self) -> bool:
        """Whether more runs would have said more."""
        return not self.confirmed and self not in (Ended.WORSE, Ended.NOTHING, Ended.COMPLETE)


class Found(Struct, frozen=True):
    # The largest load that was kept; None when none was.
    capacity: float | None
    # The smallest above it that was not kept; None when there is none.
    at_most: float | None
    ended: Ended
    runs: int


class _Book:
    """What the runs so far say: load → whether that was a confirmation, which counts more than a short run."""

    def __init__(self) -> None:
        self.kept: dict[float, bool] = {}
        self.lost: dict[float, bool] = {}
        self.runs = 0

    def enter(self, run: Run, kept: bool) -> None:
        self.runs += 1
        # Where two runs contradict each other the later one is believed: it is the longer one, or as long.
        if kept:
            self.kept[run.load] = run.long
            self.lost = {load: long for load, long in self.lost.items() if load > run.load}
        else:
            self.lost[run.load] = run.long
            self.kept = {load: long for load, long in self.kept.items() if load < run.load}

    @property
    def low(self) -> float | None:
        return max(self.kept, default=None)

    @property
    def high(self) -> float | None:
        return min(self.lost, default=None)

    def found(self, ended: Ended) -> Found:
        return Found(self.low, self.high, ended, self.runs)


def capacity_search(start: float, bounds: Bounds, worth: float = 0.0) -> Generator[Run, bool | Ended, Found]:
    """The largest load that is kept: doubling or halving from `start`, then bisection, then a confirmation.

    worth: given up as soon as the answer cannot be above it.
    """
    book = _Book()
    run: Run | None = Run(bounds.fit(start))
    while run is not None and book.runs < bounds.runs:
        seen = yield run
        if isinstance(seen, Ended):
            return book.found(_ended(book, bounds, seen))
        book.enter(run, seen)
        if book.high is not None and book.high <= worth:
            return book.found(Ended.WORSE)
        run = _next_run(book, bounds)
    if book.low is None:
        return book.found(Ended.NOTHING if run is None else Ended.RUNS)
    if run is None and not bounds.confirms:
        yield from _beyond(book, bounds)
    return book.found(_ended(book, bounds, Ended.COMPLETE if run is None else Ended.RUNS))


def _beyond(book: _Book, bounds: Bounds) -> Generator[Run, bool | Ended, None]:
    """What an overload is like; it changes nothing of the answer."""
    assert book.low is not None  # noqa: S101 -- there is an answer
    tried = {*book.kept, *book.lost}
    for load in dict.fromkeys(bounds.fit(book.low * factor) for factor in bounds.past):
        if load not in tried and book.runs < bounds.runs:
            book.runs += 1
            if isinstance((yield Run(load)), Ended):
                return


def _ended(book: _Book, bounds: Bounds, otherwise: Ended) -> Ended:
    """An answer that is confirmed is so whatever was still to come."""
    if not bounds.confirms or book.low is None or not book.kept[book.low]:
        return otherwise
    return Ended.CEILING if book.low >= bounds.high else Ended.CONFIRMED


def _next_run(book: _Book, bounds: Bounds) -> Run | None:
    """None when the answer is there."""
    low, high = book.low, book.high
    last = bounds.runs - book.runs <= 1
    if low is None:
        assert high is not None  # noqa: S101 -- one run was entered
        return Run(bounds.fit(high / 2)) if high > bounds.low else None
    if low < bounds.high:
        between = bounds.fit(low * 2 if high is None else math.sqrt(low * high))
        apart = high is None or (high > low * (1 + bounds.resolution) and low < between < high)
        if apart and not (bounds.confirms and last and not book.kept[low]):
            return Run(between)
    if bounds.confirms and not book.kept[low]:
        return Run(low, long=True)
    return None


def given_loads(loads: Sequence[float]) -> Generator[Run, bool | Ended, Found]:
    """These loads, whatever comes of them. The answer is the largest up to which every one was kept."""
    book, ended = _Book(), Ended.COMPLETE
    for load in sorted(loads):
        seen = yield Run(load)
        if isinstance(seen, Ended):
            ended = seen
            break
        if book.high is None:
            book.enter(Run(load), seen)
    return book.found(ended)
