"""A compact Llama in torch, with the network and weight names of `LlamaForCausalLM`.

It is small and simple, so that it trains fast. vLLM and transformers can load the files of `save`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from demo_model.layout import BEGIN, END, IDS, MARKER, PAD


@dataclass(frozen=True)
class Shape:
    vocabulary: int
    hidden: int = 384
    layers: int = 6
    heads: int = 6
    feed_forward: int = 1024
    rope_theta: float = 10_000.0
    epsilon: float = 1e-5
    positions: int = 1024

    @property
    def head(self) -> int:
        return self.hidden // self.heads


TINY = {"hidden": 64, "layers": 2, "heads": 2, "feed_forward": 128}


def _rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


@dataclass
class Cache:
    """Keys and values of one layer: (rows, heads, positions, head), filled up to the position of the call."""

    keys: Tensor
    values: Tensor


class Attention(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads, self.head = shape.heads, shape.head
        self.q_proj = nn.Linear(shape.hidden, shape.hidden, bias=False)
        self.k_proj = nn.Linear(shape.hidden, shape.hidden, bias=False)
        self.v_proj = nn.Linear(shape.hidden, shape.hidden, bias=False)
        self.o_proj = nn.Linear(shape.hidden, shape.hidden, bias=False)

    def forward(
        self, x: Tensor, rope: tuple[Tensor, Tensor], cache: Cache | None, start: int, mask: Tensor | None
    ) -> Tensor:
        rows, length, hidden = x.shape
        query, key, value = (
            proj(x).view(rows, length, self.heads, self.head).transpose(1, 2)
            for proj in (self.q_proj, self.k_proj, self.v_proj)
        )
        query, key = _rotate(query, *rope), _rotate(key, *rope)
        if cache is not None:
            cache.keys[:, :, start : start + length] = key
            cache.values[:, :, start : start + length] = value
            key, value = cache.keys[:, :, : start + length], cache.values[:, :, : start + length]
        out = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=mask is None)
        projected: Tensor = self.o_proj(out.transpose(1, 2).reshape(rows, length, hidden))
        return projected


class FeedForward(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden, shape.feed_forward, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.feed_forward, bias=False)
        self.down_proj = nn.Linear(shape.feed_forward, shape.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class Layer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.self_attn = Attention(shape)
        self.mlp = FeedForward(shape)
        self.input_layernorm = nn.RMSNorm(shape.hidden, eps=shape.epsilon)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden, eps=shape.epsilon)
        self.dropout = nn.Dropout(0.0)

    def forward(
        self, x: Tensor, rope: tuple[Tensor, Tensor], cache: Cache | None, start: int, mask: Tensor | None
    ) -> Tensor:
        x = x + self.dropout(self.self_attn(self.input_layernorm(x), rope, cache, start, mask))
        out: Tensor = x + self.dropout(self.mlp(self.post_attention_layernorm(x)))
        return out


class Body(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.hidden, eps=shape.epsilon)


class TranslationModel(nn.Module):
    """Maps token ids to hidden states. `logits` uses the embedding as the output layer."""

    rope_cosine: Tensor
    rope_sine: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.model = Body(shape)
        frequencies = shape.rope_theta ** (-torch.arange(0, shape.head, 2).float() / shape.head)
        angles = torch.outer(torch.arange(shape.positions).float(), frequencies)
        angles = torch.cat((angles, angles), dim=-1)
        self.register_buffer("rope_cosine", angles.cos(), persistent=False)
        self.register_buffer("rope_sine", angles.sin(), persistent=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                narrow = name.endswith(("o_proj.weight", "down_proj.weight"))
                nn.init.normal_(parameter, std=0.02 / (2 * shape.layers) ** 0.5 if narrow else 0.02)

    def forward(
        self, tokens: Tensor, caches: list[Cache] | None = None, start: int = 0, mask: Tensor | None = None
    ) -> Tensor:
        """Hidden states (rows, length, hidden). With caches, `tokens` are at position `start` and later."""
        x = self.model.embed_tokens(tokens)
        end = start + tokens.shape[1]
        kind = torch.get_autocast_dtype(x.device.type) if torch.is_autocast_enabled(x.device.type) else x.dtype
        rope = (self.rope_cosine[start:end].to(kind), self.rope_sine[start:end].to(kind))
        for index, layer in enumerate(self.model.layers):
            x = layer(x, rope, caches[index] if caches else None, start, mask)
        out: Tensor = self.model.norm(x)
        return out

    def logits(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.model.embed_tokens.weight)

    def _predictions(self, tokens: Tensor, predicted: Tensor) -> Tensor:
        return self.logits(self(tokens).flatten(0, 1).index_select(0, predicted)).float()

    def loss(self, tokens: Tensor, predicted: Tensor, taught: Tensor | None = None) -> Tensor:
        """Mean cross-entropy of the target tokens; `predicted` as in `batches.Batch`.

        taught: a teacher's `expected`. The loss is then the mean of the cross-entropies of this and of the tokens.
        """
        logits = self._predictions(tokens, predicted)
        loss = F.cross_entropy(logits, tokens.flatten().index_select(0, predicted + 1))
        return loss if taught is None else (loss + F.cross_entropy(logits, taught)) / 2

    @torch.no_grad()
    def expected(self, tokens: Tensor, predicted: Tensor) -> Tensor:
        """The probabilities of the tokens at each place of `predicted`: (places, vocabulary)."""
        return self._predictions(tokens, predicted).softmax(-1)

    def drop(self, chance: float) -> None:
        """In training, each layer's additions are dropped with this chance (Srivastava et al., 2014)."""
        for each in self.modules():
            if isinstance(each, nn.Dropout):
                each.p = chance

    @property
    def parameters_count(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())


@torch.no_grad()
def answer(
    model: TranslationModel, prompts: list[list[int]], limits: list[int], device: torch.device
) -> list[list[int] | None]:
    """Greedy answers without `</s>`; None for an answer that reached the limit.

    Prompts are padded on the left. This changes nothing, because positions are relative.
    """
    width = max(map(len, prompts))
    length = min(width + max(limits), model.shape.positions)
    rows = len(prompts)
    tokens = torch.full((rows, width), IDS[PAD], dtype=torch.long)
    visible = torch.zeros((rows, length), dtype=torch.bool)
    visible[:, width:] = True
    for row, prompt in enumerate(prompts):
        tokens[row, width - len(prompt) :] = torch.tensor(prompt)
        visible[row, width - len(prompt) : width] = True
    tokens, visible = tokens.to(device), visible.to(device)
    bound = torch.tensor(limits, device=device)
    kind = next(model.parameters()).dtype
    shape = (rows, model.shape.heads, length, model.shape.head)
    caches = [
        Cache(torch.zeros(shape, dtype=kind, device=device), torch.zeros(shape, dtype=kind, device=device))
        for _ in model.model.layers
    ]
    causal = torch.ones((width, width), dtype=torch.bool, device=device).tril()
    # A padding row attends to itself, because a fully masked row would give NaN.
    mask = (causal & visible[:, None, None, :width]) | torch.eye(width, dtype=torch.bool, device=device)
    hidden = model(tokens, caches, 0, mask)[:, -1]
    out: list[Tensor] = []
    ended = torch.zeros(rows, dtype=torch.bool, device=device)
    spent = torch.zeros(rows, dtype=torch.bool, device=device)
    for position in range(width, length + 1):
        chosen = model.logits(hidden).argmax(-1)
        chosen = torch.where(ended | spent, IDS[PAD], chosen)
        ended |= chosen == IDS[END]
        out.append(chosen)
        spent |= ~ended & (len(out) >= bound)
        if position == length or (len(out) % 8 == 0 and bool((ended | spent).all())):
            break
        hidden = model(chosen[:, None], caches, position, visible[:, None, None, : position + 1])[:, -1]
    answers: list[list[int] | None] = []
    for ids in torch.stack(out, 1).tolist():
        answers.append(ids[: ids.index(IDS[END])] if IDS[END] in ids else None)
    return answers


def save(model: TranslationModel, folder: Path, shard_bytes: int | None = None) -> list[str]:
    """Writes bfloat16 weights (in shards no larger than `shard_bytes`) and config.json; returns the file names."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    weights = {
        name: value.detach().to("cpu", torch.bfloat16).contiguous() for name, value in model.state_dict().items()
    }
    shards: list[dict[str, Tensor]] = [{}]
    size = 0
    for name, value in weights.items():
        if shard_bytes and shards[-1] and size + value.nbytes > shard_bytes:
            shards.append({})
            size = 0
        shards[-1][name] = value
        size += value.nbytes
    names = [f"model-{index + 1:05}-of-{len(shards):05}.safetensors" for index in range(len(shards))]
    if len(shards) == 1:
        names = ["model.safetensors"]
    for name, shard in zip(names, shards, strict=True):
        save_file(shard, str(folder / name), metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config(model.shape), indent=2) + "\n", encoding="utf-8")
    return names


def config(shape: Shape) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.feed_forward,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.heads,
        "head_dim": shape.head,
        "hidden_act": "silu",
        "rms_norm_eps": shape.epsilon,
        "rope_theta": shape.rope_theta,
        "max_position_embeddings": shape.positions,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": IDS[BEGIN],
        "eos_token_id": IDS[END],
        "pad_token_id": IDS[PAD],
        "torch_dtype": "bfloat16",
        "translation_gateway": MARKER,
    }


def load(folder: Path, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32) -> TranslationModel:
    from safetensors.torch import load_file

    table = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    shape = Shape(
        vocabulary=table["vocab_size"],
        hidden=table["hidden_size"],
        layers=table["num_hidden_layers"],
        heads=table["num_attention_heads"],
        feed_forward=table["intermediate_size"],
        rope_theta=table["rope_theta"],
        epsilon=table["rms_norm_eps"],
        positions=table["max_position_embeddings"],
    )
    model = TranslationModel(shape)
    weights: dict[str, Tensor] = {}
    for path in sorted(folder.glob("model*.safetensors")):
        weights.update(load_file(str(path)))
    model.load_state_dict(weights)
    model.to(device=device, dtype=dtype)
    return model
