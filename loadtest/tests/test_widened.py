"""The model inside a larger one gives the same logits, and never a token that it does not have."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from loadtest.widened import widen, widened_config

SMALL: dict[str, Any] = {
    **{"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2},
    **{
        "num_key_value_heads": 2,
        "head_dim": 8,
        "vocab_size": 40,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True,
    },
}
LARGE: dict[str, Any] = {
    **{"hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 8},
    **{"num_key_value_heads": 4, "head_dim": 16, "vocab_size": 64},
}


@pytest.mark.slow
def test_the_logits_are_those_of_the_small_model() -> None:
    torch.manual_seed(0)
    small = LlamaForCausalLM(LlamaConfig(**SMALL, initializer_range=0.3)).to(torch.bfloat16).float().eval()
    large = LlamaForCausalLM(LlamaConfig(**widened_config(SMALL, LARGE))).eval()
    weights = widen(small.state_dict(), SMALL, LARGE)
    found = large.load_state_dict({name: weight.float() for name, weight in weights.items()}, strict=False)
    assert not found.missing_keys
    assert not found.unexpected_keys
    ids = torch.randint(0, SMALL["vocab_size"], (3, 12))
    with torch.no_grad():
        wanted, got = small(ids).logits, large(ids).logits
    # Norms and scales are rounded once more.
    assert (got[..., : SMALL["vocab_size"]] - wanted).abs().max() < 0.05 * wanted.abs().max()
    assert got[..., SMALL["vocab_size"] :].max() < wanted.min()
