"""Reads and writes safetensors, and numbers in bfloat16, which numpy does not have.

Knows: https://huggingface.co/docs/safetensors. Must not know: what a tensor is for.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from gateway.bundled.gguf import Floats

# Kind in the file → numpy's; those of BF16 are its bits.
_KINDS = {"F32": "<f4", "I32": "<i4", "I8": "i1", "U8": "u1", "BF16": "<u2"}

# The head of a file that is larger is not one.
_LONGEST_HEAD = 100_000_000


class InvalidTensors(Exception):
    """It is not such a file, or one with numbers of a kind that is not known here."""


def read_tensors(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The tensors of a file, by name; of those in bfloat16, the same numbers in float32.

    Raises `InvalidTensors`, `OSError`.
    """
    data = path.read_bytes()
    try:
        (length,) = struct.unpack_from("<Q", data)
        if length > _LONGEST_HEAD:
            raise ValueError("its head is too long")
        described: dict[str, Any] = json.loads(data[8 : 8 + length])
        described.pop("__metadata__", None)
        found = {}
        for name, about in described.items():
            kind, (begin, end) = about["dtype"], about["data_offsets"]
            numbers = np.frombuffer(data[8 + length :][begin:end], _KINDS[kind]).reshape(about["shape"])
            found[name] = from_bfloat16(numbers) if kind == "BF16" else numbers
    except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidTensors(f"{path.name} cannot be read: {error!r}") from None
    return found


def write_bfloat16(file: BinaryIO, shapes: Mapping[str, tuple[int, ...]], tensors: Iterable[Floats]) -> None:
    """Write tensors in bfloat16. shapes: of all, by name. tensors: in the same order, so that one is in memory."""
    head: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in shapes.items():
        begin, end = end, end + 2 * int(np.prod(shape))
        head[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    for (name, shape), tensor in zip(shapes.items(), tensors, strict=True):
        if tensor.shape != shape:
            raise InvalidTensors(f"{name} has the shape {tensor.shape} and not {shape}")
        file.write(to_bfloat16(tensor).tobytes())


def to_bfloat16(numbers: Floats) -> npt.NDArray[np.uint16]:
    """The bits of the nearest numbers in bfloat16, of two as near the even one. For finite numbers."""
    bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bfloat16(bits: npt.NDArray[np.uint16]) -> Floats:
    """The same numbers in float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
