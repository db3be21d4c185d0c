"""Spanish forms: pronouns and other small words, plurals, conjugation. Knows words, not sentences."""

from __future__ import annotations

import re
from dataclasses import replace

from demo_model.clauses.languages.romance import Romance
from demo_model.clauses.marks import bare, phrase
from demo_model.clauses.syntax import Clause, Modal, Phrase
from demo_model.recogniser import NUMBER_WORDS

_PERSONS = ("1s", "3s", "1p", "3p")
_ENDINGS = {
    ("present", "ar"): "o a amos an",
    ("present", "er"): "o e emos en",
    ("present", "ir"): "o e imos en",
    ("preterite", "ar"): "é ó amos aron",
    ("preterite", "er"): "í ió imos ieron",
    ("preterite", "ir"): "í ió imos ieron",
    ("imperfect", "ar"): "aba aba ábamos aban",
    ("imperfect", "er"): "ía ía íamos ían",
    ("imperfect", "ir"): "ía ía íamos ían",
    ("subjunctive", "ar"): "e e emos en",
    ("subjunctive", "er"): "a a amos an",
    ("subjunctive", "ir"): "a a amos an",
}
_STRESSED = {
    "joven": "jóvenes",
    "imagen": "imágenes",
    "orden": "órdenes",
    "examen": "exámenes",
    "margen": "márgenes",
    "volumen": "volúmenes",
}
_FUTURE = ("é", "á", "emos", "án")
_CONDITIONAL = ("ía", "ía", "íamos", "ían")

_ACCENTS = str.maketrans("aeiou", "áéíóú")
_INVARIABLE = ("web", "piloto")


def plural(word: str) -> str:
    head, space, rest = word.partition(" ")
    if space and rest.split()[0] in ("de", "del", "a", "al", "con", "en", "por", "para", "sin"):
        return plural(head) + space + rest
    if space:
        return " ".join(each if each in _INVARIABLE else plural(each) for each in word.split())
    if word in _STRESSED:
        return _STRESSED[word]
    if word.endswith("z"):
        return word[:-1] + "ces"
    if word[-1] in "aeiouéáó":
        return word + "s"
    if word.endswith("s") and not re.search(r"[áéíóú]s$", word) and word not in ("mes", "gas", "gris"):
        return word
    for accented, plain in (
        ("ón", "ones"),
        ("án", "anes"),
        ("ín", "ines"),
        ("és", "eses"),
        ("ús", "uses"),
        ("én", "enes"),
    ):
        if word.endswith(accented):
            return word[: -len(accented)] + plain
    return word + "es"


def _spelled(stem: str, vowel: str) -> str:
    """buscar → busqu-, llegar → llegu-, empezar → empec- before e; recoger → recoj- before a."""
    if vowel in "eé":
        if stem.endswith("c"):
            return stem[:-1] + "qu"
        if stem.endswith("g"):
            return stem + "u"
        if stem.endswith("z"):
            return stem[:-1] + "c"
    if vowel in "ao" and stem.endswith("g"):
        return stem[:-1] + "j" if not stem.endswith("ng") else stem
    return stem


def with_clitics(form: str, clitics: list[str]) -> str:
    """The imperative of usted with what is attached to it: llame → llámeme, dé → dele."""
    if not clitics:
        return form
    plain = form.replace("dé", "de") if len(clitics) == 1 else form
    stem = re.sub(r"[iuü]?[aeé]$", "", form)
    stressed = re.search(r"[áéíóú]", stem) or re.search(r"[aeo](?=[iu]?[^aeiou]*$)|[iu](?=[^aeiou]*$)", stem)
    if stressed is not None:
        at = stressed.start()
        plain = form[:at] + form[at].translate(_ACCENTS) + form[at + 1 :]
    return plain + "".join(clitics)


def attached(infinitive: str, clitics: list[str]) -> str:
    """hacer → hacerlo, hacérselo."""
    if len(clitics) > 1:
        infinitive = infinitive[:-2] + infinitive[-2].translate(_ACCENTS) + infinitive[-1]
    return infinitive + "".join(map(bare, clitics))


def gerund(form: str, clitics: list[str]) -> str:
    """esperando → esperándolo."""
    return (
        re.sub("([ae])(?=ndo$)", lambda found: found[1].translate(_ACCENTS), form) + "".join(map(bare, clitics))
        if clitics
        else form
    )


def stressed(clause: Clause) -> Clause:
    """He and she are said: the verb alone would be heard as that of "usted"."""
    np = clause.roles.get("S")
    if np is None or np.pronoun not in ("he", "she") or np.refers:
        return clause
    return replace(clause, roles={**clause.roles, "S": replace(np, det=STRESSED)})


SUBJECT = {
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
TONIC = {"i": "mí", "we": "nosotros", "you": "usted", "he": "él", "she": "ella", "they": "ellos", "that": "eso"}
TONIC["who"] = "quién"
CLITIC = {
    "i": ("me", "me"),
    "we": ("nos", "nos"),
    "you": ("lo", "le"),
    "he": ("lo", "le"),
    "she": ("la", "le"),
    "they": ("los", "les"),
}
POSSESSIVE = {"i": "mi", "he": "su", "she": "su", "you": "su", "they": "su"}
REFLEXIVE = {"1s": "me", "1p": "nos"}
BEFORE = {"bueno": "buen", "joven": "joven"}
EVALUATIVE = frozenset(
    [
        *(
            "aburrido",
            "breve",
            "acogedor",
            "agotador",
            "agradable",
            "alegre",
            "ambicioso",
            "amplio",
            "atractivo",
            "bonito",
        ),
        *("complejo", "complicado", "convincente", "creativo", "cómodo", "delicioso", "difícil"),
        *(
            "eficaz",
            "elegante",
            "emocionante",
            "extraño",
            "famoso",
            "generoso",
            "grande",
            "grave",
            "importante",
            "impresionante",
        ),
        *(
            "innovador",
            "interesante",
            "intuitivo",
            "largo",
            "maravilloso",
            "nuevo",
            "paciente",
            "pequeño",
            "potente",
            "práctico",
            "productivo",
        ),
        *("sencillo", "talentoso", "urgente", "útil", "valiente", "viejo"),
    ]
)
"""What stands before a noun of several words: after it, it would belong to the last of them."""
TASTES = frozenset(["ácido", "amargo", "delicioso", "dulce", "picante", "rico", "salado"])
STRESSED = "stressed"
"""In place of a determiner: a pronoun that is said."""
YOU_ALL = "you all"
"""In place of a determiner of "they": it is "ustedes", for those who answer with "we"."""
TODAY = ("earlier today", "this morning", "this morning at {clock}")
"""Times of what one says "ha leído" of."""
PROMPT = ("soon", "recently", "just now", "earlier today", "the other day")
"""Times that do not wait until the end."""
LASTING = ("look_forward",)
"""Frames that are not said with "estar" and a gerund."""
FOOD = ("meal", "food")
LINKS = {
    "because": "porque",
    "if": "si",
    "when": "cuando",
    "as": "como",
    "although": "aunque",
    "and": "y",
    "but": "pero",
    "so": "así que",
}
AROUND = {
    ("before", True): ("antes de", "infinitive"),
    ("after", True): ("después de", "infinitive"),
    ("before", False): ("antes de que", "subjunctive"),
    ("after", False): ("después de que", "subjunctive"),
    ("to", True): ("para", "infinitive"),
    ("so that", False): ("para que", "subjunctive"),
}
ASKED = {
    **{"when": "cuándo", "where": "dónde", "why": "por qué", "how": "cómo", "S": "quién", "O": "qué"},
    **{"how_long": "cuánto tiempo", "how_often": "con qué frecuencia", "amount": "cuánto"},
    **{
        "age": "cuántos años",
        "owner": "de quién",
        "place": "dónde",
        "since": "desde cuándo",
        "so_far": "cuánto tiempo",
    },
}
MATRIX = {"think": "creer", "know": "saber", "hope": "esperar", "whether": "saber"}
MODAL = {
    Modal.CAN: "poder",
    Modal.MUST: "tener",
    Modal.WANT: "querer",
    Modal.SHOULD: "deber",
}


class SpanishForms(Romance):
    language = "es"

    def form(self, verb: str, tense: str, person: str) -> str:
        """Of a table: present ×4, preterite ×4, future stem, participle, gerund, subjunctive ×4; - if regular."""
        at = _PERSONS.index("3s" if person == "2" else person)
        table = self.irregular.get(verb, "").split()
        kind = verb[-2:].replace("í", "i")
        stem = verb[:-2]
        place = {"present": at, "preterite": 4 + at, "participle": 9, "gerund": 10, "subjunctive": 11 + at}.get(
            tense
        )
        if table and place is not None and place < len(table) and table[place] != "-":
            return table[place]
        if tense == "participle":
            return stem + ("ado" if kind == "ar" else "ído" if stem[-1] in "aeo" else "ido")
        if tense == "gerund":
            return stem + ("ando" if kind == "ar" else "yendo" if stem[-1] in "aeou" else "iendo")
        if tense in ("future", "conditional"):
            base = table[8] if len(table) > 8 and table[8] != "-" else verb.replace("í", "i")
            return base + (_FUTURE if tense == "future" else _CONDITIONAL)[at]
        if tense == "imperfect" and verb in ("ser", "ir", "ver"):
            return {"ser": "era era éramos eran", "ir": "iba iba íbamos iban", "ver": "veía veía veíamos veían"}[
                verb
            ].split()[at]
        if tense == "past subjunctive":
            ended = self.form(verb, "preterite", "3p").removesuffix("ron")
            ended = ended[:-1] + ended[-1].translate(_ACCENTS) if at == 2 else ended
            return ended + ("ra", "ra", "ramos", "ran")[at]
        ending = _ENDINGS[tense, kind].split()[at]
        if tense == "subjunctive":
            first = table[0] if table and table[0] not in ("-", "soy", "estoy", "doy", "voy", "sé") else stem + "o"
            base = (
                first[:-1] if at != 2 or first[:-1] + "o" == stem + "o" or first.endswith(("go", "zco")) else stem
            )
            return _spelled(base, ending[0]) + ending
        if tense == "preterite" and at == 0:
            return _spelled(stem, "é" if kind == "ar" else "í") + ending
        if tense == "preterite" and kind != "ar" and stem[-1] in "aeou" and at in (1, 3):
            return stem + ("yó" if at == 1 else "yeron")
        if tense == "present" and at == 0 and kind != "ar":
            stem = re.sub(r"g$", "j", stem)
        return stem + ending

    def ended(self, base: str, agreement: str) -> str:
        if agreement[0] == "f":
            base = base[:-1] + "a" if base.endswith("o") else base + "a" if base.endswith("dor") else base
        return plural(base) if agreement.endswith("p") else base

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
