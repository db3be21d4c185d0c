"""Client processes of the soak: each has the clients of some seats, one after the other in each.

Knows: when clients come and go, the lines exchanged with the process that started it, signals. Must not know: what
a client does (`visitor`), what follows from what it saw.

    python -m loadtest.soak.crowd

The first line on its standard input is a `Crowd`, the others are orders. On its standard output are records, one
a line. It leaves when its standard input ends.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, Self

import msgspec
import uvloop
from msgspec import Struct

from demo_model import LANGUAGES
from loadtest.results import LoadtestError, within
from loadtest.soak.faults import Fault, Seat
from loadtest.soak.records import Done, Record, Status, decode, encode
from loadtest.soak.visitor import Visitor, pause
from loadtest.talk.streams import Workload, utterances

# Sentences that each language is said in; they come again in a long run.
_TEXTS = 400

# How long a seat is empty between two clients, and how often the process says how it is doing.
_EMPTY_S = (1.0, 4.0)
_STATUS_S = 0.5

_SHORTEST_STAY_S = 20.0

_LINE_BYTES = 2**20
_LEAVE_S = 10.0


class Crowd(Struct, frozen=True):
    """What a client process is."""

    process: int
    # Where the gateway listens.
    port: int
    seed: int
    # Over which the first clients come.
    ramp_s: float
    # How long one stays on average.
    stay_s: float
    seats: list[Seat]


Order = Fault | Literal["hush", "flush", "leave"]
"""A fault: break the client in its seat. `hush`: no client says anything more, comes or goes. `flush`: each client
pings; answered once all have their pong. `leave`: everybody leaves; answered when they are gone."""

_orders = msgspec.json.Decoder(Order)


# ---------------------------------------------------------------- seen by the process that started it


class CrowdProcess:
    """One that runs: `read` it in a task, and `end` it."""

    def __init__(self, crowd: Crowd, process: asyncio.subprocess.Process, take: Callable[[Record], None]) -> None:
        assert process.stdin is not None  # noqa: S101 -- started with pipes
        assert process.stdout is not None  # noqa: S101 -- started with pipes
        self.number = crowd.process
        self.seats = tuple(seat.number for seat in crowd.seats)
        # The newest one.
        self.status: Status | None = None
        # Orders that it has carried out.
        self.done: set[str] = set()
        self._take = take
        self._process = process
        self._orders, self._records = process.stdin, process.stdout
        self.tell(crowd)

    @classmethod
    async def start(cls, crowd: Crowd, take: Callable[[Record], None]) -> Self:
        """take: gets each record that is not about the process itself."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "loadtest.soak.crowd"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LINE_BYTES,
            # Ctrl-C is for the soak alone, which ends it in order.
            start_new_session=True,
        )
        return cls(crowd, process, take)

    async def read(self) -> None:
        """Take its records until it ends. Raises `LoadtestError` when that is before it was told to."""
        while line := await self._records.readline():
            match record := decode(line):
                case Status():
                    self.status = record
                case Done(what=what):
                    self.done.add(what)
                case _:
                    self._take(record)
        if "leave" not in self.done:
            raise LoadtestError(f"Client process {self.number} ended before its time.")

    def tell(self, line: Crowd | Order) -> None:
        """Give an order; a process that is stopped finds it when it goes on."""
        # A few hundred bytes now and then; no task has to wait for them.
        self._orders.write(msgspec.json.encode(line) + b"\n")

    def stop(self) -> None:
        """SIGSTOP: it reads nothing any more, and its connections stay open."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT. What it told before counts no longer."""
        self.status = None
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGCONT)

    async def end(self) -> None:
        """However it is doing, it is gone afterwards. When everybody has left, it ends by itself."""
        if "leave" in self.done:
            self._orders.close()
            await within(_LEAVE_S, self._process.wait())
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


# ---------------------------------------------------------------- the process itself


class _Clients:
    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd
        self._name = f"process {crowd.process}"
        self._hushed = asyncio.Event()
        self._leave = asyncio.Event()
        self._present: dict[int, Visitor] = {}
        self._texts = {
            lang: [
                said.text
                for said in utterances(Workload(crowd.seed, lang, "en" if lang != "en" else "ja"), _TEXTS)
            ]
            for lang in LANGUAGES
        }

    async def run(self) -> None:
        """Until the standard input ends or everybody has left."""
        async with asyncio.TaskGroup() as tasks:
            telling = tasks.create_task(self._tell())
            obeying = tasks.create_task(self._obey())
            async with asyncio.TaskGroup() as seats:
                for seat in self._crowd.seats:
                    seats.create_task(self._occupy(seat))
            self._say(Done(time.monotonic(), self._name, "leave"))
            await obeying
            telling.cancel()

    async def _occupy(self, seat: Seat) -> None:
        rng = random.Random(f"seat/{self._crowd.seed}/{seat.number}")
        await pause(rng.uniform(0, self._crowd.ramp_s), self._hushed)
        serial = 0
        while not self._hushed.is_set():
            serial += 1
            visitor = Visitor(
                f"{seat.number}.{serial}",
                seat,
                self._crowd.port,
                say=self._say,
                texts=self._texts[seat.speaks or "en"],
                rng=random.Random(rng.random()),
                stay_s=None if seat.stays else _SHORTEST_STAY_S + rng.expovariate(1 / self._crowd.stay_s),
                hushed=self._hushed,
                leave=self._leave,
            )
            self._present[seat.number] = visitor
            await visitor.run()
            del self._present[seat.number]
            await pause(rng.uniform(*_EMPTY_S), self._hushed)

    async def _obey(self) -> None:
        """Until the standard input ends; then everybody leaves."""
        async with asyncio.TaskGroup() as tasks:
            while line := await asyncio.to_thread(sys.stdin.buffer.readline):
                match _orders.decode(line):
                    case Fault() as fault:
                        if (visitor := self._present.get(fault.target)) is not None:
                            tasks.create_task(visitor.suffer(fault.kind, fault.pause_s))
                    case "hush":
                        self._hushed.set()
                    case "flush":
                        tasks.create_task(self._flush())
                    case "leave":
                        self._leave.set()
            self._hushed.set()
            self._leave.set()

    async def _flush(self) -> None:
        await asyncio.gather(*(visitor.flush(last=True) for visitor in self._present.values()))
        self._say(Done(time.monotonic(), self._name, "flush"))

    async def _tell(self) -> None:
        while True:
            present = self._present.values()
            connected = sum(visitor.connected for visitor in present)
            unsettled = sum(not visitor.settled for visitor in present)
            away = sum(visitor.away for visitor in present)
            self._say(Status(time.monotonic(), self._name, len(present), connected, unsettled, away))
            await asyncio.sleep(_STATUS_S)

    def _say(self, record: Record) -> None:
        sys.stdout.buffer.write(encode(record) + b"\n")
        sys.stdout.buffer.flush()


def _main() -> None:
    crowd = msgspec.json.decode(sys.stdin.buffer.readline(), type=Crowd)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_Clients(crowd).run())
    except* (KeyboardInterrupt, BrokenPipeError):
        # The process that started this one is leaving.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    _main()
