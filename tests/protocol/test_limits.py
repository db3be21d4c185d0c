"""Every limit says what it is and how far it may be set; what a gateway announces is taken as it is."""

from __future__ import annotations

from typing import Annotated, get_args, get_origin, get_type_hints

import msgspec
import pytest

from gateway.protocol.limits import Limits

HINTS = get_type_hints(Limits, include_extras=True)


@pytest.mark.parametrize("limit", Limits.__struct_fields__)
def test_limits_have_meaning_and_range(limit: str) -> None:
    assert get_origin(HINTS[limit]) is Annotated
    kind, meta = get_args(HINTS[limit])
    assert kind is int
    assert isinstance(meta, msgspec.Meta)
    assert (meta.description or "").endswith(".")
    assert meta.extra is not None
    assert 0 <= meta.extra["ge"] <= getattr(Limits(), limit) <= meta.extra["le"]


def test_limits_of_other_gateways_are_read() -> None:
    announced = Limits(message_bytes=1, messages_burst=2**40)
    assert msgspec.json.decode(msgspec.json.encode(announced), type=Limits) == announced


def test_default_limits_are_announced() -> None:
    assert set(msgspec.json.decode(msgspec.json.encode(Limits()))) == set(Limits.__struct_fields__)
