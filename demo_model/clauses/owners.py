"""Decides whose the people and things of a sentence are: "she called her mother", "they lost their job".

Phrases are drawn one by one, with an owner or without; what a sentence makes of it, `choices_owners.toml` says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from demo_model.clauses.compose_phrases import ONES_OWN_PEOPLE, SPOUSES, choices, classes
from demo_model.clauses.lexicon import load_words
from demo_model.clauses.syntax import ANSWERS, PERSONS, Clause, Mood, Phrase, Utterance

_DRAWN = {
    "mine": ("i", "we"),
    "my": ("i",),
    "our": ("we",),
    "theirs": ("he", "she", "they"),
    "owned": PERSONS,
    "known": ("the", "a", "this"),
}
_WHO = {"someone": PERSONS, "third": ("he", "she", "they"), "several": ("we", "they")}
_VERBS = ("own", "disposed", "told", "others")
FACTS = frozenset(
    [
        *(*_DRAWN, *_WHO, *_VERBS, *PERSONS, "one", "spouse", "named", "kinsman", "ours", "joined"),
        *("asked", "how_long", "linked", "reported", "alike", "company", "us", "always"),
    ]
)
"""The conditions of a row, beside the verbs."""
OWNERS = frozenset([*PERSONS, "the", "doer", "kinsman", "speaker", "another"])
KINDS = frozenset(["kin", "colleague", "feast", "position", "small", "clothes", "body", "scheme", "thing"])
"""What has rows of its own."""


@dataclass(frozen=True)
class _Row:
    conditions: frozenset[str]
    owner: str


@cache
def rows(table: str, kind: str) -> tuple[_Row, ...]:
    """The rows of a kind of noun in their order."""
    told = choices()[table]
    own = () if kind == "thing" else told.get(kind, ())
    said = [*own, *(() if kind in ("kin", "feast") else told["thing"])]
    parts = (each.partition(": ") for each in said)
    return tuple(_Row(frozenset(conditions.split()), owner) for conditions, _, owner in parts)


@cache
def _kind(noun: str) -> str:
    of_type = load_words().nouns[noun].type
    if noun in ONES_OWN_PEOPLE:
        return "colleague"
    if of_type == "plan" and noun not in classes()["authored"]:
        return "scheme"
    named = {"family": "kin", "supplies": "small"}.get(of_type, of_type)
    return named if named in KINDS else "thing"


@cache
def _of_verb(frame: str) -> frozenset[str]:
    verbs = choices()["verbs"]
    return frozenset([frame, *(table for table in _VERBS if frame in verbs[table])])


@cache
def _marked() -> frozenset[str]:
    """The verbs that give an owner even to what has none: one loses one's own key."""
    words = {
        word
        for kind in KINDS
        for row in rows("whose", kind)
        if "known" in row.conditions
        for word in row.conditions
    }
    return frozenset(frame for word in words for frame in choices()["verbs"].get(word, [word]))


def _concerned(np: Phrase | None) -> bool:
    """Whether anything of it can be somebody's."""
    return np is not None and bool(np.det in PERSONS or np.members or np.relative or np.of)


def _doer(subject: Phrase | None) -> str:
    """Who acts, as a pronoun, if one knows which."""
    if subject is None or subject.pronoun or subject.members or not subject.noun:
        return subject.pronoun if subject is not None and subject.pronoun in PERSONS else ""
    noun = load_words().nouns[subject.noun]
    if noun.type not in ("person", "profession", "family"):
        return ""
    return "they" if subject.plural else "she" if noun.genders["es"] == "f" else "he"


class _Sentence:
    def __init__(self, said: Utterance) -> None:
        speaker = said.speaker
        self.speaker = speaker.pronoun if speaker is not None and speaker.pronoun in ("he", "she") else ""
        self.facts = {"always"}
        self.facts |= {"reported"} if speaker is not None else set()
        self.facts |= {"alike"} if said.link in ("too", "neither") else set()
        self.facts |= {"linked"} if said.second is not None and said.link not in ANSWERS else set()

    def clause(self, said: Clause) -> Clause:
        phrases = (*said.roles.values(), *(each.phrase for each in said.adverbials))
        if said.frame not in _marked() and not any(map(_concerned, phrases)):
            return said
        subject = said.roles.get("S")
        around = self.facts | self._acting(subject) | _of_verb(said.frame)
        around |= {"asked"} if said.mood in (Mood.YES_NO, Mood.WH) else set()
        around |= {"how_long"} if said.asked == "how_long" else set()
        around |= (
            {"us"} if any(np.pronoun in ("i", "we") for role, np in said.roles.items() if role != "S") else set()
        )
        roles = dict(said.roles)
        if subject is not None and said.gap != "S":
            roles["S"] = self._phrase(subject, None, around, "whose_subject")
        doer = roles.get("S")
        others = [role for role in roles if role not in ("S", said.gap)]
        roles |= {role: self._phrase(roles[role], doer, around) for role in others}
        adverbials = tuple(
            replace(each, phrase=self._phrase(each.phrase, doer, around | {"company"})) if each.phrase else each
            for each in said.adverbials
        )
        return replace(said, roles=roles, adverbials=adverbials)

    def _acting(self, subject: Phrase | None) -> set[str]:
        if subject is None:
            return set()
        if subject.pronoun:
            return {subject.pronoun, *(fact for fact, who in _WHO.items() if subject.pronoun in who)}
        facts = {"named"}
        facts |= {"joined"} if subject.members else set()
        facts |= {"ours"} if subject.det == "we" else set()
        return facts | ({"kinsman"} if subject.noun and _kind(subject.noun) == "kin" else set())

    def _phrase(self, np: Phrase, doer: Phrase | None, around: set[str], table: str = "whose") -> Phrase:
        if np.members:
            return replace(np, members=tuple(self._phrase(each, doer, around, table) for each in np.members))
        if not np.noun or np.pronoun:
            return np
        if np.relative is not None:
            np = replace(np, relative=self.clause(np.relative))
        if np.of is not None and "disposed" in around and table == "whose":
            np = replace(np, of=None)  # not "I sold Anna's bed"
        owner = next(self._owners(np, doer, around, table), np.det)
        return np if owner == np.det else replace(np, det=owner)

    def _owners(self, np: Phrase, doer: Phrase | None, around: set[str], table: str) -> Iterator[str]:
        drawn = {fact for fact, dets in _DRAWN.items() if np.det in dets}
        if not drawn or (np.det not in PERSONS and (np.of or np.relative)):
            return
        facts = around | drawn | ({"one"} if not np.plural else set())
        facts |= {"spouse"} if np.noun in SPOUSES else set()
        who = _doer(doer)
        for row in rows(table, _kind(np.noun)):
            if row.conditions <= facts:
                owner = {
                    "doer": who,
                    "kinsman": doer.det if doer is not None else "",
                    "speaker": self.speaker,
                    "another": "she" if who == "he" or (who != "she" and np.mark % 2) else "he",
                }.get(row.owner, row.owner)
                if owner:
                    yield owner


def with_owners(said: Utterance) -> Utterance:
    """The sentence with the owners that its people and things have in it."""
    sentence = _Sentence(said)
    second = sentence.clause(said.second) if said.second is not None else None
    return replace(said, first=sentence.clause(said.first), second=second)
