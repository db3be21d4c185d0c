"""Makes vLLM's engine arguments and environment variables from the options.

Knows: vLLM's names, on 0.26 (CUDA) and 0.32 (CPU), and which settings suit many short requests.
Must not know: generations, tokenizers. vLLM is imported only on a GPU, to find out about its attention backend.
"""

from __future__ import annotations

import logging
import math
import os
from pathlib import Path
from typing import Any

from gateway.engines.vllm import hardware
from gateway.engines.vllm.options import VllmOptions, VllmSettings

_log = logging.getLogger(__name__)

# Most tokens of a step when all steps run inside captured graphs. With more tokens, each step takes longer, and so
# does every next token. With fewer, prompts wait for one another. Measured: docs/tuning.md.
_STEP_TOKENS = 1_024

# Largest captured step. Capturing costs memory and time for each size; larger steps run well without a graph.
_MOST_CAPTURED_TOKENS = 2_048

# The model runs in a process of its own, so that the next step is scheduled while one runs. In one process, vLLM's
# default on one GPU, the two wait for each other, and the GPU for both. Measured: docs/tuning.md.
_GPU_EXECUTOR = "mp"

# Engine arguments and entries of `compilation_config` that decide which steps are captured.
_GRAPH_ARGUMENTS = {
    "cudagraph_mode",
    "cudagraph_capture_sizes",
    "max_cudagraph_capture_size",
    "optimization_level",
}


def engine_environment(options: VllmOptions) -> dict[str, str]:
    """Environment variables for vLLM. The caller keeps the value of those that are set already."""
    environment = {
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "INFO",
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
        "TOKENIZERS_PARALLELISM": "false",
    }
    if not hardware.gpu_present():
        environment["VLLM_CPU_KVCACHE_SPACE"] = str(max(1, round(options.kv_cache_gib)))
        if _eager(options):
            # Even in eager mode some functions use torch.compile, which takes half a minute at first use.
            environment["TORCHDYNAMO_DISABLE"] = "1"
    if Path(options.model).expanduser().is_dir():
        environment |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    return environment


def gpus_used(options: VllmSettings) -> int:
    """How many GPUs the engine runs on, where it runs on GPUs."""
    parallel = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
    return math.prod(int(options.extra.get(name, 1)) for name in parallel)


def device_environment(options: VllmOptions) -> dict[str, str]:
    """Environment variables that name the device, whatever they are set to already."""
    if options.device is None:
        return {}
    return {"CUDA_VISIBLE_DEVICES" if hardware.gpu_present() else "VLLM_CPU_OMP_THREADS_BIND": options.device}


def shares_memory(options: VllmOptions) -> bool:
    """Whether vLLM talks to its workers through shared memory, as separate processes."""
    extra = options.extra
    several = any(extra.get(name, 1) != 1 for name in ("tensor_parallel_size", "pipeline_parallel_size"))
    apart = extra.get("distributed_executor_backend", _GPU_EXECUTOR) == "mp"
    return several or apart or not hardware.gpu_present()


def engine_arguments(options: VllmOptions) -> dict[str, Any]:
    """The arguments for `AsyncEngineArgs` or `EngineArgs`. On a GPU this imports vLLM, which takes seconds."""
    on_cpu = not hardware.gpu_present()
    arguments: dict[str, Any] = {
        "model": os.path.expanduser(options.model),
        "dtype": hardware.cpu_dtype() if options.dtype == "auto" and on_cpu else options.dtype,
        "max_num_seqs": options.max_num_seqs,
        "max_model_len": options.max_model_len,
        "max_num_batched_tokens": options.max_num_batched_tokens,
        "enforce_eager": _eager(options),
        "enable_prefix_caching": True,
        "scheduling_policy": "priority",
        "trust_remote_code": False,
    }
    if on_cpu:
        # The prefix cache finds whole blocks only, and most prompts are shorter than vLLM's default of 128 tokens.
        arguments["block_size"] = 32
    else:
        arguments["gpu_memory_utilization"] = options.gpu_memory_utilization
        arguments["distributed_executor_backend"] = _GPU_EXECUTOR
    arguments |= dict(options.extra)
    arguments = {name: value for name, value in arguments.items() if value is not None}
    return arguments if on_cpu else _with_graphs(arguments)


def _eager(options: VllmOptions) -> bool:
    return not hardware.gpu_present() if options.enforce_eager is None else options.enforce_eager


def _with_graphs(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments, extended so that every step runs inside a captured graph if the attention backend allows it.

    Utterances are short, so prompts join decoding sequences at nearly every step. By default vLLM runs such mixed
    steps outside full graphs and launches their kernels one by one, and the GPU waits.
    """
    compilation = arguments.get("compilation_config", {})
    if arguments.get("enforce_eager") or not isinstance(compilation, dict):
        return arguments
    # If the operator sets one of these, choose none of them: they must fit together, or vLLM refuses them.
    chosen = arguments.keys() | compilation.keys()
    if not chosen.isdisjoint(_GRAPH_ARGUMENTS) or arguments.get("enable_chunked_prefill") is False:
        return arguments
    if not _captures_mixed_steps(arguments):
        return arguments
    # A step larger than the largest captured size would run outside a graph.
    tokens = arguments.get("max_num_batched_tokens") or max(_STEP_TOKENS, 2 * arguments["max_num_seqs"])
    captured = min(tokens, _MOST_CAPTURED_TOKENS)
    return arguments | {
        "max_num_batched_tokens": tokens,
        "compilation_config": {"cudagraph_mode": "FULL", "max_cudagraph_capture_size": captured, **compilation},
    }


def _captures_mixed_steps(arguments: dict[str, Any]) -> bool:
    """Whether vLLM's attention backend can be captured for mixed steps of prompts and decoding."""
    try:
        from vllm.config import set_current_vllm_config
        from vllm.engine.arg_utils import EngineArgs
        from vllm.v1.attention.backend import AttentionCGSupport
        from vllm.v1.attention.selector import get_attn_backend

        config = EngineArgs(**arguments).create_engine_config()
        with set_current_vllm_config(config):
            backend = get_attn_backend(
                config.model_config.get_head_size(), config.model_config.dtype, config.cache_config.cache_dtype
            )
            # For the relevant backends the support does not depend on the cache.
            support = backend.get_builder_cls().get_cudagraph_support(config, None)
    except Exception as error:
        # If the arguments are wrong, building the engine fails with the same error, which is reported then.
        _log.warning(
            "vLLM's attention backend is not known; vLLM's default graphs are used, which may be slower (%s: %s)",
            type(error).__name__,
            error,
        )
        return False
    _log.info("attention: %s, graphs: %s", backend.get_name(), support.name)
    return bool(support is AttentionCGSupport.ALWAYS)
