"""Reads GGUF, the file format of llama.cpp: facts, and tensors that are made numbers again.

Knows: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, and of the formats of numbers those that the base
has. Must not know: what a tensor is for.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from math import prod
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
_Bytes = npt.NDArray[np.uint8]

_MAGIC = b"GGUF"
_VERSION = 3
_ALIGNMENT = 32

# Kinds of values: of fixed size, by `struct`; of any size.
_FIXED = dict(enumerate("BbHhIif?", start=0)) | {10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9


class InvalidGguf(Exception):
    """It is not such a file, or one of a kind that is not known here."""


class Tensor(NamedTuple):
    """A tensor of a file: (rows, columns), or (columns,)."""

    shape: tuple[int, ...]
    kind: int
    offset: int


class Gguf:
    """An open file. Raises `InvalidGguf`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        file.seek(0)
        if file.read(4) != _MAGIC or self._value("I") != _VERSION:
            raise InvalidGguf(f"it does not begin as GGUF of version {_VERSION}")
        tensors, facts = self._value("Q"), self._value("Q")
        self.facts: Mapping[str, Any] = {self._string(): self._fact(self._value("I")) for _ in range(facts)}
        found = [self._tensor() for _ in range(tensors)]
        aligned = int(self.facts.get("general.alignment", _ALIGNMENT))
        begin = -(-file.tell() // aligned) * aligned
        self.tensors: Mapping[str, Tensor] = {
            name: tensor._replace(offset=begin + tensor.offset) for name, tensor in found
        }

    def read(self, name: str, rows: npt.NDArray[np.int64] | None = None) -> Floats:
        """A tensor, or some of its rows. Raises `InvalidGguf` if it is not there or not whole."""
        if (tensor := self.tensors.get(name)) is None:
            raise InvalidGguf(f"it has no tensor {name}")
        if (form := _FORMATS.get(tensor.kind)) is None:
            raise InvalidGguf(f"tensor {name} has numbers of kind {tensor.kind}")
        columns = tensor.shape[-1]
        row_bytes = columns // form.numbers * form.bytes
        size = prod(tensor.shape[:-1]) * row_bytes
        self._file.seek(tensor.offset)
        raw = self._file.read(size)
        if len(raw) != size or columns % form.numbers:
            raise InvalidGguf(f"tensor {name} is not whole")
        table = np.frombuffer(raw, np.uint8).reshape(-1, row_bytes)
        if rows is not None:
            table = table[rows]
        numbers = form.numbers_of(table.reshape(-1, form.bytes)).astype(np.float32, copy=False)
        return numbers.reshape(*((len(table),) if len(tensor.shape) > 1 else ()), columns)

    def _tensor(self) -> tuple[str, Tensor]:
        name = self._string()
        # The file has the fastest dimension first.
        shape = tuple(self._value("Q") for _ in range(self._value("I")))[::-1]
        return name, Tensor(shape, self._value("I"), self._value("Q"))

    def _fact(self, kind: int) -> Any:
        if kind == _STRING:
            return self._string()
        if kind != _ARRAY:
            return self._value(self._fixed(kind))
        kind, count = self._value("I"), self._value("Q")
        if kind in (_STRING, _ARRAY):
            return [self._fact(kind) for _ in range(count)]
        code = self._fixed(kind)
        return list(struct.unpack(f"<{count}{code}", self._bytes(count * struct.calcsize(f"<{code}"))))

    def _fixed(self, kind: int) -> str:
        if kind not in _FIXED:
            raise InvalidGguf(f"a value has the kind {kind}")
        return _FIXED[kind]

    def _string(self) -> str:
        return self._bytes(self._value("Q")).decode()

    def _value(self, code: str) -> Any:
        return struct.unpack(f"<{code}", self._bytes(struct.calcsize(f"<{code}")))[0]

    def _bytes(self, count: int) -> bytes:
        read = self._file.read(count)
        if len(read) != count:
            raise InvalidGguf("it ends too early")
        return read


# ---------------------------------------------------------------------------------------- formats of numbers
# Each makes rows of numbers of rows of bytes, a row for each block, as llama.cpp's ggml-quants.c does.


class _Format(NamedTuple):
    """numbers, bytes: of a block."""

    numbers: int
    bytes: int
    numbers_of: Callable[[_Bytes], npt.NDArray[Any]]


def _halves(blocks: _Bytes, at: int) -> Floats:
    """A number of 16 bits in each block, as a column."""
    return np.ascontiguousarray(blocks[:, at : at + 2]).view(np.float16).astype(np.float32)


def _f32(blocks: _Bytes) -> Floats:
    return np.ascontiguousarray(blocks).view(np.float32)


def _f16(blocks: _Bytes) -> npt.NDArray[np.float16]:
    return np.ascontiguousarray(blocks).view(np.float16)


def _q8_0(blocks: _Bytes) -> Floats:
    """Scale, 32 numbers of 8 bits."""
    return _halves(blocks, 0) * np.ascontiguousarray(blocks[:, 2:]).view(np.int8)


def _q5_0(blocks: _Bytes) -> Floats:
    """Scale, the fifth bits of 32 numbers, their lower four bits."""
    fifth = np.unpackbits(blocks[:, 2:6], axis=1, bitorder="little")
    low = np.concatenate([blocks[:, 6:] & 15, blocks[:, 6:] >> 4], axis=1)
    result: Floats = _halves(blocks, 0) * ((low | (fifth << 4)).astype(np.int8) - 16)
    return result


def _q4_k(blocks: _Bytes) -> Floats:
    """Two scales, 8 scales and 8 offsets of 6 bits, 256 numbers of 4 bits."""
    packed = blocks[:, 4:16]
    first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([first & 63, (third & 15) | (first >> 6 << 4)], axis=1)
    offsets = np.concatenate([second & 63, (third >> 4) | (second >> 6 << 4)], axis=1)
    nibbles = blocks[:, 16:].reshape(-1, 4, 1, 32)
    numbers = np.concatenate([nibbles & 15, nibbles >> 4], axis=2).reshape(-1, 8, 32)
    scaled = (_halves(blocks, 0) * scales)[:, :, None] * numbers
    result: Floats = (scaled - (_halves(blocks, 2) * offsets)[:, :, None]).reshape(-1, 256)
    return result


def _q6_k(blocks: _Bytes) -> Floats:
    """The lower four bits of 256 numbers, their upper two, 16 scales, a scale of them all."""
    low = blocks[:, :128].reshape(-1, 2, 1, 64)
    low = np.concatenate([low & 15, low >> 4], axis=2).reshape(-1, 2, 4, 32)
    high = blocks[:, 128:192].reshape(-1, 2, 1, 32)
    high = np.concatenate([high & 3, high >> 2 & 3, high >> 4 & 3, high >> 6], axis=2)
    numbers = (low | (high << 4)).reshape(-1, 16, 16).astype(np.int8) - 32
    scales = _halves(blocks, 208) * np.ascontiguousarray(blocks[:, 192:208]).view(np.int8)
    result: Floats = (scales[:, :, None] * numbers).reshape(-1, 256)
    return result


_FORMATS: Mapping[int, _Format] = {
    0: _Format(1, 4, _f32),
    1: _Format(1, 2, _f16),
    6: _Format(32, 22, _q5_0),
    8: _Format(32, 34, _q8_0),
    12: _Format(256, 144, _q4_k),
    14: _Format(256, 210, _q6_k),
}
