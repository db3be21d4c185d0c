"""Reads what a model says about itself, and finds its prompt family.

Knows: a model's folder. Must not know: which engine runs the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import InvalidValue, StartupError
from gateway.engines.prompting import families
from gateway.engines.prompting.templates import ChatPrompt


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
