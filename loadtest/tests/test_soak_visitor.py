"""Clients of the soak against a whole gateway with the simulated engine: what they break, and what they record."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from gateway.config import Settings
from gateway.protocol.codec import JSON
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Caption,
    ServerMessage,
    SessionStarted,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
)
from loadtest.soak import crowd
from loadtest.soak.crowd import Visitor, WireCodec
from loadtest.soak.faults import FaultKind, Seat
from loadtest.soak.ledger import Ledger, Rules
from loadtest.soak.records import Again, Entry, Flushed, Heard, Joined, Left, Record
from loadtest.soak.report import Verdict
from tests.gateways import Running, running


def started(*, recovered: bool | None) -> SessionStarted:
    return SessionStarted("s", "p", "standup", "e", 0, recovered, [], [], [], Limits())


def caption(offset: int | None) -> Caption:
    return Caption("p", "1", "Ana", "en", 1, "Hello.", offset is not None, offset)


def failed(offset: int) -> TranslationFailed:
    return TranslationFailed("p", "1", "Ana", "ja", 1, "cancelled", "Why.", offset)


def again(*messages: ServerMessage) -> list[int]:
    """Offsets that arrived before, as a client records them that reads these messages."""
    records: list[Record] = []
    codec = WireCodec("1.1", records.append)
    for message in messages:
        assert codec.decode_server(JSON.encode(message)) == message
    return [record.offset for record in records if isinstance(record, Again)]


def test_a_publication_that_arrives_again_is_recorded() -> None:
    assert again(started(recovered=None), caption(1), failed(2), caption(None)) == []
    assert again(started(recovered=None), caption(1), failed(2), failed(2), caption(1)) == [2, 1]


def test_a_resumed_session_continues() -> None:
    assert again(started(recovered=None), caption(1), started(recovered=True), failed(2)) == []
    assert again(started(recovered=None), caption(1), started(recovered=True), caption(1)) == [1]


def test_a_new_session_repeats_the_newest() -> None:
    assert again(started(recovered=None), caption(1), started(recovered=False), caption(1)) == []


pytestmark = pytest.mark.slow

RULES = Rules(keep_s=1, snapshot=30, log_keep_s=600)


@pytest.fixture(autouse=True)
def _quick_talkers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowd, "_PARTIAL_S", (0.0, 0.01))


class Room:
    """A speaker who talks all the time, and two readers, of whom one has a thin line."""

    def __init__(self, gateway: Running) -> None:
        self.records: list[Record] = []
        self.hushed = asyncio.Event()
        self.leave = asyncio.Event()
        self._gateway = gateway
        self.visitors = {
            "speaker": self._visitor(0, 0, "en", ("en",)),
            "reader": self._visitor(1, 0, None, ("ja", "de")),
            "thin": self._visitor(2, 1, None, ("ja", "en")),
        }

    def _visitor(self, number: int, process: int, speaks: str | None, reads: tuple[str, ...]) -> Visitor:
        rate = 20.0 if speaks else 0.0
        return Visitor(
            f"{number}.1",
            Seat(number, "standup", process, reads, speaks, rate, True),
            self._gateway.port,
            say=self.records.append,
            texts=["Good morning.", "Can you hear me?"],
            rng=random.Random(number),
            stay_s=None,
            hushed=self.hushed,
            leave=self.leave,
        )

    async def until(self, so: Callable[[Record], bool], count: int = 1) -> None:
        """Wait for that many records more."""
        begun = len(self.records)
        while sum(map(so, self.records[begun:])) < count:
            await asyncio.sleep(0.01)

    async def until_away(self, visitor: Visitor) -> None:
        """Wait until it has lost its connection, and says why."""
        while visitor.connected or not visitor.away:
            await asyncio.sleep(0.01)

    async def finish(self) -> Verdict:
        """All fall silent, confirm what they have and leave; the checker's verdict."""
        self.hushed.set()
        everybody = self.visitors.values()
        while not all(visitor.settled for visitor in everybody) or self._gateway.gateway.scheduler.running:
            await asyncio.sleep(0.01)
        await asyncio.gather(*(visitor.flush(last=True) for visitor in everybody))
        self.leave.set()
        await self.until(lambda record: isinstance(record, Left), 3)
        ledger = Ledger(RULES)
        for record in self.records:
            ledger.add(record)
        [speaker] = {r.started.participant for r in self.records if isinstance(r, Joined) and r.client == "0.1"}
        messages = [record.message for record in self.records if isinstance(record, Heard)]
        ledger.transcript(
            "standup",
            {Entry(speaker, each.id, frozenset()) for each in messages if isinstance(each, UtteranceAccepted)},
            asked_at=0.0,
        )
        return ledger.judge()


@asynccontextmanager
async def room(keep_s: int = 1) -> AsyncIterator[Room]:
    async with running(Settings(limits=Limits(keep_s=keep_s))) as gateway:
        here = Room(gateway)
        async with asyncio.TaskGroup() as tasks:
            for visitor in here.visitors.values():
                tasks.create_task(visitor.run())
            await here.until(lambda record: isinstance(record, Heard), 20)
            yield here


def joined(client: str, recovered: bool | None) -> Callable[[Record], bool]:
    return lambda record: (
        isinstance(record, Joined) and record.client == client and record.started.recovered is recovered
    )


async def test_a_meeting_in_which_nothing_breaks() -> None:
    async with room() as here:
        verdict = await here.finish()
    assert not verdict.broken(), verdict.problems
    assert verdict.accepted > 0
    assert verdict.delivered == verdict.owed > 0
    kinds = {type(record.message) for record in here.records if isinstance(record, Heard)}
    assert kinds >= {Caption, TranslationFinal}
    assert all(record.last for record in here.records if isinstance(record, Flushed))


@pytest.mark.parametrize(
    ("who", "kind", "pause_s"),
    [
        ("speaker", FaultKind.ABORT, 0.0),
        ("reader", FaultKind.ABORT, 0.0),
        ("reader", FaultKind.HALF_OPEN, 0.2),
        ("thin", FaultKind.HALF_OPEN, 0.2),
        ("reader", FaultKind.ABSENCE, 0.2),
        ("thin", FaultKind.ABSENCE, 0.2),
    ],
)
async def test_a_broken_client_misses_nothing(who: str, kind: FaultKind, pause_s: float) -> None:
    # Kept for as long as the slowest back-off of a client may take.
    async with room(keep_s=600) as here:
        broken = here.visitors[who]
        back = asyncio.ensure_future(here.until(joined(broken.name, True)))
        assert await broken.suffer(kind, pause_s)
        assert broken.away or broken.connected
        await back
        assert broken.connected
        assert not broken.away
        await here.until(lambda record: isinstance(record, Heard) and record.client == broken.name, 3)
        verdict = await here.finish()
    assert not verdict.broken(), verdict.problems
    assert (verdict.resumed, verdict.not_resumed) == (1, 0)


async def test_a_long_absence_begins_a_session() -> None:
    async with room() as here:
        broken = here.visitors["reader"]
        back = asyncio.ensure_future(here.until(joined(broken.name, False)))
        suffering = asyncio.ensure_future(broken.suffer(FaultKind.LONG_ABSENCE, 3.0))
        await here.until_away(broken)
        assert await suffering
        await back
        assert not broken.away
        await here.until(lambda record: isinstance(record, Heard) and record.client == broken.name, 3)
        verdict = await here.finish()
    assert not verdict.broken(), verdict.problems
    assert verdict.not_resumed >= 1


async def test_who_leaves_is_not_broken() -> None:
    async with room() as here:
        await here.finish()
        assert not await here.visitors["reader"].suffer(FaultKind.ABORT, 0.0)
