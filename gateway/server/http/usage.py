"""What every tenant uses, gathered from the parts that count it; `GET /v1/usage` tells a tenant.

Knows: sessions, meetings, what waits and what was translated, by tenant, and its quotas; who may ask.
Must not know: how quotas are set or held.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import asdict, replace
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from gateway import metrics
from gateway.domain.errors import Forbidden
from gateway.domain.grants import tenant_of_account
from gateway.domain.log import LogUsage
from gateway.domain.ports import EventLog
from gateway.domain.quotas import Quota, Usage
from gateway.server.guard.audit import Audit
from gateway.server.guard.identity import Identity
from gateway.server.http.responses import Resource, json_response
from gateway.sessions.sessions import Sessions
from gateway.translation.scheduling.quotas import Quotas
from gateway.translation.scheduling.scheduler import Scheduler


class TenantUsage:
    def __init__(self, sessions: Sessions, scheduler: Scheduler, quotas: Quotas, log: EventLog) -> None:
        self._sessions = sessions
        self._scheduler = scheduler
        self._quotas = quotas
        self._log = log
        self._shown: set[str] = set()

    def quota_of(self, tenant: str) -> Quota:
        return self._quotas.quota_of(tenant)

    async def used_by(self, tenant: str) -> Usage:
        """What one tenant uses over all gateways. Raises `LogUnavailable`."""
        here = self._all(await self._log.usage()).get(tenant, Usage())
        everywhere = await self._sessions.counts(tenant)
        waiting = here.waiting + self._quotas.waiting_elsewhere(tenant)
        return replace(here, sessions=everywhere.sessions, meetings=everywhere.meetings, waiting=waiting)

    def _all(self, log: LogUsage) -> dict[str, Usage]:
        """Tenant → what it uses or used today; sessions, meetings and what waits are those of this gateway."""
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        here = {**self._sessions.by_tenant(), "waiting": self._scheduler.waiting_by_tenant()}
        for name, by_tenant in here.items():
            for tenant, count in by_tenant.items():
                counts[tenant][name] += count
        for account, count in log.bytes_by_account.items():
            counts[tenant_of_account(account)]["log_bytes"] += count
        for tenant in self._quotas.tenants():
            today = self._quotas.today(tenant)
            counts[tenant] += Counter(characters=today.characters, minutes=today.minutes)
        return {tenant: Usage(**of_tenant) for tenant, of_tenant in counts.items()}

    async def show(self) -> None:
        """Set the metrics. Raises `LogUnavailable`."""
        log = await self._log.usage()
        metrics.LOG_PUBLICATIONS.set(log.publications)
        metrics.LOG_BYTES.set(log.bytes)
        usages = self._all(log)
        for tenant in self._shown - usages.keys():
            for name in Usage.__struct_fields__:
                metrics.TENANT_USAGE.remove(tenant, name)
        self._shown = set(usages)
        for tenant, usage in usages.items():
            for name, count in asdict(usage).items():
                metrics.TENANT_USAGE.labels(tenant, name).set(count)


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
    def from_usage(cls, tenant: str, usage: Usage, quota: Quota, now: datetime) -> UsageAnswer:
        used = {name: Used(count, getattr(quota, name)) for name, count in asdict(usage).items()}
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return cls(
            tenant=tenant,
            joins=quota.joins,
            languages=quota.languages,
            resets_at=midnight + timedelta(days=1),
            **used,
        )


def routes(identity: Identity, audit: Audit, usage: TenantUsage) -> list[BaseRoute]:
    """`/v1/usage`."""

    async def endpoint(request: Request) -> ASGIApp:
        with audit.attempt("usage", request) as attempt:
            attempt.grant = asking = await identity.grant_of(request)
            if not asking.any_meeting:
                raise Forbidden("What a tenant uses is told to whoever has an API key of it.")
            tenant = asking.tenant
            used, quota = await usage.used_by(tenant), usage.quota_of(tenant)
            return json_response(UsageAnswer.from_usage(tenant, used, quota, datetime.now(UTC)))

    return [Route("/v1/usage", Resource(GET=endpoint))]
