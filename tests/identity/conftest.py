"""What the tests of tokens and keys share."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, tzinfo
from unittest import mock

import pytest

from tests.identity.forging import NOW


class _Stopped(datetime):
    """A clock that says the same forever."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> _Stopped:
        return cls.fromtimestamp(NOW, tz)


@pytest.fixture(autouse=True, scope="module")
def stopped_clock() -> Iterator[None]:
    """Tokens are verified at `NOW`, however long that takes."""
    with mock.patch("jwt.api_jwt.datetime", _Stopped):
        yield
