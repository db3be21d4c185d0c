"""French: elision, contraction, ne … pas, clitics, participles that agree."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from demo_model.clauses.languages.french_forms import FrenchForms, feminine, plural
from demo_model.clauses.marks import bare, marked, phrase
from demo_model.clauses.syntax import ASKED_FRAMES, Clause, Modal, Mood, Phrase, Tense, Utterance
from demo_model.recogniser import NUMBER_WORDS

_SUBJECT = {
    "i": "je",
    "we": "nous",
    "you": "vous",
    "he": "il",
    "she": "elle",
    "they": "ils",
    "that": "cela",
    "weather": "il",
    "who": "qui",
}
_TONIC = {"i": "moi", "we": "nous", "you": "vous", "he": "lui", "she": "elle", "they": "eux", "that": "cela"}
_TONIC["who"] = "qui"
_CLITIC = {
    "i": ("me", "me"),
    "we": ("nous", "nous"),
    "you": ("vous", "vous"),
    "he": ("le", "lui"),
    "she": ("la", "lui"),
    "they": ("les", "leur"),
}
_POSSESSIVE = {
    "i": "mon ma mes",
    "he": "son sa ses",
    "she": "son sa ses",
    "we": "notre notre nos",
    "you": "votre votre vos",
    "they": "leur leur leurs",
}
_REFLEXIVE = {"1s": "me", "1p": "nous", "2": "vous"}
_BEFORE = frozenset(
    [
        "nouveau",
        "grand",
        "petit",
        "bon",
        "mauvais",
        "vieux",
        "beau",
        "jeune",
        "dernier",
        "premier",
        "prochain",
        "autre",
        "gros",
        "long",
        "gentil",
    ]
)
_MODAL = {
    Modal.CAN: "pouvoir",
    Modal.MUST: "devoir",
    Modal.WANT: "vouloir",
    Modal.SHOULD: "devoir",
    Modal.MIGHT: "pouvoir",
}
_LINKS = {
    "because": "parce que",
    "if": "si",
    "when": "quand",
    "although": "même si",
    "and": "et",
    "but": "mais",
    "so": "donc",
}
_ASKED = {
    **{"when": "quand", "where": "où", "why": "pourquoi", "how": "comment", "S": "qui", "O": "que"},
    **{"how_long": "combien de temps", "how_often": "à quelle fréquence", "amount": "combien"},
    **{"age": "quel âge", "owner": "à qui", "place": "où"},
}
_LIKES = ("aimer O", "détester O", "préférer O")
_MATRIX = {"think": "penser", "know": "savoir", "hope": "espérer", "whether": "savoir"}
_SOME = re.compile(r"^(?:du |des |une? |de la |de (?=l'))(?:l')?")


class French(FrenchForms):
    question_words: ClassVar = _ASKED
    joins: ClassVar = {
        "and": ("", ",", "et", ""),
        "or": ("", ",", "ou", ""),
        "both": ("à la fois", ",", "et", ""),
        "either": ("soit", ", soit", "soit", ""),
        "etc": ("", ",", ",", "et ainsi de suite"),
    }
    subjects: ClassVar = _SUBJECT
    tonics: ClassVar = _TONIC
    clitics: ClassVar = _CLITIC
    links: ClassVar = _LINKS
    degrees: ClassVar = {"very": "très", "too": "trop", "more": "plus"}

    def adjective(self, key: str, agreement: str) -> str:
        """Cell: masculine[/feminine[/masculine before a vowel]]. A cell of several words does not change."""
        base, *given = self.words.adjectives[key]["fr"].split("/")
        if " " in base or "'" in base:
            return base
        word = (given[0] if given and given[0] else feminine(base)) if agreement[0] == "f" else base
        return plural(word) if agreement.endswith("p") else word

    def it(self, np: Phrase) -> str:
        female = self.noun(np).genders["fr"] == "f"
        return marked(("elle" if female else "il") + ("s" if np.plural else ""), np.mark)

    def described(self, np: Phrase) -> str:
        noun = self.noun(np)
        aspirated = noun.cells["fr"].startswith("*")
        word = noun.cells["fr"].removeprefix("*")
        if np.plural:
            word = noun.plurals.get("fr", "").removeprefix("*") or plural(word)
        agreement = self.agreement(np)
        female = agreement[0] == "f"
        before = after = ""
        if np.adjective:
            base, *given = self.words.adjectives[np.adjective]["fr"].split("/")
            text = self.adjective(np.adjective, agreement)
            if base in _BEFORE:
                before = given[1] if len(given) > 1 and agreement == "m" and self.vowel(word, aspirated) else text
            else:
                after = text
        core = phrase(before, word, after)
        vowel = self.vowel(core, aspirated and not before)
        words = phrase(self.determiner(np, female, vowel, bool(before)), core)
        if aspirated and not before:
            words = words.replace(f" {word}", f" *{word}")
        return words

    def relative(self, np: Phrase, clause: Clause) -> str:
        return phrase("qui" if clause.gap == "S" else "que", self.clause(clause, "", antecedent=np))

    def determiner(self, np: Phrase, female: bool, vowel: bool, adjective_first: bool) -> str:
        match np.det:
            case "bare" if self.noun(np).partitive:
                return "de l'" if vowel else "de la" if female else "du"
            case "the" | "bare" if np.plural:
                return "les"
            case "the" | "bare":
                return "la" if female else "le"
            case "this":
                return "ces" if np.plural else "cette" if female else "cet" if vowel else "ce"
            case "all":
                return "toutes les" if female else "tous les"
            case "many":
                return "beaucoup de"
            case "which":
                return ("quelle" if female else "quel") + ("s" if np.plural else "")
            case "what_kind":
                return "quel genre de"
            case "how_many" | "how_much":
                return "combien de"
            case "num":
                return NUMBER_WORDS["fr"][np.count - 2]
            case "de" | "name":
                return "" if np.det == "name" else "de"
            case det if det in _POSSESSIVE:
                one, other, many = _POSSESSIVE[det].split()
                return many if np.plural else other if female and not vowel else one
        if np.plural:
            return "de" if adjective_first else "des"
        return "une" if female else "un"

    def clause(self, clause: Clause, order: str, mood: str = "", antecedent: Phrase | None = None) -> str:
        subject_np = clause.roles.get("S")
        both = ""
        if subject_np is not None and subject_np.link == "both":
            both = "toutes les deux" if self.agreement(subject_np)[0] == "f" else "tous les deux"
            subject_np = replace(subject_np, link="and")
        subject = "" if clause.gap == "S" or subject_np is None else self.noun_phrase(subject_np, "S")
        mark = clause.mark
        rest: list[str]
        clitics: list[str] = []
        if clause.frame == "be":
            verb, rest = "être", [self.predicate(clause.predicate, subject_np)] if clause.predicate else []
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
        aux = "avoir"
        if verb.startswith("+"):
            aux, verb = "être", verb[1:]
        if verb.startswith("se_"):
            aux, verb = "être", verb[3:]
            clitics.insert(0, _REFLEXIVE.get(clause.person, "se"))
        if clause.mood in (Mood.IMPERATIVE, Mood.LETS, Mood.REQUEST):
            return self.asking(clause, verb, clitics, rest)
        middle = phrase(both, self.places(clause, "frequency"))
        if clause.tense is Tense.DONE and not clause.negative:
            middle = phrase(middle, "déjà")
        pas = ("pas encore" if clause.tense is Tense.DONE else "pas") if clause.negative else ""
        person = clause.person
        before, finite, inner = clitics, "", ""
        past = clause.tense is Tense.PAST
        if clause.modal is not Modal.NONE:
            modal = _MODAL[clause.modal]
            tense = (
                "conditional"
                if clause.modal in (Modal.SHOULD, Modal.MIGHT)
                else "imperfect"
                if past
                else "present"
            )
            if clause.modal is Modal.MUST and clause.negative:
                finite, inner = (
                    self.form("avoir", tense, person),
                    phrase("besoin de", *clitics, marked(verb, mark)),
                )
            else:
                finite, inner = self.form(modal, tense, person), phrase(*clitics, marked(verb, mark))
            before = []
        else:
            match clause.tense:
                case Tense.PAST if self.stative(clause):
                    finite = marked(self.form(verb, "imperfect", person), mark)
                case Tense.PAST | Tense.DONE:
                    participle = self.form(verb, "participle", person)
                    if aux == "être":
                        participle = self.agreed(participle, self.agreement(subject_np) if person != "2" else "m")
                    elif clause.gap != "O" and (clitic := self.before_verb(clause)) is not None:
                        participle = self.agreed(participle, self.agreement(clitic))
                    elif antecedent is not None and clause.gap == "O":
                        participle = self.agreed(participle, self.agreement(antecedent))
                    elif clause.asked == "O" and (asked := self.direct_object(clause)) is not None:
                        participle = self.agreed(participle, self.agreement(asked))
                    finite, inner = self.form(aux, "present", person), marked(participle, mark)
                case Tense.NOW:
                    finite, inner, before = (
                        self.form("être", "present", person),
                        phrase("en train de", *clitics, marked(verb, mark)),
                        [],
                    )
                case Tense.FUTURE:
                    finite = marked(self.form(verb, "future", person), mark)
                case _:
                    finite = marked(self.form(verb, "present", person), mark)
        front = self.fronted(clause) if self.may_front(clause) and order == "main" else None
        start = phrase(self.adverbial(front), ",") if front else ""
        ne = "ne" if clause.negative else ""
        tail = phrase(*rest, self.ending(self.without(clause, front)))
        if order == "inverted":
            return phrase(finite, subject, tail)
        return phrase(start, subject, ne, *before, finite, pas, middle, inner, tail)

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
        tail = phrase(*rest, self.ending(clause))
        ne = "ne pas" if clause.negative else ""
        match clause.mood:
            case Mood.REQUEST:
                return phrase("pourriez-vous", *clitics, infinitive, tail)
            case Mood.LETS:
                return phrase("je propose de", ne, *clitics, infinitive, tail)
        return phrase("veuillez" if not clause.negative else "merci de", ne, *clitics, infinitive, tail)

    def better(self, key: str, agreement: str) -> str:
        base = {"bon": "meilleur", "mauvais": "pire"}.get(self.words.adjectives[key]["fr"].split("/")[0], "")
        if base == "meilleur" and agreement[0] == "f":
            base += "e"
        return base + "s" if base and agreement.endswith("p") else base

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
            return phrase("à qui", "sont" if wanted.plural else "est", self.noun_phrase(thing, ""))
        if clause.asked == "S" and clause.frame != "exist":
            return phrase("" if wanted else "qui", self.clause(plain, ""))
        if clause.frame in ASKED_FRAMES:
            return phrase(_ASKED[clause.asked], self.clause(plain, "inverted"))
        if clause.asked == "O" and wanted is None and not link:
            return phrase("ce que", self.clause(plain, ""))
        return phrase(self.question(clause), link, self.clause(plain, ""))

    def answered(self, link: str, clause: Clause) -> str:
        subject = clause.roles["S"]
        match link:
            case "not_yet":
                return "non , pas encore"
            case "too" | "neither":
                return phrase(self.noun_phrase(subject, "after"), "aussi" if link == "too" else "non plus")
        said, person = self.noun_phrase(subject, "S"), clause.person
        ne, pas = ("ne", "pas") if link == "no" else ("", "")
        if clause.modal is Modal.MUST and pas:
            return phrase("non ,", said, "ne", self.form("avoir", "present", person), "pas besoin de le faire")
        if clause.modal is not Modal.NONE:
            tense = "conditional" if clause.modal is Modal.SHOULD else "present"
            verbs = phrase(ne, self.form(_MODAL[clause.modal], tense, person), pas, "le faire")
        elif clause.tense is Tense.FUTURE:
            verbs = phrase(ne, "le", self.form("faire", "future", person), pas)
        else:
            verbs = phrase(ne, "le", self.form("avoir", "present", person), pas, "fait")
        return phrase("oui ," if link == "yes" else "non ,", said, verbs)

    def ends(self, clause: Clause) -> tuple[str, str]:
        return "", "\u2060?" if clause.mood in (Mood.YES_NO, Mood.WH, Mood.REQUEST) else "."

    def reported(self, said: Utterance, speaker: Phrase) -> str:
        first, person = said.first, speaker.person
        subject = self.noun_phrase(speaker, "S")
        if said.link == "say":
            return phrase(subject, self.form("avoir", "present", person), "dit que", self.clause(first, ""), ".")
        verb = self.form(_MATRIX[said.link], "present", person)
        if said.link != "whether":
            return phrase(subject, verb, "que", self.clause(first, ""), ".")
        inner = self.asked(first) if first.asked else phrase("si", self.clause(first, ""))
        return phrase(subject, "ne", verb, "pas", inner, ".")

    def subordinate(self, said: Utterance, second: Clause) -> str:
        later = said.link == "when" and said.first.tense is Tense.FUTURE and second.tense is Tense.HABIT
        return self.clause(replace(second, tense=Tense.FUTURE) if later else second, "")


def _liked(np: Phrase) -> Phrase:
    """What one likes is all of its kind: aimer le café."""
    return replace(np, det="the" if np.det == "bare" else np.det, members=tuple(map(_liked, np.members)))


def _ordered(clitics: list[str]) -> list[str]:
    """me le, te la, but le lui, la leur."""
    third = any(bare(each[2:]) in ("lui", "leur") for each in clitics)
    return [each[2:] for each in sorted(clitics, key=lambda each: each.startswith("d:") == third)]
