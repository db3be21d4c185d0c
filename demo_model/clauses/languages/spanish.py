"""Spanish: ser and estar, personal a, clitics, the subjunctive of usted and after cuando."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from demo_model.clauses.languages.spanish_forms import SpanishForms, plural
from demo_model.clauses.marks import bare, marked, phrase
from demo_model.clauses.syntax import Clause, Modal, Mood, Phrase, Tense, Utterance
from demo_model.recogniser import NUMBER_WORDS

_SUBJECT = {
    "i": "yo",
    "we": "nosotros",
    "you": "usted",
    "he": "él",
    "she": "ella",
    "they": "ellos",
    "that": "eso",
    "weather": "",
    "who": "quién",
}
_TONIC = {"i": "mí", "we": "nosotros", "you": "usted", "he": "él", "she": "ella", "they": "ellos", "that": "eso"}
_TONIC["who"] = "quién"
_CLITIC = {
    "i": ("me", "me"),
    "we": ("nos", "nos"),
    "you": ("lo", "le"),
    "he": ("lo", "le"),
    "she": ("la", "le"),
    "they": ("los", "les"),
}
_POSSESSIVE = {"i": "mi", "he": "su", "she": "su", "you": "su", "they": "su"}
_REFLEXIVE = {"1s": "me", "1p": "nos"}
_BEFORE = {
    "bueno": "buen",
    "malo": "mal",
    "primero": "primer",
    "último": "último",
    "otro": "otro",
    "próximo": "próximo",
    "mismo": "mismo",
    "gran": "gran",
}
_LINKS = {
    "because": "porque",
    "if": "si",
    "when": "cuando",
    "although": "aunque",
    "and": "y",
    "but": "pero",
    "so": "así que",
}
_ASKED = {
    **{"when": "cuándo", "where": "dónde", "why": "por qué", "how": "cómo", "S": "quién", "O": "qué"},
    **{"how_long": "cuánto tiempo", "how_often": "con qué frecuencia", "amount": "cuánto"},
    **{"age": "cuántos años", "owner": "de quién", "place": "dónde"},
}
_MATRIX = {"think": "creer", "know": "saber", "hope": "esperar", "whether": "saber"}
_MODAL = {
    Modal.CAN: "poder",
    Modal.MUST: "tener",
    Modal.WANT: "querer",
    Modal.SHOULD: "deber",
    Modal.MIGHT: "poder",
}


class Spanish(SpanishForms):
    people_take_a = True
    question_words: ClassVar = _ASKED
    joins: ClassVar = {
        "and": ("", ",", "y", ""),
        "or": ("", ",", "o", ""),
        "both": ("tanto", ",", "como", ""),
        "either": ("o", ",", "o", ""),
        "etc": ("", ",", ",", ", etcétera"),
    }
    subjects: ClassVar = _SUBJECT
    tonics: ClassVar = _TONIC
    clitics: ClassVar = _CLITIC
    links: ClassVar = _LINKS
    degrees: ClassVar = {"very": "muy", "too": "demasiado", "more": "más"}

    def adjective(self, key: str, agreement: str) -> str:
        base = self.words.adjectives[key]["es"].split("/")[0].removeprefix("=")
        if " " in base:
            return base
        if agreement[0] == "f":
            if base.endswith("o"):
                base = base[:-1] + "a"
            elif base.endswith("dor"):
                base += "a"
        return plural(base) if agreement.endswith("p") else base

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
            base = self.words.adjectives[np.adjective]["es"].split("/")[0].removeprefix("=")
            text = self.adjective(np.adjective, agreement)
            if base in _BEFORE:
                word = phrase(_BEFORE[base] if agreement == "m" else text, word)
                stressed_a = False
            else:
                word = phrase(word, text)
        return phrase(self.determiner(np, agreement, stressed_a), word)

    def relative(self, np: Phrase, clause: Clause) -> str:
        person = self.noun(np).type in ("person", "family", "profession")
        que = "a quien" if clause.gap == "O" and person and not np.plural else "que"
        return phrase(que, self.clause(clause, ""))

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
            case det if det in _POSSESSIVE:
                return _POSSESSIVE[det] + ("s" if np.plural else "")
            case "a" if not np.plural:
                return "una" if female and not stressed_a else "un"
        return ""

    def clause(self, clause: Clause, order: str, mood: str = "") -> str:
        subject_np = clause.roles.get("S")
        subject = "" if clause.gap == "S" or subject_np is None else self.noun_phrase(subject_np, "S")
        if subject_np is not None and subject_np.pronoun in ("i", "we"):
            subject = ""
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
            if (
                what is not None
                and what.place
                and subject_np
                and subject_np.noun
                and self.noun(subject_np).type == "event"
            ):
                verb = "ser"
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
            held = rest[: len(parts.fixed)] if order == "inverted" else []
            rest = rest[len(held) :]
            clitics = [each[2:] for each in sorted(parts.clitics)]
            dative = next((np for _, how, np in self.complements(clause)[1] if how.endswith(".dat") and np), None)
            if dative is not None and dative.pronoun in ("", "who"):
                clitics.insert(0, "les" if dative.plural else "le")
        if len(clitics) > 1 and bare(clitics[0]) in ("le", "les") and bare(clitics[1]) in ("lo", "la"):
            clitics[0] = "se"
        if verb.startswith("~"):
            return self.pleasing(clause, verb[1:], order)
        if verb.startswith("se_"):
            verb = verb[3:]
            clitics.insert(0, _REFLEXIVE.get(clause.person, "se"))
        if clause.mood in (Mood.IMPERATIVE, Mood.LETS, Mood.REQUEST):
            return self.asking(clause, verb, clitics, rest)
        person = clause.person
        past = clause.tense is Tense.PAST
        no = ("todavía no" if clause.tense is Tense.DONE else "no") if clause.negative else ""
        ya = "ya" if clause.tense is Tense.DONE and not clause.negative else ""
        inner = ""
        if clause.modal is not Modal.NONE:
            modal = _MODAL[clause.modal]
            tense = (
                "conditional"
                if clause.modal in (Modal.SHOULD, Modal.MIGHT)
                else "imperfect"
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
                    inner = marked(self.form(verb, "participle", person), mark)
                case Tense.NOW:
                    finite, inner = (
                        self.form("estar", "present", person),
                        marked(self.form(verb, "gerund", person), mark),
                    )
                case Tense.FUTURE if not mood:
                    finite = marked(self.form(verb, "future", person), mark)
                case _:
                    finite = marked(self.form(verb, mood or "present", person), mark)
        if verb == "haber" and finite.startswith("ha") and clause.tense is Tense.HABIT:
            finite = "haya" if mood else "hay"
        front = self.fronted(clause) if self.may_front(clause) and order == "main" else None
        start = phrase(self.adverbial(front), ",") if front else ""
        tail = phrase(*rest, self.ending(self.without(clause, front)))
        often = self.places(clause, "frequency")
        verbs = phrase(no, ya, *clitics, finite, inner)
        if order == "inverted" and subject_np is not None and subject_np.pronoun:
            return phrase(often, verbs, subject, *held, tail)
        if order == "inverted":
            return phrase(often, verbs, *held, subject, tail)
        return phrase(start, subject, often, verbs, tail)

    def pleasing(self, clause: Clause, verb: str, order: str) -> str:
        """A mi abuela le gusta el té: what is liked is the subject."""
        subject, thing = clause.roles["S"], clause.roles.get("O")
        clitic = _CLITIC[subject.pronoun][1] if subject.pronoun else "les" if subject.plural else "le"
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
        attached = marked(verb + "".join(map(bare, clitics)), clause.mark)
        match clause.mood:
            case Mood.REQUEST:
                return phrase("podría", attached, tail)
            case Mood.LETS:
                no = "no" if clause.negative else ""
                return phrase("propongo", no, attached, tail)
        form = marked(self.form(verb, "subjunctive", "2"), clause.mark)
        if clause.negative:
            return phrase("por favor , no", *clitics, form, tail)
        if clitics:
            return phrase("le pido que", *clitics, form, tail)
        return phrase("por favor ,", form, tail)

    def better(self, key: str, agreement: str) -> str:
        base = {"bueno": "mejor", "malo": "peor"}.get(self.words.adjectives[key]["es"], "")
        return base + "es" if base and agreement.endswith("p") else base

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
        return phrase(self.question(clause), self.clause(plain, "inverted"))

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
            verbs = phrase(self.form(_MODAL[clause.modal], tense, person), que, "hacerlo")
        elif clause.tense is Tense.DONE:
            verbs = phrase("ya" if link == "yes" else "", "lo", self.form("haber", "present", person), "hecho")
        else:
            verbs = phrase("lo", self.form("hacer", "preterite" if past else "future", person))
        return phrase("sí ," if link == "yes" else "no , no", verbs)

    def ends(self, clause: Clause) -> tuple[str, str]:
        return ("¿", "?") if clause.mood in (Mood.YES_NO, Mood.WH, Mood.REQUEST) else ("", ".")

    def reported(self, said: Utterance, speaker: Phrase) -> str:
        first, person = said.first, speaker.person
        subject = self.noun_phrase(speaker, "S") if person[0] == "3" else ""
        if said.link == "say":
            return phrase(subject, self.form("decir", "preterite", person), "que", self.clause(first, ""), ".")
        verb = self.form(_MATRIX[said.link], "present", person)
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
