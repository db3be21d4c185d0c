"""How long things took: from a word to its readers, and from a fault to the client's return.

Knows: records and times. Must not know: promises (`ledger`), where records come from.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from loadtest.results import nearest_rank
from loadtest.soak.faults import FaultKind, Suffered
from loadtest.soak.records import Accepted, Got, Joined, Kind, Lost, Record, Said, seat_of
from loadtest.soak.result import LatencyRow

__all__ = ["Reading", "latency_rows", "readings", "with_returns"]

# Faults of single clients.
_LIGHT = {FaultKind.ABORT, FaultKind.HALF_OPEN, FaultKind.ABSENCE, FaultKind.LONG_ABSENCE}

# An engine that died leaves a queue behind; how long after a fault of everybody nothing counts as calm.
_SETTLE_S = 15.0

# What joins later than that after a client process went on is a newcomer.
_RETURN_S = 60.0

# Before a client process is stopped: what is compared with while it is.
_BEFORE_S = 60.0


class Reading(Struct, frozen=True):
    """A translation that reached a reader who was connected from when it was said until then, as its speaker was
    until it was accepted.

    said_s: after the load began. first_ms: to its first text; null where the final came at once.
    """

    said_s: float
    speaker: str
    reader: str
    first_ms: float | None
    total_ms: float


def readings(records: Iterable[Record], began_at: float) -> list[Reading]:
    """Every translation that went straight through. Ids of utterances are unique over all clients."""
    said: dict[str, Said] = {}
    accepted: dict[str, float] = {}
    got: list[Got] = []
    # Since when a client is connected, and until when it was, in the order of time.
    connected: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for record in records:
        match record:
            case Said(utterance=utterance):
                said[utterance] = record
            case Joined(at=at, client=client):
                connected[client].append((at, math.inf))
            case Lost(at=at, client=client) if connected[client]:
                connected[client][-1] = (connected[client][-1][0], at)
            case Accepted(at=at, utterance=utterance):
                accepted.setdefault(utterance, at)
            case Got(kind=Kind.FINAL):
                got.append(record)
    found: list[Reading] = []
    for each in got:
        word = said.get(each.utterance)
        if word is None or not _throughout(connected[each.client], word.at, each.at):
            continue
        if not _throughout(connected[word.client], word.at, accepted.get(each.utterance, math.inf)):
            continue
        first_ms = round((each.first_at - word.at) * 1000, 1) if each.first_at else None
        total_ms = round((each.at - word.at) * 1000, 1)
        found.append(Reading(round(word.at - began_at, 3), word.client, each.client, first_ms, total_ms))
    return found


def _throughout(spans: Sequence[tuple[float, float]], since: float, until: float) -> bool:
    # The last span that begins before `since`.
    number = bisect_left(spans, (since, 0.0)) - 1
    return number >= 0 and until <= spans[number][1]


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


def latency_rows(
    found: Sequence[Reading], faults: Sequence[Suffered], process_of: Callable[[int], int]
) -> list[LatencyRow]:
    """All readings, those in calm, and those around each kind of fault of everybody.

    process_of: the client process of a seat. Readers and speakers of those that are stopped do not count.
    """
    found = [reading for reading in found if not _processes(reading, process_of) - {0}]
    heavy = [fault for fault in faults if fault.kind not in _LIGHT]

    def calm(reading: Reading) -> bool:
        return not any(fault.began_s - _SETTLE_S <= reading.said_s <= fault.ended_s + _SETTLE_S for fault in heavy)

    rows = [_row("whole run", found), _row("calm: no fault of everybody near", [r for r in found if calm(r)])]
    for kind in (FaultKind.ENGINE_KILL, FaultKind.ENGINE_STOP, FaultKind.RESTART):
        spans = [(fault.began_s - 1, fault.ended_s) for fault in heavy if fault.kind is kind]
        if spans:
            rows.append(_row(f"{kind.value}: said until it was well again", _within(found, spans)))
    stops = [fault for fault in heavy if fault.kind is FaultKind.CLIENT_STOP]
    if stops:
        before: list[Reading] = []
        during: list[Reading] = []
        for stop in stops:
            before += _within(found, [(stop.began_s - _BEFORE_S, stop.began_s)])
            during += _within(found, [(stop.began_s, stop.began_s + stop.pause_s)])
        rows.append(_row(f"others, {_BEFORE_S:.0f} s before a client process was stopped", before))
        rows.append(_row("others, while it was stopped", during))
    return rows


def _processes(reading: Reading, process_of: Callable[[int], int]) -> set[int]:
    return {process_of(seat_of(reading.reader)), process_of(seat_of(reading.speaker))}


def _within(found: Iterable[Reading], spans: Sequence[tuple[float, float]]) -> list[Reading]:
    return [reading for reading in found if any(since <= reading.said_s <= until for since, until in spans)]


def _row(name: str, found: Sequence[Reading]) -> LatencyRow:
    first = [reading.first_ms for reading in found if reading.first_ms is not None]
    total = [reading.total_ms for reading in found]
    return LatencyRow(
        name=name,
        readings=len(found),
        first_p50=nearest_rank(first, 0.5) if first else None,
        first_p99=nearest_rank(first, 0.99) if first else None,
        total_p50=nearest_rank(total, 0.5) if total else None,
        total_p99=nearest_rank(total, 0.99) if total else None,
        total_max=max(total, default=None),
    )
