"""German forms: endings, plurals, conjugation. Knows words, not sentences."""

from __future__ import annotations

import re

from demo_model.clauses.languages.linearizer import Linearizer

_CASES = ("nom", "acc", "dat", "gen")
_GENDERS = ("m", "f", "n", "p")
DER = "der die das die den die das die dem der dem den des der des der".split()  # noqa: SIM905
EIN = "- e - e en e - e em er em en es er es er".split()  # noqa: SIM905
DIES = "er e es e en e es e em er em en es er es er".split()  # noqa: SIM905
WEAK = "e e e en en e e en en en en en en en en en".split()  # noqa: SIM905
MIXED = "er e es en en e es en en en en en en en en en".split()  # noqa: SIM905
STRONG = "er e es e en e es e em er em en en er en er".split()  # noqa: SIM905
AUX = {
    "haben": {"1s": "habe", "3s": "hat", "": "haben", "past": "hatte"},
    "sein": {"1s": "bin", "3s": "ist", "": "sind", "past": "war"},
    "mögen": {"1s": "mag", "3s": "mag", "": "mögen", "past": "mochte"},
    "werden": {"1s": "werde", "3s": "wird", "": "werden", "past": "wurde"},
}
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
        *("Zeit", "Notizen", "Musik", "Hilfe", "Ruhe", "Vokabeln", "Wäsche", "Hausaufgaben", "Angst", "Karten"),
        *("Kopfschmerzen", "Zahnschmerzen", "Bauchschmerzen"),
    ),
}


def negated(words: list[str]) -> tuple[list[str], bool]:
    """eine Pause → keine Pause, Zeit → keine Zeit; and whether "nicht" is still needed."""
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


class GermanForms(Linearizer):
    language = "de"

    def conjugated(self, verb: str, person: str) -> str:
        if verb in AUX:
            return AUX[verb].get(person) or AUX[verb][""]
        if person not in ("1s", "3s"):
            return verb
        if verb == "wissen":
            return "weiß"
        stem = verb.removesuffix("n").removesuffix("e") if verb.endswith("en") else verb.removesuffix("n")
        if person == "1s":
            return stem[:-2] + "le" if stem.endswith("el") else stem + "e"
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
        joined = _CONTRACTED.get((before.lower(), after))
        if joined is not None:
            return (joined.capitalize() if before[0].isupper() else joined), ""
        return None
