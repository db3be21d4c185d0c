"""A model's folder as it is given, and its prompt family."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.config import BUNDLED_MODEL
from gateway.domain.errors import StartupError
from gateway.engines.prompting.model_config import find_family, read_config


def test_a_folder_has_a_config_and_a_name_has_none() -> None:
    config = read_config(str(BUNDLED_MODEL))
    assert config is not None
    assert find_family(config, str(BUNDLED_MODEL), None).name == "bundled"
    assert read_config("tencent/Hy-MT2-7B") is None


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (None, "There is no model at {}: config.json is missing."),
        ("{", "The model at {} cannot be read: "),
        (json.dumps([]), "The model at {} cannot be read: config.json holds no object."),
    ],
)
def test_a_folder_that_is_no_model(tmp_path: Path, written: str | None, said: str) -> None:
    if written is not None:
        (tmp_path / "config.json").write_text(written)
    with pytest.raises(StartupError) as error:
        read_config(str(tmp_path))
    assert error.value.message.startswith(said.format(tmp_path))


def test_a_family_that_does_not_exist() -> None:
    with pytest.raises(StartupError, match=r"^The prompt family cannot be chosen: "):
        find_family({}, "model", "klingon")
