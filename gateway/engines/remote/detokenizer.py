"""Makes text of the tokens that a server sends, as they come.

Knows: Hugging Face tokenizers, and what vLLM makes of the same tokens: the text is to be the same.
Must not know: where the tokens come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# What decoders show for an incomplete character.
_INCOMPLETE = "\ufffd"

# The beginning of what `tokenizers` says about tokens that take back text which they gave.
_TAKEN_BACK = "Invalid prefix encountered"


class Detokenizer:
    """The text of one answer. prompt: its tokens, on which the space before the first word depends."""

    def __init__(self, tokenizer: Any, prompt: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._backend = getattr(tokenizer, "backend_tokenizer", None)
        self._stream = None if self._backend is None else _stream(prompt)
        # For a slow tokenizer: all tokens, and how much of their text was given.
        self._ids = list(prompt[-1:])
        self._given = len(self._decoded()) if self._backend is None else 0

    def add(self, ids: Sequence[int]) -> str:
        """The text that these tokens add. A character whose last token has not come is held back."""
        if self._backend is None:
            self._ids += ids
            text = self._decoded().rstrip(_INCOMPLETE)
            new, self._given = text[self._given :], max(self._given, len(text))
            return new
        return "".join(self._step(token) for token in ids)

    def _step(self, token: int) -> str:
        try:
            return self._stream.step(self._backend, token) or ""  # type: ignore[union-attr]
        except Exception as error:
            # Bytes that are not UTF-8 confuse the stream; vLLM takes a new one, too.
            if not str(error).startswith(_TAKEN_BACK):
                raise
            self._stream = _stream(())
            return self._stream.step(self._backend, token) or ""

    def _decoded(self) -> str:
        text: str = self._tokenizer.decode(self._ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text


def _stream(prompt: Sequence[int]) -> Any:
    from tokenizers.decoders import DecodeStream

    return DecodeStream(ids=list(prompt), skip_special_tokens=True)
