"""The prompt format: how a request becomes token ids, and ids become text. This is its only definition; pure.

    <s> <source language> <target language> <final>|<partial>  source text  <to>   →   target text  </s>

- The four tokens before the source and `<to>` after it are single ids. There is no space anywhere between them.
- The source text is encoded exactly as it is: nothing is added, stripped or normalised, and no part of it is read
  as a special token (`tokenizers`: `encode_special_tokens = True`, `add_special_tokens=False`).
- `<final>`: the sentence is finished. `<partial>`: more may follow; an unfinished source gets an unfinished
target.
- The answer is `tokenizer.decode(ids, skip_special_tokens=True)`, exactly the target text: no leading space, no
  clean-up. It ends with `</s>`. Streamed pieces (`DecodeStream`) join to the same text.
- An answer longer than `answer_limit` tokens is a failure of the model, not a translation.
"""

from __future__ import annotations

from collections.abc import Sequence

from demo_model import LANGUAGES
from gateway.bundled.tokenizer import BEGIN, END, FINAL, IDS, PAD, PARTIAL, PROMPT_TOKENS, TO

__all__ = [
    "BEGIN",
    "END",
    "FINAL",
    "IDS",
    "MARKER",
    "PAD",
    "PARTIAL",
    "PROMPT_TOKENS",
    "TO",
    "answer_limit",
    "prompt_ids",
]

LANGUAGE_TOKENS = {language: f"<{language}>" for language in LANGUAGES}
FIRST_TRAINED = IDS[PROMPT_TOKENS[0]]
"""The base's own control tokens are before it; ours take its first unused ones, and are trained."""

MARKER = {"prompt": "bundled", "languages": list(LANGUAGES), "version": 1}
"""The value of `translation_gateway` in config.json, which tells the gateway the prompt of this model."""


def prompt_ids(source_language: str, target_language: str, final: bool, source_ids: Sequence[int]) -> list[int]:
    """The prompt. source_ids: the source text alone, encoded as described in this module."""
    return [
        IDS[BEGIN],
        IDS[LANGUAGE_TOKENS[source_language]],
        IDS[LANGUAGE_TOKENS[target_language]],
        IDS[FINAL if final else PARTIAL],
        *source_ids,
        IDS[TO],
    ]


def answer_limit(source_tokens: int) -> int:
    """Most tokens of an answer, by the number of source tokens."""
    return 2 * source_tokens + 32
