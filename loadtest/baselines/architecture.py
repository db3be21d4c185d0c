"""Which baselines there are, and what one of them is made of.

Knows: their shapes, the gateway's settings. Must not know: processes, queues, HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gateway.config import EngineSettings, Settings
from loadtest.results import LoadtestError

__all__ = ["ARCHITECTURES", "SHARED_MEMORY", "Plan", "plan"]

# Two workers on one GPU had so much of its memory each.
SHARED_MEMORY = 0.3


class Plan(Struct, frozen=True, kw_only=True):
    """workers: processes with an engine each, which take from one queue. batch: texts that a worker generates
    together, at most. window_s: how long it waits for a batch to become full, from its first text on.
    max_waiting: texts in the queue before a request is refused. engine: of each worker, as the gateway's.
    """

    architecture: str
    workers: int = 1
    batch: int = 1
    window_s: float = 0.05
    max_waiting: int = 1_000
    engine: EngineSettings = EngineSettings()


_PLANS = (
    Plan(architecture="one-worker"),
    Plan(architecture="two-workers", workers=2),
    Plan(architecture="static-batching", batch=16),
)
ARCHITECTURES = tuple(each.architecture for each in _PLANS)

_OWN = ("workers", "batch", "window_s", "max_waiting")


class _Own(Struct, frozen=True, forbid_unknown_fields=True):
    """Section `baseline` of the settings: what differs from the architecture's own values."""

    workers: int | None = None
    batch: int | None = None
    window_s: float | None = None
    max_waiting: int | None = None


def plan(architecture: str, settings: Mapping[str, Any]) -> Plan:
    """From a gateway's settings, of which `engine` counts, and a section `baseline` beside them.

    Raises `LoadtestError`.
    """
    found = next((each for each in _PLANS if each.architecture == architecture), None)
    if found is None:
        raise LoadtestError(f"There is no architecture {architecture!r}; there are {', '.join(ARCHITECTURES)}.")
    gateways = {name: value for name, value in settings.items() if name != "baseline"}
    try:
        engine = msgspec.convert(gateways, Settings).engine
        own = msgspec.convert(settings.get("baseline", {}), _Own)
    except msgspec.ValidationError as error:
        raise LoadtestError(f"The settings of a baseline cannot be used: {error}.") from None
    if found.workers > 1 and "gpu_memory_utilization" not in settings.get("engine", {}):
        engine = replace(engine, gpu_memory_utilization=SHARED_MEMORY)
    changed = {name: value for name in _OWN if (value := getattr(own, name)) is not None}
    made = replace(found, engine=engine, **changed)
    if min(made.workers, made.batch, made.max_waiting) < 1 or made.window_s < 0:
        raise LoadtestError("A baseline needs a worker, a text in a batch and room for one that waits.")
    if made.engine.max_num_seqs < made.batch:
        # A batch that the engine took in parts would be no static batch.
        made = replace(made, engine=replace(made.engine, max_num_seqs=made.batch))
    return made
