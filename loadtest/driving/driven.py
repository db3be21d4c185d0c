"""One pass of lines, as the driver gives it back. Must not know how they were said."""

from __future__ import annotations

from msgspec import Struct

from loadtest.trial.values import Delivered, ProcessUse, Record

__all__ = ["Driven"]


class Driven(Struct, frozen=True):
    """began_s: reading of `time.monotonic` from which seconds in records count. elapsed_s: from there to the last
    record. clients: an entry for each client process. holds_engine: the client process is part of the system.
    ran_out_s: until when as many were in flight as a closed loop asks for: the first client process sent its last
    line then; null in any other loop."""

    began_s: float
    elapsed_s: float
    records: list[Record]
    delivered: Delivered
    clients: list[ProcessUse]
    holds_engine: bool = False
    ran_out_s: float | None = None
