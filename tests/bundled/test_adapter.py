"""The adapter's file: what is read of it, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from demo_model.adapter import in_steps
from gateway.bundled.adapter import Adapter, read_adapter
from gateway.bundled.tensors import InvalidTensors, from_bfloat16, to_bfloat16
from tests.bundled.made_up_base import KEPT, LOW_RANK, SPECIAL, WIDTH, made_up_numbers, write_adapter

PART = "model.layers.0.mlp.up_proj"


def test_an_adapter_of_16_bits(tmp_path: Path) -> None:
    own = read_adapter(write_adapter(tmp_path / "a", bits=16))
    assert tuple(own.vocabulary.tolist()) == KEPT
    assert own.layers is None
    assert own.low_rank.keys() == LOW_RANK.keys()
    np.testing.assert_array_equal(own.special, from_bfloat16(to_bfloat16(SPECIAL)))
    np.testing.assert_array_equal(own.low_rank[PART][1], from_bfloat16(to_bfloat16(LOW_RANK[PART][1])))


def test_adapter_of_8_bits(tmp_path: Path) -> None:
    own = read_adapter(write_adapter(tmp_path / "a", bits=8))
    for found, wanted in ((own.special, SPECIAL), *zip(own.low_rank[PART], LOW_RANK[PART], strict=True)):
        step = np.abs(wanted).max(axis=1, keepdims=True) / 127
        assert (np.abs(found - wanted) <= 0.501 * step).all()
        assert not np.array_equal(found, wanted)


def test_adapter_of_4_bits_has_nearly_the_same_products(tmp_path: Path) -> None:
    a = made_up_numbers(1, 8, 64) * np.geomspace(1, 0.01, 8, dtype=np.float32)[:, None]
    b = made_up_numbers(2, 48, 8) * np.geomspace(1, 0.01, 8, dtype=np.float32)
    own = read_adapter(write_adapter(tmp_path / "a", bits=4, low_rank={PART: (a, b)}))
    found_a, found_b = own.low_rank[PART]
    assert (found_a.shape, found_b.shape) == (a.shape, b.shape)
    assert np.linalg.norm(found_b @ found_a - b @ a) < 0.2 * np.linalg.norm(b @ a)
    # Each component, the small ones as well.
    for each in range(8):
        wanted = np.outer(b[:, each], a[each])
        assert np.linalg.norm(np.outer(found_b[:, each], found_a[each]) - wanted) < 0.25 * np.linalg.norm(wanted)
    assert np.abs(own.special - SPECIAL).max() < np.abs(SPECIAL).max() / 250


def test_a_row_of_zeros_stays_one() -> None:
    steps, scale = in_steps(np.zeros((1, 3), np.float32))
    assert (steps * scale[:, None]).tolist() == [[0, 0, 0]]


def test_layers_and_replaced_weights(tmp_path: Path) -> None:
    norm = np.full(WIDTH, 0.5, np.float32)
    own = read_adapter(write_adapter(tmp_path / "a", layers=[0, 5], replaced={"model.norm": norm}))
    assert own.layers == (0, 5)
    assert own.applied("model.norm", np.zeros(WIDTH, np.float32)).tolist() == norm.tolist()


def adapter(**changed: object) -> Adapter:
    given: dict[str, object] = {"vocabulary": np.arange(15), "special": SPECIAL, "layers": None}
    return Adapter(**{**given, "low_rank": {}, "replaced": {}, **changed})  # type: ignore[arg-type]


def test_the_product_is_added() -> None:
    a, b, weight = made_up_numbers(1, 2, 5), made_up_numbers(2, 3, 2), made_up_numbers(3, 3, 5)
    own = adapter(low_rank={"p": (a, b)})
    np.testing.assert_allclose(own.applied("p", weight), weight + b @ a)
    np.testing.assert_array_equal(own.applied("other", weight), weight)


@pytest.mark.parametrize(
    ("changed", "shape"),
    [
        ({"low_rank": {"p": (np.zeros((2, 5)), np.zeros((3, 2)))}}, (3, 4)),
        ({"low_rank": {"p": (np.zeros((2, 5)), np.zeros((3, 1)))}}, (3, 5)),
        ({"replaced": {"p": np.zeros((1, 5))}}, (3, 5)),
    ],
)
def test_what_does_not_fit_is_refused(changed: dict[str, object], shape: tuple[int, int]) -> None:
    with pytest.raises(InvalidTensors, match="does not fit"):
        adapter(**changed).applied("p", np.zeros(shape, np.float32))


@pytest.mark.parametrize(
    "vocabulary", [KEPT[1:], KEPT[:14], (*KEPT[:20], KEPT[19]), (*KEPT[:20], KEPT[25], KEPT[24])]
)
def test_a_vocabulary_that_is_not_in_order_is_refused(tmp_path: Path, vocabulary: tuple[int, ...]) -> None:
    with pytest.raises(InvalidTensors, match="the vocabulary has to ascend, and to begin with 0 to 14"):
        read_adapter(write_adapter(tmp_path / "a", vocabulary=vocabulary))


@pytest.mark.parametrize(
    ("bits", "old", "new", "why"),
    [
        (8, b'"special.scale"', b'"special.sc_le"', r"special has no special\.scale"),
        (16, b'"vocabulary"', b'"vocabulery"', "has no vocabulary"),
        (16, b".mlp.up_proj.B", b".mlp.up_proj.C", r"has no model\.layers\.0\.mlp\.up_proj\.B"),
        (16, b"o_proj.A", b"o_proj.Z", r"has model\.layers\.1\.self_attn\.o_proj\.[BZ], which is not known"),
    ],
)
def test_a_file_with_other_tensors_is_refused(tmp_path: Path, bits: int, old: bytes, new: bytes, why: str) -> None:
    path = write_adapter(tmp_path / "a", bits=bits)
    assert old in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(old, new))
    with pytest.raises(InvalidTensors, match=why):
        read_adapter(path)
