"""The same sentence as others type it: capitals, none, no accents, no marks, wide letters, spaces."""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Callable

_PLAIN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
_MARKS = re.compile(r"[.,?!;:¿¡。、，？！；：…]")
_END = re.compile(r"[.?!。？！]+$")
_WIDE = str.maketrans({code: code + 0xFEE0 for code in range(0x21, 0x7F)})
_NARROW_MARKS = str.maketrans("。、，？！：；（）", ".,,?!:;()")
_ENDS = ("!", "!!", "...", "…", " !", "", "", "。", "~", " .")


def without_accents(text: str, language: str) -> str:
    """`für` is `fuer` in German, `años` is `anos` in Spanish."""
    if language == "de":
        return text.translate(_PLAIN)
    apart = unicodedata.normalize("NFD", text)
    return unicodedata.normalize(
        "NFC", "".join(letter for letter in apart if unicodedata.category(letter) != "Mn")
    )


def _cased(text: str, language: str, rng: random.Random) -> str:
    make: Callable[[str], str] = rng.choice((str.upper, str.lower, str.lower, str.title))
    return make(text)


def _bare(text: str, language: str, rng: random.Random) -> str:
    bare = _MARKS.sub("", text)
    return bare if rng.random() < 0.5 else bare.lower()


def _spaced(text: str, language: str, rng: random.Random) -> str:
    if language in ("ja", "zh"):
        return " ".join(text) if rng.random() < 0.3 else _MARKS.sub(" ", text).strip()
    return text.replace(" ", rng.choice(("  ", "  ", "\u00a0", "\n")), rng.choice((1, 2, 99)))


def _ended(text: str, language: str, rng: random.Random) -> str:
    """Another end; a question stays one."""
    bare = _END.sub("", text)
    return bare + rng.choice(("?", "??", " ?", "?!") if text[-1:] in "?？" else _ENDS)


def _curly(text: str, language: str, rng: random.Random) -> str:
    return text.replace("'", "’").replace('"', "”")


def _wide(text: str, language: str, rng: random.Random) -> str:
    if language in ("ja", "zh"):
        return text.translate(_NARROW_MARKS) if rng.random() < 0.6 else text.translate(_WIDE)
    return without_accents(text, language)


def _slipped(text: str, language: str, rng: random.Random) -> str:
    """One slip of the fingers: two letters swapped, one left out or doubled."""
    places = [index for index in range(1, len(text) - 2) if text[index].isalpha() and text[index + 1].isalpha()]
    if not places or language in ("ja", "zh"):
        return text
    at = rng.choice(places)
    slips = ((text[at + 1] + text[at], at + 2), ("", at + 1), (text[at] * 2, at + 1))
    instead, rest = rng.choice(slips)
    return text[:at] + instead + text[rest:]


def respelled(text: str, language: str, rng: random.Random) -> str:
    """The text in another spelling; never empty, without blanks at either end."""
    makers = (_cased, _cased, _bare, _bare, _spaced, _ended, _curly, _wide, _slipped)
    return rng.choice(makers)(text, language, rng).strip() or text
