"""Draws noun phrases: who and what can play a role.

Deterministic for a sampler. Knows what goes with what (words/*.toml, choices.toml), not how any language says it.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from demo_model.clauses.lexicon import WORDS, Frame, Noun, load_words
from demo_model.clauses.syntax import Clause, Phrase, Tense
from demo_model.grammar import Value
from demo_model.lexicon import load_lexicon
from demo_model.patterns import in_part
from demo_model.sampling import Sampler

_COMMON = 0.86
"""Of the names that nobody has, how many are drawn again: so that each tenth is one."""
_COUNTED = 5
_PEOPLE = ("person", "profession")
SPOUSES = ("family:wife", "family:husband")
PEERS = tuple(
    f"family:{each}" for each in ("cousin", "best friend", "friend", "aunt", "uncle", "sister", "brother")
)
"""Whom somebody of one's family has to do with."""
_UNOWNED = frozenset(
    [
        "wild",
        "nature",
        "sight",
        "amenity",
        "body",
        "fruit",
        "vegetable",
        "medicine",
        "transport",
        "remark",
        "term",
        "problem",
        "incident",
        "opening",
    ]
)
ONES_OWN_PEOPLE = ("person:colleague", "person:boss", "person:assistant", "person:team leader", "person:intern")
"""People at work that are mostly somebody's."""
_HIRED = ("person:assistant", "person:intern")
"""Those of them that one hires."""
_COUNTABLE = frozenset(
    [
        *("document", "device", "supplies", "furniture"),
        *("food", "fruit", "vegetable", "sweet", "clothes", "dishes", "text", "gift", "plant"),
    ]
)
"""Types of which one says how many."""


NAMED_ONLY = ("family:baby", "family:child")
"""Nouns that play no role for their type alone: one does not call one's baby."""


@cache
def _known_names() -> frozenset[str]:
    lexicon = load_lexicon()
    return frozenset(part for name in (*lexicon.names, *lexicon.surnames) for part in name.split())


@cache
def _toml(path: Path) -> dict[str, dict[str, list[str]]]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def classes() -> dict[str, list[str]]:
    """What a role can be, where it is not a type of nouns."""
    return _toml(WORDS / "classes.toml")["classes"]


ALWAYS_PLURAL = tuple(classes()["plural"])
"""Nouns of which one speaks in the plural: one's parents, the shoes."""


def expanded(kinds: Sequence[str]) -> list[str]:
    """Types and single nouns, with the members of a class in its place."""
    return [each for kind in kinds for each in _members(kind)]


@cache
def _members(kind: str) -> list[str]:
    members = classes().get(kind, [kind])
    return members if members == [kind] else expanded(members)


def choices() -> dict[str, dict[str, list[str]]]:
    """What goes with which verbs."""
    paths = sorted(Path(__file__).parent.glob("choices*.toml"))
    return {table: rows for path in paths for table, rows in _toml(path).items()}


@cache
def _nouns_of(types: tuple[str, ...], part: float) -> list[Noun]:
    words = load_words()
    types = tuple(expanded(types))
    named = [key for each in types for key in ([each] if ":" in each else words.by_type.get(each, ()))]
    named = [key for key in named if key not in NAMED_ONLY or key in types]
    used = [key for key in named if in_part(part, "noun", words.nouns[key].cells["en"])]
    # Where a role would have nobody, its first two nouns are used.
    return [words.nouns[key] for key in (used if len(used) > 1 else named[:2])]


@cache
def said_of(noun: str) -> list[str]:
    """The adjectives that fit a noun."""
    words = load_words()
    known = {noun, words.nouns[noun].type}
    return [key for key, types in words.adjective_types.items() if known & set(expanded(types))]


@cache
def _adjectives_of(noun: str, part: float) -> list[str]:
    """What stands before a noun because it tells which one is meant."""
    telling = choices()["adjectives"]["before_nouns"]
    return [key for key in said_of(noun) if key in telling and in_part(part, "adjective", key)]


@cache
def _predicated(part: float) -> list[str]:
    """What something can be."""
    never = choices()["adjectives"]["not_predicated"]
    return [key for key in load_words().adjectives if key not in never and in_part(part, "adjective", key)]


@cache
def _frames(part: float) -> dict[str, list[str]]:
    """Where one speaks → what can happen there."""
    alone = [each for each in load_words().frames.values() if each.key not in choices()["verbs"]["linked"]]
    used = [frame for frame in alone if in_part(part, "frame", frame.key)]
    return {domain: [frame.key for frame in used if domain in frame.tags] for domain in ("office", "daily")}


@cache
def _adverbials() -> dict[str, list[str]]:
    """Kind → the adverbials that are of it."""
    found: dict[str, list[str]] = {}
    for key, kind in load_words().adverbial_kinds.items():
        found.setdefault(kind, []).append(key)
    return found


class PhraseComposer:
    """Noun phrases, names and pronouns, each with a mark of its own."""

    def __init__(self, sampler: Sampler, part: float = 1.0) -> None:
        self.sampler, self.part = sampler, part
        self.words = load_words()
        self.classes = classes()
        self.choices = choices()
        self.predicated = _predicated(part)
        self.values: dict[int, tuple[str, Value]] = {}
        self._mark = 0
        self._tells: dict[tuple[str, str], list[Frame]] = {}
        self._frames = _frames(part)
        self._adverbials = _adverbials()

    def _domain(self) -> list[str]:
        return self._frames["office" if self.odds(0.7) else "daily"]

    @property
    def random(self) -> random.Random:
        return self.sampler.random

    def mark(self) -> int:
        self._mark += 1
        return self._mark

    def odds(self, share: float) -> bool:
        return self.random.random() < share

    def actors(self, role: Sequence[str]) -> Sequence[str]:
        """Those who do it, where it is nobody's job."""
        return ("people", "actor") if tuple(role) == ("human",) else role

    def _types(self, role: Sequence[str]) -> list[str]:
        return expanded(role)

    def _nouns(self, types: Sequence[str]) -> list[Noun]:
        """Every noun of these types, which may be names of types or keys of single nouns."""
        return _nouns_of(tuple(types), self.part)

    def role(
        self,
        role: Sequence[str],
        subject: bool = False,
        fresh: bool = False,
        avoid: Sequence[str] = (),
        asks: bool = False,
        plain: bool = False,
    ) -> Phrase:
        """Somebody or something that can play a role with these types."""
        types = self._types(role)
        if "weather" in types:
            return Phrase(self.mark(), pronoun="weather")
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
        return self.noun(self.random.choice(nouns), subject, plain, fresh)

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
        while not _known_names().issuperset(name.split()) and self.sampler.known_names and self.odds(_COMMON):
            name = self.sampler.name()  # most are common ones
        self.values[mark] = ("name", name)
        return Phrase(mark, name=name)

    def noun(self, noun: Noun, subject: bool = False, plain: bool = False, fresh: bool = False) -> Phrase:
        mark = self.mark()
        if noun.type == "city":
            return Phrase(mark, noun=noun.key, det="name")
        if noun.type in ("family", "feast"):
            married = noun.key in SPOUSES
            det = self.random.choices(("i", "he", "she"), (10, 1, 1))[0]
            if married and det != "i":
                det = "he" if noun.key == "family:wife" else "she"
            return Phrase(mark, noun=noun.key, det=det, plural=noun.key in ALWAYS_PLURAL)
        if noun.mass:
            return Phrase(mark, noun=noun.key, det="bare")
        weights = {
            "the": 8 if fresh else 46,
            "a": 0 if subject else 90 if fresh else 0,
            "this": 2,
            "we": 3,
            "i": 1,
            "num": 2,
            "many": 0,
            "all": 0.3,
        }
        if plain or noun.type not in _COUNTABLE or (subject and noun.type in _PEOPLE):
            weights |= {"num": 0, "many": 0, "all": 0, "i": 0}
        if noun.type in _PEOPLE:
            weights |= {
                "this": 0,
                "a": 4 if fresh else 0,
                "we": 2 if noun.type == "person" and noun.key != "person:applicant" else 0,
            }
        if (
            noun.type in ("food", "gift", "plant", "small", "clothes", "animal", "text", "meal", "sweet")
            and not subject
        ):
            weights |= {"we": 0, "i": 8, "all": 0}
        if noun.type in ("clothes", "small"):
            weights |= {"we": 0}
        if noun.type in _UNOWNED:
            weights |= {"we": 0, "i": 0}
        if fresh:
            weights |= {"we": 0, "i": 0}
        if noun.key in ALWAYS_PLURAL or noun.key not in self.classes["counted"]:
            weights |= {"num": 0}
        if noun.type == "position" and not fresh:
            weights = {"the": 1}
        if noun.key == "document:meeting minutes":  # which there are one of
            weights |= {"a": 0}
        if noun.type == "body":
            weights = {"i": 3, "he": 1, "she": 1}
        if noun.type == "money":
            weights = {"the": 6, "this": 1}
        if noun.key in ONES_OWN_PEOPLE and not (fresh and noun.key in _HIRED):
            weights = {"the": 1, "i": 10, "we": 3}
        if noun.key in ("group:management", "code:source code"):
            weights = {"the": 1}
        det = self.random.choices(list(weights), list(weights.values()))[0]
        count = self.random.randint(2, _COUNTED) if det == "num" else 0
        several = (noun.key in ALWAYS_PLURAL and not count) or (
            noun.type in ("fruit", "vegetable") and not subject and det in ("the", "this", "i", "a")
        )
        if several:
            det = "the" if det == "a" else det
        adjective = ""
        if det != "all" and self.odds(0.01 if noun.type in _PEOPLE else 0.06):
            adjective = self._adjective(noun.key)
        return Phrase(
            mark,
            noun=noun.key,
            det=det,
            plural=several or det in ("num", "many", "all"),
            count=count,
            adjective=adjective,
        )

    def _adjective(self, noun: str) -> str:
        fitting = _adjectives_of(noun, self.part)
        return self.random.choice(fitting) if fitting else ""

    def _richer(self, np: Phrase, depth: int, frame: str, past: bool) -> Phrase:
        """Perhaps with a possessor or a relative clause. past: whether the clause is about the past."""
        if not np.noun or depth or np.det not in ("the", "all") or np.adjective:
            return np
        noun = self.words.nouns[np.noun]
        owned = noun.key in expanded(["authored"]) or noun.type in (
            "document",
            "device",
            "text",
            "furniture",
            "motor",
            "vehicle",
            "small",
        )
        if owned and self.odds(0.12) and not np.plural:
            return replace(np, of=self._name())
        if self.odds(0.03 if noun.type in _PEOPLE else 0.07):
            return replace(np, relative=self._relative(np, noun, frame, past))
        return np

    def _relative(self, np: Phrase, noun: Noun, main: str, past: bool) -> Clause | None:
        """What tells which is meant: that they mentioned, or had mentioned before something else was done."""
        gap = "S" if noun.type in ("person", "profession") else "O"
        frames = [frame for frame in self._relatives(gap, noun.key) if frame.key != main]
        if not frames:
            return None
        frame = self.random.choice(frames)
        tense = Tense.PRIOR if past and self.odds(0.5) else Tense.PAST
        roles = {gap: replace(np, relative=None)} if gap == "S" else {}
        for role, types in frame.types.items():
            if role == gap or role in roles:
                continue
            other = self.role(types, role == "S", avoid=[roles["S"].pronoun] if "S" in roles else [])
            roles[role] = replace(other, adjective="")
        for role, who in (("S", ("i", "we", "they")), ("O", ("i", "we"))):  # somebody who is known
            said = roles.get(role)
            unknown = said is not None and role != gap and not (said.pronoun or said.name)
            if said is not None and unknown and "people" in self._types(frame.types[role]):
                taken = {np.pronoun for np in roles.values()}
                taken |= {"i", "we"} if {"i", "we"} & taken else set()  # not "that I had shown me"
                others = [each for each in who if each not in taken] or ["they"]
                roles[role] = Phrase(said.mark, pronoun=self.random.choice(others))
        return Clause(frame.key, self.mark(), self._known_gender(frame, roles, tense), tense, gap=gap)

    def _relatives(self, gap: str, noun: str) -> list[Frame]:
        """The frames that say which is meant: "the customer who called", "the book that I bought"."""
        if (gap, noun) not in self._tells:
            telling = self.choices["relatives"]["who" if gap == "S" else "that"]
            frames = [self.words.frames[key] for key in telling]
            self._tells[gap, noun] = [each for each in frames if self._fits(each, gap, self.words.nouns[noun])]
        return self._tells[gap, noun]

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

    def _kin(self, np: Phrase, subject: Phrase | None, types: Sequence[str]) -> Phrase:
        """Not "my aunt … my grandson"."""
        if subject is None or not np.noun or self.words.nouns[np.noun].type != "family":
            return np
        if subject.noun and self.words.nouns[subject.noun].type == "family" and "family" in types:
            others = [each for each in PEERS if each != subject.noun]
            return replace(np, noun=self.random.choice(others), plural=False)
        return replace(np, noun="family:sister") if np.noun in SPOUSES else np

    def _known_gender(self, frame: Frame, roles: dict[str, Phrase], tense: Tense) -> dict[str, Phrase]:
        """French participles after être agree, so the subject must have a gender that is known."""
        subject = roles.get("S")
        being = frame.cells["fr"].startswith(("+", "se_"))
        if (
            being
            and tense in (Tense.PAST, Tense.DONE, Tense.PRIOR)
            and subject
            and (subject.name or subject.pronoun in ("i", "you", "we"))
        ):
            self.values.pop(subject.mark, None)
            roles = {**roles, "S": Phrase(subject.mark, pronoun=self.random.choice(("he", "she", "they")))}
        return roles
