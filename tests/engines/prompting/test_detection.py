"""How the family of a model is chosen: by the operator, the config's marker, a name, the architecture."""

from __future__ import annotations

import pytest

from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import InvalidValue
from gateway.engines.prompting.families import FAMILIES, detect, family_named
from gateway.engines.prompting.templates import ChatPrompt

BUNDLED = {"translation_gateway": {"prompt": "bundled", "languages": ["en", "de", "ja"]}}
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


def test_the_marker_goes_before_the_name_and_brings_its_languages() -> None:
    family = detect({**LLAMA, **BUNDLED}, "acme/TowerInstruct-like")
    assert (family.name, family.languages) == ("bundled", ("en", "de", "ja"))


def test_languages_of_a_marker_are_normalised_once_each() -> None:
    marker = {"prompt": "bundled", "languages": ["en-US", "zh_TW", "en"]}
    assert detect({"translation_gateway": marker}, "demo").languages == ("en", "zh-hant")


def test_a_marker_may_name_languages_only() -> None:
    family = detect(QWEN | {"translation_gateway": {"languages": ["en", "is"]}}, "acme/qwen-tuned")
    assert (family.name, family.languages) == ("chat", ("en", "is"))
    prompt = family.render(TranslationRequest(id="t1", text="Hæ.", source="is", target="en", final=True))
    assert isinstance(prompt, ChatPrompt)
    assert str(prompt.messages[0].content).startswith("Translate what was said in a meeting from is into")


def test_the_operator_goes_before_everything() -> None:
    assert detect(HUNYUAN, "tencent/Hy-MT2-7B", "chat") is FAMILIES["chat"]
    family = detect(BUNDLED, "demo", "tower")
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


def test_an_unknown_family_is_refused_with_the_names_there_are() -> None:
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
