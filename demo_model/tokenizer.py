"""The tokenizer: byte-pair encoding with byte fallback, trained on generated text.

    python -m demo_model.tokenizer FOLDER

Any text is decoded exactly: spaces are ordinary characters of tokens, nothing is normalised, and a character
outside the vocabulary becomes its UTF-8 bytes. Each digit is a token. Words, kanji, hiragana and katakana share no
token. A space is part of the lower-case word after it, and otherwise a token of its own, so that a name has the
same tokens in every language.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from demo_model import LANGUAGES
from demo_model.generate import Kind, PairSource
from demo_model.layout import BEGIN, END, PAD, SPECIAL_TOKENS
from demo_model.patterns import load_patterns
from demo_model.sampling import Sampler, Split

if TYPE_CHECKING:
    from tokenizers import Tokenizer

VOCABULARY = 8192
SETS = 12_000
WORDS = r" ?\p{Ll}+'?|\p{Lu}+\p{Ll}*|\p{Nd}|\p{Han}+|\p{Hiragana}+|[\p{Katakana}ー]+|\p{L}+|\s|."
_KINDS = (Kind.FULL, Kind.FULL, Kind.RECOGNISED, Kind.OPENED)


def training_texts(seed: int, sets: int, composed: float = 0.0) -> Iterator[str]:
    """Sentences of all patterns, with invented names, each in all six languages."""
    source = PairSource(seed, Split.TRAINING, load_patterns(), composed=composed)
    source.use_sampler(Sampler(f"tokenizer/{seed}", Split.TRAINING, known_names=0.0))
    around = list(zip(LANGUAGES, (*LANGUAGES[1:], LANGUAGES[0]), strict=True))
    for index in range(sets):
        for pair in source.draw(around, _KINDS[index % len(_KINDS)]):
            yield pair.source
            yield pair.target


def train_tokenizer(
    seed: int = 0, sets: int = SETS, vocabulary: int = VOCABULARY, composed: float = 0.0
) -> Tokenizer:
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.Split(Regex(WORDS), behavior="isolated")
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - 256 - len(SPECIAL_TOKENS),
        show_progress=False,
        min_frequency=2,
        special_tokens=[],
        initial_alphabet=[chr(code) for code in range(0x20, 0x7F)],
    )
    learner.train_from_iterator(training_texts(seed, sets, composed), trainer)
    learned = json.loads(learner.to_str())["model"]
    tokens = [
        *SPECIAL_TOKENS,
        *(f"<0x{byte:02X}>" for byte in range(256)),
        *sorted(learned["vocab"], key=learned["vocab"].__getitem__),
    ]
    description = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": index,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for index, token in enumerate(SPECIAL_TOKENS)
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": WORDS}, "behavior": "Isolated", "invert": False},
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": {token: index for index, token in enumerate(tokens)},
            "merges": learned["merges"],
        },
    }
    return text_is_data(Tokenizer.from_str(json.dumps(description)))


def text_is_data(tokenizer: Tokenizer) -> Tokenizer:
    """Let the tokenizer read special tokens inside a text as ordinary text."""
    tokenizer.encode_special_tokens = True
    return tokenizer


def with_dropout(tokenizer: Tokenizer, chance: float) -> Tokenizer:
    """One that leaves out each merge with this chance, at random: other tokens for the same text (BPE dropout)."""
    table = json.loads(tokenizer.to_str())
    table["model"]["dropout"] = chance
    return text_is_data(type(tokenizer).from_str(json.dumps(table)))


def load_tokenizer(folder: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    return text_is_data(Tokenizer.from_file(str(folder / "tokenizer.json")))


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Writes tokenizer.json and tokenizer_config.json, as `AutoTokenizer` reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BEGIN,
        "eos_token": END,
        "pad_token": PAD,
        "additional_special_tokens": [token for token in SPECIAL_TOKENS if token not in (BEGIN, END, PAD)],
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,
        "model_max_length": 1024,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(prog="demo_model.tokenizer", description="Train the tokenizer.")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    save_tokenizer(train_tokenizer(), options.folder)
