"""What the gateway and the process that hosts its engine say to each other.

Knows: the engine port's values. Must not know: sockets, processes.
"""

from __future__ import annotations

from msgspec import Struct

from gateway.domain.engine import EngineHealth, EngineProfile, TokenEvent, TranslationRequest
from gateway.domain.errors import EngineFailed, EngineUnavailable, GatewayError

__all__ = [
    "Aborted",
    "Asked",
    "Broken",
    "Generated",
    "Load",
    "Measured",
    "Started",
    "State",
    "Stop",
    "ToGateway",
    "ToHost",
    "Wanted",
    "broken",
    "error_of",
]


class Wanted(Struct, frozen=True, tag="wanted", array_like=True):
    """A generation is to begin. number: the gateway's, never used again."""

    number: int
    request: TranslationRequest


class Aborted(Struct, frozen=True, tag="aborted", array_like=True):
    """Nobody waits for this generation any more; it may be over."""

    number: int


class Asked(Struct, frozen=True, tag="asked", array_like=True):
    """The engine's own metrics, of these names or all; answered by `Measured` with this number."""

    number: int
    names: list[str]


class Stop(Struct, frozen=True, tag="stop", array_like=True):
    """Stop the engine and end. The other end of the socket does the same."""


class State(Struct, frozen=True, tag="state", array_like=True):
    """The engine's state changed. log_path: of its log, once there is one."""

    health: EngineHealth
    log_path: str | None = None


class Started(Struct, frozen=True, tag="started", array_like=True):
    """`start` returned; with `failed`, it raised `StartupError` with this sentence, and `trace` tells where."""

    failed: str | None = None
    trace: str = ""
    profile: EngineProfile | None = None
    max_running: int = 0


class Load(Struct, frozen=True, tag="load", array_like=True):
    """Sequences that run and wait in the engine."""

    running: int
    waiting: int


class Generated(Struct, frozen=True, tag="generated", array_like=True):
    """New output of a generation; with `finish`, the last."""

    number: int
    event: TokenEvent


class Broken(Struct, frozen=True, tag="broken", array_like=True):
    """A generation ended with an error. unavailable: it is the engine that is at fault, not the text."""

    number: int
    unavailable: bool
    message: str
    retry_after_ms: int | None = None


class Measured(Struct, frozen=True, tag="measured", array_like=True):
    """The engine's own metrics in Prometheus' text format."""

    number: int
    page: bytes


ToHost = Wanted | Aborted | Asked | Stop
ToGateway = State | Started | Load | Generated | Broken | Measured


def broken(number: int, error: GatewayError) -> Broken:
    """What is said of this error."""
    return Broken(number, isinstance(error, EngineUnavailable), error.message, error.retry_after_ms)


def error_of(broken: Broken) -> GatewayError:
    """The error that was spoken of."""
    if broken.unavailable:
        return EngineUnavailable(broken.message, retry_after_ms=broken.retry_after_ms)
    return EngineFailed(broken.message)
