"""What this machine has: whether there is a GPU, the CPU's number formats, free memory.

Knows: Linux's /proc and /dev. Must not know: vLLM or any model.
"""

from __future__ import annotations

import shutil
from pathlib import Path

__all__ = ["available_gib", "available_shared_mib", "cpu_dtype", "gpu_present"]


def gpu_present() -> bool:
    """Whether the NVIDIA driver shows a GPU."""
    return Path("/dev/nvidia0").exists() or Path("/proc/driver/nvidia/version").exists()


def cpu_dtype() -> str:
    """bfloat16 if the CPU multiplies it natively; otherwise float32, which is then three times faster."""
    return "bfloat16" if _cpu_flags() & {"avx512_bf16", "amx_bf16"} else "float32"


def available_gib() -> float | None:
    """Memory that can be used without swapping, in GiB. None if the system does not report it."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) / 2**20
    except (OSError, StopIteration):
        return None


def available_shared_mib() -> float | None:
    """Memory that processes can still share through /dev/shm, MiB; None where there is none."""
    try:
        return shutil.disk_usage("/dev/shm").free / 2**20  # noqa: S108 -- not a temporary file of ours
    except OSError:
        return None


def _cpu_flags() -> frozenset[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return frozenset(next(line for line in lines if line.startswith("flags")).split())
    except (OSError, StopIteration):
        return frozenset()
