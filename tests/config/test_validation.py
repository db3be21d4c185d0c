"""Ranges, as they are read from types; the sentences that users get are in `test_loading.py`."""

from __future__ import annotations

from math import inf, nan
from typing import Annotated

import pytest
from msgspec import Meta, inspect

from gateway.config.validation import Range, range_of


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (Annotated[int, Meta(ge=1, le=3)], Range(int, 1, 3)),
        (Annotated[int, Meta(ge=64)] | None, Range(int, 64)),
        (Annotated[float, Meta(le=0.5)], Range(float, None, 0.5)),
        (Annotated[int, Meta(description="One.", extra={"ge": 1, "le": 2})], Range(int, 1, 2)),
        (Annotated[str, Meta(extra={"one_of": ("a",)})], None),
        (int, None),
        (str, None),
    ],
)
def test_a_range_is_read_from_the_type(kind: type, found: Range | None) -> None:
    assert range_of(inspect.type_info(kind)) == found


@pytest.mark.parametrize("number", [0.9, 3.1, inf, -inf, nan])
def test_what_is_outside_of_a_range(number: float) -> None:
    assert number not in Range(float, 1, 3)
    assert 1 in Range(float, 1, 3)
    assert 3 in Range(float, 1, 3)
