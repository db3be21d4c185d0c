"""How likely a translation is right, from how probable its tokens were to the model.

A model has a confidence only if it was calibrated: if its folder holds `confidence.json`, which says what its
log-probabilities are worth. `demo_model.calibrate` writes that file.
Knows: the file, and the rule that makes a confidence of log-probabilities.
Must not know: which engine gives them, who reads the translation.
"""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
from msgspec import Struct

from gateway.domain.engine import Confidence
from gateway.domain.errors import StartupError

CALIBRATION_FILE = "confidence.json"

# Below this surprise, in nats a token, no difference can be measured.
_FLOOR = 0.0001


class Calibration(Struct, frozen=True):
    """What the log-probabilities of one model are worth.

    Surprise is minus a log-probability, in nats. `bias`, `slope` and `length_slope` are those of a logistic
    regression on the logarithms of the mean surprise of a token and of the number of tokens.
    """

    bias: float
    slope: float
    # A translation with a lower confidence is shown as unsure. From 0 to 1.
    unsure_below: float
    length_slope: float = 0.0

    def confidence(self, logprob: float, tokens: int) -> Confidence:
        """The confidence of a text. logprob: the sum over its tokens, the one that ends it included, in nats."""
        exponent = self.bias + self.slope * log_surprise(logprob, tokens) + self.length_slope * math.log(tokens)
        value = round(1 / (1 + math.exp(-max(-50.0, min(50.0, exponent)))), 3)
        return Confidence(value, unsure=value < self.unsure_below)


def log_surprise(logprob: float, tokens: int) -> float:
    """Logarithm of the mean surprise of a token. Raises `ZeroDivisionError` without tokens."""
    return math.log(_FLOOR + max(0.0, -logprob / tokens))


def read_calibration(model: str) -> Calibration | None:
    """The calibration in a local model's folder; None if it has none. Raises `StartupError`."""
    path = Path(model).expanduser() / CALIBRATION_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Calibration)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise StartupError(f"The model's calibration {path} cannot be read: {error}.") from None
