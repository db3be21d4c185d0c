"""Draws what people say to each other: questions about which and how many, things together, short answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from demo_model.clauses.compose_clauses import ClauseComposer
from demo_model.clauses.compose_phrases import ALWAYS_PLURAL, ONES_OWN_PEOPLE, SPOUSES
from demo_model.clauses.lexicon import Frame, Noun
from demo_model.clauses.syntax import (
    ASKED_FRAMES,
    PERSONS,
    Clause,
    Modal,
    Mood,
    Phrase,
    Predicate,
    Tense,
    Utterance,
)

_ASKS = {"which": 40, "how_many": 25, "how_much": 6, "what_kind": 15, "whose": 12}
_CHOSEN = frozenset(
    [
        *("document", "device", "product", "plan", "event", "person", "group", "task", "text", "show"),
        *("clothes", "room", "hall", "data", "site", "home", "motor", "small", "transport", "story"),
        *("booking", "sight", "code", "schoolwork", "instrument", "vehicle"),
    ]
)
"""Types of which one asks which one is meant."""
_UNANSWERED = ("show", "drive_someone", "take_to_vet", "bring_school", "invite_home", "teach_family")
"""Frames whose Chinese verb says what the other one does (请…吃饭), so it does not answer alone."""
_NO_NOUNS = ("we", "they", "people", "weather")
_APART = frozenset(
    [
        *(
            "city",
            "money",
            "position",
            "term",
            "profession",
            "event",
            "feast",
            "story",
            "wild",
            "body",
            "instrument",
        ),
        *("topic", "group", "fruit", "vegetable", "amenity", "site", "sight", "plan", "remark", "problem"),
        "product",
    ]
)
"""Types whose nouns are seldom named together."""
_ASKED_OF = {"how_much": "measured", "how_many": "counted", "whose": "lent", "what_kind": "kinds"}
"""The class of what one asks the number, the owner or the kind of."""
_THERE = (("seat", "place_office"), ("attendant", "place_office"), ("stock", "stock"))


_RELATIVES = 2
"""Two of one's family are too many for a question of which."""


class TalkComposer(ClauseComposer):
    """Utterances; `Composer` draws them among others."""

    # Which, how many, how long

    def _asking(self) -> Utterance:
        draw = self.random.random()
        if draw < 0.24:
            said = self._asked_frame()
        elif draw < 0.30:
            said = self._how_many_there_are()
        elif draw < 0.48:
            word = "how_long" if draw < 0.39 else "how_often"
            tenses = {Tense.HABIT: 1.0} if word == "how_often" else {Tense.PAST: 2.0, Tense.FUTURE: 1.0}
            key = self.random.choice(self.choices["asked"][word])
            addressed = self._addressed(self.words.frames[key])
            said = self.clause([key], Mood.WH, tenses, False, addressed, wanted=(word, None))
            if "O" in said.roles and said.roles["O"].det in ("a", "num", "many", "all", "this"):
                thing = replace(said.roles["O"], det="the", plural=said.roles["O"].noun in ALWAYS_PLURAL, count=0)
                said = replace(said, roles={**said.roles, "O": thing})
        else:
            said = self._asked_phrase()
        if said.mood is Mood.WH and self.odds(0.1):
            speaker = Phrase(self.mark(), pronoun=self.random.choice(("i", "we")))
            subject = said.roles.get("S")
            if subject is None or subject.pronoun not in ("i", "we", "you"):
                return Utterance(said, "whether", speaker=speaker)
        return Utterance(said)

    def _asked_frame(self) -> Clause:
        """How much is the bicycle? How old is your son? Whose umbrella is this? Where is my key?"""
        frame = self.words.frames[self.random.choice(list(ASKED_FRAMES))]
        nouns = self._nouns(self._types(frame.types["S"]))
        noun = self.random.choice([each for each in nouns if each.key not in ALWAYS_PLURAL])
        det = {"age": "you", "whose_is": "this", "where_is": "i" if noun.type == "small" else "the"}.get(frame.key)
        det = det or self.random.choice(("the", "this"))
        subject = Phrase(self.mark(), noun=noun.key, det=det)
        tense = Tense.FUTURE if frame.key == "take_time" else Tense.HABIT
        return Clause(frame.key, self.mark(), {"S": subject}, tense, mood=Mood.WH, asked=ASKED_FRAMES[frame.key])

    def _how_many_there_are(self) -> Clause:
        kind, places = self.random.choice(_THERE)
        noun = self.random.choice(self._nouns(self._types([kind])))
        place = Predicate(self.mark(), place=self.adverbial(self.random.choice(self._rooms(places))))
        there = Phrase(self.mark(), noun=noun.key, det="how_many", plural=True)
        return Clause("exist", self.mark(), {"S": there}, mood=Mood.WH, asked="S", predicate=place)

    def _asked_phrase(self) -> Clause:
        """Which report did you read?"""
        while True:
            det = self.random.choices(list(_ASKS), list(_ASKS.values()))[0]
            role = self.random.choice("SOOT" if det == "which" else "SOO" if det == "how_many" else "O")
            keys = self.choices["asked"].get("how_many_people" if det + role == "how_manyS" else det)
            frame = self.words.frames[self.random.choice(keys or self._domain())]
            if role == "S" and not self._acts(frame):
                continue
            if role not in frame.types or "stative" in frame.tags or frame.key in self.choices["verbs"]["unasked"]:
                continue
            noun = self._noun_for(frame, role, det)
            if noun and role == "T" and "O" in frame.types and noun.type not in ("person", "group"):
                continue
            if noun and role != "S" and self._echoes(frame, Phrase(0, noun=noun.key)):
                continue
            if det + role == "how_manyS":
                noun = self.random.choice(self._nouns(self._types(["attendant"])))
            if noun is None:
                continue
            plural = det == "how_many" or noun.key in ALWAYS_PLURAL or (det == "which" and self.odds(0.15))
            wanted = Phrase(self.mark(), noun=noun.key, det=det, plural=plural)
            tenses = {Tense.PAST: 2.0, Tense.FUTURE: 0.0 if det in ("how_much", "whose") else 1.0}
            human = role != "S" and "people" in self._types(frame.types["S"])
            subject = self._addressed(frame) if human else None
            said = self.clause([frame.key], Mood.WH, tenses, False, subject, wanted=(role, wanted))
            others = {each: np for each, np in said.roles.items() if each != role}
            types = self._fitting(frame, role, (), others)  # a courier delivers no stove
            if types and noun not in self._nouns(self._types(types)):
                continue
            kin = [np.noun[:7] for np in said.roles.values()].count("family:")
            stock = det == "how_many" and noun.type in ("device", "furniture")  # a niece buys no ten computers
            if kin < (1 if stock else _RELATIVES):
                return said

    def _acts(self, frame: Frame) -> bool:
        """Whether its subject is somebody who does something."""
        return "people" in self._types(frame.types["S"]) or "we" in frame.types["S"]

    def _addressed(self, frame: Frame) -> Phrase:
        """Who one asks about: mostly the one who is asked; the family at home only."""
        draw = self.random.random()
        if draw < 0.12:
            return self._name()
        if draw < 0.22 and "daily" in frame.tags:
            noun = self.random.choice(self._nouns(["family"]))
            return Phrase(self.mark(), noun=noun.key, det="you", plural=noun.key in ALWAYS_PLURAL)
        return Phrase(self.mark(), pronoun="you" if draw < 0.8 else self.random.choice(("he", "she", "they")))

    def _noun_for(self, frame: Frame, role: str, det: str = "") -> Noun | None:
        types = self._types(self.actors(frame.types[role]) if role == "S" else frame.types[role])
        nouns = self._nouns([each for each in types if each not in _NO_NOUNS])
        nouns = [each for each in nouns if not det or self._askable(det, each, role)]
        return self.random.choice(nouns) if nouns else None

    def _askable(self, det: str, noun: Noun, role: str) -> bool:
        if noun.mass != (det == "how_much") or noun.key == "group:management":
            return False
        if det in _ASKED_OF and role != "S":
            known = self._types([_ASKED_OF[det]])
            return noun.key in known or noun.type in known
        return (
            noun.type in _CHOSEN and noun.key not in ("person:boss", "transport:taxi")
            if det == "which"
            else noun.type == "person"
        )

    # Things together

    def _coordinated(self) -> Utterance:
        """The design team and the customers; either the report or the slides."""
        if self.odds(0.15):
            return self._alike()
        while True:
            mood = self.random.choices((Mood.STATEMENT, Mood.YES_NO, Mood.IMPERATIVE), (80, 12, 8))[0]
            said = self.clause(self.choices["together"]["named"] if self.odds(0.18) else self._domain(), mood)
            frame = self.words.frames[said.frame]
            named = [each for each in said.roles if said.roles[each].mark]
            if not named:
                continue
            role = self.random.choice(named)
            if (role == "S" and mood is not Mood.STATEMENT) or (role != "S" and "stative" in frame.tags):
                continue
            np = self._together(frame, role, said)
            again = said.tense is Tense.HABIT and said.modal is Modal.NONE
            if np is None or (again and any(each.det == "a" for each in np.members)):
                continue  # not "she regularly buys a pudding and a muffin"
            roles = {each: replace(other, relative=None) for each, other in said.roles.items()} | {role: np}
            adverbials = [each for each in said.adverbials if role != "S" or each.phrase is None]
            return Utterance(replace(said, roles=roles, negative=False, adverbials=tuple(adverbials)))

    def _together(self, frame: Frame, role: str, said: Clause) -> Phrase | None:
        others = {each: np for each, np in said.roles.items() if each != role}
        types = self.actors(frame.types[role]) if role == "S" else frame.types[role]
        types = self._types(self._fitting(frame, role, types, others))
        several = self._shared() if role == "S" else self.choices["together"]["things" if role == "O" else "to"]
        if frame.key not in several or "city" in types:
            return None
        link = self.random.choices(
            ("and", "both", "either", "or"),
            (
                70,
                4,
                12 * (said.tense is Tense.FUTURE and said.mood is Mood.STATEMENT),
                6 * (said.mood is Mood.YES_NO),
            ),
        )[0]
        if role == "S" and said.mood is not Mood.STATEMENT:
            link = "and"
        if link == "both" and (role == "T" or (role == "O" and not self.direct(frame))):
            link = "and"
        count = 3 if link == "and" and self.odds(0.1) else 2
        if "people" in types and self.odds(0.4 if role == "S" else 0.2):
            members = [self._name() for _ in range(count)]
            own = any(np.pronoun in ("i", "we") or np.det in ("i", "we") for np in said.roles.values())
            if role == "S" and link == "and" and not own and self.odds(0.4):
                members[-1] = Phrase(self.mark(), pronoun="i")
                self.values.pop(members[-1].mark - 1, None)
            return self._joined(members, link)
        if "person:colleague" in types:
            types = self._types(["coworker"])
        members = self._alike_nouns(types, count, role != "O", frame.key)
        if members and types == self.classes["coworker"] and self.odds(0.4):
            team = self.random.choice(self._nouns(self._types(["squad"])))
            members[0] = Phrase(members[0].mark, noun=team.key, det="the")
        if not members:
            return None
        if all(each.noun.startswith(("staple:", "ingredient:")) for each in members) and self.odds(0.4):
            link = "etc"
        return self._joined(members, link)

    def _joined(self, members: Sequence[Phrase], link: str) -> Phrase:
        plural = link in ("and", "both", "etc")
        return Phrase(self.mark(), members=tuple(members), link=link, plural=plural)

    def _alike_nouns(self, types: Sequence[str], count: int, subject: bool, frame: str) -> list[Phrase]:
        """Nouns of one type with the same kind of determiner."""
        nouns = self._nouns([each for each in types if each not in _NO_NOUNS])
        if not nouns:
            return []
        kind = self.random.choice(nouns).type
        alike = list({each.key: each for each in nouns if each.type == kind and each.key not in SPOUSES}.values())
        near = (
            self.classes["kin"]
            if kind == "family"
            else [each.key for each in alike if each.key not in ALWAYS_PLURAL]
        )
        alike = [each for each in alike if each.key in near]
        if kind == "drink" and frame == "order_food":
            return []  # nobody orders beer and tea
        if len(alike) < count + 1 or kind in _APART:
            return []
        chosen = self.random.sample(alike, count)
        words = [each.cells["en"] for each in chosen]
        if any(one != other and one.endswith(other) for one in words for other in words):
            return []  # the contract and the sales contract
        named = {each.key for each in chosen}
        if any(named & set(self.choices["broader"].get(each, ())) for each in named):
            return []
        fresh = frame in self.choices["verbs"]["fresh"] and not subject
        det = "a" if fresh else "the"
        if any(each.key in ONES_OWN_PEOPLE for each in chosen) and self.odds(0.7):
            det = "we"
        owner = self.random.choice(("i", "i", "i", "he", "she"))
        out = []
        for noun in chosen:
            np = Phrase(self.mark(), noun=noun.key, det=det)
            if noun.type == "family":
                np = replace(np, det=owner, plural=noun.key in ALWAYS_PLURAL)
            elif noun.mass:
                np = replace(np, det="bare")
            elif det == "the" and kind in ("person", "document") and self.odds(0.25):
                np = replace(np, plural=noun.key != "person:boss")
            out.append(np)
        return out

    def _alike(self) -> Utterance:
        """The kitchen and the bathroom are clean."""
        while True:
            adjective = self.random.choice(self.predicated)
            kind = self.random.choice(self.words.adjective_types[adjective])
            members = self._alike_nouns(self._types([kind]), 2, True, "")
            if kind != "animal" and members and all(each.det != "bare" for each in members):
                break
        degree = "very" if adjective not in self.choices["adjectives"]["no_degree"] and self.odds(0.3) else ""
        if self.words.adjectives[adjective]["zh"].startswith("="):
            degree = ""
        link = "both" if self.odds(0.25) else "and"
        past = self.odds(0.3) and adjective not in self.choices["adjectives"]["lasting"]
        tense = Tense.PAST if past else Tense.HABIT
        predicate = Predicate(self.mark(), adjective=adjective, degree=degree)
        return Utterance(Clause("be", self.mark(), {"S": self._joined(members, link)}, tense, predicate=predicate))

    # Answers

    def _answered(self) -> Utterance:
        """Did you send the report? Yes, we did. Neither have we. That depends on the price."""
        draw = self.random.random()
        if draw < 0.06:
            frame = self.words.frames["depend"]
            noun = self._noun_for(frame, "O")
            assert noun is not None  # noqa: S101
            on = Phrase(self.mark(), noun=noun.key, det="the", plural=noun.key in ALWAYS_PLURAL)
            that = Phrase(self.mark(), pronoun="that")
            return Utterance(Clause("depend", self.mark(), {"S": that, "O": on}))
        if draw < 0.4:
            return self._agreed()
        while True:
            marks, values = self._mark, dict(self.values)
            tenses = {Tense.PAST: 4.0, Tense.FUTURE: 3.0, Tense.DONE: 2.0}
            said = self.clause(self._domain(), Mood.YES_NO, tenses)
            who = self._answering(said.roles["S"])
            frame = self.words.frames[said.frame]
            action = "stative" not in frame.tags and "O" in frame.types and said.mood is Mood.YES_NO
            action = action and frame.key not in (*self.choices["verbs"]["unasked"], *_UNANSWERED)
            if action and who is not None and said.modal is not Modal.MIGHT:
                break
            self._mark, self.values = marks, values
        if self.odds(0.35):
            answers = [each for each in self.words.openers["answer"] if self._answers(each, said)]
            return Utterance(said, answer=self.random.choice(answers))
        link = self.random.choices(("yes", "no"), (60, 40))[0]
        due = said.frame in self.choices["times"]["done"]
        if (
            said.modal is Modal.NONE
            and said.tense in (Tense.DONE, Tense.PAST)
            and link == "no"
            and self.odds(0.8)
            and due
        ):
            link, said = "not_yet", replace(said, adverbials=())
        second = replace(said, roles={"S": who}, mood=Mood.STATEMENT, negative=link != "yes", adverbials=())
        return Utterance(said, link, second)

    def _answers(self, answer: str, asked: Clause) -> bool:
        """One knows what one did oneself; "probably not" is said of what happened, as Chinese has 没有 in it."""
        if answer == "I'm afraid so" or (asked.roles["S"].pronoun in ("i", "we") and "know" in answer):
            return False
        own = asked.roles["S"].pronoun == "you" and re.search("hope|know|afraid|question|depends", answer)
        future = asked.tense not in (Tense.PAST, Tense.DONE) or asked.modal is not Modal.NONE
        own = own or (asked.roles["S"].pronoun == "you" and not future and re.search("prob|maybe|sure", answer))
        unfit = "afraid not|not as|probably not|course not" if future else "depends|yet|good question"
        able = asked.modal is Modal.CAN and "hope" in answer
        return not own and not able and not re.search(unfit, answer)

    def _answering(self, asked: Phrase) -> Phrase | None:
        """Who is spoken of in the answer: "Did you …?" "Yes, we …"."""
        pronoun = asked.pronoun
        if asked.noun and self.words.nouns[asked.noun].type in ("person", "family", "profession"):
            female = self.words.nouns[asked.noun].genders["es"] == "f"
            pronoun = "they" if asked.plural else "she" if female else "he"
        turned = {"you": self.random.choice(("i", "we")), "i": "you", "we": "you"}
        pronoun = turned.get(pronoun, pronoun)
        return Phrase(self.mark(), pronoun=pronoun) if pronoun in PERSONS else None

    def _agreed(self) -> Utterance:
        """So do I. Neither does my brother."""
        while True:
            marks, values = self._mark, dict(self.values)
            subject = Phrase(self.mark(), pronoun=self.random.choice(("i", "i", "we", "he", "she")))
            keys = self._domain()
            alike = [each for each in keys if each in self.choices["together"]["alike"]] or keys
            said = self.clause(alike, Mood.STATEMENT, subject=subject, plain=True)
            frame = self.words.frames[said.frame]
            fits = "people" in self._types(frame.types["S"]) and said.roles["S"].pronoun == subject.pronoun
            fits = fits and said.tense not in (Tense.NOW, Tense.PLANNED) and "T" not in frame.types
            thing = said.roles.get("O")
            gone = thing is not None and thing.det not in ("a", "bare")
            if (
                fits
                and not (gone and frame.key in self.choices["verbs"]["gone"])
                and "~" not in frame.cells["es"]
                and said.frame != "depend"
            ):
                break
            self._mark, self.values = marks, values
        refused = (
            ("stative" in frame.tags or frame.key in self.choices["times"]["done"])
            and frame.key not in self.choices["verbs"]["affirmative"]
            and ("stative" in frame.tags or said.tense in (Tense.PAST, Tense.DONE))
        )
        link = "neither" if refused and self.odds(0.7) else "too"
        others = ["he", "she", "they"] if subject.pronoun in ("i", "we") else ["i", "we"]
        people = [self.words.nouns[np.noun].type for np in said.roles.values() if np.noun]
        named = {"person", "family", "profession"} & set(people) or any(
            np.pronoun for role, np in said.roles.items() if role != "S"
        )
        who = self._name() if named or self.odds(0.25) else Phrase(self.mark(), pronoun=self.random.choice(others))
        said = replace(said, negative=link == "neither")
        if link == "neither":
            roles = {
                role: replace(np, det="the", plural=False, count=0) if np.det in ("num", "many", "all") else np
                for role, np in said.roles.items()
            }
            said = replace(said, roles=roles)
        said = replace(said, adverbials=tuple(each for each in said.adverbials if each.phrase is None))
        second = replace(said, roles={"S": who}, adverbials=())
        return Utterance(said if link == "too" else replace(said, adverbials=()), link, second)
