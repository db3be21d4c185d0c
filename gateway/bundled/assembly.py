"""Assembles the bundled model: takes the base, adds the adapter, cuts vocabulary and layers, writes a folder.

Knows: the architecture (Gemma 3, text only), how its parts are called in the base and in the folder.
Must not know: where the folder is kept, who waits for it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gateway.bundled.adapter import FIRST_SPECIAL, Adapter, read_adapter
from gateway.bundled.base import Base
from gateway.bundled.gguf import Floats, Gguf, InvalidGguf
from gateway.bundled.tensors import InvalidTensors, write_bfloat16
from gateway.bundled.tokenizer import BEGIN, END, IDS, LANGUAGES, PAD, PROMPT_TOKENS, tokenizer_files

# Tokens of a prompt and its answer together: the training had no longer ones.
_WINDOW = 2_048

# Every so many layers, one that sees everything; the others see `attention.sliding_window` tokens.
_FULL_EVERY = 6
_LOCAL_ROPE_BASE = 10_000.0

# A layer's parts in the base → in the folder.
_PARTS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_EMBEDDING = "model.embed_tokens"


class CannotAssemble(Exception):
    """Base and adapter make no model. The text says why."""


def assemble(base: Base, adapter: Path, more: Sequence[Path], into: Path) -> None:
    """Write the model to the folder `into`, which is there and empty.

    base: that was checked. more: files that go with the adapter, copied as they are.
    Raises `CannotAssemble`, `OSError`.
    """
    try:
        own = read_adapter(adapter)
        with base.open() as file:
            source = Gguf(file)
            _write_weights(source, own, into / "model.safetensors")
            described = {
                "config.json": _config(source, own),
                **tokenizer_files(source.facts, own.vocabulary.tolist(), _WINDOW),
            }
    except (InvalidGguf, InvalidTensors) as error:
        raise CannotAssemble(str(error)) from None
    except (KeyError, IndexError) as error:
        raise CannotAssemble(f"the base is of another kind: {error!r}") from None
    for name, content in described.items():
        (into / name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    for paper in (*base.papers, *more):
        shutil.copyfile(paper, into / paper.name)


def _write_weights(source: Gguf, own: Adapter, path: Path) -> None:
    places = _places(source, own)
    if unknown := (own.low_rank.keys() | own.replaced.keys()) - {part for part, _ in places}:
        raise InvalidTensors(f"the adapter has {sorted(unknown)[0]}, which is not a part of the model")
    shapes = {f"{part}.weight": source.tensors[name].shape for part, name in places}
    shapes[f"{_EMBEDDING}.weight"] = (len(own.vocabulary), _fact(source, "embedding_length"))
    with path.open("wb") as file:
        write_bfloat16(file, shapes, _weights(source, own, places))


def _places(source: Gguf, own: Adapter) -> list[tuple[str, str]]:
    """Each part of the model, and its tensor in the base."""
    layers = [
        (f"model.layers.{new}.{part}", f"blk.{old}.{name}.weight")
        for new, old in enumerate(_layers(source, own))
        for name, part in _PARTS.items()
    ]
    return [(_EMBEDDING, "token_embd.weight"), *layers, ("model.norm", "output_norm.weight")]


def _weights(source: Gguf, own: Adapter, places: Sequence[tuple[str, str]]) -> Iterator[Floats]:
    for part, name in places:
        if part == _EMBEDDING:
            weight = source.read(name, own.vocabulary)
            special = slice(FIRST_SPECIAL, FIRST_SPECIAL + len(PROMPT_TOKENS))
            if own.special.shape != weight[special].shape:
                raise InvalidTensors(f"special has the shape {own.special.shape} and not {weight[special].shape}")
            weight[special] = own.special
        else:
            weight = source.read(name)
            if len(weight.shape) == 1:
                # The base has the factors of norms, models their difference from 1.
                weight = weight - np.float32(1)
        yield own.applied(part, weight)


def _layers(source: Gguf, own: Adapter) -> Sequence[int]:
    """The base's layers that are kept."""
    there = range(_fact(source, "block_count"))
    if own.layers is None:
        return there
    if not own.layers or not set(own.layers) <= set(there):
        raise InvalidTensors(f"the adapter keeps layers {own.layers} of {len(there)}")
    return own.layers


def _config(source: Gguf, own: Adapter) -> dict[str, Any]:
    layers = _layers(source, own)
    head = _fact(source, "attention.key_length")
    return {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "vocab_size": len(own.vocabulary),
        "hidden_size": _fact(source, "embedding_length"),
        "intermediate_size": _fact(source, "feed_forward_length"),
        "num_hidden_layers": len(layers),
        "num_attention_heads": _fact(source, "attention.head_count"),
        "num_key_value_heads": _fact(source, "attention.head_count_kv"),
        "head_dim": head,
        "query_pre_attn_scalar": head,
        "hidden_activation": "gelu_pytorch_tanh",
        "rms_norm_eps": round(_fact(source, "attention.layer_norm_rms_epsilon"), 9),
        "sliding_window": _fact(source, "attention.sliding_window"),
        "layer_types": [
            "full_attention" if (old + 1) % _FULL_EVERY == 0 else "sliding_attention" for old in layers
        ],
        "rope_parameters": {
            "full_attention": {"rope_theta": _fact(source, "rope.freq_base"), "rope_type": "default"},
            "sliding_attention": {"rope_theta": _LOCAL_ROPE_BASE, "rope_type": "default"},
        },
        "max_position_embeddings": _WINDOW,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "attn_logit_softcapping": None,
        "final_logit_softcapping": None,
        "use_bidirectional_attention": False,
        "bos_token_id": IDS[BEGIN],
        "eos_token_id": IDS[END],
        "pad_token_id": IDS[PAD],
        "torch_dtype": "bfloat16",
        "translation_gateway": {"prompt": "bundled", "languages": list(LANGUAGES), "version": 1},
    }


def _fact(source: Gguf, name: str) -> Any:
    return source.facts[f"gemma3.{name}"]
