"""Which partials give up their places: nobody waits behind what may still change.

Knows: what runs on which lane, which finals wait for which lanes. Must not know: how a place is given up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gateway.translation.scheduling.lanes import Lane
from gateway.translation.scheduling.lines import Line
from gateway.translation.scheduling.ticket import Ticket


def to_preempt(lanes: Iterable[Lane], lines: Iterable[Line]) -> list[Ticket]:
    """The partials whose places are needed: of finals that wait, and of what waits inside a lane.

    The youngest have the least to lose. Places that are being given up already are counted once.
    """
    if not any([line.queue.finals for line in lines]) and not any([lane.overflow for lane in lanes]):
        return []
    running = {lane.name: lane for lane in lanes if lane.running}
    needs = [(frozenset({lane.name}), lane.overflow) for lane in running.values()]
    needs += [(line.route, line.queue.finals) for line in lines]
    partials = {name: lane.partials() for name, lane in running.items()}
    ending = {name: sum(ticket.ending for ticket in there) for name, there in partials.items()}
    chosen: list[Ticket] = []
    for route, count in needs:
        names = [name for name in running if name in route]
        for name in names:
            free = min(count, ending[name])
            ending[name] -= free
            count -= free
        chosen += _youngest([ticket for name in names for ticket in partials[name]], chosen, count)
    return chosen


def _youngest(partials: Iterable[Ticket], but: Collection[Ticket], count: int) -> list[Ticket]:
    left = [ticket for ticket in partials if not ticket.ending and ticket not in but]
    return sorted(left, key=lambda ticket: ticket.serial, reverse=True)[: max(0, count)]
