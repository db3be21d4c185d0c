"""What a client process keeps of one pass: records, and by how much it was late itself; and lines as requests:
each is said, and done when its translation is, in a closed or in an open loop.

Knows: records and their clock, when the next line is said. Must not know: protocols, sockets; a client says how
one line is translated.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from loadtest.results import nearest_rank
from loadtest.trial.values import Closed, Delivered, Line, Load, Open, ProcessUse, Record

# Between looks at the event loop.
_LOOK_S = 0.01


class Lag:
    """Lateness in seconds: of lines that were due, and of the event loop."""

    def __init__(self) -> None:
        self._late_s: list[float] = []

    def late(self, seconds: float) -> None:
        """Something came so much later than it should have; less than nothing counts as nothing."""
        self._late_s.append(max(seconds, 0.0))

    def held_up(self, seconds: float) -> None:
        """The event loop came so much later than it should have, and so would whatever was due meanwhile.

        The looks that were missed count, too, with what was left then: or a stall of any length would be one look
        among a hundred a second.
        """
        self.late(seconds)
        for missed in range(1, math.ceil(seconds / _LOOK_S)):
            self.late(seconds - missed * _LOOK_S)

    async def watch(self) -> None:
        """Look at the event loop a hundred times a second, until cancelled."""
        while True:
            due_s = time.monotonic() + _LOOK_S
            await asyncio.sleep(_LOOK_S)
            self.held_up(time.monotonic() - due_s)

    def use(self, cpu_s: float, elapsed_s: float) -> ProcessUse:
        """What the process used, with its lag."""
        late_s = self._late_s or [0.0]
        p99_ms, max_ms = (round(nearest_rank(late_s, share) * 1000, 3) for share in (0.99, 1.0))
        return ProcessUse(round(cpu_s, 4), round(elapsed_s, 4), p99_ms, max_ms)


# Latencies of each kind that are kept, of all client processes together.
_MOST = 20_000


class Sampled:
    """Latencies in milliseconds: at most so many of them, by chance."""

    def __init__(self, most: int) -> None:
        # All that there were.
        self.count = 0
        self.kept_ms: list[float] = []
        self._most = most
        self._rng = random.Random("sampled")

    def add(self, ms: float) -> None:
        self.count += 1
        if len(self.kept_ms) < self._most:
            self.kept_ms.append(round(ms, 3))
        elif (place := self._rng.randrange(self.count)) < self._most:
            self.kept_ms[place] = round(ms, 3)


class Tally:
    """Filled by a client while it plays. processes: client processes that play together."""

    def __init__(self, begin_s: float, keep_text: bool, processes: int) -> None:
        # The pass begins then, by `time.monotonic`; seconds in records count from it.
        self.begin_s = begin_s
        # Whether records hold their text.
        self.keep_text = keep_text
        self.lag = Lag()
        self.records: list[Record] = []
        self.failed = 0
        # The wire's payload; a client adds to them.
        self.frames = 0
        self.bytes = 0
        # When the newest record came.
        self.last_s = 0.0
        # When the last line of a closed loop was sent; from then on fewer and fewer are in flight.
        self.ran_out_s: float | None = None
        # From when a line was due to a reader's first text of its translation, and to all of it.
        self.texts = Sampled(_MOST // processes)
        self.finals = Sampled(_MOST // processes)
        # From when a final was sent to the gateway's word that it is accepted.
        self.accepted = Sampled(_MOST // processes)

    def now_s(self) -> float:
        """Seconds after the beginning."""
        return time.monotonic() - self.begin_s

    def done(self, record: Record) -> None:
        """One line in one language has ended, well or not: once for each of `Line.targets`."""
        self.records.append(record)
        self.last_s = self.now_s()
        if record.failed is not None:
            self.failed += 1

    def delivered(self) -> Delivered:
        """What arrived so far."""
        latencies = (self.finals.kept_ms, self.texts.kept_ms, self.accepted.kept_ms)
        return Delivered(self.frames, self.bytes, self.finals.count, *latencies)


# ---------------------------------------------------------------- one request at a time


# In an open loop, which takes more when it needs them.
_LEAST_CONNECTIONS = 64


@dataclass(eq=False, slots=True)
class Answer:
    """What is known of one line while it is being translated. Seconds are readings of `time.monotonic`."""

    sent_s: float | None = None
    first_s: float | None = None
    done_s: float | None = None
    tokens: int = 0
    text: str = ""
    # An error code or a sentence, once it went wrong.
    failed: str | None = None
    # When the system takes it again, after a refusal for the moment.
    retry_after_s: float | None = None

    def show(self, text: str) -> None:
        """More of the translation has come; what is blank is nothing to read yet."""
        if self.first_s is None and text.strip():
            self.first_s = time.monotonic()

    def end(self, text: str, tokens: int) -> None:
        """The whole translation is there, now; where nothing was to be seen before, its first text, too."""
        self.done_s = time.monotonic()
        self.text, self.tokens = text, tokens
        if self.first_s is None:
            self.first_s = self.done_s

    def record(self, line: Line, due_s: float | None, tally: Tally) -> Record:
        """due_s: when it had to be said, seconds after the beginning; None: when it was."""
        sent_s = (time.monotonic() if self.sent_s is None else self.sent_s) - tally.begin_s
        good = self.failed is None
        return Record(
            line=line.id,
            target=line.targets[0],
            due_s=round(sent_s if due_s is None else due_s, 6),
            sent_s=round(sent_s, 6),
            first_s=None if self.first_s is None else round(self.first_s - tally.begin_s, 6),
            done_s=round(self.done_s - tally.begin_s, 6) if good and self.done_s is not None else None,
            tokens=self.tokens,
            text=self.text if tally.keep_text else "",
            failed=self.failed,
        )


class Requests(ABC):
    """A `Client` of a system that is asked for one translation at a time."""

    def __init__(self, load: Closed | Open) -> None:
        self._load = load
        self._lines: Sequence[Line] = ()
        # When the last line is due: what is refused then is not sent again.
        self._until_s = 0.0

    async def reset_prefix_cache(self) -> None:  # noqa: B027 -- most hold no engine
        pass

    async def prepare(self, lines: Sequence[Line], load: Load | None = None) -> Sequence[Line]:
        if isinstance(load, Closed | Open):
            self._load = load
        self._lines = lines if isinstance(self._load, Closed) else sorted(lines, key=lambda line: line.due_s)
        self._until_s = max((line.due_s for line in self._lines), default=0.0)
        await self.open_for(self._lines)
        return self._lines

    async def play(self, tally: Tally) -> None:
        await _until(tally.begin_s)
        async with asyncio.TaskGroup() as tasks:
            match self._load:
                case Closed(in_flight=in_flight):
                    left, tally.ran_out_s = iter(self._lines), 0.0
                    for _ in range(in_flight):
                        tasks.create_task(self._work(left, tally))
                case Open():
                    for line in self._lines:
                        await _until(tally.begin_s + line.due_s)
                        tasks.create_task(self._one(line, line.due_s, tally))

    @abstractmethod
    async def open_for(self, lines: Sequence[Line]) -> None:
        """Make ready for these lines, of one target each. Raises `LoadtestError`."""

    @abstractmethod
    async def translate(self, line: Line, answer: Answer, tally: Tally) -> None:
        """Say one line and wait for the end of its translation; what comes of it goes into `answer`.

        Raises `LoadtestError` when nothing can be said any more.
        """

    async def _work(self, left: Iterator[Line], tally: Tally) -> None:
        for line in left:
            tally.ran_out_s = tally.now_s()
            await self._one(line, None, tally)

    async def _one(self, line: Line, due_s: float | None, tally: Tally) -> None:
        answer = Answer()
        await self.translate(line, answer, tally)
        record = answer.record(line, due_s, tally)
        retries = 0
        while (wait_s := self._retry_after_s(answer, tally)) is not None:
            await asyncio.sleep(wait_s)
            retries, answer = retries + 1, Answer()
            await self.translate(line, answer, tally)
            again = answer.record(line, due_s, tally)
            record = replace(again, sent_s=record.sent_s, retries=retries, again_s=again.sent_s)
        if due_s is not None:
            tally.lag.late(record.sent_s - due_s)
        if record.done_s is not None:
            tally.finals.add((record.done_s - record.due_s) * 1000)
        tally.done(record)

    def _retry_after_s(self, answer: Answer, tally: Tally) -> float | None:
        """In how many seconds a refused line is to be sent again; None where it is not."""
        wait_s = answer.retry_after_s
        if wait_s is None or not isinstance(self._load, Open) or not self._load.retries:
            return None
        return wait_s if tally.now_s() + wait_s <= self._until_s else None


async def _until(due_s: float) -> None:
    # Timers are no finer than a millisecond, and may come early by a part of it.
    while (early_s := due_s - time.monotonic()) > 0:  # noqa: ASYNC110 -- it waits for a time
        await asyncio.sleep(early_s)


def connections_for(load: Closed | Open) -> int:
    """How many connections are opened before the clock starts."""
    return load.in_flight if isinstance(load, Closed) else _LEAST_CONNECTIONS
