"""Devices, however they are written."""

from __future__ import annotations

import pytest

from gateway.engines.vllm.options import devices_of, spelled


@pytest.mark.parametrize(
    ("text", "canonical", "devices"),
    [
        ("0", "0", {"0"}),
        (" 0", "0", {"0"}),
        ("cuda:0", "0", {"0"}),
        ("CUDA:0, cuda:01", "0,1", {"0", "1"}),
        ("1,0", "1,0", {"0", "1"}),
        ("0-3", "0-3", {"0", "1", "2", "3"}),
        ("0 ,2-3", "0,2-3", {"0", "2", "3"}),
        ("0-1 | 2-3", "0-1|2-3", {"0", "1", "2", "3"}),
        ("GPU-8932f937-d72c", "GPU-8932f937-d72c", {"GPU-8932f937-d72c"}),
        ("MIG-GPU-8932/1/0", "MIG-GPU-8932/1/0", {"MIG-GPU-8932/1/0"}),
    ],
)
def test_there_is_one_way_to_write_a_device(text: str, canonical: str, devices: set[str]) -> None:
    assert spelled(text) == spelled(canonical) == canonical
    assert devices_of(canonical) == devices


@pytest.mark.parametrize(
    "text", ["", " ", "0,", "gpu", "cuda", "-1", "0:1", "3-1", "1.5", "cuda:x", "0;1", "99999"]
)
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        spelled(text)
