"""Chooses between lanes that could run a text: where its prompt's beginning is cached, or where most is free.

Knows: how full each lane is. Must not know: engines, texts, who waits.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

# By how much of its seats a lane may be fuller than the emptiest and still be preferred for what it has cached.
# A prompt that is not cached costs one step; a batch that is fuller by more than this costs every step.
AFFINITY_BOUND = 0.25


class LaneLoad(Struct, frozen=True):
    """How full a lane is."""

    name: str
    # Sequences that it runs together.
    seats: int
    # Sequences that it has.
    running: int

    @property
    def fullness(self) -> float:
        """Above 1, something waits inside."""
        return self.running / max(1, self.seats)


def choose(loads: Iterable[LaneLoad], preferred: str | None = None, bound: float = AFFINITY_BOUND) -> str | None:
    """The preferred lane, unless it is full or fuller than the emptiest by more than `bound`; then the emptiest.

    Of lanes that are as full, the one with the most free seats: where others use the same lanes, that is the one
    which they use least. None if there is no lane.
    """
    lanes = list(loads)
    if not lanes:
        return None
    emptiest = min(lanes, key=lambda lane: (lane.fullness, lane.running - lane.seats))
    for lane in lanes:
        has_room = lane.running < lane.seats or emptiest.fullness >= 1
        if lane.name == preferred and has_room and lane.fullness <= emptiest.fullness + bound:
            return lane.name
    return emptiest.name
