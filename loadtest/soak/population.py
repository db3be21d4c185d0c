"""Who is in the soak's meetings: seats that are always taken, by one client after the other.

Knows: sizes of meetings, languages, which process a seat's clients run in, how often each speaks. Must not know:
sockets, clocks, what becomes of a client.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from demo_model import LANGUAGES

__all__ = ["Client", "Seat", "population"]


class Client(Enum):
    """What sits there: the product's client; the same behind a relay that can be cut and frozen; or one of the
    soak's own that records all it receives and has small buffers, as a phone on a thin line has."""

    PRODUCT = "product"
    RELAYED = "relayed"
    RAW = "raw"


class Seat(Struct, frozen=True):
    """A place in a meeting. process: number of the client process; 0 is never stopped.

    speaks: null for somebody who only reads. utterances_per_s: how often, on average. stays: whoever sits there
    stays to the end.
    """

    number: int
    meeting: str
    client: Client
    process: int
    reads: tuple[str, ...]
    speaks: str | None
    utterances_per_s: float
    stays: bool


# Of the sessions: in the one large meeting, and in meetings of two.
_LARGE = 0.3
_PAIRS = 0.3
_TEAM = 6

# Of all utterances: how many are said in the large meeting.
_LARGE_SHARE = 0.2
_LARGE_SPEAKERS = 4

# Of the clients in process 0.
_KINDS = {Client.PRODUCT: 0.6, Client.RELAYED: 0.22, Client.RAW: 0.18}
_STAYING = 0.25


def population(
    sessions: int, utterances_per_minute: float, seed: int, *, stoppable: Sequence[int] = (1, 2), each: int = 6
) -> list[Seat]:
    """All seats: a large meeting with many readers, teams of six, pairs. At least 12 sessions.

    stoppable: client processes beside 0, with at most `each` seats, half of them in the large meeting, where there
    is most to miss.
    """
    rng = random.Random(f"population/{seed}")
    large = max(round(sessions * _LARGE), _TEAM)
    pairs = max(round(sessions * _PAIRS / 2), 1)
    sizes = [("plenum", large)]
    left = sessions - large - 2 * pairs
    sizes += [(f"team-{number}", _TEAM) for number in range(left // _TEAM)]
    # What is left over joins the plenum.
    sizes[0] = ("plenum", large + left % _TEAM)
    sizes += [(f"pair-{number}", 2) for number in range(pairs)]
    drafts: list[tuple[str, tuple[str, ...], str | None]] = []
    for meeting, size in sizes:
        drafts += [(meeting, *who) for who in _members(rng, size)]
    most_read = [
        lang for lang, _ in Counter(lang for _, reads, _ in drafts[: sizes[0][1]] for lang in reads).most_common(3)
    ]
    processes = _processes(rng, [draft[0] for draft in drafts], stoppable, each)
    speaking = {name: sum(draft[0] == name and draft[2] is not None for draft in drafts) for name, _ in sizes}
    elsewhere = sum(count for name, count in speaking.items() if name != "plenum")
    per_s = utterances_per_minute / 60
    seats: list[Seat] = []
    for number, (meeting, reads, speaks) in enumerate(drafts):
        share = _LARGE_SHARE / speaking["plenum"] if meeting == "plenum" else (1 - _LARGE_SHARE) / elsewhere
        seats.append(
            Seat(
                number=number,
                meeting=meeting,
                client=_client(rng, processes[number], processes[:number].count(processes[number])),
                process=processes[number],
                # Who is to overflow has much to read.
                reads=tuple(most_read) if processes[number] and meeting == "plenum" else reads,
                speaks=speaks,
                utterances_per_s=per_s * share if speaks is not None else 0.0,
                stays=rng.random() < _STAYING,
            )
        )
    return seats


def _members(rng: random.Random, size: int) -> list[tuple[tuple[str, ...], str | None]]:
    """(reads, speaks) of everybody in a meeting; each reads one or two of the meeting's languages."""
    if size == 2:
        one, other = rng.sample(LANGUAGES, 2)
        return [((other,), other), ((one,), one)]
    if size == _TEAM:
        spoken = rng.sample(LANGUAGES, 3)
        team: list[tuple[tuple[str, ...], str | None]] = []
        for number in range(size):
            speaks = spoken[number % 3]
            other = rng.choice([lang for lang in spoken if lang != speaks])
            reads: tuple[str, ...] = (speaks,) if rng.random() < 0.7 else (speaks, other)
            # Four of six talk.
            team.append((reads, speaks if number < 4 else None))
        return team
    spoken, read = rng.sample(LANGUAGES, 2), rng.sample(LANGUAGES, 4)
    plenum: list[tuple[tuple[str, ...], str | None]] = []
    for number in range(size):
        reads = tuple(rng.sample(read, 1 if rng.random() < 0.7 else 2))
        plenum.append((reads, spoken[number % 2] if number < _LARGE_SPEAKERS else None))
    return plenum


def _processes(rng: random.Random, meetings: Sequence[str], stoppable: Sequence[int], each: int) -> list[int]:
    processes = [0] * len(meetings)
    # Not the speakers of the plenum, so that it goes on talking.
    plenum = [number for number, meeting in enumerate(meetings) if meeting == "plenum"][_LARGE_SPEAKERS:]
    others = [number for number, meeting in enumerate(meetings) if meeting != "plenum"]
    rng.shuffle(plenum)
    rng.shuffle(others)
    for process in stoppable:
        for pool, count in ((plenum, (each + 1) // 2), (others, each // 2)):
            for _ in range(min(count, len(pool) // 2)):
                processes[pool.pop()] = process
    return processes


def _client(rng: random.Random, process: int, before: int) -> Client:
    """before: seats of this process before it."""
    if process:
        # Small buffers make a stopped reader overflow within the time that it is stopped.
        return Client.PRODUCT if before % 3 == 1 else Client.RAW
    return rng.choices(list(_KINDS), list(_KINDS.values()))[0]
