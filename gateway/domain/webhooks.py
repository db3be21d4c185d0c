"""Webhooks: who is to be told, of what, how a delivery ended, and the port behind which events wait.

Knows: events, which hold nothing of what was said, and the port's contract.
Must not know: any store, HTTP, clocks.
"""

from __future__ import annotations

from typing import Literal, Protocol, get_args

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
    """Section `[[webhooks]]`: a service that is told of meetings, see `docs/webhooks.md`."""

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
    # When the first participant came into the meeting.
    started_ms: int
    # When the last participant was gone; 0: one is still there.
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
    # Time of the event that waits longest, and of the last try, in ms since 1970; 0: there is none.
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
    # Meeting that has not ended → when it started.
    started: dict[str, int] = {}
    # Meeting that has ended, and has a transcript that is not ready → when it started and ended.
    unfinished: dict[str, tuple[int, int]] = {}
    # Webhook that wants nothing more → its address.
    gone: dict[str, str] = {}


class WebhookOutbox(Protocol):
    """Events that wait for webhooks. The session store puts them in: it knows when a meeting ends.

    Each gateway has access of its own; those of one store share what is in it. Contract of every adapter
    (`tests/contract/test_webhooks_contract.py` runs on each, with two gateways on one store):
    - a meeting starts when the first session begins in it, and ends when none is left; both are told once, in the
      step that causes them, to every webhook that was tended before;
    - its transcript is ready once, when nothing of it is unfinished any more; not if nothing is kept of it, or if
      a participant has come back by then: the next end counts;
    - of private meetings nothing is told;
    - at one time one gateway has a delivery; if it does not settle it within `LEASE_S`, another one gets it.

    Everything raises `LogUnavailable` while the store cannot be reached, and can be repeated.
    """

    async def tend(self, webhook: Webhook, most: int) -> Tended:
        """This webhook is there: events wait for it from now on. Claims at most so many deliveries."""

    async def settle(self, webhook: Webhook, delivery: Delivery, settled: Settled) -> None:
        """A try has ended. Does not delay what another gateway has claimed since.

        An address that wants nothing more, but is not the webhook's any more, has failed; the new one is tried.
        """

    async def resume(self, webhook: Webhook) -> None:
        """It wants events again."""

    async def state(self, webhook: Webhook) -> WebhookState:
        """As operators see it; nothing is claimed."""
