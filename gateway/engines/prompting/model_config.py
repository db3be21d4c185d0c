"""Reads what a model says about itself, and finds its prompt family.

Knows: a model's folder. Must not know: which engine runs the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.domain.errors import InvalidValue, StartupError
from gateway.engines.prompting import families

__all__ = ["find_family", "read_config"]


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
    """The prompt family of this model. Raises `StartupError`."""
    try:
        return families.detect(config, model, name)
    except InvalidValue as error:
        raise StartupError(f"The prompt family cannot be chosen: {error.message}") from None
