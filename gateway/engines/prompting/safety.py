"""Makes text from users safe to insert into a prompt: speech, glossary and context must never act as control text.

Knows: the control tokens of common chat formats, how to break a token inside a text, how to remove line breaks.
Must not know: prompt families, the wording of prompts, tokenizers. The tokens to break are passed in, and how a
tokenizer normalises a text before it looks for them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache

import msgspec

from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import EngineFailed, StartupError

# Control tokens of common chat formats, for engines whose tokenizer is not available. `<|` and `<｜` cover all
# tokens of the form `<|…|>` and `<｜…｜>`.
COMMON_TOKENS = frozenset(
    {"<|", "|>", "<｜", "｜>", "<s>", "</s>", "<bos>", "<eos>", "<pad>", "<unk>", "<start_of_turn>"}
    | {"<end_of_turn>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "<think>", "</think>"}
)

# What a tokenizer makes of a text before it looks for tokens there.
Normalise = Callable[[str], str]

# Zero-width, and without meaning between Latin letters: word joiner, zero-width space, zero-width non-joiner,
# invisible separator, combining grapheme joiner.
_BREAKS = ("\u2060", "\u200b", "\u200c", "\u2063", "\u034f")

# Longer compatibility forms of one character are words of some script, which no token has in it. They would
# make a text many times as long.
_LONGEST_FORM = 8

# How often a text is normalised that still changes.
_ROUNDS = 4


class _Breaker:
    """The tokens of one tokenizer by first character, so that ordinary text costs one lookup per character.

    Raises `StartupError` if no zero-width character breaks the tokens.
    """

    def __init__(self, tokens: frozenset[str], normalise: Normalise | None) -> None:
        self._normalise = normalise
        self.removed = {ord(t): None for t in tokens if len(t) == 1}
        if normalise is not None:
            # Some are looked for as they are normalised themselves. The stop tells what is added before a text.
            forms = (normalise(f".{token}").removeprefix(normalise(".")) for token in tokens)
            tokens |= {form for form in forms if len(form) > 1}
        by_head: dict[str, list[str]] = {}
        for token in tokens:
            if len(token) > 1:
                by_head.setdefault(token[0], []).append(token)
        self.by_head = {head: tuple(found) for head, found in by_head.items()}
        for joint in _BREAKS:
            self.joint = joint
            if self._joint_breaks(tokens):
                return
        raise StartupError(
            "This model's tokenizer has or drops every zero-width character that could break its control "
            "tokens in what people say: choose another model."
        )

    def __call__(self, text: str) -> str:
        # A token of one character cannot be broken, only removed. This comes first: it may join
        # others.
        text = self._folded(text.translate(self.removed)).translate(self.removed)
        if self._normalise is None:
            return self._broken(text)
        for _ in range(_ROUNDS):
            broken = self._broken(text)
            seen = self._normalise(broken)
            if not self._has_token(seen):
                return broken
            text = seen.translate(self.removed)
        raise EngineFailed("The model's tokenizer makes control tokens of this text.")

    def _broken(self, text: str) -> str:
        if self.by_head.keys().isdisjoint(text):
            return text
        # No token contains the joint, and there is a joint after the first character of every token in the text.
        # So no token is left.
        return "".join(char + self.joint if self._begins(text, i) else char for i, char in enumerate(text))

    def _joint_breaks(self, tokens: frozenset[str]) -> bool:
        if any(self.joint in token for token in tokens):
            return False
        if (normalise := self._normalise) is None:
            return True
        return not any(self._has_token(normalise(self._broken(token))) for token in tokens if len(token) > 1)

    def _has_token(self, text: str) -> bool:
        if not self.removed.keys().isdisjoint(map(ord, text)):
            return True
        return not self.by_head.keys().isdisjoint(text) and any(self._begins(text, i) for i in range(len(text)))

    def _begins(self, text: str, place: int) -> bool:
        heads = self.by_head.get(text[place])
        return heads is not None and text.startswith(heads, place)

    def _folded(self, text: str) -> str:
        """The text as most tokenizers that normalise see it, if they would find a token; otherwise unchanged."""
        if text.isascii() or not self._has_token(unicodedata.normalize("NFKC", text)):
            return text
        forms = ((char, unicodedata.normalize("NFKC", char)) for char in text)
        return "".join(form if len(form) <= _LONGEST_FORM else char for char, form in forms)


@lru_cache(maxsize=64)
def _breaker(tokens: frozenset[str], normalise: Normalise | None = None) -> _Breaker:
    return _Breaker(tokens, normalise)


def joint(special_tokens: Iterable[str], normalise: Normalise | None = None) -> str:
    """The character that breaks these tokens. Raises `StartupError` if there is none."""
    return _breaker(frozenset(special_tokens), normalise).joint


def neutralise(text: str, special_tokens: Iterable[str], normalise: Normalise | None = None) -> str:
    """The text with a zero-width character inside each special token, so that no special token is left.

    Tokens of a single character are removed instead. Text without special tokens is returned unchanged.
    normalise: none is left after it either. If it would make one, the text is returned as it makes it. Raises
    `EngineFailed` where that never ends.
    """
    return _breaker(frozenset(special_tokens), normalise)(text)


def neutralise_request(
    request: TranslationRequest, special_tokens: Iterable[str], normalise: Normalise | None = None
) -> TranslationRequest:
    """The request with all text from users neutralised: text, glossary and context."""
    clean = _breaker(frozenset(special_tokens), normalise)
    options = request.options
    return msgspec.structs.replace(
        request,
        text=clean(request.text),
        options=msgspec.structs.replace(
            options,
            glossary=tuple((clean(term), clean(translation)) for term, translation in options.glossary),
            context=tuple(clean(line) for line in options.context),
        ),
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def flatten(request: TranslationRequest, *, text_too: bool) -> TranslationRequest:
    """The request with each glossary term and context entry on one line, blank ones removed.

    text_too: whether to put the text on one line as well.
    """
    options = request.options
    terms = ((_one_line(term), _one_line(translation)) for term, translation in options.glossary)
    return msgspec.structs.replace(
        request,
        text=_one_line(request.text) if text_too else request.text,
        options=msgspec.structs.replace(
            options,
            glossary=tuple(pair for pair in terms if all(pair)),
            context=tuple(line for line in map(_one_line, options.context) if line),
        ),
    )
