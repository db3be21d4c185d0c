"""What keeps a model from being loaded is said before it is tried."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest

from gateway.domain.errors import StartupError
from gateway.engines.vllm import hardware, preflight


def has_shared(monkeypatch: pytest.MonkeyPatch, free_mib: float) -> None:
    """The machine has so much shared memory."""
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=int(free_mib * 2**20)))


def test_shared_memory_of_a_container_that_was_given_none(monkeypatch: pytest.MonkeyPatch) -> None:
    has_shared(monkeypatch, 64)
    with pytest.raises(StartupError) as refused:
        preflight.check_shared_memory()
    assert refused.value.message == (
        "Too little shared memory: the engine needs 241 MiB in /dev/shm and 64 MiB are free; "
        "start the container with --shm-size 1g, or free some if this is not a container."
    )


@pytest.mark.parametrize(("free_mib", "enough"), [(240, False), (241, True), (1024, True)])
def test_shared_memory_has_to_hold_the_largest_queue(
    monkeypatch: pytest.MonkeyPatch, free_mib: float, enough: bool
) -> None:
    has_shared(monkeypatch, free_mib)
    if enough:
        preflight.check_shared_memory()
    else:
        with pytest.raises(StartupError, match="Too little shared memory"):
            preflight.check_shared_memory()


def test_what_vllm_says_without_a_gpu_is_explained() -> None:
    # vLLM 0.32, in a container that was started without `--gpus all`.
    refused = preflight.refusal(RuntimeError("Device string must not be empty"), "/model", None)
    assert refused.message.startswith("The model /model could not be loaded: Device string must not be empty. For")
    assert "docker run --gpus all" in refused.message


def test_missing_dev_shm_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_there(path: str) -> None:
        raise FileNotFoundError(path)

    monkeypatch.setattr(shutil, "disk_usage", not_there)
    assert hardware.available_shared_mib() is None
    preflight.check_shared_memory()
