"""Meetings in a client process: people with sessions of their own, readers, and sessions in which nothing is said.

Knows: who is in which meeting, which of them this process plays, when what is said; a gateway's messages about
utterances, and what becomes of the lines of one pass. Must not know: sockets.

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
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count

import msgspec
from msgspec import Struct

from gateway.domain.log import whole_id
from gateway.protocol.messages import SessionStart, UtteranceFinal, UtterancePartial
from loadtest.driving.exchange import Share
from loadtest.driving.requests import Tally
from loadtest.driving.segments import Segments, Translations
from loadtest.driving.wire import Wanted, Wire, allow_files, open_all
from loadtest.results import LoadtestError
from loadtest.trial.values import InMeetings, Line, Load, Record, WebSocketGateway

# Most messages need no look inside: their type stands first.
DELTA = b'{"type":"translation.delta"'
FINAL = b'{"type":"translation.final"'
FAILED = b'{"type":"translation.failed"'
ERROR = b'{"type":"error"'
ACCEPTED = b'{"type":"utterance.accepted"'
CAPTION = b'{"type":"caption"'


class Heard(Struct):
    """As much of any message as is looked at."""

    utterance: str | None = None
    # As `utterance`, in what is said to its speaker.
    id: str | None = None
    lang: str = ""
    rev: int = 0
    offset: int | None = None
    committed: str = ""
    tentative: str = ""
    text: str = ""
    tokens: int = 0
    code: str = ""
    retryable: bool = False
    retry_after_ms: int | None = None


heard = msgspec.json.Decoder(Heard)

# After the last record, until readers have had what is still on its way: they have all of it, or nothing comes.
_LOOK_S = 0.05
_QUIET_S = 2.0


@dataclass(eq=False, slots=True)
class Texts:
    """What one session has had in one pass: of which utterances and languages it has had text of the final; when
    the newest translation came, and whether one has failed."""

    begun: set[tuple[str, str]] = field(default_factory=set)
    came_s: dict[tuple[str, str], float] = field(default_factory=dict)
    failed: set[tuple[str, str]] = field(default_factory=set)


class _Open(Struct):
    """A line in one language that has no record yet. rev: of its final. first_s: first text of what was accepted
    with it; shown_s: of any revision; came_s: the end of the segment that came last."""

    line: Line
    target: str
    rev: int
    sent_s: float | None = None
    first_s: float | None = None
    shown_s: float | None = None
    came_s: float = 0.0
    translations: Translations = msgspec.field(default_factory=Translations)


class Spoken:
    """The lines of all meetings; of those in `own` meetings, records are kept."""

    def __init__(self, tally: Tally, lines: Sequence[Line], own: Collection[str]) -> None:
        self.tally = tally
        # Utterances of another pass have other ids; all processes have the same.
        self._prefix = f"{round(tally.begin_s * 1e6):x}-"
        self._lines = lines
        self._ids = {line.id: self._prefix + str(number) for number, line in enumerate(lines)}
        self._open = {
            (self._ids[line.id], target): _Open(line, target, len(line.partials) + 1)
            for line in lines
            if line.meeting in own
            for target in line.targets
        }
        self._segments = Segments()
        self._texts: list[Texts] = []
        # Read here, and spoken in another process: of how many segments is not told here.
        self._foreign = [line for line in lines if line.meeting not in own]
        self._partials = any(line.partials for line in lines)
        self._last_due_s = tally.begin_s + max((line.due_s for line in lines), default=0.0)
        # Utterance → when its final was sent, until it is accepted.
        self._sent_s: dict[str, float] = {}
        self._ended = 0
        self._newest_s = 0.0
        # Many sessions get the same frame one after another.
        self._delta, self._heard = b"", Heard()
        self._caption = b""

    def texts(self) -> Texts:
        """For one more session."""
        self._texts.append(texts := Texts())
        return texts

    def id(self, line: Line) -> str:
        """Under which the gateway knows it."""
        return self._ids[line.id]

    async def over(self, reading: Mapping[tuple[str, str], int]) -> None:
        """Wait until every line has its record, and all translations came or nothing for a while.

        reading: by meeting and language, how many sessions of this process read it.
        """
        while self._open or self._is_missing(reading):
            if not self._open and time.monotonic() - max(self._newest_s, self._last_due_s) > _QUIET_S:
                return
            await asyncio.sleep(_LOOK_S)

    def _is_missing(self, reading: Mapping[tuple[str, str], int]) -> bool:
        """Whether translations may still come."""
        if any(reading.get((line.meeting, target)) for line in self._foreign for target in line.targets):
            return True
        return self._ended < sum(
            reading.get((line.meeting, target), 0) * self._segments.many.get(self.id(line), 1)
            for line in self._lines
            for target in line.targets
        )

    def count_finals(self) -> None:
        """At the end: how long each session waited for all of each translation."""
        for texts in self._texts:
            for key, came_s in texts.came_s.items():
                line = self._line(key[0])
                if line is not None and key not in texts.failed:
                    self.tally.finals.add((came_s - line.due_s) * 1000)
            texts.came_s.clear()

    def said(self, line: Line, lost: str | None) -> None:
        """Its final is being sent; lost: why it cannot be."""
        self._sent_s[self.id(line)] = now_s = self.tally.now_s()
        for target in line.targets:
            if (open_line := self._open.get((self.id(line), target))) is not None:
                open_line.sent_s = now_s
                if lost is not None:
                    self._close(self.id(line), target, failed=lost)

    def arrived(self, frame: bytes, keeps: Collection[str], texts: Texts) -> None:
        """A message has come to a session that keeps the records of these languages; `texts` changes."""
        tally = self.tally
        tally.frames += 1
        tally.bytes += len(frame)
        if frame.startswith(DELTA):
            if frame != self._delta:
                self._delta, self._heard = frame, heard.decode(frame)
            self._began(self._heard, texts)
            if keeps:
                self._showed(self._heard, keeps)
        elif frame.startswith((FINAL, FAILED)):
            self._came(heard.decode(frame), keeps, texts, failed=frame.startswith(FAILED))
        elif frame.startswith(ACCEPTED):
            self._accepted(heard.decode(frame))
        elif frame.startswith(CAPTION):
            if frame != self._caption:
                self._caption = frame
                self._captioned(heard.decode(frame))
        elif frame.startswith(ERROR):
            self._refused(heard.decode(frame))

    def lost(self, session: str, meeting: str, keeps: Collection[str], why: str) -> None:
        """A session ended: it is a failed record itself, and so is each line that it was to keep."""
        now_s = self.tally.now_s()
        self.tally.done(Record(f"session {session}", "", now_s, now_s, None, None, failed=why))
        for (id, target), open_line in list(self._open.items()):
            line = open_line.line
            # Nobody else is told of how many segments it is.
            untold = session == _seat(line.speaker, meeting) and open_line.sent_s is not None
            untold = untold and id not in self._segments.many
            if line.meeting == meeting and (target in keeps or untold):
                self._close(id, target, failed=why)

    # ------------------------------------------------------------ messages

    def _accepted(self, heard: Heard) -> None:
        if heard.id is not None and (sent_s := self._sent_s.pop(heard.id, None)) is not None:
            self.tally.accepted.add((self.tally.now_s() - sent_s) * 1000)
            if heard.offset is not None and self._segments.accepted(heard.id, heard.offset):
                self._counted(heard.id)

    def _captioned(self, heard: Heard) -> None:
        """The caption of what is accepted has a place in the log."""
        if heard.utterance is None or heard.offset is None or self._line(heard.utterance) is None:
            return
        if self._segments.caption(heard.utterance, heard.offset):
            self._counted(whole_id(heard.utterance))

    def _counted(self, id: str) -> None:
        """It is known of how many segments it is: all of them may have come."""
        line = self._line(id)
        for target in line.targets if line is not None else ():
            self._whole(id, target)

    def _began(self, heard: Heard, texts: Texts) -> None:
        """A session has text of a translation; the first counts, of earlier revisions none."""
        line = self._line(heard.utterance)
        if line is None or heard.utterance is None or heard.rev <= len(line.partials):
            return
        if not (heard.committed or heard.tentative or heard.text):
            return
        if (key := (whole_id(heard.utterance), heard.lang)) not in texts.begun:
            texts.begun.add(key)
            self.tally.texts.add((self.tally.now_s() - line.due_s) * 1000)

    def _showed(self, heard: Heard, keeps: Collection[str]) -> None:
        """Something is shown; what is shown of earlier revisions is not yet the final's translation."""
        if heard.utterance is None or heard.lang not in keeps or not (heard.committed or heard.tentative):
            return
        open_line = self._open.get((whole_id(heard.utterance), heard.lang))
        if open_line is None:
            return
        if open_line.shown_s is None:
            open_line.shown_s = self.tally.now_s()
        if open_line.first_s is None and heard.rev == open_line.rev:
            open_line.first_s = self.tally.now_s()

    def _came(self, heard: Heard, keeps: Collection[str], texts: Texts, *, failed: bool) -> None:
        line = self._line(heard.utterance)
        if line is None or heard.utterance is None or heard.lang not in line.targets:
            return
        self._ended += 1
        self._newest_s = time.monotonic()
        id, now_s = whole_id(heard.utterance), self._newest_s - self.tally.begin_s
        if failed:
            texts.failed.add((id, heard.lang))
        else:
            self._began(heard, texts)
            # The last segment is accepted with the final.
            if heard.rev > len(line.partials):
                texts.came_s[id, heard.lang] = now_s
        open_line = self._open.get((id, heard.lang))
        if open_line is None or heard.lang not in keeps:
            return
        if failed:
            self._close(id, heard.lang, failed=heard.code)
            return
        open_line.translations.add(heard.utterance, heard.text, heard.tokens)
        open_line.came_s = now_s
        if open_line.shown_s is None:
            open_line.shown_s = now_s
        if open_line.first_s is None and heard.rev == open_line.rev:
            open_line.first_s = now_s
        self._whole(id, heard.lang)

    def _refused(self, heard: Heard) -> None:
        """The gateway does not take what was said; of partials it may do without some."""
        line = self._line(heard.utterance)
        if line is None or heard.utterance is None:
            return
        for target in line.targets:
            open_line = self._open.get((self.id(line), target))
            if open_line is not None and open_line.sent_s is not None:
                self._close(self.id(line), target, failed=heard.code)

    # ------------------------------------------------------------ records

    def _line(self, id: str | None) -> Line | None:
        """The line with this id; None for one of another pass."""
        if id is None or not id.startswith(self._prefix):
            return None
        return self._lines[int(whole_id(id).removeprefix(self._prefix))]

    def _whole(self, id: str, target: str) -> None:
        """It may have all of its segments."""
        open_line = self._open.get((id, target))
        if open_line is not None and len(open_line.translations) == self._segments.many.get(id):
            self._close(id, target)

    def _close(self, id: str, target: str, *, failed: str | None = None) -> None:
        open_line = self._open.pop((id, target), None)
        if open_line is None:
            return
        now_s, line, good = self.tally.now_s(), open_line.line, failed is None
        first_s, shown_s = open_line.first_s, open_line.shown_s
        began_s = line.partials[0].due_s if line.partials else line.due_s
        text = open_line.translations.text(target) if good else ""
        self.tally.done(
            Record(
                line=line.id,
                target=target,
                due_s=round(line.due_s, 6),
                sent_s=round(now_s if open_line.sent_s is None else open_line.sent_s, 6),
                first_s=None if first_s is None else round(first_s, 6),
                done_s=round(open_line.came_s, 6) if good else None,
                tokens=open_line.translations.tokens if good else 0,
                text=text if self.tally.keep_text else "",
                failed=failed,
                began_s=round(began_s, 6) if self._partials else None,
                shown_s=round(shown_s, 6) if self._partials and shown_s is not None else None,
            )
        )


# The length of a name; one longer in a file is shortened. See `Limits.id_chars` and `Limits.name_chars`.
_MEETING_CHARS = 40
_NAME_CHARS = 80

# Late lines are said without a pause; after so many, messages are received.
_IN_A_ROW = 32

# Language that idle sessions read: any model has it.
_IDLE_READS = "en"


class _Session:
    """One connection with a session on it."""

    __slots__ = ("_spoken", "_texts", "keeps", "meeting", "name", "reads", "wire")

    def __init__(self, wire: Wire, name: str, meeting: str, reads: Sequence[str]) -> None:
        self.wire = wire
        self.name = name
        self.meeting = meeting
        self.reads = reads
        # Languages of which it keeps the records.
        self.keeps: Collection[str] = ()
        self._spoken: Spoken | None = None
        self._texts = Texts()
        wire.take = self._take
        wire.ended = self._ended

    def join(self, spoken: Spoken | None) -> None:
        """What arrives from now on belongs to this pass; None: to none."""
        self._spoken = spoken
        if spoken is not None:
            self._texts = spoken.texts()
        if self.wire.lost is not None:
            self._ended(self.wire.lost)

    def _take(self, frame: bytes) -> None:
        if self._spoken is not None:
            self._spoken.arrived(frame, self.keeps, self._texts)

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
        # Lines of the next pass.
        self._lines: Sequence[Line] = ()

    async def open_idle(self) -> None:
        """Sessions in meetings of their own. Raises `LoadtestError`."""
        mine = range(self._share.index, self._load.idle, self._share.processes)
        allow_files(len(mine))

        def wanted(number: int) -> Wanted:
            def take(wire: Wire) -> None:
                self._idle.append(_Session(wire, f"idle session {number}", "", ()))

            return SessionStart(reads=[_IDLE_READS]), take

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
            await spoken.over(self._reading())
        finally:
            spoken.count_finals()
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
                self._speakers[meeting, name] = _Session(wire, _seat(name, meeting), meeting, reads)

            yield self._start(meeting, name, reads, speaks[name]), take

    def _missing_readers(self, meeting: str, lines: Sequence[Line], place: int) -> Iterator[Wanted]:
        targets = _targets(lines)
        processes = self._share.processes
        mine = range((self._share.index - place) % processes, self._load.readers, processes)
        for number in mine[len(self._readers[meeting]) :]:
            name, reads = f"reader {number}", (targets[number % len(targets)],)

            def take(wire: Wire, name: str = name, reads: Sequence[str] = reads) -> None:
                self._readers[meeting].append(_Session(wire, f"{name} of {meeting}", meeting, reads))

            yield self._start(meeting, name, reads, None), take

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

    def _reading(self) -> Mapping[tuple[str, str], int]:
        """By meeting and language, how many sessions of this process read it."""
        reading: dict[tuple[str, str], int] = defaultdict(int)
        for session in self._all():
            for lang in session.reads:
                reading[session.meeting, lang] += 1
        return reading

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


def _seat(speaker: str, meeting: str) -> str:
    """What a speaker's session is called."""
    return f"{speaker} of {meeting}"


def _targets(lines: Iterable[Line]) -> tuple[str, ...]:
    return tuple(sorted({target for line in lines for target in line.targets}))
