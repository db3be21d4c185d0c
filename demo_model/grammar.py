"""Writes slot values in each language: articles, cases, elision, numbers, dates. Pure; no randomness, no corpus.

A value is independent of languages (`Value`); `inflect` turns it into words. `Template` is one language's side of
a pattern, parsed. `corpus/PATTERNS.md` describes the forms.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache

from demo_model.lexicon import NOUN_KINDS, load_lexicon

Value = str | int | tuple[int, int] | tuple[int, str]
"""A noun, name or code: str. A number: int. Date (month, day), time (hour, minute), duration (count, unit)."""

KINDS = (
    *NOUN_KINDS,
    *("name", "product", "n", "room", "year", "version", "ticket"),
    *("weekday", "month", "date", "time", "bign", "percent", "money", "duration", "place", "dept"),
)
COPIED_KINDS = ("name", "product", "n", "room", "year", "version", "ticket")

_DE_DEFINITE = {
    "nom": {"m": "der", "f": "die", "n": "das"},
    "acc": {"m": "den", "f": "die", "n": "das"},
    "dat": {"m": "dem", "f": "der", "n": "dem"},
    "in": {"m": "im", "f": "in der", "n": "im"},
    "zu": {"m": "zum", "f": "zur", "n": "zum"},
    "von": {"m": "vom", "f": "von der", "n": "vom"},
    "bei": {"m": "beim", "f": "bei der", "n": "beim"},
    "an": {"m": "am", "f": "an der", "n": "am"},
}
_DE_INDEFINITE = {
    "ein": {"m": "ein", "f": "eine", "n": "ein"},
    "einen": {"m": "einen", "f": "eine", "n": "ein"},
    "einem": {"m": "einem", "f": "einer", "n": "einem"},
}
# Endings of an adjective inside the noun ("erst~ Quartal"): weak after der/die/das, mixed after ein, strong alone.
_DE_WEAK = {"nom": {"m": "e", "f": "e", "n": "e"}, "acc": {"m": "en", "f": "e", "n": "e"}}
_DE_MIXED = {"ein": {"m": "er", "f": "e", "n": "es"}, "einen": {"m": "en", "f": "e", "n": "es"}}
_DE_STRONG = {"m": "er", "f": "e", "n": "es"}
_ES = {
    "el": {"m": "el", "f": "la"},
    "un": {"m": "un", "f": "una"},
    "de": {"m": "del", "f": "de la"},
    "a": {"m": "al", "f": "a la"},
}
_FR = {
    "le": {"m": "le ", "f": "la ", "elided": "l'"},
    "un": {"m": "un ", "f": "une "},
    "de": {"m": "du ", "f": "de la ", "elided": "de l'"},
    "à": {"m": "au ", "f": "à la ", "elided": "à l'"},
    "ce": {"m": "ce ", "f": "cette ", "m elided": "cet "},
}
NOUN_FORMS: dict[str, frozenset[str]] = {
    "en": frozenset({"a"}),
    "ja": frozenset(),
    "zh": frozenset(),
    "es": frozenset(_ES),
    "fr": frozenset(_FR),
    "de": frozenset(_DE_DEFINITE) | frozenset(_DE_INDEFINITE),
}
AGREEMENT_CHOICES = {"es": 2, "fr": 2, "de": 3}
_AN_EXCEPTIONS = ("user", "unit", "use", "one", "uni", "eu")

_SLOT = re.compile(r"\{([a-z]+)(\d?)(?::([^{}]*))?\}")


@dataclass(frozen=True)
class Slot:
    """`{item2:?nuevo/nueva}` has kind item, name item2 and form `?nuevo/nueva`."""

    kind: str
    name: str
    form: str = ""


@dataclass(frozen=True)
class Template:
    """One language's side of a pattern: literal text and slots in order."""

    parts: tuple[str | Slot, ...]

    @property
    def slots(self) -> tuple[Slot, ...]:
        return tuple(part for part in self.parts if isinstance(part, Slot))


@cache
def parse_template(text: str) -> Template:
    """The parsed template. Raises ValueError for a brace that is not part of a slot."""
    parts: list[str | Slot] = []
    position = 0
    for match in _SLOT.finditer(text):
        if match.start() > position:
            parts.append(text[position : match.start()])
        kind, digit, form = match.group(1), match.group(2), match.group(3) or ""
        parts.append(Slot(kind, kind + digit, form))
        position = match.end()
    if position < len(text):
        parts.append(text[position:])
    for part in parts:
        if isinstance(part, str) and ("{" in part or "}" in part):
            raise ValueError(f"a brace that is not a slot near {part.strip()!r}")
    return Template(tuple(parts))


def starts_with_vowel(word: str) -> bool:
    letters = unicodedata.normalize("NFD", word[:2].lower().replace("œ", "o").replace("æ", "a"))
    letters = "".join(letter for letter in letters if not unicodedata.combining(letter))
    if letters[:1] == "y":
        return len(letters) > 1 and letters[1] not in "aeiouy"
    return letters[:1] in set("aeiou")


def elides_in_french(kind: str, value: Value, rendered: str) -> bool:
    """Whether French `de` becomes `d'` before this word."""
    lexicon = load_lexicon()
    if not rendered or rendered[0].isdigit():
        return False
    if rendered[0] in "hH":
        if kind in NOUN_KINDS or kind == "place":
            return lexicon.word(kind, str(value), "fr").elides
        return rendered.split()[0] in lexicon.french_silent_h
    return starts_with_vowel(rendered)


@cache
def _noun(kind: str, key: str, language: str, form: str) -> str:
    word = load_lexicon().word(kind, key, language)
    if form.startswith("?"):
        return form[1:].split("/")["mfn".index(word.gender)]
    match language:
        case "en" if form == "a":
            vowel = key[0].lower() in "aeiou" and not key.lower().startswith(_AN_EXCEPTIONS)
            return f"{'an' if vowel else 'a'} {word.text}"
        case "es" if form:
            return f"{_ES[form][word.gender]} {word.text}"
        case "fr" if form:
            articles = _FR[form]
            vowel = word.elides and (word.text[0] in "hH" or starts_with_vowel(word.text))
            article = articles[word.gender]
            if vowel:
                article = articles.get("elided") or articles.get(f"{word.gender} elided") or article
            return article + word.text
        case "de":
            return _german_noun(word.text, word.gender, form)
    return word.text


def _german_noun(text: str, gender: str, form: str) -> str:
    if form in _DE_DEFINITE:
        ending = _DE_WEAK[form][gender] if form in _DE_WEAK else "en"
        return f"{_DE_DEFINITE[form][gender]} {text.replace('~', ending)}"
    if form in _DE_INDEFINITE:
        ending = _DE_MIXED[form][gender] if form in _DE_MIXED else "en"
        return f"{_DE_INDEFINITE[form][gender]} {text.replace('~', ending)}"
    return text.replace("~", _DE_STRONG[gender])


def grouped(number: int, language: str) -> str:
    """12500 → 12,500 / 12.500 / 12 500."""
    return f"{number:,}".replace(",", {"es": ".", "de": ".", "fr": " "}.get(language, ","))


def _time(hour: int, minute: int, language: str) -> str:
    match language:
        case "en":
            return f"{(hour - 1) % 12 + 1}:{minute:02} {'AM' if hour < 12 else 'PM'}"
        case "ja":
            half, shown = ("午前", hour) if hour < 12 else ("午後", hour - 12)
            return f"{half}{shown}時" + (f"{minute}分" if minute else "")
        case "zh":
            half = "上午" if hour < 12 else "中午" if hour == 12 else "下午" if hour < 18 else "晚上"
            return f"{half}{(hour - 1) % 12 + 1}点" + (f"{minute}分" if minute else "")
        case "fr":
            return f"{hour} h {minute:02}" if minute else f"{hour} h"
        case "de":
            return f"{hour}:{minute:02} Uhr"
    return f"{hour}:{minute:02}"


def _date(month: int, day: int, language: str) -> str:
    names = tuple(load_lexicon().entries["month"])
    name = load_lexicon().word("month", names[month - 1], language).text
    match language:
        case "en":
            return f"{name} {day}"
        case "ja" | "zh":
            return f"{name}{day}日"
        case "es":
            return f"{day} de {name}"
        case "de":
            return f"{day}. {name}"
    return f"{'1er' if day == 1 else day} {name}"


def _duration(count: int, unit: str, language: str, form: str) -> str:
    text = load_lexicon().word("duration", unit, language).text
    if language in ("ja", "zh"):
        return f"{count}{text}"
    if language == "de":
        accusative, dative = text.split("/")
        text = dative if form == "dat" else accusative
    return f"{count} {text}"


def inflect(slot: Slot, value: Value, language: str) -> str:
    """The words for `value` in this slot of a `language` template."""
    match slot.kind, value:
        case (("item" | "event" | "topic" | "role" | "quarter"), str(key)):
            return _noun(slot.kind, key, language, slot.form)
        case (("weekday" | "month" | "place" | "dept"), str(key)):
            return load_lexicon().word(slot.kind, key, language).text
        case "date", (int(month), int(day)):
            return _date(month, day, language)
        case "time", (int(hour), int(minute)):
            return _time(hour, minute, language)
        case "duration", (int(count), str(unit)):
            return _duration(count, unit, language, slot.form)
        case "bign", int(number):
            return grouped(number, language)
        case "percent", str(number):
            number = number.replace(".", ",") if language in ("es", "de", "fr") else number
            return f"{number} %" if language in ("es", "de", "fr") else f"{number}%"
        case "money", int(number):
            amount = grouped(number, language)
            units = {"ja": "ドル", "zh": "美元", "es": " dólares", "de": " Dollar", "fr": " dollars"}
            return f"${amount}" if language == "en" else amount + units[language]
        case _, (str() | int()):
            return str(value)
    raise ValueError(f"{value!r} cannot fill {slot.kind}")


_FR_ELIDING = re.compile(r"(?:^|(?<=[\s'-]))(de|que|jusque|lorsque|puisque) $", re.IGNORECASE)
_SENTENCE_START = re.compile(r"(?:^|(?<=[.?!] ))([¿¡]?)([^\W\d_])")


def join_literal(literal: str, slot: Slot, value: Value, rendered: str, language: str) -> str:
    """The literal text before a slot, changed if the word in the slot requires it (d'Anna, e Inés, u 8)."""
    if language == "fr" and literal.endswith("e ") and _FR_ELIDING.search(literal):
        if elides_in_french(slot.kind, value, rendered) or slot.form == "un":
            return literal[:-2] + "'"
    elif (language == "es" and literal.endswith((" y ", " o "))) or literal in ("y ", "o "):
        first = unicodedata.normalize("NFD", rendered.lower())[:3].replace("\u0301", "")
        if literal.endswith("y ") and re.match(r"h?i(?![aeo])", first):
            return literal[:-2] + "e "
        if literal.endswith("o ") and (re.match(r"h?o|8", first) or rendered == "11"):
            return literal[:-2] + "u "
    return literal


def capitalised(text: str) -> str:
    """The sentence with a capital at its beginning; the length never changes."""

    def upper(match: re.Match[str]) -> str:
        letter = match.group(2).upper()
        return match.group(1) + (letter if len(letter) == 1 else match.group(2))

    return _SENTENCE_START.sub(upper, text)
