"""How much memory an engine needs: weights, and a cache for so many sequences.

Knows: what a model's `config.json` says of its size. Must not know: how anything is measured.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

__all__ = ["Cache", "Model", "Need", "need", "read_model"]

_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
_GIB = 2.0**30

# CUDA's context, captured graphs, activations and what the allocator cannot use.
_RESERVE_GIB = 4.0

# A step keeps its scores over the whole vocabulary twice, as 32 bit numbers, where prompts are scored too.
_SCORES = 2 * 4


class Model(Struct, frozen=True):
    """parameters: from the size of its files, or else estimated from its shape, which is right for dense models.
    cache_bytes_per_token: of keys and values, all layers."""

    parameters: float
    bytes_each: int
    cache_bytes_per_token: int
    vocabulary: int

    @property
    def weights_gib(self) -> float:
        return self.parameters * self.bytes_each / _GIB


class Cache(Struct, frozen=True):
    """What has to fit. sequences: at once. prompt_tokens: mean; output_tokens: p99. kept_prompts: whose beginning
    is kept for the next utterance, one for each meeting and language. block: tokens that are taken at a time."""

    sequences: int
    prompt_tokens: float
    output_tokens: float
    kept_prompts: int
    block: int

    @property
    def tokens(self) -> int:
        """Of everything, in whole blocks."""
        one = self._blocks(self.prompt_tokens + self.output_tokens)
        return self.sequences * one + self.kept_prompts * self._blocks(self.prompt_tokens)

    def _blocks(self, tokens: float) -> int:
        return math.ceil(tokens / self.block) * self.block


class Need(Struct, frozen=True):
    """In GiB. share: of the GPU's memory, in whole per cent; null without a GPU, above 1 where it does not fit."""

    weights_gib: float
    cache_gib: float
    reserve_gib: float
    share: float | None

    @property
    def total_gib(self) -> float:
        return self.weights_gib + self.cache_gib + self.reserve_gib


def read_model(folder: Path, dtype: str = "auto") -> Model | None:
    """A model's size; null when it is no folder of a model, or its config does not tell. dtype: as the engine has
    it; `auto` is the config's own."""
    try:
        config = json.loads((folder / "config.json").read_text())
        return _model(config, folder, dtype)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _model(config: Mapping[str, Any], folder: Path, dtype: str) -> Model:
    stored = str(config.get("dtype") or config.get("torch_dtype") or "bfloat16")
    # Some models keep their text part apart.
    shape = config.get("text_config", config)
    layers, hidden, heads = (
        int(shape[name]) for name in ("num_hidden_layers", "hidden_size", "num_attention_heads")
    )
    kv_heads = int(shape.get("num_key_value_heads") or heads)
    head_dim = int(shape.get("head_dim") or hidden // heads)
    each = _BYTES.get(stored if dtype == "auto" else dtype, 2)
    files = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    attention = hidden * head_dim * (2 * heads + 2 * kv_heads)
    feed_forward = 3 * hidden * int(shape["intermediate_size"])
    embeddings = int(shape["vocab_size"]) * hidden * (1 if shape.get("tie_word_embeddings") else 2)
    estimated = embeddings + layers * (attention + feed_forward)
    return Model(
        parameters=files / _BYTES.get(stored, 2) if files else estimated,
        bytes_each=each,
        cache_bytes_per_token=layers * 2 * kv_heads * head_dim * each,
        vocabulary=int(shape["vocab_size"]),
    )


def need(model: Model, cache: Cache, *, batched_tokens: int, gpu_gib: float | None) -> Need:
    """What an engine with this model and cache takes. batched_tokens: of one step."""
    cache_gib = cache.tokens * model.cache_bytes_per_token / _GIB
    if gpu_gib is None:
        return Need(model.weights_gib, cache_gib, 0.0, None)
    reserve_gib = _RESERVE_GIB + batched_tokens * model.vocabulary * _SCORES / _GIB
    share = (model.weights_gib + cache_gib + reserve_gib) / gpu_gib
    return Need(model.weights_gib, cache_gib, reserve_gib, math.ceil(share * 100) / 100)
