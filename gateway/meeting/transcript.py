"""The transcript of a meeting: from what its log holds to utterances, and when the cue of each is shown.

Knows: which translation belongs to which utterance. Must not know: clocks, the log, HTTP, JSON (see
`server.http.transcripts`), how cues are written (`meeting.subtitles`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from gateway.domain.log import Publication, Said, Translated, Untranslated, Utterance, UtteranceKey, whole_id

# Participants whose clocks differ by no more speak into one recording.
_SHARED_CLOCK_MS = 2_000
# No recording is longer: a position beyond it is something else, such as the time of day, and counts as none.
_POSITION_MS = 100 * 3_600_000
# A position so far ahead of the time that has passed is of another clock, or a mistake.
_LEAP_MS = 3_600_000
# How long words take that came without times.
CHARS_PER_S = 15
_ESTIMATE_MS = (1_000, 7_000)
# The shortest cue.
_CUE_MS = 1_000
# Segments of one utterance that come no further apart were accepted together, at its end.
_TOGETHER_MS = 1_000

# A participant, and how many clocks they had before.
_Clock = tuple[str, int]


class Spoken(Struct, frozen=True):
    """An accepted utterance and what became of it.

    at_ms: Unix time of its acceptance, milliseconds. translations: language → text.
    failures: language → error code, where there is no translation. offset: its position in the log.
    unsure: languages of translations that a reader should be warned of.
    replaces: ids of what it stands in place of, oldest first: time and position are those of the oldest of them.
    """

    utterance: Utterance
    at_ms: int
    translations: dict[str, str]
    failures: dict[str, str]
    offset: int = 0
    unsure: set[str] = set()
    replaces: tuple[str, ...] = ()

    def text_in(self, lang: str) -> str | None:
        """The words as they were said, or their translation; None if there is none (yet)."""
        return self.utterance.text if lang == self.utterance.lang else self.translations.get(lang)

    @property
    def position_ms(self) -> tuple[int, int] | None:
        """(start, end) in the speaker's audio, where both are known and make sense."""
        start_ms, end_ms = self.utterance.start_ms, self.utterance.end_ms
        if start_ms is None or end_ms is None or not 0 <= start_ms <= end_ms <= _POSITION_MS:
            return None
        return start_ms, end_ms


class Transcript(Struct, frozen=True):
    """Utterances in the order of their acceptance."""

    utterances: tuple[Spoken, ...] = ()


class Cue(Struct, frozen=True):
    """When an utterance is shown: milliseconds from the beginning; `end_ms` is after `start_ms`."""

    start_ms: int
    end_ms: int
    spoken: Spoken


# ---------------------------------------------------------------- from the log


def transcript(publications: Iterable[Publication]) -> Transcript:
    """What was said, with its translations. Translations of what is no longer held are left out.

    What was corrected has its last text, in its place; what was taken back is left out.
    """
    # By the key of what was first said in this place.
    utterances: dict[UtteranceKey, Spoken] = {}
    places = _Places()
    for publication in publications:
        match publication.event:
            case Said(utterance=said):
                _put(utterances, places, Spoken(said, publication.at_ms, {}, {}, publication.offset))
            case Translated() as done:
                if (spoken := places.find(utterances, (done.participant, done.utterance))) is not None:
                    spoken.translations[done.lang] = done.text
                    spoken.failures.pop(done.lang, None)
                    if done.unsure:
                        spoken.unsure.add(done.lang)
            case Untranslated() as failed:
                spoken = places.find(utterances, (failed.participant, failed.utterance))
                if spoken is not None and failed.lang not in spoken.translations:
                    spoken.failures[failed.lang] = failed.code
            case _:
                assert_never(publication.event)
    return Transcript(tuple(utterances.values()))


class _Places:
    """In which place utterances stand, or stood: a place has the key of what was first said there."""

    def __init__(self) -> None:
        # Utterance that was corrected, or is a correction → where it stands.
        self._places: dict[UtteranceKey, UtteranceKey] = {}
        # Places of what was taken back.
        self._left: set[UtteranceKey] = set()

    def place_of(self, key: UtteranceKey) -> UtteranceKey:
        while (place := self._places.get(key, key)) != key:
            key = place
        return key

    def take(self, said: Utterance, place: UtteranceKey) -> None:
        """An utterance stands here now, and all that it replaces; what was taken back stands nowhere."""
        for key in (said.key, *((said.participant, id) for id in said.replaces)):
            if (before := self.place_of(key)) not in self._left:
                self._places[before] = place
        if said.is_taking_back:
            self._left.add(place)

    def find(self, utterances: dict[UtteranceKey, Spoken], key: UtteranceKey) -> Spoken | None:
        """The utterance, if it is held and was not replaced."""
        spoken = utterances.get(self.place_of(key))
        return spoken if spoken is not None and spoken.utterance.key == key else None


def _put(utterances: dict[UtteranceKey, Spoken], places: _Places, spoken: Spoken) -> None:
    """An utterance takes its place: behind all others, or that of what it replaces."""
    said = spoken.utterance
    held = dict.fromkeys(places.place_of((said.participant, id)) for id in said.replaces)
    before = [place for place in held if place in utterances]
    place = before[0] if before else said.key
    places.take(said, place)
    if before:
        spoken = _in_place_of([utterances[each] for each in before], spoken)
    for each in before[1:]:
        del utterances[each]
    if not said.is_taking_back:
        utterances[place] = spoken
    elif before:
        del utterances[place]


def _in_place_of(before: Sequence[Spoken], spoken: Spoken) -> Spoken:
    first, last, said = before[0], before[-1], spoken.utterance
    if spoken.position_ms is None:
        said = replace(said, start_ms=first.utterance.start_ms, end_ms=last.utterance.end_ms)
    stood = [id for each in before for id in (*each.replaces, each.utterance.id)]
    return replace(spoken, utterance=said, at_ms=first.at_ms, offset=first.offset, replaces=tuple(stood))


# ---------------------------------------------------------------- when a cue is shown


def cues(transcript: Transcript) -> tuple[Cue, ...]:
    """One cue per utterance, by start; those of one participant do not overlap."""
    transcript = in_turn(transcript)
    spans = _recorded(transcript) or _arrived(transcript)
    _part(spans, transcript.utterances)
    order = sorted(range(len(spans)), key=lambda index: spans[index][0])
    return tuple(Cue(*spans[index], transcript.utterances[index]) for index in order)


def in_turn(transcript: Transcript) -> Transcript:
    """The same; segments without times that were accepted together, at the end of all, come as each had ended."""
    said = list(transcript.utterances)
    # What each participant said, in runs of segments that came together.
    runs: dict[str, list[list[int]]] = {}
    for index, spoken in enumerate(said):
        own = runs.setdefault(spoken.utterance.participant, [])
        if own and _came_together(said[own[-1][-1]], spoken):
            own[-1].append(index)
        else:
            own.append([index])
    for own in runs.values():
        for before, run in pairwise([[], *own]):
            if len(run) > 1:
                least_ms = transcript.utterances[before[-1]].at_ms if before else None
                texts = [said[each].utterance.text for each in run]
                _, *ended_ms = _bounds_ms(texts, least_ms, said[run[-1]].at_ms)
                for each, at_ms in zip(run, ended_ms, strict=True):
                    said[each] = replace(said[each], at_ms=at_ms)
    return Transcript(tuple(said))


def _came_together(before: Spoken, spoken: Spoken) -> bool:
    if before.position_ms or spoken.position_ms or whole_id(before.utterance.id) != whole_id(spoken.utterance.id):
        return False
    return 0 <= spoken.at_ms - before.at_ms < _TOGETHER_MS


def _bounds_ms(texts: Sequence[str], least_ms: int | None, end_ms: int) -> list[int]:
    """When texts that were said in one go began and ended, one more than there are texts.

    least_ms: nothing of them was said before; None: that is not known.
    """
    said_ms = list(accumulate(map(_saying_ms, texts), initial=0))
    length_ms = said_ms[-1] if least_ms is None else max(0, min(said_ms[-1], end_ms - least_ms))
    return [end_ms - length_ms * (said_ms[-1] - each) // said_ms[-1] for each in said_ms]


def _recorded(transcript: Transcript) -> list[tuple[int, int]] | None:
    """The positions as they were given, where they are all positions in one recording."""
    positions = _positions_ms(transcript)
    spans = [position for position in positions if position is not None]
    clocks = _clocks(transcript)
    offsets = _offsets_ms(transcript, clocks).values()
    if len(spans) < len(positions) or any(clock for _, clock in clocks):
        return None
    return None if offsets and max(offsets) - min(offsets) > _SHARED_CLOCK_MS else spans


def _positions_ms(transcript: Transcript) -> list[tuple[int, int] | None]:
    """The positions as they were given; a segment without one ends where the next of its utterance begins.

    A recogniser that tells times with its final alone has none when the first segments are settled.
    """
    utterances = transcript.utterances
    positions = [spoken.position_ms for spoken in utterances]
    ended_ms: dict[str, int] = {}
    # Utterance → its segments since the last that has a position, and where what was said before them ends.
    without: dict[UtteranceKey, tuple[list[int], int]] = {}
    for index, spoken in enumerate(utterances):
        participant, position = spoken.utterance.participant, spoken.position_ms
        whole = participant, whole_id(spoken.utterance.id)
        if position is None:
            without.setdefault(whole, ([], ended_ms.get(participant, 0)))[0].append(index)
            continue
        if whole in without:
            indices, least_ms = without.pop(whole)
            bounds_ms = _bounds_ms([utterances[each].utterance.text for each in indices], least_ms, position[0])
            for each, span in zip(indices, pairwise(bounds_ms), strict=True):
                positions[each] = span
        ended_ms[participant] = position[1]
    return positions


def _arrived(transcript: Transcript) -> list[tuple[int, int]]:
    """Times of arrival, and positions mapped to them; the first is 0."""
    clocks = _clocks(transcript)
    offsets = _offsets_ms(transcript, clocks)
    spans: list[tuple[int, int]] = []
    newest_ms: int | None = None
    newest_own_ms: dict[str, int] = {}
    ended_ms: dict[str, int] = {}
    for spoken, clock in zip(transcript.utterances, clocks, strict=True):
        participant = spoken.utterance.participant
        if (position := spoken.position_ms) is not None:
            start_ms, end_ms = (offsets[clock] + time_ms for time_ms in position)
            # Another clock, or an estimate, puts nothing before what the participant said before.
            start_ms = max(start_ms, newest_own_ms.get(participant, start_ms))
            end_ms = max(start_ms, end_ms)
        else:
            text = spoken.utterance.text
            length_ms = _estimate_ms(text)
            start_ms = spoken.at_ms - length_ms
            if spoken.utterance.is_segment:
                start_ms = spoken.at_ms - _saying_ms(text)
                start_ms = max(start_ms, ended_ms.get(participant, start_ms))
            # An estimate puts nothing before what was accepted before: an answer must not precede its question.
            if newest_ms is not None:
                start_ms = max(start_ms, newest_ms, newest_own_ms.get(participant, newest_ms - _CUE_MS) + _CUE_MS)
            end_ms = max(spoken.at_ms, start_ms + length_ms)  # it takes as long to read
            ended_ms[participant] = spoken.at_ms
        newest_ms = start_ms if newest_ms is None else max(newest_ms, start_ms)
        newest_own_ms[participant] = max(start_ms, newest_own_ms.get(participant, start_ms))
        spans.append((start_ms, end_ms))
    first_ms = min((start_ms for start_ms, _ in spans), default=0)
    return [(start_ms - first_ms, end_ms - first_ms) for start_ms, end_ms in spans]


def _clocks(transcript: Transcript) -> list[_Clock]:
    """The clock of each utterance: a position before the last one is of the next, of another connection."""
    clocks: list[_Clock] = []
    newest: dict[str, tuple[int, int, int]] = {}  # participant → number of the clock, start and arrival
    for spoken in transcript.utterances:
        participant, position = spoken.utterance.participant, spoken.position_ms
        start_ms = 0 if position is None else position[0]
        number, last_ms, arrived_ms = newest.get(participant, (0, start_ms, spoken.at_ms))
        if position is not None:
            is_next = not 0 <= start_ms - last_ms <= spoken.at_ms - arrived_ms + _LEAP_MS
            number += is_next
            newest[participant] = number, start_ms, spoken.at_ms
        clocks.append((participant, number))
    return clocks


def _offsets_ms(transcript: Transcript, clocks: Sequence[_Clock]) -> dict[_Clock, int]:
    """Clock → what to add to a position for its time of arrival: the least delayed utterance tells."""
    offsets: dict[_Clock, int] = {}
    for spoken, clock in zip(transcript.utterances, clocks, strict=True):
        if (position := spoken.position_ms) is not None:
            offset_ms = spoken.at_ms - position[1]
            offsets[clock] = min(offset_ms, offsets.get(clock, offset_ms))
    return offsets


def _estimate_ms(text: str) -> int:
    least_ms, most_ms = _ESTIMATE_MS
    return min(max(_saying_ms(text), least_ms), most_ms)


def _saying_ms(text: str) -> int:
    return max(1, len(text) * 1_000 // CHARS_PER_S)


def _part(spans: list[tuple[int, int]], utterances: Sequence[Spoken]) -> None:
    """End each cue of one participant where their next begins, and leave each its shortest time.

    A cue that begins too soon after the one before it is moved back, and so are estimated ones that were accepted
    after an estimated one that was moved.
    """
    own: dict[str, int] = {}
    estimated_ms = 0
    for index in sorted(range(len(spans)), key=lambda index: spans[index][0]):
        start_ms, end_ms = spans[index]
        participant, position = utterances[index].utterance.participant, utterances[index].position_ms
        before = own.get(participant)
        if before is not None:
            start_ms = max(start_ms, spans[before][0] + _CUE_MS)
        if position is None:
            start_ms = estimated_ms = max(start_ms, estimated_ms)
        if before is not None:
            earlier_ms, ended_ms = spans[before]
            spans[before] = (earlier_ms, min(ended_ms, start_ms))
        spans[index] = (start_ms, max(end_ms, start_ms + _CUE_MS))
        own[participant] = index
