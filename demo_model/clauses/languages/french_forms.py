"""French forms: plurals, feminines, conjugation. Knows words, not sentences."""

from __future__ import annotations

import re

from demo_model.clauses.languages.romance import Romance

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


class FrenchForms(Romance):
    language = "fr"

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
        stem = "ét" if verb == "être" else present[2].removesuffix("ons")
        stem = stem.removesuffix("e") if at in (2, 3) and stem.endswith("ge") else stem
        if stem.endswith("ç") and at in (2, 3):
            stem = stem[:-1] + "c"
        return stem + ("ais", "ait", "ions", "iez", "aient")[at]

    def agreed(self, participle: str, agreement: str) -> str:
        return participle + ("e" if agreement[0] == "f" else "") + ("s" if agreement.endswith("p") else "")
