"""A reader's position in its meeting's log, and which publications it has received.

Knows: epochs, offsets, keys of publications. Must not know: sockets, tasks, how publications are shown.
"""

from __future__ import annotations

from collections import OrderedDict

from msgspec.structs import replace

from gateway.protocol.messages import (
    Caption,
    Resume,
    ServerMessage,
    SessionStart,
    SessionStarted,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
    UtteranceReplaced,
)

# How many publications are recognised when they come again in another epoch.
_REMEMBERED = 4_096


class Received:
    """Tracks the position from which a session is resumed, and recognises publications that come twice."""

    def __init__(self, started: SessionStarted, resumed: Resume | None = None) -> None:
        self._started = started
        self._log = 0 if resumed is not None and resumed.epoch == started.epoch else 1
        self._offset = resumed.offset if self._log == 0 and resumed is not None else 0
        # Separate from `_offset`: a new session begins with publications older than its position.
        self._position = self._offset if started.recovered else max(self._offset, started.offset)
        self._recent: OrderedDict[tuple[object, ...], int] = OrderedDict()
        # (participant, utterance) → what it was corrected by; None: it was taken back.
        self._replaced: OrderedDict[tuple[str, str], str | None] = OrderedDict()

    @property
    def position(self) -> Resume:
        """The session, the epoch of its log, and the highest offset received."""
        return Resume(self._started.session, self._started.epoch, self._position)

    def start_to_resume(self, start: SessionStart) -> SessionStart:
        """The start that resumes the session here. If the meeting is gone, it begins again as what it was."""
        record = False if self._started.record is False else start.record
        return replace(start, resume=self.position, record=record)

    def restarted(self, started: SessionStarted) -> None:
        """The session was resumed, or a new one was started in its place."""
        before, self._started = self._started, started
        if (before.meeting, before.epoch) != (started.meeting, started.epoch):
            self._log += 1
            self._offset = 0
            self._position = started.offset
        elif not started.recovered:
            self._position = max(self._position, started.offset)

    def is_new(self, message: ServerMessage) -> bool:
        """Note a message. False: it was received before, or is of what was corrected or taken back."""
        is_new = self._note(message)
        match message:
            case Caption() | TranslationDelta() | TranslationFinal() | TranslationFailed():
                return is_new and (message.participant, message.utterance) not in self._replaced
        return is_new

    def replace(self, message: UtteranceReplaced) -> UtteranceReplaced | None:
        """Note a correction. Returns it with the utterances that stood until now; None: it tells nothing new."""
        standing = [
            id for each in message.utterances if (id := self._standing(message.participant, each, message.by))
        ]
        for id in standing:
            self._replaced[message.participant, id] = message.by
            if len(self._replaced) > _REMEMBERED:
                self._replaced.popitem(last=False)
        return replace(message, utterances=list(dict.fromkeys(standing))) if standing else None

    def _standing(self, participant: str, id: str, by: str | None) -> str | None:
        """What stands where an utterance stood; None: nothing, or `by` has replaced it before."""
        while (key := (participant, id)) in self._replaced:
            newer = self._replaced[key]
            if newer is None or newer == by:
                return None
            id = newer
        return id

    def _note(self, message: ServerMessage) -> bool:
        match message:
            case Caption(offset=int(offset)) | TranslationFinal(offset=offset) | TranslationFailed(offset=offset):
                if offset <= self._offset:
                    return False
                self._offset = offset
                self._position = max(self._position, offset)
                key = (type(message), message.participant, message.utterance, message.lang, message.rev)
                known = self._recent.setdefault(key, self._log)
                if len(self._recent) > _REMEMBERED:
                    self._recent.popitem(last=False)
                return known == self._log
            case _:
                return True
