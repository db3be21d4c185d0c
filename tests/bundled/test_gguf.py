"""GGUF: what is read of a file, and each format of numbers against the sums of its definition, one by one."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from gateway.bundled.gguf import Gguf, InvalidGguf
from tests.bundled.made_up_base import gguf


def one_tensor(kind: int, shape: tuple[int, ...], raw: bytes) -> Gguf:
    return Gguf(io.BytesIO(gguf({"general.name": "x"}, {"t": (kind, shape, raw)})))


def test_facts_and_tensors_are_read() -> None:
    first, second = np.arange(3, dtype=np.float32), np.arange(8, dtype=np.float32).reshape(4, 2)
    facts = {"a": "é", "b": 7, "c": 0.5, "d": ["x", "", "日本"], "e": [1, 2]}
    file = Gguf(io.BytesIO(gguf(facts, {"one": (0, (3,), first.tobytes()), "two": (0, (4, 2), second.tobytes())})))
    assert file.facts == facts
    assert file.read("one").tolist() == [0, 1, 2]
    assert file.read("two").tolist() == second.tolist()
    assert file.read("two", np.array([3, 0])).tolist() == [[6, 7], [0, 1]]


def half(raw: bytes) -> float:
    return float(struct.unpack("<e", raw)[0])


def q8_0(block: bytes) -> list[float]:
    return [half(block[:2]) * number for number in struct.unpack("<32b", block[2:])]


def q5_0(block: bytes) -> list[float]:
    fifth, low = struct.unpack("<I", block[2:6])[0], block[6:]
    numbers = [(low[n] & 15 if n < 16 else low[n - 16] >> 4) | (fifth >> n & 1) << 4 for n in range(32)]
    return [half(block[:2]) * (number - 16) for number in numbers]


def q4_k(block: bytes) -> list[float]:
    packed, nibbles, found = block[4:16], block[16:], []
    for part in range(8):
        if part < 4:
            scale, offset = packed[part] & 63, packed[part + 4] & 63
        else:
            scale = packed[part + 4] & 15 | packed[part - 4] >> 6 << 4
            offset = packed[part + 4] >> 4 | packed[part] >> 6 << 4
        for n in range(32):
            number = nibbles[part // 2 * 32 + n] >> (4 * (part % 2)) & 15
            found.append(half(block[:2]) * scale * number - half(block[2:4]) * offset)
    return found


def q6_k(block: bytes) -> list[float]:
    low, high, scales = block[:128], block[128:192], struct.unpack("<16b", block[192:208])
    found = []
    for n in range(256):
        side, quarter, place = n // 128, n % 128 // 32, n % 32
        lower = low[64 * side + 32 * (quarter % 2) + place] >> (4 * (quarter // 2)) & 15
        upper = high[32 * side + place] >> (2 * quarter) & 3
        found.append(half(block[208:]) * scales[n // 16] * ((lower | upper << 4) - 32))
    return found


@pytest.mark.parametrize(
    ("kind", "size", "numbers", "scales_at", "defined"),
    [
        (8, 34, 32, [0], q8_0),
        (6, 22, 32, [0], q5_0),
        (12, 144, 256, [0, 2], q4_k),
        (14, 210, 256, [208], q6_k),
    ],
)
def test_numbers_are_those_that_the_format_defines(
    kind: int, size: int, numbers: int, scales_at: Sequence[int], defined: Callable[[bytes], list[float]]
) -> None:
    random = np.random.default_rng(kind)
    blocks = random.integers(0, 256, (6, size), np.uint8)
    for at in scales_at:
        blocks[:, at : at + 2] = random.uniform(-0.1, 0.1, (6, 1)).astype(np.float16).view(np.uint8)
    file = one_tensor(kind, (3, 2 * numbers), blocks.tobytes())
    expected = np.array([defined(block.tobytes()) for block in blocks]).reshape(3, 2 * numbers)
    np.testing.assert_allclose(file.read("t"), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(file.read("t", np.array([2])), expected[2:], rtol=1e-6, atol=1e-6)


def test_halves() -> None:
    numbers = np.array([0.5, -2.0], np.float16)
    assert one_tensor(1, (2,), numbers.tobytes()).read("t").tolist() == [0.5, -2.0]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"GGML" + bytes(20), "does not begin as GGUF"),
        (b"GGUF" + struct.pack("<IQQ", 2, 0, 0), "version 3"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 99), "ends too early"),
        (b"GGUF" + struct.pack("<IQQQ1sI", 3, 0, 1, 1, b"a", 77), "kind 77"),
    ],
)
def test_another_file_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(InvalidGguf, match=why):
        Gguf(io.BytesIO(data))


def test_tensors_that_cannot_be_read() -> None:
    with pytest.raises(InvalidGguf, match="no tensor other"):
        one_tensor(0, (1,), bytes(4)).read("other")
    with pytest.raises(InvalidGguf, match="numbers of kind 30"):
        one_tensor(30, (1,), bytes(4)).read("t")
    with pytest.raises(InvalidGguf, match="not whole"):
        one_tensor(0, (99,), bytes(4)).read("t")
    with pytest.raises(InvalidGguf, match="not whole"):
        one_tensor(8, (33,), bytes(34)).read("t")
