"""One client in one seat: it joins, talks, reads, suffers and leaves, and says what it saw.

Knows: the product's client, and the relay that its connections go through. Must not know: other clients, what is
counted.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import msgspec

from gateway.client import ClientError, ClientSession, Reconnected, Reconnecting, SessionEvent, connect
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
from loadtest.results import LoadtestError, first_error, within
from loadtest.soak.faults import FaultKind, Seat
from loadtest.soak.records import Again, Cancelled, Flushed, Heard, Joined, Left, Message, Record, Said
from loadtest.soak.relay import Relay

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
        encode, decoder = msgspec.json.encode, msgspec.json.Decoder
        super().__init__(JSON.subprotocol, binary=False, encode=encode, decoder=decoder, format_name="JSON")
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
    # What to say.
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
                jitter=self.rng.random,
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
            await pause(self.rng.expovariate(self.seat.utterances_per_s), self.hushed)
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


async def pause(seconds: float, hushed: asyncio.Event) -> None:
    """For so long, or until no more is to be said."""
    await within(seconds, hushed.wait())


def _now_s() -> float:
    return round(time.monotonic(), 4)
