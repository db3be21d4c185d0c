"""The tokenizer of the assembled model: the base's tokens that are kept, under the names that our prompts use.

Knows: how tokens of Gemma become words again, the tokens of prompt family `bundled`. Must not know: weights.

No text makes a special token by itself: no other token has its name, and no pieces are joined to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LANGUAGES = ("en", "ja", "es", "de", "fr", "zh")
PAD, END, BEGIN, UNKNOWN = "<pad>", "</s>", "<s>", "<unk>"
FINAL, PARTIAL, TO = "<final>", "<partial>", "<to>"
PROMPT_TOKENS = (*(f"<{language}>" for language in LANGUAGES), FINAL, PARTIAL, TO)
"""Their ids follow those of the base's own control tokens, in this order."""

# What the base has first: padding, end, begin, unknown, mask, and one for pictures.
_CONTROL_TOKENS = (PAD, END, BEGIN, UNKNOWN, "<mask>", "[multimodal]")
SPECIAL_TOKENS = (*_CONTROL_TOKENS, *PROMPT_TOKENS)
"""By id."""
IDS = {name: number for number, name in enumerate(SPECIAL_TOKENS)}

# Kinds of tokens in GGUF: a piece of text that merges lead to.
_NORMAL = 1


def tokenizer_files(facts: Mapping[str, Any], vocabulary: Sequence[int], window: int) -> dict[str, Any]:
    """`tokenizer.json` and `tokenizer_config.json`, as objects. Raises `KeyError`, `IndexError` for foreign facts.

    facts: the base's. vocabulary: ids of the tokens that are kept; each gets its place as its id. window: of the
    model, in tokens.
    """
    pieces, scores, kinds = (
        [facts[f"tokenizer.ggml.{name}"][old] for old in vocabulary] for name in ("tokens", "scores", "token_type")
    )
    names = [_name(new, piece) for new, piece in enumerate(pieces)]
    vocab = {name: new for new, name in enumerate(names)}
    described = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added(number, name) for number, name in enumerate(SPECIAL_TOKENS)],
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": UNKNOWN,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": vocab,
            "merges": _merges(names, scores, kinds),
        },
    }
    return {
        "tokenizer.json": described,
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": BEGIN,
            "eos_token": END,
            "pad_token": PAD,
            "unk_token": UNKNOWN,
            "additional_special_tokens": list(SPECIAL_TOKENS[IDS[UNKNOWN] + 1 :]),
            "clean_up_tokenization_spaces": False,
            "split_special_tokens": True,
            "model_max_length": window,
        },
    }


def _name(new: int, piece: str) -> str:
    if new < len(SPECIAL_TOKENS):
        return SPECIAL_TOKENS[new]
    # Gemma has HTML's `</s>` as a piece of text. It keeps its row, and no text leads there.
    return f"<unused {new}>" if piece in IDS else piece


def _added(number: int, name: str) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": name, **flags, "special": True}


def _merges(names: Sequence[str], scores: Sequence[float], kinds: Sequence[int]) -> list[tuple[str, str]]:
    """What is joined first comes first: the pieces with the highest scores, each of every pair that makes it."""
    numbers = {name: number for number, name in enumerate(names)}
    found: list[tuple[float, int, int, int]] = []
    for number, (name, score) in enumerate(zip(names, scores, strict=True)):
        if kinds[number] == _NORMAL:
            pairs = ((numbers.get(name[:cut], -1), numbers.get(name[cut:], -1)) for cut in range(1, len(name)))
            found += [(-score, number, left, right) for left, right in pairs if left >= 0 and right >= 0]
    return [(names[left], names[right]) for _, _, left, right in sorted(found)]
