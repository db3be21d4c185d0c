"""Watches the gateway from outside: its memory, its metrics, its transcripts.

Knows: which metrics are looked at, and how often. Must not know: faults, clients.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from loadtest.soak.gateway import ServedGateway, metric
from loadtest.soak.ledger import Ledger
from loadtest.soak.result import Incarnation, Sample

__all__ = ["Watch"]

# What has to be 0 once everybody has gone and everything has expired.
_GAUGES = (
    "gateway_sessions",
    "gateway_sessions_away",
    "gateway_meetings",
    "gateway_translations_waiting",
    "gateway_translations_running",
    "gateway_log_publications",
    "gateway_log_bytes",
)

# What is added up over the gateway's processes.
_COUNTERS = (
    "gateway_sessions_started_total",
    "gateway_sessions_resumed_total",
    "gateway_engine_restarts_total",
    "gateway_translations_again_total",
    "gateway_deltas_merged_total",
    "gateway_tokens_total",
)

_SAMPLE_S = 5.0
_TRANSCRIPTS_S = 30.0

# After it is ready a gateway still grows, by what every gateway needs.
_WARM_S = 60.0


class Watch:
    """`run` it in a task. samples: one every few seconds."""

    def __init__(self, gateway: ServedGateway, ledger: Ledger, meetings: Sequence[str]) -> None:
        self.samples: list[Sample] = []
        self._gateway = gateway
        self._ledger = ledger
        self._meetings = meetings
        # (incarnation, sample) for each sample.
        self._by_process: list[tuple[int, Sample]] = []
        self._earlier: Counter[str] = Counter()
        self._newest: Counter[str] = Counter()

    async def run(self, began_s: float) -> None:
        """Sample and read transcripts until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._read_on())
            while True:
                await self.last_look(began_s)
                await asyncio.sleep(_SAMPLE_S)

    async def last_look(self, began_s: float) -> None:
        """Take a sample now."""
        text = await self._gateway.metrics()
        memory = self._gateway.memory()

        def gauge(name: str) -> float | None:
            return None if text is None else metric(text, name)

        sample = Sample(
            at_s=round(time.monotonic() - began_s, 1),
            gateway_mib=memory.gateway_mib,
            engine_mib=memory.engine_mib,
            sessions=gauge("gateway_sessions"),
            away=gauge("gateway_sessions_away"),
            waiting=gauge("gateway_translations_waiting"),
            running=gauge("gateway_translations_running"),
            publications=gauge("gateway_log_publications"),
            accepted=self._ledger.accepted,
            delivered=self._ledger.delivered,
        )
        self.samples.append(sample)
        if not self._gateway.leaving:
            self._by_process.append((self._gateway.incarnation, sample))
        if text is not None:
            self._newest = Counter({name: int(metric(text, name) or 0) for name in _COUNTERS})

    async def before_restart(self) -> None:
        """The counters of this process are added to those of its successors."""
        text = await self._gateway.metrics()
        if text is not None:
            self._newest = Counter({name: int(metric(text, name) or 0) for name in _COUNTERS})
        self._earlier += self._newest
        self._newest = Counter()

    # ------------------------------------------------------------ asking

    async def work(self) -> float | None:
        """Translations that wait or run; null when the gateway cannot be asked."""
        text = await self._gateway.metrics()
        if text is None:
            return None
        return (metric(text, _GAUGES[3]) or 0.0) + (metric(text, _GAUGES[4]) or 0.0)

    async def engine_ready(self) -> bool | None:
        """Whether the gateway's engine takes requests; null when the gateway cannot be asked."""
        text = await self._gateway.metrics()
        return None if text is None else metric(text, "gateway_engine_ready") == 1

    async def slow_readers(self) -> float:
        """How many connections this gateway closed because their client did not read."""
        text = await self._gateway.metrics()
        return 0.0 if text is None else metric(text, "gateway_errors_total", code="slow_reader") or 0.0

    async def expired(self, patience_s: float) -> dict[str, float | None]:
        """Wait until every gauge is 0; how they are then, or when the patience ends."""
        until_s = time.monotonic() + patience_s
        while True:
            text = await self._gateway.metrics() or ""
            gauges = {name: metric(text, name) for name in _GAUGES}
            if not any(value != 0 for value in gauges.values()) or time.monotonic() > until_s:
                return gauges
            self._gateway.check()
            await asyncio.sleep(1)

    async def read_transcripts(self) -> None:
        """Put what the transcripts hold into the ledger."""
        for meeting in self._meetings:
            transcript = await self._gateway.transcript(meeting)
            if transcript is not None:
                self._ledger.transcript(meeting, _said_in(transcript))

    async def _read_on(self) -> None:
        while True:
            await asyncio.sleep(_TRANSCRIPTS_S)
            await self.read_transcripts()

    # ------------------------------------------------------------ in the end

    def counters(self) -> dict[str, float]:
        """Of all the gateway's processes."""
        return {name: float(self._earlier[name] + self._newest[name]) for name in _COUNTERS}

    def memory(self) -> list[Incarnation]:
        """One entry for each process of the gateway."""
        numbers = sorted({number for number, _ in self._by_process})
        return [self._incarnation(number) for number in numbers]

    def _incarnation(self, number: int) -> Incarnation:
        samples = [sample for of, sample in self._by_process if of == number and sample.gateway_mib]
        loaded = [sample for sample in samples if sample.engine_mib] or samples
        warm_s = loaded[0].at_s + _WARM_S
        settled = next((sample for sample in loaded if sample.at_s >= warm_s), loaded[-1])
        final = samples[-1]
        return Incarnation(
            number=number,
            gateway_settled=settled.gateway_mib,
            gateway_peak=max(sample.gateway_mib for sample in samples),
            gateway_final=final.gateway_mib,
            engine_settled=settled.engine_mib,
            engine_peak=max(sample.engine_mib for sample in samples),
            engine_final=final.engine_mib,
        )


def _said_in(transcript: Any) -> Iterator[tuple[str, str]]:
    for utterance in transcript["utterances"]:
        yield utterance["participant"], utterance["utterance"]
