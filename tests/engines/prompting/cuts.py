"""How a tokenizer cuts texts: words with the cut that a test needs, found by asking the tokenizer."""

from __future__ import annotations

import re
from itertools import pairwise, product
from string import ascii_lowercase
from typing import Any

# Patterns of `one_token`.
LOWER_WORD, CAPITAL_WORD, HAN_WORD = r" [a-z]{4,}", r"[A-Z][a-z]{5,}", r"[\u4e00-\u9fff]{3}"


def encoded(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
    return ids


def pieces(tokenizer: Any, text: str) -> list[str]:
    """The text of each token."""
    return [tokenizer.decode([token]) for token in encoded(tokenizer, text)]


def one_token(tokenizer: Any, pattern: str) -> str:
    """A text of this pattern that is one token."""
    texts = ((token, str(tokenizer.decode([token]))) for token in range(len(tokenizer)))
    return next(t for token, t in texts if re.fullmatch(pattern, t) and encoded(tokenizer, t) == [token])


def rare_characters(tokenizer: Any) -> tuple[str, str]:
    """Two characters that the vocabulary lacks: each is three tokens, and only the last of them differ."""
    cuts = ((chr(code), encoded(tokenizer, chr(code))) for code in range(0x4E00, 0xA000))
    return next(
        (one, other)
        for (one, its), (other, others) in pairwise(cuts)
        if len(its) == len(others) == 3 and its[:2] == others[:2]
    )


def letters_that_a_third_parts(tokenizer: Any) -> tuple[str, str]:
    """Two letters that are one token, and a letter behind which they are not: it is one token with the second.

    All stand behind a full stop, which is a token of its own.
    """
    for a, b, c in product(ascii_lowercase, repeat=3):
        if pieces(tokenizer, f".{a}{b}") == [".", a + b] and pieces(tokenizer, f".{a}{b}{c}") == [".", a, b + c]:
            return a + b, c
    raise LookupError("no such letters in the vocabulary")
