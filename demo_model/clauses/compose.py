"""Draws sentences: one clause, what something is, two clauses that are linked, what somebody says or thinks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from demo_model.clauses.compose_phrases import ALWAYS_PLURAL
from demo_model.clauses.compose_talk import TalkComposer
from demo_model.clauses.lexicon import PARTITIVE
from demo_model.clauses.syntax import PERSONS, Clause, Modal, Mood, Phrase, Predicate, Tense, Utterance
from demo_model.patterns import in_part
from demo_model.sampling import Sampler

_MALE = ("grandfather", "father", "brother", "son", "uncle", "husband", "nephew")
_SPECIFIC = ("the", "the", "the", "this", "we")
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
_NOT_DUE = ("stay_home", "go_home", "go_bed", "rest", "relax", "cry", "laugh", "dance", "watch_tv", "sleep")
"""What nobody waits for: "but she hasn't cried yet"."""


class Composer(TalkComposer):
    """A stream of utterances. Two composers whose samplers have the same seed give the same stream.

    part: the share of frames, nouns and adjectives that are used; the code names a few others.
    """

    def __init__(self, sampler: Sampler, part: float = 1.0) -> None:
        super().__init__(sampler, part)
        self._reasoned_frames = sorted({key[1:] for keys in self.choices["reasons"].values() for key in keys})

    def draw(self) -> Utterance:
        """The next utterance."""
        self.values, self._mark = {}, 0
        kinds: dict[Callable[[], Utterance], float] = {
            self._single: 0.43,
            self._described: 0.11,
            self._linked: 0.10,
            self._continued: 0.04,
            self._reasoned: 0.06,
            self._reported: 0.09,
            self._asking: 0.07,
            self._coordinated: 0.06,
            self._answered: 0.04,
        }
        kind = self.random.choices(list(kinds), list(kinds.values()))[0]
        said = kind()
        second = replace(said.second, embedded=True) if said.second else None
        first = replace(said.first, embedded=said.speaker is not None)
        return replace(said, first=first, second=second, values=dict(self.values))

    def _single(self) -> Utterance:
        said = self.clause(self._domain())
        kind = "statement"
        if said.mood in (Mood.YES_NO, Mood.WH, Mood.REQUEST):
            kind = "question"
        elif said.mood is Mood.STATEMENT and self.odds(0.5):
            kind = "no" if said.negative else "yes"
        elif said.mood is not Mood.STATEMENT:
            kind = ""
        opener = self.random.choice(list(self.words.openers[kind])) if kind and self.odds(0.14) else ""
        return Utterance(said, opener=f"{kind}:{opener}" if opener else "")

    # What something is, and what there is

    def described(
        self, subject: Phrase | None = None, mood: Mood = Mood.STATEMENT, fitting: Sequence[str] = ()
    ) -> Clause:
        """The report is (too) long."""
        if subject is None:
            adjective = self.random.choice(self.predicated)
            adjective_types = [
                each for each in self.words.adjective_types[adjective] if each in self.words.by_type
            ]
            kind = self.random.choice(adjective_types)
            if kind in ("person", "family", "profession") and self.odds(0.3):
                subject = Phrase(self.mark(), pronoun=self.random.choice(("he", "she", "they")))
            else:
                subject = self.noun(self.random.choice(self._nouns([kind])), True, True)
                subject = replace(
                    subject,
                    adjective="",
                    plural=subject.noun in ALWAYS_PLURAL,
                    count=0,
                    det=self._specific(kind, subject.det),
                )
        else:
            kind = self.words.nouns[subject.noun].type if subject.noun else "family"
            adjective = self.random.choice(fitting)
        degree = ""
        than = None
        comparable = self._comparable(adjective) if adjective else False
        if comparable and self.odds(0.55):
            degree = self.random.choices(("very", "too", "more"), (45, 20, 35))[0]
            if degree == "too" and adjective not in self.choices["adjectives"]["too"]:
                degree = "very"
            if degree == "more":
                than = self._other(subject, kind)
                degree = "more" if than else "very"
        tense = self.random.choices((Tense.HABIT, Tense.PAST, Tense.FUTURE), (76, 22, 0 if degree else 2))[0]
        negative = not degree and mood is Mood.STATEMENT and self.odds(0.18)
        predicate = Predicate(self.mark(), adjective=adjective, degree=degree, than=than)
        return self._being(subject, predicate, tense, mood, negative)

    def _specific(self, kind: str, det: str) -> str:
        if kind == "family" or (det == "bare" and kind not in PARTITIVE):
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

    def _other(self, subject: Phrase, kind: str) -> Phrase | None:
        nouns = [noun for noun in self._nouns([kind]) if noun.key != subject.noun]
        if not nouns or not subject.noun:
            return None
        other = self.noun(self.random.choice(nouns), True, True)
        return replace(
            other,
            adjective="",
            det=other.det
            if kind == "family" or (other.det == "bare" and kind not in PARTITIVE)
            else self.random.choice(("the", "this")),
        )

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
        kinds = self.random.choice(
            (
                ("small", "place_thing"),
                ("text", "place_thing"),
                ("person", "place_office"),
                ("family", "place_daily"),
                ("dishes", "place_thing"),
                ("document", "place_thing"),
                ("supplies", "place_thing"),
                ("drink", "place_kitchen"),
                ("staple", "place_kitchen"),
                ("fruit", "place_kitchen"),
            )
        )
        noun = self.random.choice(self._nouns([kinds[0]]))
        keys = [
            key for key in self._adverbials[kinds[1]] if key not in ("behind the house", "in front of the office")
        ]
        place = Predicate(self.mark(), place=self.adverbial(self.random.choice(keys)))
        if kinds[1] == "place_kitchen" or (kinds[1] == "place_thing" and self.odds(0.4)):
            count = self.random.randint(2, _MANY) if self.odds(0.4) and not noun.mass else 0
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

    # Two clauses

    def _linked(self) -> Utterance:
        """If …, when …, and, but, so: an event and what is done about it."""
        follow = self.choices["follow"]
        link = self.random.choice(("if", "if", "when", "when", "so", "so", "but", "and"))
        keys = list(follow)
        if link in ("but", "and"):
            keys = [key for key in keys if "people" in self._types(self.words.frames[key].types["S"])]
        if link == "but":
            keys = [key for key in keys if "stative" not in self.words.frames[key].tags]
        happens = self.random.choice(keys)
        reactions = follow[happens]
        if link == "but":
            reactions = [key for key in reactions if key not in _NOT_DUE]
            link = "but" if reactions else "so"
            reactions = reactions or follow[happens]
        shared = None
        if link in ("but", "and") or happens in self.choices["verbs"]["own"]:
            shared = Phrase(self.mark(), pronoun=self.random.choice(("i", "we", "he", "she", "they")))
            if shared.pronoun in ("i", "we"):  # French participles after être would need their gender
                reactions = [
                    key for key in reactions if not self.words.frames[key].cells["fr"].startswith(("+", "se_"))
                ]
                shared = shared if reactions else replace(shared, pronoun="she")
                reactions = reactions or follow[happens]
        if link in ("if", "when"):
            past = link == "when" and self.odds(0.5)
            event = self.clause([happens], Mood.STATEMENT, {Tense.HABIT: 1}, plain=True, subject=shared)
            event = replace(event, tense=Tense.PAST if past else Tense.HABIT, adverbials=())
            event = replace(
                event, roles=self._known_gender(self.words.frames[event.frame], event.roles, event.tense)
            )
            same = event.roles["S"] if shared is not None else None
            if past:
                reaction = self.clause(
                    reactions, Mood.STATEMENT, {Tense.PAST: 1}, modals=False, plain=True, subject=same
                )
            else:
                mood = Mood.STATEMENT if same is not None or self.odds(0.7) else Mood.IMPERATIVE
                reaction = self.clause(
                    reactions, mood, {Tense.FUTURE: 1}, plain=same is not None or self.odds(0.6), subject=same
                )
                if reaction.modal is not Modal.NONE:
                    reaction = replace(reaction, tense=Tense.HABIT)
            return Utterance(replace(reaction, adverbials=()), link, event)
        first = self.clause([happens], Mood.STATEMENT, {Tense.PAST: 1}, modals=False, plain=True, subject=shared)
        if "stative" in self.words.frames[happens].tags:
            first = replace(first, tense=Tense.PAST, adverbials=())
            link = "so" if link == "and" else link
        shared = first.roles["S"] if shared is not None else None
        if link == "so" and "stative" in self.words.frames[happens].tags:
            second = self.clause(reactions, Mood.STATEMENT, {Tense.PAST: 1}, False, shared, plain=True)
            return Utterance(first, link, replace(second, adverbials=()))
        if link == "so":
            second = self.clause(reactions, Mood.STATEMENT, {Tense.FUTURE: 1}, subject=shared)
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

    def _continued(self) -> Utterance:
        """She wrote the report and sent it to the customer: something is done to the same thing, or not yet."""
        then = self.choices["then"]
        while True:
            self.values, self._mark = {}, 0
            shared = Phrase(self.mark(), pronoun=self.random.choice(("i", "we", "he", "she", "they")))
            key = self.random.choice(list(then))
            first = self.clause([key], Mood.STATEMENT, {Tense.PAST: 1}, False, shared, plain=True)
            thing = first.roles["O"]
            if thing.plural or thing.det == "bare" or thing.relative or first.roles["S"].pronoun != shared.pronoun:
                continue
            noun = self.words.nouns[thing.noun]
            fitting = [each for each in then[key] if self._fits(self.words.frames[each], "O", noun)]
            if fitting:
                break
        frame = self.words.frames[self.random.choice(fitting)]
        roles = {"S": first.roles["S"], "O": Phrase(self.mark(), pronoun="it", noun=noun.key, refers="O")}
        if "T" in frame.types:
            roles["T"] = replace(self.role(frame.types["T"], avoid=[shared.pronoun]), adjective="")
        link = "and" if self.odds(0.7) else "but"
        tense = Tense.PAST if link == "and" else Tense.DONE
        second = Clause(frame.key, self.mark(), roles, tense, negative=link == "but")
        return Utterance(replace(first, adverbials=first.adverbials[:1]), link, second)

    def _reasoned(self) -> Utterance:
        """Because, although: with what its object or its subject is like."""
        reasoned = self._reasoned_frames
        for _ in range(40):
            marks, values = self._mark, dict(self.values)
            first = self.clause(reasoned, Mood.STATEMENT, {Tense.PAST: 6, Tense.FUTURE: 4, Tense.DONE: 1})
            thing = first.roles.get("O")
            person = first.roles["S"]
            about = None
            if (
                thing is not None
                and thing.noun
                and not thing.plural
                and thing.det != "bare"
                and self.words.nouns[thing.noun].type not in ("person", "family", "group", "profession")
            ):
                if first.frame in reasoned:
                    about = Phrase(self.mark(), pronoun="it", noun=thing.noun, refers="O")
            elif person.pronoun in ("he", "she", "they") or (
                person.noun and self.words.nouns[person.noun].type in ("person", "family", "profession")
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
        kind = self.words.nouns[about.noun].type if about.noun else "family"
        wanted = ("+" if (link == "because") != first.negative else "-") + first.frame
        return [
            key
            for key, actions in self.choices["reasons"].items()
            if wanted in actions
            and in_part(self.part, "adjective", key)
            and kind in self.words.adjective_types[key]
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
        keys = [key for key in self._domain() if link != "hope" or key not in self.choices["verbs"]["unasked"]]
        inner = self.clause(keys, mood, tenses, modals=link in ("think", "say"))
        same = inner.roles.get("S")
        if same is not None and same.pronoun in PERSONS:
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
