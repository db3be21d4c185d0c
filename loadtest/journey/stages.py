"""The architectures of the reports in their order, and the systems that stand for them.

Knows: what the reports measured. Must not know: how anything is started or measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from loadtest.baselines.architecture import ARCHITECTURES
from loadtest.options import merged
from loadtest.results import LoadtestError

__all__ = [
    "BASELINE",
    "BATCHING",
    "RECOMMENDED",
    "STAYS",
    "Stage",
    "System",
    "Told",
    "stages",
]

_SEQUENCES = (8, 16, 32, 64)

BASELINE, BATCHING, RECOMMENDED = "one-worker", "static-batching", "recommended"

STAYS = "gateway, recommended"
"""The system that is there from the beginning to the end."""

# What production had before and after, requests a second.
_TOLD_PRODUCTION = (9.0, 16.4)


class Told(Struct, frozen=True):
    """What the reports measured at 25 requests at a time. note: where, if not in the same test as the others."""

    requests_per_s: float
    note: str = ""


class System(Struct, frozen=True):
    """architecture: a baseline's, or null for the gateway. settings: a gateway's, sections nested."""

    name: str
    architecture: str | None
    settings: dict[str, Any]

    @property
    def engines(self) -> int:
        return 2 if self.architecture == "two-workers" else 1


class Stage(Struct, frozen=True):
    """One row.

    key: in options and results. label: where there is little room. system: its name. same_as: key of the row whose
    measurements are this one's too, because nothing differs; or empty. open: also measured in an open loop.
    """

    key: str
    title: str
    label: str
    system: str
    shape: Literal["natural", "uniform"] = "natural"
    told: Told | None = None
    same_as: str = ""
    open: bool = False


_TOLD = {
    "one-worker": Told(2.2),
    "two-workers": Told(2.0),
    "static-batching": Told(5.9),
    "gateway-64-uniform": Told(15.0, "uniform test data"),
    "gateway-64": Told(3.5, "staging"),
    "gateway-16": Told(10.7, "staging"),
    RECOMMENDED: Told(_TOLD_PRODUCTION[1], f"production, {_TOLD_PRODUCTION[0]:g} before"),
}

_TITLES = {"one-worker": "one worker", "two-workers": "two workers", "static-batching": "static batching"}


def stages(
    settings: Mapping[str, Any], recommended: Mapping[str, Any], only: Sequence[str] = ()
) -> tuple[list[Stage], list[System]]:
    """All rows with the systems they need, each once. only: keys of the rows that are wanted, or all.

    settings: what every system has. recommended: what the last gateway has besides. Raises `LoadtestError` for a
    key that there is not.
    """
    rows = _rows(settings, recommended)
    keys = [stage.key for stage, _ in rows]
    if unknown := [key for key in only if key not in keys]:
        raise LoadtestError(f"There is no stage {unknown[0]!r}; there are {', '.join(keys)}.")
    found: list[Stage] = []
    systems: dict[str, System] = {}
    measured: dict[tuple[str, str], str] = {}
    # The last row first: its gateway is there from the beginning.
    for stage, system in reversed(rows):
        if not only or stage.key in only:
            own = systems.setdefault(_identity(system), system)
            same = measured.setdefault((own.name, stage.shape), stage.key)
            found.append(replace(stage, system=own.name, same_as="" if same == stage.key else same))
    return found[::-1], list(systems.values())[::-1]


def _rows(settings: Mapping[str, Any], recommended: Mapping[str, Any]) -> list[tuple[Stage, System]]:
    baselines = [System(_TITLES[name], name, dict(settings)) for name in ARCHITECTURES]
    gateways = {
        count: System(f"gateway, {count} sequences", None, _batch(settings, count)) for count in _SEQUENCES
    }
    most = max(_SEQUENCES)
    rows = [(name, system, False) for name, system in zip(ARCHITECTURES, baselines, strict=True)]
    rows += [(f"gateway-{most}-uniform", gateways[most], True)]
    rows += [(f"gateway-{count}", gateways[count], False) for count in reversed(_SEQUENCES)]
    rows += [(RECOMMENDED, System(STAYS, None, merged(settings, recommended)), False)]
    return [
        (
            Stage(
                key=key,
                title=system.name + (", uniform data" if uniform else ""),
                label=RECOMMENDED if key == RECOMMENDED else _label(system.name, uniform),
                system=system.name,
                shape="uniform" if uniform else "natural",
                told=_TOLD.get(key),
                open=key in (BASELINE, BATCHING, RECOMMENDED),
            ),
            system,
        )
        for key, system, uniform in rows
    ]


def _label(name: str, uniform: bool) -> str:
    return name.replace(" sequences", "").replace(",", "") + (" uniform" if uniform else "")


def _batch(settings: Mapping[str, Any], count: int) -> dict[str, Any]:
    """A gateway's settings with a batch of so many sequences."""
    simulated = settings.get("engine", {}).get("kind") == "simulated"
    own: dict[str, Any] = {"script": {"max_running": count}} if simulated else {"max_num_seqs": count}
    return merged(settings, {"engine": own})


def _identity(system: System) -> str:
    return json.dumps([system.architecture, _normal(system.settings)], sort_keys=True)


def _normal(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What is not said stands for its default."""
    engine = settings.get("engine", {})
    if engine.get("kind") == "simulated":
        return merged({"engine": {"script": {"max_running": 16}}}, settings)
    return merged({"engine": {"max_num_seqs": 16}}, settings)
