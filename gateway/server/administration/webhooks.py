"""Webhooks: to see what waits for each and how the last try ended, to test one.

Knows: what operators are told. Must not know: HTTP to others, where events wait.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from urllib.parse import urlsplit

from msgspec import Struct
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from gateway.domain.webhooks import Webhook, WebhookOutbox, WebhookState
from gateway.server.administration.operators import Operators, note
from gateway.server.http.responses import Resource, StatusError, json_response


class WebhookAnswer(Struct, frozen=True, kw_only=True):
    """A webhook, over all gateways of a store."""

    name: str
    # Host of its address.
    host: str
    # Events that are not delivered yet, and when the oldest of them happened.
    waiting: int
    oldest_at: datetime | None
    # When something was sent last, and what came of it. None: nothing was sent yet.
    tried_at: datetime | None
    said: str | None
    # Whether it has answered 410, and gets nothing more.
    gone: bool


class WebhooksAnswer(Struct, frozen=True):
    webhooks: list[WebhookAnswer]


class TestedAnswer(Struct, frozen=True):
    """What came of a test event that was taken."""

    said: str


# Sends a test event now. Returns the status of HTTP, 0 without an answer, and a sentence.
Ping = Callable[[Webhook], Awaitable[tuple[int, str]]]


def routes(
    operators: Operators, webhooks: Callable[[], Sequence[Webhook]], outbox: WebhookOutbox, ping: Ping
) -> list[BaseRoute]:
    """`/admin/webhooks`. webhooks: those of the settings now."""
    of = _Webhooks(webhooks, outbox, ping)
    return [
        Route("/admin/webhooks", Resource(GET=operators.only(of.all))),
        Route("/admin/webhooks/{name}/test", Resource(POST=operators.only(of.test))),
    ]


class _Webhooks(Struct, frozen=True):
    webhooks: Callable[[], Sequence[Webhook]]
    outbox: WebhookOutbox
    ping: Ping

    async def all(self, _request: Request) -> ASGIApp:
        return json_response(
            WebhooksAnswer([_shown(each, await self.outbox.state(each)) for each in self.webhooks()])
        )

    async def test(self, request: Request) -> ASGIApp:
        name = request.path_params["name"]
        webhook = next((each for each in self.webhooks() if each.name == name), None)
        if webhook is None:
            raise StatusError(HTTPStatus.NOT_FOUND, "There is no webhook of this name.")
        status, said = await self.ping(webhook)
        note(request, "webhook tested", webhook=name, status=status)
        if not 200 <= status < 300:
            raise StatusError(HTTPStatus.BAD_GATEWAY, said)
        return json_response(TestedAnswer(said))


def _shown(webhook: Webhook, state: WebhookState) -> WebhookAnswer:
    address = urlsplit(webhook.url)
    return WebhookAnswer(
        name=webhook.name,
        # The rest of it may be a secret.
        host=address.netloc,
        waiting=state.waiting,
        oldest_at=_time(state.oldest_ms),
        tried_at=_time(state.tried_ms),
        said=state.said or None,
        gone=state.gone,
    )


def _time(ms: int) -> datetime | None:
    return datetime.fromtimestamp(ms / 1_000, UTC) if ms else None
