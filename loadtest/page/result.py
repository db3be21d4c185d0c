"""What the measurement of the page brings home, as values, and the arithmetic on it.

Knows: numbers and their names. Must not know: how they were found, or how they look (`report`).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from msgspec import Struct

from loadtest.machine import Machine
from loadtest.results import nearest_rank

__all__ = [
    "DEVICES",
    "Device",
    "LongTasks",
    "Opening",
    "PagePlan",
    "PageResult",
    "Phase",
    "Request",
    "Times",
    "Visit",
    "long_tasks",
    "times",
]

# Above this, a task keeps people waiting: the definition of the Long Tasks API.
_LONG_MS = 50.0


class Device(Struct, frozen=True):
    """What is imitated. throttle: how many times slower than this machine's its CPU is. Sizes in CSS pixels."""

    name: str
    throttle: int
    width: int
    height: int
    mobile: bool


DEVICES = (
    Device("laptop", throttle=1, width=1280, height=800, mobile=False),
    Device("phone", throttle=4, width=390, height=844, mobile=True),
)


class PagePlan(Struct, frozen=True, kw_only=True):
    """What to run.

    captions_per_s: one phase for each and each device. seconds: what is measured of each phase. visits: cold ones
    on each device. quiet_wait_s: patience before each phase with other processes that use the CPU, seconds; it
    begins anyway after that. token_s: between two tokens of the simulated engine.
    """

    captions_per_s: tuple[int, ...] = (0, 10, 20, 40)
    seconds: float = 30.0
    visits: int = 10
    devices: tuple[Device, ...] = DEVICES
    quiet_wait_s: float = 0.0
    token_s: float = 0.02
    seed: int = 1
    time_limit_s: float = 1_800.0


class Request(Struct, frozen=True):
    """One answer over HTTP. wire: bytes as sent, headers included, 0 from the browser's cache. decoded: bytes of
    the body.

    file: whether it is a file of the page, and not an answer of the gateway's API.
    """

    path: str
    wire: int
    decoded: int
    cached: bool
    file: bool


class Visit(Struct, frozen=True):
    """What was fetched until the page could be used."""

    name: str
    requests: list[Request]

    @property
    def files(self) -> list[Request]:
        return [each for each in self.requests if each.file]

    @property
    def api(self) -> list[Request]:
        return [each for each in self.requests if not each.file]


class Times(Struct, frozen=True):
    """Milliseconds over several visits."""

    median: float
    p90: float
    worst: float


class Opening(Struct, frozen=True):
    """From when the address was asked for, with nothing in the cache.

    ready: until the page was in the meeting and said so.
    """

    device: str
    visits: int
    first_paint: Times
    first_contentful_paint: Times
    ready: Times


class LongTasks(Struct, frozen=True):
    """Tasks above 50 ms. blocking_ms: what they took beyond 50 ms each, together."""

    count: int
    longest_ms: float
    blocking_ms: float


class Phase(Struct, frozen=True):
    """One rate on one device.

    captions, deltas, messages: what arrived at the page while it was measured, deltas with partial captions;
    messages: of any type. said, shown: utterances of the whole phase, and rows of the page at its end.
    frames_per_s; longest_gap_ms: between two frames. script, layout, other: shares of the page's main thread;
    layout with the calculation of styles. heap_before, heap_after: MiB of JavaScript objects after a collection.
    late_ms: by how much a speaker was behind its schedule at most. complaints: of the page, on its console.
    busy_cores, other_cores: used on average by everything, and by what does not belong to the measurement.
    """

    device: str
    captions_per_s: int
    seconds: float
    captions: int
    deltas: int
    messages: int
    said: int
    shown: int
    tasks: LongTasks
    frames_per_s: float
    longest_gap_ms: float
    script: float
    layout: float
    other: float
    heap_before: float
    heap_after: float
    nodes: int
    late_ms: float
    busy_cores: float
    other_cores: float
    complaints: list[str]


class PageResult(Struct, frozen=True):
    """Everything that `result.json` holds. files: of the page, by their size before compression."""

    command: str
    began: str
    plan: PagePlan
    machine: Machine
    browser: str
    elapsed_s: float
    visits: list[Visit]
    openings: list[Opening]
    phases: list[Phase]

    def failures(self) -> Iterator[str]:
        """What makes the exit status 1, one sentence each."""
        for phase in self.phases:
            name = f"{phase.device}, {phase.captions_per_s} captions/s"
            if phase.shown != phase.said:
                yield f"{name}: {phase.shown} rows for {phase.said} utterances."
            for complaint in phase.complaints:
                yield f"{name}: {complaint}"


def times(values: Sequence[float]) -> Times:
    """Of a list that is not empty."""
    return Times(round(statistics.median(values), 1), round(nearest_rank(values, 0.9), 1), round(max(values), 1))


def long_tasks(tasks: Sequence[tuple[float, float]], from_ms: float, to_ms: float) -> LongTasks:
    """Of (start, duration) those that began in between; shorter ones do not count."""
    long = [lasted for began, lasted in tasks if from_ms <= began < to_ms and lasted > _LONG_MS]
    return LongTasks(
        count=len(long),
        longest_ms=round(max(long, default=0.0), 1),
        blocking_ms=round(sum(lasted - _LONG_MS for lasted in long), 1),
    )
