"""Events in memory, from one process to the next. What holds for every store is in `tests/contract/`."""

from __future__ import annotations

import msgspec

from gateway.domain.webhooks import KeptWebhooks, Settled, Webhook
from gateway.stores.memory_webhooks import MemoryWebhookOutbox

HOOK = Webhook(name="backend", url="https://example.com/hook", secret_file="secret")
GONE = Webhook(name="gone", url="https://example.com/gone", secret_file="secret")


class Process:
    """earlier: what another one kept. unfinished: meeting → as `is_unfinished` says."""

    def __init__(self, earlier: KeptWebhooks | None = None, **unfinished: bool | None) -> None:
        self.now_s = 1_700_000_000.0
        self.unfinished = unfinished
        self.outbox = MemoryWebhookOutbox(self.unfinished.get, earlier, wall_clock=lambda: self.now_s)

    async def types(self) -> list[str]:
        deliveries = (await self.outbox.tend(HOOK, 9)).deliveries
        for each in deliveries:
            await self.outbox.settle(HOOK, each, Settled("It answered with status 200."))
        return [each.event.type for each in deliveries]

    async def next(self, **unfinished: bool | None) -> Process:
        kept = msgspec.msgpack.decode(msgspec.msgpack.encode(self.outbox.kept_webhooks()), type=KeptWebhooks)
        return Process(kept, **unfinished)


async def test_meeting_continuing_at_the_next_process_is_told_once() -> None:
    before = Process()
    assert await before.types() == []
    before.outbox.meeting_started("m")
    after = await before.next(m=False)
    # Its sessions are restored there.
    after.outbox.meeting_started("m")
    assert await after.types() == ["meeting.started"]
    after.now_s += 60.0
    after.outbox.meeting_ended("m")
    [ended] = (await after.outbox.tend(HOOK, 9)).deliveries
    assert ended.event.ended_ms - ended.event.started_ms == 60_000


async def test_pending_transcript_is_ready_at_the_next_process() -> None:
    before = Process(m=True, n=None)
    await before.types()
    for meeting in ("m", "n"):
        before.outbox.meeting_started(meeting)
        before.outbox.meeting_ended(meeting)
    assert await before.types() == ["meeting.started", "meeting.ended"] * 2
    after = await before.next(m=False)
    after.now_s += 60.0
    await after.outbox.tend(GONE, 0)
    await after.outbox.tend(HOOK, 0)
    assert [each.event.type for each in (await after.outbox.tend(GONE, 9)).deliveries] == ["transcript.ready"]
    assert await after.types() == ["transcript.ready"]


async def test_what_was_tried_keeps_its_id_and_its_count() -> None:
    before = Process()
    await before.types()
    before.outbox.meeting_started("m")
    [first] = (await before.outbox.tend(HOOK, 9)).deliveries
    after = await before.next()
    [again] = (await after.outbox.tend(HOOK, 9)).deliveries
    assert (again.event, again.tries) == (first.event, 2)


async def test_gone_webhook_stays_gone_across_processes() -> None:
    before = Process()
    await before.outbox.tend(GONE, 0)
    before.outbox.meeting_started("m")
    [delivery] = (await before.outbox.tend(GONE, 9)).deliveries
    await before.outbox.settle(GONE, delivery, Settled("It answered with status 410.", gone=True))
    after = await before.next()
    await after.outbox.tend(GONE, 0)
    assert (await after.outbox.state(GONE)).gone
    last = await (await after.next()).next()
    assert not (await last.outbox.state(GONE)).gone


async def test_ended_meetings_are_forgotten_without_webhooks() -> None:
    before = Process(m=True)
    await before.types()
    before.outbox.meeting_started("m")
    # The next one has none in its settings, and knows events of one.
    without = await before.next(n=False)
    without.outbox.meeting_ended("m")
    without.outbox.meeting_started("n")
    without.outbox.meeting_ended("n")
    assert without.outbox.unfinished == {}
    before.outbox.meeting_ended("m")
    assert (await before.next()).outbox.kept_webhooks() == KeptWebhooks()


async def test_event_told_by_two_processes_has_one_id() -> None:
    before = Process(m=False)
    await before.types()
    before.outbox.meeting_started("m")
    before.now_s += 60.0
    after = await before.next(m=False)
    after.now_s += 61.0
    told = []
    for process in (before, after):
        await process.outbox.tend(HOOK, 0)
        process.outbox.meeting_ended("m")
        process.now_s += 2.0
        deliveries = (await process.outbox.tend(HOOK, 9)).deliveries
        told.append({each.event.type: each.event.id for each in deliveries})
    assert told[0] == told[1]
    assert len(set(told[0].values())) == 3
    # It starts again.
    after.outbox.meeting_started("m")
    [again] = (await after.outbox.tend(HOOK, 9)).deliveries
    assert again.event.id not in told[1].values()
