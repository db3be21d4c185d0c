"""What vLLM is told."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.engines.vllm import arguments as vllm_arguments
from gateway.engines.vllm import hardware
from gateway.engines.vllm.arguments import device_environment, engine_arguments, engine_environment, shares_memory
from gateway.engines.vllm.options import VllmOptions
from tests.usual import usual


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "gpu_present", lambda: True)
    monkeypatch.setattr(vllm_arguments, "_captures_mixed_steps", lambda arguments: True)


@pytest.fixture
def on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "gpu_present", lambda: False)


def options(**values: Any) -> VllmOptions:
    return usual(VllmOptions, model="/models/some", **values)


@pytest.mark.usefixtures("on_cpu")
def test_a_cpu_runs_without_compilation_in_small_blocks() -> None:
    arguments = engine_arguments(options())
    assert arguments["enforce_eager"] is True
    assert arguments["block_size"] == 32
    assert "gpu_memory_utilization" not in arguments
    assert "compilation_config" not in arguments
    assert engine_environment(options(kv_cache_gib=2.0))["VLLM_CPU_KVCACHE_SPACE"] == "2"


@pytest.mark.usefixtures("on_cpu")
def test_on_a_cpu_the_worker_is_a_process_apart() -> None:
    assert shares_memory(options())


@pytest.mark.usefixtures("on_gpu")
@pytest.mark.parametrize(
    ("extra", "shares"),
    [
        ({}, True),
        ({"distributed_executor_backend": "mp"}, True),
        ({"distributed_executor_backend": "uni"}, False),
        ({"distributed_executor_backend": None}, False),
        ({"distributed_executor_backend": None, "tensor_parallel_size": 2}, True),
        ({"distributed_executor_backend": None, "pipeline_parallel_size": 2}, True),
    ],
)
def test_gpu_executor_is_a_process_unless_chosen(extra: dict[str, Any], shares: bool) -> None:
    assert shares_memory(options(extra=extra)) is shares
    arguments = engine_arguments(options(extra=extra))
    assert arguments.get("distributed_executor_backend") == extra.get("distributed_executor_backend", "mp")


def test_cpu_device_overrides_the_environment() -> None:
    assert device_environment(options()) == {}
    assert device_environment(options(device="0-3")) == {"VLLM_CPU_OMP_THREADS_BIND": "0-3"}


@pytest.mark.usefixtures("on_gpu")
def test_a_device_is_a_gpu_where_there_are_any() -> None:
    assert device_environment(options(device="1")) == {"CUDA_VISIBLE_DEVICES": "1"}


@pytest.mark.usefixtures("on_gpu")
@pytest.mark.parametrize(
    ("given", "tokens", "compilation"),
    [
        ({"max_num_seqs": 64}, 1_024, {"cudagraph_mode": "FULL", "max_cudagraph_capture_size": 1_024}),
        # Room for a token of each sequence, and for prompts.
        ({"max_num_seqs": 800}, 1_600, {"cudagraph_mode": "FULL", "max_cudagraph_capture_size": 1_600}),
        # A very large step is not captured whole.
        (
            {"max_num_batched_tokens": 8_192},
            8_192,
            {"cudagraph_mode": "FULL", "max_cudagraph_capture_size": 2_048},
        ),
        # An operator who names a graph mode gets it and nothing else; other compilation settings are kept.
        (
            {"extra": {"compilation_config": {"cudagraph_mode": "PIECEWISE"}}},
            None,
            {"cudagraph_mode": "PIECEWISE"},
        ),
        (
            {"extra": {"compilation_config": {"mode": 3}}},
            1_024,
            {"cudagraph_mode": "FULL", "max_cudagraph_capture_size": 1_024, "mode": 3},
        ),
        # Eager mode is left to vllm; without compilation there is nothing to capture.
        (
            {"extra": {"enforce_eager": None}},
            1_024,
            {"cudagraph_mode": "FULL", "max_cudagraph_capture_size": 1_024},
        ),
        ({"enforce_eager": True}, None, None),
    ],
)
def test_every_step_fits_into_a_captured_graph(
    given: dict[str, Any], tokens: int | None, compilation: dict[str, Any] | None
) -> None:
    arguments = engine_arguments(options(**given))
    assert arguments.get("max_num_batched_tokens") == tokens
    assert arguments.get("compilation_config") == compilation
    assert "VLLM_CPU_KVCACHE_SPACE" not in engine_environment(options())


@pytest.mark.usefixtures("on_gpu")
@pytest.mark.parametrize(
    "extra",
    [
        {"max_cudagraph_capture_size": 256},
        {"cudagraph_capture_sizes": [1, 8, 64]},
        {"compilation_config": {"cudagraph_capture_sizes": [1, 8, 64]}},
        {"enable_chunked_prefill": False},
    ],
)
def test_operator_choice_of_graphs_is_left_alone(extra: dict[str, Any]) -> None:
    arguments = engine_arguments(options(extra=extra))
    assert extra.items() <= arguments.items()
    assert "max_num_batched_tokens" not in arguments
    assert "cudagraph_mode" not in arguments.get("compilation_config", {})


def test_attention_that_captures_decoding_only_is_left_to_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "gpu_present", lambda: True)
    monkeypatch.setattr(vllm_arguments, "_captures_mixed_steps", lambda arguments: False)
    arguments = engine_arguments(options())
    assert "compilation_config" not in arguments
    assert "max_num_batched_tokens" not in arguments


@pytest.mark.usefixtures("on_gpu")
def test_what_an_operator_adds_wins() -> None:
    assert engine_arguments(options(extra={"enable_prefix_caching": False}))["enable_prefix_caching"] is False
    assert "scheduling_policy" not in engine_arguments(options(extra={"scheduling_policy": None}))


@pytest.mark.usefixtures("on_cpu")
def test_a_folder_may_be_written_from_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ana")
    assert engine_arguments(usual(VllmOptions, model="~/models/a"))["model"] == "/home/ana/models/a"
    assert engine_arguments(usual(VllmOptions, model="acme/a"))["model"] == "acme/a"
