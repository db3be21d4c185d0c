"""The messages between the parent and one of its workers.

Knows: what each may say. Must not know: sockets, processes.
"""

from __future__ import annotations

from msgspec import Struct

from gateway.domain.engine import EngineHealth, EngineProfile
from gateway.engines.host.messages import PROTOCOL as ENGINE_PROTOCOL
from gateway.engines.host.messages import GetMetrics, Metrics
from gateway.server.http.readiness import Whole

# How workers are spoken to, and how engines are. The first is raised with every change of a message below, but
# `Refused` and `Drain`, which every version understands, and when workers of two versions could not both read what
# is in their store.
PROTOCOLS = (4, ENGINE_PROTOCOL)


class EngineIs(Struct, frozen=True, tag="engine_is", array_like=True):
    """How the engine is, and where it is reached."""

    health: EngineHealth
    # Path of the Unix socket where it is reached. None while there is none.
    path: str | None = None
    # Its name, where there are several, and what it can do, also while it is being started again; None until that
    # is known.
    name: str = ""
    profile: EngineProfile | None = None


class Drain(Struct, frozen=True, tag="drain", array_like=True):
    """Finish what was accepted, admit no more, and end. A second time: end without finishing it."""


class LogFrom(Struct, frozen=True, tag="log_from", array_like=True):
    """Log what is at least so severe."""

    level: str


class Serves(Struct, frozen=True, tag="serves", array_like=True):
    """This worker accepts connections from now on."""


class Refused(Struct, frozen=True, tag="refused", array_like=True):
    """This worker cannot start: the sentence of its `StartupError`. It ends once it is told to `Drain`."""

    sentence: str


class Report(Struct, frozen=True, tag="report", array_like=True):
    """What this worker is doing: the answer to each `Whole`, by which the parent knows that it is not frozen."""

    running: int
    waiting: int
    # As of `Whole`.
    store: str = ""


# The parent sends `Whole` every second.
ToWorker = EngineIs | Whole | Drain | LogFrom | GetMetrics | Metrics
ToParent = Serves | Refused | Report | GetMetrics | Metrics
