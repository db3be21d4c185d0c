"""How busy the GPU is.

Knows: NVIDIA's management library, through its C interface, so that no package is needed. Must not know: who uses
it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Gpu", "gpu"]


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
        """Percent of the library's last sampling period, between 1/6 and 1 s, in which a kernel ran; null when it
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
    """The first GPU that this process may use; null where there is none."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        yield None
        return
    if library.nvmlInit_v2() != 0:
        yield None
        return
    try:
        device = ctypes.c_void_p()
        found = library.nvmlDeviceGetHandleByIndex_v2(_index(), ctypes.byref(device)) == 0
        yield Gpu(library, device) if found else None
    finally:
        library.nvmlShutdown()


def _index() -> int:
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0].strip()
    return int(first) if first.isdigit() else 0
