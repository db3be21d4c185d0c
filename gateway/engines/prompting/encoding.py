"""From a translation request to token ids: the prompt, how its answer is proposed to begin, how long it may be.

Knows: a model's tokenizer and its prompt family. Must not know: which engine runs the model, whether the model
agrees with what is proposed (see `verification`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gateway.domain.engine import TranslationOptions, TranslationRequest
from gateway.domain.errors import EngineFailed
from gateway.engines.prompting.families import PromptFamily
from gateway.engines.prompting.safety import neutralise
from gateway.engines.prompting.templates import ChatPrompt, RawPrompt

__all__ = ["EncodedPrompt", "Opening", "PromptEncoder", "common_length"]


_NO_OPTIONS = TranslationOptions()

# What decoders show for a character some of whose tokens are missing.
_INCOMPLETE = "\ufffd"


class EncodedPrompt(Struct, frozen=True):
    """A prompt in tokens.

    room: what the model's window leaves behind the prompt, tokens. max_tokens: the limit of the whole answer.
    text, add_special_tokens: what was encoded, and how.
    """

    ids: list[int]
    max_tokens: int
    room: int
    text: str
    add_special_tokens: bool


class Opening(Struct, frozen=True):
    """How an answer is proposed to begin: a request's prefix and, behind it, its draft.

    prefix: as requested. safe_prefix, safe_text: the prefix, and all of it, with special tokens broken.
    ids: tokens of `safe_text`. within: how many of them lie wholly in the prefix; cover: how many hold all of it.
    The two differ where a token reaches over the border.
    """

    prefix: str = ""
    safe_prefix: str = ""
    safe_text: str = ""
    ids: list[int] = []
    within: int = 0
    cover: int = 0


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
        self._backend = _own_backend(tokenizer)
        self._family = family
        self._window = window
        self._output_base = output_base
        self._output_per_source_token = output_per_source_token
        self._special_tokens = frozenset(map(str, tokenizer.all_special_tokens))
        self._control = self._special_tokens | family.markers
        self.stop_token_ids: list[int] = tokenizer.convert_tokens_to_ids(list(family.stop))
        added = getattr(tokenizer, "added_tokens_decoder", {})
        control_ids = [number for number, token in added.items() if token.special]
        self._control_ids = frozenset([*tokenizer.all_special_ids, *self.stop_token_ids, *control_ids])
        # Tokens of a prompt without its text, by source, target and whether it is final.
        self._around: dict[tuple[str, str, bool], int] = {}

    @property
    def max_text_tokens(self) -> int:
        """A text of so many tokens surely fits with an answer twice as long; a little more may."""
        return (self._window - self._output_base) // 4

    def encode(self, request: TranslationRequest) -> EncodedPrompt:
        """The prompt, without prefix and draft. Raises `EngineFailed` for a text that the window does not hold."""
        text, add_special_tokens = self._render(request)
        ids = self._ids(text, add_special_tokens)
        source_tokens = self._source_tokens(request, len(ids))
        wanted = self._output_base + int(self._output_per_source_token * source_tokens)
        least = min(wanted, self._output_base + source_tokens)
        # Background gives way to the text, the oldest half first.
        while self._window - len(ids) < least and (context := request.options.context):
            kept = context[(len(context) + 1) // 2 :]
            request = replace(request, options=replace(request.options, context=kept))
            text, add_special_tokens = self._render(request)
            ids = self._ids(text, add_special_tokens)
        room = self._window - len(ids)
        if room < least:
            raise EngineFailed(
                f"The text has {source_tokens} tokens; the model's window of {self._window} does not hold it."
            )
        return EncodedPrompt(ids, min(wanted, room), room, text, add_special_tokens)

    def opening(self, prompt: EncodedPrompt, prefix: str, draft: str) -> Opening:
        """Prefix and draft in tokens, as they would follow the prompt.

        A draft gets the tokens that an answer of `max_tokens` may have before its last one. It is left out where
        it takes the prefix apart: where a special token lies across the border, or the tokens do not decode to
        the prefix.
        """
        safe_prefix = neutralise(prefix, self._control)
        own = self._continuation(prompt, safe_prefix)
        alone = Opening(prefix, safe_prefix, safe_prefix, own, len(own), len(own))
        text = neutralise(prefix + draft, self._control)
        if not draft:
            return alone
        ids = self._continuation(prompt, text)
        within = common_length(own, ids)
        opening = Opening(prefix, safe_prefix, text, ids, within, within)
        if within < len(own):
            counts = range(within + 1, len(ids) + 1)
            cover = next((n for n in counts if self._reaches(prompt, opening, n, safe_prefix)), None)
            if cover is None:
                return alone
            opening = replace(opening, cover=cover)
        return replace(opening, ids=ids[: max(opening.cover, prompt.max_tokens - 1)])

    def cut(self, prompt: EncodedPrompt, opening: Opening, count: int, *, keep: bool) -> tuple[int, str]:
        """At most `count` tokens of the opening, so that they end with a whole character; and their text.

        keep: not less than the prefix, which then stands as it was requested.
        """
        before, known = (opening.safe_prefix, opening.within) if keep else ("", 0)
        while count > (opening.cover if keep else 0) and not self._reaches(prompt, opening, count, before):
            count -= 1
        text = self._decode(prompt, opening.ids[:count]) if count > known else before
        return count, (opening.prefix if keep else "") + text[len(before) :]

    def follow(self, prompt: EncodedPrompt, ids: list[int], token: int) -> str | None:
        """What one more token says behind `ids`; null for one that says nothing, or not a whole character."""
        if token in self._control_ids:
            return None
        before, text = self._decode(prompt, ids), self._decode(prompt, [*ids, token])
        return text[len(before) :] if text.startswith(before) and not text.endswith(_INCOMPLETE) else None

    def _reaches(self, prompt: EncodedPrompt, opening: Opening, count: int, before: str) -> bool:
        """Whether so many tokens are `before` and what follows it in the opening, in whole characters."""
        text = self._decode(prompt, opening.ids[:count])
        return text.startswith(before) and opening.safe_text.startswith(text) and not text.endswith(_INCOMPLETE)

    def _continuation(self, prompt: EncodedPrompt, text: str) -> list[int]:
        """The tokens of `text` behind the prompt: how a word is split depends on what stands before it."""
        if not text:
            return []
        ids = self._ids(prompt.text + text, prompt.add_special_tokens)
        if ids[: len(prompt.ids)] == prompt.ids:
            return ids[len(prompt.ids) :]
        return self._ids(text, add_special_tokens=False)

    def _decode(self, prompt: EncodedPrompt, ids: list[int]) -> str:
        """The text that `ids` add to the prompt."""
        # Some decoders drop the space at the very beginning: the prompt's last token keeps them from it.
        before = prompt.ids[-1:]
        shown, hidden = self._raw_decode(before + ids), self._raw_decode(before)
        return shown[len(hidden) :]

    def _raw_decode(self, ids: list[int]) -> str:
        text: str = self._tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return text

    def _render(self, request: TranslationRequest) -> tuple[str, bool]:
        """The prompt's text, and whether the tokenizer is to add special tokens to it."""
        match self._family.render(request, self._special_tokens):
            case RawPrompt(text=text, add_special_tokens=add_special_tokens):
                return text, add_special_tokens
            case ChatPrompt() as chat:
                # The template writes the special tokens itself.
                text = self._tokenizer.apply_chat_template(
                    chat.as_dicts(),
                    tokenize=False,
                    add_generation_prompt=True,
                    **dict(self._family.template_kwargs),
                )
                return text, False

    def _source_tokens(self, request: TranslationRequest, prompt_tokens: int) -> int:
        """Of the text. Encoding takes longest of all that is done for a prompt, so it is done once."""
        if request.options != _NO_OPTIONS:
            return len(self._ids(request.text, add_special_tokens=False))
        kind = (request.source, request.target, request.final)
        if (around := self._around.get(kind)) is None:
            around = self._around[kind] = len(self._ids(*self._render(replace(request, text=""))))
        return max(0, prompt_tokens - around)

    def _ids(self, text: str, add_special_tokens: bool) -> list[int]:
        # Whatever a user supplied has no special token left in it, so all that are here are the prompt's own.
        if self._backend is not None:
            found: list[int] = self._backend.encode(text, add_special_tokens=add_special_tokens).ids
            return found
        ids: list[int] = self._tokenizer.encode(
            text, add_special_tokens=add_special_tokens, split_special_tokens=False
        )
        return ids


def _own_backend(tokenizer: Any) -> Any | None:
    """A copy of what does the work in a fast tokenizer, which puts much around each call; null for a slow one."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return None
    # Its settings belong to the tokenizer, and whoever else uses that changes them for each call.
    own = type(backend).from_str(backend.to_str())
    own.no_truncation()
    own.no_padding()
    own.encode_special_tokens = False
    return own


def common_length(one: Sequence[object], other: Sequence[object]) -> int:
    """How many items both begin with."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
