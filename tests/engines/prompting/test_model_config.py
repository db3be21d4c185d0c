"""A model's folder as it is given, and its prompt family."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from demo_model import SMALL_MODEL
from gateway.domain.engine import Confidence
from gateway.domain.errors import StartupError
from gateway.engines.prompting.families import FAMILIES
from gateway.engines.prompting.model_config import (
    CALIBRATION_FILE,
    Calibration,
    check_chat_template,
    find_family,
    read_calibration,
    read_config,
)


def test_config_is_read_from_a_folder_only() -> None:
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


def test_missing_chat_template_is_refused() -> None:
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


CALIBRATION = Calibration(bias=-5.0, slope=-1.5, unsure_below=0.5)


def test_length_counts_where_it_was_fitted() -> None:
    by_total = Calibration(bias=-5.0, slope=-1.5, unsure_below=0.5, length_slope=-1.5)
    assert by_total.confidence(-2.0, 100).value == pytest.approx(by_total.confidence(-2.0, 5).value, abs=0.01)
    assert by_total.confidence(-2.0, 100).value < CALIBRATION.confidence(-2.0, 100).value


def test_less_surprise_is_more_confidence() -> None:
    values = [CALIBRATION.confidence(logprob, 10).value for logprob in (0.0, -0.01, -0.1, -1.0, -10.0, -1e9)]
    assert values == sorted(set(values), reverse=True)
    assert all(0.0 <= value <= 1.0 for value in values)


def test_confidence_does_not_depend_on_length() -> None:
    assert CALIBRATION.confidence(-2.0, 100) == CALIBRATION.confidence(-0.1, 5)


def test_unsure_below_the_mark_only() -> None:
    value = CALIBRATION.confidence(-0.5, 10).value
    at, above = Calibration(-5.0, -1.5, value), Calibration(-5.0, -1.5, value + 0.001)
    assert at.confidence(-0.5, 10) == Confidence(value)
    assert above.confidence(-0.5, 10) == Confidence(value, unsure=True)


def test_the_calibration_comes_with_the_model(tmp_path: Path) -> None:
    assert read_calibration(str(tmp_path)) is None
    assert read_calibration("somebody/a-model-of-the-hub") is None
    text = '{"bias": -5.0, "slope": -1.5, "unsure_below": 0.5, "report": {}}'
    (tmp_path / CALIBRATION_FILE).write_text(text)
    assert read_calibration(str(tmp_path)) == CALIBRATION
    assert read_calibration(str(SMALL_MODEL)) is not None


@pytest.mark.parametrize("text", ["", "{}", '{"bias": "high", "slope": 1, "unsure_below": 1}'])
def test_unreadable_calibration_refuses_the_start(tmp_path: Path, text: str) -> None:
    (tmp_path / CALIBRATION_FILE).write_text(text)
    with pytest.raises(StartupError, match="calibration"):
        read_calibration(str(tmp_path))
