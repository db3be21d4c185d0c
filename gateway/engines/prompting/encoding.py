"""Encodes a translation request as token ids: the prompt, the proposed beginning of the answer, and its limit.

Knows: a model's tokenizer and its prompt family.
Must not know: which engine runs the model, whether the model agrees with the proposal (`prompting.verification`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gateway.domain.engine import TranslationOptions, TranslationRequest
from gateway.domain.errors import TextTooLong
from gateway.engines.prompting.detokenising import INCOMPLETE
from gateway.engines.prompting.families import PromptFamily
from gateway.engines.prompting.safety import Normalise, joint, neutralise
from gateway.engines.prompting.templates import ChatPrompt, RawPrompt
from gateway.text.folding import Folded, fold

_NO_OPTIONS = TranslationOptions()


def max_text_tokens(window: int, output_base: int) -> int:
    """A text of this many tokens fits with an answer twice as long. A slightly longer text may fit too."""
    return (window - output_base) // 4


class EncodedPrompt(Struct, frozen=True):
    """A prompt in tokens."""

    ids: list[int]
    # Most tokens of the whole answer.
    max_tokens: int
    # Tokens of the model's window that are free after the prompt.
    room: int
    # The text that was encoded.
    text: str
    # Whether the tokenizer added its special tokens.
    add_special_tokens: bool


class Opening(Struct, frozen=True):
    """The proposed beginning of an answer: a request's prefix, then its draft."""

    # The prefix as requested.
    prefix: str = ""
    # The prefix with special tokens broken.
    safe_prefix: str = ""
    # Prefix and draft with special tokens broken.
    safe_text: str = ""
    # Tokens of `safe_text`.
    ids: list[int] = []
    # How many of the tokens lie wholly in the prefix.
    within: int = 0
    # How many of the tokens it takes to cover the prefix. More than `within` if a token spans prefix and draft.
    cover: int = 0


class PromptEncoder:
    """Encodes prompts of one family with one Hugging Face tokenizer.

    window: most tokens of prompt and answer together.
    output_base, output_per_source_token: the answer may have base + factor × source tokens.
    owned: nobody else uses the tokenizer, so that it need not be copied.
    Raises `StartupError` for a tokenizer whose control tokens cannot be broken in speech.
    """

    def __init__(
        self,
        tokenizer: Any,
        family: PromptFamily,
        *,
        window: int,
        output_base: int,
        output_per_source_token: float,
        owned: bool = False,
    ) -> None:
        self._tokenizer = tokenizer
        self._backend = _own_backend(tokenizer, copied=not owned)
        self._batches = {add: _Batches(partial(self._encoded, add)) for add in (False, True)}
        self._family = family
        self._window = window
        self._output_base = output_base
        self._output_per_source_token = output_per_source_token
        added = getattr(tokenizer, "added_tokens_decoder", {})
        acting = [token.content for token in added.values() if token.special or _is_markup(token.content)]
        self._special_tokens = frozenset([*map(str, tokenizer.all_special_tokens), *acting])
        self._control = self._special_tokens | family.markers
        normaliser = None if self._backend is None else self._backend.normalizer
        self._normalise: Normalise | None = None if normaliser is None else normaliser.normalize_str
        self.joint = joint(self._control, self._normalise)
        """The character that breaks special tokens; no answer has it."""
        self._strangeness = lru_cache(maxsize=4096)(self._count_tokens)
        stop = tokenizer.convert_tokens_to_ids(list(family.stop))
        self.stop_token_ids: list[int] = [id for id in stop if id is not None]
        control_ids = [number for number, token in added.items() if token.special]
        self._control_ids = frozenset([*tokenizer.all_special_ids, *self.stop_token_ids, *control_ids])
        # (source, target, final) → number of tokens of the prompt without its text.
        self._around: dict[tuple[str, str, bool], int] = {}

    def fold(self, request: TranslationRequest) -> Folded:
        """The text of a request as models of this family know it."""
        return fold(
            request.text,
            request.source,
            self._family.folds,
            final=request.final,
            strangeness=self._strangeness,
        )

    async def encode(self, request: TranslationRequest) -> EncodedPrompt:
        """The prompt without prefix and draft. Raises `TextTooLong` if the text does not fit into the window.

        The tokenizer runs in a thread, for all who ask in one turn of the event loop together.
        """
        text, add_special_tokens = self._render(request)
        ids = await self._batches[add_special_tokens].ids(text)
        source_tokens = await self._source_tokens(request, len(ids))
        wanted = self._output_base + int(self._output_per_source_token * source_tokens)
        least = min(wanted, self._output_base + source_tokens)
        # If the text does not fit, context is left out, the oldest half first.
        while self._window - len(ids) < least and (context := request.options.context):
            kept = context[(len(context) + 1) // 2 :]
            request = replace(request, options=replace(request.options, context=kept))
            text, add_special_tokens = self._render(request)
            ids = await self._batches[add_special_tokens].ids(text)
        room = self._window - len(ids)
        if room < least:
            raise TextTooLong(
                f"The text has {source_tokens} tokens and does not fit into the model's window of {self._window}."
            )
        return EncodedPrompt(ids, min(wanted, room), room, text, add_special_tokens)

    async def opening(self, prompt: EncodedPrompt, prefix: str, draft: str) -> Opening:
        """Prefix and draft as tokens that follow the prompt.

        Prefix and draft together get at most `max_tokens` - 1 tokens. The draft is left out if it breaks the
        prefix: if a special token spans prefix and draft, or the tokens do not decode to the prefix.
        """
        safe_prefix = neutralise(prefix, self._control, self._normalise)
        own = await self._continuation(prompt, safe_prefix)
        alone = Opening(prefix, safe_prefix, safe_prefix, own, len(own), len(own))
        if not draft:
            return alone
        text = neutralise(prefix + draft, self._control, self._normalise)
        ids = await self._continuation(prompt, text)
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
        """Cut the opening to at most `count` tokens that end with a whole character; their number and text.

        keep: whether to return at least the prefix, exactly as it was requested.
        """
        before, known = (opening.safe_prefix, opening.within) if keep else ("", 0)
        while count > (opening.cover if keep else 0) and not self._reaches(prompt, opening, count, before):
            count -= 1
        text = self._decode(prompt, opening.ids[:count]) if count > known else before
        return count, (opening.prefix if keep else "") + text[len(before) :]

    def follow(self, prompt: EncodedPrompt, ids: list[int], token: int) -> str | None:
        """The text of one more token after `ids`. None for a control token or an incomplete character."""
        if token in self._control_ids:
            return None
        before, text = self._decode(prompt, ids), self._decode(prompt, [*ids, token])
        return text[len(before) :] if text.startswith(before) and not text.endswith(INCOMPLETE) else None

    def _reaches(self, prompt: EncodedPrompt, opening: Opening, count: int, before: str) -> bool:
        """Whether `count` tokens decode to whole characters of the opening that begin with `before`."""
        text = self._decode(prompt, opening.ids[:count])
        return text.startswith(before) and opening.safe_text.startswith(text) and not text.endswith(INCOMPLETE)

    async def _continuation(self, prompt: EncodedPrompt, text: str) -> list[int]:
        """The tokens of `text` after the prompt; how a word is split depends on the text before it."""
        if not text:
            return []
        ids = await self._batches[prompt.add_special_tokens].ids(prompt.text + text)
        if ids[: len(prompt.ids)] == prompt.ids:
            return ids[len(prompt.ids) :]
        return await self._batches[False].ids(text)

    def _decode(self, prompt: EncodedPrompt, ids: list[int]) -> str:
        # Some decoders drop a space at the very beginning. With the prompt's last token in front, they keep it.
        before = prompt.ids[-1:]
        shown, hidden = self._raw_decode(before + ids), self._raw_decode(before)
        return shown[len(hidden) :]

    def _raw_decode(self, ids: list[int]) -> str:
        text: str = self._tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return text

    def _render(self, request: TranslationRequest) -> tuple[str, bool]:
        """The prompt's text, and whether the tokenizer must add special tokens."""
        match self._family.render(request, self._special_tokens, self._normalise):
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

    async def _source_tokens(self, request: TranslationRequest, prompt_tokens: int) -> int:
        """Number of tokens of the text. Encoding is the slowest step of a prompt, so it is done only once."""
        if request.options != _NO_OPTIONS:
            return len(await self._batches[False].ids(request.text))
        kind = (request.source, request.target, request.final)
        if (around := self._around.get(kind)) is None:
            text, add_special_tokens = self._render(replace(request, text=""))
            around = self._around[kind] = len(await self._batches[add_special_tokens].ids(text))
        return max(0, prompt_tokens - around)

    def _count_tokens(self, word: str) -> int:
        """Tokens of a word in mid-sentence, where models mostly have the blank with a small letter."""
        return len(self._encoded(False, [f" {word}" if word.islower() else word])[0])

    # ------------------------------------------------------------ the tokenizer

    def _encoded(self, add_special_tokens: bool, texts: list[str]) -> list[list[int]]:
        # Text from users contains no special tokens any more, so all special tokens are the prompt's own.
        if self._backend is not None:
            encodings = self._backend.encode_batch_fast(texts, add_special_tokens=add_special_tokens)
            return [each.ids for each in encodings]
        encode = self._tokenizer.encode
        return [encode(text, add_special_tokens=add_special_tokens, split_special_tokens=False) for text in texts]


_Asked = tuple[str, asyncio.Future[list[int]]]


class _Batches:
    """Encodes texts in a thread: all that are asked for in one turn of the event loop, or meanwhile, together.

    encode: the tokenizer, which lets other threads run meanwhile.
    """

    def __init__(self, encode: Callable[[list[str]], list[list[int]]]) -> None:
        self._encode = encode
        self._thread = ThreadPoolExecutor(1, "tokenizer")
        self._waiting: list[_Asked] = []
        self._runs = False

    def ids(self, text: str) -> asyncio.Future[list[int]]:
        loop = asyncio.get_running_loop()
        self._waiting.append((text, ids := loop.create_future()))
        if not self._runs:
            self._runs = True
            loop.call_soon(self._next)
        return ids

    def _next(self) -> None:
        batch, self._waiting = self._waiting, []
        self._runs = bool(batch)
        if batch:
            texts = [text for text, _ in batch]
            encoding = asyncio.get_running_loop().run_in_executor(self._thread, self._encode, texts)
            encoding.add_done_callback(partial(self._hand_out, batch))

    def _hand_out(self, batch: list[_Asked], encoding: asyncio.Future[list[list[int]]]) -> None:
        self._next()
        for number, (_, ids) in enumerate(batch):
            if ids.done():  # cancelled
                continue
            if (error := encoding.exception()) is not None:
                ids.set_exception(error)
            else:
                ids.set_result(encoding.result()[number])


def _own_backend(tokenizer: Any, *, copied: bool) -> Any | None:
    """A fast tokenizer's backend, which is faster to call directly. None for a slow tokenizer.

    copied: other users of the tokenizer change the backend's settings at each call.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return None
    own = type(backend).from_str(backend.to_str()) if copied else backend
    own.no_truncation()
    own.no_padding()
    own.encode_special_tokens = False
    return own


def common_length(one: Sequence[object], other: Sequence[object]) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _is_markup(added: str) -> bool:
    """Whether a token that was added to a tokenizer, though not as a special one, may act on the model.

    `[TOOL_CALLS]` and `<unused7>` may; runs of spaces and line breaks, which several models have, are text.
    """
    return len(added) > 1 and bool(added.replace("▁", " ").strip())
