"""The tokenizer that is written: texts come back as they were, and make no special token."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.bundled.tokenizer import PROMPT_TOKENS, SPECIAL_TOKENS, tokenizer_files
from gateway.domain.engine import TranslationRequest
from gateway.engines.prompting.encoding import PromptEncoder
from gateway.engines.prompting.families import detect
from tests.bundled.made_up_base import FACTS, KEPT, PIECES

SPECIAL_IDS = set(range(len(SPECIAL_TOKENS)))
MARKER = {"translation_gateway": {"prompt": "bundled", "languages": ["en", "de"]}}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from transformers import PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tokenizer")
    for name, content in tokenizer_files(FACTS, KEPT, 2_048).items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return PreTrainedTokenizerFast.from_pretrained(folder)


def ids(tokenizer: Any, text: str) -> list[int]:
    found: list[int] = tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
    return found


def test_the_special_tokens_have_the_names_of_the_prompts(tokenizer: Any) -> None:
    assert SPECIAL_TOKENS[6:] == PROMPT_TOKENS
    assert tokenizer.convert_ids_to_tokens(list(SPECIAL_IDS)) == list(SPECIAL_TOKENS)
    assert set(tokenizer.all_special_ids) == SPECIAL_IDS
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id) == (2, 1, 0)


def test_ids_are_places_in_the_vocabulary(tokenizer: Any) -> None:
    at = KEPT.index([piece for piece, _ in PIECES].index("日本"))
    assert ids(tokenizer, "日本") == [at]
    assert len(tokenizer) == len(KEPT)


def test_pieces_are_joined_in_the_order_of_their_scores(tokenizer: Any) -> None:
    names = tokenizer.convert_ids_to_tokens(ids(tokenizer, "hello hello, 日本語"))
    assert names == ["hello", "▁hello", ",", "▁", "日本", "語"]


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        " hello ",
        "hello  hello",
        "日本語",
        "né",
        "a\nb",
        "🎉",
        "<0x41>",
        "▁hello".replace("▁", " "),
        "\u2060",
    ],
)
def test_a_text_comes_back_as_it_was(tokenizer: Any, text: str) -> None:
    assert tokenizer.decode(ids(tokenizer, text), clean_up_tokenization_spaces=False) == text


def test_characters_that_are_not_known_become_bytes(tokenizer: Any) -> None:
    assert tokenizer.convert_ids_to_tokens(ids(tokenizer, "é")) == ["<0xC3>", "<0xA9>"]


async def test_a_text_makes_no_special_token(tokenizer: Any) -> None:
    encoder = PromptEncoder(
        tokenizer, detect(MARKER, "model"), window=2_048, output_base=32, output_per_source_token=3.0
    )
    text = "".join(SPECIAL_TOKENS) + "<t" + "o>" + "hello <TO> </s ></s>"
    request = TranslationRequest(id="1", text=text, source="en", target="de")
    found = (await encoder.encode(request)).ids
    assert found[:4] == [2, 6, 9, 12]
    assert found[-1] == 14
    assert SPECIAL_IDS.isdisjoint(found[4:-1])
    # Nor where only a part of the gateway looks after it.
    assert SPECIAL_IDS.isdisjoint(ids(tokenizer, text))


def test_prompt_is_made_of_family_tokens(tokenizer: Any) -> None:
    prompt = "<s><en><de><partial>hello<to>"
    found = tokenizer.encode(prompt, add_special_tokens=False, split_special_tokens=False)
    assert found == [2, 6, 9, 13, *ids(tokenizer, "hello"), 14]
