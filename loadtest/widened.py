"""The small model inside a larger shape: text that means something, and answers that end, at the cost of 1.7 B.

    python -m loadtest.widened FOLDER          # makes FOLDER/text-1.7b, 2.03 B parameters, 4 GB

A model without weights (`shapes`) shows no unfinished speech, as none of its answers ends by itself. Here the
small model's channels, heads and layers lie in larger matrices, and nothing else reaches them: the same logits but
for rounding. The rest is noise, so that the GPU multiplies real numbers. It is a Llama as the small model is,
with Qwen3-1.7B's sizes but without its norms of queries and keys; the output has a matrix of its own.

Knows: how a Llama computes. Must not know: engines.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demo_model import SMALL_MODEL
from loadtest.shapes import COMMON, SHAPES

if TYPE_CHECKING:
    from torch import Tensor

# What no token that the small model lacks may reach.
_NEVER = -1_000.0


def widen(small: Mapping[str, Tensor], config: Mapping[str, Any], sizes: Mapping[str, Any]) -> dict[str, Tensor]:
    """The weights of the larger model, by transformers' names, in bfloat16.

    small: weights by name. config: its config.json. sizes: what the larger one's config.json has instead. It has
    more channels, heads, layers and tokens than the small one, which has as many heads of keys as of queries.
    """
    import torch

    hidden, middle, vocabulary = sizes["hidden_size"], sizes["intermediate_size"], sizes["vocab_size"]
    heads, groups, width = sizes["num_attention_heads"], sizes["num_key_value_heads"], sizes["head_dim"]
    own, narrow, count = config["hidden_size"], config["head_dim"], config["num_attention_heads"]
    generator = torch.Generator().manual_seed(1)
    noises: dict[tuple[int, ...], Tensor] = {}
    # A rotation of the small model's angle number a is the larger one's number a * width / narrow.
    turned = torch.arange(narrow // 2) * (width // narrow)
    places = torch.cat([turned, turned + width // 2])

    def noise(*shape: int) -> Tensor:
        """The same for each matrix of a shape, as it takes long to make."""
        if shape not in noises:
            noises[shape] = torch.randn(*shape, generator=generator) * 0.02
        return noises[shape].clone()

    def norm(weight: Tensor) -> Tensor:
        """The mean square is over all channels, of which few are in use."""
        made = torch.zeros(hidden)
        made[:own] = weight.float() * (own / hidden) ** 0.5
        return made

    def to_heads(weight: Tensor, many: int, each: int, within: Tensor, scale: float = 1.0) -> Tensor:
        """A projection to `many` heads: head number m of the small model becomes number m * each."""
        made = noise(many * width, hidden)
        made[:, own:] = 0
        for head in range(count):
            at = head * each * width
            made[at : at + width] = 0
            made[at + within, :own] = weight[head * narrow : (head + 1) * narrow].float() * scale
        return made

    def layer(name: str) -> dict[str, Tensor]:
        q, k, v, o = (small[f"{name}self_attn.{part}_proj.weight"].float() for part in "qkvo")
        out = torch.zeros(hidden, heads * width)
        for head in range(count):
            at = head * (heads // groups) * width
            out[:own, at : at + narrow] = o[:, head * narrow : (head + 1) * narrow]
        down = torch.zeros(hidden, middle)
        small_down = small[f"{name}mlp.down_proj.weight"].float()
        down[:own, : small_down.shape[1]] = small_down
        made = {
            "self_attn.q_proj": to_heads(q, heads, heads // groups, places, (width / narrow) ** 0.5),
            "self_attn.k_proj": to_heads(k, groups, 1, places),
            "self_attn.v_proj": to_heads(v, groups, 1, torch.arange(narrow)),
            "self_attn.o_proj": out,
            "mlp.down_proj": down,
        }
        for part in ("mlp.gate_proj", "mlp.up_proj"):
            weight = small[f"{name}{part}.weight"].float()
            made[part] = noise(middle, hidden)
            made[part][: len(weight)] = 0
            made[part][: len(weight), :own] = weight
        for part in ("input_layernorm", "post_attention_layernorm"):
            made[part] = norm(small[f"{name}{part}.weight"])
        return made

    def idle_layer() -> dict[str, Tensor]:
        """One that adds nothing."""
        return {
            "self_attn.q_proj": noise(heads * width, hidden),
            "self_attn.k_proj": noise(groups * width, hidden),
            "self_attn.v_proj": noise(groups * width, hidden),
            "self_attn.o_proj": torch.zeros(hidden, heads * width),
            "mlp.gate_proj": noise(middle, hidden),
            "mlp.up_proj": noise(middle, hidden),
            "mlp.down_proj": torch.zeros(hidden, middle),
            "input_layernorm": torch.ones(hidden),
            "post_attention_layernorm": torch.ones(hidden),
        }

    # In bfloat16 at once: all of it in float32 would take 8 GB.
    large: dict[str, Tensor] = {}
    for number in range(sizes["num_hidden_layers"]):
        name = f"model.layers.{number}."
        parts = layer(name) if number < config["num_hidden_layers"] else idle_layer()
        large |= {f"{name}{part}.weight": made.to(torch.bfloat16) for part, made in parts.items()}
    embedding = small["model.embed_tokens.weight"].float()
    words, output = torch.zeros(vocabulary, hidden), torch.zeros(vocabulary, hidden)
    words[: len(embedding), :own] = embedding
    output[: len(embedding), :own] = small.get("lm_head.weight", embedding).float()
    # A channel that is the same for each token, and in no layer's input: by it the other tokens are never likely.
    words[:, hidden - 1] = float(embedding.pow(2).mean().sqrt()) / 4
    output[len(embedding) :, hidden - 1] = _NEVER
    last = norm(small["model.norm.weight"])
    last[hidden - 1] = 10.0
    ends = {"model.embed_tokens.weight": words, "lm_head.weight": output, "model.norm.weight": last}
    return large | {name: made.to(torch.bfloat16) for name, made in ends.items()}


def widened_config(config: Mapping[str, Any], sizes: Mapping[str, Any]) -> dict[str, Any]:
    """The larger model's config.json. sizes: as for `widen`."""
    epsilon = config["rms_norm_eps"] * config["hidden_size"] / sizes["hidden_size"]
    return {**config, **sizes, "tie_word_embeddings": False, "rms_norm_eps": epsilon}


def write(folder: Path) -> Path:
    """Make `folder`/text-1.7b of the small model, in half a minute."""
    from safetensors.torch import load_file, save_file

    target = folder / "text-1.7b"
    target.mkdir(parents=True, exist_ok=True)
    named = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
    shape = COMMON | SHAPES["1.7b"]
    sizes = {name: shape[name] for name in (*named, "head_dim", "vocab_size")}
    config = json.loads((SMALL_MODEL / "config.json").read_text(encoding="utf-8"))
    weights = widen(load_file(SMALL_MODEL / "model.safetensors"), config, sizes)
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
    (target / "config.json").write_text(json.dumps(widened_config(config, sizes), indent=1), encoding="utf-8")
    for name in ("tokenizer.json", "tokenizer_config.json", "confidence.json"):
        shutil.copyfile(SMALL_MODEL / name, target / name)
    return target


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
