"""Meetings in a client process: people with sessions of their own, readers, and sessions in which nothing is said.

Knows: who is in which meeting, which of them this process plays, when what is said. Must not know: sockets, what
becomes of what is said.

A meeting's speakers are all in one process; its further readers are spread over all. Every speaker reads one of
the meeting's languages, so that each is read (where there are more languages than speakers, some read several).
For each meeting and language, one speaker's session keeps the records; what arrives at the others is counted. A
session that the gateway closes is a failed record, `session …`, also in a pass without lines, and is not opened
again.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import count

import msgspec

from gateway.protocol.messages import SessionStart, UtteranceFinal, UtterancePartial
from loadtest.driving.client import Share
from loadtest.driving.spoken import Spoken
from loadtest.driving.tally import Tally
from loadtest.driving.wire import Wanted, Wire, allow_files, open_all
from loadtest.results import LoadtestError
from loadtest.trial.values import InMeetings, Line, Load, WebSocketGateway

# The length of a name; one longer in a file is shortened. See `Limits.id_chars` and `Limits.name_chars`.
_MEETING_CHARS = 40
_NAME_CHARS = 80

# What is said late is said without a pause; after so many, messages are received.
_IN_A_ROW = 32

# What idle sessions read: any model has it.
_IDLE_READS = "en"


class _Session:
    """One connection with a session on it."""

    __slots__ = ("_begun", "_spoken", "keeps", "meeting", "name", "reads", "wire")

    def __init__(self, wire: Wire, name: str, meeting: str, reads: Sequence[str]) -> None:
        self.wire = wire
        self.name = name
        self.meeting = meeting
        self.reads = reads
        # Languages of which it keeps the records.
        self.keeps: Collection[str] = ()
        self._spoken: Spoken | None = None
        # Utterances and languages of which it has had text in this pass.
        self._begun: set[tuple[str, str]] = set()
        wire.take = self._take
        wire.ended = self._ended

    def join(self, spoken: Spoken | None) -> None:
        """What arrives from now on belongs to this pass; None: to none."""
        self._spoken, self._begun = spoken, set()
        if self.wire.lost is not None:
            self._ended(self.wire.lost)

    def _take(self, frame: bytes) -> None:
        if self._spoken is not None:
            self._spoken.arrived(frame, self.keeps, self._begun)

    def _ended(self, why: str) -> None:
        if self._spoken is not None:
            self._spoken.lost(self.name, self.meeting, self.keeps, why)


# ---------------------------------------------------------------- the client


@asynccontextmanager
async def client(address: WebSocketGateway, load: InMeetings, share: Share) -> AsyncIterator[Meetings]:
    """Meetings in a gateway; the sessions in which nothing is said are open. Raises `LoadtestError`."""
    meetings = Meetings(address.url, load, share)
    try:
        await meetings.open_idle()
        yield meetings
    finally:
        meetings.close()


class Meetings:
    """A `Client`: this process's part of all meetings."""

    def __init__(self, url: str, load: InMeetings, share: Share) -> None:
        self._url = url
        self._load = load
        self._share = share
        self._prefix = f"loadtest-{share.token}-"
        self._speakers: dict[tuple[str, str], _Session] = {}
        self._readers: dict[str, list[_Session]] = defaultdict(list)
        self._idle: list[_Session] = []
        # All meetings so far, numbered the same in each process.
        self._places: dict[str, int] = {}
        # What is played next.
        self._lines: Sequence[Line] = ()

    async def open_idle(self) -> None:
        """Sessions in meetings of their own. Raises `LoadtestError`."""
        mine = range(self._share.index, self._load.idle, self._share.processes)
        allow_files(len(mine))

        def wanted(number: int) -> Wanted:
            def take(wire: Wire) -> None:
                self._idle.append(_Session(wire, f"idle session {number}", "", ()))

            return Wanted(SessionStart(reads=[_IDLE_READS]), take)

        await open_all(self._url, [wanted(number) for number in mine])

    async def reset_prefix_cache(self) -> None:
        """It holds no engine."""

    async def prepare(self, lines: Sequence[Line], _load: Load | None = None) -> Sequence[Line]:
        """Open the sessions that these lines need and that are not open yet. Raises `LoadtestError`."""
        by_meeting: dict[str, list[Line]] = defaultdict(list)
        for line in lines:
            by_meeting[line.meeting].append(line)
        self._lines = lines
        wanted: list[Wanted] = []
        for name in sorted(by_meeting):
            place = self._places.setdefault(name, len(self._places))
            if self._is_own(name):
                wanted += self._missing_speakers(name, by_meeting[name])
            wanted += self._missing_readers(name, by_meeting[name], place)
        allow_files(len(wanted) + sum(1 for _ in self._all()))
        await open_all(self._url, wanted)
        answered = [line for line in lines if self._is_own(line.meeting)]
        self._keep(answered)
        return answered

    async def play(self, tally: Tally) -> None:
        """Say everything when it is due, until it has its records and readers what they are to have."""
        spoken = Spoken(tally, self._lines, {name for name in self._places if self._is_own(name)})
        try:
            for session in self._all():
                session.join(spoken)
            # Until it begins, sessions that are lost tell so.
            await asyncio.sleep(tally.begin_s - time.monotonic())
            await self._say(spoken, tally)
            await spoken.over(self._expected())
        finally:
            for session in self._all():
                session.join(None)

    def close(self) -> None:
        """Leave every meeting."""
        for session in self._all():
            session.join(None)
            session.wire.close()

    # ------------------------------------------------------------ who is where

    def _is_own(self, meeting: str) -> bool:
        """Whether its speakers are in this process."""
        return self._places[meeting] % self._share.processes == self._share.index

    def _all(self) -> Iterator[_Session]:
        yield from self._speakers.values()
        for readers in self._readers.values():
            yield from readers
        yield from self._idle

    def _missing_speakers(self, meeting: str, lines: Sequence[Line]) -> Iterator[Wanted]:
        targets = _targets(lines)
        speaks = {line.speaker: line.source for line in lines}
        known = sum(name == meeting for name, _ in self._speakers)
        unknown = [name for name in sorted(speaks) if (meeting, name) not in self._speakers]
        for place, name in enumerate(unknown, start=known):
            reads = targets[place :: len(speaks)] or (targets[place % len(targets)],)

            def take(wire: Wire, name: str = name, reads: Sequence[str] = reads) -> None:
                self._speakers[meeting, name] = _Session(wire, f"{name} of {meeting}", meeting, reads)

            yield Wanted(self._start(meeting, name, reads, speaks[name]), take)

    def _missing_readers(self, meeting: str, lines: Sequence[Line], place: int) -> Iterator[Wanted]:
        targets = _targets(lines)
        processes = self._share.processes
        mine = range((self._share.index - place) % processes, self._load.readers, processes)
        for number in mine[len(self._readers[meeting]) :]:
            name, reads = f"reader {number}", (targets[number % len(targets)],)

            def take(wire: Wire, name: str = name, reads: Sequence[str] = reads) -> None:
                self._readers[meeting].append(_Session(wire, f"{name} of {meeting}", meeting, reads))

            yield Wanted(self._start(meeting, name, reads, None), take)

    def _start(self, meeting: str, name: str, reads: Sequence[str], speaks: str | None) -> SessionStart:
        if len(meeting) > _MEETING_CHARS:
            meeting = hashlib.blake2b(meeting.encode(), digest_size=_MEETING_CHARS // 2).hexdigest()
        return SessionStart(
            reads=list(reads), speaks=speaks, meeting=self._prefix + meeting, name=name[:_NAME_CHARS]
        )

    def _keep(self, lines: Sequence[Line]) -> None:
        """For each meeting and language, one speaker who reads it keeps the records. Raises `LoadtestError`."""
        kept: set[tuple[str, str]] = set()
        for (meeting, _), session in sorted(self._speakers.items()):
            session.keeps = frozenset(lang for lang in session.reads if (meeting, lang) not in kept)
            kept |= {(meeting, lang) for lang in session.keeps}
        for line in lines:
            for target in line.targets:
                if (line.meeting, target) not in kept:
                    raise LoadtestError(f"Nobody in {line.meeting} has read {target} from the first pass on.")

    def _expected(self) -> int:
        """Translations that the sessions of this process are to receive."""
        reading: dict[tuple[str, str], int] = defaultdict(int)
        for session in self._all():
            for lang in session.reads:
                reading[session.meeting, lang] += 1
        return sum(reading[line.meeting, target] for line in self._lines for target in line.targets)

    # ------------------------------------------------------------ saying

    async def _say(self, spoken: Spoken, tally: Tally) -> None:
        """Everything that is said in this process, when it is due."""
        order = count()
        events = sorted(
            (due_s, next(order), line, rev)
            for line in self._lines
            if self._is_own(line.meeting)
            for rev, due_s in enumerate((*(each.due_s for each in line.partials), line.due_s), start=1)
        )
        for number, (due_s, _, line, rev) in enumerate(events):
            if (early_s := tally.begin_s + due_s - time.monotonic()) > 0:
                await asyncio.sleep(early_s)
            elif number % _IN_A_ROW == 0:
                await asyncio.sleep(0)
            tally.lag.late(time.monotonic() - tally.begin_s - due_s)
            wire = self._speakers[line.meeting, line.speaker].wire
            message: UtterancePartial | UtteranceFinal
            if rev <= len(line.partials):
                message = UtterancePartial(spoken.id(line), rev, line.partials[rev - 1].text, line.source)
            else:
                message = UtteranceFinal(spoken.id(line), rev, line.text, line.source)
                spoken.said(line, wire.lost)
            wire.send(msgspec.json.encode(message))


def _targets(lines: Iterable[Line]) -> tuple[str, ...]:
    return tuple(sorted({target for line in lines for target in line.targets}))
