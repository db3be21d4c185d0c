"""The prompt format: how a request becomes token ids, and ids become text. Pure; the names and ids of the
tokens are those of `gateway.bundled.tokenizer`.

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

from gateway.bundled.tokenizer import BEGIN, FINAL, IDS, PARTIAL, TO


def prompt_ids(source_language: str, target_language: str, final: bool, source_ids: Sequence[int]) -> list[int]:
    """The prompt. source_ids: the source text alone, encoded as described in this module."""
    return [
        IDS[BEGIN],
        IDS[f"<{source_language}>"],
        IDS[f"<{target_language}>"],
        IDS[FINAL if final else PARTIAL],
        *source_ids,
        IDS[TO],
    ]


def answer_limit(source_tokens: int) -> int:
    """Most tokens of an answer, by the number of source tokens."""
    return 2 * source_tokens + 32
