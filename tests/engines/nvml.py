"""NVIDIA's management library with devices that a test makes up, where there are none."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, cast

import pytest
from msgspec import Struct

from gateway.engines import gpu

_UNKNOWN = 999


class Device(Struct):
    """One GPU, as the library tells of it. None: it does not say."""

    uuid: str
    busy: int | None = 0
    used: int = 0
    total: int = 80 * 2**30


class _Library:
    """Handles of devices are 1, 2 …"""

    def __init__(self, devices: Sequence[Device]) -> None:
        self._devices = devices

    def nvmlInit_v2(self) -> int:
        return 0

    def nvmlSystemGetDriverVersion(self, text: Any, _bytes: int) -> int:
        text.value = b"580.65.06"
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count._obj.value = len(self._devices)
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, device: Any) -> int:
        device._obj.value = index + 1
        return 0 if index < len(self._devices) else _UNKNOWN

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes, device: Any) -> int:
        handles = {each.uuid.encode(): handle for handle, each in enumerate(self._devices, 1)}
        device._obj.value = handles.get(uuid, 0)
        return 0 if device._obj.value else _UNKNOWN

    def nvmlDeviceGetIndex(self, device: Any, index: Any) -> int:
        index._obj.value = device.value - 1
        return 0

    def nvmlDeviceGetName(self, _device: Any, text: Any, _bytes: int) -> int:
        text.value = b"NVIDIA H100"
        return 0

    def nvmlDeviceGetUtilizationRates(self, device: Any, read: Any) -> int:
        busy = self._devices[device.value - 1].busy
        read._obj.gpu = busy or 0
        return _UNKNOWN if busy is None else 0

    def nvmlDeviceGetMemoryBusWidth(self, _device: Any, bits: Any) -> int:
        bits._obj.value = 5120
        return 0

    def nvmlDeviceGetMaxClockInfo(self, _device: Any, clock: int, mhz: Any) -> int:
        mhz._obj.value = {2: 2619}[clock]
        return 0

    def nvmlDeviceGetMemoryInfo(self, device: Any, read: Any) -> int:
        found = self._devices[device.value - 1]
        read._obj.used, read._obj.total = found.used, found.total
        return 0


def installed(monkeypatch: pytest.MonkeyPatch, *devices: Device) -> None:
    """Let there be these devices, and no choice among them by the environment."""
    monkeypatch.setattr(gpu, "_loaded", [cast(ctypes.CDLL, _Library(devices))])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
