"""Several processes that ask one engine of vLLM, as `vllm serve --api-server-count` has them.

The first starts the engine's process and tells it of all; each of the others attaches itself.
Knows: where vLLM 0.26 and 0.32 define this. Must not know: what they ask for, how they are started.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from gateway.engines.vllm.api import VllmApi


class Attachment(Struct, frozen=True):
    """What a further process needs in order to ask an engine. Can be pickled."""

    # Its number, from 1, and how many there are; the one that starts the engine is number 0.
    index: int
    count: int
    # What its sockets' paths begin with, in a private folder.
    at: str
    # The arguments that the engine is started with.
    arguments: dict[str, Any]
    # Where vLLM's log goes.
    log: Path

    @property
    def addresses(self) -> dict[str, str]:
        """By vLLM's names. The engine connects to them as soon as they are there."""
        return {"input_address": f"ipc://{self.at}-in", "output_address": f"ipc://{self.at}-out"}


def why_not(api: VllmApi, arguments: Mapping[str, Any]) -> str:
    """Why an engine with these arguments cannot have several clients; empty: it can."""
    if arguments.get("data_parallel_size", 1) != 1:
        return "its engine is several ones (data_parallel_size)"
    try:
        from vllm.v1.engine.core_client import launch_core_engines
        from vllm.v1.engine.utils import EngineZmqAddresses

        takes = inspect.signature(api.AsyncLLM.from_vllm_config).parameters
        launches = inspect.signature(launch_core_engines).parameters
        names = {"inputs", "outputs"} - inspect.signature(EngineZmqAddresses).parameters.keys()
        names |= {"client_addresses", "client_count", "client_index"} - takes.keys()
        names |= {"addresses"} - launches.keys()
    except (ImportError, AttributeError) as error:
        return f"this version of vLLM has another interface ({error})"
    return f"this version of vLLM does not know {', '.join(sorted(names))}" if names else ""


@contextlib.contextmanager
def launching_for(others: Sequence[Attachment]) -> Iterator[None]:
    """An engine that is started in the context has these clients too."""
    from vllm.v1.engine import core_client

    launch = core_client.launch_core_engines

    def launch_for_all(*given: Any, **named: Any) -> Any:
        addresses = inspect.signature(launch).bind(*given, **named).arguments["addresses"]
        addresses.inputs += [each.addresses["input_address"] for each in others]
        addresses.outputs += [each.addresses["output_address"] for each in others]
        return launch(*given, **named)

    core_client.launch_core_engines = launch_for_all
    try:
        yield
    finally:
        core_client.launch_core_engines = launch


def attached(api: VllmApi, attachment: Attachment, stat_loggers: list[Any]) -> Any:
    """An `AsyncLLM` that asks the engine of another process; blocks until that is ready."""
    return api.AsyncLLM.from_vllm_config(
        api.AsyncEngineArgs(**attachment.arguments).create_engine_config(),
        stat_loggers=stat_loggers,
        client_addresses=attachment.addresses,
        client_count=attachment.count,
        client_index=attachment.index,
    )
