"""Webhooks as values: who is to be told, of what, and how a delivery ended.

Knows: events, which hold nothing of what was said. Must not know: stores, HTTP, clocks.
"""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

EventType = Literal["meeting.started", "meeting.ended", "transcript.ready"]
EVENT_TYPES: tuple[EventType, ...] = get_args(EventType)

# Events that wait for one webhook; those that come when it is full are dropped.
MOST_WAITING = 10_000
# Who has claimed a delivery and does not say how it ended within this is gone, and another gateway tries.
LEASE_S = 15.0
# What waits for a webhook that no gateway has in its settings any more is kept for so long.
KEPT_S = 3 * 86_400.0


class Webhook(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section `[[webhooks]]`: somebody who is told of meetings, see `docs/webhooks.md`."""

    # What it is called in metrics, in the log and by the administration. What waits for it is kept by this name.
    name: str
    # Where events are sent to; https.
    url: str
    # File with the secret that signs them, `whsec_…`; with two, both sign.
    secret_file: str
    # Those that are sent.
    events: tuple[EventType, ...] = EVENT_TYPES
    # Whose meetings; empty: every tenant's.
    tenants: tuple[str, ...] = ()
    # Whether `url` may be http on another machine: what is sent can be read on its way.
    allow_http: bool = False


class Event(Struct, frozen=True):
    """Something that has happened to a meeting. Times are in ms since 1970."""

    # The same for each webhook and each try.
    id: str
    type: str
    # The meeting's key.
    meeting: str
    at_ms: int
    # When somebody first came into the meeting.
    started_ms: int
    # When the last one was gone; 0: somebody is there.
    ended_ms: int = 0


class Delivery(Struct, frozen=True):
    """An event that its claimer is to send to one webhook now."""

    event: Event
    # With this one.
    tries: int
    # Since the event.
    age_s: float


class Tended(Struct, frozen=True):
    """What there is for a webhook."""

    deliveries: tuple[Delivery, ...]
    # Events that are not delivered yet, over all gateways; how old the oldest is.
    waiting: int
    oldest_s: float = 0.0
    # Events that came when it was full; each is told to one gateway.
    dropped: int = 0


class Settled(Struct, frozen=True):
    """How a try ended."""

    # One sentence for operators.
    said: str
    # Seconds until the next try; None: there is none.
    again_s: float | None = None
    # Whether the webhook wants nothing more: what waits for it is dropped, and nothing is added.
    gone: bool = False


class WebhookState(Struct, frozen=True):
    """What operators see of a webhook."""

    waiting: int = 0
    # Of the event that waits longest, and of the last try, in ms since 1970; 0: there is none.
    oldest_ms: int = 0
    tried_ms: int = 0
    # How the last try ended.
    said: str = ""
    gone: bool = False


class KeptEvent(Struct, frozen=True):
    """What one process hands over to the next of an event that waits for a webhook."""

    webhook: str
    event: Event
    tries: int


class KeptWebhooks(Struct, frozen=True):
    """What one process hands over to the next."""

    events: tuple[KeptEvent, ...] = ()
    # Meeting that goes on → when it started.
    started: dict[str, int] = {}
    # Meeting that has ended, and has a transcript that is not ready → when it started and ended.
    unfinished: dict[str, tuple[int, int]] = {}
    # Webhook that wants nothing more → its address.
    gone: dict[str, str] = {}
