"""User text is never control: what is done to speech, glossary and context before they enter a prompt.

Knows: the control tokens of common chat formats, and how a token inside a text is broken or a line break
taken out.
Must not know: prompt families, what their prompts say, tokenizers; the tokens to break are passed in.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import InvalidValue

__all__ = ["COMMON_TOKENS", "flatten", "neutralise", "neutralise_request"]

# Control tokens of common chat formats, for engines whose tokenizer is out of reach; `<|` and `<｜` stand for
# all tokens that are written `<|…|>` and `<｜…｜>`.
COMMON_TOKENS = frozenset(
    {"<|", "|>", "<｜", "｜>", "<s>", "</s>", "<bos>", "<eos>", "<pad>", "<unk>", "<start_of_turn>"}
    | {"<end_of_turn>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "<think>", "</think>"}
)

# Zero-width, and without meaning between Latin letters: word joiner, zero-width space, zero-width non-joiner.
_BREAKS = ("\u2060", "\u200b", "\u200c")


class _Breaker:
    """The tokens of one tokenizer by first character, so that ordinary text costs one lookup a character."""

    def __init__(self, tokens: frozenset[str]) -> None:
        self.removed = {ord(t): None for t in tokens if len(t) == 1}
        by_head: dict[str, list[str]] = {}
        for token in tokens:
            if len(token) > 1:
                by_head.setdefault(token[0], []).append(token)
        self.by_head = {head: tuple(found) for head, found in by_head.items()}
        unused = [c for c in _BREAKS if not any(c in token for token in tokens)]
        if not unused:
            raise InvalidValue("the special tokens use every zero-width character that could break them")
        self.joint = unused[0]

    def __call__(self, text: str) -> str:
        # A token of one character cannot be broken, only left out; that comes first, as it may join others.
        text = text.translate(self.removed)
        if self.by_head.keys().isdisjoint(text):
            return text
        # No token contains the joint, so one that survived would lie between two joints; but wherever a token
        # started there is a joint after its first character.
        return "".join(
            char + self.joint if char in self.by_head and text.startswith(self.by_head[char], i) else char
            for i, char in enumerate(text)
        )


@lru_cache(maxsize=64)
def _breaker(tokens: frozenset[str]) -> _Breaker:
    return _Breaker(tokens)


def neutralise(text: str, special_tokens: Iterable[str]) -> str:
    """The text with a zero-width character inside each special token, so that none is left in it.

    Tokens of a single character are left out instead. Text without special tokens comes back unchanged.
    """
    return _breaker(frozenset(special_tokens))(text)


def neutralise_request(request: TranslationRequest, special_tokens: Iterable[str]) -> TranslationRequest:
    """The request with every string that a user supplied neutralised: text, glossary and context."""
    clean = _breaker(frozenset(special_tokens))
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
    """Glossary terms and context entries on one line each, blank ones left out."""
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
