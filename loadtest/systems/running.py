"""A system that takes requests.

Knows: where it is and what it runs with. Must not know: how it was started, or what is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from loadtest.trial.values import Address

__all__ = ["Running"]


@dataclass(frozen=True)
class Running:
    """A system that takes requests."""

    # For tables.
    name: str
    address: Address
    # What matters of its configuration.
    settings: dict[str, Any]
    # The process that answers; None where that is a client process itself, or belongs to somebody else.
    pid: int | None = None
    # Where it shows Prometheus' text.
    metrics_url: str | None = None
    # The process in which a gateway's engine runs, where that is not below the gateway's.
    host: int | None = None
