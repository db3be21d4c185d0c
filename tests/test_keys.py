"""What tokens are verified with, by the settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config import AuthSettings, Settings
from gateway.domain.errors import StartupError
from gateway.keys import keys_of
from tests.keys import Keyring


def test_on_loopback_nobody_needs_a_token() -> None:
    assert keys_of(Settings(host="localhost")) is None


def test_strangers_enter_without_keys_only_if_configured() -> None:
    with pytest.raises(StartupError, match="serve everybody with --insecure-open"):
        keys_of(Settings(host="0.0.0.0"))
    assert keys_of(Settings(host="0.0.0.0", auth=AuthSettings(insecure_open=True))) is None


async def test_tokens_are_verified_with_the_file(tmp_path: Path) -> None:
    keys = Keyring(tmp_path)
    found = keys_of(keys.settings())
    assert found is not None
    assert (await found.verify(keys.token(meeting="standup"))).meeting == "standup"
