"""A client process of the soak: all clients of some seats, one after the other in each.

Knows: when clients come and go, and the lines exchanged with the process that started it. Must not know: what a
client does (`visitor`), what follows from what it saw.

    python -m loadtest.soak.clients

The first line on its standard input is a `Crowd`, the others are commands. On its standard output are records, one
a line. It leaves when its standard input ends.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from contextlib import suppress

import msgspec
import uvloop
from msgspec import Struct

from demo_model import LANGUAGES
from loadtest.soak.faults import FaultKind
from loadtest.soak.population import Seat
from loadtest.soak.records import Done, Record, Status, encode
from loadtest.soak.visitor import Visitor
from loadtest.workload import Workload, utterances

__all__ = ["Break", "Command", "Crowd", "Flush", "Hush", "Leave"]

# Sentences that each language is said in; they come again in a long run.
_TEXTS = 400

# How long a seat is empty between two clients, and how often the process says how it stands.
_EMPTY_S = (1.0, 4.0)
_STATUS_S = 1.0

# Records are written in lots.
_WRITE_S = 0.1

# Clients that a status names.
_NAMED = 5

_SHORTEST_STAY_S = 20.0


class Crowd(Struct, frozen=True):
    """What this process is. ramp_s: over which the first clients come. stay_s: how long one stays on average."""

    process: int
    port: int
    seed: int
    ramp_s: float
    stay_s: float
    seats: list[Seat]


class _Command(Struct, frozen=True, tag_field="type", tag=str.lower):
    pass


class Break(_Command, frozen=True):
    """Let the client in a seat suffer."""

    seat: int
    kind: FaultKind
    pause_s: float


class Hush(_Command, frozen=True):
    """Nobody says anything more, nobody comes, and nobody goes."""


class Flush(_Command, frozen=True):
    """Every client pings; answered once all have their pong. Nothing is to come any more."""


class Leave(_Command, frozen=True):
    """Everybody leaves; answered when they are gone."""


Command = Break | Hush | Flush | Leave

_commands = msgspec.json.Decoder(Command)


class _Process:
    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd
        self._name = f"process {crowd.process}"
        self._hushed = asyncio.Event()
        self._leave = asyncio.Event()
        self._present: dict[int, Visitor] = {}
        self._lines: list[bytes] = []
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
            helping = [tasks.create_task(self._write()), tasks.create_task(self._tell())]
            obeying = tasks.create_task(self._obey())
            async with asyncio.TaskGroup() as seats:
                for seat in self._crowd.seats:
                    seats.create_task(self._occupy(seat))
            self._say(Done(time.monotonic(), self._name, "leave"))
            await obeying
            for task in helping:
                task.cancel()
        self._flush_lines()

    # ------------------------------------------------------------ seats

    async def _occupy(self, seat: Seat) -> None:
        rng = random.Random(f"seat/{self._crowd.seed}/{seat.number}")
        await self._pause(rng.uniform(0, self._crowd.ramp_s))
        serial = 0
        while not self._hushed.is_set():
            serial += 1
            stay_s = None if seat.stays else _SHORTEST_STAY_S + rng.expovariate(1 / self._crowd.stay_s)
            visitor = Visitor(
                f"{seat.number}.{serial}",
                seat,
                self._crowd.port,
                say=self._say,
                texts=self._texts[seat.speaks or "en"],
                rng=random.Random(rng.random()),
                stay_s=stay_s,
                hushed=self._hushed,
                leave=self._leave,
            )
            self._present[seat.number] = visitor
            await visitor.run()
            del self._present[seat.number]
            await self._pause(rng.uniform(*_EMPTY_S))

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hushed.wait()

    # ------------------------------------------------------------ commands

    async def _obey(self) -> None:
        """Until the standard input ends; then everybody leaves."""
        async with asyncio.TaskGroup() as tasks:
            while line := await asyncio.to_thread(sys.stdin.buffer.readline):
                match _commands.decode(line):
                    case Break(seat=seat, kind=kind, pause_s=pause_s):
                        if (visitor := self._present.get(seat)) is not None:
                            tasks.create_task(visitor.suffer(kind, pause_s))
                    case Hush():
                        self._hushed.set()
                    case Flush():
                        tasks.create_task(self._flush())
                    case Leave():
                        self._leave.set()
            self._hushed.set()
            self._leave.set()

    async def _flush(self) -> None:
        await asyncio.gather(*(visitor.flush(last=True) for visitor in self._present.values()))
        self._say(Done(time.monotonic(), self._name, "flush"))

    # ------------------------------------------------------------ records

    async def _tell(self) -> None:
        while True:
            present = list(self._present.values())
            self._say(
                Status(
                    at=time.monotonic(),
                    client=self._name,
                    clients=len(present),
                    connected=sum(visitor.connected for visitor in present),
                    unacknowledged=sum(visitor.unacknowledged for visitor in present),
                    unsettled=tuple(why for visitor in present if (why := visitor.unsettled))[:_NAMED],
                )
            )
            await asyncio.sleep(_STATUS_S)

    def _say(self, record: Record) -> None:
        self._lines.append(encode(record))

    async def _write(self) -> None:
        while True:
            await asyncio.sleep(_WRITE_S)
            self._flush_lines()

    def _flush_lines(self) -> None:
        if self._lines:
            lines, self._lines = self._lines, []
            sys.stdout.buffer.write(b"\n".join(lines) + b"\n")
            sys.stdout.buffer.flush()


def _main() -> None:
    crowd = msgspec.json.decode(sys.stdin.buffer.readline(), type=Crowd)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_Process(crowd).run())
    except* (KeyboardInterrupt, BrokenPipeError):
        # Whoever started us is leaving; nobody is there to be told.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    _main()
