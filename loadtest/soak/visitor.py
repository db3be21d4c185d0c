"""One client in one seat: it joins, talks, reads, suffers and leaves, and says what it saw.

Knows: the product's client, the soak's own, and the relay between. Must not know: other clients, what is counted.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from gateway.client import ClientError, ClientSession, Reconnected, Reconnecting, SessionEvent, connect
from gateway.protocol.messages import (
    Caption,
    Error,
    Pong,
    SessionDraining,
    SessionStart,
    SessionStarted,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
)
from loadtest.results import LoadtestError
from loadtest.soak.faults import FaultKind
from loadtest.soak.population import Client, Seat
from loadtest.soak.raw import RawSession
from loadtest.soak.records import (
    Accepted,
    Cancelled,
    Flushed,
    Got,
    Joined,
    Kind,
    Left,
    Lost,
    Record,
    Refused,
    Said,
    Told,
)
from loadtest.soak.relay import Relay

__all__ = ["Visitor"]

# Of accepted utterances: how many are taken back; of all: how many have partials before.
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


class Visitor:
    """`run` it; meanwhile `suffer` and `flush` may be called. `connected`: whether it has a connection now.

    say: takes each record. texts: what to say. stay_s: how long; null: until `leave` is set. hushed: set when no
    more is to be said, by anybody; whoever is there then stays until `leave`.
    """

    def __init__(
        self,
        name: str,
        seat: Seat,
        port: int,
        *,
        say: Callable[[Record], None],
        texts: Sequence[str],
        rng: random.Random,
        stay_s: float | None,
        hushed: asyncio.Event,
        leave: asyncio.Event,
    ) -> None:
        self.name = name
        self.seat = seat
        self.connected = False
        self._port = port
        self._say = say
        self._texts = texts
        self._rng = rng
        self._stay_s = stay_s
        self._hushed = hushed
        self._leave = leave
        self._session: ClientSession | RawSession | None = None
        self._relay: Relay | None = None
        self._participant = ""
        self._serial = 0
        self._open: set[str] = set()
        self._fewer = asyncio.Event()
        self._pongs: dict[str, asyncio.Future[None]] = {}
        self._last_reason = ""
        self._leaving = False
        self._pausing = False
        self._talking = False

    @property
    def unacknowledged(self) -> int:
        """Finals that were neither accepted nor refused."""
        return len(self._open)

    @property
    def unsettled(self) -> str:
        """What is still to happen to it, for people; empty when it is connected and answered."""
        if not self.connected:
            return f"{self.name} ({self.seat.client.value}) is not connected: {self._last_reason or 'joining'}"
        if self._talking:
            return f"{self.name} is talking"
        return f"{self.name} waits for {len(self._open)} answers" if self._open else ""

    async def run(self) -> None:
        """From `session.start` to the end; ends in a `Left`, whatever happens."""
        reason = ""
        try:
            async with self._entered() as session, asyncio.TaskGroup() as tasks:
                self._session = session
                reading = tasks.create_task(self._read(session))
                speaking = tasks.create_task(self._speak(session))
                await self._stay()
                self._leaving = True
                if self._pausing:
                    speaking.cancel()
                await asyncio.wait([speaking])
                await self._answered()
                if not self._leave.is_set():
                    await self.flush(last=False)
                await self._goodbye(session, reading)
        except* (ClientError, LoadtestError) as errors:
            reason = str(_first(errors))
        self._session = None
        self.connected = False
        self._say(Left(_now_s(), self.name, not reason, reason))

    @asynccontextmanager
    async def _entered(self) -> AsyncIterator[ClientSession | RawSession]:
        seat, address = self.seat, f"http://127.0.0.1:{self._port}"
        async with AsyncExitStack() as stack:
            if seat.client is Client.RAW:
                start = SessionStart(list(seat.reads), seat.speaks, seat.meeting, self.name)
                raw = RawSession(address, start, self._rng)
                stack.push_async_callback(raw.close)
                self._joined(await raw.open())
                yield raw
                return
            if seat.client is Client.RELAYED:
                self._relay = await stack.enter_async_context(Relay(self._port))
                address = self._relay.url
            session = await self._connected(stack, address)
            self._joined(session.started)
            yield session

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
                jitter=self._rng.random,
            )
            try:
                return await stack.enter_async_context(opening)
            except ClientError as error:
                if _now_s() > until_s:
                    raise
                self._last_reason = str(error)
                self._say(Told(_now_s(), self.name, type(error).__name__))
            await asyncio.sleep(self._rng.uniform(*_AGAIN_S))

    # ------------------------------------------------------------ staying and leaving

    async def _stay(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._stay_s):
                await self._leave.wait()
        if self._hushed.is_set():
            await self._leave.wait()

    async def _answered(self) -> None:
        """Wait until every final was accepted or refused."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_ANSWERS_S):
                while self._open:
                    self._fewer.clear()
                    await self._fewer.wait()

    async def _goodbye(self, session: ClientSession | RawSession, reading: asyncio.Task[None]) -> None:
        if self._rng.random() < 0.5:
            # The other half ends its session by closing the connection.
            await session.end()
            with suppress(TimeoutError):
                async with asyncio.timeout(_GOODBYE_S):
                    await asyncio.shield(reading)
                return
            raise LoadtestError(f"`session.end` was not carried out within {_GOODBYE_S:g} s.")
        await session.close()
        reading.cancel()

    async def flush(self, *, last: bool) -> None:
        """Ping until it is answered: what was written to it before has arrived."""
        until_s = _now_s() + _ANSWERS_S
        while (session := self._session) is not None and _now_s() < until_s:
            sent_at = _now_s()
            nonce = f"{sent_at:.6f}"
            pong = self._pongs[nonce] = asyncio.get_running_loop().create_future()
            try:
                await session.ping(nonce)
                async with asyncio.timeout(_PONG_S):
                    await pong
            except TimeoutError:
                continue  # the connection broke meanwhile
            finally:
                del self._pongs[nonce]
            self._say(Flushed(_now_s(), self.name, sent_at, last))
            return

    # ------------------------------------------------------------ talking

    async def _speak(self, session: ClientSession | RawSession) -> None:
        if self.seat.speaks is None:
            return
        while True:
            await self._pause(self._rng.expovariate(self.seat.utterances_per_s))
            if self._leaving or self._hushed.is_set():
                return
            self._talking = True
            await self._say_one(session)
            self._talking = False

    async def _say_one(self, session: ClientSession | RawSession) -> None:
        text = self._rng.choice(self._texts)
        self._serial += 1
        id = f"{self.name}-{self._serial}"
        if self._rng.random() < _WITH_PARTIALS:
            for part in (0.4, 0.8):
                await session.partial(text[: max(int(len(text) * part), 1)], id)
                await asyncio.sleep(self._rng.uniform(*_PARTIAL_S))
        # Noted before it is sent: the answer may come while `final` still waits.
        self._open.add(id)
        self._say(Said(_now_s(), self.name, self._participant, id, self.seat.speaks or "", len(text)))
        await session.final(text, id)

    async def _pause(self, seconds: float) -> None:
        self._pausing = True
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hushed.wait()
        self._pausing = False

    # ------------------------------------------------------------ reading

    async def _read(self, session: ClientSession | RawSession) -> None:
        async for event in session:
            self._take(event)
            if isinstance(event, UtteranceAccepted) and self._rng.random() < _CANCELLED:
                self._say(Cancelled(_now_s(), self.name, self._participant, event.id))
                await session.cancel(event.id)
        if not self._leaving:
            raise LoadtestError("The gateway ended the session by itself.")

    def _take(self, event: SessionEvent) -> None:
        now_s = _now_s()
        match event:
            case TranslationFinal():
                key = (event.participant, event.utterance, event.lang)
                self._say(Got(now_s, self.name, Kind.FINAL, *key, event.rev, event.offset))
            case TranslationFailed():
                key = (event.participant, event.utterance, event.lang)
                self._say(Got(now_s, self.name, Kind.FAILED, *key, event.rev, event.offset, event.code))
            case Caption(final=True, offset=int(offset)):
                key = (event.participant, event.utterance, event.lang)
                self._say(Got(now_s, self.name, Kind.CAPTION, *key, event.rev, offset))
            case UtteranceAccepted(id=id):
                self._answer_came(id)
                self._say(Accepted(now_s, self.name, self._participant, id, event.rev, event.offset))
            case Error():
                self._error(event, now_s)
            case Pong(nonce=nonce):
                if (pong := self._pongs.get(nonce)) is not None and not pong.done():
                    pong.set_result(None)
            case Reconnecting(attempt=attempt, reason=reason):
                self._last_reason = f"attempt {attempt}, {reason}"
                if self.connected:
                    self.connected = False
                    self._say(Lost(now_s, self.name, reason))
            case Reconnected(started=started):
                self._joined(started)
            case SessionDraining():
                self._say(Told(now_s, self.name, "session.draining"))

    def _joined(self, started: SessionStarted) -> None:
        self.connected = True
        self._participant = started.participant
        self._say(
            Joined(
                at=_now_s(),
                client=self.name,
                meeting=started.meeting,
                session=started.session,
                participant=started.participant,
                epoch=started.epoch,
                offset=started.offset,
                recovered=started.recovered,
                reads=self.seat.reads,
                speaks=self.seat.speaks,
                wire=self.seat.client is Client.RAW,
            )
        )

    def _error(self, error: Error, now_s: float) -> None:
        if error.utterance is not None and error.utterance in self._open and not error.retryable:
            self._answer_came(error.utterance)
            self._say(Refused(now_s, self.name, self._participant, error.utterance, error.code))
        else:
            self._say(Told(now_s, self.name, error.code))

    def _answer_came(self, id: str) -> None:
        self._open.discard(id)
        self._fewer.set()

    # ------------------------------------------------------------ suffering

    async def suffer(self, kind: FaultKind, pause_s: float) -> bool:
        """Break something; returns once the client may come back. False when there is nothing to break."""
        session, relay = self._session, self._relay
        if session is None or not self.connected or self._leaving:
            return False
        if relay is None:
            match kind:
                case FaultKind.HALF_OPEN if isinstance(session, RawSession):
                    session.fall_silent(pause_s)
                case FaultKind.ABSENCE | FaultKind.LONG_ABSENCE if isinstance(session, RawSession):
                    await session.drop(pause_s)
                case _:
                    await session.drop()
                    return True
            await asyncio.sleep(pause_s)
            return True
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


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
