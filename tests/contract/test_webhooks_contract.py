"""The duties of every adapter of the WebhookOutbox port: meetings are told of once, and every event is delivered.

Each test has two gateways on one store, and what it is about holds over both.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.domain.ports import EventLog, SessionStore
from gateway.domain.sessions import SessionRecord
from gateway.domain.webhooks import Delivery, Event, Settled, Webhook, WebhookOutbox
from gateway.stores import memory_webhooks
from gateway.stores.redis import webhooks as redis_webhooks
from tests.contract.stores import STORES, OpenStore, Store
from tests.logs import nothing, translated, utterance

ANA, BO, CY = b"a" * 32, b"b" * 32, b"c" * 32
HOOK = Webhook(name="backend", url="https://example.com/hook", secret_file="secret")
OTHER = replace(HOOK, name="other")
STARTED, ENDED, READY = "meeting.started", "meeting.ended", "transcript.ready"
# Longer than what was said last takes to be accepted.
A_WHILE_S = 1.2
DONE = Settled("It answered with status 200.")


def record(participant: str = "ana", meeting: str = "acme/m", *, private: bool = False) -> SessionRecord:
    return SessionRecord(participant, meeting, private, participant.title(), "en", ("ja",))


def _order(event: Event) -> tuple[int, int, int]:
    """They come in any order; of one millisecond are often the start and the end of a meeting."""
    return event.at_ms, event.started_ms, [STARTED, ENDED, READY].index(event.type)


class Gateway:
    def __init__(self, session_store: SessionStore, log: EventLog, outbox: WebhookOutbox) -> None:
        self.session_store, self.log, self.outbox = session_store, log, outbox

    async def claim(self, webhook: Webhook = HOOK, most: int = 100) -> list[Delivery]:
        return list((await self.outbox.tend(webhook, most)).deliveries)

    async def events(self, webhook: Webhook = HOOK) -> list[Event]:
        """All that wait, which are delivered by that."""
        deliveries = await self.claim(webhook)
        for each in deliveries:
            await self.outbox.settle(webhook, each, DONE)
        return sorted((each.event for each in deliveries), key=_order)

    async def types(self, webhook: Webhook = HOOK) -> list[str]:
        return [event.type for event in await self.events(webhook)]


class Two:
    def __init__(self, store: Store, here: Gateway, there: Gateway) -> None:
        self.store, self.here, self.there = store, here, there


@pytest.fixture(params=list(STORES))
def open_store(request: pytest.FixtureRequest) -> OpenStore:
    return STORES[request.param]


async def gateway(store: Store) -> Gateway:
    found = Gateway(await store.session_store(), await store.gateway(), await store.webhooks())
    await found.session_store.open(lambda *_: None, lambda _: None)
    return found


@asynccontextmanager
async def opened(open_store: OpenStore, *webhooks: Webhook, **bounds: Any) -> AsyncIterator[Two]:
    async with open_store(**bounds) as store:
        two = Two(store, await gateway(store), await gateway(store))
        for webhook in webhooks:
            assert await two.here.claim(webhook) == []
        yield two


@pytest.fixture
async def two(open_store: OpenStore) -> AsyncIterator[Two]:
    async with opened(open_store, HOOK) as two:
        yield two


async def say(
    gateway: Gateway, languages: Collection[str] = (), meeting: str = "acme/m", *, record: bool = True
) -> None:
    async with gateway.log.subscribe(meeting, nothing, record=record) as subscription:
        await subscription.reads(languages)
        await gateway.log.accept(meeting, utterance("Hello.", "1"))


# What is told of a meeting


async def test_meeting_spans_its_first_to_last_session(two: Two) -> None:
    first = await two.here.session_store.begin(ANA, record())
    second = await two.there.session_store.begin(BO, record("bo"))
    [started] = await two.there.events()
    assert (started.type, started.meeting, started.started_ms, started.ended_ms) == (
        *(STARTED, "acme/m"),
        *(started.at_ms, 0),
    )
    await two.here.session_store.end(ANA, first)
    assert await two.here.events() == []
    await two.there.session_store.end(BO, second)
    [ended] = await two.here.events()
    assert (ended.type, ended.meeting) == (ENDED, "acme/m")
    assert (ended.started_ms, ended.ended_ms) == (started.at_ms, ended.at_ms)
    assert ended.id != started.id


async def test_what_is_repeated_is_told_once(two: Two) -> None:
    fence = await two.here.session_store.begin(ANA, record())
    await two.here.session_store.begin(ANA, record())
    await two.here.session_store.end(ANA, fence)
    await two.here.session_store.end(ANA, fence)
    assert await two.here.types() == [STARTED, ENDED]


async def test_every_start_of_every_meeting_is_told(two: Two) -> None:
    """A meeting that resumes starts once more."""
    for meeting in ("acme/m", "acme/n", "acme/m"):
        fence = await two.here.session_store.begin(ANA, record(meeting=meeting))
        await two.store.pass_time(0.01)
        await two.here.session_store.end(ANA, fence)
        await two.store.pass_time(0.01)
    events = await two.here.events()
    assert [(event.type, event.meeting) for event in events] == [
        *((STARTED, "acme/m"), (ENDED, "acme/m"), (STARTED, "acme/n"), (ENDED, "acme/n")),
        *((STARTED, "acme/m"), (ENDED, "acme/m")),
    ]
    assert len({event.id for event in events}) == 6


async def test_nothing_is_told_of_private_meetings(two: Two) -> None:
    fence = await two.here.session_store.begin(ANA, record(private=True))
    await say(two.here)
    await two.here.session_store.end(ANA, fence)
    await two.store.pass_time(A_WHILE_S)
    assert await two.here.types() == []


async def test_who_comes_back_in_time_does_not_end_it(open_store: OpenStore) -> None:
    async with opened(open_store, HOOK, keep_sessions_s=60.0) as two:
        fence = await two.here.session_store.begin(ANA, record())
        assert await two.here.session_store.save(ANA, fence, record(), away_s=1.0)
        await two.here.session_store.release(ANA, fence)
        await two.store.pass_time(0.1)
        assert await two.there.session_store.take(ANA, fence, record()) is not None
        assert await two.here.types() == [STARTED]


async def test_meeting_ends_once_after_long_absence(open_store: OpenStore) -> None:
    """The last participant was away for too long."""
    async with opened(open_store, HOOK, keep_sessions_s=0.3) as two:
        for session, name in ((ANA, "ana"), (BO, "bo")):
            fence = await two.here.session_store.begin(session, record(name))
            await two.here.session_store.release(session, fence)
        await two.store.pass_time(0.4)
        await two.store.pass_time(0.1)
        assert await two.there.types() == [STARTED, ENDED]


async def test_meeting_ends_once_when_its_gateway_dies(open_store: OpenStore) -> None:
    """It is the gateway of the last participant."""
    async with opened(open_store, HOOK, keep_sessions_s=0.3) as two:
        await two.here.session_store.begin(ANA, record())
        await two.store.lose(two.here.session_store)
        await two.store.pass_time(0.4)
        await two.store.pass_time(0.1)
        assert await two.there.types() == [STARTED, ENDED]


# When a transcript is ready


async def test_transcript_is_ready_once_all_promises_are_kept(two: Two) -> None:
    fence = await two.here.session_store.begin(ANA, record())
    await say(two.here, ["ja"])
    await two.store.pass_time(A_WHILE_S)
    await two.here.session_store.end(ANA, fence)
    [started, ended] = await two.here.events()
    await two.store.pass_time(A_WHILE_S)
    assert await two.here.events() == []
    assert await two.here.log.conclude("acme/m", translated("やあ。"))
    await two.store.pass_time(A_WHILE_S)
    [ready] = await two.there.events()
    assert (ready.type, ready.meeting) == (READY, "acme/m")
    assert (ready.started_ms, ready.ended_ms) == (started.at_ms, ended.at_ms)
    await two.store.pass_time(A_WHILE_S)
    assert await two.there.events() == []


async def test_without_promises_it_is_ready_soon(two: Two) -> None:
    fence = await two.here.session_store.begin(ANA, replace(record(), reads=()))
    await say(two.here)
    await two.here.session_store.end(ANA, fence)
    await two.store.pass_time(A_WHILE_S)
    assert await two.here.types() == [STARTED, ENDED, READY]


async def test_empty_or_erased_meetings_have_no_transcript(two: Two) -> None:
    for session, meeting in ((ANA, "acme/m"), (BO, "acme/n")):
        fence = await two.here.session_store.begin(session, replace(record(meeting=meeting), reads=()))
        if meeting == "acme/n":
            await say(two.here, meeting=meeting)
        await two.here.session_store.end(session, fence)
    assert await two.here.log.erase("acme/n")
    await two.store.pass_time(A_WHILE_S)
    assert sorted(await two.here.types()) == [ENDED, ENDED, STARTED, STARTED]


@pytest.mark.parametrize("languages", [(), ("ja",)])
async def test_a_meeting_that_is_not_recorded_has_none(two: Two, languages: Collection[str]) -> None:
    fence = await two.here.session_store.begin(ANA, record())
    await say(two.here, languages, record=False)
    await two.here.session_store.end(ANA, fence)
    await two.store.pass_time(A_WHILE_S)
    await two.here.log.conclude("acme/m", translated("やあ。"))
    await two.store.pass_time(A_WHILE_S)
    assert await two.here.types() == [STARTED, ENDED]


async def test_an_expired_meeting_has_no_transcript(open_store: OpenStore) -> None:
    async with opened(open_store, HOOK, keep_s=0.5) as two:
        fence = await two.here.session_store.begin(ANA, replace(record(), reads=()))
        await say(two.here)
        async with two.here.log.subscribe("acme/m", nothing):
            await two.store.pass_time(0.6)
            await two.here.log.read("acme/m", 0)
            await two.here.session_store.end(ANA, fence)
            await two.store.pass_time(A_WHILE_S)
            assert await two.here.types() == [STARTED, ENDED]


async def test_a_return_postpones_the_transcript_to_next_end(two: Two) -> None:
    fence = await two.here.session_store.begin(ANA, record())
    await say(two.here, ["ja"])
    await two.here.session_store.end(ANA, fence)
    await two.store.pass_time(0.01)
    fence = await two.there.session_store.begin(BO, record("bo"))
    assert await two.here.log.conclude("acme/m", translated("やあ。"))
    await two.store.pass_time(A_WHILE_S)
    assert await two.here.types() == [STARTED, ENDED, STARTED]
    await two.there.session_store.end(BO, fence)
    await two.store.pass_time(A_WHILE_S)
    assert await two.here.types() == [ENDED, READY]


# To whom


async def test_each_webhook_gets_what_it_wants_of_its_tenants(open_store: OpenStore) -> None:
    ends = replace(HOOK, name="ends", events=(ENDED,))
    acme = replace(HOOK, name="acme", tenants=("other", "acme"))
    nobody = replace(HOOK, name="nobody", tenants=("acm", "default"))
    async with opened(open_store, HOOK, ends, acme, nobody) as two:
        for session, meeting in ((ANA, "acme/m"), (BO, "m")):
            await two.here.session_store.end(
                session, await two.here.session_store.begin(session, record(meeting=meeting))
            )
        everything = await two.here.events()
        assert sorted(event.type for event in everything) == [ENDED, ENDED, STARTED, STARTED]
        assert await two.there.events(ends) == [event for event in everything if event.type == ENDED]
        assert await two.there.events(acme) == [event for event in everything if event.meeting == "acme/m"]
        assert await two.there.events(nobody) == [event for event in everything if event.meeting == "m"]


async def test_a_webhook_gets_what_happens_once_it_is_there(two: Two) -> None:
    fence = await two.here.session_store.begin(ANA, record())
    assert await two.there.types(OTHER) == []
    await two.here.session_store.end(ANA, fence)
    assert await two.there.types(OTHER) == [ENDED]


# Deliveries


async def test_one_gateway_has_a_delivery_at_a_time(two: Two) -> None:
    await two.here.session_store.begin(ANA, record())
    await two.here.session_store.begin(BO, record(meeting="acme/n"))
    [one] = await two.here.claim(most=1)
    [other] = await two.there.claim()
    assert {one.event.meeting, other.event.meeting} == {"acme/m", "acme/n"}
    assert (one.tries, other.tries) == (1, 1)
    assert await two.here.claim() == []
    assert (await two.here.outbox.tend(HOOK, 0)).waiting == 2


async def test_what_failed_is_tried_again_with_the_same_event(two: Two) -> None:
    await two.here.session_store.begin(ANA, record())
    [delivery] = await two.here.claim()
    await two.here.outbox.settle(HOOK, delivery, Settled("It answered with status 500.", 0.3))
    await two.store.pass_time(0.4)
    [again] = await two.there.claim()
    assert again.event == delivery.event
    assert again.tries == 2
    assert again.age_s >= 0.3
    # Not earlier than that.
    await two.there.outbox.settle(HOOK, again, Settled("It answered with status 500.", 3_600.0))
    await two.store.pass_time(0.4)
    tended = await two.here.outbox.tend(HOOK, 9)
    assert (tended.deliveries, tended.waiting) == ((), 1)


async def test_what_was_taken_does_not_wait_any_more(two: Two) -> None:
    await two.here.session_store.begin(ANA, record())
    [delivery] = await two.here.claim()
    await two.here.outbox.settle(HOOK, delivery, DONE)
    assert (await two.there.outbox.tend(HOOK, 9)).waiting == 0


async def test_another_gateway_gets_what_was_not_settled(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    await two.here.session_store.begin(ANA, record())
    with monkeypatch.context() as soon:
        for module in (redis_webhooks, memory_webhooks):
            soon.setattr(module, "LEASE_S", 0.3)
        [lost] = await two.here.claim()
    await two.store.pass_time(0.4)
    [taken] = await two.there.claim()
    assert (taken.event, taken.tries) == (lost.event, 2)
    # The first one is slow, not dead: it does not delay the other's try, nor let a third begin.
    await two.here.outbox.settle(HOOK, lost, Settled("It did not answer.", 0.0))
    assert await two.here.claim() == []
    await two.there.outbox.settle(HOOK, taken, DONE)
    await two.store.pass_time(0.4)
    assert await two.here.claim() == []


async def test_gone_webhook_gets_nothing_until_resumed(two: Two) -> None:
    fence = await two.here.session_store.begin(ANA, record())
    await two.here.session_store.begin(BO, record(meeting="acme/n"))
    delivery = (await two.here.claim())[0]
    await two.here.outbox.settle(HOOK, delivery, Settled("It answered with status 410.", gone=True))
    await two.here.session_store.end(ANA, fence)
    assert await two.there.types() == []
    state = await two.there.outbox.state(HOOK)
    assert (state.gone, state.waiting, state.oldest_ms) == (True, 0, 0)
    await two.there.outbox.resume(HOOK)
    await two.here.session_store.begin(ANA, record())
    assert await two.here.types() == [STARTED]
    assert not (await two.there.outbox.state(HOOK)).gone


async def test_another_address_is_another_try(two: Two) -> None:
    await two.here.session_store.begin(ANA, record())
    [delivery] = await two.here.claim()
    await two.here.outbox.settle(HOOK, delivery, Settled("It answered with status 410.", gone=True))
    moved = replace(HOOK, url="https://example.com/other")
    assert await two.here.types(moved) == []
    await two.here.session_store.begin(BO, record(meeting="acme/n"))
    assert await two.there.types(moved) == [STARTED]


async def test_late_answer_of_old_address_spares_the_new(two: Two) -> None:
    await two.here.session_store.begin(ANA, record())
    [late] = await two.here.claim()
    moved = replace(HOOK, url="https://example.com/other")
    assert await two.there.types(moved) == []
    await two.here.outbox.settle(HOOK, late, Settled("It answered with status 410.", gone=True))
    assert not (await two.there.outbox.state(moved)).gone
    [again] = await two.there.claim(moved)
    assert (again.event, again.tries) == (late.event, 2)


async def test_a_full_outbox_drops_and_tells_once(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (redis_webhooks, memory_webhooks):
        monkeypatch.setattr(module, "MOST_WAITING", 2)
    async with opened(open_store, HOOK) as two:
        for session, meeting in ((ANA, "acme/m"), (BO, "acme/n"), (CY, "acme/o")):
            await two.here.session_store.begin(session, record(meeting=meeting))
        tended = await two.there.outbox.tend(HOOK, 9)
        assert {each.event.meeting for each in tended.deliveries} == {"acme/m", "acme/n"}
        assert (tended.waiting, tended.dropped) == (2, 1)
        assert (await two.here.outbox.tend(HOOK, 9)).dropped == 0


async def test_operators_see_waiting_events_and_last_result(two: Two) -> None:
    state = await two.here.outbox.state(HOOK)
    assert (state.waiting, state.oldest_ms, state.tried_ms, state.said, state.gone) == (0, 0, 0, "", False)
    await two.here.session_store.begin(ANA, record())
    [delivery] = await two.here.claim()
    await two.here.outbox.settle(HOOK, delivery, Settled("It answered with status 500.", 60.0))
    state = await two.there.outbox.state(HOOK)
    assert (state.waiting, state.oldest_ms) == (1, delivery.event.at_ms)
    assert state.tried_ms >= delivery.event.at_ms
    assert state.said == "It answered with status 500."
