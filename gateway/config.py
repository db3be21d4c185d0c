"""Every setting, its default and where it may come from; read by `app` and `cli` alone.

Order, the later wins: defaults here, a TOML file, environment variables (`GATEWAY__PORT`,
`GATEWAY__ENGINE__MAX_NUM_SEQS`), command line flags. An unknown or ill-typed key is a `StartupError` naming it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from gateway.engines.simulated import Script
from gateway.errors import StartupError
from gateway.messages import Limits

__all__ = ["BUNDLED_MODEL", "EngineSettings", "Settings", "load"]

BUNDLED_MODEL = Path(__file__).parent / "bundled_model"

# Two underscores: Kubernetes sets GATEWAY_PORT and the like by itself for a service that is named `gateway`.
_PREFIX = "GATEWAY__"


class EngineSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section `[engine]`.

    kind: `vllm`, or `simulated` for measuring the gateway itself.
    model: a folder or a name vLLM can resolve. family: prompt family; null detects it from the model.
    max_num_seqs: sequences in one batch. max_model_len: tokens of prompt and output; null takes the model's.
    dtype: `auto` chooses by the CPU's flags on a CPU. gpu_memory_utilization: share of the GPU's memory.
    kv_cache_gib: cache on a CPU, GiB. card_sampling: sample as the model card says instead of greedily.
    extra: any further vLLM engine arguments. script: the simulated engine's times and failures.
    """

    kind: Literal["vllm", "simulated"] = "vllm"
    model: str = str(BUNDLED_MODEL)
    family: str | None = None
    max_num_seqs: int = 16
    max_model_len: int | None = None
    max_num_batched_tokens: int | None = None
    dtype: str = "auto"
    gpu_memory_utilization: float = 0.9
    kv_cache_gib: float = 1.0
    enforce_eager: bool | None = None
    card_sampling: bool = False
    extra: dict[str, Any] = {}
    script: Script = Script()


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The top level.

    host, port: where to listen; port 0 takes a free one. max_sessions: WebSocket sessions held at once.
    max_waiting: translations that may wait for the engine before `overloaded`. outbox_bytes: unread output
    of one client before it is closed as a slow reader. drain_s: time to finish accepted work after SIGTERM.
    allowed_origins: web pages that may use the gateway besides its own, `https://meet.example.com`; `*` is any.
    limits: what one session may do, see `docs/protocol.md`. log_level: `debug`, `info`, `warning`, `error`.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    max_sessions: int = 10_000
    max_waiting: int = 1_000
    outbox_bytes: int = 1_048_576
    drain_s: float = 30.0
    allowed_origins: tuple[str, ...] = ()
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    engine: EngineSettings = EngineSettings()
    limits: Limits = Limits()


def load(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """The settings in force. `overrides` has dotted keys (`engine.model`). Raises `StartupError`."""
    tree: dict[str, Any] = _read(file) if file is not None else {}
    for name, value in (environment or {}).items():
        if name.startswith(_PREFIX):
            _set(tree, name.removeprefix(_PREFIX).lower().split("__"), value)
    for key, override in (overrides or {}).items():
        _set(tree, key.split("."), override)
    _refuse_unknown_limits(tree)
    try:
        settings = msgspec.convert(tree, Settings, strict=False)
    except msgspec.ValidationError as error:
        where = str(error).replace(" - at `$.", " in the setting `").replace("`$`", "the settings")
        raise StartupError(f"A setting cannot be used: {where}.") from None
    _check(settings)
    return settings


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except FileNotFoundError:
        raise StartupError(f"There is no configuration file {file}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise StartupError(f"The configuration file {file} cannot be read: {error}.") from None


def _set(tree: dict[str, Any], path: list[str], value: object) -> None:
    *parents, leaf = path
    for parent in parents:
        tree = tree.setdefault(parent, {})
        if not isinstance(tree, dict):
            raise StartupError(f"The setting {parent!r} is a section.")
    tree[leaf] = value


def _refuse_unknown_limits(tree: Mapping[str, Any]) -> None:
    # Limits travels over the wire, where unknown fields must be ignored; in a file they are typing errors.
    section = tree.get("limits", {})
    unknown = set(section) - set(Limits.__struct_fields__) if isinstance(section, dict) else set()
    if unknown:
        raise StartupError(f"There is no limit named {sorted(unknown)[0]!r}.")


def _check(settings: Settings) -> None:
    bounds: list[tuple[str, float, float, float]] = [
        ("port", settings.port, 0, 65_535),
        ("max_sessions", settings.max_sessions, 1, 10**7),
        ("max_waiting", settings.max_waiting, 0, 10**7),
        ("outbox_bytes", settings.outbox_bytes, 4_096, 2**32),
        ("drain_s", settings.drain_s, 0, 3_600),
        ("engine.max_num_seqs", settings.engine.max_num_seqs, 1, 4_096),
        ("engine.gpu_memory_utilization", settings.engine.gpu_memory_utilization, 0.01, 1.0),
        ("engine.kv_cache_gib", settings.engine.kv_cache_gib, 0.1, 4_096),
    ]
    bounds += [(f"limits.{name}", getattr(settings.limits, name), 1, 2**30) for name in Limits.__struct_fields__]
    for name, value, low, high in bounds:
        if not low <= value <= high:
            raise StartupError(f"The setting `{name}` is {value}; it has to be between {low} and {high}.")
