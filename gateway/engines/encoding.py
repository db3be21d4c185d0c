"""From a translation request to token ids, and how long the answer may be.

Knows: a model's tokenizer and its prompt family. Must not know: which engine runs the model.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from gateway.errors import EngineFailed
from gateway.events import TranslationRequest
from gateway.prompt_templates import ChatPrompt, RawPrompt
from gateway.prompts import PromptFamily

__all__ = ["PromptEncoder"]


class PromptEncoder:
    """Encodes prompts of one family with one Hugging Face tokenizer.

    window: tokens of prompt and answer together.
    output_base, output_per_source_token: the answer may have base + factor × source tokens.
    """

    def __init__(
        self,
        tokenizer: Any,
        family: PromptFamily,
        *,
        window: int,
        output_base: int,
        output_per_source_token: float,
    ) -> None:
        self._tokenizer = tokenizer
        self._family = family
        self._window = window
        self._output_base = output_base
        self._output_per_source_token = output_per_source_token
        self._special_tokens = frozenset(map(str, tokenizer.all_special_tokens))
        self.stop_token_ids: list[int] = tokenizer.convert_tokens_to_ids(list(family.stop))

    @property
    def max_text_tokens(self) -> int:
        """A text of so many tokens surely fits with an answer twice as long; a little more may."""
        return (self._window - self._output_base) // 4

    def encode(self, request: TranslationRequest) -> tuple[list[int], int]:
        """Token ids of the prompt, and how many tokens the answer may have. Raises `EngineFailed`."""
        source_tokens = len(self._tokenizer.encode(request.text, add_special_tokens=False))
        wanted = self._output_base + int(self._output_per_source_token * source_tokens)
        least = min(wanted, self._output_base + source_tokens)
        ids = self._ids(request)
        # Background gives way to the text, the oldest half first.
        while self._window - len(ids) < least and (context := request.options.context):
            kept = context[(len(context) + 1) // 2 :]
            request = replace(request, options=replace(request.options, context=kept))
            ids = self._ids(request)
        room = self._window - len(ids)
        if room < least:
            raise EngineFailed(
                f"The text has {source_tokens} tokens; the model's window of {self._window} does not hold it."
            )
        return ids, min(wanted, room)

    def _ids(self, request: TranslationRequest) -> list[int]:
        tokenizer = self._tokenizer
        match self._family.render(request, self._special_tokens):
            case RawPrompt(text=text, add_special_tokens=add_special_tokens):
                pass
            case ChatPrompt() as chat:
                # The template writes the special tokens itself.
                add_special_tokens = False
                text = tokenizer.apply_chat_template(
                    chat.as_dicts(),
                    tokenize=False,
                    add_generation_prompt=True,
                    **dict(self._family.template_kwargs),
                )
        # Whatever a user supplied has no special token left in it, so all that are here are the prompt's own.
        ids: list[int] = tokenizer.encode(text, add_special_tokens=add_special_tokens, split_special_tokens=False)
        return ids
