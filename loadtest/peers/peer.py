"""The systems that are compared.

Knows: which there are, and what each is started with. Must not know: how any of them is measured.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gateway.domain.errors import GatewayError
from gateway.engine import engine_options
from gateway.engines.prompting import model_config
from loadtest.commands import Say
from loadtest.options import check, merged, shown, with_share
from loadtest.results import LoadtestError
from loadtest.systems.gateway import gateway
from loadtest.systems.prompting import gateway_settings
from loadtest.systems.running import Running
from loadtest.systems.server import free_port
from loadtest.systems.vllm_serve import vllm_serve
from loadtest.trial.values import EngineInProcess, WebSocketGateway

GATEWAY, DIRECT = "gateway", "asyncllm"
SERVE, SERVE_TUNED, SERVE_WORKERS = "vllm-serve", "vllm-serve-tuned", "vllm-serve-workers"

NAMES = (GATEWAY, DIRECT, SERVE, SERVE_TUNED, SERVE_WORKERS)


class Peer(Struct, frozen=True):
    """One system."""

    name: str
    # Through what the lines reach the engine.
    route: Literal["gateway", "asyncllm", "vllm-serve"]
    # A gateway's, sections nested.
    settings: dict[str, Any]
    # For vLLM's server; see `vllm_serve`.
    tuned: bool = False
    arguments: dict[str, Any] = {}
    # Where the gateway listens that shares its engine with the peer that is called directly; the same for both.
    port: int | None = None
    # For a gateway with an engine of its own; None: one process, without a store.
    workers: int | None = None


class _Variant(Struct, frozen=True, forbid_unknown_fields=True):
    """What a file of variants says of one: settings are merged into the gateway's. workers: of a gateway."""

    route: Literal["gateway", "asyncllm", "vllm-serve"] = "gateway"
    engine: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    workers: int | None = None


def named(names: Sequence[str], settings: Mapping[str, Any], workers: int) -> list[Peer]:
    """Peers of these names, the gateway among them. workers: front-end processes of `vllm-serve-workers`.

    Raises `LoadtestError` for one that cannot have the engine.
    """
    own = dict(settings)
    known = {
        GATEWAY: Peer(GATEWAY, "gateway", own),
        DIRECT: Peer(DIRECT, "asyncllm", own),
        SERVE: Peer(SERVE, "vllm-serve", own),
        SERVE_TUNED: Peer(SERVE_TUNED, "vllm-serve", own, tuned=True),
        SERVE_WORKERS: Peer(SERVE_WORKERS, "vllm-serve", own, True, {"api_server_count": workers}),
    }
    # What the others are compared with comes first.
    made = [known[name] for name in dict.fromkeys((GATEWAY, *names))]
    _check_engine(made)
    return made


def variants(file: Path, settings: Mapping[str, Any]) -> list[Peer]:
    """Further peers: `{"name": {"engine": {…}, "route": "gateway"}}`, each with other settings than the gateway.

    Raises `LoadtestError` for a file or settings that cannot be used.
    """
    try:
        told = msgspec.json.decode(file.read_bytes(), type=dict[str, _Variant])
    except OSError as error:
        raise LoadtestError(f"{file} cannot be read: {error.strerror}.") from None
    except msgspec.DecodeError as error:
        raise LoadtestError(f"{file} names no variants: {error}.") from None
    made: list[Peer] = []
    for name, variant in told.items():
        if name in NAMES:
            raise LoadtestError(f"{file}: {name!r} is the name of a peer that is no variant.")
        if variant.workers is not None and variant.route != GATEWAY:
            raise LoadtestError(f"{file}: {name!r} is not a gateway, and only a gateway has workers.")
        own = merged(merged(settings, {"engine": variant.engine}), variant.settings)
        check(own)
        made.append(Peer(name, variant.route, own, tuned=True, workers=variant.workers))
    _check_engine(made)
    return made


def shared(peers: Sequence[Peer], gpu_mib: float | None) -> list[Peer]:
    """The same, each with its share of the GPU's memory. gpu_mib: all of it; None without a GPU.

    The gateway and the engine called directly share one engine: two that were started alike differ by more than
    what the gateway costs.
    """
    names = {peer.name for peer in peers}
    port = free_port() if {GATEWAY, DIRECT} <= names else None
    engines = len(peers) - (port is not None)
    return [
        replace(
            peer,
            settings=with_share(peer.settings, engines, gpu_mib),
            port=port if peer.name in (GATEWAY, DIRECT) else None,
        )
        for peer in peers
    ]


def takes_context(settings: Mapping[str, Any]) -> bool:
    """Whether a gateway with these settings puts what was said before into its prompts, and that costs anything.

    Raises `LoadtestError` for a model that is not there.
    """
    known = gateway_settings(dict(settings))
    if known.engine.kind == "simulated":
        return False
    options = engine_options(known)
    try:
        model = model_config.read_config(options.model)
        return "context" in model_config.find_family(model or {}, options.model, options.family).options
    except GatewayError as error:
        raise LoadtestError(error.message) from None


def system(peer: Peer, say: Say) -> AbstractAsyncContextManager[Running]:
    """The peer, ready for clients."""
    match peer.route:
        case "gateway" if peer.port is not None:
            return _served(peer, peer.port)
        case "gateway":
            return gateway(peer.settings, say, name=peer.name, workers=peer.workers)
        case "asyncllm":
            return _direct(peer)
        case "vllm-serve":
            return vllm_serve(peer.settings, say, arguments=peer.arguments, tuned=peer.tuned, name=peer.name)


@asynccontextmanager
async def _direct(peer: Peer) -> AsyncIterator[Running]:
    # Its engine is built by the client that calls it.
    yield Running(peer.name, EngineInProcess(peer.settings, peer.port), shown(peer.settings))


@asynccontextmanager
async def _served(peer: Peer, port: int) -> AsyncIterator[Running]:
    # The client that holds its engine starts it.
    url = f"http://127.0.0.1:{port}"
    yield Running(peer.name, WebSocketGateway(url), shown(peer.settings), metrics_url=f"{url}/metrics")


def _check_engine(peers: Sequence[Peer]) -> None:
    for peer in peers:
        if peer.route == "vllm-serve" and peer.settings.get("engine", {}).get("kind") == "simulated":
            raise LoadtestError(f"{peer.name} has no simulated engine; choose among {GATEWAY},{DIRECT} (--peers).")
