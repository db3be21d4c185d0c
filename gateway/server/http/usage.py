"""`GET /v1/usage`: what a tenant uses, and what it may use.

Knows: who may ask. Must not know: who counts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated

from msgspec import Meta, Struct, structs
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from gateway.domain.errors import Forbidden
from gateway.domain.quotas import Quota, Usage
from gateway.server.guard.audit import Audit
from gateway.server.guard.identity import Identity
from gateway.server.http.responses import Resource, json_response


class Used(Struct, frozen=True):
    """What is used of one quota."""

    used: int
    quota: Annotated[int | None, Meta(description="null: as much as everybody.")]


class UsageAnswer(Struct, frozen=True, kw_only=True):
    """What a tenant uses now, and what it has had translated today (UTC)."""

    tenant: str
    meetings: Annotated[Used, Meta(description="Meetings that somebody is in.")]
    sessions: Annotated[Used, Meta(description="Sessions, connected or kept.")]
    waiting: Annotated[Used, Meta(description="Translations that wait for the engine.")]
    log_bytes: Annotated[Used, Meta(description="Estimated bytes of the logs; beyond it the oldest entries go.")]
    characters: Annotated[Used, Meta(description="Characters translated today, once for each language.")]
    minutes: Annotated[Used, Meta(description="Minutes translated today, once for each language.")]
    joins: Annotated[int | None, Meta(description="Quota: sessions begun or resumed within a minute.")]
    languages: Annotated[int | None, Meta(description="Quota: languages that are read in one meeting.")]
    resets_at: Annotated[datetime, Meta(description="When `characters` and `minutes` begin at 0 again.")]

    @classmethod
    def of(cls, tenant: str, usage: Usage, quota: Quota, now: datetime) -> UsageAnswer:
        used = {name: Used(count, getattr(quota, name)) for name, count in structs.asdict(usage).items()}
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return cls(
            tenant=tenant,
            joins=quota.joins,
            languages=quota.languages,
            resets_at=midnight + timedelta(days=1),
            **used,
        )


def routes(
    identity: Identity, audit: Audit, usage: Callable[[str], Awaitable[Usage]], quota: Callable[[str], Quota]
) -> list[BaseRoute]:
    """usage, quota: of a tenant."""

    async def endpoint(request: Request) -> ASGIApp:
        with audit.attempt("usage", request) as attempt:
            attempt.grant = asking = await identity.of(request)
            if not asking.any_meeting:
                raise Forbidden("What a tenant uses is told to whoever has an API key of it.")
            tenant = asking.tenant
            return json_response(UsageAnswer.of(tenant, await usage(tenant), quota(tenant), datetime.now(UTC)))

    return [Route("/v1/usage", Resource(GET=endpoint))]
