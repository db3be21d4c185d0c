"""Draws abstract sentences: which frame, who plays its roles, when, and how clauses are linked.

Deterministic for a sampler. Knows what goes with what (words/*.toml, choices.toml), not how any language says it.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from demo_model.clauses.lexicon import WORDS, Frame, Noun, load_words
from demo_model.clauses.syntax import Adverbial, Clause, Modal, Mood, Phrase, Predicate, Tense, Utterance
from demo_model.grammar import Value
from demo_model.sampling import Sampler

_COUNTED = 9
_NO_DEGREE = frozenset({"ill", "final", "current", "complete", "urgent"})
_NOT_BEFORE_NOUNS = frozenset(["ill", "tired", "busy", "hungry", "nervous", "happy", "hot", "cold"])
_NOT_PREDICATED = frozenset({"final", "current", "creative", "successful", "large"})
_MALE = ("grandfather", "father", "brother", "son", "uncle", "husband", "nephew")
_SPECIFIC = ("the", "the", "the", "this", "we")


@cache
def _toml(path: Path) -> dict[str, dict[str, list[str]]]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def classes() -> dict[str, list[str]]:
    """What a role can be, where it is not a type of nouns."""
    return _toml(WORDS / "classes.toml")["classes"]


def choices() -> dict[str, dict[str, list[str]]]:
    """What goes with which verbs."""
    return _toml(Path(__file__).parent / "choices.toml")


class Composer:
    """A stream of utterances. Two composers whose samplers have the same seed give the same stream."""

    def __init__(self, sampler: Sampler) -> None:
        self.sampler = sampler
        self.words = load_words()
        self.classes = classes()
        self.choices = choices()
        self.values: dict[int, tuple[str, Value]] = {}
        self._mark = 0
        frames = self.words.frames.values()
        self._frames = {
            domain: [frame.key for frame in frames if domain in frame.tags] for domain in ("office", "daily")
        }
        self._adverbials: dict[str, list[str]] = {}
        for key, kind in self.words.adverbial_kinds.items():
            self._adverbials.setdefault(kind, []).append(key)

    @property
    def random(self) -> random.Random:
        return self.sampler.random

    def mark(self) -> int:
        self._mark += 1
        return self._mark

    def odds(self, share: float) -> bool:
        return self.random.random() < share

    def draw(self) -> Utterance:
        """The next utterance."""
        self.values, self._mark = {}, 0
        kinds: dict[Callable[[], Utterance], float] = {
            self._single: 0.52,
            self._described: 0.13,
            self._linked: 0.15,
            self._reasoned: 0.07,
            self._reported: 0.13,
        }
        kind = self.random.choices(list(kinds), list(kinds.values()))[0]
        said = kind()
        second = replace(said.second, embedded=True) if said.second else None
        first = replace(said.first, embedded=said.speaker is not None)
        return replace(said, first=first, second=second, values=dict(self.values))

    # Noun phrases

    def _types(self, role: Sequence[str]) -> list[str]:
        return [each for kind in role for each in self.classes.get(kind, [kind])]

    def _nouns(self, types: Sequence[str]) -> list[Noun]:
        """Every noun of these types, which may be names of types or keys of single nouns."""
        keys = [key for each in types for key in ([each] if ":" in each else self.words.by_type.get(each, ()))]
        return [self.words.nouns[key] for key in keys]

    def role(
        self,
        role: Sequence[str],
        subject: bool = False,
        fresh: bool = False,
        avoid: Sequence[str] = (),
        asks: bool = False,
    ) -> Phrase:
        """Somebody or something that can play a role with these types."""
        types = self._types(role)
        pronouns = [each for each in types if each in ("we", "they")]
        nouns = self._nouns([each for each in types if each not in ("we", "they", "people")])
        if "people" in types:
            draw = self.random.random()
            if draw < 0.5:
                return self._pronoun(subject, avoid, asks)
            if draw < 0.64 or not nouns:
                return self._name()
        elif pronouns and self.odds(0.4):
            return Phrase(self.mark(), pronoun=self.random.choice(pronouns))
        return self.noun(self.random.choice(nouns), subject, fresh=fresh)

    def _pronoun(self, subject: bool, avoid: Sequence[str], asks: bool) -> Phrase:
        choices = ["i", "i", "we", "we", "he", "she", "they"]
        if asks:
            choices = ["you"] * 7 + ["he", "she", "they"]
        elif not subject:
            choices = ["i", "we", "you", "he", "she", "they"]
        if {"i", "we"} & set(avoid):
            choices = [each for each in choices if each not in ("i", "we")]
        if {"he", "she", "they", "you"} & set(avoid):
            choices = [each for each in choices if each not in (*avoid, "they")]
        return Phrase(self.mark(), pronoun=self.random.choice(choices))

    def _name(self) -> Phrase:
        mark, name = self.mark(), self.sampler.name()
        self.values[mark] = ("name", name)
        return Phrase(mark, name=name)

    def noun(self, noun: Noun, subject: bool = False, plain: bool = False, fresh: bool = False) -> Phrase:
        mark = self.mark()
        if noun.type == "city":
            return Phrase(mark, noun=noun.key, det="name")
        if noun.type == "family":
            det = self.random.choices(("i", "we", "he", "she"), (6, 1, 1, 1))[0]
            return Phrase(mark, noun=noun.key, det=det)
        if noun.mass:
            return Phrase(mark, noun=noun.key, det="bare")
        weights = {
            "the": 46,
            "a": 0 if subject else 55 if fresh else 4,
            "this": 8,
            "we": 7,
            "i": 3,
            "num": 5,
            "many": 2,
            "all": 4,
        }
        if noun.type in ("group", "event", "site", "sport") or plain:
            weights |= {"num": 0, "many": 0, "all": 0, "i": 0}
        if noun.type in ("food", "gift", "plant", "small", "clothes", "animal", "text") and not subject:
            weights |= {"we": 0, "i": 8, "all": 0}
        if noun.type == "money":
            weights = {"the": 6, "this": 1, "we": 2}
        if noun.key == "group:management":
            weights = {"the": 1}
        det = self.random.choices(list(weights), list(weights.values()))[0]
        count = self.random.randint(2, _COUNTED) if det == "num" else 0
        adjective = ""
        if self.odds(0.2) and det not in ("all",):
            adjective = self._adjective(noun.type)
        return Phrase(
            mark, noun=noun.key, det=det, plural=det in ("num", "many", "all"), count=count, adjective=adjective
        )

    def _adjective(self, kind: str) -> str:
        fitting = [
            key
            for key, types in self.words.adjective_types.items()
            if kind in types and key not in _NOT_BEFORE_NOUNS
        ]
        return self.random.choice(fitting) if fitting else ""

    def _richer(self, np: Phrase, depth: int, frame: str) -> Phrase:
        """Perhaps with a possessor or a relative clause."""
        if not np.noun or depth or np.det not in ("the", "all") or np.adjective:
            return np
        noun = self.words.nouns[np.noun]
        owned = noun.type in (
            "document",
            "plan",
            "device",
            "text",
            "money",
            "furniture",
            "motor",
            "vehicle",
            "small",
        )
        if owned and self.odds(0.12) and not np.plural:
            owner = (
                self._name()
                if self.odds(0.6)
                else self.noun(self.random.choice(self._nouns(["person"])), True, True)
            )
            return replace(np, of=replace(owner, adjective=""))
        if self.odds(0.1):
            return replace(np, relative=self._relative(np, noun, frame))
        return np

    def _relative(self, np: Phrase, noun: Noun, main: str) -> Clause | None:
        gap = "S" if noun.type == "person" else "O"
        frames = [
            frame
            for frame in self.words.frames.values()
            if frame.key != main
            and self._fits(frame, gap, noun)
            and "stative" not in frame.tags
            and (gap == "S" or self.direct(frame))
        ]
        if not frames:
            return None
        frame = self.random.choice(frames)
        tense = Tense.PAST if self.odds(0.8) else Tense.FUTURE
        roles = {gap: replace(np, relative=None)} if gap == "S" else {}
        for role, types in frame.types.items():
            if role == gap or role in roles:
                continue
            other = self.role(types, role == "S", avoid=[roles["S"].pronoun] if "S" in roles else [])
            roles[role] = replace(other, adjective="")
        if gap == "O" and not roles["S"].pronoun and not roles["S"].name and self.odds(0.5):
            roles["S"] = Phrase(roles["S"].mark, pronoun=self.random.choice(("i", "we", "they")))
        return Clause(frame.key, self.mark(), self._known_gender(frame, roles, tense), tense, gap=gap)

    def _fits(self, frame: Frame, role: str, noun: Noun) -> bool:
        if role not in frame.types:
            return False
        types = self._types(frame.types[role])
        return noun.type in types or noun.key in types

    def direct(self, frame: Frame) -> bool:
        """Whether its object is a direct one in every language."""
        cells = frame.cells
        return (
            " O" in cells["en"]
            and " O.acc" in cells["de"]
            and " O" in cells["fr"]
            and " O" in cells["es"]
            and "Oを" in cells["ja"]
            and cells["zh"].endswith(" O")
        )

    def _known_gender(self, frame: Frame, roles: dict[str, Phrase], tense: Tense) -> dict[str, Phrase]:
        """French participles after être agree, so the subject must have a gender that is known."""
        subject = roles.get("S")
        being = frame.cells["fr"].startswith(("+", "se_"))
        if (
            being
            and tense in (Tense.PAST, Tense.DONE)
            and subject
            and (subject.name or subject.pronoun in ("i", "you", "we"))
        ):
            self.values.pop(subject.mark, None)
            roles = {**roles, "S": Phrase(subject.mark, pronoun=self.random.choice(("he", "she", "they")))}
        return roles

    # Adverbials

    def adverbial(self, key: str, avoid: Sequence[str] = ()) -> Adverbial:
        template = self.words.adverbials[key]["en"]
        values: list[tuple[str, Value]] = []
        for kind in ("weekday", "date", "time", "month", "duration", "place", "room"):
            if f"{{{kind}}}" in template or f"{{{kind}:" in template:
                values.append((kind, self.sampler.value(kind)))
        phrase = None
        if "{P" in template:
            (kind,) = self.words.adverbial_types[key]
            phrase = (
                self._companion(avoid)
                if kind == "company"
                else self.noun(self.random.choice(self._nouns([kind])), True, True)
            )
        return Adverbial(self.mark(), key, phrase, tuple(values))

    def _companion(self, avoid: Sequence[str]) -> Phrase:
        if self.odds(0.4):
            return self._pronoun(False, avoid, False)
        return self._name() if self.odds(0.4) else self.noun(self.random.choice(self._nouns(["family"])))

    def _time(self, *kinds: str) -> Adverbial:
        return self.adverbial(self.random.choice([key for kind in kinds for key in self._adverbials[kind]]))

    def _with_adverbials(self, clause: Clause, frame: Frame) -> Clause:
        if any(np.relative for np in clause.roles.values()):
            return clause  # it would be unclear what the adverbial belongs to
        out: list[Adverbial] = []
        stative = "stative" in frame.tags
        changes = frame.key in ("start_event", "end_event", "take_place")
        if clause.asked != "when":
            out += self._times(clause, stative, always=changes)
        for table, share in (("places", 0.4), ("manners", 0.25), ("causes", 0.25), ("companions", 0.3)):
            fitting = [key for key, frames in self.choices[table].items() if frame.key in frames]
            if not fitting or not self.odds(share) or len(out) > 1 or clause.asked in ("where", "how", "why"):
                continue
            if table != "places" and (clause.negative or clause.tense is Tense.DONE):
                continue
            if (
                table == "manners"
                and clause.tense in (Tense.NOW, Tense.HABIT)
                and clause.modal is Modal.NONE
                and clause.mood is Mood.STATEMENT
            ):
                continue
            key = self.random.choice(fitting)
            if key == "place_office":
                key = self.random.choice(self._adverbials[key])
            subject = clause.roles.get("S")
            out.append(self.adverbial(key, [subject.pronoun] if subject else []))
        return replace(clause, adverbials=tuple(out))

    def _times(self, clause: Clause, stative: bool, always: bool) -> list[Adverbial]:
        asking = clause.mood in (Mood.IMPERATIVE, Mood.REQUEST, Mood.LETS)
        if asking or (clause.modal is not Modal.NONE and clause.tense is not Tense.PAST):
            if self.odds(0.35):
                return [
                    self._time(
                        *(("deadline",) if self.odds(0.3) and asking and not clause.negative else ("time_future",))
                    )
                ]
            return []
        match clause.tense:
            case Tense.PAST if always or self.odds(0.2 if stative else 0.6):
                return [self._time("time_past", "time_past", "time_any")]
            case Tense.FUTURE if always or self.odds(0.7):
                return [self._time("time_future", "time_future", "time_any")]
            case Tense.HABIT if not stative:
                wh = clause.mood is Mood.WH or clause.negative or always
                if self.odds(0.5) or wh:
                    return [self._time("time_habit")]
                return [self.adverbial(self.random.choice(self._adverbials["frequency"]))]
        return []

    # Clauses

    def clause(
        self,
        keys: Sequence[str],
        mood: Mood | None = None,
        tenses: dict[Tense, float] | None = None,
        modals: bool = True,
        subject: Phrase | None = None,
        plain: bool = False,
    ) -> Clause:
        """A clause with one of these frames. plain: no negation, no modal verb, one clause deep."""
        frame = self.words.frames[self.random.choice(keys)]
        stative = "stative" in frame.tags
        human = bool({"human", "anyone", "boss", "firm"} & set(frame.types["S"]))
        if mood is None:
            mood = self.random.choices(
                (Mood.STATEMENT, Mood.YES_NO, Mood.WH, Mood.IMPERATIVE, Mood.REQUEST, Mood.LETS),
                (66, 13, 9, 5, 4, 3),
            )[0]
        if mood in (Mood.IMPERATIVE, Mood.REQUEST, Mood.LETS) and (
            stative
            or not {"human", "anyone"} & set(frame.types["S"])
            or "O" not in frame.types
            or frame.key in _UNASKED
        ):
            mood = Mood.STATEMENT
        if stative and mood is Mood.WH:
            mood = Mood.YES_NO
        if tenses is None:
            tenses = {Tense.PAST: 36, Tense.FUTURE: 24, Tense.DONE: 12, Tense.NOW: 9, Tense.HABIT: 13}
        if stative:
            tenses = {Tense.HABIT: 75, Tense.PAST: 25}
        elif not human or frame.key in _MOMENTS:
            tenses = {tense: share for tense, share in tenses.items() if tense in (Tense.PAST, Tense.FUTURE)} or {
                Tense.PAST: 1
            }
        tense = self.random.choices(list(tenses), list(tenses.values()))[0]
        modal = Modal.NONE
        if mood in (Mood.IMPERATIVE, Mood.REQUEST, Mood.LETS):
            tense = Tense.FUTURE
        elif modals and human and not stative and not plain and self.odds(0.22) and frame.key not in _UNASKED:
            modal = self.random.choice((Modal.CAN, Modal.MUST, Modal.WANT, Modal.SHOULD))
            past = modal in (Modal.MUST, Modal.WANT) and mood is Mood.STATEMENT and self.odds(0.2)
            tense = Tense.PAST if past else Tense.HABIT
        if mood is Mood.WH and tense is Tense.DONE:
            tense = Tense.PAST
        asked = self._asked(frame, tense, modal) if mood is Mood.WH else ""
        if mood is Mood.WH and not asked:
            mood = Mood.YES_NO
        negative = (
            not plain
            and self.odds(0.14)
            and mood in (Mood.STATEMENT, Mood.IMPERATIVE)
            and tense is not Tense.NOW
            and (stative or tense is not Tense.HABIT or modal is not Modal.NONE)
        )
        roles = self._roles(frame, mood, asked, modal, tense, subject)
        if negative and "O" in roles and roles["O"].det in ("all", "many", "num"):
            roles["O"] = replace(roles["O"], det="the", plural=False, count=0)
        if mood in (Mood.IMPERATIVE, Mood.REQUEST, Mood.LETS) and roles["O"].det in ("many", "num"):
            roles["O"] = replace(roles["O"], det="the", plural=False, count=0)
        if "S" in roles and roles["S"].pronoun in ("i", "we") and mood in (Mood.YES_NO, Mood.WH):
            modal, tense = Modal.SHOULD if self.odds(0.5) else Modal.CAN, Tense.HABIT
        clause = Clause(
            frame.key, self.mark(), self._known_gender(frame, roles, tense), tense, negative, modal, mood, asked
        )
        return self._with_adverbials(clause, frame)

    def _asked(self, frame: Frame, tense: Tense, modal: Modal) -> str:
        choices: list[str] = []
        if tense in (Tense.PAST, Tense.FUTURE) or modal is not Modal.NONE:
            choices += ["when", "when"]
            choices += ["why"] if tense is Tense.PAST else []
            choices += ["where", "where"] if frame.key in self.choices["where"]["asked"] else []
            choices += (
                ["how", "how"] if frame.key in self.choices["how"]["asked"] and modal is not Modal.WANT else []
            )
        if (
            tense in (Tense.PAST, Tense.FUTURE)
            and {"human", "anyone"} & set(frame.types["S"])
            and modal is Modal.NONE
        ):
            choices += ["S", "S"]
        human = {"human", "anyone", "client", "family", "role"} & set(frame.types.get("O", ("human",)))
        if self.direct(frame) and not human and frame.key not in ("take_transport",):
            choices += ["O", "O"]
        return self.random.choice(choices) if choices else ""

    def _roles(
        self, frame: Frame, mood: Mood, asked: str, modal: Modal, tense: Tense, subject: Phrase | None
    ) -> dict[str, Phrase]:
        roles: dict[str, Phrase] = {}
        asks = mood in (Mood.YES_NO, Mood.WH)
        avoid: list[str] = []
        for role, types in frame.types.items():
            if role == asked:
                continue
            if role == "S":
                if mood in (Mood.IMPERATIVE, Mood.REQUEST):
                    avoid.append("you")
                    roles["S"] = Phrase(0, pronoun="you")
                    continue
                if mood is Mood.LETS:
                    avoid.append("we")
                    roles["S"] = Phrase(0, pronoun="we")
                    continue
                np = subject or self.role(types, True, asks=asks)
                if asks and np.pronoun and (modal is Modal.SHOULD or (modal is Modal.CAN and self.odds(0.5))):
                    np = replace(np, pronoun=self.random.choice(("i", "we")))
                avoid.append(np.pronoun)
                roles["S"] = self._richer(np, 0, frame.key) if not asks and subject is None else np
            else:
                fresh = role == "O" and frame.key in _FRESH
                np = self.role(types, False, fresh, avoid)
                avoid.append(np.pronoun)
                while np.noun and any(np.noun == other.noun for other in roles.values()):
                    np = self.role(types, False, avoid=avoid)
                roles[role] = self._richer(
                    np,
                    1 if asks or tense is Tense.DONE or ("S" in roles and roles["S"].relative) else 0,
                    frame.key,
                )
        return roles

    def _domain(self) -> list[str]:
        return self._frames["office" if self.odds(0.6) else "daily"]

    def _single(self) -> Utterance:
        return Utterance(self.clause(self._domain()))

    # What something is, and what there is

    def described(
        self, subject: Phrase | None = None, mood: Mood = Mood.STATEMENT, fitting: Sequence[str] = ()
    ) -> Clause:
        """The report is (too) long."""
        if subject is None:
            adjective = self.random.choice([key for key in self.words.adjectives if key not in _NOT_PREDICATED])
            adjective_types = [
                each for each in self.words.adjective_types[adjective] if each in self.words.by_type
            ]
            kind = self.random.choice(adjective_types)
            if kind in ("person", "family") and self.odds(0.3):
                subject = Phrase(self.mark(), pronoun=self.random.choice(("he", "she", "they")))
            else:
                subject = self.noun(self.random.choice(self._nouns([kind])), True, True)
                subject = replace(
                    subject,
                    adjective="",
                    plural=False,
                    count=0,
                    det=subject.det
                    if kind == "family"
                    else "the"
                    if kind == "drink"
                    else subject.det
                    if subject.det == "bare"
                    else self.random.choice(_SPECIFIC),
                )
        else:
            kind = self.words.nouns[subject.noun].type if subject.noun else "family"
            adjective = self.random.choice(fitting)
        degree = ""
        than = None
        comparable = self._comparable(adjective) if adjective else False
        if comparable and self.odds(0.55):
            degree = self.random.choices(("very", "too", "more"), (45, 20, 35))[0]
            if degree == "too" and adjective not in self.choices["polarity"]["bad"]:
                degree = "very"
            if degree == "more":
                than = self._other(subject, kind)
                degree = "more" if than else "very"
        tense = self.random.choices((Tense.HABIT, Tense.PAST, Tense.FUTURE), (74, 20, 0 if degree else 6))[0]
        negative = not degree and mood is Mood.STATEMENT and self.odds(0.18)
        predicate = Predicate(self.mark(), adjective=adjective, degree=degree, than=than)
        return Clause("be", self.mark(), {"S": subject}, tense, negative, mood=mood, predicate=predicate)

    def _comparable(self, adjective: str) -> bool:
        cells = self.words.adjectives[adjective]
        return (
            adjective not in _NO_DEGREE and not cells["zh"].startswith("=") and cells["ja"].endswith(("い", "な"))
        )

    def _other(self, subject: Phrase, kind: str) -> Phrase | None:
        nouns = [noun for noun in self._nouns([kind]) if noun.key != subject.noun]
        if not nouns or not subject.noun:
            return None
        other = self.noun(self.random.choice(nouns), True, True)
        return replace(
            other,
            adjective="",
            det=other.det if kind == "family" or other.det == "bare" else self.random.choice(("the", "this")),
        )

    def _described(self) -> Utterance:
        mood = Mood.YES_NO if self.odds(0.18) else Mood.STATEMENT
        draw = self.random.random()
        if draw < 0.6:
            return Utterance(self.described(mood=mood))
        if draw < 0.7:
            male = self.words.nouns[f"family:{self.random.choice(_MALE)}"]
            subject = Phrase(self.mark(), pronoun="he") if self.odds(0.3) else self.noun(male)
            job = Phrase(self.mark(), noun=self.random.choice(self._nouns(["person"])).key, det="a")
            if job.noun in _NOT_JOBS:
                job = replace(job, noun="person:teacher")
            tense = Tense.PAST if self.odds(0.2) else Tense.HABIT
            return Utterance(
                Clause(
                    "be",
                    self.mark(),
                    {"S": subject},
                    tense,
                    mood=mood,
                    predicate=Predicate(self.mark(), phrase=job),
                )
            )
        kinds = self.random.choice(
            (
                ("small", "place_thing"),
                ("text", "place_thing"),
                ("person", "place_office"),
                ("family", "place_daily"),
                ("dishes", "place_thing"),
                ("document", "place_thing"),
                ("supplies", "place_thing"),
            )
        )
        noun = self.random.choice(self._nouns([kinds[0]]))
        keys = [
            key for key in self._adverbials[kinds[1]] if key not in ("behind the house", "in front of the office")
        ]
        place = Predicate(self.mark(), place=self.adverbial(self.random.choice(keys)))
        if kinds[1] == "place_thing" and self.odds(0.4):
            count = self.random.randint(2, _COUNTED) if self.odds(0.4) else 0
            there = Phrase(
                self.mark(), noun=noun.key, det="num" if count else "a", plural=bool(count), count=count
            )
            return Utterance(Clause("exist", self.mark(), {"S": there}, mood=mood, predicate=place))
        subject = replace(self.noun(noun, True, True), adjective="")
        tense = Tense.PAST if self.odds(0.25) else Tense.HABIT
        return Utterance(
            Clause(
                "be",
                self.mark(),
                {"S": subject},
                tense,
                self.odds(0.12) and mood is Mood.STATEMENT,
                mood=mood,
                predicate=place,
            )
        )

    # Two clauses

    def _linked(self) -> Utterance:
        """If …, when …, and, but, so: an event and what is done about it."""
        domain = self.random.choice(("office", "office", "good", "daily"))
        follow = self.choices["follow"]
        events, reactions = follow[f"{domain}_events"], follow[f"{domain}_reactions"]
        link = self.random.choice(("if", "if", "when", "when", "so", "so", "but", "and"))
        if link in ("if", "when"):
            event = self.clause(events, Mood.STATEMENT, {Tense.HABIT: 1}, plain=True)
            if link == "when" and self.odds(0.5):
                event = replace(event, tense=Tense.PAST)
            event = replace(
                event,
                tense=event.tense if event.tense is Tense.PAST and link == "when" else Tense.HABIT,
                adverbials=(),
            )
            event = replace(
                event, roles=self._known_gender(self.words.frames[event.frame], event.roles, event.tense)
            )
            if event.tense is Tense.PAST:
                reaction = self.clause(reactions, Mood.STATEMENT, {Tense.PAST: 1}, modals=False, plain=True)
            else:
                mood = Mood.STATEMENT if self.odds(0.7) else Mood.IMPERATIVE
                reaction = self.clause(reactions, mood, {Tense.FUTURE: 1}, plain=self.odds(0.6))
                if reaction.modal is not Modal.NONE:
                    reaction = replace(reaction, tense=Tense.HABIT)
            return Utterance(replace(reaction, adverbials=()), link, event)
        shared = (
            Phrase(self.mark(), pronoun=self.random.choice(("i", "we", "he", "she", "they")))
            if link in ("but", "and")
            else None
        )
        if shared is not None:
            events = [key for key in events if {"people"} & set(self._types(self.words.frames[key].types["S"]))]
        first = self.clause(events, Mood.STATEMENT, {Tense.PAST: 1}, modals=False, plain=True, subject=shared)
        if link == "so":
            second = self.clause(reactions, Mood.STATEMENT, {Tense.FUTURE: 1})
            second = replace(
                second, negative=False, modal=Modal.MUST if second.modal is not Modal.NONE else Modal.NONE
            )
        elif link == "but":
            second = self.clause(
                reactions, Mood.STATEMENT, {Tense.DONE: 1}, modals=False, plain=True, subject=shared
            )
            second = replace(second, negative=True)
        else:
            second = self.clause(
                reactions, Mood.STATEMENT, {Tense.PAST: 1}, modals=False, plain=True, subject=shared
            )
        return Utterance(first, link, replace(second, adverbials=()))

    def _reasoned(self) -> Utterance:
        """Because, although: with what its object or its subject is like."""
        for _ in range(40):
            marks, values = self._mark, dict(self.values)
            first = self.clause(self._domain(), Mood.STATEMENT, {Tense.PAST: 6, Tense.FUTURE: 4, Tense.DONE: 1})
            thing = first.roles.get("O")
            person = first.roles["S"]
            about = None
            if (
                thing is not None
                and thing.noun
                and not thing.plural
                and thing.det != "bare"
                and self.words.nouns[thing.noun].type not in ("person", "family", "group")
            ):
                if first.frame not in _UNASKED:
                    about = Phrase(self.mark(), pronoun="it", noun=thing.noun, refers="O")
            elif person.pronoun in ("he", "she", "they") or (
                person.noun and self.words.nouns[person.noun].type in ("person", "family")
            ):
                about = Phrase(
                    self.mark(),
                    pronoun=person.pronoun if person.pronoun else "they" if person.plural else "he",
                    refers="S",
                )
                if person.noun and self.words.nouns[person.noun].genders["es"] == "f":
                    about = replace(about, pronoun="she")
            stative = "stative" in self.words.frames[first.frame].tags
            if about is None or thing is None or thing.adjective or stative:
                self._mark, self.values = marks, values
                continue
            link = "because" if self.odds(0.75) else "although"
            fitting = self._reasons(first, about, link)
            if not fitting:
                self._mark, self.values = marks, values
                continue
            second = replace(self.described(about, fitting=fitting), negative=False)
            second = replace(second, tense=Tense.PAST if first.tense is Tense.PAST else Tense.HABIT)
            assert second.predicate is not None  # noqa: S101
            degree = second.predicate.degree
            if degree == "more" or (degree == "too" and link == "although"):
                degree = "very"
            second = replace(second, predicate=replace(second.predicate, degree=degree, than=None))
            return Utterance(replace(first, adverbials=first.adverbials[:1]), link, second)
        return self._single()

    def _reasons(self, first: Clause, about: Phrase, link: str) -> list[str]:
        """The adjectives that speak for what was done, or against it (although)."""
        polarity = self.choices["polarity"]
        kind = self.words.nouns[about.noun].type if about.noun else "family"
        against = (first.frame in polarity["against"]) != first.negative
        if not about.noun and not against:
            return []
        wanted = "bad" if against == (link == "because") else "good"
        if kind == "problem":
            wanted = "problem" if link == "because" and not against else ""
        return [
            key
            for key in polarity.get(wanted, [])
            if kind in self.words.adjective_types[key] and not self.words.adjectives[key]["zh"].startswith("=")
        ]

    def _reported(self) -> Utterance:
        """I think that …, Anna said that …, I do not know whether …"""
        link = self.random.choice(("think", "say", "say", "know", "hope", "whether", "whether"))
        speaker = (
            Phrase(self.mark(), pronoun=self.random.choice(("i", "i", "we", "he", "she")))
            if self.odds(0.75) or link == "whether"
            else self._name()
        )
        if link == "say" and speaker.pronoun in ("i", "we"):
            speaker = self._name()
        if link == "think" and self.odds(0.5):
            return Utterance(replace(self.described(), tense=Tense.HABIT), link, speaker=speaker)
        tenses = {Tense.FUTURE: 1.0} if link == "hope" else {Tense.PAST: 1.0, Tense.FUTURE: 1.0, Tense.DONE: 0.5}
        mood = Mood.STATEMENT
        if link == "whether":
            mood = Mood.WH if self.odds(0.5) else Mood.YES_NO
        inner = self.clause(self._domain(), mood, tenses, modals=link in ("think", "say"))
        same = inner.roles.get("S")
        if same is not None and same.pronoun:
            others = [
                each
                for each in ("he", "she", "they", "we")
                if each != speaker.pronoun and not any(each == np.pronoun for np in inner.roles.values())
            ]
            inner = replace(
                inner, roles={**inner.roles, "S": replace(same, pronoun=self.random.choice(others or ["they"]))}
            )
            inner = replace(
                inner, roles=self._known_gender(self.words.frames[inner.frame], inner.roles, inner.tense)
            )
        if "stative" in self.words.frames[inner.frame].tags and link in ("hope", "whether"):
            return self._single()
        if link == "whether":
            inner = replace(
                inner, modal=Modal.NONE, tense=Tense.FUTURE if inner.modal is not Modal.NONE else inner.tense
            )
        return Utterance(inner, link, speaker=speaker)


_UNASKED = frozenset(
    [
        "lose",
        "lose_doc",
        "break_thing",
        "forget",
        "miss_transport",
        "miss_event",
        "cause",
        "resign",
        "crash",
        "receive",
        "get_from",
        "hurt",
        "find_problem",
        "find",
        "cry",
        "laugh",
        "arrive_late",
        "remember_person",
    ]
)
"""What nobody asks, wants or plans to do."""
_FRESH = frozenset(
    [
        "write",
        "buy",
        "order",
        "need",
        "prepare",
        "book",
        "develop",
        "receive",
        "have",
        "look_for",
        "plan",
        "organize",
        "cook",
        "bake",
        "eat",
        "suggest",
        "cause",
        "get_from",
        "find",
        "find_problem",
        "solve",
        "have_meeting",
        "drink",
        "rent",
        "wear",
        "give",
        "bring",
        "plant",
        "build",
        "sing",
        "read_book",
        "watch",
        "read",
        "tell",
        "negotiate",
        "send",
        "sign",
        "lose",
        "forget",
        "hire",
    ]
)
"""What one can do to something not spoken of before."""
_MOMENTS = frozenset(
    [
        "lose",
        "lose_doc",
        "break_thing",
        "forget",
        "miss_transport",
        "miss_event",
        "find",
        "find_problem",
        "receive",
        "get_from",
        "resign",
        "marry",
        "arrive_late",
        "accept",
        "reject",
        "approve",
    ]
)
"""What has no duration and is no habit."""
_NOT_JOBS = frozenset(
    f"person:{each}"
    for each in [
        "customer",
        "colleague",
        "guest",
        "neighbour",
        "new-hire",
        "partner",
        "boss",
        "employee",
        "expert",
    ]
) | {"person:new hire", "person:nurse", "person:buyer"}
