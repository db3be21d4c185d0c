"""The options of the vLLM adapter: name, range, default and meaning of each; how devices are written.

Must not know: vLLM's own arguments, which `arguments` makes from these.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from msgspec import Meta, Struct

from gateway.engines.prompting.families import FAMILIES

_DTYPES = ("auto", "float32", "bfloat16", "float16")


class VllmSettings(Struct, frozen=True, kw_only=True):
    """Settings of section `[engine]`. The defaults suit a laptop CPU and a small meeting load."""

    # A folder, or a name that vLLM can resolve.
    model: str
    # The GPUs that it may use, by number (`0`, `0,1`), or the cores of a CPU (`0-7`). None: all that there are.
    device: str | None = None
    # Prompt family. None: detected from the model.
    family: Annotated[str, Meta(extra={"one_of": tuple(FAMILIES)})] | None = None
    # Sequences in a batch. Match it to the measured load, not to what the GPU could hold: a larger batch makes
    # every token slower.
    max_num_seqs: Annotated[int, Meta(ge=1, le=4_096)] = 16
    # Tokens of prompt and output together. None: the model's own limit, or what fits into the cache if less.
    max_model_len: Annotated[int, Meta(ge=64)] | None = None
    # Tokens of one engine step. None: chosen by the gateway or vLLM.
    max_num_batched_tokens: Annotated[int, Meta(ge=1)] | None = None
    # Number format of the weights. On a CPU, `auto` depends on the CPU's flags.
    dtype: Annotated[str, Meta(extra={"one_of": _DTYPES})] = "auto"
    # Share of the GPU's memory to use.
    gpu_memory_utilization: Annotated[float, Meta(ge=0.01, le=1.0)] = 0.9
    # Size of the cache on a CPU, in GiB.
    kv_cache_gib: Annotated[float, Meta(ge=0.1, le=4_096)] = 1.0
    # Run without compilation and graphs. None: yes on a CPU, no on a GPU.
    enforce_eager: bool | None = None
    # Sample as the model card recommends, instead of greedily.
    card_sampling: bool = False
    # Output tokens that every translation may have.
    output_tokens_base: Annotated[int, Meta(ge=1, le=10**6)] = 32
    # Further output tokens for each source token.
    output_tokens_per_source_token: Annotated[float, Meta(ge=0, le=1_000)] = 3.0
    # Further vLLM engine arguments by their own names. They override the choices made here.
    extra: dict[str, Any] = {}


class VllmOptions(VllmSettings, frozen=True, kw_only=True):
    """Everything the adapter needs: its settings, and an option that follows from the gateway's settings."""

    # About how often the engine hands on new text, in seconds; first and last text at once. 0: every token.
    delta_interval_s: float


# `0`, `cuda:0`, `0-7`.
_NUMBERS = re.compile(r"(?:cuda:)?([0-9]{1,4})(?:-([0-9]{1,4}))?")
# As the driver names GPUs and their parts.
_ID = re.compile(r"(?:GPU|MIG)-[0-9A-Za-z/-]{1,64}")


def spelled(text: str) -> str:
    """The one way to write these devices: `cuda:0, 1` is `0,1`. Raises `ValueError`, with a sentence."""
    return "|".join(",".join(_spelled(part.strip()) for part in rank.split(",")) for rank in text.split("|"))


def _spelled(part: str) -> str:
    if _ID.fullmatch(part):
        return part
    if (numbers := _NUMBERS.fullmatch(part.lower())) is None:
        raise ValueError("it is not numbers of GPUs (0, or 0,1) or, on a CPU, of cores (0-7).")
    first, last = (None if number is None else int(number) for number in numbers.groups())
    if last is None:
        return str(first)
    if first is None or last < first:
        raise ValueError(f"{part} ends before it begins.")
    return f"{first}-{last}"


def devices_of(text: str) -> frozenset[str]:
    """Each of the devices, of a text that is `spelled`."""
    found: set[str] = set()
    for part in re.split(r"[,|]", text):
        first, _, last = part.partition("-")
        if first.isdigit() and last.isdigit():
            found.update(map(str, range(int(first), int(last) + 1)))
        else:
            found.add(part)
    return frozenset(found)
