"""What every tenant uses, gathered from the parts that count it.

Knows: sessions, meetings, what waits and what was translated, by tenant. Must not know: quotas, who asks.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from msgspec.structs import asdict, replace

from gateway import metrics
from gateway.domain.grants import tenant_of_account
from gateway.domain.log import LogUsage
from gateway.domain.ports import EventLog
from gateway.domain.quotas import Usage
from gateway.sessions.sessions import Sessions
from gateway.translation.scheduling.quotas import Quotas
from gateway.translation.scheduling.scheduler import Scheduler


class TenantUsage:
    """The usage of all tenants."""

    def __init__(self, sessions: Sessions, scheduler: Scheduler, quotas: Quotas, log: EventLog) -> None:
        self._sessions = sessions
        self._scheduler = scheduler
        self._quotas = quotas
        self._log = log
        # Tenants that the metrics name.
        self._shown: set[str] = set()

    async def of(self, tenant: str) -> Usage:
        """What one tenant uses over all gateways. Raises `LogUnavailable`."""
        here = self._all(await self._log.usage()).get(tenant, Usage())
        everywhere = await self._sessions.counts(tenant)
        waiting = here.waiting + self._quotas.waiting_elsewhere(tenant)
        return replace(here, sessions=everywhere.sessions, meetings=everywhere.meetings, waiting=waiting)

    def _all(self, log: LogUsage) -> dict[str, Usage]:
        """Tenant → what it uses, for tenants that use anything or have today.

        Sessions, meetings and what waits are those of this gateway.
        """
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
