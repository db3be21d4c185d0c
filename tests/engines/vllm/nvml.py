"""NVIDIA's management library with devices that a test makes up, where there are none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pynvml
import pytest
from msgspec import Struct

from gateway.engines.vllm import hardware


class Device(Struct):
    """One GPU, as the library tells of it. None: it does not say."""

    uuid: str
    busy: int | None = 0
    used: int = 0
    total: int = 80 * 2**30


def installed(monkeypatch: pytest.MonkeyPatch, *devices: Device) -> None:
    """Let there be these devices, and no choice among them by the environment."""

    def found(device: Device | None) -> Device:
        if device is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return device

    def utilisation(device: Device) -> Any:
        if device.busy is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return SimpleNamespace(gpu=device.busy)

    library = {
        "SystemGetDriverVersion": lambda: "580.65.06",
        "DeviceGetCount": lambda: len(devices),
        "DeviceGetHandleByIndex": lambda index: found(devices[index] if index < len(devices) else None),
        "DeviceGetHandleByUUID": lambda uuid: found(next((each for each in devices if each.uuid == uuid), None)),
        "DeviceGetIndex": devices.index,
        "DeviceGetName": lambda _: "NVIDIA H100",
        "DeviceGetUtilizationRates": utilisation,
        "DeviceGetMemoryBusWidth": lambda _: 5120,
        "DeviceGetMaxClockInfo": lambda _, clock: {pynvml.NVML_CLOCK_MEM: 2619}[clock],
        "DeviceGetMemoryInfo": lambda device: device,
    }
    for name, answer in library.items():
        monkeypatch.setattr(pynvml, f"nvml{name}", answer)
    monkeypatch.setattr(hardware, "_answers", lambda: True)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
