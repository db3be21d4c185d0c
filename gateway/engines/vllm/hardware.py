"""What this machine has: whether there is a GPU, the CPU's number formats, free memory and its speed.

Knows: Linux's /proc and /dev, the C library. Must not know: vLLM or any model.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

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
