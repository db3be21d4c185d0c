"""French: elision, contraction, ne … pas, clitics, participles that agree."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from demo_model.clauses.languages.french_forms import (
    AROUND,
    ASKED,
    CLITIC,
    LINKS,
    MODAL,
    POSSESSIVE,
    REFLEXIVE,
    SUBJECT,
    TONIC,
    FrenchForms,
)
from demo_model.clauses.marks import bare, marked, phrase
from demo_model.clauses.syntax import ASKED_FRAMES, Clause, Modal, Mood, Phrase, Predicate, Tense, Utterance

_SOON = ("in {duration}", "in a few minutes", "in half an hour", "tonight")
"""What happens then is said with "aller"."""
_AVOIDED = ("avoid", "look_forward")
"""Frames that are not said with "en train de"."""
_UTMOST = ("delicious", "wonderful")
"""Adjectives that are not said with "très"."""
_AUTHORED = ("document", "text", "data", "plan")
"""Types of things of which one asks whose they are with "de qui", not "à qui"."""
_LIKES = ("aimer O", "détester O", "préférer O")
_HAD = {"affamé": "faim", "assoiffé": "soif", "somnolent": "sommeil"}
"""What one is → what one has in French."""
_BETTER = {"bon": "meilleur", "mauvais": "pire", "nouveau": "plus récent", "en bonne santé": "en meilleure santé"}
_MATRIX = {"think": "penser", "know": "savoir", "hope": "espérer", "whether": "savoir"}
_CAUSED = re.compile(r"^(?:faire|laisser)_\w+(?:er|ir|re) ")
_SOME = re.compile(r"^(?:du |des |une? |de la (?!part)|de (?=l'))(?:l')?")


class French(FrenchForms):
    question_words: ClassVar = ASKED
    joins: ClassVar = {
        "and": ("", ",", "et", ""),
        "or": ("", ",", "ou", ""),
        "both": ("à la fois", ",", "et", ""),
        "either": ("soit", ", soit", ", soit", ""),
        "etc": ("", ",", ",", "et ainsi de suite"),
    }
    subjects: ClassVar = SUBJECT
    tonics: ClassVar = TONIC
    clitics: ClassVar = CLITIC
    links: ClassVar = LINKS
    arounds: ClassVar = AROUND
    during = "pendant"
    why = "c'est pour cela que"
    of_it: ClassVar = {"de": "en", "à": "y", "sur": "y"}
    graver: ClassVar = {"big": "serious"}
    degrees: ClassVar = {"very": "très", "too": "trop", "more": "plus"}

    def relative(self, np: Phrase, clause: Clause) -> str:
        return phrase("qui" if clause.gap == "S" else "que", self.clause(clause, "", antecedent=np))

    def clause(self, clause: Clause, order: str, mood: str = "", antecedent: Phrase | None = None) -> str:
        clause = self.settled(clause)
        subject_np = clause.roles.get("S")
        both, perhaps = "", "peut-être" if clause.modal is Modal.MIGHT else ""
        if perhaps:
            clause = replace(clause, modal=Modal.NONE, tense=Tense.FUTURE)
        recent = [each for each in clause.adverbials if each.key == "just now"]
        recent = recent if clause.tense is Tense.PAST and not (clause.negative or clause.asked) else []
        clause = self.without(clause, recent[0]) if recent else clause
        if subject_np is not None and subject_np.link == "both":
            both = "toutes les deux" if self.agreement(subject_np)[0] == "f" else "tous les deux"
            subject_np = replace(subject_np, link="and")
        subject = "" if clause.gap == "S" or subject_np is None else self.noun_phrase(subject_np, "S")
        mark = clause.mark
        rest: list[str]
        clitics: list[str] = []
        if clause.frame == "be":
            what = clause.predicate
            if what is not None and what.degree == "very" and what.adjective in _UTMOST:
                clause = replace(clause, predicate=replace(what, degree=""))
            has = what is not None and self.words.adjectives.get(what.adjective, {}).get("fr") in _HAD
            subject = "ce" if subject_np is not None and subject_np.pronoun == "that" else subject
            verb, rest = (
                "avoir" if has else "être",
                [self.predicate(clause.predicate, subject_np)] if clause.predicate else [],
            )
        elif clause.frame == "exist":
            assert subject_np is not None  # noqa: S101
            if clause.negative and subject_np.det in ("a", "bare", ""):
                subject_np = replace(subject_np, det="de")
            verb, clitics, subject = "avoir", ["y"], "il"
            place = clause.predicate.place if clause.predicate else None
            rest = [self.noun_phrase(subject_np, ""), self.adverbial(place) if place else ""]
            rest = rest[1:] if clause.asked else rest
            clause = replace(clause, roles={"S": replace(subject_np, plural=False)})
        else:
            if self.words.frames[clause.frame].cells["fr"] in _LIKES and "O" in clause.roles:
                clause = replace(clause, roles={**clause.roles, "O": _liked(clause.roles["O"])})
            if (
                clause.negative
                and "O" in clause.roles
                and (
                    clause.roles["O"].det in ("a", "")
                    or (clause.roles["O"].det == "bare" and self.noun(clause.roles["O"]).partitive)
                )
                and clause.roles["O"].noun
            ):
                direct = " O" in self.words.frames[clause.frame].cells["fr"]
                if direct:
                    clause = replace(clause, roles={**clause.roles, "O": replace(clause.roles["O"], det="de")})
            parts = self.parts(clause)
            if clause.negative and clause.frame not in ("be", "exist"):
                parts.rest = [_SOME.sub("de ", each) for each in parts.rest]
            verb, rest = parts.verb, [marked(each, mark) for each in parts.rest]
            clitics = _ordered(parts.clitics)
            if verb == "+aller" and parts.fixed:  # aller le chercher
                rest[0], clitics = phrase(*clitics, rest[0]), []
        if subject_np is not None and subject_np.members and subject_np.person == "1p" and order != "inverted":
            subject = phrase(subject, ", nous")
        if clause.tense is Tense.NOW and (clause.asked or clause.frame in _AVOIDED or verb[0] == "+"):
            clause = replace(clause, tense=Tense.HABIT)
        aux = "avoir"
        if verb.startswith("+"):
            aux, verb = "être", verb[1:]
        if verb.startswith("se_"):
            aux, verb = "être", verb[3:]
            clitics.insert(0, "se" if self.casual(clause) else REFLEXIVE.get(clause.person, "se"))
        if clause.mood in (Mood.IMPERATIVE, Mood.LETS, Mood.REQUEST):
            return self.asking(clause, verb, clitics, rest)
        soon = [each for each in clause.adverbials if each.key in ("soon", "recently")]
        clause = self.without(clause, soon[0]) if soon else clause
        middle = phrase(both, self.places(clause, "frequency"), *map(self.adverbial, soon))
        if clause.tense is Tense.DONE and not clause.negative:
            middle = phrase(middle, "déjà")
        pas = ("pas encore" if clause.tense is Tense.DONE else "pas") if clause.negative else ""
        before, finite, inner = self.group(clause, verb, aux, clitics, subject_np, antecedent, mood)
        if recent:
            tense = "imperfect" if mood == "said" else "present"
            before, finite = [], self.form("venir", tense, clause.person)
            inner = phrase("de", *_kept(clitics), marked(verb, mark))
        front = self.fronted(clause) if self.may_front(clause) and order == "main" else None
        start = phrase(self.adverbial(front), ",") if front else ""
        ne = "ne" if clause.negative else ""
        tail = self.tail(self.without(clause, front), rest)
        if order == "inverted":
            return phrase(finite, subject, tail)
        return phrase(start, subject, ne, *before, finite, perhaps, pas, middle, inner, tail)

    def group(
        self,
        clause: Clause,
        verb: str,
        aux: str,
        clitics: list[str],
        subject: Phrase | None,
        antecedent: Phrase | None,
        mood: str,
    ) -> tuple[list[str], str, str]:
        """What stands before the finite verb, that verb, and what follows "pas".

        mood: said, after "a dit que"; over, of what will have been done.
        """
        mark, person, past, said = clause.mark, clause.person, clause.tense is Tense.PAST, mood == "said"
        infinitive = marked(verb, mark)
        if mood == "infinitive":
            return [], "", phrase(*_kept(clitics), infinitive)
        if mood == "subjunctive" and clause.modal is Modal.NONE:
            return clitics, marked(self.form(verb, mood, person), mark), ""
        if clause.modal is not Modal.NONE:
            now = "imperfect" if said else "present"
            if clause.modal is Modal.CAN and past and clause.negative:  # je n'ai pas pu venir
                return [], self.form("avoir", now, person), phrase("pu", *clitics, infinitive)
            tense = "conditional" if clause.modal is Modal.SHOULD else "imperfect" if past else now
            tense = "future" if clause.modal is Modal.MUST and clause.tense is Tense.FUTURE else tense
            tense = mood if mood == "subjunctive" else tense
            if clause.modal is Modal.MUST and clause.negative:
                return [], self.form("avoir", tense, person), phrase("besoin de", *_kept(clitics), infinitive)
            if clause.modal is Modal.MUST and past:
                return [], self.form("avoir", now, person), phrase("dû", *clitics, infinitive)
            return [], self.form(MODAL[clause.modal], tense, person), phrase(*clitics, infinitive)
        match clause.tense:
            case Tense.PAST if (
                self.stative(clause) and mood != "having" and verb != "comprendre" and not self.lasted(clause)
            ):
                return clitics, marked(self.form(verb, "imperfect", person), mark), ""
            case Tense.PAST | Tense.DONE | Tense.PRIOR:
                participle = self.form(verb, "participle", person)
                if verb in ("faire", "laisser") and _CAUSED.search(self.words.frames[clause.frame].cells["fr"]):
                    pass  # les a fait frire
                elif aux == "être":
                    participle = self.agreed(participle, self.agreement(subject) if person != "2" else "m")
                elif clause.gap != "O" and (clitic := self.before_verb(clause)) is not None:
                    participle = self.agreed(participle, self.agreement(clitic))
                elif antecedent is not None and clause.gap == "O":
                    participle = self.agreed(participle, self.agreement(antecedent))
                elif clause.asked == "O" and (asked := self.direct_object(clause)) is not None:
                    participle = self.agreed(participle, self.agreement(asked))
                said = said or clause.tense is Tense.PRIOR
                tense = "imperfect" if said else "future" if mood == "over" else "present"
                finite = aux if mood == "having" else self.form(aux, tense, person)
                return clitics, finite, marked(participle, mark)
            case Tense.NOW:
                inner = phrase("en train de", *_kept(clitics), infinitive)
                return [], self.form("être", "imperfect" if said else "present", person), inner
            case Tense.FUTURE if (
                not (said or mood)
                and verb != "aller"
                and (self.intended(clause) or any(each.key in _SOON for each in clause.adverbials))
            ):
                return [], self.form("aller", "present", person), phrase(*clitics, infinitive)
            case Tense.FUTURE:
                return clitics, marked(self.form(verb, "conditional" if said else "future", person), mark), ""
        return clitics, marked(self.form(verb, "imperfect" if said else "present", person), mark), ""

    def tail(self, clause: Clause, rest: list[str]) -> str:
        """What follows the verb: rapidement before what it takes, avec soin after it."""
        at_once = [each for each in clause.adverbials if each.key in ("quickly", "immediately")]
        others = tuple(each for each in clause.adverbials if each not in at_once)
        ending = self.ending(replace(clause, adverbials=others))
        return phrase(*map(self.adverbial, at_once), *rest, ending)

    def before_verb(self, clause: Clause) -> Phrase | None:
        """The direct object that is a clitic."""
        if clause.frame in ("be", "exist"):
            return None
        np = self.direct_object(clause)
        return np if np is not None and np.pronoun not in ("", "that", "who") else None

    def direct_object(self, clause: Clause) -> Phrase | None:
        """What a participle may agree with. "What kind of car" is a kind, so masculine."""
        for _, how, np in self.complements(clause)[1] if clause.frame not in ("be", "exist") else ():
            if how == "." and np is not None and np.det != "what_kind":
                return np
        return None

    def asking(self, clause: Clause, verb: str, clitics: list[str], rest: list[str]) -> str:
        infinitive = marked(verb, clause.mark)
        tail = self.tail(clause, rest)
        ne = "ne pas" if clause.negative else ""
        match clause.mood:
            case Mood.REQUEST:
                return phrase("pourriez-vous", *clitics, infinitive, tail)
            case Mood.LETS if self.casual(clause):
                verb = marked(self.form(verb, "imperfect", "3s"), clause.mark)
                return phrase("et si on", *clitics, verb, tail)
            case Mood.LETS if clause.negative:
                return phrase("ne", *clitics, marked(self.form(verb, "present", "1p"), clause.mark), "pas", tail)
        if clause.negative:
            return phrase("merci de", ne, *clitics, infinitive, tail)
        after = sorted(map(bare, clitics), key=lambda each: each not in ("le", "la", "les"))
        words = [
            self.form(verb, "present", "1p" if clause.mood is Mood.LETS else "2"),
            *("moi" if each == "me" else each for each in after),
        ]
        return phrase(marked("-".join(words), clause.mark), tail)

    def casual(self, clause: Clause) -> bool:
        """Everyday things are proposed with a question."""
        return clause.mood is Mood.LETS and not clause.negative and "daily" in self.words.frames[clause.frame].tags

    def governed(self, preposition: str, np: Phrase, frame: str) -> str:
        if preposition == "de la part de" and np.pronoun in POSSESSIVE:
            return phrase("de", marked(POSSESSIVE[np.pronoun].split()[1], np.mark), "part")
        if frame == "talk_about" and np.det == "bare":
            np = replace(np, det="name")
        if np.noun and preposition in ("de", "à"):
            some = np.det == "bare" and self.noun(np).partitive
            if preposition == "à" and some:  # allergique à la moutarde
                np = replace(np, det="the")
            elif some or (np.plural and np.det in ("", "a")):  # besoin de sauce soja
                np = replace(np, det="name")
        return super().governed(preposition, np, frame)

    def better(self, key: str, agreement: str) -> str:
        base = _BETTER.get(self.words.adjectives[key]["fr"].split("/")[0], "")
        if not base or " " in base.removeprefix("plus "):
            return base
        female = agreement[0] == "f" and not base.endswith("e")
        return base + ("e" if female else "") + ("s" if agreement.endswith("p") else "")

    def idiom(self, what: Predicate) -> str:
        """Avoir très faim, for "to be very hungry"."""
        noun = _HAD.get(self.words.adjectives[what.adjective]["fr"], "")
        return phrase(self.degrees.get(what.degree, ""), noun) if noun else ""

    def job(self, np: Phrase) -> Phrase:
        return replace(np, det="name")

    def main(self, clause: Clause) -> str:
        if clause.mood is Mood.YES_NO:
            return phrase("est-ce que", self.clause(clause, ""))
        if clause.mood is Mood.WH:
            return self.asked(clause, "est-ce que")
        return self.clause(clause, "main")

    def asked(self, clause: Clause, link: str = "") -> str:
        """A question with a question word. link: est-ce que, if it is a direct one."""
        plain, wanted = replace(clause, mood=Mood.STATEMENT), clause.wanted
        if wanted is not None and wanted.det == "whose":
            thing = replace(wanted, det="the", relative=clause.owned)
            whose = "de qui" if self.noun(wanted).type in _AUTHORED else "à qui"
            return phrase(whose, "sont" if wanted.plural else "est", self.noun_phrase(thing, ""))
        if link and clause.frame == "exist":
            return self.clause(replace(plain, asked=""), "")
        if clause.asked == "S" and clause.frame != "exist":
            return phrase("" if wanted else "qui", self.clause(plain, ""))
        if clause.frame in ASKED_FRAMES:
            return phrase(ASKED[clause.asked], self.clause(plain, "inverted"))
        if clause.asked == "O" and wanted is None and not link:
            return phrase("ce que", self.clause(plain, ""))
        return phrase(self.question(clause), link, self.clause(plain, ""))

    def opened(self, said: Utterance) -> str:
        if said.link == "yes" and said.second is not None:  # "c'est fait" is no answer to "yesterday"
            said = replace(said, second=replace(said.second, adverbials=said.first.adverbials))
        return super().opened(said)

    def answered(self, link: str, clause: Clause) -> str:
        subject = clause.roles["S"]
        match link:
            case "not_yet":
                return "non , pas encore"
            case "too" | "neither":
                return phrase(self.noun_phrase(subject, "after"), "aussi" if link == "too" else "non plus")
        yes = link == "yes"
        match clause.modal:
            case Modal.NONE:
                done = clause.tense is not Tense.FUTURE and not self.places(clause, "time")
                return phrase("oui", ", c'est fait" if done else "") if yes else "non"
            case Modal.MUST:
                return "oui , il le faut" if yes else "non , ce n'est pas nécessaire"
        verb = self.form(
            MODAL[clause.modal], "conditional" if clause.modal is Modal.SHOULD else "present", clause.person
        )
        said = self.noun_phrase(subject, "S")
        verb = phrase(verb, "bien" if yes and clause.modal is Modal.WANT else "")
        return phrase("oui ,", said, verb) if yes else phrase("non ,", said, "ne", verb, "pas")

    def ends(self, clause: Clause) -> tuple[str, str]:
        if clause.mood is Mood.IMPERATIVE and not clause.negative:
            return "", ", s'il vous plaît ."
        return "", "\u2060?" if self.casual(clause) or clause.mood in (Mood.YES_NO, Mood.WH, Mood.REQUEST) else "."

    def reported(self, said: Utterance, speaker: Phrase) -> str:
        first, person = said.first, speaker.person
        subject = self.noun_phrase(speaker, "S")
        if said.link == "say":
            return phrase(
                subject, self.form("avoir", "present", person), "dit que", self.clause(first, "", "said"), "."
            )
        verb = self.form(_MATRIX[said.link], "present", person)
        if said.link != "whether":
            return phrase(subject, verb, "que", self.clause(first, ""), ".")
        inner = self.asked(first) if first.asked else phrase("si", self.clause(first, ""))
        return phrase(subject, "ne", verb, "pas", inner, ".")

    def utterance(self, said: Utterance) -> str:
        first = said.first
        if said.link == "after" and first.modal is Modal.MUST and first.tense is Tense.HABIT:
            said = replace(said, first=replace(first, tense=Tense.FUTURE))  # je devrai le traduire
        return super().utterance(said)

    def around(self, said: Utterance, second: Clause) -> str:
        """After is said of what is over: après avoir lu, une fois qu'elle aura lu, après qu'elle a lu."""
        past = second.tense is Tense.PAST
        if said.link == "after":
            second = replace(second, tense=Tense.PAST)
        if said.link == "after" and past and not self.same_subject(said):
            return phrase("après que", self.clause(second, ""))
        return super().around(said, second)

    def link(self, said: Utterance) -> str:
        """Dès que of what is asked for, alors que of what was so."""
        if said.link == "when" and said.first.mood in (Mood.IMPERATIVE, Mood.REQUEST):
            return "dès que"
        if said.link == "although" and said.second is not None and said.second.tense is Tense.PAST:
            return "alors que"
        return super().link(said)

    def subordinate(self, said: Utterance, second: Clause) -> str:
        later = said.link == "when" and said.first.tense is Tense.FUTURE and second.tense is Tense.HABIT
        second = self.about(said.first, second)
        if later and not self.stative(second) and "S" in second.roles and second.roles["S"].pronoun != "weather":
            return self.clause(replace(second, tense=Tense.PAST), "", "over")
        return self.clause(replace(second, tense=Tense.FUTURE) if later else second, "")


def _liked(np: Phrase) -> Phrase:
    """What one likes is all of its kind: aimer le café."""
    return replace(np, det="the" if np.det == "bare" else np.det, members=tuple(map(_liked, np.members)))


def _ordered(clitics: list[str]) -> list[str]:
    """me le, te la, but le lui, la leur."""
    third = any(bare(each[2:]) in ("lui", "leur") for each in clitics)
    return [
        each[2:] for each in sorted(clitics, key=lambda each: (each[0] == "y", each.startswith("d:") == third))
    ]


def _kept(clitics: list[str]) -> list[str]:
    """After "de": de les lire, not des lire."""
    return ["*" + each if bare(each) in ("le", "les") else each for each in clitics]
