"""One pass of lines, as the driver gives it back. Must not know how they were said."""

from __future__ import annotations

from msgspec import Struct

from loadtest.trial.values import Delivered, ProcessUse, Record

__all__ = ["Driven"]


class Driven(Struct, frozen=True):
    """began_s: reading of `time.monotonic` from which seconds in records count. elapsed_s: from there to the last
    record. clients: an entry for each client process. holds_engine: the client process is part of the system."""

    began_s: float
    elapsed_s: float
    records: list[Record]
    delivered: Delivered
    clients: list[ProcessUse]
    holds_engine: bool = False
