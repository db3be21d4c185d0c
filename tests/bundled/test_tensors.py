"""Numbers in bfloat16, and files of tensors."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path

import numpy as np
import pytest

from gateway.bundled.tensors import InvalidTensors, from_bfloat16, read_tensors, to_bfloat16, write_bfloat16


@pytest.mark.parametrize(
    ("number", "nearest"),
    [
        (1.0, 1.0),
        (-0.0, -0.0),
        (1 + 2**-9, 1.0),
        (1 + 2**-8 + 2**-20, 1 + 2**-7),
        # In the middle: the even one.
        (1 + 2**-8, 1.0),
        (1 + 3 * 2**-8, 1 + 2**-6),
        (-(1 + 3 * 2**-8), -(1 + 2**-6)),
        (3.0e38, 3.0040553e38),
    ],
)
def test_the_nearest_number_in_bfloat16(number: float, nearest: float) -> None:
    assert from_bfloat16(to_bfloat16(np.array([number], np.float32)))[0] == np.float32(nearest)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    tensors = {"a": np.array([[1.0, -2.5]], np.float32), "b": np.array([3.0], np.float32)}
    with (tmp_path / "t").open("wb") as file:
        write_bfloat16(file, {name: each.shape for name, each in tensors.items()}, tensors.values())
    found = read_tensors(tmp_path / "t")
    assert {name: each.tolist() for name, each in found.items()} == {"a": [[1.0, -2.5]], "b": [3.0]}


def test_the_engines_library_reads_what_is_written(tmp_path: Path) -> None:
    from safetensors import safe_open

    with (tmp_path / "t").open("wb") as file:
        write_bfloat16(file, {"a": (2, 1)}, [np.ones((2, 1), np.float32)])
    with safe_open(tmp_path / "t", framework="numpy") as opened:
        assert opened.metadata()["format"] == "pt"
        assert (opened.get_slice("a").get_dtype(), opened.get_slice("a").get_shape()) == ("BF16", [2, 1])


def test_a_tensor_of_another_shape_is_refused() -> None:
    with pytest.raises(InvalidTensors, match=r"a has the shape \(1,\) and not \(2,\)"):
        write_bfloat16(io.BytesIO(), {"a": (2,)}, [np.ones(1, np.float32)])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        struct.pack("<Q", 2**40),
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 1) + b"{",
        *(
            struct.pack("<Q", len(head)) + head + bytes(4)
            for head in (
                json.dumps({"a": about}).encode()
                for about in (
                    {"dtype": "F64", "shape": [1], "data_offsets": [0, 4]},
                    {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]},
                    {"dtype": "F32", "shape": [1], "data_offsets": [0, 3]},
                    {"dtype": "F32", "shape": [1]},
                )
            )
        ),
    ],
)
def test_another_file_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "t").write_bytes(data)
    with pytest.raises(InvalidTensors, match="t cannot be read"):
        read_tensors(tmp_path / "t")
