"""Writes the adapter of the bundled model, as `gateway.bundled.adapter` reads it.

    save_adapter(path, vocabulary=ids, special=rows, low_rank={"model.layers.0.mlp.up_proj": (a, b), …})

Takes float32 arrays. `bits=8` halves the file: each row of A and B, and of `special`, is rounded to 255 steps.
`bits=4` halves it once more, at 15 steps for A and B, whose numbers of columns have to be even.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gateway.bundled.gguf import Floats
from gateway.bundled.tensors import to_bfloat16

_KINDS = {"int8": "I8", "uint8": "U8", "uint16": "BF16", "float32": "F32", "int32": "I32"}


def save_adapter(
    path: Path,
    *,
    vocabulary: Sequence[int],
    special: Floats,
    low_rank: Mapping[str, tuple[Floats, Floats]],
    layers: Sequence[int] | None = None,
    replaced: Mapping[str, Floats] | None = None,
    bits: Literal[4, 8, 16] = 8,
) -> None:
    """Write an adapter. `gateway.bundled.adapter` says what each argument is.

    low_rank: A and B by part of the model. replaced: weights by part, written in bfloat16.
    """
    tensors: dict[str, npt.NDArray[Any]] = {"vocabulary": np.asarray(vocabulary, np.int32)}
    if layers is not None:
        tensors["layers"] = np.asarray(layers, np.int32)
    factors: dict[str, Floats] = {"special": special}
    for part, pair in low_rank.items():
        factors[f"{part}.A"], factors[f"{part}.B"] = balanced(*pair) if bits == 4 else pair
    for name, numbers in factors.items():
        if bits == 16:
            tensors[name] = to_bfloat16(numbers)
        elif bits == 4 and name != "special":
            steps, tensors[f"{name}.scale"] = in_steps(numbers, 7)
            pairs = (steps + 8).astype(np.uint8)
            tensors[name] = pairs[:, ::2] | (pairs[:, 1::2] << 4)
        else:
            tensors[name], tensors[f"{name}.scale"] = in_steps(numbers)
    for part, weight in (replaced or {}).items():
        tensors[f"{part}.weight"] = to_bfloat16(weight)
    path.write_bytes(_safetensors(tensors))


def balanced(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The same product, of an A whose rows differ in size and a B whose columns do not: a row has one factor."""
    sizes = np.maximum(np.linalg.norm(b, axis=0), np.float32(1e-30))
    return a * sizes[:, None], b / sizes


def in_steps(numbers: Floats, most: int = 127) -> tuple[npt.NDArray[np.int8], Floats]:
    """Numbers from -most to most, and the factor of each row that makes them the given ones again, nearly.

    Where there are few steps, the largest numbers may lie beyond the last: of several factors, that with the
    least error is taken.
    """
    largest = np.maximum(np.abs(numbers).max(axis=1), np.float32(1e-30))
    scale, least = np.empty(len(numbers), np.float32), np.full(len(numbers), np.inf)
    for share in np.linspace(0.6, 1, 9) if most < 127 else (1.0,):
        tried = (largest * share / most).astype(np.float32)
        steps = np.clip(np.rint(numbers / tried[:, None]), -most, most)
        error = np.square(steps * tried[:, None] - numbers).sum(axis=1)
        scale, least = np.where(error < least, tried, scale), np.minimum(error, least)
    return np.clip(np.rint(numbers / scale[:, None]), -most, most).astype(np.int8), scale


def _safetensors(tensors: Mapping[str, npt.NDArray[Any]]) -> bytes:
    head: dict[str, Any] = {}
    data = b""
    # Those of four bytes come first, so that all are where their kind wants them.
    for name, numbers in sorted(tensors.items(), key=lambda item: -item[1].itemsize):
        begin, data = len(data), data + np.ascontiguousarray(numbers).tobytes()
        kind = _KINDS[numbers.dtype.name]
        head[name] = {"dtype": kind, "shape": numbers.shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data
