"""NVIDIA's GPUs: how busy they are, their memory, the driver.

Knows: NVIDIA's management library, through its C interface, so that no package is needed. Must not know: who uses
them.
"""

from __future__ import annotations

import ctypes
import os
import threading

from msgspec import Struct

from gateway import metrics

_VERSION_BYTES, _NAME_BYTES = 80, 96

# Which of the clocks is that of the memory, and how often memory is transferred in each of its cycles.
_MEMORY_CLOCK, _TRANSFERS = 2, 2


class _Utilisation(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class Memory(Struct, frozen=True):
    """Bytes of a GPU's memory; `used` by whomever."""

    used: int
    total: int


class Gpu:
    """One device. index: its number for NVIDIA's tools."""

    def __init__(self, library: ctypes.CDLL, device: ctypes.c_void_p) -> None:
        self._library = library
        self._device = device
        number = ctypes.c_uint()
        self.index = number.value if library.nvmlDeviceGetIndex(device, ctypes.byref(number)) == 0 else 0

    @property
    def name(self) -> str:
        """Such as `NVIDIA H100 80GB HBM3`."""
        text = ctypes.create_string_buffer(_NAME_BYTES)
        status = self._library.nvmlDeviceGetName(self._device, text, _NAME_BYTES)
        return text.value.decode(errors="replace") if status == 0 else "unknown"

    def busy(self) -> float | None:
        """Share of the library's last sampling period, between 1/6 and 1 s, in which a kernel ran: 0 to 1.

        None when it does not say.
        """
        read = _Utilisation()
        if self._library.nvmlDeviceGetUtilizationRates(self._device, ctypes.byref(read)) != 0:
            return None
        return float(read.gpu) / 100

    def memory(self) -> Memory | None:
        """None when the library does not say."""
        read = _Memory()
        if self._library.nvmlDeviceGetMemoryInfo(self._device, ctypes.byref(read)) != 0:
            return None
        return Memory(int(read.used), int(read.total))

    def read_per_s(self) -> float | None:
        """Bytes that its memory gives a second at most; None when the library does not say."""
        bits, mhz = ctypes.c_uint(), ctypes.c_uint()
        if self._library.nvmlDeviceGetMemoryBusWidth(self._device, ctypes.byref(bits)) != 0:
            return None
        if self._library.nvmlDeviceGetMaxClockInfo(self._device, _MEMORY_CLOCK, ctypes.byref(mhz)) != 0:
            return None
        return bits.value / 8 * mhz.value * 1e6 * _TRANSFERS


_loading = threading.Lock()
_loaded: list[ctypes.CDLL | None] = []


def _library() -> ctypes.CDLL | None:
    """The library, loaded once for the life of the process; None where there is none, or it finds no driver."""
    with _loading:
        if not _loaded:
            try:
                library = ctypes.CDLL("libnvidia-ml.so.1")
                _loaded.append(library if library.nvmlInit_v2() == 0 else None)
            except (OSError, AttributeError):
                _loaded.append(None)
        return _loaded[0]


def gpus(visible: str | None = None) -> list[Gpu]:
    """Those that a process may use, in its order; none where there are none.

    visible: as in `CUDA_VISIBLE_DEVICES`; None: what that says.
    """
    library = _library()
    if library is None:
        return []
    named = os.environ.get("CUDA_VISIBLE_DEVICES") if visible is None else visible
    if named is None:
        number = ctypes.c_uint()
        count = number.value if library.nvmlDeviceGetCount_v2(ctypes.byref(number)) == 0 else 0
        names = [str(index) for index in range(count)]
    else:
        names = [name.strip() for name in named.replace("|", ",").split(",")]
    # CUDA, too, sees none behind one that it does not know.
    found = []
    for name in names:
        if (device := _device(library, name)) is None:
            break
        found.append(Gpu(library, device))
    return found


def _device(library: ctypes.CDLL, name: str) -> ctypes.c_void_p | None:
    """A number or a whole UUID. A part of a device (`MIG-…`) keeps no account of how busy it is, and is none."""
    device = ctypes.c_void_p()
    if name.isdigit():
        status = library.nvmlDeviceGetHandleByIndex_v2(int(name), ctypes.byref(device))
    elif name.startswith("GPU-"):
        status = library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(device))
    else:
        return None
    return device if status == 0 else None


def memory_mib() -> float | None:
    """All the memory of the first GPU; None without one."""
    memory = next((gpu.memory() for gpu in gpus()), None)
    return None if memory is None else round(memory.total / 2**20, 1)


def driver_version() -> str | None:
    """Such as `580.65.06`; None without a driver that answers."""
    library, text = _library(), ctypes.create_string_buffer(_VERSION_BYTES)
    if library is None or library.nvmlSystemGetDriverVersion(text, _VERSION_BYTES) != 0:
        return None
    return text.value.decode(errors="replace")


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
