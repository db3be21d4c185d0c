"""What a gateway needs of a model to make prompts and texts for it, in values that one process tells another.

Knows: tokenizers as the tokenizers library writes them. Must not know: engines, sockets.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from gateway.domain.engine import EngineProfile
from gateway.engines.prompting.completions import Sampling
from gateway.engines.prompting.encoding import PromptEncoder, max_text_tokens
from gateway.engines.prompting.families import PromptFamily, family_of
from gateway.engines.prompting.model_config import Calibration
from gateway.engines.prompting.translator import PromptTranslator


class ModelOptions(Protocol):
    """Options of an adapter that are about the model; see `VllmSettings`."""

    @property
    def model(self) -> str: ...
    @property
    def card_sampling(self) -> bool: ...
    @property
    def output_tokens_base(self) -> int: ...
    @property
    def output_tokens_per_source_token(self) -> float: ...


class PromptedModel(Struct, frozen=True, array_like=True, tag="prompted"):
    """A model that is asked with prompts, in values that go from the process that has it to those that ask it."""

    # A folder, or a name on the hub.
    name: str
    # See `PromptFamily`.
    family: str
    languages: tuple[str, ...]
    # Most tokens of prompt and answer together.
    window: int
    # The answer may have base + factor × source tokens.
    output_base: int
    output_per_source_token: float
    sampling: Sampling
    calibration: Calibration | None
    # Its tokenizer as the tokenizers library writes it. None: it is of another kind, and loaded by its name.
    tokenizer: str | None = None
    # What transformers adds to it: tokens by what they are for, such as `bos_token`, and more of them.
    special_tokens: dict[str, str] = {}
    more_special_tokens: list[str] = []
    chat_template: str | None = None
    # With fewer translations at once in a process, what readers have seen is probed before anything is generated;
    # with more, partials go on from it unchecked, and a final is probed only if it says something else. None: it
    # is always probed, as on a CPU, where each token costs a step. On a GPU a step with a probe takes longer than
    # several without (docs/benchmarks).
    probes_below: int | None = None

    def translator(self) -> PromptTranslator:
        """Takes a second, or several for a large vocabulary."""
        # A batch of texts is encoded by one thread: there are other processes on this machine.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        tokenizer = self._other() if self.tokenizer is None else SentTokenizer(self, self.tokenizer)
        encoder = PromptEncoder(
            tokenizer,
            family_of(self.family, self.languages),
            window=self.window,
            output_base=self.output_base,
            output_per_source_token=self.output_per_source_token,
            owned=True,
        )
        return PromptTranslator(
            tokenizer, encoder, self.sampling, self.calibration, probes_below=self.probes_below
        )

    def _other(self) -> Any:
        from transformers import AutoTokenizer

        folder = Path(self.name).expanduser()
        return AutoTokenizer.from_pretrained(folder if folder.is_dir() else self.name)

    def profile(self) -> EngineProfile:
        return EngineProfile(
            model=Path(self.name).name,
            family=self.family,
            languages=self.languages,
            options=family_of(self.family, self.languages).options,
            max_text_tokens=max_text_tokens(self.window, self.output_base),
        )


def prompted_model(
    options: ModelOptions,
    tokenizer: Any,
    family: PromptFamily,
    window: int,
    calibration: Calibration | None = None,
) -> PromptedModel:
    """What this model is. Blocks for a moment: a large tokenizer is long."""
    model = PromptedModel(
        options.model,
        family.name,
        family.languages,
        window,
        options.output_tokens_base,
        options.output_tokens_per_source_token,
        (options.card_sampling and family.card_sampling) or family.sampling,
        calibration,
    )
    if (backend := getattr(tokenizer, "backend_tokenizer", None)) is None:
        return model
    named = {name: str(token) for name, token in tokenizer.special_tokens_map.items()}
    more = [*map(str, getattr(tokenizer, "extra_special_tokens", ()))]
    template = tokenizer.chat_template
    template = template["default"] if isinstance(template, dict) else template
    return replace(
        model,
        tokenizer=backend.to_str(),
        special_tokens=named,
        more_special_tokens=more,
        chat_template=template,
    )


class SentTokenizer:
    """What prompts and texts need of a tokenizer of transformers, which would take several times the memory.

    written: as the tokenizers library writes it.
    """

    def __init__(self, model: PromptedModel, written: str) -> None:
        from tokenizers import Tokenizer

        self.backend_tokenizer = backend = Tokenizer.from_str(written)
        self.added_tokens_decoder = backend.get_added_tokens_decoder()
        self.all_special_tokens = [*dict.fromkeys([*model.special_tokens.values(), *model.more_special_tokens])]
        self.all_special_ids = self.convert_tokens_to_ids(self.all_special_tokens)
        self._named = model.special_tokens
        self._chat_template = model.chat_template

    def convert_tokens_to_ids(self, tokens: list[str]) -> list[int | None]:
        """None: there is no such token."""
        return [self.backend_tokenizer.token_to_id(token) for token in tokens]

    def decode(self, ids: list[int], *, skip_special_tokens: bool, **_: Any) -> str:
        text: str = self.backend_tokenizer.decode(ids, skip_special_tokens=skip_special_tokens)
        return text

    def apply_chat_template(self, messages: list[Any], **arguments: Any) -> str:
        # It has functions of its own for templates. Without models, transformers is small.
        from transformers.utils.chat_template_utils import render_jinja_template

        more = {**self._named, **arguments, "chat_template": self._chat_template}
        [[text], _] = render_jinja_template(conversations=[messages], **more)
        return str(text)
