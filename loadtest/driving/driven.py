"""One pass of lines, as the driver gives it back, and whether the driver, and not the system, was the limit.

Knows: what client processes say of themselves. Must not know: how they work.
"""

from __future__ import annotations

import statistics

from msgspec import Struct

from loadtest.trial.values import Closed, Delivered, Load, ProcessUse, Record

# A part of a core above which a process has no time to spare: what comes next to it waits.
_MOST_CPU = 0.85

# Late by no more than this is nothing that a reader, or a percentile that is shown, would notice.
_LEAST_LAG_MS = 10.0

# Of the latency that is measured.
_MOST_LAG = 0.05


class Driven(Struct, frozen=True):
    """One pass."""

    # Reading of `time.monotonic` from which seconds in records count.
    began_s: float
    # From there to the last record.
    elapsed_s: float
    records: list[Record]
    delivered: Delivered
    # An entry for each client process.
    clients: list[ProcessUse]
    # Whether the client process is part of the system.
    holds_engine: bool = False
    # When the first client process of a closed loop sent its last line; from then on fewer and fewer are in
    # flight. None in any other loop.
    ran_out_s: float | None = None


def bottleneck(driven: Driven, load: Load) -> str | None:
    """One sentence, if the clients could not keep up with what they measured; None if they could.

    They could not where one was late by more than 10 ms and by more than a twentieth of the median time to the
    first text (p99 of its lag), or used more than 85 % of a core. A client that holds the engine itself is part of
    the system: nothing is said of it.
    """
    if driven.holds_engine:
        return None
    first_ms = [(each.first_s - each.due_s) * 1000 for each in driven.records if each.first_s is not None]
    most_ms = max(_LEAST_LAG_MS, _MOST_LAG * statistics.median(first_ms) if first_ms else 0.0)
    lag_ms = max(each.lag_p99_ms for each in driven.clients)
    cpu = max(each.cpu_s / max(each.elapsed_s, 1e-9) for each in driven.clients)
    advice = "fewer at a time" if isinstance(load, Closed) else "a lower rate"
    if cpu > _MOST_CPU:
        return (
            f"The driver was the limit: a client process used {cpu:.0%} of a core (at most {_MOST_CPU:.0%}); take "
            f"more client processes, or {advice}."
        )
    if lag_ms > most_ms:
        return (
            f"The driver was the limit: a client process was late by {lag_ms:.1f} ms (p99; at most {most_ms:.1f} "
            f"ms); take more client processes, {advice}, or a machine that does less besides."
        )
    return None
