"""A base of a few rows, as its package would bring it, and an adapter for it."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from demo_model.adapter import save_adapter
from gateway.bundled.base import Base
from gateway.bundled.gguf import Floats

LAYERS, WIDTH, INNER, HEADS, HEAD = 6, 32, 64, 2, 16

CONTROL, NORMAL, OWN, BYTE = 3, 1, 4, 6
PIECES = (
    *((name, CONTROL) for name in ("<pad>", "<eos>", "<bos>", "<unk>", "<mask>")),
    ("[multimodal]", OWN),
    *((f"<unused{n}>", CONTROL) for n in range(12)),
    *((name, OWN) for name in ("\n", "</s>", "<s>")),
    *((f"<0x{byte:02X}>", BYTE) for byte in range(256)),
    # What is joined first comes first.
    *(
        (piece, NORMAL)
        for piece in ("he", "ll", "el", "hell", "hello", "▁hello", "日本", "<t", "o>", "<to>", "en", "s>")
    ),
    *((piece, NORMAL) for piece in "▁helo日本語,.<>/tnsax"),
)
"""(Token, kind) by id."""
LEFT_OUT = (15, 16, 17)
KEPT = tuple(number for number in range(len(PIECES)) if number not in LEFT_OUT)

F32, Q8_0 = 0, 8


def made_up_numbers(seed: int, *shape: int) -> Floats:
    """The same for the same seed, about 1 in size."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def as_q8_0(numbers: Floats) -> bytes:
    """In blocks of 32 numbers: a scale of 16 bits, and 8 bits for each."""
    blocks = numbers.reshape(-1, 32)
    scales = (np.abs(blocks).max(axis=1, keepdims=True) / 127).astype(np.float16)
    steps = np.rint(blocks / scales.astype(np.float32)).astype(np.int8)
    return b"".join(scale.tobytes() + row.tobytes() for scale, row in zip(scales, steps, strict=True))


def tensors_of_base() -> dict[str, tuple[int, Floats]]:
    """Name → kind and numbers."""
    shapes: dict[str, tuple[int, tuple[int, ...]]] = {
        "token_embd": (Q8_0, (len(PIECES), WIDTH)),
        "output_norm": (F32, (WIDTH,)),
    }
    for layer in range(LAYERS):
        for name, kind, shape in (
            ("attn_norm", F32, (WIDTH,)),
            ("attn_q", Q8_0, (HEADS * HEAD, WIDTH)),
            ("attn_k", F32, (HEAD, WIDTH)),
            ("attn_v", Q8_0, (HEAD, WIDTH)),
            ("attn_output", F32, (WIDTH, HEADS * HEAD)),
            ("attn_q_norm", F32, (HEAD,)),
            ("attn_k_norm", F32, (HEAD,)),
            ("post_attention_norm", F32, (WIDTH,)),
            ("ffn_norm", F32, (WIDTH,)),
            ("ffn_gate", Q8_0, (INNER, WIDTH)),
            ("ffn_up", F32, (INNER, WIDTH)),
            ("ffn_down", Q8_0, (WIDTH, INNER)),
            ("post_ffw_norm", F32, (WIDTH,)),
        ):
            shapes[f"blk.{layer}.{name}"] = (kind, shape)
    return {
        f"{name}.weight": (kind, made_up_numbers(seed, *shape))
        for seed, (name, (kind, shape)) in enumerate(shapes.items())
    }


FACTS: dict[str, Any] = {
    "general.architecture": "gemma3",
    "gemma3.block_count": LAYERS,
    "gemma3.embedding_length": WIDTH,
    "gemma3.feed_forward_length": INNER,
    "gemma3.attention.head_count": HEADS,
    "gemma3.attention.head_count_kv": 1,
    "gemma3.attention.key_length": HEAD,
    "gemma3.attention.layer_norm_rms_epsilon": 1e-6,
    "gemma3.attention.sliding_window": 512,
    "gemma3.rope.freq_base": 1e6,
    "tokenizer.ggml.tokens": [piece for piece, _ in PIECES],
    "tokenizer.ggml.scores": [-float(number) for number in range(len(PIECES))],
    "tokenizer.ggml.token_type": [kind for _, kind in PIECES],
}


def gguf(facts: dict[str, Any], tensors: dict[str, tuple[int, tuple[int, ...], bytes]]) -> bytes:
    """A file of this format. tensors: name → kind, shape, bytes."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(facts))
    for name, value in facts.items():
        head += _string(name) + _fact(value)
    data = b""
    for name, (kind, shape, raw) in tensors.items():
        head += _string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], kind, len(data))
        data += raw + b"\0" * (-len(raw) % 32)
    return head + b"\0" * (-len(head) % 32) + data


def _string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _fact(value: Any) -> bytes:
    match value:
        case str():
            return struct.pack("<I", 8) + _string(value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case list():
            items = [_fact(each) for each in value]
            return (
                struct.pack("<I", 9)
                + items[0][:4]
                + struct.pack("<Q", len(items))
                + b"".join(i[4:] for i in items)
            )
    raise TypeError(value)


def write_base(folder: Path) -> Base:
    """A base in two parts, which a tensor's bytes cross, with papers."""
    folder.mkdir(parents=True)
    data = gguf(
        FACTS,
        {
            name: (kind, numbers.shape, as_q8_0(numbers) if kind == Q8_0 else numbers.tobytes())
            for name, (kind, numbers) in tensors_of_base().items()
        },
    )
    parts = (folder / "part00", folder / "part01")
    for part, piece in zip(parts, (data[: len(data) // 2 + 5], data[len(data) // 2 + 5 :]), strict=True):
        part.write_bytes(piece)
    papers = (folder / "GEMMA_TERMS.html", folder / "NOTICE.md")
    for paper in papers:
        paper.write_text(f"{paper.name} of the package")
    return Base(parts, papers, hashlib.sha256(data).hexdigest())


SPECIAL = made_up_numbers(1_000, 9, WIDTH)
LOW_RANK: dict[str, tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]] = {
    "model.layers.0.mlp.up_proj": (made_up_numbers(1_001, 4, WIDTH), made_up_numbers(1_002, INNER, 4)),
    "model.layers.1.self_attn.o_proj": (made_up_numbers(1_003, 4, HEADS * HEAD), made_up_numbers(1_004, WIDTH, 4)),
}


def write_adapter(path: Path, **changed: Any) -> Path:
    """An adapter for `write_base`. changed: arguments of `save_adapter`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    save_adapter(path, **{"vocabulary": KEPT, "special": SPECIAL, "low_rank": LOW_RANK, **changed})
    return path
