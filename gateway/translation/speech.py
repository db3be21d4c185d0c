"""Divides what a speaker says into segments: a settled one is accepted at once, while the utterance goes on.

Knows: for each open utterance, which of its segments are accepted and what is the rest.
Must not know: sockets, sessions, how a text is divided (`gateway.text.open_text`), how a segment is translated.

To readers and to the log a segment is an utterance of its own: the first has the id that the client has chosen,
`u1`, the next are `u1~2`, `u1~3` … The last one closes the utterance. What is not known here, as another gateway
has accepted it, the log tells: a final begins with its first segment, and goes on behind what is in the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

import regex
from msgspec.structs import replace

from gateway.domain.errors import (
    GatewayError,
    LimitExceeded,
    SessionReplaced,
    TooManyInFlight,
    UnknownUtterance,
    UtteranceFinished,
)
from gateway.domain.log import (
    Accepted,
    Logged,
    Utterance,
    UtteranceKey,
    cut_context,
    is_segment_id,
    segment_id,
    segment_number,
    whole_id,
)
from gateway.domain.session_store import Fence
from gateway.meeting.room import Room
from gateway.text.open_text import OpenText
from gateway.translation.finals import Finals
from gateway.translation.partials import Partials

_log = logging.getLogger(__name__)

# Open utterances of one participant that are remembered, and their characters; a recogniser has one, rarely two.
_MOST_OPEN, _MOST_CHARS = 12, 70_000
# Segments that one correction replaces.
_MOST_REPLACED = 100
# Segments of one revision that are accepted at once; the next revision goes on.
_AT_ONCE = 4


@dataclass(eq=False)
class _Open:
    text: OpenText
    # Where the last segment that was accepted ends in the speaker's audio.
    end_ms: int | None = None
    # The last segments that were accepted, oldest first.
    said: list[str] = field(default_factory=list)
    # One at a time: also of an earlier connection of its session.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def remember(self, text: str) -> None:
        """A segment was accepted: what follows is translated with it as context."""
        cut_context(self.said)
        self.said.append(text)


class Speech:
    """What the speakers of this gateway say."""

    def __init__(
        self,
        finals: Finals,
        partials: Partials,
        *,
        # Characters of a segment that does not end; twice as many where the text has marks.
        segment_chars: int,
        # Characters of a caption of what is being said.
        text_chars: int,
        # Segments of one participant that are not translated yet.
        in_flight: int,
        # Whether the model takes context.
        takes_context: Callable[[], bool] = lambda: False,
    ) -> None:
        self._finals = finals
        self._partials = partials
        self._segment_chars = min(segment_chars, max(1, text_chars // 2))
        self._text_chars = text_chars
        self._in_flight = in_flight
        self._takes_context = takes_context
        # Participant → utterance, the least recently revised first.
        self._open: dict[Room, dict[str, OrderedDict[str, _Open]]] = {}

    def hear(self, room: Room, utterance: Utterance) -> bool:
        """A revision came: show it. True: some segment of it may be settled; nothing is shown before `settle`."""
        spoken = self._opened(room, utterance)
        if spoken.lock.locked():
            return True
        spoken.text.revise(utterance.text)
        if spoken.text.ready(utterance.lang) is not None:
            return True
        self._show(room, spoken, utterance)
        return False

    async def settle(self, room: Room, utterance: Utterance, fence: Fence | None = None) -> None:
        """Accept what of this revision is settled, and show the rest. What is refused is settled later."""
        spoken = self._opened(room, utterance)
        async with spoken.lock:
            if self._find(room, utterance.key) is not spoken:
                return  # it was closed or given up meanwhile
            spoken.text.revise(utterance.text)
            try:
                for _ in range(_AT_ONCE):
                    segment = spoken.text.ready(utterance.lang)
                    if segment is None or self._find(room, utterance.key) is not spoken:
                        break
                    self._check_in_flight(room, utterance)
                    await self._accept(room, spoken, utterance, segment, fence, continues=True)
                    await asyncio.sleep(0)
            except SessionReplaced:
                return
            except GatewayError as error:
                _log.debug("a segment is settled later: %s", error.code)
            if (now := self._find(room, utterance.key)) is spoken:
                self._show(room, spoken, utterance)
            elif now is None and spoken.text.taken:  # it was given up, and nothing follows what was accepted
                room.close_utterance(utterance.key)

    async def accept(
        self, room: Room, utterance: Utterance, fence: Fence | None = None, *, again: bool = False
    ) -> Accepted | None:
        """Accept what is left of a final utterance. Returns its last segment; None if nothing is left.

        again: it was accepted before; all of its segments are looked at. Raises what `Finals.accept` raises, and
        `TooManyInFlight`; what was accepted until then stays so, and the next try begins behind it.
        """
        if utterance.replaces:
            return await self._correct(room, utterance, fence)
        spoken = self._new() if again else self._opened(room, utterance)
        accepted, fresh = None, 0
        async with spoken.lock:
            spoken.text.revise(utterance.text)
            while segments := spoken.text.remaining(utterance.lang):
                for segment in segments:
                    if spoken.text.taken:
                        self._check_in_flight(room, utterance, fresh)
                    continues = spoken.text.rest[len(segment) :].strip() != ""
                    accepted = await self._accept(room, spoken, utterance, segment, fence, continues=continues)
                    if accepted is None or not spoken.text.rest:
                        break  # the log has it with other words, and the rest is another one now
                    fresh += not accepted.known
                    await asyncio.sleep(0)
            if accepted is None or accepted.known:
                room.close_utterance(utterance.key)
            if not again:
                # What was shown of a rest that is not said any more.
                self._withdraw_rest(room, utterance.key, spoken)
                self._forget(room, utterance.key)
        return accepted

    async def _correct(self, room: Room, utterance: Utterance, fence: Fence | None) -> Accepted:
        """Accept what corrects an earlier utterance or takes it back. Raises also `UnknownUtterance`."""
        if (logged := await room.log.find_utterance(room.id, utterance.key)) is None:
            self._check_in_flight(room, utterance)
            utterance = await self._in_place(room, utterance)
        else:
            _check_person(utterance, logged)
            utterance = replace(utterance, replaces=logged.utterance.replaces)
        accepted = await self._finals.accept(room, utterance, fence)
        if accepted.known:
            room.close_utterance(utterance.key, utterance.sender)
        return accepted

    async def _in_place(self, room: Room, correction: Utterance) -> Utterance:
        """With the ids of what it names, one segment or all that the log has of an utterance, and its place."""
        (name,) = correction.replaces
        found: list[Logged] = []
        ids = [whole_id(name) if segment_number(name) == 1 else name]
        if not is_segment_id(name):
            ids += [segment_id(name, number) for number in range(2, _MOST_REPLACED + 2)]
        for id in ids:
            logged = await room.log.find_utterance(room.id, (correction.participant, id))
            if logged is None or logged.utterance.is_taking_back:
                break
            _check_person(correction, logged)
            found.append(logged)
        if len(found) > _MOST_REPLACED:
            raise LimitExceeded(f"More than {_MOST_REPLACED} segments; name them one by one.", field="replaces")
        if not found and (room.recorded or correction.sender):
            raise _unknown()
        if not found:  # where nothing is kept, readers may still have it
            return replace(correction, replaces=tuple(ids[:1]))
        first = found[0]
        # Where something was taken back nothing stands: what corrects it then is a new line.
        place, placed_ms = (0, 0) if room.history.was_taken_back(first.utterance.key) else first.place
        replaces = tuple(each.utterance.id for each in found)
        return replace(correction, replaces=replaces, place=place, placed_ms=placed_ms)

    def withdraw(self, room: Room, key: UtteranceKey, wait_s: float = 0.0) -> None:
        """The speaker gives an utterance up: what is not settled of it goes from every screen.

        wait_s: its final was refused for the moment, and may come again until then.
        """
        taken = self._taken(room, key)
        rest = _rest_key(key, taken)
        if wait_s:
            self._partials.withdraw_later(room, rest, wait_s)
            return
        self._partials.withdraw(room, rest)
        self._forget(room, key)
        if taken:
            room.close_utterance(key)

    def cancel(self, room: Room, key: UtteranceKey) -> None:
        """Stop what is left of an accepted utterance, at whichever gateway."""
        for segment in dict.fromkeys([key, *room.history.unfinished_segments(key)]):
            self._finals.cancel(room, segment)

    def is_begun(self, room: Room, key: UtteranceKey) -> bool:
        """Whether some segment of an open utterance was accepted."""
        spoken = self._find(room, key)
        return spoken is not None and spoken.text.taken > 0

    def speaker_away(self, room: Room, participant: str) -> None:
        self._partials.speaker_away(room, participant)

    def speaker_left(self, room: Room, participant: str, *, for_good: bool) -> None:
        """A speaker will not come back here. for_good: nor to another gateway."""
        self._partials.speaker_left(room, participant, for_good=for_good)
        for id in list(self._open.get(room, {}).get(participant, {})):
            self._forget(room, (participant, id))

    # ------------------------------------------------------------ segments

    async def _accept(
        self,
        room: Room,
        spoken: _Open,
        whole: Utterance,
        segment: str,
        fence: Fence | None,
        *,
        continues: bool,
    ) -> Accepted | None:
        """Accept the next segment. None: the log has or had it with other words, which are taken for it."""
        utterance = self._segment(spoken, whole, segment, continues=continues)
        try:
            accepted = await self._finals.accept(room, utterance, fence)
        except UtteranceFinished:
            held = await room.log.find_utterance(room.id, utterance.key)
            logged = None if held is None else held.utterance
            if logged is None and (least := spoken.text.least(segment, whole.lang)) != segment:
                # The log has trimmed its words: better say some of them twice than others never.
                await self._accept(room, spoken, whole, least, fence, continues=True)
                return None
            if logged is None and continues:
                # Another text was said in its place.
                spoken.text.take_segment(segment)
                spoken.end_ms = utterance.end_ms
                return None
            if logged is None or not (logged.continues or spoken.text.taken):
                raise
            accepted = await self._finals.accept(room, logged, fence)
            spoken.text.take_accepted(logged.text)
            spoken.end_ms = logged.end_ms
            spoken.remember(logged.text)
            if not logged.continues:
                # It is closed, and so no more of it is said.
                spoken.text.take_segment(spoken.text.rest)
                return accepted
            return None
        if accepted.known and continues:
            held = await room.log.find_utterance(room.id, utterance.key)
            if held is not None and not held.utterance.continues:
                raise UtteranceFinished(
                    "This utterance is final already, with another text; use a new id.", field="id"
                )
        spoken.text.take_segment(segment)
        spoken.end_ms = utterance.end_ms
        spoken.remember(utterance.text)
        return accepted

    def _segment(self, spoken: _Open, whole: Utterance, text: str, *, continues: bool) -> Utterance:
        rest = self._rest(spoken, whole)
        end_ms = rest.end_ms
        if rest.start_ms is not None and end_ms is not None and continues:
            end_ms = rest.start_ms + (end_ms - rest.start_ms) * len(text) // len(spoken.text.rest)
        return replace(
            rest,
            text=text.strip(),
            end_ms=end_ms,
            final=True,
            # One span tells of the whole utterance.
            traceparent="" if continues else whole.traceparent,
            continues=continues,
        )

    def _rest(self, spoken: _Open, whole: Utterance) -> Utterance:
        """The utterance that the rest is to readers, with the text of the whole."""
        start_ms, end_ms = self._rest_ms(spoken, whole)
        return replace(
            whole,
            id=segment_id(whole.id, spoken.text.taken + 1),
            # What is nearest comes last: an engine without room for all of it leaves out the oldest.
            context=(*whole.context, *spoken.said) if self._takes_context() else whole.context,
            start_ms=start_ms,
            end_ms=end_ms,
            part_of=whole.id if spoken.text.taken else "",
        )

    def _rest_ms(self, spoken: _Open, whole: Utterance) -> tuple[int | None, int | None]:
        """Where the rest is in the speaker's audio: behind what was accepted."""
        if whole.start_ms is None or whole.end_ms is None or not spoken.text.taken:
            return whole.start_ms, whole.end_ms
        end_ms = spoken.end_ms
        if end_ms is None:  # its partials had no times
            end_ms = whole.start_ms + round((whole.end_ms - whole.start_ms) * spoken.text.share)
        return min(max(whole.start_ms, end_ms), whole.end_ms), whole.end_ms

    def _show(self, room: Room, spoken: _Open, whole: Utterance) -> None:
        rest = spoken.text.rest.strip()
        if not rest:
            self._withdraw_rest(room, whole.key, spoken)
            return
        # It is as long as this only while nothing of it is accepted.
        caption = replace(self._rest(spoken, whole), text=rest[-self._text_chars :])
        beginning = spoken.text.beginning(whole.lang).strip()
        self._partials.hear(room, caption, replace(caption, text=beginning), held_chars=len(spoken.text))

    def _withdraw_rest(self, room: Room, key: UtteranceKey, spoken: _Open) -> None:
        rest = _rest_key(key, spoken.text.taken)
        if room.live.caption_of(rest) is not None:
            self._partials.withdraw(room, rest)

    def _check_in_flight(self, room: Room, utterance: Utterance, fresh: int = 0) -> None:
        """fresh: segments that were accepted with the same message, whether anybody has them translated or not."""
        if max(fresh, room.history.unfinished_by(utterance.participant)) >= self._in_flight:
            raise TooManyInFlight("Much of this utterance is not translated yet.", retry_after_ms=500)

    # ------------------------------------------------------------ open utterances

    def _find(self, room: Room, key: UtteranceKey) -> _Open | None:
        """What is known of an utterance, if it is open here."""
        return self._open.get(room, {}).get(key[0], OrderedDict()).get(key[1])

    def _new(self) -> _Open:
        return _Open(OpenText(self._segment_chars))

    def _opened(self, room: Room, utterance: Utterance) -> _Open:
        """What is known of an utterance; it is the most recently revised now."""
        by_id = self._open.setdefault(room, {}).setdefault(utterance.participant, OrderedDict())
        if (spoken := by_id.get(utterance.id)) is None:
            spoken = by_id[utterance.id] = self._new()
            # Another gateway may have accepted some of it. Of a final, the log tells what is not held here.
            if (held := room.history.segments(utterance.key)) and held[-1].continues:
                self._take_held(spoken, held, utterance.text)
        by_id.move_to_end(utterance.id)
        while len(by_id) > 1 and (
            len(by_id) > _MOST_OPEN or sum(len(each.text) for each in by_id.values()) > _MOST_CHARS
        ):
            id, oldest = by_id.popitem(last=False)
            if oldest.text.taken:
                room.close_utterance((utterance.participant, id))
        return spoken

    def _take_held(self, spoken: _Open, held: list[Utterance], text: str) -> None:
        """What was accepted elsewhere is not said again."""
        spoken.text.revise(text)
        found = regex.search(r"\s*".join(regex.escape(each.text) for each in held), text)
        if segment_number(held[0].id) > 1 and found is not None:
            spoken.text.take_segment(text[: found.end()])
        else:
            for each in held:
                spoken.text.take_accepted(each.text)
        spoken.text.taken, spoken.end_ms = segment_number(held[-1].id), held[-1].end_ms
        for each in held:
            spoken.remember(each.text)

    def _taken(self, room: Room, key: UtteranceKey) -> int:
        """How many segments of an utterance are accepted, as far as this gateway knows."""
        if (spoken := self._find(room, key)) is not None:
            return spoken.text.taken
        held = room.history.segments(key)
        captions = [
            segment_number(caption.utterance.id) - 1
            for caption in room.live.captions
            if caption.utterance.whole == key
        ]
        return max([*captions, segment_number(held[-1].id) if held else 0])

    def _forget(self, room: Room, key: UtteranceKey) -> None:
        if (of_room := self._open.get(room)) is not None and (by_id := of_room.get(key[0])) is not None:
            by_id.pop(key[1], None)
            if not by_id:
                del of_room[key[0]]
            if not of_room:
                del self._open[room]


def _unknown() -> UnknownUtterance:
    return UnknownUtterance("The log has no such utterance of this participant.", field="replaces")


def _check_person(correction: Utterance, logged: Logged) -> None:
    """Whether its sender may speak for the participant. Raises `UnknownUtterance`, as if it were not there."""
    said_by = logged.utterance.person
    if correction.sender and (not said_by or said_by != correction.person):
        raise _unknown()


def _rest_key(whole: UtteranceKey, taken: int) -> UtteranceKey:
    """Under which key readers see what follows so many accepted segments."""
    return whole[0], segment_id(whole[1], taken + 1)
