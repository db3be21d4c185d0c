"""The port behind which events wait until they are delivered.

Knows: its contract. Must not know: any implementation.
"""

from __future__ import annotations

from typing import Protocol

from gateway.domain.webhooks.values import Delivery, KeptWebhooks, Settled, Tended, Webhook, WebhookState


class WebhookOutbox(Protocol):
    """Events that wait for webhooks. The register of the same store puts them in, as it knows when a meeting ends.

    Each gateway has access of its own; those of one store share what is in it. Contract of every adapter
    (`tests/contract/test_webhooks_contract.py` runs on each, with two gateways on one store):
    - a meeting starts when the first session begins in it, and ends when none is left; both are told once, in the
      step that causes them, to every webhook that was tended before;
    - its transcript is ready once, when nothing of it is unfinished any more; not if nothing is kept of it, or if
      somebody has come back by then: the next end counts;
    - of private meetings nothing is told;
    - at one time one gateway has a delivery; if it does not settle it within `LEASE_S`, another one gets it.

    Everything but `kept` raises `LogUnavailable` while the store cannot be reached, and can be repeated.
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

    async def kept(self) -> KeptWebhooks:
        """What would be lost with this process, for the next one."""
