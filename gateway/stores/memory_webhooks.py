"""Events that wait for webhooks in this process's memory. They end with the process unless handed over.

Knows: which meetings go on, and which have ended without a transcript that is ready.
Must not know: files, HTTP. Nothing here awaits, so every operation is atomic.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.domain.grants import tenant_of
from gateway.domain.webhooks import (
    LEASE_S,
    MOST_WAITING,
    Delivery,
    Event,
    EventType,
    KeptEvent,
    KeptWebhooks,
    Settled,
    Tended,
    Webhook,
    WebhookState,
)

# For what was said last to be accepted, before a transcript may be ready.
_ACCEPTED_MS = 1_000


@dataclass(slots=True)
class _Waiting:
    event: Event
    # When to try, or until when a gateway has it.
    due_ms: int
    tries: int = 0


@dataclass(slots=True)
class _Webhook:
    # None: it was not tended by this process yet.
    settings: Webhook | None = None
    # By their ids, the oldest first.
    waiting: dict[str, _Waiting] = field(default_factory=dict)
    dropped: int = 0
    tried_ms: int = 0
    said: str = ""
    # The address at which it wanted nothing more.
    gone: str | None = None

    def wants(self, event: Event) -> bool:
        settings = self.settings
        if settings is None or self.gone is not None or event.type not in settings.events:
            return False
        return not settings.tenants or tenant_of(event.meeting) in settings.tenants


class MemoryWebhookOutbox:
    """What the gateways of one process share. earlier: what another process kept.

    is_unfinished: whether something of a meeting's transcript is not finished; None if nothing is kept of it.
    """

    def __init__(
        self,
        is_unfinished: Callable[[str], bool | None] = lambda _: None,
        earlier: KeptWebhooks | None = None,
        *,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        earlier = earlier or KeptWebhooks()
        self._is_unfinished = is_unfinished
        self._wall_clock = wall_clock
        # Meeting that has participants → when it started, in ms.
        self.started = dict(earlier.started)
        # Meeting that has ended, and has a transcript that is not ready → when it started and ended, in ms.
        self.unfinished = dict(earlier.unfinished)
        self._webhooks: dict[str, _Webhook] = {}
        for name, address in earlier.gone.items():
            self.webhook(name).gone = address
        for each in earlier.events:
            waiting = _Waiting(each.event, self.now_ms, each.tries)
            self.webhook(each.webhook).waiting[each.event.id] = waiting

    @property
    def now_ms(self) -> int:
        """Since 1970."""
        return round(self._wall_clock() * 1_000)

    def webhook(self, name: str) -> _Webhook:
        return self._webhooks.setdefault(name, _Webhook())

    def meeting_started(self, meeting: str) -> None:
        """Its first session has begun; nothing is told if it goes on since an earlier process."""
        if meeting not in self.started:
            self.started[meeting] = self.now_ms
            self.unfinished.pop(meeting, None)
            self._add("meeting.started", meeting, self.now_ms)

    def meeting_ended(self, meeting: str) -> None:
        """Its last session has ended; nothing is told if its start was not."""
        if (started_ms := self.started.pop(meeting, None)) is not None:
            self._add("meeting.ended", meeting, started_ms, self.now_ms)
            if any(each.settings is not None for each in self._webhooks.values()):
                self.unfinished[meeting] = started_ms, self.now_ms

    def look_for_transcripts(self) -> None:
        """Announce the transcripts of meetings that have ended."""
        now_ms = self.now_ms
        for meeting, (started_ms, ended_ms) in list(self.unfinished.items()):
            if ended_ms + _ACCEPTED_MS > now_ms or (unfinished := self._is_unfinished(meeting)):
                continue
            del self.unfinished[meeting]
            if unfinished is not None:
                self._add("transcript.ready", meeting, started_ms, ended_ms)

    def kept_webhooks(self) -> KeptWebhooks:
        """For the next process."""
        webhooks = [(name, each) for name, each in self._webhooks.items() if each.settings is not None]
        return KeptWebhooks(
            events=tuple(
                KeptEvent(name, waiting.event, waiting.tries)
                for name, each in webhooks
                for waiting in each.waiting.values()
            ),
            started=dict(self.started),
            unfinished=dict(self.unfinished) if webhooks else {},
            gone={name: each.gone for name, each in webhooks if each.gone is not None},
        )

    def _add(self, kind: EventType, meeting: str, started_ms: int, ended_ms: int = 0) -> None:
        # What two processes tell of one meeting, around a handover, is one event.
        about = hashlib.sha256(f"{kind} {started_ms} {meeting}".encode()).hexdigest()
        event = Event(f"evt_{about[:24]}", kind, meeting, self.now_ms, started_ms, ended_ms)
        for webhook in self._webhooks.values():
            if not webhook.wants(event):
                continue
            if len(webhook.waiting) < MOST_WAITING:
                webhook.waiting[event.id] = _Waiting(event, event.at_ms)
            else:
                webhook.dropped += 1

    async def tend(self, webhook: Webhook, most: int) -> Tended:
        known, now_ms = self.webhook(webhook.name), self.now_ms
        known.settings = webhook
        if most:  # by then every webhook has been tended once
            self.look_for_transcripts()
        if known.gone != webhook.url:  # another address is another try
            known.gone = None
        due = sorted(
            (each for each in known.waiting.values() if each.due_ms <= now_ms), key=lambda each: each.due_ms
        )
        deliveries = []
        for each in due[:most]:
            each.tries += 1
            each.due_ms = now_ms + round(LEASE_S * 1_000)
            deliveries.append(Delivery(each.event, each.tries, (now_ms - each.event.at_ms) / 1_000))
        oldest = next(iter(known.waiting.values()), None)
        oldest_s = 0.0 if oldest is None else (now_ms - oldest.event.at_ms) / 1_000
        dropped, known.dropped = known.dropped, 0
        return Tended(tuple(deliveries), len(known.waiting), oldest_s, dropped)

    async def settle(self, webhook: Webhook, delivery: Delivery, settled: Settled) -> None:
        known, now_ms = self.webhook(webhook.name), self.now_ms
        known.tried_ms, known.said = now_ms, settled.said
        waiting = known.waiting.get(delivery.event.id)
        if settled.gone and known.settings is not None and known.settings.url != webhook.url:
            settled = Settled(settled.said, 0.0)  # the address that it has by now is tried at once
        if settled.gone:
            known.gone = webhook.url
            known.waiting.clear()
        elif waiting is not None and settled.again_s is None:
            del known.waiting[delivery.event.id]
        elif waiting is not None and settled.again_s is not None and waiting.tries == delivery.tries:
            waiting.due_ms = now_ms + round(settled.again_s * 1_000)

    async def resume(self, webhook: Webhook) -> None:
        self.webhook(webhook.name).gone = None

    async def state(self, webhook: Webhook) -> WebhookState:
        known = self.webhook(webhook.name)
        oldest = next(iter(known.waiting.values()), None)
        return WebhookState(
            waiting=len(known.waiting),
            oldest_ms=0 if oldest is None else oldest.event.at_ms,
            tried_ms=known.tried_ms,
            said=known.said,
            gone=known.gone is not None,
        )
