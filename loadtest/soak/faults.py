"""What is broken, and when: a seeded schedule.

Knows: kinds of faults, how far apart they have to be. Must not know: how a fault is made.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from loadtest.soak.population import Seat

__all__ = ["OF_EVERYBODY", "Fault", "FaultKind", "schedule"]


class FaultKind(Enum):
    """Its name in reports."""

    # A client's connection is reset.
    ABORT = "abort"
    # A client falls silent on a connection that stays open, and comes back on another.
    HALF_OPEN = "half-open"
    # A client is away for less than the keep time, or for more.
    ABSENCE = "absence"
    LONG_ABSENCE = "long absence"
    # SIGSTOP of a client process until the gateway has closed its connections, then SIGCONT.
    CLIENT_STOP = "client stopped"
    # SIGKILL of the engine's process, or SIGSTOP of it for good.
    ENGINE_KILL = "engine killed"
    ENGINE_STOP = "engine stopped"
    # SIGTERM of the gateway, and another one on the same port.
    RESTART = "gateway restarted"


# These concern everybody; the others a single client.
OF_EVERYBODY = (FaultKind.ENGINE_KILL, FaultKind.ENGINE_STOP, FaultKind.RESTART, FaultKind.CLIENT_STOP)


class Fault(Struct, frozen=True):
    """One fault: first as it is planned, then as it was made."""

    kind: FaultKind
    # After the load began, seconds.
    began_s: float
    # Number of a seat, or of a client process; 0 for what there is one of.
    target: int = 0
    # How long it is kept up: the client is away or stays stopped.
    pause_s: float = 0.0
    # From the end of the pause until all was well again; None when that was not seen.
    recovered_s: float | None = None
    # What else is worth telling.
    note: str = ""


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
_HEAVY_EVERY_S = 150.0
_FIRST_S = 90.0
# What is broken last has to be seen recover under load.
_LAST_S = 120.0
# In a shorter run they are closer together, so that the first three fit.
_SHORT_S = 520.0

_LIGHT = {FaultKind.ABORT: 0.55, FaultKind.HALF_OPEN: 0.15, FaultKind.ABSENCE: 0.2, FaultKind.LONG_ABSENCE: 0.1}

# Between two faults of one seat, so that a client has time to live.
_APART_S = 60.0


def schedule(
    seats: Sequence[Seat],
    duration_s: float,
    seed: int,
    *,
    keep_s: float,
    light_every_s: float,
    engine: bool = True,
) -> list[Fault]:
    """Every fault of a run, in the order of time.

    light_every_s: mean time between those of single clients. engine: whether it is a process that can be broken.
    """
    rng = random.Random(f"faults/{seed}")
    heavy = [
        fault
        for fault in _heavy(rng, seats, duration_s, keep_s)
        if engine or fault.kind not in (FaultKind.ENGINE_KILL, FaultKind.ENGINE_STOP)
    ]
    light = _light(rng, seats, duration_s, keep_s, light_every_s)
    return sorted([*heavy, *light], key=lambda fault: fault.began_s)


def _heavy(rng: random.Random, seats: Sequence[Seat], duration_s: float, keep_s: float) -> list[Fault]:
    stoppable = sorted({seat.process for seat in seats} - {0})
    scale = min(duration_s / _SHORT_S, 1.0)
    count = int((duration_s / scale - _FIRST_S - _LAST_S) // _HEAVY_EVERY_S) + 1
    faults: list[Fault] = []
    stops = 0
    for number, kind in enumerate(itertools.islice(itertools.cycle(_HEAVY), count)):
        at_s = round(scale * (_FIRST_S + number * _HEAVY_EVERY_S + rng.uniform(-15, 15)), 1)
        if kind is not FaultKind.CLIENT_STOP:
            faults.append(Fault(kind, at_s))
        elif stoppable:
            # Every third one for so long that its sessions are gone.
            stops += 1
            pause_s = keep_s + 15 if stops % 3 == 0 else rng.uniform(2, keep_s / 4)
            faults.append(Fault(kind, at_s, stoppable[stops % len(stoppable)], round(pause_s, 1)))
    return faults


def _light(
    rng: random.Random, seats: Sequence[Seat], duration_s: float, keep_s: float, every_s: float
) -> list[Fault]:
    suffering = [seat.number for seat in seats if seat.process == 0]
    free_s: dict[int, float] = {}
    faults: list[Fault] = []
    at_s = 10.0
    while (at_s := at_s + rng.expovariate(1 / every_s)) < duration_s - 5:
        kind = rng.choices(list(_LIGHT), list(_LIGHT.values()))[0]
        away_s = (keep_s * 1.15, keep_s * 1.5) if kind is FaultKind.LONG_ABSENCE else (1, keep_s * 0.6)
        pause_s = 0.0 if kind is FaultKind.ABORT else rng.uniform(*away_s)
        free = [number for number in suffering if at_s >= free_s.get(number, 0.0)]
        if free:
            target = rng.choice(free)
            free_s[target] = at_s + pause_s + _APART_S
            faults.append(Fault(kind, round(at_s, 1), target, round(pause_s, 1)))
    return faults
