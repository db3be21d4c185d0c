"""How the vLLM adapter is to run a model: what an operator may set, with its range and default.

Knows: names and meanings. Must not know: vLLM's own arguments, which `arguments` makes of these.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from gateway.engines.prompting.families import FAMILIES

__all__ = ["VllmOptions", "VllmSettings"]

_DTYPES = ("auto", "float32", "bfloat16", "float16")


class VllmSettings(Struct, frozen=True, kw_only=True):
    """Settings of section `[engine]`; the defaults suit a laptop CPU and a small meeting load."""

    # A folder, or a name that vLLM can resolve.
    model: str
    # Prompt family; None detects it from the model.
    family: Annotated[str, Meta(extra={"one_of": tuple(FAMILIES)})] | None = None
    # Sequences in one batch. Match it to the load you measured, not to what the GPU could hold: a larger batch
    # makes every token of everybody slower.
    max_num_seqs: Annotated[int, Meta(ge=1, le=4_096)] = 16
    # Tokens of prompt and output; None takes the model's own.
    max_model_len: Annotated[int, Meta(ge=64)] | None = None
    # Tokens of one engine step; None chooses.
    max_num_batched_tokens: Annotated[int, Meta(ge=1)] | None = None
    # Type of the weights; on a CPU, `auto` chooses by the CPU's flags.
    dtype: Annotated[str, Meta(extra={"one_of": _DTYPES})] = "auto"
    # Share of the GPU's memory.
    gpu_memory_utilization: Annotated[float, Meta(ge=0.01, le=1.0)] = 0.9
    # Cache on a CPU, GiB.
    kv_cache_gib: Annotated[float, Meta(ge=0.1, le=4_096)] = 1.0
    # Skip compilation and graphs; None: on a CPU only.
    enforce_eager: bool | None = None
    # Sample as the model card says instead of greedily.
    card_sampling: bool = False
    # A translation may have so many tokens,
    output_tokens_base: Annotated[int, Meta(ge=1, le=10**6)] = 32
    # and so many more for each token of its source.
    output_tokens_per_source_token: Annotated[float, Meta(ge=0, le=1_000)] = 3.0
    # Further vLLM engine arguments, as they are named there; they win over what is chosen here.
    extra: dict[str, Any] = {}


class VllmOptions(VllmSettings, frozen=True, kw_only=True):
    """All that the adapter needs: its settings, and what follows from those of the gateway."""

    # The engine hands on new text about so often, seconds, the first and the last at once; 0: each token.
    delta_interval_s: float = 0.0
