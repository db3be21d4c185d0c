"""What log-probabilities are worth, and the file that says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo_model import SMALL_MODEL
from gateway.domain.engine import Confidence
from gateway.domain.errors import StartupError
from gateway.engines.prompting.confidence import CALIBRATION_FILE, Calibration, read_calibration

CALIBRATION = Calibration(bias=-5.0, slope=-1.5, unsure_below=0.5)


def test_the_less_the_model_was_surprised_the_surer_it_is() -> None:
    values = [CALIBRATION.confidence(logprob, 10).value for logprob in (0.0, -0.01, -0.1, -1.0, -10.0, -1e9)]
    assert values == sorted(set(values), reverse=True)
    assert all(0.0 <= value <= 1.0 for value in values)


def test_a_long_text_is_not_less_sure_than_a_short_one_like_it() -> None:
    assert CALIBRATION.confidence(-2.0, 100) == CALIBRATION.confidence(-0.1, 5)


def test_the_length_counts_where_it_was_fitted() -> None:
    by_total = Calibration(bias=-5.0, slope=-1.5, unsure_below=0.5, length_slope=-1.5)
    assert by_total.confidence(-2.0, 100).value == pytest.approx(by_total.confidence(-2.0, 5).value, abs=0.01)
    assert by_total.confidence(-2.0, 100).value < CALIBRATION.confidence(-2.0, 100).value


def test_below_the_mark_it_is_unsure_and_at_the_mark_it_is_not() -> None:
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
def test_a_calibration_that_cannot_be_read_is_said_at_the_start(tmp_path: Path, text: str) -> None:
    (tmp_path / CALIBRATION_FILE).write_text(text)
    with pytest.raises(StartupError, match="calibration"):
        read_calibration(str(tmp_path))
