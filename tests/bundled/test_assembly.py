"""What is assembled of a base and an adapter: weights, configuration, papers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gateway.bundled.assembly import CannotAssemble, assemble
from gateway.bundled.base import Base
from gateway.bundled.gguf import Floats
from gateway.bundled.tensors import from_bfloat16, read_tensors, to_bfloat16
from gateway.engines.prompting.model_config import find_family, read_config
from tests.bundled.made_up_base import (
    HEAD,
    KEPT,
    LOW_RANK,
    SPECIAL,
    WIDTH,
    made_up_numbers,
    tensors_of_base,
    write_adapter,
    write_base,
)


@pytest.fixture
def base(tmp_path: Path) -> Base:
    return write_base(tmp_path / "base")


def assembled(tmp_path: Path, base: Base, **adapter: object) -> Path:
    (into := tmp_path / "model").mkdir()
    assemble(base, write_adapter(tmp_path / "adapter", bits=16, **adapter), [], into)
    return into


def near(found: Floats, wanted: Floats) -> None:
    """Equal but for the steps of bfloat16 and of Q8_0."""
    np.testing.assert_allclose(found, wanted, rtol=0.01, atol=0.02)


def test_weights_are_base_plus_adapter(tmp_path: Path, base: Base) -> None:
    own = {name: numbers for name, (_, numbers) in tensors_of_base().items()}
    found = read_tensors(assembled(tmp_path, base) / "model.safetensors")
    assert len(found) == len(own)
    # Norms are stored as factors, and wanted as differences from 1.
    near(found["model.norm.weight"], own["output_norm.weight"] - 1)
    near(found["model.layers.3.self_attn.q_norm.weight"], own["blk.3.attn_q_norm.weight"] - 1)
    near(found["model.layers.3.self_attn.q_proj.weight"], own["blk.3.attn_q.weight"])
    a, b = LOW_RANK["model.layers.0.mlp.up_proj"]
    near(found["model.layers.0.mlp.up_proj.weight"], own["blk.0.ffn_up.weight"] + b @ a)
    assert found["model.layers.0.self_attn.k_proj.weight"].shape == (HEAD, WIDTH)


def test_the_embedding_has_the_rows_that_are_kept(tmp_path: Path, base: Base) -> None:
    embedding = read_tensors(assembled(tmp_path, base) / "model.safetensors")["model.embed_tokens.weight"]
    near(embedding[15:], tensors_of_base()["token_embd.weight"][1][list(KEPT[15:])])
    near(embedding[:6], tensors_of_base()["token_embd.weight"][1][:6])
    np.testing.assert_array_equal(embedding[6:15], from_bfloat16(to_bfloat16(SPECIAL)))


def test_layers_that_are_left_out(tmp_path: Path, base: Base) -> None:
    folder = assembled(tmp_path, base, layers=[0, 2, 5])
    found = read_tensors(folder / "model.safetensors")
    own = tensors_of_base()
    near(found["model.layers.2.mlp.gate_proj.weight"], own["blk.5.ffn_gate.weight"][1])
    # The adapter's names are those of the assembled model: its second layer is the base's third.
    a, b = LOW_RANK["model.layers.1.self_attn.o_proj"]
    near(found["model.layers.1.self_attn.o_proj.weight"], own["blk.2.attn_output.weight"][1] + b @ a)
    assert not any(".layers.3." in name for name in found)
    config = json.loads((folder / "config.json").read_text())
    assert config["num_hidden_layers"] == 3
    # Each sees as much as it did in the base.
    assert config["layer_types"] == ["sliding_attention", "sliding_attention", "full_attention"]


def test_a_weight_that_is_replaced(tmp_path: Path, base: Base) -> None:
    norm = np.full(WIDTH, 0.5, np.float32)
    found = read_tensors(assembled(tmp_path, base, replaced={"model.norm": norm}) / "model.safetensors")
    assert found["model.norm.weight"].tolist() == norm.tolist()


def test_the_gateway_knows_the_model_by_its_configuration(tmp_path: Path, base: Base) -> None:
    folder = assembled(tmp_path, base)
    config = read_config(str(folder))
    assert config is not None
    family = find_family(config, str(folder), None)
    assert (family.name, family.languages) == ("bundled", ("en", "ja", "es", "de", "fr", "zh"))
    assert (config["vocab_size"], config["rms_norm_eps"]) == (len(KEPT), 1e-6)


def test_papers_and_what_goes_with_the_adapter_are_copied(tmp_path: Path, base: Base) -> None:
    (more := tmp_path / "confidence.json").write_text("{}")
    (into := tmp_path / "model").mkdir()
    assemble(base, write_adapter(tmp_path / "adapter"), [more], into)
    assert {file.name for file in into.iterdir()} == {
        *("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"),
        *("GEMMA_TERMS.html", "NOTICE.md", "confidence.json"),
    }


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"low_rank": {"lm_head": (SPECIAL, SPECIAL)}}, "lm_head, which is not a part of the model"),
        ({"replaced": {"other": SPECIAL}}, "other, which is not a part of the model"),
        ({"layers": [0, 6]}, r"keeps layers \(0, 6\) of 6"),
        ({"special": made_up_numbers(1, 9, 8)}, r"special has the shape \(9, 8\) and not \(9, 32\)"),
        ({"special": made_up_numbers(1, 8, WIDTH)}, r"special has the shape \(8, 32\) and not \(9, 32\)"),
        ({"replaced": {"model.norm": SPECIAL}}, "does not fit"),
        ({"vocabulary": (*range(15), 9_999)}, "the base is of another kind"),
    ],
)
def test_what_does_not_go_together_is_refused(
    tmp_path: Path, base: Base, changed: dict[str, object], why: str
) -> None:
    with pytest.raises(CannotAssemble, match=why):
        assembled(tmp_path, base, **changed)


def test_another_file_is_refused(tmp_path: Path, base: Base) -> None:
    base.parts[0].write_bytes(b"else")
    with pytest.raises(CannotAssemble, match="does not begin as GGUF"):
        assembled(tmp_path, base)
