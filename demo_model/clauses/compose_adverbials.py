"""Draws adverbials: when, where and how something is done."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from demo_model.clauses.compose_phrases import PEERS, PhraseComposer
from demo_model.clauses.lexicon import Frame
from demo_model.clauses.syntax import Adverbial, Clause, Modal, Mood, Phrase, Tense
from demo_model.grammar import Value

_ASKED_HOW = ("where", "how", "why", "how_long", "how_often")
_ROUND = frozenset((count, "minutes") for count in (5, 10, 15, 20, 30, 40, 45)) | {(2, "hours"), (3, "hours")}
"""The durations that one says without a watch."""
_HASTY = ("immediately", "quickly", "as soon as possible")
_BRIEF = re.compile(r"minutes|hour|just now|\{duration|right after")
_CLOCK = re.compile(r"\{(?:time|clock)|at noon")
_AROUND = re.compile(r"\{P\}|^after|^before|break|meantime|lunchtime|before lunch|after lunch")
_PLAIN = re.compile(r"^(yesterday|last week|this morning|yesterday evening|tomorrow|next week|this evening)$")
"""The times of what is not done."""
_AT_WORK = re.compile(r"meeting|the call|quarter|the break|@occasion|after work")
_AT_HOME = re.compile(
    r"last night|tonight|school|bed|breakfast|birthday|Christmas|dinner|midnight|Sunday|Saturday|weekend"
)
_DISTANT = re.compile(r"month|year|date|weeks|quarter|spring|summer|autumn|winter|Christmas|long time")
_SOME_DAY = re.compile(r"days|other day|week|recently|soon|later|sometime|\{weekday")
_DAY = re.compile(r"^(yesterday|this morning|this afternoon|yesterday evening|yesterday afternoon)$")
"""The times of what is said to have lasted."""
_VAGUE = re.compile(r"always|sometime|days$|days ago|other day|recently|soon$|^later|weeks|minutes|hour|duration")
"""The times of what is not asked for, nor wanted or proposed."""
_SOON = re.compile(r"^in a few days|soon$|^later|sometime|next few weeks")
_NEAR = re.compile(r"^(yesterday|yesterday afternoon|this morning|tomorrow|this afternoon|on \{weekday\})$")
_EVENING = re.compile(r"night|evening")
_NOT_EVENING = re.compile(r"morning|noon|lunch|breakfast|school|\{time")
_NOT_MORNING = re.compile(r"evening|night|noon|lunch|dinner|midnight|bed|\{time")
_NOT_NOON = re.compile(r"morning|evening|night|afternoon|breakfast|lunch|noon|dinner|bed|school|twice|\{time")
_OTHER_PARTS = {"evening": _NOT_EVENING, "morning": _NOT_MORNING, "noon": _NOT_NOON}
"""A part of the day → the times of what is not done then."""
_USUAL = {"morning": range(6, 9), "noon": range(12, 14), "go_bed": range(21, 24), "evening": range(18, 21)}
_TOLD = {"morning": range(8, 12), "afternoon": range(13, 18)}
"""What one does at what hours, and the hours of a part of the day."""
_OFTEN = re.compile(r"day|morning|evening|night|once a day|twice a day|afternoon|always")
_SELDOM = re.compile(r"year|summer|winter")


class AdverbialComposer(PhraseComposer):
    """Times, places, manners and companions that fit a clause."""

    def adverbial(self, key: str, avoid: Sequence[str] = (), frame: str = "") -> Adverbial:
        """A time, a place … with what fills it. frame: what is done at an hour."""
        template = self.words.adverbials[key]["en"]
        values: list[tuple[str, Value]] = []
        for kind in ("weekday", "date", "time", "month", "duration", "place", "room"):
            if f"{{{kind}}}" in template or f"{{{kind}:" in template:
                value = self.sampler.value(kind)
                while kind == "duration" and value not in _ROUND:
                    value = self.sampler.value(kind)
                values.append((kind, value))
        if "{clock}" in template:
            hour, minute = self._clock(key, frame)
            if "{until}" in template:
                hour, minute = self.random.randint(8, 14), self.random.choice((0, 0, 30))
                end = min(hour + self.random.choice((1, 2, 3, 8)), 18)
                values.append(("until", (end, self.random.choice((minute, 0)))))
            values.insert(0, ("clock", (hour, minute)))
        phrase = None
        if "{P" in template:
            (kind,) = self.words.adverbial_types[key]
            phrase = (
                self._companion(avoid)
                if kind == "company"
                else self.noun(self.random.choice(self._nouns(self._types([kind]))), True, True)
            )
        return Adverbial(self.mark(), key, phrase, tuple(values))

    def _companion(self, avoid: Sequence[str]) -> Phrase:
        if self.odds(0.4):
            return self._pronoun(False, avoid, False)
        return self._name() if self.odds(0.4) else self.noun(self.random.choice(self._nouns(PEERS)))

    def _time(self, frame: Frame, *kinds: str, negative: bool = False, plain: bool = False) -> list[Adverbial]:
        """A time that fits what is done, if there is one: the hour of a call, the year of a move."""
        fitting = [
            key
            for kind in kinds
            for key in self._adverbials[kind]
            if self._when(key, frame.key) and (not negative or _PLAIN.search(key))
            if not (plain and _VAGUE.search(key))
            if not (_AT_WORK if "daily" in frame.tags else _AT_HOME).search(key) or key in self.choices["during"]
        ]
        fitting += [key for key in fitting if "{clock}" in key] * 3
        return [self.adverbial(self.random.choice(fitting), frame=frame.key)] if fitting else []

    def _when(self, key: str, frame: str) -> bool:
        during, times = self.choices["during"], self.choices["times"]
        if "{clock}" in key and self.words.adverbial_kinds[key] != "deadline":
            hour = self._hours(key, frame)
            return bool(hour) and frame in times["hours" if "{until}" in key else "clock"]
        if frame in times["undated"]:
            return False
        if key in during:
            return frame in during[key]
        if any(frame in times[table] and pattern.search(key) for table, pattern in _OTHER_PARTS.items()):
            return False
        if self.words.adverbial_kinds[key] in ("time_habit", "frequency"):
            return not _SELDOM.search(key) and bool(_OFTEN.search(key)) == (frame in times["daily"])
        if _SOON.search(key) and frame not in times["some_day"]:
            return False
        if frame in times["daily"] and _SOME_DAY.search(key):
            return False
        if (frame in times["near"] and not _NEAR.search(key)) or (
            frame in times["light"] and _EVENING.search(key)
        ):
            return False
        if key == "as soon as possible":
            return frame in times["soon"]
        if self.words.adverbial_kinds[key] == "deadline":
            return frame in times["done"] and frame not in times["undue"]
        if frame in times["large"]:
            return bool(_DISTANT.search(key)) and not re.search("weeks|date", key)
        for pattern, table in ((_BRIEF, "brief"), (_CLOCK, "brief"), (_AROUND, "around"), (_DISTANT, "notable")):
            if pattern.search(key):
                return frame in times[table]
        return True

    def _hours(self, key: str, frame: str) -> range:
        """The hours at which one does it: none if what the time says is not when one does."""
        times = self.choices["times"]
        usual = next((hours for table, hours in _USUAL.items() if frame in times.get(table, (table,))), None)
        told = next((hours for word, hours in _TOLD.items() if word in key), None)
        if usual is None or told is None:
            return usual or told or range(8, 18)
        return range(max(usual.start, told.start), min(usual.stop, told.stop))

    def _clock(self, key: str, frame: str) -> tuple[int, int]:
        hour = self.random.choice(self._hours(key, frame))
        return hour, self.random.choice((0, 0, 0, 30, 30, 15, 45))

    def _with_adverbials(self, clause: Clause, frame: Frame) -> Clause:
        if any(np.relative for np in clause.roles.values()):
            return clause  # it would be unclear what the adverbial belongs to
        out: list[Adverbial] = []
        stative = "stative" in frame.tags
        if clause.asked not in ("when", "how_often", "how_long"):
            out += self._times(
                clause, frame, stative, always=frame.key in ("start_event", "end_event", "take_place")
            )
        over = (
            clause.tense is Tense.PAST
            and clause.modal is Modal.NONE
            and not clause.negative
            and clause.mood is Mood.STATEMENT
        )
        if over and frame.key in self.choices["times"]["lasting"] and self.odds(0.4):
            return replace(
                clause,
                adverbials=(*(each for each in out if _DAY.search(each.key)), self.adverbial("for {duration}")),
            )
        for table, share in (("places", 0.3), ("manners", 0.25), ("companions", 0.3)):
            fitting = [key for key, frames in self.choices[table].items() if frame.key in frames]
            if not fitting or not self.odds(share) or len(out) > 1 or clause.asked in _ASKED_HOW:
                continue
            said = clause.mood is Mood.STATEMENT and clause.modal is Modal.NONE
            unfit = {
                "places": clause.negative or clause.asked or clause.modal is not Modal.NONE or not said,
                "manners": clause.asked or (said and clause.tense in (Tense.NOW, Tense.HABIT)),
            }.get(table) or (table != "places" and (clause.negative or clause.asked or clause.tense is Tense.DONE))
            key = self.random.choice(fitting)
            there = bool(out) and table == "places" and re.search("meeting|call|break|holidays", out[-1].key)
            hasty = bool(out) and (key in _HASTY or out[-1].key in _HASTY or out[-1].key.startswith("by "))
            if unfit or there or hasty or (key == "by mistake" and clause.tense is not Tense.PAST):
                continue
            if key == "place_office":
                key = self.random.choice(self._rooms(key))
            known = [np.pronoun for role, np in clause.roles.items() if role == "S"]
            how = self.adverbial(
                key, [*known, "you"] if clause.tense in (Tense.HABIT, Tense.NOW, Tense.DONE) else known
            )
            out.append(how)
        return replace(clause, adverbials=tuple(out))

    def _rooms(self, key: str) -> list[str]:
        return self.choices["put"].get(key) or self.choices["rooms"]["talk"]

    def _times(self, clause: Clause, frame: Frame, stative: bool, always: bool) -> list[Adverbial]:
        asking = clause.mood in (Mood.IMPERATIVE, Mood.REQUEST, Mood.LETS)
        if asking and frame.key in self.choices["times"]["soon"] and self.odds(0.12):
            return [self.adverbial("as soon as possible")]
        if (clause.mood is Mood.LETS and frame.key not in self.choices["times"]["some_day"]) or (
            asking and clause.negative
        ):
            return []
        if asking or (clause.modal is not Modal.NONE and clause.tense is not Tense.PAST):
            if self.odds(0.35) and clause.modal not in (Modal.CAN, Modal.SHOULD):
                due = self.odds(0.5) and (asking or clause.modal is Modal.MUST)
                kind = "deadline" if due and self._when("by {weekday}", frame.key) else "time_future"
                return self._time(frame, kind, negative=clause.negative, plain=True)
            return []
        plain = clause.mood in (Mood.YES_NO, Mood.WH)
        match clause.tense:
            case Tense.PAST if always or self.odds(0 if stative or clause.modal is not Modal.NONE else 0.6):
                kinds = ("time_past", "time_past", "time_any")
                return self._time(frame, *kinds, negative=clause.negative, plain=plain)
            case Tense.FUTURE if always or self.odds(0.7):
                kinds = ("time_future", "time_future", "time_any")
                return self._time(frame, *kinds, negative=clause.negative, plain=plain)
            case Tense.PLANNED:
                return self._time(frame, "time_future", plain=True)
            case Tense.HABIT if not stative:
                wh = clause.mood is Mood.WH or clause.negative or always
                if wh or (self.odds(0.5) and clause.mood is not Mood.YES_NO):
                    return self._time(frame, "time_habit")
                return self._time(frame, "frequency", plain=clause.mood is Mood.YES_NO) or self._time(
                    frame, "time_habit"
                )
        return []
