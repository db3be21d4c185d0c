"""For DeepL's client, which would try again, or give up where the machine is busy."""

from __future__ import annotations

import pytest
from deepl import http_client


@pytest.fixture(autouse=True)
def _one_try_without_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "max_network_retries", 0)
    monkeypatch.setattr(http_client, "min_connection_timeout", 600.0)
