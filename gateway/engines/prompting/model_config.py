"""Reads what a model says about itself: its prompt family, and what its log-probabilities are worth.

A model has a confidence only if it was calibrated: if its folder holds `confidence.json`, which
`demo_model.calibrate` writes.
Knows: a model's folder, the rule that makes a confidence of log-probabilities.
Must not know: which engine runs the model.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from gateway.domain.engine import Confidence, TranslationRequest
from gateway.domain.errors import InvalidValue, StartupError
from gateway.engines.prompting import families
from gateway.engines.prompting.templates import ChatPrompt

CALIBRATION_FILE = "confidence.json"

# Below this mean surprise, in nats a token, no difference can be measured.
_FLOOR = 0.0001


def read_config(model: str) -> dict[str, Any] | None:
    """A local model's `config.json`; None for a name that vLLM must resolve. Raises `StartupError`."""
    folder = Path(model).expanduser()
    looks_local = folder.is_absolute() or model.startswith((".", "~")) or folder.exists()
    if not looks_local:
        return None
    try:
        config = json.loads((folder / "config.json").read_text())
    except FileNotFoundError:
        raise StartupError(f"There is no model at {folder}: config.json is missing.") from None
    except (json.JSONDecodeError, OSError) as error:
        raise StartupError(f"The model at {folder} cannot be read: {error}.") from None
    if not isinstance(config, dict):
        raise StartupError(f"The model at {folder} cannot be read: config.json holds no object.")
    return config


def find_family(config: Mapping[str, Any], model: str, name: str | None) -> families.PromptFamily:
    """Raises `StartupError`."""
    try:
        return families.detect(config, model, name)
    except InvalidValue as error:
        raise StartupError(f"The prompt family cannot be chosen: {error.message}") from None


def check_chat_template(model: str, family: families.PromptFamily) -> None:
    """Raises `StartupError` if a local model is to be asked through its chat template and clearly has none."""
    source, target = (*family.languages, "en", "de")[:2]
    prompt = family.render(TranslationRequest(id="", text="1", source=source, target=target))
    folder = Path(model).expanduser()
    try:
        described = json.loads((folder / "tokenizer_config.json").read_text())
    except (OSError, json.JSONDecodeError):
        return  # a tokenizer of another kind, which may know how it is asked
    # The template itself, or a file with it; Mistral's own tokenizers have theirs in their code.
    elsewhere = [*folder.glob("*chat_template*"), *folder.glob("tekken.json"), *folder.glob("tokenizer.model*")]
    if isinstance(prompt, ChatPrompt) and "chat_template" not in described and not elsewhere:
        raise StartupError(
            f"The model at {folder} has no chat template, which prompt family {family.name!r} asks through; "
            f"choose another family with --family ({known_families()}), or an instruct model."
        )


def known_families() -> str:
    """Those of translation models, for a sentence."""
    return ", ".join(name for name in families.FAMILIES if name not in ("bundled", "chat"))


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
