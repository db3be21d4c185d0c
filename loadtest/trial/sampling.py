"""The machine over time, while something is measured on it.

Knows: the GPU, the CPU's accounts, what servers say of themselves. Must not know: what is measured.

It runs in threads of its own, so that a busy event loop is sampled like an idle one.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from loadtest.systems.metrics import get, only
from loadtest.trial.accounting import Accounts
from loadtest.trial.gpu import Gpu, gpu
from loadtest.trial.values import Sample

__all__ = ["sampling"]

# A server is asked so often at most, and for so small a part of the time, because answering is work for it.
_SCRAPE_S = 0.5
_SCRAPE_SHARE = 0.01
_SCRAPE_LIMIT_S = 5.0

# What a sample calls it → how the systems do.
_NAMES = {
    "running": ("gateway_engine_running", "vllm:num_requests_running", "baseline_running"),
    "waiting": ("gateway_engine_waiting", "vllm:num_requests_waiting", "baseline_waiting"),
    "tokens": ("gateway_tokens_total", "vllm:generation_tokens_total", "baseline_tokens_total"),
}


@asynccontextmanager
async def sampling(
    parts: Mapping[str, Sequence[int]], metrics_url: str | None, *, hz: float = 10.0
) -> AsyncIterator[list[Sample]]:
    """The list grows by `hz` samples a second until the block ends; `at_s` is the machine's monotonic clock.

    The first has no `cores`, the last is taken at the end. parts: as `Accounts` takes them. What a server says of
    itself stands in the first sample after it said it, and is null in those between.
    """
    sampler = _Sampler(Accounts(parts), metrics_url, 1 / hz)
    threads = [threading.Thread(target=sampler.sample, name="sampling", daemon=True)]
    if metrics_url is not None:
        threads.append(threading.Thread(target=sampler.scrape, name="scraping", daemon=True))
    for thread in threads:
        thread.start()
    try:
        yield sampler.samples
    finally:
        sampler.stop.set()
        for thread in threads:
            await asyncio.to_thread(thread.join)


class _Sampler:
    def __init__(self, accounts: Accounts, metrics_url: str | None, period_s: float) -> None:
        self.samples: list[Sample] = []
        self.stop = threading.Event()
        self._accounts = accounts
        names = [name for names in _NAMES.values() for name in names]
        self._metrics_url = only(metrics_url, names) if metrics_url is not None else None
        self._period_s = period_s
        self._said: dict[str, float] = {}

    def sample(self) -> None:
        with gpu() as device:
            before = self._accounts.read()
            due_s = before.at_s
            self._append(due_s, {}, device)
            last = False
            while not last:
                due_s = max(due_s + self._period_s, time.monotonic())
                last = self.stop.wait(due_s - time.monotonic())
                now = self._accounts.read(search=last)
                elapsed_s = max(now.at_s - before.at_s, 1e-6)
                cores = {part: round(used_s / elapsed_s, 4) for part, used_s in now.since(before).items()}
                self._append(now.at_s, cores, device)
                before = now

    def _append(self, at_s: float, cores: dict[str, float], device: Gpu | None) -> None:
        said, self._said = self._said, {}
        self.samples.append(
            Sample(
                at_s=at_s,
                gpu=device.busy() if device is not None else None,
                gpu_memory_mib=device.memory_mib() if device is not None else None,
                cores=cores,
                **said,
            )
        )

    def scrape(self) -> None:
        assert self._metrics_url is not None  # noqa: S101 -- the thread is started with one alone
        pause_s = 0.0
        while not self.stop.wait(pause_s):
            began_s = time.monotonic()
            status, text = get(self._metrics_url, _SCRAPE_LIMIT_S)
            if status == 200:
                self._said = _read(text)
            pause_s = max(_SCRAPE_S, (time.monotonic() - began_s) / _SCRAPE_SHARE)


def _read(text: str) -> dict[str, float]:
    """The few metrics of a sample, each summed over its series; what the server does not have is left out."""
    wanted = {name: field for field, names in _NAMES.items() for name in names}
    # A gateway shows its engine's metrics beside its own, which come first in what it is called after.
    found: dict[str, float] = {}
    for line in text.splitlines():
        name = line.partition("{")[0].partition(" ")[0]
        if name in wanted:
            found[name] = found.get(name, 0.0) + float(line.rsplit(" ", 1)[1])
    return {
        field: next(found[name] for name in names if name in found)
        for field, names in _NAMES.items()
        if any(name in found for name in names)
    }
