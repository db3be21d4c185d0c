"""What is told of GPUs, and of a machine without any."""

from __future__ import annotations

import pynvml
import pytest

from gateway import metrics
from gateway.engines import gpu
from tests.engines.nvml import Device, installed

TWO = (Device("GPU-1aaa-b", busy=93, used=20 * 2**30), Device("GPU-2aaa-b", busy=None))


@pytest.mark.parametrize(
    ("visible", "indexes"),
    [
        (None, [0, 1]),
        ("1,0", [1, 0]),
        ("0,1|1", [0, 1, 1]),
        ("GPU-2aaa-b,GPU-1aaa-b", [1, 0]),
        ("1,5,0", [1]),
        ("GPU-1a", []),
        ("MIG-2aaa-b", []),
        ("-1", []),
        ("", []),
    ],
)
def test_gpus_are_those_that_cuda_would_see(
    visible: str | None, indexes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, *TWO)
    assert [each.index for each in gpu.gpus(visible)] == indexes
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert [each.index for each in gpu.gpus()] == indexes


def shown() -> list[str]:
    page = metrics.engine_exposition().decode()
    return [line for line in page.splitlines() if line.startswith("gateway_engine_gpu_")]


def test_the_engines_metrics_tell_of_the_gpus_that_it_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, *TWO)
    gpu.show(1)
    assert shown() == [
        'gateway_engine_gpu_busy_ratio{device="0",engine="default"} 0.93',
        'gateway_engine_gpu_memory_used_bytes{device="0",engine="default"} 2.147483648e+10',
        'gateway_engine_gpu_memory_bytes{device="0",engine="default"} 8.589934592e+10',
    ]
    # The gateway's own process does not tell of them as well.
    assert "gateway_engine_gpu" not in metrics.exposition().decode()


def test_what_the_library_does_not_say_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, *TWO)
    gpu.show(2)
    assert not any('busy_ratio{device="1"' in line for line in shown())
    installed(monkeypatch)
    gpu.show(2)
    assert shown() == []


def test_without_a_driver_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_library() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    gpu._answers.cache_clear()
    monkeypatch.setattr(pynvml, "nvmlInit", no_library)
    assert (gpu.gpus(), gpu.driver_version(), gpu.memory_mib()) == ([], None, None)
    gpu.show(1)
    assert shown() == []
    gpu._answers.cache_clear()


def test_what_the_memory_of_a_gpu_gives_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, Device("GPU-1"))
    [device] = gpu.gpus()
    # An H100's: NVIDIA says 3.35 TB/s.
    assert device.read_per_s() == pytest.approx(3.35e12, rel=0.01)
