"""French forms: plurals, feminines, conjugation, and noun phrases. Knows words and phrases, not sentences."""

from __future__ import annotations

import re

from demo_model.clauses.languages.romance import Romance
from demo_model.clauses.marks import marked, phrase
from demo_model.clauses.syntax import Modal, Phrase
from demo_model.grammar import starts_with_vowel
from demo_model.recogniser import NUMBER_WORDS

_PERSONS = ("1s", "3s", "1p", "2", "3p")

_INVARIABLE = ("marketing", "web", "vidéo", "photo", "système", "design")


def plural(word: str) -> str:
    head, space, rest = word.partition(" ")
    if (space and rest.split()[0] in ("de", "du", "des", "à", "au", "en", "sur", "pour")) or rest.startswith("d'"):
        return plural(head) + space + rest
    if space:
        return " ".join(each if each in _INVARIABLE else plural(each) for each in word.split())
    if word.endswith(("s", "x", "z")):
        return word
    if word.endswith(("eau", "eu")):
        return word + "x"
    if word.endswith("al"):
        return word[:-2] + "aux"
    return word + "s"


def feminine(adjective: str) -> str:
    for ending, changed in (
        ("eux", "euse"),
        ("if", "ive"),
        ("er", "ère"),
        ("el", "elle"),
        ("ien", "ienne"),
        ("on", "onne"),
        ("et", "ète"),
    ):
        if adjective.endswith(ending):
            return adjective[: -len(ending)] + changed
    return adjective if adjective.endswith("e") else adjective + "e"


_SILENT_H = re.compile(r"^(?:h[éeêoiuyô](?!ros|llan)|hab|heu|his|hum|hiv|huil|hui)", re.IGNORECASE)
_CONTRACTED = {
    ("de", "le"): "du",
    ("de", "les"): "des",
    ("à", "le"): "au",
    ("à", "les"): "aux",
    ("de", "des"): "de",
}
_ELIDED = frozenset(["je", "me", "te", "se", "le", "la", "de", "que", "ne", "ce", "jusque", "lorsque"])


POSSESSIVE = {
    "i": "mon ma mes",
    "he": "son sa ses",
    "she": "son sa ses",
    "we": "notre notre nos",
    "you": "votre votre vos",
    "they": "leur leur leurs",
}
_SUBJUNCTIVE = {
    "être": "sois soit soyons soyez soient",
    "avoir": "aie ait ayons ayez aient",
    "aller": "aille aille allions alliez aillent",
    "faire": "fasse fasse fassions fassiez fassent",
    "pouvoir": "puisse puisse puissions puissiez puissent",
    "savoir": "sache sache sachions sachiez sachent",
    "vouloir": "veuille veuille voulions vouliez veuillent",
    "pleuvoir": "pleuve pleuve pleuvions pleuviez pleuvent",
}
"""What no rule makes, person by person."""
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
        "court",
        "gentil",
    ]
)

SUBJECT = {
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
TONIC = {"i": "moi", "we": "nous", "you": "vous", "he": "lui", "she": "elle", "they": "eux", "that": "cela"}
TONIC["who"] = "qui"
CLITIC = {
    "i": ("me", "me"),
    "we": ("nous", "nous"),
    "you": ("vous", "vous"),
    "he": ("le", "lui"),
    "she": ("la", "lui"),
    "they": ("les", "leur"),
}
REFLEXIVE = {"1s": "me", "1p": "nous", "2": "vous"}
MODAL = {
    Modal.CAN: "pouvoir",
    Modal.MUST: "devoir",
    Modal.WANT: "vouloir",
    Modal.SHOULD: "devoir",
}
LINKS = {
    "because": "parce que",
    "if": "si",
    "when": "quand",
    "as": "comme",
    "although": "même si",
    "and": "et",
    "but": "mais",
    "so": "donc",
}
ASKED = {
    **{"when": "quand", "where": "où", "why": "pourquoi", "how": "comment", "S": "qui", "O": "que"},
    **{"how_long": "combien de temps", "how_often": "à quelle fréquence", "amount": "combien"},
    **{"age": "quel âge", "owner": "à qui", "place": "où", "since": "depuis combien de temps"},
    "so_far": "depuis combien de temps",
}
AROUND = {
    ("before", True): ("avant de", "infinitive"),
    ("after", True): ("après", "having"),
    ("before", False): ("avant que", "subjunctive"),
    ("after", False): ("une fois que", "over"),
    ("to", True): ("pour", "infinitive"),
    ("so that", False): ("pour que", "subjunctive"),
}


class FrenchForms(Romance):
    language = "fr"

    def adjective(self, key: str, agreement: str) -> str:
        """Cell: masculine[/feminine[/masculine before a vowel]]. A cell of several words does not change."""
        base, *given = self.words.adjectives[key]["fr"].split("/")
        if " " in base or "'" in base:
            return base
        if agreement[0] == "f" and given and given[0]:
            return plural(given[0]) if agreement.endswith("p") else given[0]
        return self.ended(base, agreement)

    def ended(self, base: str, agreement: str) -> str:
        word = feminine(base) if agreement[0] == "f" else base
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
            case det if det in POSSESSIVE:
                one, other, many = POSSESSIVE[det].split()
                return many if np.plural else other if female and not vowel else one
        if np.plural:
            return "de" if adjective_first else "des"
        return "une" if female else "un"

    def present(self, verb: str) -> list[str]:
        """je, il, nous, vous, ils."""
        if verb in self.irregular:
            return self.irregular[verb].split()[:5]
        stem = verb[:-2]
        if verb.endswith("ir"):
            return [stem + each for each in ("is", "it", "issons", "issez", "issent")]
        if verb.endswith("re"):
            return [stem + each for each in ("s", "", "ons", "ez", "ent")]
        short = stem
        if stem.endswith(("oy", "uy")):
            short = stem[:-1] + "i"
        elif re.search(r"é[^aeiouyéè]+$", stem):
            at = stem.rindex("é")
            short = stem[:at] + "è" + stem[at + 1 :]
        elif verb in (
            "acheter",
            "amener",
            "peser",
            "lever",
            "mener",
            "relever",
            "enlever",
            "promener",
            "achever",
            "geler",
            "emmener",
            "soulever",
            "peser",
        ):
            at = stem.rindex("e")
            short = stem[:at] + "è" + stem[at + 1 :]
        elif verb in ("appeler", "rappeler", "jeter", "rejeter"):
            short = stem + stem[-1]
        we = stem + ("e" if stem.endswith("g") else "")
        if stem.endswith("c"):
            we = stem[:-1] + "ç"
        return [short + "e", short + "e", we + "ons", stem + "ez", short + "ent"]

    def form(self, verb: str, tense: str, person: str) -> str:
        at = _PERSONS.index(person)
        present = self.present(verb)
        table = self.irregular.get(verb, "").split()
        if tense == "present":
            return present[at]
        if tense == "participle":
            if table:
                return table[5]
            return verb[:-2] + {"er": "é", "ir": "i", "re": "u"}[verb[-2:]]
        if tense == "future" or tense == "conditional":
            stem = (
                table[6]
                if table
                else (present[0] + "r" if verb.endswith("er") and "é" not in verb else verb.removesuffix("e"))
            )
            endings = (
                ("ai", "a", "ons", "ez", "ont") if tense == "future" else ("ais", "ait", "ions", "iez", "aient")
            )
            return stem + endings[at]
        if tense == "subjunctive":
            irregular = _SUBJUNCTIVE.get(verb, "").split()
            if irregular:
                return irregular[at]
            if at not in (2, 3):
                return present[4].removesuffix("ent") + {0: "e", 1: "e", 4: "ent"}[at]
        stem = "ét" if verb == "être" else present[2].removesuffix("ons")
        stem = stem.removesuffix("e") if at in (2, 3) and stem.endswith("ge") else stem
        if stem.endswith("ç") and at in (2, 3):
            stem = stem[:-1] + "c"
        return stem + ("ais", "ait", "ions", "iez", "aient")[at]

    def agreed(self, participle: str, agreement: str) -> str:
        return participle + ("e" if agreement[0] == "f" else "") + ("s" if agreement.endswith("p") else "")

    def vowel(self, word: str, aspirated: bool) -> bool:
        return not aspirated and (starts_with_vowel(word) or bool(_SILENT_H.match(word)))

    def rewrite(self, before: str, after: str) -> tuple[str, str] | None:
        low = before.lower()
        plain = after.removeprefix("*")
        starred = after.startswith("*")
        if (low, after) in _CONTRACTED:
            return _CONTRACTED[low, after], ""
        if low in ("du", "au") and not starred and after[0].isalpha() and self.vowel(after, False):
            return {"du": "de l'", "Du": "De l'", "au": "à l'", "Au": "À l'"}[before], after
        if low == "si" and after in ("il", "ils"):
            return "s'" if before == "si" else "S'", after
        if (
            low in _ELIDED
            and not starred
            and after[0].isalpha()
            and self.vowel(plain, False)
            and plain not in ("onze", "oui")
        ):
            return before[:-1] + "'", after
        return (before, plain) if starred else None
