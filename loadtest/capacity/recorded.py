"""A workload as a running gateway counted it.

Knows: the names of the gateway's metrics, Prometheus' text. Must not know: how a workload is offered again.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from prometheus_client.parser import text_string_to_metric_families

from loadtest.commands import Say
from loadtest.results import LoadtestError
from loadtest.systems.metrics import get

__all__ = ["Recorded", "Scrape", "compare", "parse", "watch"]

_LOOK_S = 1.0
_FIRST_TOKEN = "gateway_first_token_seconds"  # noqa: S105 -- of a translation


class Scrape(Struct, frozen=True):
    """All values of one look, by name and labels. at_s: when, on any clock; null when nobody knows."""

    values: dict[tuple[str, tuple[tuple[str, str], ...]], float]
    at_s: float | None = None

    def total(self, name: str, **labels: str) -> float:
        """The sum over all series with these labels."""
        wanted = set(labels.items())
        return sum(value for (own, has), value in self.values.items() if own == name and wanted <= set(has))

    def by(self, name: str, label: str, **labels: str) -> dict[str, float]:
        """Sums by one label."""
        sums: dict[str, float] = {}
        wanted = set(labels.items())
        for (own, has), value in self.values.items():
            if own == name and wanted <= set(has):
                key = dict(has).get(label, "")
                sums[key] = sums.get(key, 0.0) + value
        return sums

    def since(self, earlier: Scrape) -> Scrape:
        """What was counted between two looks; gauges too become differences. Raises `LoadtestError` when the
        gateway was started anew in between."""
        fell = [
            key
            for key, value in self.values.items()
            if key[0].endswith(("_total", "_count", "_bucket")) and value < earlier.values.get(key, 0.0)
        ]
        if fell:
            raise LoadtestError(f"{fell[0][0]} fell: between the two looks the gateway was started anew.")
        return Scrape({key: value - earlier.values.get(key, 0.0) for key, value in self.values.items()})


class Recorded(Struct, frozen=True):
    """What people said, and what it cost. seconds, …_per_min, meetings: null where only one look at an unknown
    time was had. targets: language → its part of the translations, the largest first. targets_per_utterance: mean.

    tokens_per_translation: generated ones of finals and partials together, for each final translation.
    partials_per_final: translated revisions for each final translation. prompt_tokens: of one request to the
    engine, mean. first_token_p99_ms: upper bound of the bucket that holds it; null when unknown.
    """

    seconds: float | None
    utterances: float
    utterances_per_min: float | None
    meetings: float | None
    targets: dict[str, float]
    targets_per_utterance: float
    tokens_per_translation: float
    partials_per_final: float
    prompt_tokens: float | None
    first_token_p99_ms: float | None

    @property
    def translations_per_min(self) -> float | None:
        if self.utterances_per_min is None:
            return None
        return self.utterances_per_min * self.targets_per_utterance

    @property
    def scenario_targets(self) -> tuple[str, ...]:
        """The languages that a scenario needs to be like it: as many as an utterance has on average, the most read
        ones."""
        return tuple(list(self.targets)[: max(1, round(self.targets_per_utterance))])


def parse(text: str, at_s: float | None = None) -> Scrape:
    """One look. Raises `LoadtestError` for what is no Prometheus text of a gateway."""
    try:
        values = {
            (sample.name, tuple(sorted(sample.labels.items()))): float(sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
    except (ValueError, KeyError, IndexError) as error:
        raise LoadtestError(f"This is no Prometheus text: {error}.") from None
    if not any(name == "gateway_tokens_total" for name, _ in values):
        raise LoadtestError("These are no metrics of a gateway: gateway_tokens_total is missing.")
    return Scrape(values, at_s)


def compare(first: Scrape | None, last: Scrape) -> Recorded:
    """The workload between two looks, or since the gateway began. Raises `LoadtestError` when there was none."""
    counted = last if first is None else last.since(first)
    seconds: float | None = None
    if last.at_s is not None:
        began_s = first.at_s if first is not None else last.total("process_start_time_seconds") or None
        seconds = last.at_s - began_s if began_s is not None and last.at_s > began_s else None
    translated = counted.by("gateway_translations_total", "lang", outcome="final")
    translations = sum(translated.values())
    utterances = counted.total("gateway_utterances_total", outcome="accepted")
    if not translations or not utterances:
        raise LoadtestError("The metrics hold no translations: let people talk, or watch for longer (--watch-s).")
    requests = counted.total("gateway_translation_seconds_count") + counted.total("gateway_partial_seconds_count")
    meetings = [look.total("gateway_meetings") for look in (first, last) if look is not None]
    return Recorded(
        seconds=seconds,
        utterances=utterances,
        utterances_per_min=utterances / seconds * 60 if seconds else None,
        meetings=sum(meetings) / len(meetings) or None,
        targets={
            lang: round(count / translations, 4)
            for lang, count in sorted(translated.items(), key=lambda item: (-item[1], item[0]))
            if count
        },
        targets_per_utterance=round(translations / utterances, 3),
        tokens_per_translation=round(counted.total("gateway_tokens_total") / translations, 2),
        partials_per_final=round(counted.total("gateway_partials_total", outcome="translated") / translations, 3),
        prompt_tokens=round(counted.total("gateway_prompt_tokens_total") / requests, 1) if requests else None,
        first_token_p99_ms=_quantile_ms(counted.by(f"{_FIRST_TOKEN}_bucket", "le"), 0.99),
    )


def _quantile_ms(buckets: Mapping[str, float], quantile: float) -> float | None:
    ordered = sorted((float(bound.replace("+Inf", "inf")), count) for bound, count in buckets.items())
    if not ordered or not ordered[-1][1]:
        return None
    bound = next(bound for bound, count in ordered if count >= quantile * ordered[-1][1])
    return None if math.isinf(bound) else bound * 1000


# ---------------------------------------------------------------- looking


async def watch(where: str, again: str | None, watch_s: float, say: Say) -> Recorded:
    """The workload behind a file or the address of `/metrics`.

    again: a second file, of later. A gateway that is asked itself is asked twice, `watch_s` apart, or once with 0:
    then since it began. Files count from each other, when they were written; one alone tells no rates.
    """
    if where.startswith(("http://", "https://")):
        url = where if where.rstrip("/").endswith("/metrics") else f"{where.rstrip('/')}/metrics"
        first = await _ask(url)
        if watch_s <= 0:
            return compare(None, first)
        end_s = time.monotonic() + watch_s
        while (left_s := end_s - time.monotonic()) > 0:
            say(f"watching {url}: {left_s:.0f} s left")
            await asyncio.sleep(min(_LOOK_S, left_s))
        return compare(first, await _ask(url))
    last = _read(Path(where), dated=again is not None)
    return compare(None, last) if again is None else compare(last, _read(Path(again), dated=True))


async def _ask(url: str) -> Scrape:
    status, text = await asyncio.to_thread(get, url)
    if status != 200:
        raise LoadtestError(f"{url} does not answer (status {status}).")
    return parse(text, time.time())


def _read(path: Path, *, dated: bool) -> Scrape:
    try:
        return parse(path.read_text(), path.stat().st_mtime if dated else None)
    except (OSError, UnicodeDecodeError) as error:
        raise LoadtestError(f"{path} cannot be read: {error}.") from None
