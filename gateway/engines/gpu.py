"""NVIDIA's GPUs: how busy they are, their memory, the driver.

Knows: NVIDIA's management library. Must not know: who uses the GPUs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import pynvml
from msgspec import Struct

from gateway import metrics

# How often memory is transferred in each cycle of its clock.
_TRANSFERS = 2


class Memory(Struct, frozen=True):
    """Bytes of a GPU's memory; `used` by whomever."""

    used: int
    total: int


class Gpu:
    """One device. device: the library's handle. index: its number for NVIDIA's tools."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self.index: int = _answer(pynvml.nvmlDeviceGetIndex, device) or 0

    @property
    def name(self) -> str:
        """Such as `NVIDIA H100 80GB HBM3`."""
        return _answer(pynvml.nvmlDeviceGetName, self._device) or "unknown"

    def busy(self) -> float | None:
        """Share of the library's last sampling period, between 1/6 and 1 s, in which a kernel ran: 0 to 1.

        None when it does not say.
        """
        read = _answer(pynvml.nvmlDeviceGetUtilizationRates, self._device)
        return None if read is None else float(read.gpu) / 100

    def memory(self) -> Memory | None:
        """None when the library does not say."""
        read = _answer(pynvml.nvmlDeviceGetMemoryInfo, self._device)
        return None if read is None else Memory(int(read.used), int(read.total))

    def read_per_s(self) -> float | None:
        """Bytes that its memory gives a second at most; None when the library does not say."""
        bits = _answer(pynvml.nvmlDeviceGetMemoryBusWidth, self._device)
        mhz = _answer(pynvml.nvmlDeviceGetMaxClockInfo, self._device, pynvml.NVML_CLOCK_MEM)
        return None if bits is None or mhz is None else bits / 8 * mhz * 1e6 * _TRANSFERS


def _answer(ask: Callable[..., Any], *given: Any) -> Any:
    """What this function of the library returns; None when it fails."""
    try:
        return ask(*given)
    except pynvml.NVMLError:
        return None


@cache
def _answers() -> bool:
    """Whether the library is here and finds a driver; asked once in the life of the process."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return False
    return True


def gpus(visible: str | None = None) -> list[Gpu]:
    """Those that a process may use, in its order; none where there are none.

    visible: as in `CUDA_VISIBLE_DEVICES`; None: what that says.
    """
    if not _answers():
        return []
    named = os.environ.get("CUDA_VISIBLE_DEVICES") if visible is None else visible
    if named is None:
        names = [str(index) for index in range(_answer(pynvml.nvmlDeviceGetCount) or 0)]
    else:
        names = [name.strip() for name in named.replace("|", ",").split(",")]
    # CUDA, too, sees none behind one that it does not know.
    found = []
    for name in names:
        if (device := _device(name)) is None:
            break
        found.append(Gpu(device))
    return found


def _device(name: str) -> Any:
    """A number or a whole UUID. A part of a device (`MIG-…`) keeps no account of how busy it is: None."""
    if name.isdigit():
        return _answer(pynvml.nvmlDeviceGetHandleByIndex, int(name))
    return _answer(pynvml.nvmlDeviceGetHandleByUUID, name) if name.startswith("GPU-") else None


def memory_mib() -> float | None:
    """All the memory of the first GPU; None without one."""
    memory = next((gpu.memory() for gpu in gpus()), None)
    return None if memory is None else round(memory.total / 2**20, 1)


def driver_version() -> str | None:
    """Such as `580.65.06`; None without a driver that answers."""
    version: str | None = _answer(pynvml.nvmlSystemGetDriverVersion) if _answers() else None
    return version


def show(most: int) -> None:
    """Let the metrics tell of the GPUs that the engine in this process uses.

    It takes milliseconds, so not in an event loop. Without a GPU they tell nothing. most: how many it uses.
    """
    for gauge in (metrics.GPU_BUSY, metrics.GPU_MEMORY_USED, metrics.GPU_MEMORY_TOTAL):
        gauge.clear()  # what the library does not say any more
    for gpu in gpus()[:most]:
        labels = (metrics.DEFAULT_ENGINE, str(gpu.index))
        if (busy := gpu.busy()) is not None:
            metrics.GPU_BUSY.labels(*labels).set(busy)
        if (memory := gpu.memory()) is not None:
            metrics.GPU_MEMORY_USED.labels(*labels).set(memory.used)
            metrics.GPU_MEMORY_TOTAL.labels(*labels).set(memory.total)
