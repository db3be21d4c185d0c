"""What is broken, and when: a seeded schedule.

Knows: kinds of faults and how far apart they have to be. Must not know: how any is made, or who suffers.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from loadtest.soak.population import Client, Seat

__all__ = ["FaultKind", "Planned", "Suffered", "schedule"]


class FaultKind(Enum):
    """ABORT: a client's connection is reset. HALF_OPEN: a client falls silent on a connection that stays open, and
    comes back on another. ABSENCE: a client is away for less than the keep time; LONG_ABSENCE: for more.

    CLIENT_STOP: SIGSTOP of a client process until the gateway has closed its connections, then SIGCONT.
    ENGINE_KILL: SIGKILL of the engine's process. ENGINE_STOP: SIGSTOP of it, for good. RESTART: SIGTERM of the
    gateway, and another one on the same port.
    """

    ABORT = "abort"
    HALF_OPEN = "half-open"
    ABSENCE = "absence"
    LONG_ABSENCE = "long absence"
    CLIENT_STOP = "client stopped"
    ENGINE_KILL = "engine killed"
    ENGINE_STOP = "engine stopped"
    RESTART = "gateway restarted"


class Planned(Struct, frozen=True):
    """One fault. at_s: after the load has begun. pause_s: for how long the client is away or stays stopped.

    target: number of a seat, or of a client process; 0 for what there is one of.
    """

    at_s: float
    kind: FaultKind
    target: int = 0
    pause_s: float = 0.0


class Suffered(Struct, frozen=True):
    """A fault that was made. began_s: after the load had begun. pause_s: how long it was kept up.

    recovered_s: from then until all was well again, seconds; null when that was not seen. note: what else is worth
    telling.
    """

    kind: FaultKind
    began_s: float
    target: int = 0
    pause_s: float = 0.0
    recovered_s: float | None = None
    note: str = ""

    @property
    def ended_s(self) -> float:
        """When all was well again, as far as known."""
        return self.began_s + self.pause_s + (self.recovered_s or 0.0)


# What happens to everybody, in this order and then over again.
_HEAVY = (
    FaultKind.ENGINE_KILL,
    FaultKind.CLIENT_STOP,
    FaultKind.RESTART,
    FaultKind.ENGINE_KILL,
    FaultKind.CLIENT_STOP,
    FaultKind.ENGINE_STOP,
    FaultKind.ENGINE_KILL,
    FaultKind.RESTART,
    FaultKind.CLIENT_STOP,
    FaultKind.ENGINE_KILL,
)
# At most so many; an engine that is killed instead is nothing new.
_MOST = {FaultKind.RESTART: 2, FaultKind.ENGINE_STOP: 1}
_HEAVY_EVERY_S = 150.0
_FIRST_S = 90.0
# What is broken last has to be seen recover under load.
_LAST_S = 120.0

# In a short run: one of each, at these parts of it.
_SHORT_S = 480.0
_SHORT = ((0.15, FaultKind.ENGINE_KILL), (0.5, FaultKind.CLIENT_STOP), (0.75, FaultKind.RESTART))

_LIGHT = {FaultKind.ABORT: 0.55, FaultKind.HALF_OPEN: 0.15, FaultKind.ABSENCE: 0.2, FaultKind.LONG_ABSENCE: 0.1}

# Of a seat, so that a client has time to live.
_APART_S = 60.0


def schedule(
    seats: Sequence[Seat],
    duration_s: float,
    seed: int,
    *,
    keep_s: float,
    light_every_s: float,
    engine: bool = True,
) -> list[Planned]:
    """Every fault of a run, in the order of time.

    light_every_s: mean time between those of single clients. engine: whether it is a process that can be broken.
    """
    rng = random.Random(f"faults/{seed}")
    stoppable = sorted({seat.process for seat in seats} - {0})
    heavy = [
        fault
        for fault in _heavy(rng, duration_s, stoppable, keep_s)
        if engine or fault.kind not in (FaultKind.ENGINE_KILL, FaultKind.ENGINE_STOP)
    ]
    light = _light(rng, seats, duration_s, keep_s, light_every_s)
    return sorted([*heavy, *light], key=lambda fault: fault.at_s)


def _heavy(rng: random.Random, duration_s: float, stoppable: Sequence[int], keep_s: float) -> list[Planned]:
    if duration_s < _SHORT_S:
        times = [(duration_s * part, kind) for part, kind in _SHORT]
    else:
        count = int((duration_s - _FIRST_S - _LAST_S) // _HEAVY_EVERY_S) + 1
        kinds = list(itertools.islice(itertools.cycle(_HEAVY), count))
        for number, kind in enumerate(kinds):
            if kinds[:number].count(kind) >= _MOST.get(kind, count):
                kinds[number] = FaultKind.ENGINE_KILL
        times = [
            (_FIRST_S + number * _HEAVY_EVERY_S + rng.uniform(-15, 15), kind) for number, kind in enumerate(kinds)
        ]
    faults: list[Planned] = []
    stops = 0
    for at_s, kind in times:
        if kind is FaultKind.CLIENT_STOP:
            if not stoppable:
                continue
            # Every third one for so long that its sessions are gone.
            stops += 1
            pause_s = keep_s + 15 if stops % 3 == 0 else rng.uniform(2, keep_s / 4)
            faults.append(Planned(round(at_s, 1), kind, stoppable[stops % len(stoppable)], round(pause_s, 1)))
        else:
            faults.append(Planned(round(at_s, 1), kind))
    return faults


def _light(
    rng: random.Random, seats: Sequence[Seat], duration_s: float, keep_s: float, every_s: float
) -> list[Planned]:
    suffering = [seat for seat in seats if seat.process == 0]
    able = [seat for seat in suffering if seat.client is not Client.PRODUCT]
    last_s: dict[int, float] = {}
    faults: list[Planned] = []
    at_s = 10.0
    while (at_s := at_s + rng.expovariate(1 / every_s)) < duration_s - 5:
        kind = rng.choices(list(_LIGHT), list(_LIGHT.values()))[0]
        pause_s = {
            FaultKind.HALF_OPEN: rng.uniform(1, keep_s * 0.6),
            FaultKind.ABSENCE: rng.uniform(1, keep_s * 0.6),
            FaultKind.LONG_ABSENCE: rng.uniform(keep_s * 1.15, keep_s * 1.5),
        }.get(kind, 0.0)
        pool = suffering if kind is FaultKind.ABORT else able
        free = [seat.number for seat in pool if at_s - last_s.get(seat.number, -_APART_S) >= _APART_S]
        if not free:
            continue
        target = rng.choice(free)
        last_s[target] = at_s + pause_s
        faults.append(Planned(round(at_s, 1), kind, target, round(pause_s, 1)))
    return faults
