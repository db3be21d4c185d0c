"""What this machine has: its GPUs, the CPU's number formats, free memory and its speed.

Knows: Linux's /proc and /dev, the C library, NVIDIA's management library.
Must not know: vLLM or any model, who uses the GPUs.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pynvml
from msgspec import Struct

from gateway import metrics

# Memory that is read to measure its speed: more than the caches of a large CPU. Each time all of it.
_MEASURED_BYTES, _TIMES = 2**29, 5


def gpu_present() -> bool:
    """Whether the NVIDIA driver shows a GPU."""
    return Path("/dev/nvidia0").exists() or Path("/proc/driver/nvidia/version").exists()


def cpu_dtype() -> str:
    """bfloat16 if the CPU multiplies it natively; otherwise float32, which is then three times faster."""
    return "bfloat16" if _cpu_flags() & {"avx512_bf16", "amx_bf16"} else "float32"


def available_gib() -> float:
    """Memory that can be used without swapping, in GiB."""
    return float(psutil.virtual_memory().available) / 2**30


def available_shared_mib() -> float | None:
    """Memory that processes can still share through /dev/shm, MiB; None where there is none."""
    try:
        return shutil.disk_usage("/dev/shm").free / 2**20  # noqa: S108 -- not a temporary file of ours
    except OSError:
        return None


def memory_read_per_s() -> float:
    """Bytes of memory that this machine reads a second, by as many threads as the engine's model has."""
    # vLLM leaves one core to its scheduler.
    threads = max(1, len(os.sched_getaffinity(0)) - 1)
    library = ctypes.CDLL(None)
    library.memchr.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
    size = _MEASURED_BYTES // threads
    parts = [ctypes.create_string_buffer(size) for _ in range(threads)]

    def fill(part: ctypes.Array[ctypes.c_char]) -> None:
        ctypes.memset(part, 1, size)

    def read(part: ctypes.Array[ctypes.c_char]) -> None:
        library.memchr(part, 0, size)  # without Python's lock, as it is the C library's

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(fill, parts))
        took_s = []
        for _ in range(_TIMES):
            began_s = time.perf_counter()
            list(pool.map(read, parts))
            took_s.append(time.perf_counter() - began_s)
    # The best: what else ran meanwhile made the others slower.
    return size * threads / min(took_s)


def _cpu_flags() -> frozenset[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return frozenset(next(line for line in lines if line.startswith("flags")).split())
    except (OSError, StopIteration):
        return frozenset()


# How often memory is transferred in each cycle of its clock.
_TRANSFERS = 2


class Memory(Struct, frozen=True):
    """Bytes of a GPU's memory; `used`: by all processes."""

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
        """Share of the last sampling period (1/6 to 1 s) in which a kernel ran, 0 to 1; None: not told."""
        read = _answer(pynvml.nvmlDeviceGetUtilizationRates, self._device)
        return None if read is None else float(read.gpu) / 100

    def memory(self) -> Memory | None:
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
    """Those that a process may use, in its order. visible: as in `CUDA_VISIBLE_DEVICES`; None: what that says."""
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


def show_gpus(most: int) -> None:
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
