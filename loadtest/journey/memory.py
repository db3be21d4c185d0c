"""Which systems run at the same time, and how much of a GPU each of their engines gets.

Knows: shares of memory. Must not know: how anything is started or measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from loadtest.baselines.architecture import SHARED_MEMORY
from loadtest.journey.stages import STAYS, System
from loadtest.options import merged

__all__ = ["groups", "shared"]

# Of its share, what an engine gets for its cache where it cannot find out by itself.
_CACHE_PART = 0.5


def groups(systems: Sequence[System], size: int) -> list[list[System]]:
    """Systems that are started together, at most `size`; the one that stays while others change is the first."""
    first = [system for system in systems if system.name == STAYS]
    others = [system for system in systems if system.name != STAYS]
    return [*filter(None, [first]), *(others[begin : begin + size] for begin in range(0, len(others), size))]


def shared(made: Sequence[Sequence[System]], total: float, gpu_gib: float) -> list[list[System]]:
    """The same groups with the same part of the memory for each engine, so that no group takes more than `total`.

    The engines of two workers get as much as they had in the reports. gpu_gib: all the memory there is.
    """
    two = min(SHARED_MEMORY, total / 3)
    first = [system for system in made[0] if system.name == STAYS]

    def left(group: Sequence[System]) -> float:
        together = {system.name: system for system in (*first, *group)}.values()
        taken = sum(two * system.engines for system in together if system.engines > 1)
        return (total - taken) / max(sum(system.engines == 1 for system in together), 1)

    share = min(map(left, made))
    alone = sum(system.engines for group in made for system in group) == 1

    def with_share(system: System) -> System:
        own = share if system.engines == 1 else two
        engine: dict[str, Any] = {"gpu_memory_utilization": math.floor(own * 1_000) / 1_000}
        if not alone and "kv_cache_memory_bytes" not in system.settings.get("engine", {}).get("extra", {}):
            # Looking for what is left for its cache, an engine takes what others load meanwhile for its own.
            engine["extra"] = {"kv_cache_memory_bytes": int(own * _CACHE_PART * gpu_gib * 2**30)}
        return replace(system, settings=merged(system.settings, {"engine": engine}))

    return [[with_share(system) for system in group] for group in made]
