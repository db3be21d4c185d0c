"""Trials that differ by nothing but how much was offered: the points of one curve.

Knows: summaries, settings. Must not know: charts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from loadtest.trial.summary import Summary
from loadtest.trial.values import Closed, Trial

__all__ = ["Group", "groups", "lasting"]

# What stands among a trial's settings and differs from one pass to the next.
_APART = frozenset({"driver_was_the_limit", "engine_steps", "engine_gaps_over_100_ms", "url", "host", "port"})


class Group(Struct, frozen=True):
    """label: for people, its own among groups of one kind of load. summaries: by rising load, one each."""

    label: str
    closed: bool
    summaries: list[Summary]

    @property
    def loads(self) -> list[float]:
        """Requests in flight, or offered a second."""
        return [float(_amount(each)) for each in self.summaries]

    @property
    def knee(self) -> Summary | None:
        """The highest load up to which every one kept the objective."""
        kept: Summary | None = None
        for summary in self.summaries:
            if not summary.met:
                break
            kept = summary
        return kept


def groups(summaries: Sequence[Summary], trials: Sequence[Trial]) -> list[Group]:
    """All summaries, in order of appearance."""
    settings = {trial.name: dict(_leaves("", lasting(trial.settings))) for trial in reversed(trials)}
    found: dict[tuple[str, ...], list[Summary]] = {}
    for summary in summaries:
        own = json.dumps(settings.get(summary.name, {}), sort_keys=True, default=str)
        key = (type(summary.load).__name__, summary.system, summary.workload, own)
        found.setdefault(key, []).append(summary)
    labels = _labels(list(found.values()), settings)
    return [
        Group(label, isinstance(own[0].load, Closed), _rising(own))
        for label, own in zip(labels, found.values(), strict=True)
    ]


def lasting(settings: dict[str, Any]) -> dict[str, Any]:
    """Of a trial's settings, those that are the same in the next pass."""
    return {key: value for key, value in settings.items() if key not in _APART}


def _rising(own: Sequence[Summary]) -> list[Summary]:
    """Of a load that was tried several times under different names, the trial with the most translations."""
    longest: dict[float, Summary] = {}
    for summary in sorted(own, key=lambda each: each.records):
        longest[_amount(summary)] = summary
    return sorted(longest.values(), key=_amount)


def _amount(summary: Summary) -> float:
    return summary.load.in_flight if isinstance(summary.load, Closed) else summary.load.per_s


# ---------------------------------------------------------------- labels


def _labels(found: Sequence[Sequence[Summary]], settings: dict[str, dict[str, Any]]) -> list[str]:
    """What the names have in common, else the system with the settings by which it differs, else with more."""
    labels = [_common([each.name for each in own]) or own[0].system for own in found]
    if _distinct(found, labels):
        return labels
    differing = _differing([settings.get(own[0].name, {}) for own in found])
    labels = [
        " ".join(
            [own[0].system, *(f"{key.rpartition('.')[2]}={settings[own[0].name].get(key)}" for key in differing)]
        )
        for own in found
    ]
    if _distinct(found, labels):
        return labels
    labels = [", ".join(filter(None, [label, own[0].workload])) for label, own in zip(labels, found, strict=True)]
    if _distinct(found, labels):
        return labels
    return [f"{label} ({number})" for number, label in enumerate(labels, 1)]


def _distinct(found: Sequence[Sequence[Summary]], labels: Sequence[str]) -> bool:
    """One group in a closed loop and one in an open loop may have the same name: they are never in one chart."""
    charted = {(isinstance(own[0].load, Closed), label) for own, label in zip(found, labels, strict=True)}
    return len(charted) == len(found)


def _common(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    words = zip(*(name.split() for name in names), strict=False)
    shared: list[str] = []
    for each in words:
        if len(set(each)) > 1:
            break
        shared.append(each[0])
    return re.sub(r"[\s,;:·@(\-–]*(\b(at|with|in|of))?[\s,;:·@(\-–]*$", "", " ".join(shared))


def _differing(settings: Sequence[dict[str, Any]]) -> list[str]:
    keys = dict.fromkeys(key for each in settings for key in each)
    return [key for key in keys if len({str(each.get(key)) for each in settings}) > 1][:3]


def _leaves(prefix: str, settings: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _leaves(f"{prefix}{key}.", value)
        else:
            yield f"{prefix}{key}", value
