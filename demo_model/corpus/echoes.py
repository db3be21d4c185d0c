"""Inputs that are not sentences of the corpus. The model learns to copy them, so that every answer ends.

Noise, other scripts, addresses, markup, numbers, unknown words.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable

_SCRIPTS = (  # (first, last) code points of scripts that the model does not translate
    (0x0430, 0x044F),  # Cyrillic
    (0x0410, 0x042F),
    (0x0621, 0x064A),  # Arabic
    (0xAC00, 0xD7A3),  # Hangul
    (0x0E01, 0x0E2E),  # Thai
    (0x05D0, 0x05EA),  # Hebrew
    (0x0905, 0x0939),  # Devanagari
    (0x03B1, 0x03C9),  # Greek
    (0x0985, 0x09B9),  # Bengali
    (0x10D0, 0x10F0),  # Georgian
    (0x0561, 0x0586),  # Armenian
    (0x1200, 0x1350),  # Ethiopic
)
_EMOJI = "😀😂😍🤔👍👎🙏🎉🔥💡❤️✅❌🚀📈📉☕🍕🐱🌍⏰👩‍💻🇯🇵🏳️‍🌈"
_COMMANDS = (
    "SELECT * FROM users;",
    "rm -rf /",
    "<|im_start|>system",
    "</s><s>",
    "<en> <ja> <final>",
    "[INST]",
    "### ###",
    "{name}",
    "{{count}}",
    "%s: %d",
)
_ONSETS = ("", *"bcdfghjklmnprstvwxyz", "br", "ch", "cl", "fl", "gr", "kl", "pr", "sch", "st", "th", "tr")
_CODAS = ("", "", "", "l", "n", "r", "s", "t", "ck", "ng")
_TAGS = ("b", "i", "div", "script", "p", "span", "br/", "img src=x", "a href='#'")


def _characters(rng: random.Random, alphabet: str, least: int, most: int) -> str:
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(least, most)))


def _word(rng: random.Random) -> str:
    """An invented word of one to four syllables."""
    return "".join(
        rng.choice(_ONSETS) + rng.choice("aeiou") + rng.choice(_CODAS) for _ in range(rng.choice((1, 2, 2, 3, 4)))
    )


def _script_words(rng: random.Random) -> str:
    first, last = rng.choice(_SCRIPTS)
    words = rng.randint(1, 8)
    return " ".join(
        "".join(chr(rng.randint(first, last)) for _ in range(rng.randint(1, 8))) for _ in range(words)
    ) + rng.choice(("", "", ".", "?", "!"))


def _any_unicode(rng: random.Random) -> str:
    letters: list[str] = []
    while len(letters) < rng.randint(1, 15):
        code = rng.choice((rng.randint(0x20, 0x24F), rng.randint(0x2000, 0x2BFF), rng.randint(0x3000, 0x1F9FF)))
        if not 0xD800 <= code <= 0xDFFF:
            letters.append(chr(code))
    return "".join(letters)


def _address(rng: random.Random) -> str:
    host = _word(rng) + rng.choice((".com", ".org", ".de", ".co.jp", ".io", ".fr"))
    return rng.choice(
        (
            f"https://{host}/{_characters(rng, string.ascii_lowercase + string.digits, 0, 12)}",
            f"http://www.{host}",
            f"{_word(rng)}@{host}",
            f"{host}/{_word(rng)}?id={rng.randint(1, 9999)}",
        )
    )


def _unknown_words(rng: random.Random) -> str:
    """A sentence of invented words."""
    words = [_word(rng) for _ in range(rng.randint(1, 14))]
    if rng.random() < 0.4:
        words[0] = words[0].capitalize()
    return " ".join(words) + rng.choice(("", "", ".", "?", "!"))


def _number(rng: random.Random) -> str:
    return rng.choice(
        (
            str(rng.randint(0, 10 ** rng.randint(1, 14))),
            f"{rng.random() * 1000:.{rng.randint(1, 4)}f}",
            f"+{rng.randint(1, 99)} {rng.randint(100, 999)} {rng.randint(1000, 99999)}",
            f"{rng.randint(0, 23)}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}",
            " ".join(str(rng.randint(0, 99)) for _ in range(rng.randint(2, 10))),
        )
    )


def _markup(rng: random.Random) -> str:
    tag = rng.choice(_TAGS)
    inner = _word(rng) if rng.random() < 0.5 else rng.choice(_COMMANDS)
    return f"<{tag}>{inner}</{tag.split()[0]}>" if rng.random() < 0.6 else rng.choice(_COMMANDS)


def _repeated(rng: random.Random) -> str:
    unit = rng.choice(
        (rng.choice(string.printable[:94]), _characters(rng, string.ascii_lowercase, 2, 4), "ха", "哈", "w")
    )
    return (unit + rng.choice(("", " "))) * rng.randint(2, 30)


def _ideographs(rng: random.Random) -> str:
    return "".join(
        chr(rng.choice((rng.randint(0x4E00, 0x9FA5), rng.randint(0x3041, 0x3096), rng.randint(0x30A1, 0x30FA))))
        for _ in range(rng.randint(1, 10))
    )


def echo(rng: random.Random) -> str:
    """One such input. It is never blank, and has no space at either end."""
    makers: tuple[Callable[[], str], ...] = (
        lambda: _unknown_words(rng),
        lambda: _unknown_words(rng),
        lambda: _script_words(rng),
        lambda: _script_words(rng),
        lambda: _characters(rng, string.ascii_letters + string.digits + string.punctuation + "  ", 1, 30),
        lambda: _characters(rng, string.ascii_lowercase + "     ", 1, 60),
        lambda: _characters(rng, string.punctuation + "…。、，？！¿¡", 1, 6),
        lambda: _characters(rng, _EMOJI, 1, 6),
        lambda: _any_unicode(rng),
        lambda: _address(rng),
        lambda: _number(rng),
        lambda: _markup(rng),
        lambda: _repeated(rng),
        lambda: _ideographs(rng),
    )
    text = rng.choice(makers)().strip()
    return text or rng.choice(string.punctuation)
