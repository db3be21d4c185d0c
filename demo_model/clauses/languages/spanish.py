"""Spanish: ser and estar, personal a, clitics, the subjunctive of usted and after cuando."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar
from zlib import crc32

from demo_model.clauses.languages.spanish_forms import (
    ASKED,
    BEFORE,
    CLITIC,
    EVALUATIVE,
    FOOD,
    LINKS,
    MATRIX,
    MODAL,
    POSSESSIVE,
    REFLEXIVE,
    STRESSED,
    SUBJECT,
    TASTES,
    TONIC,
    SpanishForms,
    plural,
    with_clitics,
)
from demo_model.clauses.marks import bare, marked, phrase
from demo_model.clauses.syntax import Clause, Modal, Mood, Phrase, Predicate, Tense, Utterance
from demo_model.recogniser import NUMBER_WORDS


class Spanish(SpanishForms):
    people_take_a = True
    question_words: ClassVar = ASKED
    joins: ClassVar = {
        "and": ("", ",", "y", ""),
        "or": ("", ",", "o", ""),
        "both": ("tanto", ",", "como", ""),
        "either": ("", ",", "o", ""),
        "etc": ("", ",", ",", ", etcétera"),
    }
    subjects: ClassVar = SUBJECT
    tonics: ClassVar = TONIC
    clitics: ClassVar = CLITIC
    links: ClassVar = LINKS
    degrees: ClassVar = {"very": "muy", "too": "demasiado", "more": "más"}

    def adjective(self, key: str, agreement: str) -> str:
        base = self.words.adjectives[key]["es"].removeprefix("=")
        if " " in base:
            return base.replace("tener", "con")
        return self.ended(base, agreement)

    def it(self, np: Phrase) -> str:
        return ""

    def described(self, np: Phrase) -> str:
        noun = self.noun(np)
        word = noun.cells["es"]
        stressed_a = word.startswith("*")
        word = word.removeprefix("*")
        if np.plural:
            word = noun.plurals.get("es") or plural(word)
        agreement = self.agreement(np)
        if np.adjective:
            base = self.words.adjectives[np.adjective]["es"]
            text = self.adjective(np.adjective, agreement)
            if base in BEFORE or (base in EVALUATIVE and " " in word):
                short = BEFORE.get(base, text) if agreement == "m" else text
                word = phrase("gran" if text == "grande" else short, word)
                stressed_a = False
            else:
                word = phrase(word, text)
        return phrase(self.determiner(np, agreement, stressed_a), word)

    def relative(self, np: Phrase, clause: Clause) -> str:
        person = self.noun(np).type in ("person", "family", "profession")
        que = "a quien" if clause.gap == "O" and person and not np.plural else "que"
        lent = self.ended("prestado", self.agreement(np))
        return phrase(que, re.sub(r"\bprestado\b", lent, self.clause(clause, "")))

    def determiner(self, np: Phrase, agreement: str, stressed_a: bool) -> str:
        female = agreement[0] == "f"
        match np.det:
            case "bare" if self.noun(np).partitive or self.noun(np).type in ("skill", "subject"):
                return ""
            case "the" | "bare" if np.plural:
                return "las" if female else "los"
            case "the" | "bare":
                return "la" if female and not stressed_a else "el"
            case "this":
                return ("estas" if female else "estos") if np.plural else "esta" if female else "este"
            case "all":
                return "todas las" if female else "todos los"
            case "many":
                return "muchas" if female else "muchos"
            case "num":
                return NUMBER_WORDS["es"][np.count - 2]
            case "which":
                return "qué"
            case "what_kind":
                return "qué tipo de"
            case "how_many" | "how_much":
                return "cuánt" + ("a" if female else "o") + ("s" if np.plural else "")
            case "we":
                return ("nuestras" if female else "nuestros") if np.plural else "nuestra" if female else "nuestro"
            case det if det in POSSESSIVE:
                return POSSESSIVE[det] + ("s" if np.plural else "")
            case "none":
                return "ninguna" if female and not stressed_a else "ningún"
            case "a" if not np.plural:
                return "una" if female and not stressed_a else "un"
        return ""

    def clause(self, clause: Clause, order: str, mood: str = "") -> str:
        subject_np = clause.roles.get("S")
        subject = self.subject(clause, order)
        front = self.fronted(clause) if self.may_front(clause) and order == "main" else None
        start = phrase(self.adverbial(front), ",") if front else ""
        if clause.modal is Modal.MIGHT and clause.negative:  # no podría ir: could not go
            said = replace(self.without(clause, front), modal=Modal.NONE, tense=Tense.HABIT)
            return phrase(start, "puede que", self.clause(said, "", "subjunctive"))
        mark = clause.mark
        clitics: list[str] = []
        held: list[str] = []
        if clause.frame == "be":
            what = clause.predicate
            verb = "ser"
            if what is not None and (
                what.place or (what.adjective and self.words.adjectives[what.adjective]["es"].startswith("="))
            ):
                verb = "estar"
            kind = self.noun(subject_np).type if subject_np and subject_np.noun else ""
            adjective = self.words.adjectives[what.adjective]["es"] if what and what.adjective else ""
            if what is not None and what.place and kind == "event":
                verb = "ser"
            elif adjective in TASTES and kind in FOOD and what is not None and what.than is None:
                verb = "estar"
            elif adjective.startswith("tener"):
                verb = "tener"
            rest = [self.predicate(what, subject_np)] if what else []
        elif clause.frame == "exist":
            assert subject_np is not None  # noqa: S101
            verb, subject = "haber", ""
            shown = replace(
                subject_np,
                det=""
                if subject_np.det == "bare" or (clause.negative and subject_np.det == "a")
                else subject_np.det,
            )
            place = clause.predicate.place if clause.predicate else None
            rest = ["" if clause.asked else self.noun_phrase(shown, ""), self.adverbial(place) if place else ""]
            clause = replace(clause, roles={"S": replace(subject_np, plural=False)})
        else:
            parts = self.parts(clause)
            verb, rest = parts.verb, [marked(each, mark) for each in parts.rest]
            fixed = len(parts.fixed) + sum(not each[0] for each in self.complements(clause)[1][:1])
            held = rest[:fixed] if order == "inverted" else []
            rest = rest[len(held) :]
            thing = clause.roles.get("O")
            if parts.fixed == ["prestado"] and thing is not None:
                lent = marked(self.ended("prestado", self.agreement(thing)), mark)
                held, rest = ([lent], rest) if held else ([], [lent, *rest[1:]])
            clitics = [each[2:] for each in sorted(parts.clitics)]
            dative = next((np for _, how, np in self.complements(clause)[1] if how.endswith(".dat") and np), None)
            if dative is not None and dative.pronoun in ("", "who") and clause.mood is not Mood.IMPERATIVE:
                clitics.insert(0, "les" if dative.plural else "le")
        if len(clitics) > 1 and bare(clitics[0]) in ("le", "les") and bare(clitics[1]) in ("lo", "la"):
            clitics[0] = "se"
        if verb.startswith("~"):
            return self.pleasing(clause, verb[1:], order)
        if verb.startswith("se_"):
            verb = verb[3:]
            clitics.insert(0, REFLEXIVE.get(clause.person, "se"))
        if clause.mood in (Mood.IMPERATIVE, Mood.LETS, Mood.REQUEST):
            return self.asking(clause, verb, clitics, rest)
        person = clause.person
        past = clause.tense is Tense.PAST
        no = ("todavía no" if clause.tense is Tense.DONE else "no") if clause.negative else ""
        ya = "ya" if clause.tense is Tense.DONE and not clause.negative else ""
        inner = ""
        if clause.modal is not Modal.NONE:
            modal = MODAL[clause.modal]
            tense = (
                "conditional"
                if clause.modal in (Modal.SHOULD, Modal.MIGHT)
                else ("preterite" if clause.modal is Modal.MUST else "imperfect")
                if past
                else mood or "present"
            )
            que = "que" if clause.modal is Modal.MUST else ""
            finite, inner = self.form(modal, tense, person), phrase(que, marked(verb, mark))
        else:
            match clause.tense:
                case Tense.PAST:
                    tense = "imperfect" if self.stative(clause) else "preterite"
                    finite = marked(self.form(verb, tense, person), mark)
                case Tense.DONE:
                    finite = {"1s": "he", "1p": "hemos", "3p": "han"}.get(person, "ha")
                    if mood == "imperfect":
                        finite = self.form("haber", mood, person)
                    inner = marked(self.form(verb, "participle", person), mark)
                case Tense.NOW:
                    finite, inner = (
                        self.form("estar", mood if mood == "imperfect" else "present", person),
                        marked(self.form(verb, "gerund", person), mark),
                    )
                case Tense.FUTURE if mood != "subjunctive":
                    finite = marked(self.form(verb, "conditional" if mood else "future", person), mark)
                case _:
                    finite = marked(self.form(verb, mood or "present", person), mark)
        if verb == "haber" and finite.startswith("ha") and clause.tense is Tense.HABIT and mood != "imperfect":
            finite = "haya" if mood else "hay"
        tail = phrase(*rest, self.ending(self.without(clause, front)))
        often = self.places(clause, "frequency")
        verbs = phrase(no, ya, *clitics, finite, inner)
        if bare(often) == "regularmente":
            often, verbs = "", phrase(verbs, often)
        if order == "inverted" and clause.modal is not Modal.NONE and (tail or held):
            return phrase(often, no, *clitics, finite, subject, inner, *held, tail)
        if order == "inverted" and subject_np is not None and subject_np.pronoun:
            return phrase(often, verbs, subject, *held, tail)
        if order == "inverted":
            return phrase(often, verbs, *held, subject, tail)
        return phrase(start, subject, often, verbs, tail)

    def subject(self, clause: Clause, order: str) -> str:
        """He and she, if another one is spoken of, or at every third beginning: learners meet both."""
        np = clause.roles.get("S")
        if clause.gap == "S" or np is None or np.pronoun in ("i", "we", "they"):
            return ""
        noun = "".join(each.noun for each in clause.roles.values())
        begins = order == "main" and clause.mood is Mood.STATEMENT and not clause.embedded
        begins = begins and crc32(f"{clause.frame} {noun} {clause.tense}".encode()) % 3 == 0
        if np.pronoun in ("he", "she") and np.det != STRESSED and not begins:
            return ""
        return self.noun_phrase(np, "S")

    def utterance(self, said: Utterance) -> str:
        if said.second is not None:
            first, second = said.first, said.second
            said = replace(said, first=self.apart(first, second), second=self.apart(second, first))
        thing = said.first.roles.get("O")
        over = said.first.tense in (Tense.PAST, Tense.DONE) and said.first.modal is Modal.NONE
        if said.second is None and said.first.negative and over and thing is not None and thing.det == "a":
            none = {**said.first.roles, "O": replace(thing, det="none")}
            said = replace(said, first=replace(said.first, roles=none))
        return super().utterance(said)

    def apart(self, clause: Clause, other: Clause) -> Clause:
        """He and she are said if the other clause is about a woman and a man."""
        mine, theirs = clause.roles.get("S"), other.roles.get("S")
        if mine is None or theirs is None or mine.pronoun not in ("he", "she") or theirs.person != "3s":
            return clause
        clear = mine.refers or theirs.refers or theirs.name or theirs.pronoun == "weather"
        if clear or self.agreement(mine)[0] == self.agreement(theirs)[0]:
            return clause
        return replace(clause, roles={**clause.roles, "S": replace(mine, det=STRESSED)})

    def governed(self, preposition: str, np: Phrase, frame: str) -> str:
        """Hablar de innovación, but la innovación es importante."""
        return super().governed(
            preposition, replace(np, det="") if preposition == "de" and np.det == "bare" else np, frame
        )

    def pleasing(self, clause: Clause, verb: str, order: str) -> str:
        """A mi abuela le gusta el té: what is liked is the subject."""
        subject, thing = clause.roles["S"], clause.roles.get("O")
        clitic = CLITIC[subject.pronoun][1] if subject.pronoun else "les" if subject.plural else "le"
        person = "3p" if thing is not None and thing.plural else "3s"
        if thing is not None and thing.det == "bare":
            thing = replace(thing, det="the")
        finite = marked(
            self.form(verb, "imperfect" if clause.tense is Tense.PAST else "present", person), clause.mark
        )
        if thing is not None and thing.members:
            thing = replace(thing, members=tuple(replace(each, det="the") for each in thing.members))
        whom = "" if subject.pronoun in ("i", "we") else self.governed("a", subject, clause.frame)
        no = "no" if clause.negative else ""
        return phrase(whom, no, clitic, finite, self.noun_phrase(thing, "") if thing else "", self.ending(clause))

    def asking(self, clause: Clause, verb: str, clitics: list[str], rest: list[str]) -> str:
        tail = phrase(*rest, self.ending(clause))
        please = "" if clause.mood is Mood.LETS else "por favor ,"
        if clause.negative:
            form = self.form(verb, "subjunctive", "1p" if clause.mood is Mood.LETS else "2")
            return phrase(please, "no", *clitics, marked(form, clause.mark), tail)
        if clause.mood is Mood.IMPERATIVE:
            form = with_clitics(self.form(verb, "subjunctive", "2"), [bare(each) for each in clitics])
            return phrase(please, marked(form, clause.mark), tail)
        attached = marked(verb + "".join(map(bare, clitics)), clause.mark)
        return phrase("podría" if clause.mood is Mood.REQUEST else "vamos a", attached, tail)

    def better(self, key: str, agreement: str) -> str:
        base = {"bueno": "mejor", "malo": "peor"}.get(self.words.adjectives[key]["es"], "")
        return base + "es" if base and agreement.endswith("p") else base

    def idiom(self, what: Predicate) -> str:
        """Tener mucho sueño, for "to be very sleepy"."""
        base = self.words.adjectives[what.adjective]["es"]
        if not base.startswith("tener "):
            return ""
        noun = base.removeprefix("tener ")
        much = "mucho" if noun == "sueño" else "mucha"
        return phrase({"very": much, "too": f"demasiad{much[-1]}", "more": "más"}.get(what.degree, ""), noun)

    def job(self, np: Phrase) -> Phrase:
        return replace(np, det="") if self.noun(np).type in ("person", "profession") else np

    def main(self, clause: Clause) -> str:
        if clause.mood is Mood.WH:
            return self.asked(clause)
        return self.clause(clause, "inverted" if clause.mood is Mood.YES_NO and clause.person == "2" else "main")

    def asked(self, clause: Clause) -> str:
        """A question with a question word, direct or indirect."""
        plain = replace(clause, mood=Mood.STATEMENT)
        wanted = clause.wanted
        if wanted is not None and wanted.det == "whose":
            thing = replace(wanted, det="the", relative=clause.owned)
            return phrase("de quién", "son" if wanted.plural else "es", self.noun_phrase(thing, ""))
        if clause.asked == "S" and clause.frame != "exist":
            return phrase("" if wanted else "quién", self.clause(plain, ""))
        order = "" if clause.asked == "why" and clause.embedded else "inverted"
        return phrase(self.question(clause), self.clause(plain, order))

    def answered(self, link: str, clause: Clause) -> str:
        match link:
            case "not_yet":
                return "no , todavía no"
            case "too" | "neither":
                subject = clause.roles["S"]
                said = marked("yo", subject.mark) if subject.pronoun == "i" else self.noun_phrase(subject, "S")
                return phrase(said, "también" if link == "too" else "tampoco")
        person, past = clause.person, clause.tense is Tense.PAST
        if clause.modal is not Modal.NONE:
            tense = "conditional" if clause.modal is Modal.SHOULD else "imperfect" if past else "present"
            que = "que" if clause.modal is Modal.MUST else ""
            verbs = phrase(self.form(MODAL[clause.modal], tense, person), que, "hacerlo")
        elif clause.tense is Tense.DONE:
            verbs = phrase("ya" if link == "yes" else "", "lo", self.form("haber", "present", person), "hecho")
        else:
            verbs = phrase("lo", self.form("hacer", "preterite" if past else "future", person))
        return phrase("sí ," if link == "yes" else "no , no", verbs)

    def ends(self, clause: Clause) -> tuple[str, str]:
        return ("¿", "?") if clause.mood in (Mood.YES_NO, Mood.WH, Mood.REQUEST) else ("", ".")

    def reported(self, said: Utterance, speaker: Phrase) -> str:
        first, person = said.first, speaker.person
        subject = self.noun_phrase(speaker, "S")
        if speaker.pronoun and (person[0] != "3" or speaker.mark % 4):
            subject = ""
        about = first.roles.get("S")
        if about is not None and {speaker.pronoun, about.pronoun} == {"he", "she"}:
            first = replace(first, roles={**first.roles, "S": replace(about, det=STRESSED)})
        if said.link == "say":
            said_so = self.clause(first, "", "imperfect")
            return phrase(subject, self.form("decir", "preterite", person), "que", said_so, ".")
        verb = self.form(MATRIX[said.link], "present", person)
        if said.link != "whether":
            mood = "subjunctive" if said.link == "hope" and first.tense is not Tense.PAST else ""
            return phrase(subject, verb, "que", self.clause(first, "", mood), ".")
        inner = self.asked(first) if first.asked else phrase("si", self.clause(first, ""))
        return phrase(subject, "no", verb, inner, ".")

    def continued(self, first: Clause, second: Clause) -> Clause:
        """The same pronoun is not said twice."""
        about = second.roles.get("S")
        same = about is not None and about.pronoun and about.pronoun == first.roles["S"].pronoun
        return replace(second, gap="S") if same else second

    def link(self, said: Utterance) -> str:
        """Cuando hacía calor, but como hacía calor, fue a la playa."""
        second = said.second
        before = second is not None and second.tense is Tense.PAST and self.stative(second)
        return "como" if before and said.link == "when" else super().link(said)

    def opened(self, said: Utterance) -> str:
        if said.link == "not_yet":  # ¿se ha inscrito? Todavía no
            said = replace(said, first=replace(said.first, tense=Tense.DONE))
        return super().opened(said)

    def subordinate(self, said: Utterance, second: Clause) -> str:
        later = said.link == "when" and second.tense in (Tense.HABIT, Tense.FUTURE)
        return self.clause(second, "", "subjunctive" if later and said.first.tense is Tense.FUTURE else "")

    def rewrite(self, before: str, after: str) -> tuple[str, str] | None:
        low = before.lower()
        if low in ("de", "a") and after == "el":
            return before + "l", ""
        if low == "con" and after == "mí":
            return "conmigo", ""
        if low == "y" and re.match(r"h?[ií](?![aeo])", after.lower()):
            return "e", after
        if low == "o" and re.match(r"h?[oó]", after.lower()):
            return "u", after
        return None
