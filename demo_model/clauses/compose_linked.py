"""Draws two clauses that have to do with each other: a cause and what is done, one act after another, a reason."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from demo_model.clauses.compose_phrases import ALWAYS_PLURAL, said_of
from demo_model.clauses.compose_talk import TalkComposer
from demo_model.clauses.syntax import PERSONS, Clause, Modal, Mood, Phrase, Tense, Utterance
from demo_model.sampling import Sampler

_OF_PEOPLE = ("tired", "busy", "ill", "nervous", "happy", "hungry")
"""The adjectives of a person that are a reason."""
_UNFORESEEN = ("lose_job", "fail_exam", "lose_match")
"""After what nobody plans to do something."""
_GENDERED = ("he", "she", "they")


class LinkedComposer(TalkComposer):
    """Utterances of two clauses; `Composer` draws them among others."""

    def __init__(self, sampler: Sampler, part: float = 1.0) -> None:
        super().__init__(sampler, part)
        self._reasoned_frames = sorted({key[1:] for keys in self.choices["reasons"].values() for key in keys})

    @abstractmethod
    def _single(self) -> Utterance:
        """A sentence of one clause."""

    @abstractmethod
    def described(
        self, subject: Phrase | None = None, mood: Mood = Mood.STATEMENT, fitting: Sequence[str] = ()
    ) -> Clause:
        """What something is: one of the fitting adjectives."""

    def _linked(self) -> Utterance:
        """If …, when …, but, so: an event and what is done because of it."""
        happens, narrowed, who, key, filled = self._drawn("follow")
        subject = self._whom(happens, key, who)
        if who == "please" and subject is not None:
            subject = replace(subject, pronoun=self.random.choice(_GENDERED)) if self.odds(0.6) else None
        event = self._event(happens, subject, narrowed)
        if who == "please":
            doer = event.roles["S"]
            if doer.pronoun in ("i", "we"):
                roles = event.roles | {"S": replace(doer, pronoun=self.random.choice(_GENDERED))}
                event = replace(event, roles=roles)
            me = Phrase(self.mark(), pronoun=self.random.choice(("i", "we")))
            asked = Clause(
                key, self.mark(), {"S": Phrase(0, pronoun="you"), "O": me}, Tense.FUTURE, mood=Mood.IMPERATIVE
            )
            link = "when" if happens in self.choices["verbs"]["expected"] and self.odds(0.6) else "if"
            return Utterance(asked, link, replace(event, tense=Tense.HABIT))
        actor = self._does(who, event)
        frame = self.words.frames[happens]
        when = happens in self.choices["verbs"]["noticed"]  # "when he had a headache" would be each time
        foreseen = happens not in self.choices["verbs"]["unasked"]
        foreseen = foreseen and ("stative" not in frame.tags or "weather" in frame.types["S"])
        link = (
            "but"
            if who == "not"
            else self.random.choice(("if" if foreseen else "so", "when" if when else "so", "so"))
        )
        tense = {"but": Tense.DONE, "if": Tense.FUTURE}.get(link, Tense.PAST)
        second = self.clause([key], Mood.STATEMENT, {tense: 1}, False, actor, plain=True)
        roles = second.roles | self._filled(filled, event, key)
        second = replace(second, tense=tense, negative=link == "but", adverbials=(), roles=roles)
        if link in ("if", "when"):
            return Utterance(second, link, replace(event, tense=Tense.HABIT) if link == "if" else event)
        befell = "stative" in frame.tags or happens in self.choices["verbs"]["unasked"]  # not what one did oneself
        return Utterance(event, "that's why" if link == "so" and befell and self.odds(0.25) else link, second)

    def _drawn(self, table: str) -> tuple[str, dict[str, list[str]], str, str, str]:
        """What happens and of what types its roles are; who does what then, and what plays the roles of that."""
        happens = self.random.choice(list(self.choices[table]))
        narrowed, reactions = {}, []
        for each in self.choices[table][happens]:
            if each.startswith("@"):
                narrowed = {each[1]: each[3:].split(",")}
            else:
                reactions.append(each)
        who, _, does = self.random.choice(reactions).partition(":")
        key, _, filled = does.partition(" ")
        return happens, narrowed, who, key, filled

    def _event(self, happens: str, subject: Phrase | None, narrowed: dict[str, list[str]]) -> Clause:
        """What happens, to things that are known."""
        event = self.clause([happens], Mood.STATEMENT, {Tense.PAST: 1}, False, subject, plain=True)
        known = {role: self._known_thing(np) for role, np in event.roles.items()}
        return replace(event, adverbials=(), roles=known | self._narrowed(narrowed))

    def _whom(self, happens: str, key: str, who: str) -> Phrase | None:
        """Whom it happens to."""
        if "people" in self._types(self.words.frames[happens].types["S"]):
            frames = (self.words.frames[happens], self.words.frames[key])
            being = who != "please" and any(each.cells["fr"].startswith(("+", "se_")) for each in frames)
            known = being or who == "other"  # French participles after être need the gender
            return Phrase(self.mark(), pronoun=self.random.choice(_GENDERED if known else ("i", "we", *_GENDERED)))
        if who in ("same", "not"):
            return Phrase(self.mark(), pronoun="they")  # a company
        return None

    def _does(self, who: str, event: Clause) -> Phrase | None:
        """Who does something because of it, or before or after it."""
        if who in ("same", "not"):
            return event.roles["S"]
        if who == "any":
            return Phrase(self.mark(), pronoun=self.random.choice(("i", "we", *_GENDERED)))
        if who == "other":
            others = ("i", "we") if event.roles["S"].pronoun in _GENDERED else ("he", "she")
            return Phrase(self.mark(), pronoun=self.random.choice(others))
        return None

    def _ordered(self) -> Utterance:
        """One thing is done before or after another: "We need to talk to her before we change the plan." """
        table = "before" if self.odds(0.6) else "after"
        happens, narrowed, who, key, filled = self._drawn(table)
        subject = self._whom(happens, key, who)
        event = self._event(happens, subject, narrowed)
        if filled == "O=$O":  # it
            thing = event.roles["O"]
            echoed = thing.noun and self._echoes(self.words.frames[key], thing)  # to test a test case
            if thing.noun in ALWAYS_PLURAL or thing.det == "bare" or echoed:
                return self._ordered()
            event = replace(event, roles=event.roles | {"O": replace(self._known_thing(thing), plural=False)})
        does = self.clause([key], Mood.STATEMENT, {Tense.PAST: 1}, False, self._does(who, event), plain=True)
        said = does.roles | self._filled(filled, event, key)
        fresh = key in self.choices["verbs"]["fresh"]
        said = {role: np if fresh and not np.relative else self._known_thing(np) for role, np in said.items()}
        does = replace(does, adverbials=(), roles=said)
        event = self._to_others(event, who)
        does = does if filled.startswith("T=") else self._to_others(does, who)
        main, other, link = does, event, table
        if table == "before" and who == "same" and self.odds(0.35):
            main, other, link = event, does, "after"
        if main is does and does.roles.get("O", Phrase(0)).refers == "O":
            thing, it = event.roles["O"], does.roles["O"]
            main = replace(does, roles={**does.roles, "O": thing})
            other = replace(event, roles={**event.roles, "O": it})
        return self._timed(main, link, other, who)

    def _timed(self, main: Clause, link: str, other: Clause, who: str) -> Utterance:
        """It was, will be, has to be or should be so, or somebody is asked to do it."""
        doer = main.roles["S"]
        asked = doer.pronoun and main.frame not in self.choices["verbs"]["own_will"] and "O" in main.roles
        due = main.frame in self.choices["times"]["done"] or "office" in self.words.frames[main.frame].tags
        kinds = {"past": 45, "future": 22, "want": 4, "please": 12 if asked else 0}
        kinds |= {"must": 14, "should": 7} if due else {}  # one does not have to play cards
        kind = self.random.choices(list(kinds), list(kinds.values()))[0]
        if kind == "past" or other.frame in _UNFORESEEN:
            return Utterance(replace(main, tense=Tense.PAST), link, replace(other, tense=Tense.PAST))
        other = replace(other, tense=Tense.HABIT)
        if kind == "please":
            you = Phrase(0, pronoun="you")
            theirs = other.roles | ({"S": you} if who == "same" else {})
            if link == "before" and other.roles.get("O", you).pronoun == "it" and who == "other":
                theirs["S"] = Phrase(doer.mark, pronoun=self.random.choice(("i", "we")))  # who asks does it then
            please = replace(main, tense=Tense.FUTURE, mood=Mood.IMPERATIVE, roles=main.roles | {"S": you})
            return Utterance(please, link, replace(other, roles=theirs))
        modal = {"future": Modal.NONE}.get(kind) or Modal(kind)
        return Utterance(
            replace(main, tense=Tense.HABIT if modal.value else Tense.FUTURE, modal=modal), link, other
        )

    def _to_others(self, clause: Clause, who: str) -> Clause:
        """Not "you proofread it before they submit it to me", nor "before you send it to you"."""
        to = clause.roles.get("T", Phrase(0))
        if not to.pronoun or (to.pronoun != "you" and who != "other"):
            return clause
        while to.pronoun:
            to = self.role(self.words.frames[clause.frame].types["T"], plain=True)
        return replace(clause, roles={**clause.roles, "T": replace(to, adjective="")})

    def _known_thing(self, np: Phrase) -> Phrase:
        """What is awaited is known: "when they solve the problem"."""
        owned = np.det in PERSONS and not (np.noun and self._ownerless(np.noun))
        if not np.noun or owned or np.det not in ("a", "num", "all", "this", *PERSONS):
            return replace(np, adjective="", relative=None)
        many = np.plural and not np.count and np.det != "all"
        return replace(np, adjective="", relative=None, det="the", plural=many, count=0)

    def _ownerless(self, noun: str) -> bool:
        return self.words.nouns[noun].type not in ("family", "feast", "position", "small", "person")

    def _narrowed(self, types: dict[str, list[str]]) -> dict[str, Phrase]:
        """What plays these roles, drawn again where it has to be one of these types."""
        return {
            role: replace(self.noun(self.random.choice(self._nouns(kinds)), False, True), adjective="")
            for role, kinds in types.items()
        }

    def _filled(self, filled: str, event: Clause, key: str) -> dict[str, Phrase]:
        """ "O=person:boss,person:customer", "O=$S": what is named there plays the role."""
        if not filled:
            return {}
        role, _, what = filled.partition("=")
        if not what.startswith("$"):
            fresh = key in self.choices["verbs"]["fresh"]
            thing = self.noun(self.random.choice(self._nouns(what.split(","))), False, True, fresh)
            return {role: replace(thing, adjective="", det="a" if thing.det == "this" else thing.det)}
        known = event.roles[what[1:]]
        if known.pronoun:
            return {role: Phrase(self.mark(), pronoun=known.pronoun)}
        person = self._same_person(known)
        if person is not None:
            return {role: replace(person, refers="")}
        return {role: Phrase(self.mark(), pronoun="it", noun=known.noun, refers=what[1:])}

    def _continued(self) -> Utterance:
        """She wrote the report and sent it to the customer: something is done to the same thing, or not yet."""
        then = self.choices["then"]
        while True:
            self.values, self._mark = {}, 0
            shared = Phrase(self.mark(), pronoun=self.random.choice(("i", "we", "he", "she", "they")))
            key = self.random.choice(list(then))
            first = self.clause([key], Mood.STATEMENT, {Tense.PAST: 1}, False, shared, plain=True)
            thing = replace(first.roles["O"], adjective="")
            if thing.plural or thing.det == "bare" or thing.relative or first.roles["S"].pronoun != shared.pronoun:
                continue
            noun = self.words.nouns[thing.noun]
            nexts = {each: self.words.frames[each.lstrip("&!")] for each in then[key]}
            fitting = [
                each
                for each, frame in nexts.items()
                if self._fits(frame, "O", noun) and not self._echoes(frame, thing)
            ]
            if fitting:
                break
        next_one = self.random.choice(fitting)
        frame = self.words.frames[next_one.lstrip("&!")]
        first = replace(first, roles=first.roles | {"O": thing})
        roles = {"S": first.roles["S"], "O": Phrase(self.mark(), pronoun="it", noun=noun.key, refers="O")}
        if "T" in frame.types:
            roles["T"] = replace(self.role(frame.types["T"], avoid=[shared.pronoun]), adjective="")
        link = "but" if next_one.startswith("!") else "and"
        undone = "!" in next_one
        second = Clause(frame.key, self.mark(), roles, Tense.DONE if undone else Tense.PAST, negative=undone)
        later = frame.key in self.choices["verbs"]["later"]  # not on the day of the first
        return Utterance(replace(first, adverbials=() if later else first.adverbials[:1]), link, second)

    def _reasoned(self) -> Utterance:
        """Because, although: with what its object or its subject is like."""
        reasoned = self._reasoned_frames
        for _ in range(40):
            marks, values = self._mark, dict(self.values)
            first = self.clause(reasoned, Mood.STATEMENT, {Tense.PAST: 6, Tense.FUTURE: 4})
            thing = first.roles.get("O")
            about = None
            if thing is None or self.odds(0.3):
                about = self._same_person(first.roles["S"])
            elif thing.noun and not (thing.plural or thing.det == "bare" or thing.adjective):
                about = Phrase(self.mark(), pronoun="it", noun=thing.noun, refers="O")
            related = any(np.relative for np in first.roles.values())
            if about is None or related or first.modal not in (Modal.NONE, Modal.WANT):
                self._mark, self.values = marks, values
                continue
            although = first.modal is Modal.NONE and first.tense is Tense.PAST and self.odds(0.3)
            link = "although" if although else "because"
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
            momentary = about.refers == "S" and first.tense is not Tense.PAST  # tired now, not tomorrow
            said = [
                each
                for each in first.adverbials[: 0 if momentary else 1]
                if not each.key.startswith(("because", "in the mean", "during", "by mistake"))
                if about.refers != "S" or re.search("yesterday|today|^this |last night|just", each.key)
                if about.refers != "S" or not re.search("time}|clock}", each.key)  # one is not tired at eight
            ]
            this = about.refers == "O" and not although and not first.negative
            if this and thing is not None and thing.det == "a":
                first = replace(first, roles={**first.roles, "O": replace(thing, det="this")})
            return Utterance(replace(first, adverbials=tuple(said)), link, second)
        return self._single()

    def _same_person(self, person: Phrase) -> Phrase | None:
        """The subject as a pronoun, if one knows which."""
        if person.pronoun:
            known = person.pronoun in _GENDERED
            return Phrase(self.mark(), pronoun=person.pronoun, refers="S") if known else None
        if not person.noun or self.words.nouns[person.noun].type not in ("person", "family", "profession"):
            return None
        female = self.words.nouns[person.noun].genders["es"] == "f"
        pronoun = "they" if person.plural else "she" if female else "he"
        return Phrase(self.mark(), pronoun=pronoun, refers="S")

    def _reasons(self, first: Clause, about: Phrase, link: str) -> list[str]:
        """The adjectives that speak for what was done, or against it (although)."""
        wanted = ("+" if (link == "because") != first.negative else "-") + first.frame
        ahead = first.frame in self.choices["verbs"]["judged"] and first.tense is not Tense.PAST
        unknown = self.choices["adjectives"]["judged"] if ahead else ()
        return [
            key
            for key, actions in self.choices["reasons"].items()
            if wanted in actions
            and key not in unknown
            and (key in said_of(about.noun) if about.noun else key in _OF_PEOPLE)
        ]
