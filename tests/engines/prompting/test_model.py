"""What is told of a model: from it, another process makes the same prompts."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace
from tokenizers.processors import TemplateProcessing

from demo_model import SMALL_MODEL
from gateway.domain.engine import TranslationRequest
from gateway.engines.prompting.completions import Sampling
from gateway.engines.prompting.encoding import PromptEncoder
from gateway.engines.prompting.families import FAMILIES
from gateway.engines.prompting.model import PromptedModel, SentTokenizer, prompted_model
from gateway.engines.prompting.model_config import Calibration


class Options(Struct, frozen=True):
    model: str = "/models/Hunyuan-MT-7B"
    card_sampling: bool = False
    output_tokens_base: int = 8
    output_tokens_per_source_token: float = 0.0


OPTIONS = Options()
TEMPLATE = "{% for m in messages %}{{ bos_token }}{{ m.content }}{% endfor %}"
GOOD = TranslationRequest(id="r", text="Good morning.", source="en", target="de")


def sent(model: PromptedModel) -> PromptedModel:
    """It, from another process."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(model), type=PromptedModel)


def test_profile_is_that_of_the_family(tokenizer: Any) -> None:
    profile = prompted_model(OPTIONS, tokenizer, FAMILIES["seed-x"], 200).profile()
    assert (profile.model, profile.family) == ("Hunyuan-MT-7B", "seed-x")
    assert (profile.languages, profile.max_text_tokens) == (FAMILIES["seed-x"].languages, (200 - 8) // 4)


@pytest.mark.parametrize("name", ["hunyuan-mt", "seed-x"])
def test_card_sampling_is_used_if_wanted(tokenizer: Any, name: str) -> None:
    family = FAMILIES[name]
    assert prompted_model(OPTIONS, tokenizer, family, 200).sampling == Sampling()
    wanted = prompted_model(Options(card_sampling=True), tokenizer, family, 200)
    assert wanted.sampling == (family.card_sampling or Sampling())


@pytest.fixture
def chatting(tokenizer: Any) -> Any:
    """A tokenizer that adds tokens, and has a template that uses them."""
    own = copy.deepcopy(tokenizer)
    own.chat_template = TEMPLATE
    own.backend_tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", own.bos_token_id), ("</s>", own.eos_token_id)]
    )
    return own


@pytest.mark.parametrize("family", ["chat", "seed-x", "translategemma"])
async def test_another_process_makes_the_same_prompts(chatting: Any, family: str) -> None:
    model = prompted_model(OPTIONS, chatting, FAMILIES[family], 900, Calibration(1.0, 2.0, 0.5))
    assert sent(model) == model
    made = sent(model).translator().encoder
    same = PromptEncoder(chatting, FAMILIES[family], window=900, output_base=8, output_per_source_token=0.0)
    said = replace(GOOD, text=" Good </s> morning,  Æ 会議 🙂.")
    prompt = await made.encode(said)
    assert prompt == await same.encode(said)
    assert prompt.ids[0] == chatting.bos_token_id
    assert await made.opening(prompt, "Guten", " Morgen") == await same.opening(prompt, "Guten", " Morgen")
    assert (made._special_tokens, made._control_ids) == (same._special_tokens, same._control_ids)


def test_sent_tokenizer_decodes_as_transformers_does(chatting: Any) -> None:
    ids = chatting.encode("Guten  Morgen, 🙂 会議. </s>")
    model = prompted_model(OPTIONS, chatting, FAMILIES["chat"], 900)
    own = SentTokenizer(model, chatting.backend_tokenizer.to_str())
    for skipped in (True, False):
        assert own.decode(ids, skip_special_tokens=skipped) == chatting.decode(
            ids, skip_special_tokens=skipped, clean_up_tokenization_spaces=False
        )
    assert (own.all_special_tokens, own.all_special_ids) == (chatting.all_special_tokens, chatting.all_special_ids)
    assert own.convert_tokens_to_ids(["<nowhere>"]) == [None]


async def test_other_tokenizers_are_loaded_by_name() -> None:
    class Slow:
        chat_template = None

    model = prompted_model(Options(model=str(SMALL_MODEL)), Slow(), FAMILIES["seed-x"], 900)
    assert model.tokenizer is None
    assert (await model.translator().encoder.encode(GOOD)).ids


def test_one_of_several_templates_is_the_default(tokenizer: Any) -> None:
    own = copy.deepcopy(tokenizer)
    own.chat_template = {"default": TEMPLATE, "tool_use": "x"}
    assert prompted_model(OPTIONS, own, FAMILIES["chat"], 200).chat_template == TEMPLATE
