"""German: cases, verb-second and verb-final order, separable verbs, kein and nicht."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from demo_model.clauses.languages.german_forms import (
    ARTICLES,
    AUX,
    DER,
    DIES,
    EIN,
    MIXED,
    STRONG,
    WEAK,
    GermanForms,
    attributive,
    cell,
    negated,
    plural,
)
from demo_model.clauses.marks import marked, phrase
from demo_model.clauses.syntax import Clause, Modal, Mood, Phrase, Predicate, Tense, Utterance
from demo_model.recogniser import NUMBER_WORDS

_PRONOUNS = {
    "i": ("ich", "mich", "mir"),
    "we": ("wir", "uns", "uns"),
    "you": ("Sie", "Sie", "Ihnen"),
    "he": ("er", "ihn", "ihm"),
    "she": ("sie", "sie", "ihr"),
    "they": ("sie", "sie", "ihnen"),
    "that": ("das", "das", "dem"),
    "weather": ("es", "es", "es"),
    "who": ("wer", "wen", "wem"),
}
_IT = {
    "m": ("er", "ihn", "ihm"),
    "f": ("sie", "sie", "ihr"),
    "n": ("es", "es", "ihm"),
    "p": ("sie", "sie", "ihnen"),
}
_POSSESSIVE = {"i": "mein", "we": "unser", "you": "Ihr", "he": "sein", "she": "ihr", "they": "ihr"}
_MODAL = {  # infinitive → first and third person singular, past stem
    "können": ("kann", "konnte"),
    "müssen": ("muss", "musste"),
    "mögen": ("möchte", "wollte"),
    "sollen": ("sollte", "sollte"),
    "könnten": ("könnte", "könnte"),
}
_MODALS = {
    Modal.CAN: "können",
    Modal.MUST: "müssen",
    Modal.WANT: "mögen",
    Modal.SHOULD: "sollen",
    Modal.MIGHT: "könnten",
}
_REFLEXIVE = {"1s": "mich", "1p": "uns"}
_LINKS = {"because": "weil", "if": "wenn", "when": "wenn", "although": "obwohl"}
_ASKED = {
    **{"when": "wann", "where": "wo", "why": "warum", "how": "wie", "S": "wer", "O": "was", "place": "wo"},
    **{"how_long": "wie lange", "how_often": "wie oft", "amount": "wie viel", "age": "wie alt", "owner": "wem"},
}
_MATRIX = {"think": "denken", "know": "wissen", "hope": "hoffen", "say": "sagen", "whether": "wissen"}


class German(GermanForms):
    joins: ClassVar = {
        "and": ("", ",", "und", ""),
        "or": ("", ",", "oder", ""),
        "both": ("sowohl", ",", "als auch", ""),
        "either": ("entweder", ",", "oder", ""),
        "etc": ("", ",", ",", "und so weiter"),
    }

    def gender(self, np: Phrase) -> str:
        if np.plural:
            return "p"
        return self.noun(np).genders["de"].replace("w", "m") if np.noun else "n"

    def noun_phrase(self, np: Phrase, case: str) -> str:
        case = case or "acc"
        if np.members:
            return self.joined(np, lambda each: self.noun_phrase(each, case))
        if np.pronoun == "it":
            gender = self.gender(replace(np, pronoun=""))
            return marked(_IT[gender][("nom", "acc", "dat").index(case)], np.mark)
        if np.pronoun:
            return marked(_PRONOUNS[np.pronoun][("nom", "acc", "dat").index(case)], np.mark)
        if np.name:
            return marked(self.name(np), np.mark)
        gender = self.gender(np)
        word = self.word(np, case)
        det, endings = self.determiner(np, case, gender)
        word = word.replace("~", cell(endings, case, gender))
        adjective = self.words.adjectives[np.adjective]["de"].split("/")[0] if np.adjective else ""
        if adjective and not adjective.endswith("-"):
            adjective = attributive(adjective) + cell(endings, case, gender)
        words = phrase(det, adjective, word)
        if np.of is not None:
            other = np.of
            words = phrase(
                words,
                *("von", self.noun_phrase(other, "dat")) if other.name else (self.noun_phrase(other, "gen"),),
            )
        words = marked(words, np.mark)
        if np.relative is not None:
            words = phrase(words, ",", self.relative(np, np.relative), ",")
        return words

    def word(self, np: Phrase, case: str) -> str:
        noun = self.noun(np)
        text, gender = noun.cells["de"], noun.genders["de"]
        many = plural(text, gender, noun.plurals.get("de", ""))
        if np.plural:
            return many + "n" if case == "dat" and not many.endswith(("n", "s", "a")) else many
        if gender == "w" and case != "nom":
            return many
        if case == "gen" and gender in "mn":
            short = text.endswith(("t", "d")) and len(re.findall(r"[aeiouäöü]+", text.lower())) == 1
            if short or text.endswith(("s", "ß", "x", "z", "sch")):
                return text + "es"
            return text + "s"
        return text

    def determiner(self, np: Phrase, case: str, gender: str) -> tuple[str, list[str]]:
        """The determiner, and the endings of an adjective after it."""
        match np.det:
            case "the":
                return cell(DER, case, gender), WEAK
            case "bare" if self.noun(np).type == "topic":
                return cell(DER, case, gender), WEAK
            case "this":
                return "dies" + cell(DIES, case, gender), WEAK
            case "all":
                return "all" + cell(DIES, case, gender), WEAK
            case "many":
                return "viel" + cell(STRONG, case, "p"), STRONG
            case "num":
                return NUMBER_WORDS["de"][np.count - 2], STRONG
            case "no":
                return "kein" + cell(EIN, case, gender), MIXED
            case "which":
                return "welch" + cell(DIES, case, gender), WEAK
            case "how_many" | "how_much":
                return "wie viel" + (cell(STRONG, case, "p") if np.plural else ""), STRONG
            case "what_kind" if not np.plural and not self.noun(np).mass:
                return "was für ein" + cell(EIN, case, gender), MIXED
            case "what_kind" | "whose":
                return "wessen" if np.det == "whose" else "was für", STRONG
            case "a" if not np.plural:
                return "ein" + cell(EIN, case, gender), MIXED
            case det if det in _POSSESSIVE:
                ending = cell(EIN, case, gender)
                return _POSSESSIVE[det] + ending, MIXED
        return "", STRONG

    def relative(self, np: Phrase, clause: Clause) -> str:
        case = "nom" if clause.gap == "S" else "acc"
        pronoun = cell(DER, case, self.gender(np))
        if clause.gap == "S":
            return phrase(pronoun, self.clause(clause, "rel"))
        return phrase(pronoun, self.clause(clause, "sub"))

    def group(self, clause: Clause, verb: str, mark: int) -> tuple[str, list[str]]:
        """The finite verb and what stands at the end: ("hat", ["abgesagt"]), ("sagt", ["ab"])."""
        aux = "haben"
        if verb.startswith("+"):
            aux, verb = "sein", verb[1:]
        prefix, _, base = verb.rpartition("|")
        infinitive = marked(prefix + base, mark)
        past = clause.tense is Tense.PAST
        person = clause.person

        def ended(stem: str) -> str:
            return stem if person in ("1s", "3s") else stem + ("n" if stem.endswith("e") else "en")

        if clause.mood is Mood.REQUEST:
            return "könnten", [infinitive]
        if clause.modal is not Modal.NONE:
            present, preterite = _MODAL[_MODALS[clause.modal]]
            if past:
                return ended(preterite), [infinitive]
            many = _MODALS[clause.modal] if clause.modal in (Modal.CAN, Modal.MUST) else present + "n"
            return (present if person in ("1s", "3s") else many), [infinitive]
        match clause.tense:
            case Tense.FUTURE:
                return self.conjugated("werden", person), [infinitive]
            case Tense.PAST if base in ("sein", "haben", "mögen"):
                return ended(AUX[base]["past"]), []
            case Tense.PAST | Tense.DONE:
                return self.conjugated(aux, person), [marked(self.participle(base, prefix), mark)]
        finite = marked(self.conjugated(base, person), mark)
        return finite, [marked(prefix, mark)] if prefix else []

    def predicate(self, what: Predicate) -> str:
        if what.adjective:
            base, _, given = self.words.adjectives[what.adjective]["de"].partition("/")
            if what.degree == "more":
                words = marked(
                    given or (base + "r" if base.endswith("e") else attributive(base) + "er"), what.mark
                )
                return phrase(words, "als", self.noun_phrase(what.than, "nom")) if what.than else words
            return marked(phrase({"very": "sehr", "too": "zu"}.get(what.degree, ""), base), what.mark)
        if what.phrase is not None:
            job = what.phrase.det == "a" and not what.phrase.adjective
            return self.noun_phrase(replace(what.phrase, det="") if job else what.phrase, "nom")
        return self.adverbial(what.place) if what.place else ""

    def clause(self, clause: Clause, order: str) -> str:
        """order: main, sub (the verb last), rel (no subject, the verb last), first (the verb first), inverted."""
        objects: dict[str, str] = {}
        pronouns: list[tuple[int, str]] = []
        pp: list[str] = []
        negative, after = clause.negative, ""
        subject_np = clause.roles.get("S")
        if clause.frame == "exist" and subject_np is not None:
            verb = "geben"
            if negative and subject_np.det in ("a", "bare", ""):
                subject_np, negative = replace(subject_np, det="no"), False
            if not clause.asked:
                objects["acc"] = self.noun_phrase(subject_np, "acc")
            subject = "es"
            clause = replace(clause, roles={})
            if clause.predicate and clause.predicate.place:
                pp.append(self.adverbial(clause.predicate.place))
        else:
            subject = self.noun_phrase(subject_np, "nom") if subject_np else ""
            if clause.frame == "be":
                verb = "+sein"
                if clause.predicate is not None:
                    what = clause.predicate
                    if negative and what.phrase is not None and what.phrase.det == "a":
                        what, negative = replace(what, phrase=replace(what.phrase, det="no")), False
                    pp.append(self.predicate(what))
            else:
                cell, complements = self.complements(clause)
                *fixed, verb = cell.split("_")
                for role, how, np in complements:
                    if role and role == clause.asked:
                        continue
                    if np is None:
                        pp.append(
                            _REFLEXIVE.get(clause.person, "sich") if how == "sich" else marked(how, clause.mark)
                        )
                        if how == "sich":
                            pronouns.append((0, pp.pop()))
                        continue
                    preposition, _, case = how.partition(".")
                    case = case or "acc"
                    if (
                        not preposition
                        and case == "acc"
                        and negative
                        and (np.det in ("a", "bare") or (not np.det and np.plural))
                    ):
                        np, negative = replace(np, det="no"), False
                        if clause.tense is Tense.DONE:
                            objects["early"] = "noch"
                    if np.relative is not None:
                        after = phrase(",", self.relative(np, np.relative), ",")
                        np = replace(np, relative=None)
                    text = self.noun_phrase(np, case)
                    if preposition:
                        pp.append(phrase(preposition, text))
                    elif np.pronoun and np.pronoun != "that":
                        pronouns.append((case == "dat", text))
                    else:
                        objects[case] = text
                if "sich" in fixed:
                    pronouns.append((0, _REFLEXIVE.get(clause.person, "sich")))
                words = [each for each in fixed if each != "sich"]
                if negative and words:
                    words, negative = negated(words)
                if words and words[0] in ARTICLES:
                    objects["fixed"] = marked(" ".join(words), clause.mark)
                else:
                    pp += [marked(each, clause.mark) for each in words]
        finite, end = self.group(clause, verb, clause.mark)
        nicht = ""
        if negative:
            nicht = "noch nicht" if clause.tense is Tense.DONE else "nicht"
        early = phrase(
            "schon" if clause.tense is Tense.DONE and not clause.negative else "",
            "gerade" if clause.tense is Tense.NOW else "",
        )
        if clause.frame == "exist" and order == "main" and subject_np is not None and len(pp) == 1:
            clause = replace(clause, roles={"S": subject_np})
            finite, _ = self.group(clause, "+sein", clause.mark)
            return phrase(pp[0], finite, self.noun_phrase(subject_np, "nom"))
        front = (
            self.fronted(clause)
            if order == "main" and clause.mood is Mood.STATEMENT and not clause.asked
            else None
        )
        rest = self.without(clause, front)
        field = phrase(
            *(text for _, text in sorted(pronouns)),
            self.places(rest, "time", "deadline"),
            self.places(rest, "cause", "frequency"),
            early,
            objects.get("early", "") if not objects.get("dat") else "",
            objects.get("dat", ""),
            objects.get("early", "") if objects.get("dat") else "",
            objects.get("acc", ""),
            objects.get("fixed", ""),
            nicht,
            self.places(rest, "companion", "length", "manner", "place"),
            *pp,
        )
        if clause.mood in (Mood.IMPERATIVE, Mood.LETS):
            return phrase(self.asking(clause, verb, field), after)
        match order:
            case "sub" | "rel":
                if end and "|" in verb and clause.modal is Modal.NONE and clause.tense in (Tense.HABIT, Tense.NOW):
                    return phrase(
                        "" if order == "rel" else subject,
                        field,
                        marked(end[0][:-1] + finite[:-1], clause.mark),
                        after,
                    )
                return phrase("" if order == "rel" else subject, field, *end, finite, after)
            case "first" | "inverted":
                return phrase(finite, subject, field, *end, after)
        if front is not None:
            return phrase(self.adverbial(front), finite, subject, field, *end, after)
        return phrase(subject, finite, field, *end, after)

    def asking(self, clause: Clause, verb: str, field: str) -> str:
        """Please …, let us …."""
        prefix, _, base = verb.removeprefix("+").rpartition("|")
        if clause.mood is Mood.LETS:
            return phrase("lassen Sie uns", field, marked(prefix + base, clause.mark))
        return phrase(
            "bitte", marked(base, clause.mark), "Sie", field, marked(prefix, clause.mark) if prefix else ""
        )

    def asks(self, clause: Clause, order: str) -> str:
        """order: first (a question of its own) or sub."""
        plain = replace(clause, mood=Mood.STATEMENT)
        if clause.asked == "S" and clause.wanted and clause.frame != "exist":
            return self.clause(plain, "main" if order == "first" else "sub")
        word = _ASKED.get(clause.asked, "")
        if clause.wanted:
            word = self.noun_phrase(clause.wanted, "acc")
            for role, how, np in self.complements(clause)[1] if clause.frame != "exist" else ():
                if role == clause.asked and np is not None:
                    preposition, _, case = how.partition(".")
                    word = phrase(preposition, self.noun_phrase(np, case))
        last = "rel" if clause.asked == "S" and not clause.wanted else "sub"
        return phrase(word, self.clause(plain, "first" if order == "first" else last))

    def answered(self, link: str, clause: Clause) -> str:
        said = self.noun_phrase(clause.roles["S"], "nom")
        match link:
            case "not_yet":
                return "nein , noch nicht"
            case "too" | "neither":
                return phrase(said, "auch", "nicht" if link == "neither" else "")
        *_, verb = self.complements(clause)[0].split("_")
        finite, _ = self.group(clause, verb, clause.mark)
        return phrase("ja ," if link == "yes" else "nein ,", "das", finite, said, "nicht" if link == "no" else "")

    def main(self, clause: Clause, order: str = "main") -> str:
        if clause.asked:
            return self.asks(clause, "first")
        if clause.mood in (Mood.YES_NO, Mood.REQUEST):
            return self.clause(clause, "first")
        return self.clause(clause, order)

    def utterance(self, said: Utterance) -> str:
        first, second = said.first, said.second
        mark = "?" if first.mood in (Mood.YES_NO, Mood.WH, Mood.REQUEST) else "."
        if said.speaker is not None:
            person = said.speaker.person
            verb = self.conjugated(_MATRIX[said.link], person)
            if said.link == "say":
                verb = phrase(self.conjugated("haben", person))
            subject = self.noun_phrase(said.speaker, "nom")
            inner = phrase("dass", self.clause(first, "sub"))
            if said.link == "whether":
                verb = phrase(verb, "nicht")
                inner = self.asks(first, "sub") if first.asked else phrase("ob", self.clause(first, "sub"))
            return phrase(subject, verb, "gesagt" if said.link == "say" else "", ",", inner, ".")
        if second is None:
            return f"{self.main(first)} {mark}"
        match said.link:
            case "and" | "but":
                return phrase(self.main(first), "und" if said.link == "and" else ", aber", self.main(second), mark)
            case "so":
                return phrase(self.main(first), ",", "deshalb", self.clause(second, "inverted"), mark)
        word = _LINKS[said.link]
        if said.link == "when" and second.tense is Tense.PAST:
            word = "als"
        other = phrase(word, self.clause(second, "sub"))
        if said.link in ("because", "although") or first.mood is not Mood.STATEMENT:
            return phrase(self.main(first), ",", other, mark)
        return phrase(other, ",", self.main(first, "inverted"), mark)
