"""Draws slot values, invents names, and keeps training and test apart.

Training and test never share a name, a product or a combination of slot values. Names and products are split by a
stable hash of the word, combinations by a stable hash of pattern and values. Deterministic for a seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from enum import Enum
from functools import cache

from demo_model.grammar import Value
from demo_model.lexicon import load_lexicon
from demo_model.patterns import Pattern, in_part, stable_hash

TEST_NAMES = 10
"""One in this many names and products is kept for the test."""
TEST_COMBINATIONS = 16
"""One in this many combinations of slot values is kept for the test."""
_ATTEMPTS = 400
_MANY_WORDS = ("item", "event", "topic", "role")
"""Kinds of slots with so many words that a part of them is enough."""

Values = dict[str, Value]


class Split(Enum):
    TRAINING = "training"
    TEST = "test"
    ANY = "any"


@cache
def is_test_name(name: str) -> bool:
    return stable_hash("name", name) % TEST_NAMES == 0


def is_test_combination(pattern_id: str, values: Values) -> bool:
    return stable_hash("combination", pattern_id, sorted(values.items())) % TEST_COMBINATIONS == 0


_ONSETS = [
    "b",
    "c",
    "d",
    "f",
    "g",
    "h",
    "j",
    "k",
    "l",
    "m",
    "n",
    "p",
    "q",
    "r",
    "s",
    "t",
    "v",
    "w",
    "x",
    "y",
    "z",
    "br",
    "bl",
    "ch",
    "cl",
    "cr",
    "dr",
    "fl",
    "fr",
    "gh",
    "gl",
    "gr",
    "kh",
    "kl",
    "kr",
    "ll",
    "mb",
    "nd",
    "ng",
    "ny",
    "ph",
    "pl",
    "pr",
    "qu",
    "rh",
    "sc",
    "sh",
    "sk",
    "sl",
    "sm",
    "sn",
    "sp",
    "st",
    "str",
    "sv",
    "sw",
    "sz",
    "th",
    "tr",
    "ts",
    "tw",
    "tz",
    "vl",
    "vr",
    "wh",
    "zh",
]
_NUCLEI = [
    "a",
    "e",
    "i",
    "o",
    "u",
    "a",
    "e",
    "i",
    "o",
    "u",
    "ai",
    "au",
    "ay",
    "ea",
    "ee",
    "ei",
    "eo",
    "eu",
    "ey",
    "ia",
    "ie",
    "io",
    "oa",
    "oe",
    "oi",
    "oo",
    "ou",
    "oy",
    "ua",
    "ue",
    "ui",
    "y",
]
_ACCENTED = ["á", "à", "â", "ä", "ã", "å", "é", "è", "ê", "ë", "í", "î", "ï", "ó", "ô", "ö", "ø", "ú", "ü"]
_CODAS = [
    "n",
    "r",
    "l",
    "s",
    "t",
    "m",
    "k",
    "d",
    "x",
    "z",
    "n",
    "r",
    "l",
    "s",
    "ck",
    "ff",
    "ft",
    "ld",
    "ll",
    "lt",
    "mp",
    "nd",
    "ng",
    "nk",
    "nn",
    "nt",
    "ph",
    "rd",
    "rg",
    "rk",
    "rl",
    "rm",
    "rn",
    "rs",
    "rt",
    "sch",
    "sh",
    "ss",
    "st",
    "tt",
    "tz",
]
_CONSONANTS = "bcdfghjklmnpqrstvwxz"


@cache
def _nouns(part: float) -> dict[str, tuple[str, ...]]:
    """Kind of slot → its words, of many only a share."""
    return {
        kind: tuple(word for word in words if kind not in _MANY_WORDS or in_part(part, "noun", word))
        for kind, words in load_lexicon().entries.items()
    }


class Sampler:
    """A stream of slot values. Two samplers with the same seed and split give the same stream.

    part: the share of the nouns that are used.
    """

    def __init__(
        self, seed: int | str, split: Split = Split.ANY, known_names: float = 0.45, part: float = 1.0
    ) -> None:
        self.random = random.Random(f"{seed}/{split.value}")
        self.split = split
        self.known_names = known_names
        lexicon = load_lexicon()
        self._nouns = _nouns(part)
        self._names = tuple(filter(self._allowed, lexicon.names))
        self._surnames = tuple(filter(self._allowed, lexicon.surnames))
        self._products = tuple(filter(self._allowed, lexicon.products))
        self._draw: dict[str, Callable[[], Value]] = {
            "name": self.name,
            "product": self.product,
            "n": lambda: self.random.randint(2, 60) if self.random.random() < 0.5 else self.random.randint(2, 12),
            "room": self._room,
            "year": lambda: str(self.random.randint(1990, 2049)),
            "version": self._version,
            "ticket": self._ticket,
            "date": self._date,
            "time": self._time,
            "bign": self._big_number,
            "percent": self._percent,
            "money": self._money,
            "duration": self._duration,
        }

    def _allowed(self, name: str) -> bool:
        return self.split is Split.ANY or is_test_name(name) == (self.split is Split.TEST)

    def values(self, pattern: Pattern) -> Values:
        """Values for the pattern's slots. Raises LookupError if the pattern has no combination in this split."""
        for _ in range(_ATTEMPTS):
            values: Values = {}
            for name, slot in pattern.slots.items():
                value = self.value(slot.kind)
                while any(value == values[other] for other in values if other.rstrip("0123456789") == slot.kind):
                    value = self.value(slot.kind)
                values[name] = value
            if self.split is Split.ANY or not values:
                break
            if is_test_combination(pattern.id, values) == (self.split is Split.TEST):
                return values
        else:
            raise LookupError(f"{pattern.id}: no combination for {self.split.value}")
        if not values and self.split is Split.TEST:
            raise LookupError(f"{pattern.id}: has no slots, hence no unseen combination")
        return values

    def value(self, kind: str) -> Value:
        if kind in self._draw:
            return self._draw[kind]()
        return self.random.choice(self._nouns[kind])

    def name(self) -> str:
        draw = self.random.random()
        if draw < self.known_names:
            return self.random.choice(self._names)
        if draw < 0.85:
            return self._accepted(self._invented_name)
        if draw < 0.95:
            return f"{self.random.choice(self._names)} {self.random.choice(self._surnames)}"
        return f"{self.random.choice(self._names)} {self._accepted(self._invented_name)}"

    def product(self) -> str:
        name = (
            self.random.choice(self._products)
            if self.random.random() < self.known_names
            else self._accepted(lambda: self._syllables(self.random.choice((2, 2, 3))).capitalize())
        )
        if self.random.random() < 0.25:
            suffix = self.random.choice(load_lexicon().product_suffixes)
            name += f" {suffix if self.random.random() < 0.6 else self.random.randint(2, 99)}"
        return name

    def _accepted(self, invent: Callable[[], str]) -> str:
        while not self._allowed(name := invent()):
            pass
        return name

    def _syllables(self, count: int) -> str:
        """`count` syllables of several languages, in lower case."""
        rng = self.random
        word = "" if rng.random() < 0.15 else rng.choice(_ONSETS)
        for index in range(count):
            if index:
                word += rng.choice(_ONSETS[:21] if rng.random() < 0.7 else _ONSETS)
            word += rng.choice(_ACCENTED) if rng.random() < 0.05 else rng.choice(_NUCLEI)
            if rng.random() < (0.5 if index == count - 1 else 0.2):
                word += rng.choice(_CODAS)
        return word

    def _invented_name(self) -> str:
        rng = self.random
        draw = rng.random()
        if draw < 0.8:
            return self._syllables(rng.choice((1, 2, 2, 2, 3, 3, 4))).capitalize()
        if draw < 0.9:  # random letters, so that copying does not depend on likely syllables
            letters = "".join(rng.choice(_CONSONANTS + "aeiouyaeiou") for _ in range(rng.randint(3, 9)))
            return letters.capitalize()
        if draw < 0.94:
            return f"{self._syllables(1).capitalize()}-{self._syllables(rng.randint(1, 2)).capitalize()}"
        if draw < 0.97:
            return rng.choice(("Mc", "O'", "Mac", "De", "La")) + self._syllables(2).capitalize()
        return self._syllables(2).capitalize()

    def _room(self) -> str:
        rng = self.random
        number = (
            str(rng.randint(1, 12) * 100 + rng.randint(0, 60)) if rng.random() < 0.7 else str(rng.randint(1, 2999))
        )
        return rng.choice("ABCDEFGH") + number if rng.random() < 0.1 else number

    def _version(self) -> str:
        parts = self.random.choice((2, 2, 3))
        return ".".join(str(self.random.randint(0 if index else 1, 20)) for index in range(parts))

    def _ticket(self) -> str:
        rng = self.random
        prefix = (
            rng.choice(load_lexicon().ticket_prefixes)
            if rng.random() < 0.5
            else "".join(rng.choice("ABCDEFGHIJKLMNOPQRSTVWXYZ") for _ in range(rng.randint(2, 4)))
        )
        return f"{prefix}-{rng.randint(1, 10 ** rng.randint(1, 4))}"

    def _date(self) -> tuple[int, int]:
        month = self.random.randint(1, 12)
        return month, self.random.randint(1, 29 if month == 2 else 30 if month in (4, 6, 9, 11) else 31)

    def _time(self) -> tuple[int, int]:
        minute = self.random.choice((0, 0, 0, 15, 30, 30, 45, self.random.randint(1, 59)))
        return self.random.randint(7, 20), minute

    def _big_number(self) -> int:
        number = self.random.randint(1000, 10 ** self.random.randint(4, 7) - 1)
        return max(1000, self._rounded(number))

    def _money(self) -> int:
        number = max(100, self._rounded(self.random.randint(100, 10 ** self.random.randint(3, 7) - 1)))
        # Whole millions are avoided: Spanish and French need a preposition after them.
        return number + 1000 if number % 1_000_000 == 0 else number

    def _rounded(self, number: int) -> int:
        step = self.random.choice((1, 10, 100, 500, 1000, 1000, 5000))
        return number // step * step if number > step else number

    def _percent(self) -> str:
        if self.random.random() < 0.2:
            return f"{self.random.randint(0, 99)}.{self.random.randint(1, 9)}"
        return str(self.random.randint(2, 100))

    def _duration(self) -> tuple[int, str]:
        unit = self.random.choice(self._nouns["duration"])
        most = {"minutes": 90, "hours": 48, "days": 30, "weeks": 16, "months": 36}[unit]
        return self.random.randint(2, most) if self.random.random() < 0.5 else self.random.randint(2, 12), unit

    def word(self) -> str:
        """An invented word in lower case."""
        return self._syllables(self.random.choice((1, 2, 2, 3)))
