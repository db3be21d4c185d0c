"""The abstract sentence: what is said, independent of any language. Values only; no words, no rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from demo_model.grammar import Value


class Tense(Enum):
    HABIT = "habit"
    """Present: a state, or what happens again and again."""
    NOW = "now"
    """Happening at the moment."""
    PAST = "past"
    DONE = "done"
    """Already done; negated: not yet done."""
    FUTURE = "future"


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


@dataclass(frozen=True)
class Phrase:
    """A noun phrase. `noun` is a key of the lexicon, `pronoun` one of PERSONS or "that", `name` a person's name.

    "it" stands for the thing `noun`, "weather" for the "it" of "it rains".
    refers: in a second clause, the role of the first clause that it repeats.

    det: the, a, this, bare, many, all, num (with `count`), or a pronoun as possessor (my = "i").
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

    @property
    def person(self) -> str:
        """1s, 1p, 2 (polite), 3s or 3p."""
        if self.pronoun in PERSONS:
            return {"i": "1s", "we": "1p", "you": "2", "they": "3p"}.get(self.pronoun, "3s")
        return "3p" if self.plural else "3s"


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
    """In a WH question: S, O (a thing), whom (a person), when, where, why or how."""
    gap: str = ""
    """In a relative clause: S or O."""
    embedded: bool = False
    """Part of another clause, so nothing is put before its subject."""
    adverbials: tuple[Adverbial, ...] = ()
    predicate: Predicate | None = None

    @property
    def person(self) -> str:
        return self.roles["S"].person if "S" in self.roles else "3s"


@dataclass(frozen=True)
class Utterance:
    """A sentence: one clause, or two with a link.

    link: a connective (because, if, when, although, and, but, so), or a matrix verb (think, know, hope, say,
    whether) whose subject is `speaker`.
    """

    first: Clause
    link: str = ""
    second: Clause | None = None
    speaker: Phrase | None = None
    opener: str = ""
    """What is said before: a key of the openers (yes, by the way …)."""
    values: dict[int, tuple[str, Value]] = field(default_factory=dict)
    """Mark → (kind, value) of what is copied or counted; other marks are phrases."""
