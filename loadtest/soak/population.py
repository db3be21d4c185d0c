"""Who is in the soak's meetings: seats that are always taken, by one client after the other.

Knows: sizes of meetings, languages, which process a seat's clients run in, how often each speaks. Must not know:
sockets, clocks, what becomes of a client.
"""

from __future__ import annotations

import random
from collections import Counter

from msgspec import Struct

from demo_model import LANGUAGES


class Seat(Struct, frozen=True):
    """A place in a meeting."""

    number: int
    meeting: str
    # Number of the client process; 0 is never stopped.
    process: int
    reads: tuple[str, ...]
    # None for a client that only reads.
    speaks: str | None
    # How often, on average.
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
