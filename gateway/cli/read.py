"""`gateway read`: shows what is said in a meeting, in the reader's languages, as it is spoken.

Knows: how the messages of a session become rows on a terminal, or lines in a pipe.
Must not know: how flags are spelled (`cli.flags`), how a terminal is controlled (`cli.terminal`).
"""

from __future__ import annotations

import asyncio
import sys
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import TextIO

import msgspec
from msgspec import Struct

from gateway.cli.sessions import MeetingOptions, note, session_note
from gateway.cli.terminal.drawing import LiveArea, Row, can_redraw, escaped, printable
from gateway.cli.terminal.interrupts import Interruptible
from gateway.client import Reconnected, Reconnecting, SessionClosed, SessionEvent
from gateway.domain.close_codes import CloseCode
from gateway.domain.engine import UNSURE_SIGN
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
    UtteranceReplaced,
)

# Nonce of a ping. Its pong follows everything that was said before we joined.
_NOW = "now"

# Shortest time between two redraws of the unfinished rows.
_FRAME_S = 0.04

# Most participants whose names are kept.
_NAMES = 1_000
# Most unfinished rows that are kept.
_UNFINISHED = 200


async def read(
    options: MeetingOptions, langs: Sequence[str], *, stability: Stability, originals: bool = False, as_json: bool
) -> int:
    """Show the meeting until Ctrl-C. Returns the exit status. Raises `ClientError`.

    originals: whether to show what is said as well, in every spoken language.
    """
    view: _JsonLines | _Screen | _Lines
    if as_json:
        view = _JsonLines()
    elif can_redraw(sys.stdout, 3):
        view = _Screen(sys.stdout, options.meeting, langs, originals=originals)
    else:
        view = _Lines()
        stability = "final"  # unfinished translations would not be shown, so the engine must not make them
    async with options.join_meeting(reads=langs, stability=stability, originals=originals) as session:
        with Interruptible() as ctrl_c:
            try:
                view.show(session.started)
                await session.ping(_NOW)
                async for event in session:
                    view.show(event)
            finally:
                if isinstance(view, _Screen):
                    view.leave()
    if ctrl_c.interrupted:
        return 0
    raise SessionClosed(session.url, CloseCode.NORMAL, None)


# ---------------------------------------------------------------- on a terminal


class _Unfinished(Struct):
    """An unfinished utterance in one language: its caption, or its translation so far."""

    label: str
    colour: int
    # Order of its utterance among all utterances.
    began: int
    # Order of its language among the reader's languages.
    place: int
    # Number of the board's last change to this row.
    moved: int = 0
    committed: str = ""
    tentative: str = ""
    # Whether it is a caption; else it is a translation.
    caption: bool = False
    # Whether it was among the rows returned last.
    shown: bool = False
    # Whether its speaker has left, with no change since then.
    left: bool = False


class Board:
    """The rows that a terminal shows of a meeting: finished rows, each returned once, and the unfinished ones.

    Deltas do not show whether an utterance is final: they come while it is being said, and while its final is
    translated.
    """

    def __init__(self, langs: Sequence[str], *, originals: bool = False) -> None:
        # False while the rows are from before the reader joined.
        self.live = False
        self._langs = tuple(langs)
        self._several = len(langs) > 1 or originals
        self._width = max(map(len, langs), default=0)
        self._names: OrderedDict[str, str] = OrderedDict()
        # (participant, utterance, language) → row; the row that changed last is last.
        self._unfinished: OrderedDict[tuple[str, str, str], _Unfinished] = OrderedDict()
        self._began = 0
        self._moves = 0

    def apply_event(self, event: SessionEvent) -> list[Row]:
        """Note an event. Returns the rows that it finishes."""
        match event:
            case SessionStarted():
                self._start(event)
            case Reconnected():
                self._start(event.started)
                self.live = True  # what was missed during the outage is new
            case Caption(final=True) | TranslationFinal():
                self._name(event.participant, event.speaker)
                self._drop(event)
                return [self._row(event, _text_of(event))]
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
            case UtteranceReplaced(participant=participant, utterances=utterances, by=by):
                for key in [key for key in self._unfinished if key[0] == participant and key[1] in utterances]:
                    del self._unfinished[key]
                what = "corrects what they said" if by is not None else "took back what they said"
                return [_notice(f"{self._names.get(participant) or 'Somebody'} {what}")]
            case ParticipantJoined():
                self._name(event.participant, event.name)
                return [_notice(f"{event.name or 'Somebody'} joined{_speaking(event.speaks)}")]
            case ParticipantUpdated():
                self._name(event.participant, event.name)
            case ParticipantLeft():
                self._forget(event.participant)
                return [_notice(f"{event.name or 'Somebody'} left")]
        return []

    def unfinished(self, most: int) -> list[Row]:
        """The rows that changed last, at most `most`, in the order in which their utterances began.

        A shown row is replaced only if it has not changed for a while. Otherwise rows would be exchanged at every
        word when more of them grow than fit.
        """
        lately = self._moves - 2 * most
        rows = [row for row in self._unfinished.values() if not row.left]
        rows.sort(key=lambda row: (row.shown and row.moved > lately, row.moved))
        for place, row in enumerate(reversed(rows)):
            row.shown = place < most
        shown = sorted((row for row in rows if row.shown), key=lambda row: (row.began, row.place))
        return [Row(row.label, row.committed, row.tentative, colour=row.colour) for row in shown]

    def _start(self, started: SessionStarted) -> None:
        """A session started or resumed: unfinished texts come again from their beginning."""
        self._unfinished.clear()
        for participant in started.participants:
            self._name(participant.participant, participant.name)

    def _touch(self, message: Caption | TranslationDelta, *, caption: bool) -> _Unfinished:
        """The row that a message changes, made if needed."""
        key = (message.participant, message.utterance, message.lang)
        if (row := self._unfinished.get(key)) is None:
            label = self._label(message.participant, message.lang)
            row = _Unfinished(label, _colour(message.participant), self._begin(key), self._place(message.lang))
            self._unfinished[key] = row
            if len(self._unfinished) > _UNFINISHED:
                self._unfinished.popitem(last=False)
        if row.caption is not caption:
            # A recogniser may detect the language late. The row then changes between caption and translation.
            row.caption, row.committed, row.tentative = caption, "", ""
        row.left = False
        row.moved = self._moves = self._moves + 1
        self._unfinished.move_to_end(key)
        return row

    def _begin(self, key: tuple[str, str, str]) -> int:
        """`began` for a new row: rows of one utterance share it, so that they stay together."""
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
        """A participant left. Their unfinished sentences end; translations of their finished sentences continue.

        A translation that continues is recognised when it grows, so its committed text is kept until then.
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


def _notice(sentence: str) -> Row:
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
        self._heading = f"Reading {meeting} in {', '.join(langs)}; Ctrl-C ends."
        self._shown = 0
        self._next_frame: asyncio.TimerHandle | None = None
        self._drawn_s = 0.0

    def show(self, event: SessionEvent) -> None:
        rows = self._board.apply_event(event)
        match event:
            case SessionStarted():
                rows = [_notice(self._heading), *map(_notice, _others(event))]
            case Pong(nonce=nonce) if nonce == _NOW:
                self._board.live = True
                rows = [_notice("now")] if self._shown else []
            case Caption(final=True) | TranslationFinal():
                self._shown += 1
        sentence = session_note(event)
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


def _others(started: SessionStarted) -> list[str]:
    """A notice about the other participants who have names."""
    named = [one for one in started.participants if one.name]
    if not named:
        return []
    return ["with " + ", ".join(f"{one.name} ({one.speaks})" if one.speaks else one.name for one in named)]


def _text_of(event: Caption | TranslationFinal) -> str:
    """The text of a finished row, with a sign before it where the model is unsure."""
    is_unsure = isinstance(event, TranslationFinal) and event.unsure is True
    return f"{UNSURE_SIGN}{event.text}" if is_unsure else event.text


# ---------------------------------------------------------------- elsewhere


class _Lines:
    """Output to a pipe or a file. Each finished text is a line: language, tab, speaker, tab, text."""

    def show(self, event: SessionEvent) -> None:
        match event:
            case Caption(final=True) | TranslationFinal():
                print(*map(printable, (event.lang, event.speaker, _text_of(event))), sep="\t", flush=True)
            case TranslationFailed():
                note(f"{event.lang}: {event.speaker or 'somebody'}: {event.message}")
        if (sentence := session_note(event)) is not None:
            note(sentence)


class _JsonLines:
    """The gateway's messages, one a line. `session.started` is printed without its secret."""

    def show(self, event: SessionEvent) -> None:
        if isinstance(event, Reconnecting | Reconnected) and (sentence := session_note(event)) is not None:
            note(sentence)
        message = event.started if isinstance(event, Reconnected) else event
        match message:
            case Reconnecting() | Pong():  # the pong answers our own ping
                return
            case SessionStarted():
                message = msgspec.structs.replace(message, session="")
        print(escaped(msgspec.json.encode(message).decode()), flush=True)
