"""Text of tokens as they come: with made-up tokenizers that have tokens for single bytes, and the bundled one."""

from __future__ import annotations

from codecs import getincrementaldecoder
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from gateway.engines.prompting.detokenising import Detokenizer, Vocabulary

WORDS = ["▁Guten", "▁Morgen", "▁", "x", "ä", "会議", ".", "\n"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


@cache
def made_up(*, byte_level: bool = False) -> PreTrainedTokenizerFast:
    """With byte tokens as Llama and Gemma have them, or tokens as GPT and Qwen have them: each is some bytes."""
    if byte_level:
        names = sorted(pre_tokenizers.ByteLevel.alphabet())
        own = Tokenizer(models.BPE({name: id for id, name in enumerate(["<s>", *names, "Ġx", "ä½", "Ġä"])}, []))
        own.decoder = decoders.ByteLevel()
    else:
        names = ["<unk>", "<s>", *BYTES, *WORDS]
        vocabulary = {name: id for id, name in enumerate(names)}
        own = Tokenizer(models.BPE(vocabulary, [], byte_fallback=True, unk_token="<unk>"))
        first = decoders.Strip(" ", 1, 0)
        own.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), first]
        )
    own.add_special_tokens([AddedToken("<s>", special=True)])
    return PreTrainedTokenizerFast(tokenizer_object=own, bos_token="<s>")


class Slow:
    """A tokenizer without a fast backend."""

    def __init__(self, tokenizer: Any) -> None:
        self.decode = tokenizer.decode
        self.convert_tokens_to_ids = tokenizer.convert_tokens_to_ids
        self.all_special_ids = tokenizer.all_special_ids


def ids_of(*names: str) -> list[int]:
    found = made_up().convert_tokens_to_ids([*names])
    assert isinstance(found, list)
    return found


def bytes_of(text: str | bytes) -> list[int]:
    encoded = text.encode() if isinstance(text, str) else text
    return ids_of(*(BYTES[byte] for byte in encoded))


# Behind a word, so that no decoder takes this for the beginning of a text.
PROMPT = ids_of("▁Morgen", "<s>")


def text_of(tokenizer: Any, prompt: list[int], *steps: list[int]) -> str:
    detokenizer = Detokenizer(Vocabulary(tokenizer), prompt)
    return "".join(map(detokenizer.add, steps))


def cut(ids: list[int], places: list[int]) -> list[list[int]]:
    """The ids in steps that end at these places, some of them perhaps empty."""
    ends = [0, *sorted(place % (len(ids) + 1) for place in places), len(ids)]
    return [ids[begin:end] for begin, end in pairwise(ends)]


PLACES = st.lists(st.integers(0, 200), max_size=60)
# Words, whole characters in bytes, and bytes of every kind.
PIECES = st.one_of(
    st.sampled_from(WORDS).map(lambda word: (ids_of(word), word.replace("▁", " ").encode())),
    st.sampled_from(["鬱", "🙂", "é"]).map(lambda text: (bytes_of(text), text.encode())),
    st.binary(min_size=1, max_size=4).map(lambda some: (bytes_of(some), some)),
)


@given(st.lists(PIECES, max_size=60), PLACES)
def test_any_split_gives_the_same_text(pieces: list[tuple[list[int], bytes]], places: list[int]) -> None:
    """The reference is Python's own decoder, with words as borders between runs of bytes."""
    ids = [id for ids, _ in pieces for id in ids]
    steps = cut(ids, places)
    said = text_of(made_up(), PROMPT, *steps)
    assert said == text_of(made_up(), PROMPT, ids) == text_of(Slow(made_up()), PROMPT, *steps)
    known, expected, run = Vocabulary(made_up()).bytes, "", b""
    for id in ids:
        if id in known:
            run += known[id]
        else:
            expected += run.decode(errors="replace") + made_up().decode([PROMPT[0], id])[len("Morgen") :]
            run = b""
    # At the end a character may still become whole; it is not shown.
    assert said == expected + _whole(run)


def _whole(run: bytes) -> str:
    return getincrementaldecoder("utf-8")("replace").decode(run)


@given(st.lists(st.integers(0, 258), max_size=60), PLACES)
def test_any_split_of_byte_level_tokens(ids: list[int], places: list[int]) -> None:
    tokenizer = made_up(byte_level=True)
    at_once = tokenizer.decode(ids, skip_special_tokens=True).rstrip("\ufffd")
    assert text_of(tokenizer, [], *cut(ids, places)).rstrip("\ufffd") == at_once


@pytest.mark.parametrize("broken", [b"\xe4", b"\xe4\xbd", b"\xff", b"\xbd\xa0", b"\xf0\x9f\x99", b"\xe4\xe4\xe4"])
def test_neighbours_of_a_broken_run_survive(broken: bytes) -> None:
    before = [*ids_of("▁Guten"), *bytes_of("鬱")]
    ids = [*before, *bytes_of(broken), *ids_of("▁Morgen", ".")]
    said = text_of(made_up(), PROMPT, *([id] for id in ids))
    assert said.startswith(" Guten鬱")
    assert said.endswith(" Morgen.")
    assert set(said.removeprefix(" Guten鬱").removesuffix(" Morgen.")) == {"\ufffd"}


def test_characters_show_when_they_are_whole() -> None:
    detokenizer = Detokenizer(Vocabulary(made_up()), PROMPT)
    said = [detokenizer.add([id]) for id in [*bytes_of("🙂é"), *ids_of("x")]]
    assert said == ["", "", "", "🙂", "", "é", "x"]


def test_special_tokens_are_not_text() -> None:
    (special,) = ids_of("<s>")
    assert text_of(made_up(), PROMPT, [special, special]) == ""
    first, *rest = bytes_of("鬱")
    assert text_of(made_up(), PROMPT, [first, special], [*rest, special]) == "鬱"


def test_first_word_keeps_its_space_behind_a_prompt() -> None:
    guten = ids_of("▁Guten")
    assert text_of(made_up(), PROMPT, guten) == " Guten"
    assert text_of(made_up(), ids_of("<s>"), guten) == "Guten"
    assert text_of(made_up(), [], guten) == "Guten"


def test_names_of_bytes_may_mean_something_else() -> None:
    own = Tokenizer(models.BPE({name: id for id, name in enumerate(BYTES)}, []))
    plain = PreTrainedTokenizerFast(tokenizer_object=own)
    assert Vocabulary(plain).bytes == {}
    assert text_of(plain, [], [65], [66]).replace(" ", "") == "<0x41><0x42>"


TEXTS = ["Guten Morgen.", "ローンチを金曜日に。", "🙂 鬱", "a  b", "1.250 €", "", "Wort für Wort, " * 40]


@pytest.mark.parametrize("slow", [False, True], ids=["fast", "slow"])
@pytest.mark.parametrize("text", TEXTS)
def test_token_by_token_it_is_the_text(tokenizer: Any, text: str, slow: bool) -> None:
    own = Slow(tokenizer) if slow else tokenizer
    prompt = [*tokenizer.encode("Good morning.", add_special_tokens=False), tokenizer.eos_token_id]
    ids = tokenizer.encode(text, add_special_tokens=False)
    detokenizer = Detokenizer(Vocabulary(own), prompt)
    pieces = [detokenizer.add([token]) for token in ids]
    assert "".join(pieces) == text
    assert not any("\ufffd" in piece for piece in pieces)
    assert text_of(own, prompt, ids) == text
