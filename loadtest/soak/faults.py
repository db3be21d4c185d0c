"""Who is in the soak's meetings, seats that are always taken by one client after the other; and what is broken
when: a seeded schedule.

Knows: sizes of meetings, languages, which process a seat's clients run in, how often each speaks; kinds of faults,
how far apart they have to be. Must not know: sockets, clocks, how a fault is made.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from msgspec import Struct

from demo_model import LANGUAGES


class Seat(Struct, frozen=True):
    """A place in a meeting."""

    number: int
    meeting: str
    # Number of the client process; 0 is never stopped.
    process: int
    reads: tuple[str, ...]
    # The language that its client speaks; None for a client that only reads.
    speaks: str | None
    # Utterances a second of its client, on average.
    utterances_per_s: float
    # The client in it stays to the end.
    stays: bool


# Shares of the sessions: in the one large meeting, and in meetings of two.
_LARGE = 0.3
_PAIRS = 0.3
_TEAM = 6

# The share of all utterances that are said in the large meeting. How many speak there.
_LARGE_SHARE = 0.2
_LARGE_SPEAKERS = 4

# The client processes that are stopped at times, and how many seats each has at most.
_STOPPABLE = (1, 2)
_SEATS_EACH = 6

_STAYING = 0.25


def population(sessions: int, utterances_per_minute: float, seed: int) -> list[Seat]:
    """All seats: a large meeting with many readers, teams of six, pairs. At least 12 sessions."""
    rng = random.Random(f"population/{seed}")
    pairs = max(round(sessions * _PAIRS / 2), 1)
    large = max(round(sessions * _LARGE), _TEAM)
    # What is left over of the teams joins the plenum.
    teams, left = divmod(sessions - large - 2 * pairs, _TEAM)
    plenum = _members(rng, large + left, languages=4, speakers=_LARGE_SPEAKERS)
    drafts = [("plenum", *who) for who in plenum]
    for number in range(teams):
        drafts += [(f"team-{number}", *who) for who in _members(rng, _TEAM, languages=3, speakers=4)]
    for number in range(pairs):
        drafts += [(f"pair-{number}", *who) for who in _members(rng, 2, languages=2, speakers=2)]
    most_read = Counter(lang for reads, _ in plenum for lang in reads).most_common(3)
    processes = _processes(rng, len(plenum), len(drafts))
    elsewhere = sum(speaks is not None for meeting, _, speaks in drafts if meeting != "plenum")
    per_s = utterances_per_minute / 60
    seats: list[Seat] = []
    for number, ((meeting, reads, speaks), process) in enumerate(zip(drafts, processes, strict=True)):
        in_plenum = meeting == "plenum"
        share = _LARGE_SHARE / _LARGE_SPEAKERS if in_plenum else (1 - _LARGE_SHARE) / elsewhere
        seats.append(
            Seat(
                number=number,
                meeting=meeting,
                process=process,
                # A client that is to overflow has much to read.
                reads=tuple(lang for lang, _ in most_read) if process and in_plenum else reads,
                speaks=speaks,
                utterances_per_s=per_s * share if speaks is not None else 0.0,
                stays=rng.random() < _STAYING,
            )
        )
    return seats


def _members(
    rng: random.Random, size: int, *, languages: int, speakers: int
) -> list[tuple[tuple[str, ...], str | None]]:
    """(reads, speaks) of everybody in a meeting: each reads one or two of its languages, the first few speak."""
    here = rng.sample(LANGUAGES, languages)
    members: list[tuple[tuple[str, ...], str | None]] = []
    for number in range(size):
        own = here[number % languages]
        other = rng.choice([lang for lang in here if lang != own])
        members.append(((own,) if rng.random() < 0.7 else (own, other), own if number < speakers else None))
    return members


def _processes(rng: random.Random, plenum: int, seats: int) -> list[int]:
    """The process of each seat: half of those that are stopped are in the plenum, where there is most to miss. Its
    speakers are not among them, so that it goes on talking."""
    processes = [0] * seats
    pools = [list(range(_LARGE_SPEAKERS, plenum)), list(range(plenum, seats))]
    for pool in pools:
        rng.shuffle(pool)
        for process in _STOPPABLE:
            for _ in range(min(_SEATS_EACH // 2, len(pool) // 2)):
                processes[pool.pop()] = process
    return processes


# ---------------------------------------------------------------- what is broken


class FaultKind(Enum):
    """Its name in reports. What is done is in `WHAT`."""

    ABORT = "abort"
    HALF_OPEN = "half-open"
    ABSENCE = "absence"
    LONG_ABSENCE = "long absence"
    CLIENT_STOP = "client stopped"
    ENGINE_KILL = "engine killed"
    ENGINE_STOP = "engine stopped"
    RESTART = "gateway restarted"
    WORKER_KILL = "worker killed"
    WORKER_STOP = "worker stopped"
    RELOAD = "workers replaced"
    STORE_KILL = "store killed"


# In the order of reports.
WHAT = {
    FaultKind.ABORT: "connection reset",
    FaultKind.HALF_OPEN: "client silent on an open connection, then back on another",
    FaultKind.ABSENCE: "connection reset, back within the keep time",
    FaultKind.LONG_ABSENCE: "connection reset, back after the keep time",
    # Until the gateway has closed its connections.
    FaultKind.CLIENT_STOP: "SIGSTOP of a client process, then SIGCONT",
    FaultKind.ENGINE_KILL: "SIGKILL of the engine's process",
    FaultKind.ENGINE_STOP: "SIGSTOP of the engine's process",
    # On the same port.
    FaultKind.RESTART: "SIGTERM of the gateway, and a new one",
    FaultKind.WORKER_KILL: "SIGKILL of one of the gateway's workers",
    # For so long that others take over its work, and at times that the gateway kills it.
    FaultKind.WORKER_STOP: "SIGSTOP of one of the gateway's workers, then SIGCONT",
    FaultKind.RELOAD: "SIGHUP of the gateway, which replaces its workers one after another",
    FaultKind.STORE_KILL: "SIGKILL of the store; repaired once a final is accepted",
}

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
    # Seconds from the end of the pause until all was well again; None when that was not seen.
    recovered_s: float | None = None
    # A remark for the report.
    note: str = ""


# Faults of everybody, in this order and then over again.
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
# The last fault has to be seen recover under load.
_LAST_S = 120.0
# In a shorter run they are closer together, so that the first three fit.
_SHORT_S = 520.0

# Faults of workers and their store, besides: seconds between two, and where in that time.
_OFTEN = {
    FaultKind.WORKER_KILL: (60.0, 0.5),
    FaultKind.WORKER_STOP: (150.0, 0.25),
    FaultKind.RELOAD: (300.0, 0.4),
    FaultKind.STORE_KILL: (300.0, 0.75),
}
# In turn: it wakes after others took over its work (6 s); the gateway kills it (after 30 s); it wakes soon after
# its listening socket was shut (4 s).
_WORKER_STOPPED_S = (27.0, 40.0, 5.0)

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
    own = _Schedule(random.Random(f"faults/{seed}"), seats, duration_s, keep_s, workers)
    if only is not None:
        return own.spread(*only, 0.5)
    heavy = [fault for fault in own.heavy() if engine or fault.kind not in OF_ENGINE]
    faults = [*heavy, *own.light(light_every_s)]
    for kind, (every_s, where) in _OFTEN.items() if workers else ():
        faults += own.spread(kind, max(int(duration_s * (_AMID[1] - _AMID[0]) // every_s), 1), where)
    return sorted(faults, key=lambda fault: fault.began_s)


@dataclass
class _Schedule:
    rng: random.Random
    seats: Sequence[Seat]
    duration_s: float
    keep_s: float
    workers: int

    def heavy(self) -> list[Fault]:
        scale = min(self.duration_s / _SHORT_S, 1.0)
        count = int((self.duration_s / scale - _FIRST_S - _LAST_S) // _HEAVY_EVERY_S) + 1
        faults: list[Fault] = []
        times: Counter[FaultKind] = Counter()
        for number, kind in enumerate(itertools.islice(itertools.cycle(_HEAVY), count)):
            at_s = scale * (_FIRST_S + number * _HEAVY_EVERY_S + self.rng.uniform(-15, 15))
            times[kind] += 1
            faults.append(self._fault(kind, at_s, times[kind]))
        return faults

    def spread(self, kind: FaultKind, times: int, where: float) -> list[Fault]:
        """Faults of one kind at even distances; where: in each of these, from 0 to 1, about."""
        first_s, last_s = (part * self.duration_s for part in _AMID)
        step_s = (last_s - first_s) / times
        return [
            self._fault(kind, first_s + step_s * (number + where + self.rng.uniform(-0.2, 0.2)), number + 1)
            for number in range(times)
        ]

    def _fault(self, kind: FaultKind, at_s: float, time: int) -> Fault:
        """One that concerns everybody. time: the first, second … of this kind."""
        target, pause_s = 0, 0.0
        match kind:
            case FaultKind.CLIENT_STOP:
                stoppable = sorted({seat.process for seat in self.seats} - {0})
                target = stoppable[time % len(stoppable)]
                # Every third one for so long that its sessions are gone.
                pause_s = self.keep_s + 15 if time % 3 == 0 else self.rng.uniform(2, self.keep_s / 4)
            case FaultKind.WORKER_KILL:
                target = time % self.workers + 1
            case FaultKind.WORKER_STOP:
                target = (time + 1) % self.workers + 1
                pause_s = _WORKER_STOPPED_S[(time - 1) % len(_WORKER_STOPPED_S)]
        return Fault(kind, round(at_s, 1), target, round(pause_s, 1))

    def light(self, every_s: float) -> list[Fault]:
        rng, keep_s = self.rng, self.keep_s
        suffering = [seat.number for seat in self.seats if seat.process == 0]
        free_s: dict[int, float] = {}
        faults: list[Fault] = []
        at_s = 10.0
        while (at_s := at_s + rng.expovariate(1 / every_s)) < self.duration_s - 5:
            kind = rng.choices(list(_LIGHT), list(_LIGHT.values()))[0]
            away_s = (keep_s * 1.15, keep_s * 1.5) if kind is FaultKind.LONG_ABSENCE else (1, keep_s * 0.6)
            pause_s = 0.0 if kind is FaultKind.ABORT else rng.uniform(*away_s)
            if free := [number for number in suffering if at_s >= free_s.get(number, 0.0)]:
                target = rng.choice(free)
                free_s[target] = at_s + pause_s + _APART_S
                faults.append(Fault(kind, round(at_s, 1), target, round(pause_s, 1)))
        return faults
