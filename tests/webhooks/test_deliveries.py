"""How often and when a delivery is tried, and when it is not tried any more."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from gateway import metrics
from gateway.domain.errors import LogUnavailable, StartupError
from gateway.domain.webhooks import Delivery, Settled, Tended, Webhook
from gateway.stores.memory_webhooks import MemoryWebhookOutbox
from gateway.webhooks.deliveries import Deliveries, pause_s
from gateway.webhooks.sender import Answer, Sender
from tests.patience import until

DAY_S = 86_400.0


class Other:
    """Who is told. answers: status after status; the last one stays."""

    def __init__(self, *answers: int) -> None:
        self.answers = list(answers)
        self.retry_after_s: float | None = None
        self.received: list[tuple[str, bytes]] = []

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        self.received.append((headers["webhook-id"], body))
        status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return Answer(status, f"It answered with status {status}.", self.retry_after_s)


class Stage:
    """A store whose time the test lets pass, one webhook and who is told by it."""

    def __init__(self, folder: Path, *answers: int) -> None:
        self.now_s = 1_700_000_000.0
        self.outbox = MemoryWebhookOutbox(wall_clock=lambda: self.now_s)
        (folder / "secret").write_text(f"whsec_{'A' * 32}")
        self.webhook = Webhook(name="backend", url="https://example.com", secret_file=str(folder / "secret"))
        self.other = Other(*answers)
        sender = cast(Sender, self.other)
        self.deliveries = Deliveries(
            [self.webhook], self.outbox, sender=sender, chance=lambda: 1.0, clock=lambda: self.now_s
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        await self.deliveries.open()
        running = asyncio.create_task(self.deliveries.run())
        try:
            yield
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running

    async def settled(self, delivery: Delivery, status: int) -> Settled:
        self.other.answers = [status]
        before = Recorded()
        deliveries = Deliveries([self.webhook], before, sender=cast(Sender, self.other), chance=lambda: 1.0)
        await deliveries._deliver(self.webhook, delivery)
        [settled] = before.settled
        return settled


class Recorded(MemoryWebhookOutbox):
    def __init__(self) -> None:
        super().__init__()
        self.settled: list[Settled] = []

    async def settle(self, webhook: Webhook, delivery: Delivery, settled: Settled) -> None:
        self.settled.append(settled)


def counted(outcome: str) -> float:
    return float(metrics.WEBHOOK_DELIVERIES.labels("backend", outcome)._value.get())


def test_pauses_double_to_an_hour_with_random_cuts() -> None:
    assert [pause_s(tries, 1.0) for tries in (1, 2, 3, 10, 11, 500)] == [5, 10, 20, 2_560, 3_600, 3_600]
    assert [pause_s(tries, 0.0) for tries in (1, 11)] == [2.5, 1_800]


async def test_what_waits_is_delivered_with_its_id(tmp_path: Path) -> None:
    stage = Stage(tmp_path, 200)
    before = counted("delivered")
    async with stage.running():
        for meeting in map(str, range(20)):  # more than go at once
            stage.outbox.meeting_started(meeting)
        await until(lambda: len(stage.other.received) == 20)
        await until(lambda: not stage.outbox.webhook("backend").waiting)
    assert counted("delivered") - before == 20
    ids = [id for id, _ in stage.other.received]
    assert len(set(ids)) == 20
    assert all(id.encode() in body for id, body in stage.other.received)


async def test_a_failure_is_tried_again_when_it_is_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(tmp_path, 500, 500, 200)
    with caplog.at_level(logging.WARNING, "gateway"):
        async with stage.running():
            stage.outbox.meeting_started("m")
            await until(lambda: stage.outbox.webhook("backend").said)
            assert len(stage.other.received) == 1
            stage.now_s += 5.0
            await until(lambda: len(stage.other.received) == 2)
            stage.now_s += 10.0
            await until(lambda: not stage.outbox.webhook("backend").waiting)
    assert len(set(stage.other.received)) == 1
    # One line when it begins to fail, one when it is over.
    assert [record.getMessage() for record in caplog.records] == [
        "webhook backend: an event could not be delivered: It answered with status 500.",
        "webhook backend: events are delivered again",
    ]


async def test_refusals_but_gone_are_retried_for_a_day(tmp_path: Path) -> None:
    stage = Stage(tmp_path, 200)
    await stage.outbox.tend(stage.webhook, 0)
    stage.outbox.meeting_started("m")
    [delivery] = (await stage.outbox.tend(stage.webhook, 1)).deliveries
    for status in (0, 301, 400, 404, 429, 500, 503):
        assert (await stage.settled(delivery, status)).again_s == 5.0
    assert (await stage.settled(delivery, 299)).again_s is None
    gone = await stage.settled(delivery, 410)
    assert (gone.gone, gone.again_s) == (True, None)
    before = counted("given_up")
    late = replace(delivery, tries=30, age_s=DAY_S - 3_601)
    assert (await stage.settled(late, 500)).again_s == 3_600
    assert counted("given_up") == before
    assert await stage.settled(replace(late, age_s=DAY_S - 3_599), 500) == Settled("It answered with status 500.")
    assert counted("given_up") == before + 1


async def test_requested_pause_is_kept_within_bounds(tmp_path: Path) -> None:
    """The bounds are those of the plan."""
    stage = Stage(tmp_path, 200)
    await stage.outbox.tend(stage.webhook, 0)
    stage.outbox.meeting_started("m")
    [delivery] = (await stage.outbox.tend(stage.webhook, 1)).deliveries
    # Whatever the number of tries would make of it.
    late = replace(delivery, tries=30, age_s=1.0)
    for asked, again_s in ((0.0, 5.0), (120.0, 120.0), (7_200.0, 3_600.0)):
        stage.other.retry_after_s = asked
        assert (await stage.settled(late, 503)).again_s == again_s
    assert (await stage.settled(replace(late, age_s=DAY_S - 3_599), 429)).again_s is None


async def test_other_events_wait_during_a_requested_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage, asked = Stage(tmp_path, 429, 200), []
    monkeypatch.setattr("gateway.webhooks.deliveries._LOOK_S", 0.01)
    real = stage.outbox.tend

    async def tend(webhook: Webhook, most: int) -> Tended:
        asked.append(most)
        return await real(webhook, most)

    monkeypatch.setattr(stage.outbox, "tend", tend)
    stage.other.retry_after_s = 60.0
    async with stage.running():
        stage.outbox.meeting_started("m")
        await until(lambda: stage.outbox.webhook("backend").said)
        stage.outbox.meeting_started("n")
        stage.now_s += 59.0
        asked.clear()
        await until(lambda: len(asked) > 3)
        assert set(asked) == {0}
        stage.now_s += 1.0
        await until(lambda: not stage.outbox.webhook("backend").waiting)
    assert len(stage.other.received) == 3


async def test_while_the_store_is_away_it_goes_on_trying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, 200)
    monkeypatch.setattr("gateway.webhooks.deliveries._LOOK_S", 0.01)
    asked = []

    async def away(webhook: Webhook, most: int) -> Tended:
        asked.append(most)
        raise LogUnavailable("away") if len(asked) % 2 else RuntimeError("a mistake")

    real = stage.outbox.tend
    monkeypatch.setattr(stage.outbox, "tend", away)
    async with stage.running():
        await until(lambda: len(asked) > 4)
        monkeypatch.setattr(stage.outbox, "tend", real)
        await until(lambda: stage.outbox.webhook("backend").settings)
        stage.outbox.meeting_started("m")
        await until(lambda: stage.other.received)


async def test_an_unsendable_event_does_not_block_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(tmp_path, 200)
    async with stage.running():
        stage.outbox.started["broken"] = 10**30  # no time
        stage.outbox.meeting_ended("broken")
        stage.outbox.meeting_started("m")
        await until(lambda: stage.other.received and "is stuck" in caplog.text)
    assert len(stage.other.received) == 1
    assert len(stage.outbox.webhook("backend").waiting) == 1


async def test_nothing_is_claimed_while_deliveries_are_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, asked, answers = Stage(tmp_path, 200), [], asyncio.Event()
    monkeypatch.setattr("gateway.webhooks.deliveries._LOOK_S", 0.01)
    real, post = stage.outbox.tend, stage.other.post

    async def twice_as_many(webhook: Webhook, most: int) -> Tended:
        asked.append(most)
        return await real(webhook, 2 * most)  # of two stores

    async def slow(url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        await answers.wait()
        return await post(url, body, headers)

    monkeypatch.setattr(stage.outbox, "tend", twice_as_many)
    monkeypatch.setattr(stage.other, "post", slow)
    async with stage.running():
        for meeting in map(str, range(20)):
            stage.outbox.meeting_started(meeting)
        await until(lambda: len(asked) > 3)
        assert asked[1:4] == [8, 0, 0]
        answers.set()
        await until(lambda: not stage.outbox.webhook("backend").waiting)
    assert len(stage.other.received) == 20


async def test_events_that_were_dropped_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, 500)
    monkeypatch.setattr("gateway.stores.memory_webhooks.MOST_WAITING", 1)
    before = counted("dropped")
    async with stage.running():
        for meeting in ("m", "n", "o"):
            stage.outbox.meeting_started(meeting)
        await until(lambda: counted("dropped") == before + 2)
        await until(lambda: metrics.WEBHOOK_WAITING.labels("backend")._value.get() == 1)


async def test_a_replaced_secret_signs_and_none_fails(tmp_path: Path) -> None:
    """A new secret signs from then on; without a secret, the delivery fails."""
    stage = Stage(tmp_path, 200)
    assert (await stage.deliveries.ping(stage.webhook))[0] == 200
    (tmp_path / "secret").write_text("nothing")
    status, said = await stage.deliveries.ping(stage.webhook)
    assert (status, "secret_file" in said) == (0, True)
    assert len(stage.other.received) == 1


async def test_accepted_test_resumes_a_gone_webhook(tmp_path: Path) -> None:
    stage = Stage(tmp_path, 410, 410, 200)
    async with stage.running():
        stage.outbox.meeting_started("m")
        await until(lambda: stage.outbox.webhook("backend").gone)
        await stage.deliveries.ping(stage.webhook)
        assert stage.outbox.webhook("backend").gone
        await stage.deliveries.ping(stage.webhook)
        assert not stage.outbox.webhook("backend").gone
        stage.outbox.meeting_started("n")
        await until(lambda: not stage.outbox.webhook("backend").waiting)
        assert len(stage.other.received) == 4


async def test_without_webhooks_nothing_runs() -> None:
    deliveries = Deliveries([], MemoryWebhookOutbox())
    await deliveries.open()
    await deliveries.run()


def test_a_secret_that_cannot_be_used_ends_the_start(tmp_path: Path) -> None:
    webhook = Webhook(name="backend", url="https://example.com", secret_file=str(tmp_path / "nowhere"))
    with pytest.raises(StartupError, match="nowhere"):
        Deliveries([webhook], MemoryWebhookOutbox())
