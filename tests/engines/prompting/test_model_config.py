"""A model's folder as it is given, and its prompt family."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from demo_model import SMALL_MODEL
from gateway.domain.errors import StartupError
from gateway.engines.prompting.families import FAMILIES
from gateway.engines.prompting.model_config import check_chat_template, find_family, read_config


def test_a_folder_has_a_config_and_a_name_has_none() -> None:
    config = read_config(str(SMALL_MODEL))
    assert config is not None
    assert find_family(config, str(SMALL_MODEL), None).name == "bundled"
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


def test_a_model_without_a_chat_template_is_refused_where_it_needs_one() -> None:
    check_chat_template(str(SMALL_MODEL), FAMILIES["seed-x"])
    check_chat_template("tencent/Hy-MT2-7B", FAMILIES["chat"])
    with pytest.raises(StartupError, match=r"has no chat template, which prompt family 'chat' asks through"):
        check_chat_template(str(SMALL_MODEL), FAMILIES["chat"])


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("tokenizer_config.json", '{"chat_template": "…"}'),
        ("chat_template.jinja", "…"),
        ("tekken.json", "{}"),
    ],
)
def test_a_chat_template_is_found_wherever_it_is(tmp_path: Path, file: str, content: str) -> None:
    (tmp_path / "tokenizer_config.json").write_text("{}")
    (tmp_path / file).write_text(content)
    check_chat_template(str(tmp_path), FAMILIES["chat"])
