"""The model that is trained is the one that transformers and vLLM run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def reference() -> Any:
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    torch.manual_seed(1)
    config = Gemma3TextConfig(
        vocab_size=64,
        hidden_size=640,
        intermediate_size=128,
        num_hidden_layers=6,
        num_attention_heads=4,
        num_key_value_heads=1,
        head_dim=256,
        query_pre_attn_scalar=256,
        sliding_window=512,
        layer_types=["sliding_attention"] * 5 + ["full_attention"],
        tie_word_embeddings=True,
    )
    return Gemma3ForCausalLM(config).float().eval()


def ours(reference: Any) -> Any:
    from demo_model.gemma import Shape, TranslationModel

    weights = {name: value for name, value in reference.state_dict().items() if name != "lm_head.weight"}
    return TranslationModel(weights, 4, weights["model.embed_tokens.weight"][6:15], Shape(layers=6))


def test_packed_pairs_match_pairs_alone(reference: Any) -> None:
    first, second = [2, 6, 9, 12, 20, 21, 14], [2, 7, 6, 13, 33, 14, 40]
    tokens = torch.tensor([first + second])
    places = torch.tensor([[*range(7), *range(7)]])
    pairs = torch.tensor([[1] * 7 + [2] * 7])
    with torch.no_grad():
        hidden = ours(reference).hidden(tokens, places, pairs)
        logits = hidden @ reference.get_input_embeddings().weight.T
        for part, ids in ((logits[0, :7], first), (logits[0, 7:], second)):
            torch.testing.assert_close(
                part, reference(input_ids=torch.tensor([ids])).logits[0], rtol=1e-3, atol=1e-3
            )


def test_the_adapter_merges_into_an_ordinary_model(reference: Any, tmp_path: Path) -> None:
    from demo_model.adapter import save_adapter
    from demo_model.train import Trainer, merged
    from gateway.bundled.adapter import read_adapter

    model = ours(reference)
    with torch.no_grad():
        for layer in model.layers:
            for module in layer.linear.values():
                module.B.normal_(std=0.02)
    trainer = Trainer.__new__(Trainer)
    trainer.model = model
    save_adapter(tmp_path / "adapter", vocabulary=range(64), **trainer.adapter())
    weights = {name: value for name, value in reference.state_dict().items() if name != "lm_head.weight"}
    whole = merged(weights, read_adapter(tmp_path / "adapter"))
    module = model.layers[1].linear["mlp_up_proj"]
    change = (module.B @ module.A).detach()
    found = whole["model.layers.1.mlp.up_proj.weight"]
    # 8 bits for each of two matrices.
    assert float((found - module.weight - change).abs().max()) < 0.03 * float(change.abs().max())
    assert torch.allclose(whole["model.embed_tokens.weight"][6:15], model.trained.detach(), atol=0.01)


def test_the_mean_of_adapters_keeps_what_they_share() -> None:
    from demo_model.train import mean_adapter

    random = np.random.default_rng(1)
    shared = random.normal(size=(3, 20)), random.normal(size=(30, 3))
    adapters: list[dict[str, Any]] = [
        {"special": np.full((9, 4), own), "low_rank": {"x": tuple(np.float32(each) for each in shared)}}
        for own in (1.0, 3.0)
    ]
    mean = mean_adapter(adapters, 3)
    a, b = mean["low_rank"]["x"]
    assert (a.shape, b.shape) == ((3, 20), (30, 3))
    np.testing.assert_allclose(b @ a, shared[1] @ shared[0], rtol=1e-3, atol=1e-3)
    assert (mean["special"] == 2.0).all()
    # What only one of them has counts half.
    adapters[1]["low_rank"] = {"x": tuple(np.zeros_like(each) for each in adapters[1]["low_rank"]["x"])}
    a, b = mean_adapter(adapters, 3)["low_rank"]["x"]
    np.testing.assert_allclose(b @ a, shared[1] @ shared[0] / 2, rtol=1e-3, atol=1e-3)


def test_what_was_trained_further_is_added_to_what_it_began_with() -> None:
    from demo_model.train import mean_adapter
    from gateway.bundled.adapter import Adapter

    random = np.random.default_rng(2)

    def product(rank: int) -> tuple[Any, Any]:
        return np.float32(random.normal(size=(rank, 20))), np.float32(random.normal(size=(5, rank)))

    special = np.zeros((9, 4), np.float32)
    start = Adapter(np.arange(15), special, None, {"x": product(4)}, {})
    runs: list[dict[str, Any]] = [{"special": special + 1, "low_rank": {"x": product(2)}} for _ in range(2)]
    # A rank above that of the layer: all there is.
    mean = mean_adapter(runs, 12, start)
    a, b = mean["low_rank"]["x"]
    a0, b0 = start.low_rank["x"]
    further = sum(each["low_rank"]["x"][1] @ each["low_rank"]["x"][0] for each in runs) / 2
    np.testing.assert_allclose(b @ a, b0 @ a0 + further, rtol=1e-3, atol=1e-3)
    assert (mean["special"] == 1.0).all()
