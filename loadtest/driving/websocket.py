"""A gateway over WebSockets: private meetings, each with one session that speaks a language and reads another.

Knows: the gateway's messages as far as a translation needs them, how sessions share the lines. Must not know: when
lines are said, how frames are cut (`wire`).
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import msgspec
from websockets.exceptions import WebSocketException

from gateway.domain.log import whole_id
from gateway.protocol.limits import Limits
from gateway.protocol.messages import SessionStart, UtteranceFinal
from loadtest.driving.exchange import Client, Share
from loadtest.driving.meetings import ACCEPTED, CAPTION, DELTA, ERROR, FAILED, FINAL, heard
from loadtest.driving.requests import Answer, Requests, Tally
from loadtest.driving.segments import Segments, Translations
from loadtest.driving.wire import Wanted, Wire, open_all, open_wire
from loadtest.results import LoadtestError
from loadtest.trial.values import Closed, Line, Open, WebSocketGateway

# Sessions of a client in an open loop: so many at least, and enough for what is said in so many seconds, of which
# a session holds as much as a gateway's limit on utterances in flight is by default.
_LEAST_SESSIONS = 64
_HELD_S = 30.0

_Pair = tuple[str, str]


class _Said(NamedTuple):
    answer: Answer
    target: str
    translations: Translations
    ended: asyncio.Future[None]


class _Session:
    """One connection with its session. Frames are taken where the connection finds them, without a task."""

    __slots__ = ("_said", "_segments", "_tally", "left", "wire")

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        # Whether it was left while the gateway was still translating.
        self.left = False
        self._tally: Tally | None = None
        self._said: dict[str, _Said] = {}
        self._segments = Segments()
        wire.take = self._take
        wire.ended = self._lost

    @property
    def usable(self) -> bool:
        return self.wire.lost is None and not self.left

    @property
    def in_flight(self) -> int:
        return len(self._said)

    async def say(self, id: str, line: Line, answer: Answer, tally: Tally) -> None:
        """Until the translation has ended."""
        self._tally = tally
        if self.wire.lost is not None:
            answer.failed = self.wire.lost
            return
        ended = asyncio.get_running_loop().create_future()
        self._said[id] = _Said(answer, line.targets[0], Translations(), ended)
        answer.sent_s = time.monotonic()
        self.wire.send(msgspec.json.encode(UtteranceFinal(id, 1, line.text)))
        try:
            await ended
        except asyncio.CancelledError:
            self.left = True
            raise
        finally:
            del self._said[id]
            self._segments.forget(id)

    def _take(self, frame: bytes) -> None:
        if self._tally is not None:
            self._tally.frames += 1
            self._tally.bytes += len(frame)
        if not frame.startswith((DELTA, FINAL, FAILED, ERROR, ACCEPTED, CAPTION)):
            return
        message = heard.decode(frame)
        utterance = message.utterance or message.id
        if utterance is None or (said := self._said.get(id := whole_id(utterance))) is None:
            return
        answer = said.answer
        if frame.startswith((FAILED, ERROR)):
            answer.failed = message.code
            if message.retryable:
                answer.retry_after_s = (message.retry_after_ms or 0) / 1000
            _set(said.ended)
        elif frame.startswith((DELTA, FINAL)):
            answer.show(message.committed + message.tentative + message.text)
            if frame.startswith(FINAL):
                said.translations.add(utterance, message.text, message.tokens)
        elif message.offset is not None:
            counting = self._segments.accepted if frame.startswith(ACCEPTED) else self._segments.caption
            counting(utterance, message.offset)
        if answer.failed is None and len(said.translations) == self._segments.many.get(id):
            answer.end(said.translations.text(said.target), said.translations.tokens)
            _set(said.ended)

    def _lost(self, why: str) -> None:
        for said in self._said.values():
            said.answer.failed = why
            _set(said.ended)


def _set(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)


class _Pool:
    """Sessions of one pair of languages; the one that says the least takes the next line."""

    def __init__(self) -> None:
        self.sessions: list[_Session] = []
        self.free: deque[_Session] = deque()

    def renew(self) -> None:
        """All that can be used are free; the others are let go of."""
        for session in self.sessions:
            if not session.usable:
                session.wire.close()
        self.sessions = [session for session in self.sessions if session.usable]
        self.free = deque(self.sessions)

    def add(self, wire: Wire) -> None:
        session = _Session(wire)
        self.sessions.append(session)
        self.free.append(session)

    def take(self) -> _Session:
        """Raises `LoadtestError` when all were lost."""
        while self.free:
            session = self.free.popleft()
            if session.wire.lost is None:
                return session
        alive = [session for session in self.sessions if session.wire.lost is None]
        if not alive:
            raise LoadtestError(f"The gateway ended all sessions of a client: {self.sessions[0].wire.lost}.")
        return min(alive, key=lambda session: session.in_flight)


class _WebSocketClient(Requests):
    """Sessions are opened when lines of their languages come, and stay for the passes after."""

    def __init__(self, url: str, load: Closed | Open) -> None:
        super().__init__(load)
        self._url = url
        self._pools: dict[_Pair, _Pool] = {}
        self._ids = itertools.count(1)

    async def open_for(self, lines: Sequence[Line]) -> None:
        for pool in self._pools.values():
            pool.renew()
        wanted: list[Wanted] = []
        for (source, target), count in Counter((line.source, line.targets[0]) for line in lines).items():
            pool = self._pools.setdefault((source, target), _Pool())
            missing = self._wanted(count / len(lines)) - len(pool.sessions)
            wanted += [(SessionStart(reads=[target], speaks=source), pool.add)] * missing
        await open_all(self._url, wanted)

    def _wanted(self, part: float) -> int:
        """Sessions for so large a part of the lines: enough that none of a gateway's limits is reached."""
        match self._load:
            case Closed(in_flight=in_flight):
                # A list has stretches with more of one pair than of the others.
                return in_flight if part == 1 else min(in_flight, math.ceil(1.5 * part * in_flight) + 1)
            case Open(per_s=per_s):
                return math.ceil(part * max(_LEAST_SESSIONS, per_s * _HELD_S / Limits().utterances_in_flight))

    async def translate(self, line: Line, answer: Answer, tally: Tally) -> None:
        pool = self._pools[line.source, line.targets[0]]
        session = pool.take()
        # Ids of the lines would be revisions of the same utterance in the next pass.
        await session.say(str(next(self._ids)), line, answer, tally)
        if not session.in_flight:
            pool.free.append(session)

    def close(self) -> None:
        for pool in self._pools.values():
            for session in pool.sessions:
                session.wire.close()


@asynccontextmanager
async def client(address: WebSocketGateway, load: Closed | Open, _share: Share) -> AsyncIterator[Client]:
    """A client of the gateway at `address`. Raises `LoadtestError` when there is none."""
    try:
        (await open_wire(address.url)).close()
    except (OSError, TimeoutError, WebSocketException) as error:
        raise LoadtestError(
            f"No gateway answers at {address.url} ({str(error) or type(error).__name__})."
        ) from None
    opened = _WebSocketClient(address.url, load)
    try:
        yield opened
    finally:
        opened.close()
