"""Makes text of token ids as they come: the same text, whatever the steps in which they come.

Knows: a Hugging Face tokenizer's decoder, tokens that are single bytes. Must not know: prompts, engines.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

# What decoders show for an incomplete character.
INCOMPLETE = "\ufffd"

# From so many tokens on, earlier ones are not decoded again.
_LONG = 24


class Vocabulary:
    """How a tokenizer makes text of ids.

    Byte tokens, `<0xE4>`, are decoded here: the tokenizers library shows all of a run of them as broken if any
    part is, so that what was given of it would have to be taken back.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._backend = getattr(tokenizer, "backend_tokenizer", None)
        self.special = frozenset(tokenizer.all_special_ids)
        names = tokenizer.convert_tokens_to_ids([f"<0x{byte:02X}>" for byte in range(256)])
        self.bytes = {id: bytes([byte]) for byte, id in enumerate(names) if id is not None}
        # Others may have such names for something else, or one token for all that they do not know.
        if len(self.bytes) < 256 or self.decode([names[ord("A")]]) != "A":
            self.bytes = {}

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids at once, without special tokens."""
        if self._backend is not None:
            text: str = self._backend.decode(ids, skip_special_tokens=True)
        else:
            text = self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text


class Detokenizer:
    """The text of one answer. prompt: its tokens, on which the space before the first word depends."""

    def __init__(self, vocabulary: Vocabulary, prompt: Sequence[int]) -> None:
        self._vocabulary = vocabulary
        # What is decoded again, so that words are what they are behind others, and how much of its text was given.
        self._window: list[int] = []
        self._given = 0
        count = 1
        while count and not self._given:
            self._begin_at([id for id in prompt[-count:] if id not in vocabulary.bytes])
            count = 2 * count if count < len(prompt) else 0
        # A character of which not all bytes have come, and whether there is one.
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, ids: Iterable[int]) -> str:
        """The text that these tokens add. What may be the beginning of a character is held back."""
        said, known = "", self._vocabulary.bytes
        shown = (id for id in ids if id not in self._vocabulary.special)
        for are_bytes, run in groupby(shown, known.__contains__):
            if are_bytes:
                said += self._utf8.decode(b"".join(map(known.__getitem__, run)))
            else:
                said += self._utf8.decode(b"", final=True) + self._add_words([*run])
        return said

    def _add_words(self, ids: list[int]) -> str:
        self._window += ids
        text = self._vocabulary.decode(self._window)
        whole = text.rstrip(INCOMPLETE)
        said, self._given = whole[self._given :], max(self._given, len(whole))
        if whole == text and len(self._window) > _LONG:
            self._begin_at(ids)
        return said

    def _begin_at(self, ids: list[int]) -> None:
        """From now on only these are decoded again, if they show anything."""
        if given := len(self._vocabulary.decode(ids)):
            self._window, self._given = ids, given
