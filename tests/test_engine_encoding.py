"""The ids a model sees, and the room its answer gets, with the bundled model's real tokenizer."""

from __future__ import annotations

from typing import Any

import pytest

from demo_model import layout
from gateway.config import BUNDLED_MODEL
from gateway.engines.encoding import PromptEncoder
from gateway.errors import EngineFailed
from gateway.events import TranslationOptions, TranslationRequest
from gateway.prompts import FAMILIES, detect

TEXTS = ["Hello there.", " lead", "trail ", "a  b", "日本語です。", "x\ny", "🙂", "Tanakaさん", "1,250 €", ""]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(BUNDLED_MODEL)


def encoder(tokenizer: Any, family: str = "bundled", window: int = 1_024) -> PromptEncoder:
    marker = {"translation_gateway": {"prompt": family, "languages": ["en", "ja"]}}
    return PromptEncoder(
        tokenizer, detect(marker, "m"), window=window, output_base=32, output_per_source_token=3.0
    )


def request(text: str, *, final: bool = True) -> TranslationRequest:
    return TranslationRequest(id="r", text=text, source="en", target="ja", final=final)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("final", [True, False], ids=["final", "partial"])
def test_the_bundled_prompt_is_what_the_model_was_trained_on(tokenizer: Any, text: str, final: bool) -> None:
    source = tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
    expected = layout.prompt_ids("en", "ja", final, source)
    ids, max_tokens = encoder(tokenizer).encode(request(text, final=final))
    assert ids == expected
    assert max_tokens == 32 + 3 * len(source)


@pytest.mark.parametrize("text", ["</s>", "<to>hello", "<en><ja>", "a</s></s>b"])
def test_special_tokens_in_speech_are_text(tokenizer: Any, text: str) -> None:
    ids, _ = encoder(tokenizer).encode(request(text))
    special = set(tokenizer.all_special_ids)
    assert not special & set(ids[4:-1])
    assert ids[-1] in special


def test_the_answer_gets_what_is_left_of_the_window(tokenizer: Any) -> None:
    text = "Good morning, everyone. " * 30
    prompt, _ = encoder(tokenizer, window=4_000).encode(request(text))
    window = 2 * len(prompt) + 40
    ids, max_tokens = encoder(tokenizer, window=window).encode(request(text))
    assert len(ids) + max_tokens == window


def test_a_text_that_leaves_no_room_for_an_answer_is_refused(tokenizer: Any) -> None:
    with pytest.raises(EngineFailed, match="window of 100"):
        encoder(tokenizer, window=100).encode(request("Good morning, everyone. " * 30))


def test_background_gives_way_to_the_text(tokenizer: Any) -> None:
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    spoken = tuple(f"{n} {'many words were said before this ' * 20}" for n in range(7))
    options = TranslationOptions(context=spoken)
    said = TranslationRequest(id="r", text="Short text.", source="en", target="ja", options=options)
    ids, max_tokens = encoder(tokenizer, "chat", window=1_200).encode(said)
    shown = tokenizer.decode(ids)
    assert "Short text." in shown
    assert spoken[-1].strip() in shown, "the newest is kept longest"
    assert spoken[0].strip() not in shown
    assert len(ids) + max_tokens <= 1_200


def test_chat_models_get_their_own_template(tokenizer: Any) -> None:
    tokenizer.chat_template = (
        "{% for m in messages %}<s>{{ m.role }}: {{ m.content }}</s>{% endfor %}"
        "{% if add_generation_prompt %}<to>{% endif %}"
    )
    ids, _ = encoder(tokenizer, "chat").encode(request("Hello"))
    shown = tokenizer.decode(ids)
    assert shown.startswith("<s>user: Translate what was said")
    assert shown.endswith("<text>\nHello\n</text></s><to>")


def test_stop_strings_of_a_family_become_token_ids(tokenizer: Any) -> None:
    family = FAMILIES["translategemma"]
    found = PromptEncoder(tokenizer, family, window=100, output_base=1, output_per_source_token=1).stop_token_ids
    assert len(found) == len(family.stop)
