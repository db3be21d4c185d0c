"""How long it took from a fault to the return of those who suffered it.

Knows: records and times. Must not know: promises (`ledger`), where records come from.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from loadtest.soak.faults import FaultKind, Suffered
from loadtest.soak.records import Joined, Record, seat_of

__all__ = ["with_returns"]

# Faults of single clients.
_LIGHT = {FaultKind.ABORT, FaultKind.HALF_OPEN, FaultKind.ABSENCE, FaultKind.LONG_ABSENCE}

# What joins later than that after a client process went on is a newcomer.
_RETURN_S = 60.0


def with_returns(
    faults: Iterable[Suffered], records: Iterable[Record], began_at: float, process_of: Callable[[int], int]
) -> list[Suffered]:
    """The same faults, with the time from the end of the pause to the return of who suffered.

    Of a client process that is the return of its last client. A fault whose clients went on without losing their
    connection, or left, has none.
    """
    joined: defaultdict[int, list[float]] = defaultdict(list)
    for record in records:
        if isinstance(record, Joined):
            joined[seat_of(record.client)].append(record.at - began_at)
    told: list[Suffered] = []
    for fault in faults:
        if fault.kind in _LIGHT:
            returned = _next(joined[fault.target], fault.began_s)
            if returned is not None:
                # A client may come back in its pause, on another connection than the one that was broken.
                since_s = max(returned - fault.began_s - fault.pause_s, 0.0)
                fault = replace(fault, recovered_s=round(since_s, 2))
        elif fault.kind is FaultKind.CLIENT_STOP:
            went_on_s = fault.began_s + fault.pause_s
            seats = [seat for seat in joined if process_of(seat) == fault.target]
            returns = [at_s for seat in seats if (at_s := _next(joined[seat], went_on_s)) is not None]
            soon = [at_s - went_on_s for at_s in returns if at_s - went_on_s < _RETURN_S]
            fault = replace(fault, recovered_s=round(max(soon), 2) if soon else None)
        told.append(fault)
    return told


def _next(times: Sequence[float], since: float) -> float | None:
    number = bisect_left(times, since)
    return times[number] if number < len(times) else None
