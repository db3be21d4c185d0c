"""What the system says of the machine, and what is known where it says nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.engines.vllm import hardware


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
def test_a_processor_of_which_nothing_is_known_multiplies_what_all_do(
    says: dict[str, str], cpuinfo: str | None
) -> None:
    if cpuinfo is not None:
        says["/proc/cpuinfo"] = cpuinfo
    assert hardware.cpu_dtype() == "float32"


def test_how_fast_memory_is_read_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "_MEASURED_BYTES", 2**24)
    assert hardware.memory_read_per_s() > 2**24
