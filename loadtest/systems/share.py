"""Several engines on one GPU: each gets its share of the memory.

Knows: what vLLM calls it. Must not know: which systems there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from loadtest.options import merged

__all__ = ["with_share"]

# vLLM's own default.
_TOGETHER = 0.9

# Of its share, what an engine gets for its cache; the rest is for the model, its steps and graphs.
_CACHE_PART = 0.5


def with_share(settings: Mapping[str, Any], engines: int, gpu_mib: float | None) -> dict[str, Any]:
    """A gateway's settings with an equal part of the memory that they name for all engines together.

    gpu_mib: all the memory there is; None without a GPU, where each engine has what `kv_cache_gib` says. The cache
    is given in bytes, unless it is so already: when it looks for what is left, an engine takes what others load
    meanwhile for its own.
    """
    if engines == 1 or gpu_mib is None:
        return dict(settings)
    engine = settings.get("engine", {})
    share = math.floor(engine.get("gpu_memory_utilization", _TOGETHER) / engines * 1000) / 1000
    cache = int(share * _CACHE_PART * gpu_mib * 2**20)
    extra = {"kv_cache_memory_bytes": cache, **engine.get("extra", {})}
    return merged(settings, {"engine": {"gpu_memory_utilization": share, "extra": extra}})
