"""Draws sentences: one clause, what something is, two clauses that are linked, what somebody says or thinks."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

from demo_model.clauses.compose_everyday import EverydayComposer
from demo_model.clauses.compose_phrases import ALWAYS_PLURAL
from demo_model.clauses.lexicon import PARTITIVE
from demo_model.clauses.owners import with_owners
from demo_model.clauses.syntax import (
    FIXED_FRAMES,
    PERSONS,
    Clause,
    Modal,
    Mood,
    Phrase,
    Predicate,
    Tense,
    Utterance,
)
from demo_model.patterns import in_part

_MALE = ("grandfather", "father", "brother", "son", "uncle", "husband", "nephew")
_SPECIFIC = (*["the"] * 9, "this", "we")
_OWNED = (
    "document",
    "device",
    "furniture",
    "plan",
    "product",
    "home",
    "room",
    "motor",
    "group",
    "site",
    "fixture",
)
_MANY = 5
_SEVERAL = ("bound", "sheet", "stationery", "stock", "table_fruit")
"""Of what there are several in one place."""
_ATTEMPTS = 2000
_WORK = frozenset(
    [
        *("document", "plan", "product", "event", "problem", "task", "person", "group", "data", "money", "code"),
        *("hall", "site", "goods", "term", "remark", "position", "credential"),
    ]
)
"""Types of what one speaks of at work."""


def frames(clause: Clause | None) -> set[str]:
    """What happens in a clause and in its relative clauses, but for what no other can stand for."""
    if clause is None:
        return set()
    relatives = [frames(each.relative) for each in clause.roles.values()]
    return ({clause.frame} - FIXED_FRAMES).union(*relatives)


def named(clause: Clause | None) -> list[str]:
    """The nouns of a clause, but for what "it" stands for."""
    if clause is None:
        return []
    phrases = [np for role, np in clause.roles.items() if role != clause.gap]
    phrases += [each.phrase for each in clause.adverbials if each.phrase]
    phrases += [member for np in phrases for member in np.members]
    nouns = [np.noun for np in phrases if np.noun and not np.pronoun]
    return nouns + [noun for np in phrases for noun in named(np.relative)]


def repeated(said: Utterance) -> bool:
    """Whether one noun is said of two: "the colleague has lunch with the colleague"."""
    nouns = named(said.first) + named(said.second)
    return len(nouns) > len(set(nouns))


class Composer(EverydayComposer):
    """A stream of utterances. Two composers whose samplers have the same seed give the same stream.

    part: the share of frames, nouns and adjectives that are used; of less than 0.1, some sentences have none.
    """

    def draw(self) -> Utterance:
        """The next utterance."""
        kinds: dict[Callable[[], Utterance], float] = {
            self._single: 0.34,
            self._described: 0.11,
            self._linked: 0.08,
            self._continued: 0.04,
            self._ordered: 0.06,
            self._reasoned: 0.06,
            self._reported: 0.09,
            self._asking: 0.07,
            self._coordinated: 0.06,
            self._answered: 0.04,
            self._lasting: 0.045,
            self._caused: 0.025,
            self._meant: 0.025,
            self._concluded: 0.012,
        }
        kind = self.random.choices(list(kinds), list(kinds.values()))[0]
        for attempt in count():
            self.values, self._mark = {}, 0
            said = kind() if attempt < _ATTEMPTS else self._single()  # of a small part few sentences may be left
            if self._is_in_part(said) and (attempt >= _ATTEMPTS or not repeated(said)):
                break
        said = with_owners(said)
        second = replace(said.second, embedded=True) if said.second else None
        first = self._sensible(said.first, said.speaker is not None)
        return replace(said, first=first, second=second, values=dict(self.values))

    def _sensible(self, clause: Clause, reported: bool) -> Clause:
        """Nobody sold this bench; "in five minutes" is not reported, nor "on my birthday" said of others."""
        subject, thing = clause.roles.get("S"), clause.roles.get("O")
        roles = clause.roles
        over = clause.tense in (Tense.PAST, Tense.DONE, Tense.PRIOR) and clause.modal is Modal.NONE
        if over and thing and thing.det == "this" and clause.frame in self.choices["verbs"]["gone"]:
            roles = {**roles, "O": replace(thing, det="the")}
        if clause.tense is Tense.PLANNED and not clause.adverbials and clause.asked != "when":  # that would be now
            now = clause.frame not in self.choices["verbs"]["not_now"]
            clause = replace(clause, tense=Tense.NOW if now else Tense.FUTURE)
        unfit = "minutes|hour|just now|duration" if reported else "^$"
        unfit += "" if subject and subject.pronoun in ("i", "we") else "|my birthday"
        said = tuple(each for each in clause.adverbials if not re.search(unfit, each.key))
        return replace(clause, roles=roles, adverbials=said, embedded=clause.embedded or reported)

    def _is_in_part(self, said: Utterance) -> bool:
        """Frames that follow from others are drawn from all, and so have to be looked at."""
        return all(in_part(self.part, "frame", frame) for frame in frames(said.first) | frames(said.second))

    def _single(self) -> Utterance:
        said = self.clause(self._domain())
        states = "stative" in self.words.frames[said.frame].tags
        kind = "statement" if said.modal is not Modal.MIGHT and not states else ""
        if said.mood in (Mood.YES_NO, Mood.WH, Mood.REQUEST):
            kind = "question"
        elif said.mood is Mood.STATEMENT and not states and self.odds(0.5):
            kind = "no" if said.negative else "yes"
        elif said.mood is not Mood.STATEMENT:
            kind = ""
        opener = self.random.choice(self._openers(kind, said)) if kind and self.odds(0.12) else ""
        if opener:
            said = replace(said, embedded=True)  # a time would be the second thing before the subject
        return Utterance(said, opener=f"{kind}:{opener}" if opener else "")

    def _openers(self, kind: str, said: Clause) -> list[str]:
        """One agrees to what one will do, and is sorry for what one did not do."""
        own = said.roles["S"].pronoun in ("i", "we") if "S" in said.roles else False
        fitting = {
            "okay": own and said.tense is Tense.FUTURE,
            "yes, of course": own and said.tense is Tense.FUTURE,
            "exactly": "office" in self.words.frames[said.frame].tags
            and not own
            and said.tense is not Tense.FUTURE
            and said.modal is Modal.NONE,
            "excuse me": "S" in said.roles and said.roles["S"].pronoun == "you",
            "one question": said.mood is Mood.WH
            and said.asked in ("when", "where", "how")
            and "office" in self.words.frames[said.frame].tags,
            "good morning": own and said.modal is Modal.NONE and said.tense is Tense.DONE,
            "sorry": own,
        }
        return [each for each in self.words.openers[kind] if fitting.get(each, True)]

    # What something is, and what there is

    def described(
        self, subject: Phrase | None = None, mood: Mood = Mood.STATEMENT, fitting: Sequence[str] = ()
    ) -> Clause:
        """The report is (too) long."""
        if subject is None:
            works = self.odds(0.6)
            for _ in range(20):
                adjective = self.random.choice(self.predicated)
                noun = self.random.choice(self._nouns(self.words.adjective_types[adjective]))
                kind = noun.type
                asked = mood is Mood.STATEMENT or adjective in self.choices["adjectives"]["asked"]
                if asked and (kind in _WORK or not works):
                    break
            if kind in ("person", "family", "profession") and self.odds(0.3):
                subject = Phrase(self.mark(), pronoun=self.random.choice(("he", "she", "they")))
            else:
                subject = self.noun(noun, True, True)
                subject = replace(
                    subject,
                    adjective="",
                    plural=subject.noun in ALWAYS_PLURAL,
                    count=0,
                    det=self._specific(kind, subject.det),
                )
        else:
            adjective = self.random.choice(fitting)
        degree = ""
        than = None
        comparable = self._comparable(adjective)
        if comparable and mood is Mood.STATEMENT and self.odds(0.55):
            degree = self.random.choices(("very", "too", "more"), (45, 20, 35))[0]
            if degree == "too" and adjective not in self.choices["adjectives"]["too"]:
                degree = "very"
            if degree == "more":
                than = self._other(subject, adjective)
                degree = "more" if than else "very"
        past = self.odds(0.22) and adjective not in self.choices["adjectives"]["lasting"]
        tense = Tense.PAST if past else Tense.HABIT
        deniable = adjective not in self.choices["adjectives"]["affirmed"]
        negative = not degree and mood is Mood.STATEMENT and deniable and self.odds(0.18)
        predicate = Predicate(self.mark(), adjective=adjective, degree=degree, than=than)
        return self._being(subject, predicate, tense, mood, negative)

    def _specific(self, kind: str, det: str) -> str:
        if kind == "family" or (kind == "person" and det in PERSONS) or (det == "bare" and kind not in PARTITIVE):
            return det
        return (
            "the"
            if kind in PARTITIVE or kind in ("person", "profession")
            else self.random.choice(_SPECIFIC if kind in _OWNED else _SPECIFIC[:-1])
        )

    def _comparable(self, adjective: str) -> bool:
        cells = self.words.adjectives[adjective]
        return (
            adjective not in self.choices["adjectives"]["no_degree"]
            and not cells["zh"].startswith("=")
            and cells["ja"].endswith(("い", "な"))
        )

    def _other(self, subject: Phrase, adjective: str) -> Phrase | None:
        """Another one of the few things that one compares the subject with."""
        groups = [self._nouns([each]) for each in self.choices["compared"].get(adjective, ())]
        alike = [noun for nouns in groups if subject.noun in [each.key for each in nouns] for noun in nouns]
        nouns = [noun for noun in alike if noun.key != subject.noun]
        if not nouns:
            return None
        other = self.noun(self.random.choice(nouns), True, True)
        family = self.words.nouns[other.noun].type == "family"
        return replace(other, adjective="", det=subject.det if family or other.det == "bare" else "the")

    def _described(self) -> Utterance:
        mood = Mood.YES_NO if self.odds(0.18) else Mood.STATEMENT
        draw = self.random.random()
        if draw < 0.6:
            return Utterance(self.described(mood=mood))
        if draw < 0.7:
            male = self.words.nouns[f"family:{self.random.choice(_MALE)}"]
            subject = Phrase(self.mark(), pronoun="he") if self.odds(0.3) else self.noun(male)
            job = Phrase(self.mark(), noun=self.random.choice(self.classes["job"]), det="a")
            tense = Tense.PAST if self.odds(0.2) else Tense.HABIT
            return Utterance(self._being(subject, Predicate(self.mark(), phrase=job), tense, mood))
        put = self.choices["put"]
        kind = self.random.choice([*put, "staff", "family"])
        noun = self.random.choice([each for each in self._nouns([kind]) if each.key not in ALWAYS_PLURAL])
        places = put.get(kind) or self._adverbials["place_office" if kind == "staff" else "place_daily"]
        places = [
            each for each in places if not each.endswith(f" {noun.cells['en']}")
        ]  # no backpack in the backpack
        place = Predicate(self.mark(), place=self.adverbial(self.random.choice(places)))
        if noun.mass or (kind in put and self.odds(0.5)):
            several = kind in _SEVERAL and mood is Mood.STATEMENT and not noun.mass
            count = self.random.randint(2, _MANY) if several and self.odds(0.4) else 0
            det = "num" if count else "bare" if noun.mass else "a"
            there = Phrase(self.mark(), noun=noun.key, det=det, plural=bool(count), count=count)
            return Utterance(Clause("exist", self.mark(), {"S": there}, mood=mood, predicate=place))
        subject = replace(self.noun(noun, True, True), adjective="")
        tense = Tense.PAST if self.odds(0.25) else Tense.HABIT
        negative = self.odds(0.12) and mood is Mood.STATEMENT
        return Utterance(self._being(subject, place, tense, mood, negative))

    def _being(
        self, subject: Phrase, predicate: Predicate, tense: Tense, mood: Mood, negative: bool = False
    ) -> Clause:
        return Clause("be", self.mark(), {"S": subject}, tense, negative, mood=mood, predicate=predicate)

    # What somebody says or thinks

    def _reported(self) -> Utterance:
        """I think that …, Anna said that …, I do not know whether …"""
        link = self.random.choice(("think", "say", "say", "know", "hope", "whether", "whether"))
        speaker = (
            Phrase(self.mark(), pronoun=self.random.choice(("i", "i", "we", "he", "she")))
            if self.odds(0.75) or link == "whether"
            else self._name()
        )
        if link == "know" and speaker.pronoun not in ("i", "we"):
            link = "say"
        if link == "say" and speaker.pronoun in ("i", "we"):
            speaker = self._name()
        if link == "think" and self.odds(0.5):
            return Utterance(replace(self.described(), tense=Tense.HABIT), link, speaker=speaker)
        tenses = {Tense.FUTURE: 1.0} if link == "hope" else {Tense.PAST: 1.0, Tense.FUTURE: 1.0, Tense.DONE: 0.5}
        mood = Mood.STATEMENT
        if link == "whether":
            mood = Mood.WH if self.odds(0.5) else Mood.YES_NO
        keys = self._domain() if link != "know" else self._frames["office"]
        if link in ("hope", "know", "whether"):  # what one waits for
            known = {*self.choices["times"]["some_day"], *self.choices["times"]["notable"]}
            if link != "hope":
                known |= {*self.choices["times"]["done"]} & {*self._frames["office"]}
            keys = [key for key in keys if key in known - {*self.choices["verbs"]["unasked"]}] or keys
        inner = self.clause(keys, mood, tenses, modals=link in ("think", "say"), plain=link == "hope")
        same = inner.roles.get("S")
        unclear = {"he", "she"} if speaker.name and len(speaker.taken_for) > 1 else set[str]()
        if same is not None and same.pronoun in PERSONS:
            others = [
                each
                for each in ("he", "she", "they", "we")
                if each not in {speaker.pronoun, *unclear}
                and (each != "we" or link != "whether")
                and (each != "we" or speaker.pronoun != "i" or inner.tense is Tense.FUTURE)  # one knows the past
                and not any(each == np.pronoun for np in inner.roles.values())
            ]
            who = self.random.choice(others or ["they"])
            inner = replace(inner, roles={**inner.roles, "S": replace(same, pronoun=who)})
            inner = replace(
                inner, roles=self._known_gender(self.words.frames[inner.frame], inner.roles, inner.tense)
            )
        if inner.roles.get("S", speaker).pronoun in unclear:
            return self._single()
        if "stative" in self.words.frames[inner.frame].tags and link in ("hope", "whether", "say"):
            return self._single()
        past_when = inner.asked in ("when", "where", "how") and inner.tense is Tense.PAST
        if link == "whether" and (inner.asked in ("O", "T") or past_when):
            return self._single()
        if link == "whether":
            inner = replace(
                inner, modal=Modal.NONE, tense=Tense.FUTURE if inner.modal is not Modal.NONE else inner.tense
            )
        return Utterance(inner, link, speaker=speaker)
