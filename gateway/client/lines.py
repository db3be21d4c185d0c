"""What is on a reader's screen: each utterance as one line, which grows until it is final.

Knows: how lines follow from events. Must not know: sockets, how lines are shown.
The JavaScript client has the same in web_demo/client/lines.js; tests/client/lines.json is played in both.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from gateway.client.events import Reconnected, SessionEvent
from gateway.protocol.messages import (
    Caption,
    ParticipantJoined,
    ParticipantLeft,
    ParticipantUpdated,
    SessionStart,
    SessionStarted,
    SessionUpdated,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
    UtteranceCancelled,
    UtteranceReplaced,
)

# Utterances whose lines are remembered, so that a correction finds them.
_REMEMBERED = 4_096


class Line(Struct, frozen=True, kw_only=True):
    """An utterance in a language that is read, as it is to be shown now. `print(line)` shows it."""

    # The same for every state of one line, and for no other line. A correction is another state of the line.
    key: str
    # Public id of the speaker in the meeting.
    participant: str
    utterance: str
    # The speaker's name; may be empty.
    speaker: str
    lang: str
    # Text that stays, then text that may still change.
    committed: str = ""
    tentative: str = ""
    # Whether it is complete.
    final: bool = False
    # Why there is no translation, in one sentence.
    failure: str | None = None
    # Whether it will never be final, because the speaker gave it up or left, or was taken back: remove the line.
    gone: bool = False

    @property
    def text(self) -> str:
        """What is to be shown."""
        return self.committed + self.tentative

    def __str__(self) -> str:
        text = self.text if self.failure is None else f"({self.failure})"
        return f"{self.speaker}: {text}" if self.speaker else text


class Lines:
    """The lines of a session that are not final yet, where others are, and the names of those who speak."""

    def __init__(self, start: SessionStart, started: SessionStarted) -> None:
        self._reads, self._originals, self._name = list(start.reads), start.originals, start.name or ""
        self._growing: dict[str, Line] = {}
        # (participant, utterance) → its lines by language, each in its newest state. A correction has those of
        # what it replaces.
        self._shown: OrderedDict[tuple[str, str], dict[str, Line]] = OrderedDict()
        self._names: dict[str, str] = {}
        self._note_participants(started)

    def apply(self, event: SessionEvent) -> list[Line]:
        """The lines that an event changes, in their new state."""
        return list(self._changed(event))

    def _changed(self, event: SessionEvent) -> Iterator[Line]:
        match event:
            case Caption() if self._is_read(event.lang):
                committed, tentative = (event.text, "") if event.final else ("", event.text)
                said = {"speaker": event.speaker, "committed": committed, "tentative": tentative}
                yield self._show(event, final=event.final, **said)
            case TranslationDelta():
                before = self._growing.get(self._key(event))
                committed = (before.committed if before else "") + event.committed
                yield self._show(event, committed=committed, tentative=event.tentative)
            case TranslationFinal():
                yield self._show(event, final=True, speaker=event.speaker, committed=event.text)
            case TranslationFailed():
                yield self._show(event, final=True, speaker=event.speaker, committed="", failure=event.message)
            case UtteranceCancelled(participant=participant, utterance=utterance):
                yield from self._remove(
                    lambda line: (line.participant, line.utterance) == (participant, utterance)
                )
            case UtteranceReplaced():
                yield from self._replace(event)
            case ParticipantJoined() | ParticipantUpdated():
                self._names[event.participant] = event.name
            case ParticipantLeft(participant=participant):
                self._names.pop(participant, None)
                yield from self._remove(lambda line: line.participant == participant)
            case SessionUpdated(reads=reads, stability=stability):
                self._reads, self._originals = list(reads), event.originals
                yield from self._remove(lambda line: stability == "final" or not self._is_read(line.lang))
            case Reconnected(started=started):
                self._note_participants(started)
                yield from self._remove(lambda _: True)  # what is still being said comes again

    def _is_read(self, lang: str) -> bool:
        return self._originals or lang in self._reads

    def _note_participants(self, started: SessionStarted) -> None:
        self._names = {each.participant: each.name for each in started.participants}
        self._names[started.participant] = self._name

    def _show(self, event: _Shown, *, final: bool = False, **fields: str) -> Line:
        key = self._key(event)
        before = self._growing.get(key) or Line(
            key=key,
            participant=event.participant,
            utterance=event.utterance,
            speaker=self._names.get(event.participant, ""),
            lang=event.lang,
        )
        line = replace(before, **{"tentative": "", **fields}, final=final)
        if final:
            self._growing.pop(key, None)
        else:
            self._growing[key] = line  # where it was: lines that go, go in the order in which they began
        self._lines_of(event.participant, event.utterance)[event.lang] = line
        return line

    def _key(self, event: _Shown) -> str:
        before = self._shown.get((event.participant, event.utterance), {}).get(event.lang)
        return before.key if before is not None else f"{event.participant}/{event.utterance}/{event.lang}"

    def _lines_of(self, participant: str, utterance: str) -> dict[str, Line]:
        lines = self._shown.setdefault((participant, utterance), {})
        if len(self._shown) > _REMEMBERED:
            self._shown.popitem(last=False)
        return lines

    def _replace(self, event: UtteranceReplaced) -> Iterator[Line]:
        """The first line of each language is to show the correction; until it comes, the line is empty."""
        kept: dict[str, Line] = {}
        for id in event.utterances:
            for lang, before in self._shown.pop((event.participant, id), {}).items():
                self._growing.pop(before.key, None)
                line = replace(before, committed="", tentative="", final=False, failure=None)
                if event.by is None or lang in kept:
                    yield replace(line, gone=True)
                else:
                    kept[lang] = self._growing[line.key] = replace(line, utterance=event.by)
                    yield kept[lang]
        if event.by is not None:
            self._lines_of(event.participant, event.by).update(kept)

    def _remove(self, applies: Callable[[Line], bool]) -> Iterator[Line]:
        for line in [line for line in self._growing.values() if applies(line)]:
            del self._growing[line.key]
            self._shown.get((line.participant, line.utterance), {}).pop(line.lang, None)
            yield replace(line, committed="", tentative="", gone=True)


class LineStream:
    """Lines for a loop, `async for`. They are the session's: leave the loop, and begin another, at any moment.

    A wait for the next line may be cancelled, for example by a timeout, which would end a generator.
    """

    def __init__(self, next_line: Callable[[], Awaitable[Line]], *, only_final: bool = False) -> None:
        self._next_line = next_line
        self._only_final = only_final
        self._closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Line:
        """Raises `ClientError`."""
        while not self._closed:
            line = await self._next_line()
            if line.final or not self._only_final:
                return line
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """End this loop, not the session."""
        self._closed = True


_Shown = Caption | TranslationDelta | TranslationFinal | TranslationFailed
