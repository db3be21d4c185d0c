"""Prompts as the gateway writes them, for systems that are asked without it.

Knows: a gateway's settings, its prompt families, Hugging Face tokenizers. Must not know: engines, protocols.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from gateway import config
from gateway.config import Settings
from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import GatewayError
from gateway.engine import engine_options
from gateway.engines.prompting import model_config
from gateway.engines.prompting.completions import Sampling
from gateway.engines.prompting.encoding import EncodedPrompt, PromptEncoder
from loadtest.results import LoadtestError
from loadtest.trial.values import Line


class Prompts(Struct, frozen=True):
    """sampling: how the gateway has this model's tokens drawn."""

    encoder: PromptEncoder
    sampling: Sampling

    async def encode(self, line: Line) -> EncodedPrompt:
        """The prompt of a line of one target, as of a final utterance without a past. Raises `EngineFailed` for a
        text that the model's window does not hold, and `UnsupportedLanguage`."""
        return await self.encoder.encode(
            TranslationRequest(id=line.id, text=line.text, source=line.source, target=line.targets[0])
        )


def gateway_settings(settings: dict[str, Any]) -> Settings:
    """A gateway's settings with their defaults. Raises `LoadtestError`."""
    try:
        return config.load(overrides=settings)
    except GatewayError as error:
        raise LoadtestError(error.message) from None


def prompts(settings: Settings) -> Prompts:
    """Takes seconds: it imports the tokenizer's library. Raises `LoadtestError` unless the model is a folder."""
    from transformers import AutoTokenizer

    options = engine_options(settings)
    try:
        model = model_config.read_config(options.model)
        if model is None:
            raise LoadtestError(f"The prompts of {options.model} cannot be written: name its folder.")
        family = model_config.find_family(model, options.model, options.family)
    except GatewayError as error:
        raise LoadtestError(error.message) from None
    encoder = PromptEncoder(
        AutoTokenizer.from_pretrained(options.model),
        family,
        window=options.max_model_len or int(model["max_position_embeddings"]),
        output_base=options.output_tokens_base,
        output_per_source_token=options.output_tokens_per_source_token,
    )
    sampling = (family.card_sampling or family.sampling) if options.card_sampling else family.sampling
    return Prompts(encoder, sampling)
