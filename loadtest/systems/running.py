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
    """name: for tables. settings: of its configuration, what matters. pid: of the process that answers; null where
    it is a client process itself, or belongs to somebody else. metrics_url: Prometheus' text. host: of the process
    in which a gateway's engine runs, where that is not below the gateway's."""

    name: str
    address: Address
    settings: dict[str, Any]
    pid: int | None = None
    metrics_url: str | None = None
    host: int | None = None
