"""What is broken, and when: a seeded schedule.

Knows: kinds of faults, how far apart they have to be. Must not know: how a fault is made.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from loadtest.soak.population import Seat


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
    # SIGKILL of one of several workers, or SIGSTOP for so long that others take over its work, then SIGCONT.
    WORKER_KILL = "worker killed"
    WORKER_STOP = "worker stopped"
    # SIGHUP of the gateway: its workers are replaced one after another, as for a new version.
    RELOAD = "workers replaced"
    # SIGKILL of the store that they share.
    STORE_KILL = "store killed"


# These need workers, and these an engine in a process of its own.
OF_WORKERS = (FaultKind.WORKER_KILL, FaultKind.WORKER_STOP, FaultKind.RELOAD, FaultKind.STORE_KILL)
OF_ENGINE = (FaultKind.ENGINE_KILL, FaultKind.ENGINE_STOP)

# These concern everybody; the others a single client.
OF_EVERYBODY = (*OF_ENGINE, FaultKind.RESTART, FaultKind.CLIENT_STOP, *OF_WORKERS)


class Fault(Struct, frozen=True):
    """One fault: first as it is planned, then as it was made."""

    kind: FaultKind
    # After the load began, seconds.
    began_s: float
    # Number of a seat, a client process or a worker; 0 for what there is one of.
    target: int = 0
    # How long it is kept up: the client is away, or the process stays stopped.
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

# What happens to workers and their store, besides: how far apart, and where in that time.
_OFTEN = {
    FaultKind.WORKER_KILL: (60.0, 0.5),
    FaultKind.WORKER_STOP: (300.0, 0.25),
    FaultKind.RELOAD: (300.0, 0.4),
    FaultKind.STORE_KILL: (300.0, 0.75),
}
# Longer than others wait before they take over (6 s), shorter than the gateway does before it kills one (30 s).
_WORKER_STOPPED_S = 27.0

# The part of a run in which there are such faults: everybody is there, and what is broken last is seen recover.
_AMID = (0.05, 0.93)

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
    workers: int = 0,
    only: tuple[FaultKind, int] | None = None,
) -> list[Fault]:
    """Every fault of a run, in the order of time.

    light_every_s: mean time between those of single clients. engine: whether it is a process that can be broken.
    workers: how many there are that share a store.
    only: this kind, of `OF_EVERYBODY`, so often, and no other.
    """
    rng = random.Random(f"faults/{seed}")
    if only is not None:
        kind, times = only
        return _spread(rng, kind, times, 0.5, seats, duration_s, keep_s, workers)
    heavy = [fault for fault in _heavy(rng, seats, duration_s, keep_s) if engine or fault.kind not in OF_ENGINE]
    light = _light(rng, seats, duration_s, keep_s, light_every_s)
    often: list[Fault] = []
    for kind, (every_s, where) in _OFTEN.items() if workers else ():
        times = max(int(duration_s * (_AMID[1] - _AMID[0]) // every_s), 1)
        often += _spread(rng, kind, times, where, seats, duration_s, keep_s, workers)
    return sorted([*heavy, *light, *often], key=lambda fault: fault.began_s)


def _heavy(rng: random.Random, seats: Sequence[Seat], duration_s: float, keep_s: float) -> list[Fault]:
    scale = min(duration_s / _SHORT_S, 1.0)
    count = int((duration_s / scale - _FIRST_S - _LAST_S) // _HEAVY_EVERY_S) + 1
    faults: list[Fault] = []
    times: Counter[FaultKind] = Counter()
    for number, kind in enumerate(itertools.islice(itertools.cycle(_HEAVY), count)):
        at_s = scale * (_FIRST_S + number * _HEAVY_EVERY_S + rng.uniform(-15, 15))
        times[kind] += 1
        faults.append(_of_everybody(rng, kind, at_s, times[kind], seats, keep_s, workers=0))
    return faults


def _spread(
    rng: random.Random,
    kind: FaultKind,
    times: int,
    where: float,
    seats: Sequence[Seat],
    duration_s: float,
    keep_s: float,
    workers: int,
) -> list[Fault]:
    """Faults of one kind at even distances; where: in each of these, from 0 to 1, about."""
    first_s, last_s = (part * duration_s for part in _AMID)
    step_s = (last_s - first_s) / times
    faults: list[Fault] = []
    for number in range(times):
        at_s = first_s + step_s * (number + where + rng.uniform(-0.2, 0.2))
        faults.append(_of_everybody(rng, kind, at_s, number + 1, seats, keep_s, workers))
    return faults


def _of_everybody(
    rng: random.Random,
    kind: FaultKind,
    at_s: float,
    time: int,
    seats: Sequence[Seat],
    keep_s: float,
    workers: int,
) -> Fault:
    """time: the first, second … of this kind."""
    target, pause_s = 0, 0.0
    match kind:
        case FaultKind.CLIENT_STOP:
            stoppable = sorted({seat.process for seat in seats} - {0})
            target = stoppable[time % len(stoppable)]
            # Every third one for so long that its sessions are gone.
            pause_s = keep_s + 15 if time % 3 == 0 else rng.uniform(2, keep_s / 4)
        case FaultKind.WORKER_KILL:
            target = time % workers + 1
        case FaultKind.WORKER_STOP:
            target, pause_s = (time + 1) % workers + 1, _WORKER_STOPPED_S
    return Fault(kind, round(at_s, 1), target, round(pause_s, 1))


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
