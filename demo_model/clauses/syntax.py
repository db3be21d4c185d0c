"""The abstract sentence: what is said, independent of any language. Values only; no words, no rules."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from demo_model.grammar import Value


class Tense(Enum):
    HABIT = "habit"
    """Present: a state, or what happens again and again."""
    NOW = "now"
    """Happening at the moment."""
    PAST = "past"
    PRIOR = "prior"
    """Over when something else was done."""
    DONE = "done"
    """Already done; negated: not yet done."""
    FUTURE = "future"
    PLANNED = "planned"
    """Settled for a time that is named: "I'm meeting her tomorrow"."""
    ONGOING = "ongoing"
    """Begun some time ago and not over: "she has been waiting for an hour"."""


class Modal(Enum):
    NONE = ""
    CAN = "can"
    MUST = "must"
    """Negated: does not have to."""
    WANT = "want"
    SHOULD = "should"
    MIGHT = "might"


class Mood(Enum):
    STATEMENT = "statement"
    YES_NO = "yes_no"
    WH = "wh"
    IMPERATIVE = "imperative"
    """ "Please …", negated: "Please do not …"."""
    REQUEST = "request"
    """ "Could you …?" """
    LETS = "lets"


PERSONS = ("i", "we", "you", "he", "she", "they")
ASKED_FRAMES = {"cost": "amount", "age": "age", "whose_is": "owner", "take_time": "how_long", "where_is": "place"}
"""Frame that only asks → what it asks for: how much it costs, how old she is, whose it is, where it is."""
FIXED_FRAMES = frozenset([*ASKED_FRAMES, "be", "exist", "depend"])
"""Those that no other can stand for."""
PURPOSES = ("to", "so that")
""" "She called to confirm the date": of the same subject; "I sent it so that he could check it": of another."""
ANSWERS = ("yes", "no", "not_yet", "too", "neither")
""" "Yes, we did." "No, she hasn't." "No, not yet." "So do I." "Neither do we." """


@dataclass(frozen=True)
class Phrase:
    """A noun phrase. `noun` is a key of the lexicon, `pronoun` one of PERSONS, "that" or "who", `name` a person's
    name, `members` two or three phrases that play one role together.

    "it" stands for the thing `noun`, "weather" for the "it" of "it rains".
    refers: in a second clause, the role of the first clause that it repeats.

    det: the, a, this, bare, many, all, num (with `count`), a pronoun as possessor (my = "i"), or one that asks:
    which, how_many, how_much, what_kind, whose.
    """

    mark: int
    noun: str = ""
    pronoun: str = ""
    name: str = ""
    det: str = ""
    plural: bool = False
    count: int = 0
    adjective: str = ""
    refers: str = ""
    of: Phrase | None = None
    """The possessor: a name or a noun phrase."""
    relative: Clause | None = None
    """A clause whose role `gap` this phrase plays."""
    members: tuple[Phrase, ...] = ()
    link: str = ""
    """What joins the members: and, or, both, either, or etc ("and so on")."""

    @property
    def person(self) -> str:
        """1s, 1p, 2 (polite), 3s or 3p. After "or" it is that of the last member."""
        if self.members:
            persons = [each.person for each in self.members]
            return "1p" if {"1s", "1p"} & set(persons) else "3p" if self.plural else persons[-1]
        if self.pronoun in PERSONS:
            return {"i": "1s", "we": "1p", "you": "2", "they": "3p"}.get(self.pronoun, "3s")
        return "3p" if self.plural else "3s"

    @property
    def taken_for(self) -> tuple[str, ...]:
        """Whether somebody who is named is taken for a woman, a man or either: Anna is she, Kim he."""
        last = self.name.split()[0][-1]
        return ("she",) if last == "a" else ("he", "she") if last in "eiy" else ("he",)


@dataclass(frozen=True)
class Adverbial:
    """A time, a place or a manner: `key` in the lexicon, with what fills it."""

    mark: int
    key: str
    phrase: Phrase | None = None
    values: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True)
class Predicate:
    """What a subject is: an adjective (with degree), a noun phrase, or a place."""

    mark: int
    adjective: str = ""
    degree: str = ""
    """"", very, too, more (needs `than`)."""
    than: Phrase | None = None
    phrase: Phrase | None = None
    place: Adverbial | None = None


@dataclass(frozen=True)
class Clause:
    """One frame with its arguments. `frame` is a key of the lexicon, or "be" (with `predicate`) or "exist"."""

    frame: str
    mark: int
    roles: dict[str, Phrase] = field(default_factory=dict)
    """S, O, T → phrase. A role that is asked for or relativised is left out."""
    tense: Tense = Tense.HABIT
    negative: bool = False
    modal: Modal = Modal.NONE
    mood: Mood = Mood.STATEMENT
    asked: str = ""
    """In a WH question: a role (what fills it asks: "which report", "who"; left out, S asks who and O asks what),
    or when, where, why, how, how_long, how_often, amount, age, owner, place."""
    gap: str = ""
    """In a relative clause: S or O."""
    embedded: bool = False
    """Part of another clause, so nothing is put before its subject."""
    adverbials: tuple[Adverbial, ...] = ()
    predicate: Predicate | None = None

    @property
    def person(self) -> str:
        return self.roles["S"].person if "S" in self.roles else "3s"

    @property
    def wanted(self) -> Phrase | None:
        """The phrase that asks: "which report"."""
        return self.roles.get(self.asked)

    @property
    def owned(self) -> Clause:
        """As a relative clause of what it asks for: "(whose is the report) that she read"."""
        roles = {role: np for role, np in self.roles.items() if role != self.asked}
        return replace(self, roles=roles, gap=self.asked, asked="", mood=Mood.STATEMENT)


@dataclass(frozen=True)
class Utterance:
    """A sentence: one clause, or two with a link; or a question or a statement and what somebody answers.

    link: a connective (because, if, when, although, before, after, and, but, so, to, so that), a matrix verb
    (think, know, hope, say, whether) whose subject is `speaker`, or how `second` answers in short: one of ANSWERS.
    "that's why" begins a sentence of its own: `second`, or `first` if what it follows from was said before.
    """

    first: Clause
    link: str = ""
    second: Clause | None = None
    speaker: Phrase | None = None
    opener: str = ""
    """What is said before: a key of the openers (yes, by the way …)."""
    answer: str = ""
    """What is said after a question: a key of the openers [answer] (I think so …)."""
    values: dict[int, tuple[str, Value]] = field(default_factory=dict)
    """Mark → (kind, value) of what is copied or counted; other marks are phrases."""

    @property
    def early(self) -> bool:
        """Whether "before …" or "after …" begins the sentence."""
        return self.first.mood is Mood.STATEMENT and self.first.mark % (2 if self.link == "after" else 4) == 0
