"""What each family takes and says of itself, and how the family of a model is found."""

from __future__ import annotations

import pytest

from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import InvalidValue, UnsupportedLanguage
from gateway.domain.languages import NAMES, normalise
from gateway.engines.prompting.completions import Sampling
from gateway.engines.prompting.families import FAMILIES, detect, family_named
from gateway.engines.prompting.templates import ChatPrompt
from tests.engines.prompting.prompts import BEFORE, TERMS, request


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_greedy_by_default(name: str) -> None:
    assert FAMILIES[name].sampling == Sampling(temperature=0.0, top_p=1.0, top_k=0, repetition_penalty=1.0)
    tencent = Sampling(temperature=0.7, top_p=0.6, top_k=20, repetition_penalty=1.05)
    expected = tencent if name in {"hunyuan-mt", "hy-mt1.5", "hy-mt2"} else None
    assert FAMILIES[name].card_sampling == expected


def test_only_translategemma_needs_to_be_told_where_to_stop() -> None:
    stops = {name: family.stop for name, family in FAMILIES.items() if family.stop}
    assert stops == {"translategemma": ("<end_of_turn>",), "translategemma-vllm": ("<end_of_turn>",)}


@pytest.mark.parametrize("name", FAMILIES)
def test_every_language_of_a_family_is_normalised_and_named(name: str) -> None:
    languages = FAMILIES[name].languages
    assert len(set(languages)) == len(languages)
    assert set(languages) <= NAMES.keys()
    assert all(normalise(tag) == tag for tag in languages)


def test_how_many_languages_each_family_has() -> None:
    assert {name: len(family.languages) for name, family in FAMILIES.items()} == {
        "bundled": 0,
        "hunyuan-mt": 33,
        "hy-mt1.5": 33,
        "hy-mt2": 33,
        "seed-x": 27,
        "translategemma": len(NAMES) - 3,
        "translategemma-vllm": len(NAMES) - 3,
        "tower": 10,
        "tower-plus": 22,
        "chat": len(NAMES),
    }


@pytest.mark.parametrize("pair", ["de-ja", "ja-de"])
def test_a_language_the_family_does_not_have_is_refused(pair: str) -> None:
    with pytest.raises(UnsupportedLanguage, match="this model does not translate Japanese"):
        FAMILIES["tower"].render(request("x", pair))


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("bundled", ("glossary", "context", "formality")),
        ("hunyuan-mt", ("glossary", "context", "formality")),
        ("hy-mt1.5", ("formality",)),
        ("hy-mt2", ()),
        ("seed-x", ("glossary", "context", "formality")),
        ("translategemma", ("glossary", "context", "formality")),
        ("translategemma-vllm", ("glossary", "context", "formality")),
        ("tower", ("glossary", "context", "formality")),
        ("tower-plus", ("glossary", "context", "formality")),
        ("chat", ()),
    ],
)
def test_options_that_a_family_cannot_take_are_named(name: str, refused: tuple[str, ...]) -> None:
    every = ("glossary", "context", "formality")
    assert tuple(option for option in every if option not in FAMILIES[name].options) == refused


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "bundled"])
def test_option_changes_prompt_only_if_taken(name: str) -> None:
    family = FAMILIES[name]
    changed = {
        option
        for option, with_it in (
            ("glossary", request(glossary=TERMS)),
            ("context", request(context=BEFORE)),
            ("formality", request(formality="formal")),
        )
        if family.render(with_it) != family.render(request())
    }
    assert changed == family.options


MARKED = {"translation_gateway": {"prompt": "bundled", "languages": ["en", "de", "ja"]}}

HUNYUAN = {"architectures": ["HunYuanDenseV1ForCausalLM"], "model_type": "hunyuan_v1_dense"}

MISTRAL = {"architectures": ["MistralForCausalLM"], "model_type": "mistral"}

GEMMA = {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3"}

LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}

QWEN = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"}


@pytest.mark.parametrize(
    ("config", "name", "family"),
    [
        (HUNYUAN, "tencent/Hunyuan-MT-7B", "hunyuan-mt"),
        (HUNYUAN, "tencent/Hunyuan-MT-7B-fp8", "hunyuan-mt"),
        (HUNYUAN, "tencent/HY-MT1.5-1.8B", "hy-mt1.5"),
        (HUNYUAN, "tencent/HY-MT1.5-7B-FP8", "hy-mt1.5"),
        (HUNYUAN, "tencent/Hy-MT2-7B", "hy-mt2"),
        ({}, "tencent/Hy-MT2-30B-A3B", "hy-mt2"),
        ({}, "Hunyuan-MT-7B", "hunyuan-mt"),
        (HUNYUAN, "/models/meeting-translator", "hunyuan-mt"),
        ({"architectures": ["HunYuanDenseV1ForCausalLM"]}, "/models/mt", "hunyuan-mt"),
        ({"model_type": "hunyuan_v1_dense"}, "/models/mt", "hunyuan-mt"),
        (HUNYUAN, "tencent/Hunyuan-7B-Instruct", "chat"),
        (HUNYUAN | {"_name_or_path": "tencent/Hunyuan-4B-Pretrain"}, "/models/mt", "chat"),
        (MISTRAL, "ByteDance-Seed/Seed-X-PPO-7B", "seed-x"),
        (MISTRAL, "ByteDance-Seed/Seed-X-PPO-7B-AWQ-Int4", "seed-x"),
        (MISTRAL | {"_name_or_path": "ByteDance-Seed/Seed-X-Instruct-7B"}, "/models/mt", "seed-x"),
        (MISTRAL, "mistralai/Mistral-7B-Instruct-v0.3", "chat"),
        (GEMMA, "google/translategemma-4b-it", "translategemma"),
        (GEMMA, "/root/.cache/models--google--translategemma-12b-it/snapshots/0f1e", "translategemma"),
        (GEMMA, "Infomaniak-AI/vllm-translategemma-27b-it", "translategemma-vllm"),
        (GEMMA, "google/gemma-3-4b-it", "chat"),
        (LLAMA, "Unbabel/TowerInstruct-7B-v0.2", "tower"),
        (MISTRAL, "Unbabel/TowerInstruct-Mistral-7B-v0.2", "tower"),
        ({"model_type": "gemma2"}, "Unbabel/Tower-Plus-9B", "tower-plus"),
        (LLAMA, "Unbabel/TowerBase-7B-v0.1", "chat"),
        (QWEN, "Qwen/Qwen3-1.7B", "chat"),
        # A name given now says more than the one the config remembers from before fine-tuning.
        (QWEN | {"_name_or_path": "Unbabel/TowerInstruct-7B-v0.2"}, "acme/Hy_MT2-tuned", "hy-mt2"),
        ({}, "", "chat"),
        ({"architectures": None, "model_type": 7, "_name_or_path": None}, "x", "chat"),
    ],
)
def test_detect(config: dict[str, object], name: str, family: str) -> None:
    assert detect(config, name) is FAMILIES[family]


def test_marker_precedes_the_name() -> None:
    family = detect({**LLAMA, **MARKED}, "acme/TowerInstruct-like")
    assert (family.name, family.languages) == ("bundled", ("en", "de", "ja"))


def test_languages_of_a_marker_are_normalised_once_each() -> None:
    marker = {"prompt": "bundled", "languages": ["en-US", "zh_TW", "en"]}
    assert detect({"translation_gateway": marker}, "demo").languages == ("en", "zh-hant")


def test_a_marker_may_name_languages_only() -> None:
    family = detect(QWEN | {"translation_gateway": {"languages": ["en", "is"]}}, "acme/qwen-tuned")
    assert (family.name, family.languages) == ("chat", ("en", "is"))
    prompt = family.render(TranslationRequest(id="t1", text="Hæ.", source="is", target="en", final=True))
    assert isinstance(prompt, ChatPrompt)
    assert str(prompt.content).startswith("Translate what was said in a meeting from is into")


def test_the_operator_goes_before_everything() -> None:
    assert detect(HUNYUAN, "tencent/Hy-MT2-7B", "chat") is FAMILIES["chat"]
    family = detect(MARKED, "demo", "tower")
    assert (family.name, family.languages) == ("tower", ("en", "de", "ja"))


@pytest.mark.parametrize(
    ("marker", "field"),
    [
        ("bundled", "translation_gateway"),
        ({"prompt": "bundlde", "languages": ["en"]}, "translation_gateway.prompt"),
        ({"prompt": ["bundled"], "languages": ["en"]}, "translation_gateway.prompt"),
        ({"prompt": "bundled"}, "translation_gateway.languages"),
        ({"prompt": "bundled", "languages": []}, "translation_gateway.languages"),
        ({"prompt": "bundled", "languages": "en"}, "translation_gateway.languages"),
        ({"prompt": "bundled", "languages": [1]}, "translation_gateway.languages"),
    ],
)
def test_a_marker_that_makes_no_sense_is_refused(marker: object, field: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        detect({"translation_gateway": marker}, "demo")
    assert refused.value.field == field


def test_unknown_family_is_refused_with_names() -> None:
    with pytest.raises(InvalidValue) as refused:
        family_named("tovver")
    assert refused.value.message == (
        "unknown prompt family 'tovver'; known: bundled, hunyuan-mt, hy-mt1.5, hy-mt2, seed-x, "
        "translategemma, translategemma-vllm, tower, tower-plus, chat"
    )
    assert refused.value.field == "engine.family"
    with pytest.raises(InvalidValue):
        detect({}, "x", "tovver")
    assert family_named("chat") is FAMILIES["chat"]
