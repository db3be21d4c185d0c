"""The architectures of the reports in their order, and the systems that stand for them.

Knows: what the reports measured. Must not know: how anything is started or measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from loadtest.baselines.architecture import ARCHITECTURES
from loadtest.options import merged, with_batch, with_share
from loadtest.results import LoadtestError
from loadtest.talk.scenario import Shape

_SEQUENCES = (64, 32, 16, 8)

BASELINE, RECOMMENDED = "one-worker", "recommended"


class Told(Struct, frozen=True):
    """What the reports measured at 25 requests at a time."""

    requests_per_s: float
    # Where, if not in the same test as the others.
    note: str = ""


class System(Struct, frozen=True):
    """What is started for one stage, or for two."""

    name: str
    # A baseline's; None for the gateway.
    architecture: str | None
    # A gateway's, sections nested.
    settings: dict[str, Any]

    @property
    def engines(self) -> int:
        return 2 if self.architecture == "two-workers" else 1


class Stage(Struct, frozen=True):
    """One row of the table."""

    # In options and results.
    key: str
    title: str
    # The name of its system.
    system: str
    shape: Shape = "natural"
    told: Told | None = None


_TOLD = {
    "one-worker": Told(2.2),
    "two-workers": Told(2.0),
    "static-batching": Told(5.9),
    "gateway-64-uniform": Told(15.0, "uniform test data"),
    "gateway-64": Told(3.5, "staging"),
    "gateway-16": Told(10.7, "staging"),
    RECOMMENDED: Told(16.4, "production, 9 before"),
}


def stages(
    settings: Mapping[str, Any], recommended: Mapping[str, Any], only: Sequence[str] = ()
) -> tuple[list[Stage], list[System]]:
    """All rows, and the systems that they need, each once. only: keys of the rows that are wanted; empty: all.

    settings: what every system has. recommended: what the last gateway has besides. Raises `LoadtestError` for a
    key that does not exist.
    """
    made = {name: System(name.replace("-", " "), name, dict(settings)) for name in ARCHITECTURES}
    for count in _SEQUENCES:
        made[f"gateway-{count}"] = System(f"gateway, {count} sequences", None, with_batch(settings, count))
    made[RECOMMENDED] = System("gateway, recommended", None, merged(settings, recommended))
    keys = list(made)
    keys.insert(keys.index("gateway-64"), "gateway-64-uniform")
    if unknown := [key for key in only if key not in keys]:
        raise LoadtestError(f"There is no stage {unknown[0]!r}; there are {', '.join(keys)}.")
    rows: list[Stage] = []
    systems: dict[str, System] = {}
    for key in (key for key in keys if not only or key in only):
        uniform = key.endswith("-uniform")
        system = made[key.removesuffix("-uniform")]
        title = system.name + (", uniform data" if uniform else "")
        shape: Shape = "uniform" if uniform else "natural"
        rows.append(Stage(key, title, system.name, shape, _TOLD.get(key)))
        systems[system.name] = system
    return rows, list(systems.values())


def groups(systems: Sequence[System], gpu_mib: float | None) -> list[list[System]]:
    """Systems that run at the same time, each engine with the same share of a GPU's memory.

    First one worker and the recommended gateway: what else happens on the machine falls on both. The others one by
    one.
    """
    first = [system for system in systems if system.architecture == BASELINE or system.name.endswith(RECOMMENDED)]
    others = [system for system in systems if system not in first]
    made = [*filter(None, [first]), *([system] for system in others)]
    engines = max(sum(system.engines for system in group) for group in made)
    return [
        [System(each.name, each.architecture, with_share(each.settings, engines, gpu_mib)) for each in group]
        for group in made
    ]
