"""German forms: endings, plurals, conjugation, and noun phrases. Knows words and phrases, not sentences."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar

from demo_model.clauses.languages.linearizer import Linearizer
from demo_model.clauses.marks import marked, phrase
from demo_model.clauses.syntax import Clause, Modal, Phrase
from demo_model.recogniser import NUMBER_WORDS

_CASES = ("nom", "acc", "dat", "gen")
_GENDERS = ("m", "f", "n", "p")
DER = "der die das die den die das die dem der dem den des der des der".split()  # noqa: SIM905
EIN = "- e - e en e - e em er em en es er es er".split()  # noqa: SIM905
DIES = "er e es e en e es e em er em en es er es er".split()  # noqa: SIM905
WEAK = "e e e en en e e en en en en en en en en en".split()  # noqa: SIM905
MIXED = "er e es en en e es en en en en en en en en en".split()  # noqa: SIM905
STRONG = "er e es e en e es e em er em en en er en er".split()  # noqa: SIM905
AUX = {
    "haben": {"1s": "habe", "3s": "hat", "": "haben"},
    "sein": {"1s": "bin", "3s": "ist", "": "sind"},
    "mögen": {"1s": "mag", "3s": "mag", "": "mögen"},
    "werden": {"1s": "werde", "3s": "wird", "": "werden"},
}
PRETERITE = {
    **{"sein": "war", "haben": "hatte", "mögen": "mochte", "kennen": "kannte", "brauchen": "brauchte"},
    **{"besitzen": "besaß", "hängen": "hing", "gehören": "gehörte", "kommen": "kam", "liegen": "lag"},
    **{"stehen": "stand", "geben": "gab", "kosten": "kostete", "dauern": "dauerte", "passen": "passte"},
    **{"schmecken": "schmeckte", "scheinen": "schien"},
}
"""States of the past that are not told in the Perfekt: the stem of the past."""
WAY = re.compile(r"nach Hause|ins (?:Kino|Theater)|zu[mr]? (?!Arzt)|an den Strand")
"""Where one is "auf dem Weg" while one goes there."""
LASTING = ("look_forward",)
"""Frames that are not said with "gerade"."""
_HISSING = re.compile(r"(?:[sxzß]|ce)$")
"""Names that take no "s": das Auto von Max."""
_INSEPARABLE = (
    *("be", "ge", "er", "ver", "ent", "emp", "zer", "miss"),
    *("über", "unter", "wider", "wieder", "hinter", "umarm"),
)

_PLURALS = {
    "buch": "bücher",
    "plan": "pläne",
    "vertrag": "verträge",
    "antrag": "anträge",
    "schlag": "schläge",
    "wurf": "würfe",
    "haus": "häuser",
    "bogen": "bögen",
    "zug": "züge",
    "anwalt": "anwälte",
    "tor": "toren",
    "typ": "typen",
    "roadmap": "roadmaps",
    "demo": "demos",
    "dokument": "dokumente",
    "projekt": "projekte",
    "konzept": "konzepte",
    "budget": "budgets",
    "telefon": "telefone",
    "mikrofon": "mikrofone",
}


def cell(table: list[str], case: str, gender: str) -> str:
    return table[_CASES.index(case) * 4 + _GENDERS.index(gender)].replace("-", "")


def plural(noun: str, gender: str, given: str) -> str:
    """The nominative plural. given: an ending ("-e") or the whole word."""
    if given:
        return noun + given[1:] if given.startswith("-") else given
    for ending, changed in _PLURALS.items():
        if noun.lower().endswith(ending):
            return noun[: -len(ending)] + (changed.capitalize() if noun.lower() == ending else changed)
    if gender == "f":
        return noun + ("n" if noun.endswith(("e", "er", "el")) else "nen" if noun.endswith("in") else "en")
    if noun.endswith(("er", "el", "en", "chen")):
        return noun
    if noun.endswith(
        ("a", "o", "i", "y", "ing", "up", "op", "ew", "it", "on", "eam", "test", "grade", "and", "et")
    ):
        return noun + "s"
    if noun.endswith("e"):
        return noun + "n"
    return noun + "e"


def attributive(adjective: str) -> str:
    """The stem that takes endings: teuer → teur, dunkel → dunkl, hoch → hoh."""
    if adjective == "hoch":
        return "hoh"
    if adjective.endswith("el"):
        return adjective[:-2] + "l"
    if adjective.endswith("euer"):
        return adjective[:-2] + "r"
    return adjective.removesuffix("e") if adjective.endswith("e") else adjective


ARTICLES = frozenset(["der", "die", "das", "den", "dem"])
_NONE = {
    "keinen": ("Hunger", "Durst", "Urlaub", "Sport"),
    "kein": ("Fieber", "Geld", "Yoga"),
    "keine": (
        *(
            "Zeit",
            "Notizen",
            "Musik",
            "Hilfe",
            "Ruhe",
            "Vokabeln",
            "Wäsche",
            "Hausaufgaben",
            "Angst",
            "Pause",
            "Karten",
            "Ordnung",
        ),
        *("Kopfschmerzen", "Zahnschmerzen", "Bauchschmerzen"),
    ),
}


def negated(words: list[str]) -> tuple[list[str], bool]:
    """eine Pause → keine Pause, Zeit → keine Zeit; and whether "nicht" is still needed."""
    words = words[words[0] == "etwas" :]
    if re.match("ein(?:e|en|em|er)?$", words[0]):
        return ["k" + words[0], *words[1:]], False
    for no, nouns in _NONE.items():
        if words[0] in nouns:
            return [no, *words], False
    return words, True


_CONTRACTED = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
    ("bei", "dem"): "beim",
    ("an", "dem"): "am",
    ("an", "das"): "ans",
}


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

MODAL = {  # infinitive → first and third person singular, past stem
    "können": ("kann", "konnte"),
    "müssen": ("muss", "musste"),
    "mögen": ("möchte", "wollte"),
    "sollen": ("sollte", "sollte"),
}
MODALS = {
    Modal.CAN: "können",
    Modal.MUST: "müssen",
    Modal.WANT: "mögen",
    Modal.SHOULD: "sollen",
}

LINKS = {
    "because": "weil",
    "if": "wenn",
    "when": "wenn",
    "although": "obwohl",
    "before": "bevor",
    "after": "nachdem",
}
ASKED = {
    **{"when": "wann", "where": "wo", "why": "warum", "how": "wie", "S": "wer", "O": "was", "place": "wo"},
    **{"how_long": "wie lange", "how_often": "wie oft", "amount": "wie viel", "age": "wie alt", "owner": "wem"},
}
LYING = ("small", "text", "document", "supplies", "dishes")
"""Types of things that lie where they are, but most dishes stand."""
OPEN = re.compile("auf|unter|neben|hinter|zwischen|im Regal")
FLAT = re.compile(r"(?i:messer|löffel|gabel|stäbchen|öffner|schäler|zieher|kelle|brett|holz|reibe)$")


class GermanForms(Linearizer):
    language = "de"
    joins: ClassVar = {
        "and": ("", ",", "und", ""),
        "or": ("", ",", "oder", ""),
        "both": ("sowohl", ",", "als auch", ""),
        "either": ("entweder", ",", "oder", ""),
        "etc": ("", ",", ",", "und so weiter"),
    }

    def several(self, np: Phrase) -> Phrase:
        """Costs are only spoken of in the plural: die Kosten."""
        return replace(np, plural=True) if np.noun and self.noun(np).cells["de"].lower().endswith("kosten") else np

    def gender(self, np: Phrase) -> str:
        if self.several(np).plural:
            return "p"
        return self.noun(np).genders["de"].replace("w", "m") if np.noun else "n"

    def noun_phrase(self, np: Phrase, case: str) -> str:
        case, np = case or "acc", self.several(np)
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
        owner = np.of if np.of is not None and np.of.name and not _HISSING.search(np.of.name) else None
        if owner is not None:
            det, endings = marked(self.name(owner) + "s", owner.mark), STRONG
        word = word.replace("~", cell(endings, case, gender))
        adjective = self.words.adjectives[np.adjective]["de"].split("/")[0] if np.adjective else ""
        if adjective and not adjective.endswith("-"):
            adjective = attributive(adjective) + cell(endings, case, gender)
        words = phrase(det, adjective, word)
        if np.of is not None and owner is None:
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
            return many + ("s" if case == "gen" and text.endswith("name") else "")
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

    @abstractmethod
    def relative(self, np: Phrase, clause: Clause) -> str: ...

    def conjugated(self, verb: str, person: str) -> str:
        if verb in AUX:
            return AUX[verb].get(person) or AUX[verb][""]
        if person not in ("1s", "3s"):
            return verb
        if verb == "wissen":
            return "weiß"
        stem = verb.removesuffix("n").removesuffix("e") if verb.endswith("en") else verb.removesuffix("n")
        if person == "1s":
            return stem[:-2] + "le" if re.search("[^i]el$", stem) else stem + "e"  # sammle, but spiele
        prefix, table = self.forms(verb)
        if table and table[0] != "-":
            return prefix + table[0]
        return stem + ("et" if re.search(r"(?:[td]|(?:ch|[^lrhaeiouäöümn])[mn])$", stem) else "t")

    def forms(self, verb: str) -> tuple[str, list[str]]:
        """The irregular forms, and the prefix to put before them: besprechen is irregular as sprechen is."""
        if verb in self.irregular:
            return "", self.irregular[verb].split()
        for prefix in _INSEPARABLE:
            if verb.startswith(prefix) and verb.removeprefix(prefix) in self.irregular:
                return prefix, self.irregular[verb.removeprefix(prefix)].split()
        return "", []

    def participle(self, verb: str, prefix: str) -> str:
        inner, table = self.forms(verb)
        if f"{prefix}|{verb}" in self.irregular:
            table = self.irregular[f"{prefix}|{verb}"].split()
        if table:
            return prefix + inner + (table[1].removeprefix("ge") if inner else table[1])
        stem = verb.removesuffix("n").removesuffix("e") if verb.endswith("en") else verb.removesuffix("n")
        ge = (
            ""
            if verb.endswith("ieren")
            or (verb.startswith(_INSEPARABLE) and verb not in ("bellen", "beten", "betteln"))
            else "ge"
        )
        return prefix + ge + stem + ("et" if re.search(r"(?:[td]|(?:ch|[^lrhaeiouäöümn])[mn])$", stem) else "t")

    def rewrite(self, before: str, after: str) -> tuple[str, str] | None:
        if after.startswith("*"):  # "an dem Plan, den …": this one, so the article is said in full
            return before, after[1:]
        joined = _CONTRACTED.get((before.lower(), after))
        if joined is not None:
            return (joined.capitalize() if before[0].isupper() else joined), ""
        return None
