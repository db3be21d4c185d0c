"""Client processes of the soak: each has the clients of some seats, one after the other in each. A client joins,
talks, reads, suffers and leaves, and says what it saw.

Knows: the product's client, the relay that its connections go through, when clients come and go, the lines
exchanged with the process that started it, signals. Must not know: what follows from what was seen.

    python -m loadtest.soak.crowd

The first line on its standard input is a `Crowd`, the others are orders. On its standard output are records, one a
line. It leaves when its standard input ends.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Literal, Self

import msgspec
import uvloop
from msgspec import Struct

from demo_model import LANGUAGES
from gateway.client import ClientError, ClientSession, Reconnect, Reconnected, Reconnecting, SessionEvent, connect
from gateway.protocol.codec import JSON, Codec
from gateway.protocol.messages import (
    Caption,
    Error,
    Pong,
    ServerMessage,
    SessionStarted,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
)
from gateway.runtime import within
from loadtest.results import LoadtestError, first_error
from loadtest.soak.faults import Fault, FaultKind, Seat
from loadtest.soak.records import (
    Again,
    Cancelled,
    Done,
    Flushed,
    Heard,
    Joined,
    Left,
    Message,
    Record,
    Said,
    Status,
    decode,
    encode,
)
from loadtest.soak.relay import Relay
from loadtest.talk.streams import utterances

# The share of accepted utterances that are taken back, and of all that have partials before.
_CANCELLED = 0.005
_WITH_PARTIALS = 0.4
_PARTIAL_S = (0.2, 0.6)

# How long, and after which pauses, a newcomer tries to get in.
_PATIENCE_S = 180.0
_AGAIN_S = (0.5, 3.0)

# What leaving may wait for: an engine being built again, or a gateway.
_ANSWERS_S = 180.0
_GOODBYE_S = 90.0
_PONG_S = 20.0


class WireCodec(Codec):
    """JSON; says which publications had arrived before in this session, since the client drops those."""

    def __init__(self, client: str, say: Callable[[Record], None]) -> None:
        super().__init__(JSON.subprotocol, "JSON", msgspec.json, binary=False)
        self._client = client
        self._say = say
        # The highest offset of this session.
        self._arrived = 0

    def decode_server(self, frame: str | bytes) -> ServerMessage:
        message = JSON.decode_server(frame)
        match message:
            case SessionStarted(recovered=recovered) if not recovered:
                # A new session is shown the newest again.
                self._arrived = 0
            case Caption(offset=int(offset)) | TranslationFinal(offset=offset) | TranslationFailed(offset=offset):
                if offset <= self._arrived:
                    self._say(Again(_now_s(), self._client, offset))
                self._arrived = max(self._arrived, offset)
        return message


@dataclass(eq=False)
class Visitor:
    """`run` it; meanwhile `suffer` and `flush` may be called."""

    name: str
    seat: Seat
    # Where the gateway listens.
    port: int
    # Takes each record.
    say: Callable[[Record], None]
    # Texts to say.
    texts: Sequence[str]
    rng: random.Random
    # How long; None: until `leave` is set.
    stay_s: float | None
    # Set when no more is to be said, by anybody; a client that is there then stays until `leave`.
    hushed: asyncio.Event
    leave: asyncio.Event

    # Whether it has a connection now.
    connected: bool = field(default=False, init=False)
    # Whether it has none because of what it suffers.
    away: bool = field(default=False, init=False)
    _session: ClientSession | None = field(default=None, init=False)
    _relay: Relay | None = field(default=None, init=False)
    _serial: int = field(default=0, init=False)
    # Finals that were neither accepted nor refused.
    _open: set[str] = field(default_factory=set, init=False)
    _fewer: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _flushed: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    # Whether the ping is the last one.
    _last: bool = field(default=False, init=False)
    _leaving: bool = field(default=False, init=False)
    _talking: bool = field(default=False, init=False)

    @property
    def settled(self) -> bool:
        """Whether it is connected, says nothing and has an answer to all that it said."""
        return self.connected and not self._talking and not self._open

    async def run(self) -> None:
        """From `session.start` to the end; ends in a `Left`, whatever happens."""
        reason = ""
        # A thin line makes a stopped reader overflow within the time that it is stopped.
        relay = Relay(self.port, thin=self.seat.process > 0)
        try:
            async with relay, AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
                session = await self._connected(stack, relay.url)
                self._joined(session.started)
                self._session, self._relay = session, relay
                reading = tasks.create_task(self._read(session))
                speaking = tasks.create_task(self._speak(session))
                await within(self.stay_s, self.leave.wait())
                if self.hushed.is_set():
                    await self.leave.wait()
                self._leaving = True
                if not self._talking:
                    speaking.cancel()
                await asyncio.wait([speaking])
                await self._answered()
                if not self.leave.is_set():
                    await self.flush(last=False)
                await self._goodbye(session, reading)
        except* (ClientError, LoadtestError) as errors:
            reason = str(first_error(errors))
        self._session = None
        self.connected = False
        self.say(Left(_now_s(), self.name, not reason, reason))

    async def _connected(self, stack: AsyncExitStack, address: str) -> ClientSession:
        """The product's client begins with one attempt; a gateway that restarts is worth some more."""
        seat, until_s = self.seat, _now_s() + _PATIENCE_S
        while True:
            opening = connect(
                address,
                reads=seat.reads,
                speaks=seat.speaks,
                meeting=seat.meeting,
                name=self.name,
                codec=WireCodec(self.name, self.say),
                reconnect=Reconnect(jitter=self.rng.random),
            )
            try:
                return await stack.enter_async_context(opening)
            except ClientError:
                if _now_s() > until_s:
                    raise
            await asyncio.sleep(self.rng.uniform(*_AGAIN_S))

    # ------------------------------------------------------------ staying and leaving

    async def _answered(self) -> None:
        """Wait until every final was accepted or refused."""
        until_s = _now_s() + _ANSWERS_S
        while self._open:
            self._fewer.clear()
            if not await within(until_s - _now_s(), self._fewer.wait()):
                return

    async def _goodbye(self, session: ClientSession, reading: asyncio.Task[None]) -> None:
        if self.rng.random() < 0.5:
            # The others end their session by closing the connection.
            await session.end()
            if not (await asyncio.wait([reading], timeout=_GOODBYE_S))[0]:
                raise LoadtestError(f"`session.end` was not carried out within {_GOODBYE_S:g} s.")
        else:
            await session.close()
            reading.cancel()

    async def flush(self, *, last: bool) -> None:
        """Ping until it is answered: what was written to it before has arrived."""
        self._last = last
        self._flushed.clear()
        until_s = _now_s() + _ANSWERS_S
        while (session := self._session) is not None and not self._flushed.is_set() and _now_s() < until_s:
            await session.ping(str(_now_s()))
            # There is no answer when the connection breaks meanwhile.
            await within(_PONG_S, self._flushed.wait())

    # ------------------------------------------------------------ talking

    async def _speak(self, session: ClientSession) -> None:
        if self.seat.speaks is None:
            return
        while True:
            await within(self.rng.expovariate(self.seat.utterances_per_s), self.hushed.wait())
            if self._leaving or self.hushed.is_set():
                return
            self._talking = True
            await self._say_one(session)
            self._talking = False

    async def _say_one(self, session: ClientSession) -> None:
        text = self.rng.choice(self.texts)
        self._serial += 1
        id = f"{self.name}-{self._serial}"
        if self.rng.random() < _WITH_PARTIALS:
            for part in (0.4, 0.8):
                await session.partial(text[: max(int(len(text) * part), 1)], id)
                await asyncio.sleep(self.rng.uniform(*_PARTIAL_S))
        # Noted before it is sent: the answer may come while `final` still waits.
        self._open.add(id)
        self.say(Said(_now_s(), self.name, id, self.seat.speaks or ""))
        await session.final(text, id)

    # ------------------------------------------------------------ reading

    async def _read(self, session: ClientSession) -> None:
        async for event in session:
            self._take(event)
            if isinstance(event, UtteranceAccepted) and self.rng.random() < _CANCELLED:
                self.say(Cancelled(_now_s(), self.name, event.id))
                await session.cancel(event.id)
        if not self._leaving:
            raise LoadtestError("The gateway ended the session by itself.")

    def _take(self, event: SessionEvent) -> None:
        match event:
            case Caption(offset=None):
                return
            case UtteranceAccepted(id=id) | Error(utterance=str(id), retryable=False):
                self._open.discard(id)
                self._fewer.set()
            case Pong(nonce=nonce):
                self.say(Flushed(_now_s(), self.name, float(nonce), self._last))
                self._flushed.set()
            case Reconnecting():
                self.connected = False
            case Reconnected(started=started):
                self._joined(started)
        if isinstance(event, Message):
            self.say(Heard(_now_s(), self.name, event))

    def _joined(self, started: SessionStarted) -> None:
        self.connected, self.away = True, False
        self.say(Joined(_now_s(), self.name, started, self.seat.reads))

    # ------------------------------------------------------------ suffering

    async def suffer(self, kind: FaultKind, pause_s: float) -> bool:
        """Break something; returns once the client may come back. False when there is nothing to break."""
        relay = self._relay
        if relay is None or not self.connected or self._leaving:
            return False
        self.away = True
        match kind:
            case FaultKind.HALF_OPEN:
                relay.freeze()
                await asyncio.sleep(pause_s)
                relay.strand()
            case FaultKind.ABSENCE | FaultKind.LONG_ABSENCE:
                relay.refuse(True)
                relay.cut()
                await asyncio.sleep(pause_s)
                relay.refuse(False)
            case _:
                relay.cut()
        return True


def _now_s() -> float:
    return round(time.monotonic(), 4)


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


class _Clients:
    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd
        self._name = f"process {crowd.process}"
        self._hushed = asyncio.Event()
        self._leave = asyncio.Event()
        self._present: dict[int, Visitor] = {}
        self._texts = {lang: utterances(crowd.seed, lang, _TEXTS) for lang in LANGUAGES}

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
        await within(rng.uniform(0, self._crowd.ramp_s), self._hushed.wait())
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
            await within(rng.uniform(*_EMPTY_S), self._hushed.wait())

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
