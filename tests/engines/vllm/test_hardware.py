"""What the system says of the machine, and what is known where it says nothing."""

from __future__ import annotations

from pathlib import Path

import pynvml
import pytest

from gateway import metrics
from gateway.engines.vllm import hardware
from tests.engines.vllm.nvml import Device, installed


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Path → what is in the file; there are no other files."""
    files: dict[str, str] = {}

    def read(path: Path) -> str:
        if str(path) not in files:
            raise FileNotFoundError(path)
        return files[str(path)]

    monkeypatch.setattr(Path, "read_text", read)
    monkeypatch.setattr(Path, "exists", lambda path: str(path) in files)
    return files


@pytest.mark.parametrize("file", ["/dev/nvidia0", "/proc/driver/nvidia/version"])
def test_either_sign_of_a_driver_is_a_gpu(says: dict[str, str], file: str) -> None:
    assert not hardware.gpu_present()
    says[file] = ""
    assert hardware.gpu_present()


@pytest.mark.parametrize(
    ("flags", "dtype"),
    [
        ("fpu avx512f avx512_bf16", "bfloat16"),
        ("fpu amx_bf16 amx_tile", "bfloat16"),
        ("fpu avx512f avx512_bf16x", "float32"),
    ],
)
def test_numbers_are_those_that_the_processor_multiplies(says: dict[str, str], flags: str, dtype: str) -> None:
    says["/proc/cpuinfo"] = f"processor : 0\nflags\t\t: {flags}\nprocessor : 1\nflags\t\t: fpu\n"
    assert hardware.cpu_dtype() == dtype


@pytest.mark.parametrize("cpuinfo", [None, "processor : 0\n"])
def test_unknown_processor_uses_float32(says: dict[str, str], cpuinfo: str | None) -> None:
    if cpuinfo is not None:
        says["/proc/cpuinfo"] = cpuinfo
    assert hardware.cpu_dtype() == "float32"


def test_how_fast_memory_is_read_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "_MEASURED_BYTES", 2**24)
    assert hardware.memory_read_per_s() > 2**24


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
    assert [each.index for each in hardware.gpus(visible)] == indexes
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert [each.index for each in hardware.gpus()] == indexes


def shown() -> list[str]:
    page = metrics.engine_exposition().decode()
    return [line for line in page.splitlines() if line.startswith("gateway_engine_gpu_")]


def test_metrics_tell_of_the_used_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, *TWO)
    hardware.show_gpus(1)
    assert shown() == [
        'gateway_engine_gpu_busy_ratio{device="0",engine="default"} 0.93',
        'gateway_engine_gpu_memory_used_bytes{device="0",engine="default"} 2.147483648e+10',
        'gateway_engine_gpu_memory_bytes{device="0",engine="default"} 8.589934592e+10',
    ]
    # The gateway's own process does not tell of them as well.
    assert "gateway_engine_gpu" not in metrics.exposition().decode()


def test_what_the_library_does_not_say_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, *TWO)
    hardware.show_gpus(2)
    assert not any('busy_ratio{device="1"' in line for line in shown())
    installed(monkeypatch)
    hardware.show_gpus(2)
    assert shown() == []


def test_without_a_driver_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_library() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    hardware._answers.cache_clear()
    monkeypatch.setattr(pynvml, "nvmlInit", no_library)
    assert (hardware.gpus(), hardware.driver_version(), hardware.memory_mib()) == ([], None, None)
    hardware.show_gpus(1)
    assert shown() == []
    hardware._answers.cache_clear()


def test_what_the_memory_of_a_gpu_gives_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, Device("GPU-1"))
    [device] = hardware.gpus()
    # An H100's: NVIDIA says 3.35 TB/s.
    assert device.read_per_s() == pytest.approx(3.35e12, rel=0.01)
