"""What is said of settings that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config import load
from gateway.domain.errors import StartupError


def refusal(tmp_path: Path, toml: str = "", **environment: str) -> str:
    file = tmp_path / "gateway.toml"
    file.write_text(toml)
    with pytest.raises(StartupError) as caught:
        load(file, environment)
    return caught.value.message
