"""How busy the GPU is.

Knows: NVIDIA's management library, through its C interface, so that no package is needed. Must not know: who uses
it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Gpu", "gpu", "gpu_mib"]


class _Utilisation(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class Gpu:
    """One device."""

    def __init__(self, library: ctypes.CDLL, device: ctypes.c_void_p) -> None:
        self._library = library
        self._device = device

    def busy(self) -> float | None:
        """Percent of the library's last sampling period, between 1/6 and 1 s, in which a kernel ran; None when it
        does not say."""
        read = _Utilisation()
        if self._library.nvmlDeviceGetUtilizationRates(self._device, ctypes.byref(read)) != 0:
            return None
        return float(read.gpu)

    def memory_mib(self) -> float | None:
        """Memory that is used, by whomever."""
        read = self._memory()
        return None if read is None else round(float(read.used) / 2**20, 1)

    def total_mib(self) -> float | None:
        """All its memory."""
        read = self._memory()
        return None if read is None else round(float(read.total) / 2**20, 1)

    def _memory(self) -> _Memory | None:
        read = _Memory()
        return read if self._library.nvmlDeviceGetMemoryInfo(self._device, ctypes.byref(read)) == 0 else None


@contextmanager
def gpu() -> Iterator[Gpu | None]:
    """The first GPU that this process may use; None where there is none."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        yield None
        return
    if library.nvmlInit_v2() != 0:
        yield None
        return
    try:
        device = _device(library, os.environ.get("CUDA_VISIBLE_DEVICES"))
        yield None if device is None else Gpu(library, device)
    finally:
        library.nvmlShutdown()


def gpu_mib() -> float | None:
    """All the memory of the GPU; None without one."""
    with gpu() as device:
        return device.total_mib() if device is not None else None


def _device(library: ctypes.CDLL, visible: str | None) -> ctypes.c_void_p | None:
    """The first one of `CUDA_VISIBLE_DEVICES`, which are numbers or whole UUIDs; None where that is none.

    A part of a device (`MIG-…`) keeps no account of how busy it is, and is none, too.
    """
    first, device = "0" if visible is None else visible.partition(",")[0].strip(), ctypes.c_void_p()
    if first.isdigit():
        status = library.nvmlDeviceGetHandleByIndex_v2(int(first), ctypes.byref(device))
    elif first.startswith("GPU-"):
        status = library.nvmlDeviceGetHandleByUUID(first.encode(), ctypes.byref(device))
    else:
        return None
    return device if status == 0 else None
