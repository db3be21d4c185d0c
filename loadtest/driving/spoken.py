"""What becomes of the lines of one pass through meetings: which are open, what has arrived.

Knows: a gateway's messages about utterances, records. Must not know: sockets, who is in which meeting.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence

import msgspec
from msgspec import Struct

from loadtest.driving.tally import Tally
from loadtest.trial.values import Line, Record

# Most messages need no look inside: their type stands first.
DELTA = b'{"type":"translation.delta"'
FINAL = b'{"type":"translation.final"'
FAILED = b'{"type":"translation.failed"'
ERROR = b'{"type":"error"'
_ACCEPTED = b'{"type":"utterance.accepted"'


class Heard(Struct):
    """As much of any message as is looked at."""

    utterance: str | None = None
    # As `utterance`, in what is said to its speaker.
    id: str | None = None
    lang: str = ""
    rev: int = 0
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


class _Open(Struct):
    """A line in one language that has no record yet. rev: of its final. shown_s: first text of any revision."""

    line: Line
    target: str
    rev: int
    sent_s: float | None = None
    first_s: float | None = None
    shown_s: float | None = None


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
        self._partials = any(line.partials for line in lines)
        self._last_due_s = tally.begin_s + max((line.due_s for line in lines), default=0.0)
        # Utterance → when its final was sent, until it is accepted.
        self._sent_s: dict[str, float] = {}
        self._ended = 0
        self._newest_s = 0.0
        # Many sessions get the same frame one after another.
        self._delta, self._heard = b"", Heard()

    def id(self, line: Line) -> str:
        """Under which the gateway knows it."""
        return self._ids[line.id]

    async def over(self, expected: int) -> None:
        """Wait until every line has its record, and all `expected` translations came or nothing for a while."""
        while self._open or self._ended < expected:
            if not self._open and time.monotonic() - max(self._newest_s, self._last_due_s) > _QUIET_S:
                return
            await asyncio.sleep(_LOOK_S)

    def said(self, line: Line, lost: str | None) -> None:
        """Its final is being sent; lost: why it cannot be."""
        self._sent_s[self.id(line)] = now_s = self.tally.now_s()
        for target in line.targets:
            if (open_line := self._open.get((self.id(line), target))) is not None:
                open_line.sent_s = now_s
                if lost is not None:
                    self._close(self.id(line), target, failed=lost)

    def arrived(self, frame: bytes, keeps: Collection[str], begun: set[tuple[str, str]]) -> None:
        """A message has come to a session that keeps the records of these languages.

        begun: utterances and languages of which it has had text, which changes.
        """
        tally = self.tally
        tally.frames += 1
        tally.bytes += len(frame)
        if frame.startswith(DELTA):
            if frame != self._delta:
                self._delta, self._heard = frame, heard.decode(frame)
            self._began(self._heard, begun)
            if keeps:
                self._showed(self._heard, keeps)
        elif frame.startswith((FINAL, FAILED)):
            self._came(heard.decode(frame), keeps, begun, failed=frame.startswith(FAILED))
        elif frame.startswith(_ACCEPTED):
            self._accepted(heard.decode(frame))
        elif frame.startswith(ERROR):
            self._refused(heard.decode(frame))

    def lost(self, session: str, meeting: str, keeps: Collection[str], why: str) -> None:
        """A session is no more: it is a failed record itself, and so is what it was to keep."""
        now_s = self.tally.now_s()
        self.tally.done(Record(f"session {session}", "", now_s, now_s, None, None, failed=why))
        for (id, target), open_line in list(self._open.items()):
            if target in keeps and open_line.line.meeting == meeting:
                self._close(id, target, failed=why)

    # ------------------------------------------------------------ messages

    def _accepted(self, heard: Heard) -> None:
        if heard.id is not None and (sent_s := self._sent_s.pop(heard.id, None)) is not None:
            self.tally.accepted.add((self.tally.now_s() - sent_s) * 1000)

    def _began(self, heard: Heard, begun: set[tuple[str, str]]) -> None:
        """A session has text of a translation; the first counts, of earlier revisions none."""
        line = self._line(heard.utterance)
        if line is None or heard.utterance is None or heard.rev <= len(line.partials):
            return
        if not (heard.committed or heard.tentative or heard.text):
            return
        if (heard.utterance, heard.lang) not in begun:
            begun.add((heard.utterance, heard.lang))
            self.tally.texts.add((self.tally.now_s() - line.due_s) * 1000)

    def _showed(self, heard: Heard, keeps: Collection[str]) -> None:
        """Something is shown; what is shown of earlier revisions is not yet the final's translation."""
        if heard.utterance is None or heard.lang not in keeps or not (heard.committed or heard.tentative):
            return
        open_line = self._open.get((heard.utterance, heard.lang))
        if open_line is None:
            return
        if open_line.shown_s is None:
            open_line.shown_s = self.tally.now_s()
        if open_line.first_s is None and heard.rev == open_line.rev:
            open_line.first_s = self.tally.now_s()

    def _came(self, heard: Heard, keeps: Collection[str], begun: set[tuple[str, str]], *, failed: bool) -> None:
        line = self._line(heard.utterance)
        if line is None or heard.utterance is None or heard.lang not in line.targets:
            return
        self._ended += 1
        self._newest_s = time.monotonic()
        if not failed:
            self._began(heard, begun)
            self.tally.finals.add((self._newest_s - self.tally.begin_s - line.due_s) * 1000)
        if heard.lang in keeps:
            self._close(heard.utterance, heard.lang, heard=heard, failed=heard.code if failed else None)

    def _refused(self, heard: Heard) -> None:
        """The gateway does not take what was said; of partials it may do without some."""
        line = self._line(heard.utterance)
        if line is None or heard.utterance is None:
            return
        for target in line.targets:
            open_line = self._open.get((heard.utterance, target))
            if open_line is not None and open_line.sent_s is not None:
                self._close(heard.utterance, target, failed=heard.code)

    # ------------------------------------------------------------ records

    def _line(self, id: str | None) -> Line | None:
        """The line with this id; None for one of another pass."""
        if id is None or not id.startswith(self._prefix):
            return None
        return self._lines[int(id.removeprefix(self._prefix))]

    def _close(self, id: str, target: str, *, heard: Heard | None = None, failed: str | None = None) -> None:
        open_line = self._open.pop((id, target), None)
        if open_line is None:
            return
        now_s, line, good = self.tally.now_s(), open_line.line, failed is None
        first_s = open_line.first_s if open_line.first_s is not None or not good else now_s
        began_s = line.partials[0].due_s if line.partials else line.due_s
        shown_s = open_line.shown_s if open_line.shown_s is not None or not good else now_s
        text = heard.text if heard is not None else ""
        self.tally.done(
            Record(
                line=line.id,
                target=target,
                due_s=round(line.due_s, 6),
                sent_s=round(now_s if open_line.sent_s is None else open_line.sent_s, 6),
                first_s=None if first_s is None else round(first_s, 6),
                done_s=round(now_s, 6) if good else None,
                tokens=heard.tokens if heard is not None else 0,
                chars=len(text),
                text=text if self.tally.keep_text else "",
                failed=failed,
                began_s=round(began_s, 6) if self._partials else None,
                shown_s=round(shown_s, 6) if self._partials and shown_s is not None else None,
            )
        )
