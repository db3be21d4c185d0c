"""Writes the adapter of the bundled model, as `gateway.bundled.adapter` reads it.

    save_adapter(path, vocabulary=ids, special=rows, low_rank={"model.layers.0.mlp.up_proj": (a, b), …})

Takes float32 arrays. `bits=8` halves the file: each row of A and B, and of `special`, is rounded to 255 steps.
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

_KINDS = {"int8": "I8", "uint16": "BF16", "float32": "F32", "int32": "I32"}


def save_adapter(
    path: Path,
    *,
    vocabulary: Sequence[int],
    special: Floats,
    low_rank: Mapping[str, tuple[Floats, Floats]],
    layers: Sequence[int] | None = None,
    replaced: Mapping[str, Floats] | None = None,
    bits: Literal[8, 16] = 8,
) -> None:
    """Write an adapter. `gateway.bundled.adapter` says what each argument is.

    low_rank: A and B by part of the model. replaced: weights by part, written in bfloat16.
    """
    tensors: dict[str, npt.NDArray[Any]] = {"vocabulary": np.asarray(vocabulary, np.int32)}
    if layers is not None:
        tensors["layers"] = np.asarray(layers, np.int32)
    factors = {f"{part}.A": a for part, (a, _) in low_rank.items()}
    factors |= {f"{part}.B": b for part, (_, b) in low_rank.items()}
    for name, numbers in {"special": special, **factors}.items():
        if bits == 8:
            tensors[name], tensors[f"{name}.scale"] = in_steps(numbers)
        else:
            tensors[name] = to_bfloat16(numbers)
    for part, weight in (replaced or {}).items():
        tensors[f"{part}.weight"] = to_bfloat16(weight)
    path.write_bytes(_safetensors(tensors))


def in_steps(numbers: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """Numbers from -127 to 127, and the factor of each row that makes them the given ones again, nearly."""
    scale = np.maximum(np.abs(numbers).max(axis=1), np.float32(1e-30)) / np.float32(127)
    return np.rint(numbers / scale[:, None]).astype(np.int8), scale.astype(np.float32)


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
