"""Gemma 3 as it is trained here: frozen weights, a low-rank difference of each linear layer, nine trained tokens.

Rows hold several pairs one after the other (`batches.py`), so attention is within a pair, and places begin anew in
each. Written for one shape of batches, so that what is compiled is compiled once; tests hold it equal to
transformers' model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from gateway.bundled.adapter import FIRST_SPECIAL
from gateway.bundled.tokenizer import PROMPT_TOKENS

LINEAR = (
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
)


@dataclass(frozen=True)
class Shape:
    """The sizes of Gemma 3 270M, but for the vocabulary."""

    hidden: int = 640
    layers: int = 18
    heads: int = 4
    head: int = 256
    epsilon: float = 1e-6
    # Every sixth layer sees far, and turns its places more slowly.
    far_every: int = 6
    near_base: float = 10_000.0
    far_base: float = 1_000_000.0


class Adapted(nn.Module):
    """A frozen linear layer and its trained difference B @ A. weight: (out, in); A: (rank, in); B: (out, rank)."""

    def __init__(self, weight: Tensor, rank: int) -> None:
        super().__init__()
        out, size = weight.shape
        self.register_buffer("weight", weight)
        self.A = nn.Parameter(torch.randn(rank, size, device=weight.device) / math.sqrt(size))
        self.B = nn.Parameter(torch.zeros(out, rank, device=weight.device))

    def forward(self, x: Tensor) -> Tensor:
        # One product with the sum is quicker than three: the sum is made once for all tokens of a step.
        whole = self.weight.float() + self.B @ self.A
        return functional.linear(x, whole.to(x.dtype))


def normed(x: Tensor, scale: Tensor, epsilon: float) -> Tensor:
    y = x.float()
    y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + epsilon)
    return (y * (1 + scale.float())).to(x.dtype)


def turned(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary places. x: (rows, heads, tokens, head)."""
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


class Layer(nn.Module):
    """One layer; its place says how far it sees."""

    def __init__(self, weights: Mapping[str, Tensor], place: int, rank: int, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.far = (place + 1) % shape.far_every == 0
        prefix = f"model.layers.{place}."
        self.linear = nn.ModuleDict(
            {name.replace(".", "_"): Adapted(weights[f"{prefix}{name}.weight"], rank) for name in LINEAR}
        )
        for name in (
            "input_layernorm",
            "post_attention_layernorm",
            "pre_feedforward_layernorm",
            "post_feedforward_layernorm",
            "self_attn.q_norm",
            "self_attn.k_norm",
        ):
            self.register_buffer(name.replace(".", "_"), weights[f"{prefix}{name}.weight"])

    def forward(self, x: Tensor, turns: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        rows, length, _ = x.shape
        shape, epsilon = self.shape, self.shape.epsilon
        h = normed(x, self.input_layernorm, epsilon)
        q = self.linear["self_attn_q_proj"](h).view(rows, length, shape.heads, shape.head).transpose(1, 2)
        k = self.linear["self_attn_k_proj"](h).view(rows, length, 1, shape.head).transpose(1, 2)
        v = self.linear["self_attn_v_proj"](h).view(rows, length, 1, shape.head).transpose(1, 2)
        q = turned(normed(q, self.self_attn_q_norm, epsilon), *turns)
        k = turned(normed(k, self.self_attn_k_norm, epsilon), *turns)
        # The one key of all heads: the heads are tokens of one long product.
        scores = q.reshape(rows, shape.heads * length, shape.head) @ k[:, 0].transpose(1, 2)
        scores = scores.view(rows, shape.heads, length, length).float() / math.sqrt(shape.head)
        weights = torch.softmax(scores.masked_fill(~mask[:, None], -1e9), dim=-1).to(x.dtype)
        seen = (weights.view(rows, shape.heads * length, length) @ v[:, 0]).view(
            rows, shape.heads, length, shape.head
        )
        seen = seen.transpose(1, 2).reshape(rows, length, shape.heads * shape.head)
        x = x + normed(self.linear["self_attn_o_proj"](seen), self.post_attention_layernorm, epsilon)
        h = normed(x, self.pre_feedforward_layernorm, epsilon)
        gate = functional.gelu(self.linear["mlp_gate_proj"](h), approximate="tanh")
        h = self.linear["mlp_down_proj"](gate * self.linear["mlp_up_proj"](h))
        return x + normed(h, self.post_feedforward_layernorm, epsilon)


class TranslationModel(nn.Module):
    """weights: those of transformers' Gemma 3 (bfloat16).
    trained: the first values of the nine tokens, of shape (9, hidden)."""

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        rank: int,
        trained: Tensor,
        shape: Shape = Shape(),
    ) -> None:
        super().__init__()
        self.shape = shape
        self.register_buffer("embedding", weights["model.embed_tokens.weight"])
        self.register_buffer("norm", weights["model.norm.weight"])
        self.trained = nn.Parameter(trained.float().clone())
        self.piece: Callable[[Tensor, Tensor, Tensor], Tensor] = _piece
        self.layers = nn.ModuleList([Layer(weights, place, rank, shape) for place in range(shape.layers)])

    def compile_parts(self) -> None:
        """Compiles a layer, once for all of them, and the loss. (The whole model takes minutes to compile.)"""
        for layer in self.layers:
            layer.compile(dynamic=False)
        self.piece = torch.compile(_piece, dynamic=False)

    def _turns(self, places: Tensor, base: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        size = self.shape.head
        steps = torch.arange(0, size, 2, device=places.device, dtype=torch.float32) / size
        angles = places[..., None].float() * (base**-steps)
        angles = torch.cat((angles, angles), dim=-1)[:, None]
        return angles.cos().to(dtype), angles.sin().to(dtype)

    def hidden(self, tokens: Tensor, places: Tensor, pairs: Tensor) -> Tensor:
        """All of shape (rows, tokens) → (rows, tokens, hidden), after the last norm."""
        x = functional.embedding(tokens, self.embedding)
        ours = (tokens >= FIRST_SPECIAL) & (tokens < FIRST_SPECIAL + len(PROMPT_TOKENS))
        rows = self.trained.to(x.dtype)[(tokens - FIRST_SPECIAL).clamp(0, len(PROMPT_TOKENS) - 1)]
        x = torch.where(ours[..., None], rows, x)
        x = x * torch.tensor(self.shape.hidden**0.5, dtype=x.dtype, device=x.device)
        length = tokens.shape[1]
        order = torch.arange(length, device=tokens.device)
        mask = (pairs[:, :, None] == pairs[:, None, :]) & (order[None, :, None] >= order[None, None, :])
        near = self._turns(places, self.shape.near_base, x.dtype)
        far = self._turns(places, self.shape.far_base, x.dtype)
        for layer in self.layers:
            x = layer(x, far if layer.far else near, mask)
        return normed(x, self.norm, self.shape.epsilon)

    def loss(self, tokens: Tensor, places: Tensor, pairs: Tensor, predicted: Tensor, expected: Tensor) -> Tensor:
        """The sum of the losses of the predicted tokens (see `batches.Batch`)."""
        h = self.hidden(tokens, places, pairs).reshape(-1, self.shape.hidden)[predicted]
        total = h.new_zeros((), dtype=torch.float32)
        # In pieces, and computed again on the way back: the scores of all tokens at once would fill the memory.
        for part, wanted in zip(h.split(8192), expected.split(8192), strict=True):
            total = total + torch.utils.checkpoint.checkpoint(
                self.piece, part, self.embedding, wanted, use_reentrant=False
            )
        return total


def _piece(h: Tensor, embedding: Tensor, expected: Tensor) -> Tensor:
    scores = functional.linear(h, embedding).float()
    return functional.cross_entropy(scores, expected, ignore_index=-100, reduction="sum")
