"""The estimate is not below what Python takes. That of whole logs: `test_bounded_logs`."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from gateway.domain.log import Publication
from gateway.stores.publication_bytes import publication_bytes
from tests.logs import said


def size(text: str, **more: Any) -> int:
    return publication_bytes(Publication(1, 0, said(text, **more)))


def test_the_widest_characters_are_counted_in_full() -> None:
    text = "🎤" * 10_000
    # From then on, the text holds what it was encoded to.
    msgspec.json.encode(text)
    assert sys.getsizeof(text) > 8 * 10_000
    assert size(text) > sys.getsizeof(text)
    assert size("x", context=(text,)) > sys.getsizeof(text)
    assert size("x", glossary=(("ja", (("x", text),)),)) > sys.getsizeof(text)
    assert size("x", languages=(text,)) > sys.getsizeof(text)
