"""Checks shared memory before a model is loaded, and explains to the operator why loading failed.

Knows: the machine's shared memory, vLLM's error messages. Must not know: how an engine is started.
"""

from __future__ import annotations

import re
from pathlib import Path

from gateway.domain.errors import StartupError
from gateway.engines.vllm import hardware

# vLLM and its workers talk through queues in shared memory. It makes one of 160 MiB, then others of 240 MiB and a
# few bytes, and each time wants so much to be free. Little of them is ever touched, so there is room for all.
_QUEUES_MIB = 241
_ERROR_LINE = re.compile(r"(?:^|\s)(?:[\w.]*(?:Error|Exception)): (?P<text>.+)$", re.MULTILINE)
# Pydantic's message for an invalid argument.
_VALIDATION = re.compile(r"Value error, (?P<text>.+?)(?: \[type=|\n|$)")
NO_GPU = (
    "For vLLM's CUDA build there is no GPU: install NVIDIA's driver, pass the GPUs on to the container "
    "(docker run --gpus all), or use the CPU build (ENGINE=cpu)."
)

_ADVICE = (
    (r"device string must not be empty|failed to infer device type", NO_GPU),
    (
        r"out of memory|no available memory|free memory|not enough memory|kv cache",
        "Lower --gpu-memory-utilization or --max-model-len, free the device, or choose a smaller model.",
    ),
    (
        r"peer closed|connection (reset|refused|aborted)|timed out",
        "The connection to the hub was lost: start again; what is here already is not downloaded again.",
    ),
    (
        r"not a local folder|not a valid model identifier|repository not found|offline",
        "Give a folder or check the name.",
    ),
)


def check_shared_memory() -> None:
    """Raises `StartupError` when the queues between vLLM and its workers do not fit into /dev/shm."""
    available_mib = hardware.available_shared_mib()
    if available_mib is not None and available_mib < _QUEUES_MIB:
        raise StartupError(
            f"Too little shared memory: the engine needs {_QUEUES_MIB} MiB in /dev/shm and {available_mib:.0f} "
            "MiB are free; start the container with --shm-size 1g, or free some if this is not a container."
        )


def refusal(error: Exception, model: str, log_path: Path | None) -> StartupError:
    """The error for the operator, with one sentence taken from vLLM's error or from the engine's log."""
    if isinstance(error, StartupError):
        return error
    cause = str(error) or type(error).__name__
    if "Engine core initialization failed" in cause:
        log = log_path.read_text(errors="replace") if log_path else ""
        told = [match.group("text").strip() for match in _ERROR_LINE.finditer(log)]
        cause = next((text for text in reversed(told) if "initialization failed" not in text), cause)
    elif invalid := _VALIDATION.search(cause):
        cause = invalid.group("text")
    first, *rest = cause.strip().splitlines()
    # A first line such as "Validation failed:" needs the second line.
    cause = f"{first} {rest[0].strip()}" if rest and first.endswith(":") else first
    for pattern, advice in _ADVICE:
        if re.search(pattern, cause, re.IGNORECASE):
            cause = f"{cause.rstrip('.')}. {advice}"
            break
    log = f" (engine log: {log_path})" if log_path else ""
    return StartupError(f"The model {model} could not be loaded: {cause}{log}")
