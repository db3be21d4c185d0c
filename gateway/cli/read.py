"""`gateway read`: what is said in a meeting, in the languages of whoever reads, as it is spoken.

Knows: how the messages of a session become rows on a terminal, or lines in a pipe.
Must not know: flags and their spelling (`cli_flags`), how a terminal is driven (`terminal`).
"""

from __future__ import annotations

import asyncio
import sys
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol, TextIO

import msgspec
from msgspec import Struct

from gateway.cli.common import note
from gateway.cli.meeting import Interruptible, Seat, sit_down, told
from gateway.cli.terminal import LiveArea, Row, can_redraw, printable
from gateway.client import Reconnected, Reconnecting, SessionClosed, SessionEvent
from gateway.domain.errors import CloseCode
from gateway.domain.sessions import Stability
from gateway.protocol.messages import (
    Caption,
    ParticipantJoined,
    ParticipantLeft,
    ParticipantUpdated,
    Pong,
    SessionStarted,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
    UtteranceCancelled,
)

__all__ = ["Board", "read"]

# The pong to this comes behind everything that was said before we came.
_SEAM = "now"

# At most so often is the unfinished part drawn: what is faster nobody sees.
_FRAME_S = 0.04

# Names are kept of so many participants, and texts of so many unfinished utterances.
_NAMES = 1_000
_UNFINISHED = 200


async def read(
    seat: Seat, langs: Sequence[str], *, stability: Stability, originals: bool = False, as_json: bool
) -> int:
    """Show the meeting until Ctrl-C; the exit status. Raises `ClientError`.

    originals: what is said comes in every language, beside the translations.
    """
    view = _view(seat.meeting, langs, originals=originals, as_json=as_json)
    if isinstance(view, _Lines):
        stability = "final"  # no engine is to work on what nobody is shown
    async with sit_down(seat, reads=langs, stability=stability, originals=originals) as session:
        with Interruptible() as ctrl_c:
            try:
                view.show(session.started)
                await session.ping(_SEAM)
                async for event in session:
                    view.show(event)
            finally:
                view.leave()
    if ctrl_c.interrupted:
        return 0
    raise SessionClosed(session.url, CloseCode.NORMAL, None)


class _View(Protocol):
    """Where the meeting is shown."""

    def show(self, event: SessionEvent) -> None:
        """Show what the event changes."""

    def leave(self) -> None:
        """Nothing more is shown; leave the output as others expect it."""


def _view(meeting: str, langs: Sequence[str], *, originals: bool, as_json: bool) -> _View:
    if as_json:
        return _JsonLines()
    if can_redraw(sys.stdout, 3):
        return _Screen(sys.stdout, meeting, langs, originals=originals)
    return _Lines()


# ---------------------------------------------------------------- on a terminal


class _Unfinished(Struct):
    """An utterance in one language while it is still coming in: what was said, or its translation so far.

    began: the utterance, by when it was first heard of; place: its language among those that are read.
    moved: when it changed last, as the board counts. shown: it was among the rows given out last.
    left: its speaker has left, and it has not changed since.
    """

    label: str
    colour: int
    began: int
    place: int
    moved: int = 0
    committed: str = ""
    tentative: str = ""
    caption: bool = False
    shown: bool = False
    left: bool = False


class Board:
    """What a terminal shows of a meeting: finished rows, given out once, and the unfinished ones as they are.

    Until `live` everything is taken for what was said before. Whether an utterance is final cannot be told from
    its deltas: they come while it is being said as well as while its last word is translated.
    """

    def __init__(self, langs: Sequence[str], *, originals: bool = False) -> None:
        self.live = False
        self._langs = tuple(langs)
        self._several = len(langs) > 1 or originals
        self._width = max(map(len, langs), default=0)
        self._names: OrderedDict[str, str] = OrderedDict()
        # Participant, utterance, language; what changed last comes last.
        self._unfinished: OrderedDict[tuple[str, str, str], _Unfinished] = OrderedDict()
        self._began = 0
        self._moves = 0

    def take(self, event: SessionEvent) -> list[Row]:
        """Note what happened; the rows that are finished by it."""
        match event:
            case SessionStarted():
                self._start(event)
            case Reconnected():
                self._start(event.started)
                self.live = True  # what was missed is news
            case Caption(final=True) | TranslationFinal():
                self._name(event.participant, event.speaker)
                self._drop(event)
                return [self._row(event, event.text)]
            case Caption():
                self._name(event.participant, event.speaker)
                row = self._touch(event, caption=True)
                row.tentative = printable(event.text)
            case TranslationDelta():
                row = self._touch(event, caption=False)
                row.committed += printable(event.committed)
                row.tentative = printable(event.tentative)
            case TranslationFailed():
                self._drop(event)
                return [self._row(event, f"(not translated: {event.message})", dim=True)]
            case UtteranceCancelled():
                for key in [key for key in self._unfinished if key[:2] == (event.participant, event.utterance)]:
                    del self._unfinished[key]
            case ParticipantJoined():
                self._name(event.participant, event.name)
                return [_aside(f"{event.name or 'Somebody'} joined{_speaking(event.speaks)}")]
            case ParticipantUpdated():
                self._name(event.participant, event.name)
            case ParticipantLeft():
                self._forget(event.participant)
                return [_aside(f"{event.name or 'Somebody'} left")]
        return []

    def unfinished(self, most: int) -> list[Row]:
        """The rows that changed last, at most so many, in the order in which the utterances began.

        A row that is shown gives way only when it has not changed for a while: where more of them grow than there
        is room for, they would take turns with every word.
        """
        lately = self._moves - 2 * most
        rows = [row for row in self._unfinished.values() if not row.left]
        rows.sort(key=lambda row: (row.shown and row.moved > lately, row.moved))
        for place, row in enumerate(reversed(rows)):
            row.shown = place < most
        shown = sorted((row for row in rows if row.shown), key=lambda row: (row.began, row.place))
        return [Row(row.label, row.committed, row.tentative, colour=row.colour) for row in shown]

    def _start(self, started: SessionStarted) -> None:
        """What was unfinished is sent anew."""
        self._unfinished.clear()
        for participant in started.participants:
            self._name(participant.participant, participant.name)

    def _touch(self, message: Caption | TranslationDelta, *, caption: bool) -> _Unfinished:
        """The row that a message changes, which is from now on what was said, or a translation of it."""
        key = (message.participant, message.utterance, message.lang)
        if (row := self._unfinished.get(key)) is None:
            label = self._label(message.participant, message.lang)
            row = _Unfinished(label, _colour(message.participant), self._begin(key), self._place(message.lang))
            self._unfinished[key] = row
            if len(self._unfinished) > _UNFINISHED:
                self._unfinished.popitem(last=False)
        if row.caption is not caption:
            # A recogniser may find out late which language it hears: what was translated is then what was said.
            row.caption, row.committed, row.tentative = caption, "", ""
        row.left = False
        row.moved = self._moves = self._moves + 1
        self._unfinished.move_to_end(key)
        return row

    def _begin(self, key: tuple[str, str, str]) -> int:
        """When the utterance of a new row began: rows of one utterance stay together."""
        for other, row in self._unfinished.items():
            if other[:2] == key[:2]:
                return row.began
        self._began += 1
        return self._began

    def _place(self, lang: str) -> int:
        return self._langs.index(lang) if lang in self._langs else len(self._langs)

    def _drop(self, message: Caption | TranslationFinal | TranslationFailed) -> None:
        self._unfinished.pop((message.participant, message.utterance, message.lang), None)

    def _forget(self, participant: str) -> None:
        """Somebody left: a sentence they had not finished never will be, but translations of finished ones go on.

        Which one a translation is shows when it grows again, and then it needs what it had committed.
        """
        self._names.pop(participant, None)
        for key in [key for key in self._unfinished if key[0] == participant]:
            self._unfinished[key].left = True

    def _name(self, participant: str, name: str) -> None:
        self._names[participant] = name
        self._names.move_to_end(participant)
        if len(self._names) > _NAMES:
            self._names.popitem(last=False)

    def _label(self, participant: str, lang: str, speaker: str | None = None) -> str:
        name = printable(self._names.get(participant, "") if speaker is None else speaker)
        tag = f"{printable(lang):{self._width}}  " if self._several else ""
        return f"{tag}{name}: " if name else tag

    def _row(
        self, message: Caption | TranslationFinal | TranslationFailed, text: str, *, dim: bool = False
    ) -> Row:
        label = self._label(message.participant, message.lang, message.speaker)
        colour = _colour(message.participant)
        return Row(label, printable(text), dim=dim or not self.live, colour=colour)


def _aside(sentence: str) -> Row:
    return Row("", f"— {printable(sentence)}", dim=True)


def _speaking(lang: str | None) -> str:
    return f", speaking {lang}" if lang else ""


def _colour(participant: str) -> int:
    return zlib.crc32(participant.encode("utf-8", "surrogatepass"))


class _Screen:
    """A terminal: finished rows scroll up, unfinished ones grow below them."""

    def __init__(self, out: TextIO, meeting: str, langs: Sequence[str], *, originals: bool) -> None:
        self._area = LiveArea(out)
        self._board = Board(langs, originals=originals)
        self._heading = f"{meeting}, read in {', '.join(langs)}; Ctrl-C leaves"
        self._shown = 0
        self._next_frame: asyncio.TimerHandle | None = None
        self._drawn_s = 0.0

    def show(self, event: SessionEvent) -> None:
        rows = self._board.take(event)
        match event:
            case SessionStarted():
                rows = [_aside(self._heading), *map(_aside, _company(event))]
            case Pong(nonce=nonce) if nonce == _SEAM:
                self._board.live = True
                rows = [_aside("now")] if self._shown else []
            case Caption(final=True) | TranslationFinal():
                self._shown += 1
        sentence = told(event)
        if rows or sentence is not None:
            self._draw(rows, sentence)
        elif self._next_frame is None:
            loop = asyncio.get_running_loop()
            self._next_frame = loop.call_at(max(loop.time(), self._drawn_s + _FRAME_S), self._draw)

    def leave(self) -> None:
        self._cancel_frame()
        self._area.leave()

    def _draw(self, rows: Sequence[Row] = (), sentence: str | None = None) -> None:
        self._cancel_frame()
        if sentence is not None:
            self._area.show(rows, [])
            note(sentence)
            rows = ()
        self._area.show(rows, self._board.unfinished(self._area.room))
        self._drawn_s = asyncio.get_running_loop().time()

    def _cancel_frame(self) -> None:
        if self._next_frame is not None:
            self._next_frame.cancel()
            self._next_frame = None


def _company(started: SessionStarted) -> list[str]:
    """Who else is there, as far as they have names."""
    named = [one for one in started.participants if one.name]
    if not named:
        return []
    return ["with " + ", ".join(f"{one.name} ({one.speaks})" if one.speaks else one.name for one in named)]


# ---------------------------------------------------------------- elsewhere


class _Lines:
    """A pipe or a file: each finished text is a line: language, tab, speaker, tab, text."""

    def show(self, event: SessionEvent) -> None:
        match event:
            case Caption(final=True) | TranslationFinal():
                print(*map(printable, (event.lang, event.speaker, event.text)), sep="\t", flush=True)
            case TranslationFailed():
                note(f"{event.lang}: {event.speaker or 'somebody'}: {event.message}")
        if (sentence := told(event)) is not None:
            note(sentence)

    def leave(self) -> None:
        pass


class _JsonLines:
    """The gateway's own messages, one a line; `session.started` without what would let others take the session."""

    def show(self, event: SessionEvent) -> None:
        if isinstance(event, Reconnecting | Reconnected) and (sentence := told(event)) is not None:
            note(sentence)
        message = event.started if isinstance(event, Reconnected) else event
        match message:
            case Reconnecting() | Pong():  # the pong is ours
                return
            case SessionStarted():
                message = msgspec.structs.replace(message, session="")
        print(msgspec.json.encode(message).decode(), flush=True)

    def leave(self) -> None:
        pass
