"""Delivers what waits for webhooks: at least once, in any order, for a day.

Knows: which webhooks there are, how often and when a delivery is tried. Must not know: HTTP, where events wait.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import time
from collections.abc import Callable, Sequence

from gateway import metrics
from gateway.domain.errors import LogUnavailable, StartupError
from gateway.domain.webhooks import Delivery, Event, Settled, Webhook, WebhookOutbox
from gateway.webhooks.sender import PING, Answer, Sender, body, headers, read_secrets

_log = logging.getLogger(__name__)

# Deliveries of one webhook under way at this gateway.
_AT_ONCE = 8
_LOOK_S = 1.0
# Before the second try, between two later ones, and from the event to the last one, in seconds. The first two are
# the least and the most that a webhook can ask for, too.
_FIRST_S, _LONGEST_S, _LAST_S = 5.0, 3_600.0, 86_400.0
_GONE = 410


def pause_s(tries: int, chance: float) -> float:
    """Until the next try, after so many: it doubles. chance: 0 to 1; 0 halves it, so that not all come at once."""
    return min(_FIRST_S * 2.0 ** min(tries - 1, 30), _LONGEST_S) * (0.5 + chance / 2)


class Deliveries:
    """One gateway's part of it. Raises `StartupError` if a secret cannot be used."""

    def __init__(
        self,
        webhooks: Sequence[Webhook],
        outbox: WebhookOutbox,
        *,
        sender: Sender | None = None,
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.webhooks = {each.name: each for each in webhooks}
        self._outbox = outbox
        for each in webhooks:
            read_secrets(each.secret_file)
            for outcome in ("delivered", "failed", "given_up", "dropped"):
                metrics.WEBHOOK_DELIVERIES.labels(each.name, outcome)
        self._sender = sender or Sender()
        self._chance = chance
        self._clock = clock
        # Name of a webhook that has asked for a pause → until when.
        self._paused_until: dict[str, float] = {}
        # Names of those whose last try has failed.
        self._failing: set[str] = set()

    async def open(self) -> None:
        """From now on events wait for every webhook, or once the store answers."""
        for webhook in self.webhooks.values():
            await self._look(webhook, 0)

    async def run(self) -> None:
        """Deliver until cancelled; what is under way then is tried again by the gateway that looks next."""
        async with asyncio.TaskGroup() as tasks:
            for webhook in self.webhooks.values():
                tasks.create_task(self._run(webhook))

    async def _run(self, webhook: Webhook) -> None:
        running: set[asyncio.Task[None]] = set()
        async with asyncio.TaskGroup() as tasks:
            while True:
                paused = self._clock() < self._paused_until.get(webhook.name, 0.0)
                claimed = await self._look(webhook, 0 if paused else max(0, _AT_ONCE - len(running)))
                for delivery in claimed:
                    running.add(task := tasks.create_task(self._deliver(webhook, delivery)))
                    task.add_done_callback(running.discard)
                if claimed:  # there may be more, as soon as one has ended
                    await asyncio.wait(running, timeout=_LOOK_S, return_when=asyncio.FIRST_COMPLETED)
                else:
                    await asyncio.sleep(_LOOK_S)

    async def _look(self, webhook: Webhook, most: int) -> Sequence[Delivery]:
        try:
            tended = await self._outbox.tend(webhook, most)
        except LogUnavailable:
            return ()
        except Exception:
            _log.exception("it cannot be seen what waits for webhook %s", webhook.name)
            return ()
        metrics.WEBHOOK_WAITING.labels(webhook.name).set(tended.waiting)
        metrics.WEBHOOK_OLDEST_S.labels(webhook.name).set(tended.oldest_s)
        if tended.dropped:
            metrics.WEBHOOK_DELIVERIES.labels(webhook.name, "dropped").inc(tended.dropped)
            _log.error("webhook %s: %d events dropped, as too many wait", webhook.name, tended.dropped)
        return tended.deliveries

    async def _deliver(self, webhook: Webhook, delivery: Delivery) -> None:
        try:
            answer = await self._post(webhook, delivery.event)
            await self._outbox.settle(webhook, delivery, self._settled(webhook, delivery, answer))
        except LogUnavailable:
            pass  # it is tried again
        except Exception:  # what is not told is not worth the meetings that go on
            _log.exception("event %s for webhook %s is stuck", delivery.event.id, webhook.name)

    async def _post(self, webhook: Webhook, event: Event) -> Answer:
        try:
            keys = read_secrets(webhook.secret_file)
        except StartupError as error:
            return Answer(0, error.message)
        sent = body(event)
        return await self._sender.post(webhook.url, sent, headers(keys, event.id, int(time.time()), sent))

    def _settled(self, webhook: Webhook, delivery: Delivery, answer: Answer) -> Settled:
        name, count = webhook.name, metrics.WEBHOOK_DELIVERIES
        if 200 <= answer.status < 300:
            count.labels(name, "delivered").inc()
            if name in self._failing:
                self._failing.discard(name)
                _log.warning("webhook %s: events are delivered again", name)
            return Settled(answer.said)
        count.labels(name, "failed").inc()
        if name not in self._failing:
            self._failing.add(name)
            _log.warning("webhook %s: an event could not be delivered: %s", name, answer.said)
        if answer.status == _GONE:
            _log.error("webhook %s wants nothing more (410): what waits is dropped, and nothing is sent", name)
            return Settled(answer.said, gone=True)
        if answer.retry_after_s is None:
            again_s = pause_s(delivery.tries, self._chance())
        else:
            again_s = min(max(answer.retry_after_s, _FIRST_S), _LONGEST_S)
            self._paused_until[name] = max(self._paused_until.get(name, 0.0), self._clock() + again_s)
        if delivery.age_s + again_s > _LAST_S:
            count.labels(name, "given_up").inc()
            _log.error("webhook %s: event %s was not delivered within a day", name, delivery.event.id)
            return Settled(answer.said)
        return Settled(answer.said, again_s)

    async def ping(self, webhook: Webhook) -> tuple[int, str]:
        """Send an event of no meeting, once and now. A webhook that takes it wants events again.

        The status of HTTP, 0 without an answer, and a sentence. Raises `LogUnavailable`.
        """
        now_ms = round(time.time() * 1_000)
        answer = await self._post(webhook, Event(f"evt_{secrets.token_hex(12)}", PING, "", now_ms, 0))
        if 200 <= answer.status < 300:
            self._paused_until.pop(webhook.name, None)
            await self._outbox.resume(webhook)
        return answer.status, answer.said
