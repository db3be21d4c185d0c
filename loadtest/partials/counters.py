"""The gateway's own counters, subtracted from each other.

Knows: Prometheus' text. Must not know: what the numbers are good for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from msgspec import Struct
from prometheus_client.parser import text_string_to_metric_families

from loadtest.systems.metrics import get

__all__ = ["Counters", "Sample", "counters_in", "read_counters"]


class Sample(Struct, frozen=True):
    """One series of a counter, by its name with `_total`, and its labels."""

    name: str
    labels: dict[str, str]
    value: float


class Counters(Struct, frozen=True):
    """Readings of all counters of the gateway, or the difference of two. What is not there counts as 0."""

    samples: list[Sample]

    def since(self, earlier: Counters) -> Counters:
        """What was counted between two readings; series that did not move are left out."""
        before = {_key(sample): sample.value for sample in earlier.samples}
        grown = [
            Sample(sample.name, sample.labels, round(sample.value - before.get(_key(sample), 0.0), 4))
            for sample in self.samples
        ]
        return Counters([sample for sample in grown if sample.value])

    def total(self, name: str, **labels: str) -> float:
        """The sum of all series of a counter that have these labels, whatever others they have."""
        return sum(sample.value for sample in self._of(name, labels))

    def by(self, name: str, label: str, **labels: str) -> dict[str, float]:
        """The same, apart for each value of one label."""
        sums: dict[str, float] = {}
        for sample in self._of(name, labels):
            value = sample.labels.get(label, "")
            sums[value] = sums.get(value, 0.0) + sample.value
        return sums

    def _of(self, name: str, labels: dict[str, str]) -> Iterable[Sample]:
        wanted = labels.items()
        return (sample for sample in self.samples if sample.name == name and wanted <= sample.labels.items())


async def read_counters(url: str) -> Counters:
    """Every counter of the gateway at `url` now."""
    _, text = await asyncio.to_thread(get, f"{url}/metrics")
    return counters_in(text)


def counters_in(text: str) -> Counters:
    """Every counter of a gateway in Prometheus' text."""
    return Counters(
        [
            Sample(sample.name, dict(sample.labels), float(sample.value))
            for metric in text_string_to_metric_families(text)
            if metric.type == "counter" and metric.name.startswith("gateway_")
            for sample in metric.samples
            if sample.name.endswith("_total")
        ]
    )


def _key(sample: Sample) -> tuple[str, frozenset[tuple[str, str]]]:
    return sample.name, frozenset(sample.labels.items())
