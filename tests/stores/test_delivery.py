"""A subscriber that raises."""

from __future__ import annotations

import logging

import pytest

from gateway.domain.log import Publication
from gateway.stores.delivery import deliver_to
from tests.logs import said


def test_raising_subscriber_is_logged_without_the_text(caplog: pytest.LogCaptureFixture) -> None:
    def broken(publication: Publication) -> None:
        raise ValueError(f"cannot take {publication}")

    with caplog.at_level(logging.DEBUG):
        deliver_to(broken, Publication(7, 0, said("a secret")))
    assert "ValueError" in caplog.text
    assert "offset 7" in caplog.text
    assert "a secret" not in caplog.text
