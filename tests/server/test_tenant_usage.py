"""What every tenant uses, gathered from sessions, the queue, the log and the day."""

from __future__ import annotations

from prometheus_client import REGISTRY

from gateway.domain.engine import TranslationRequest
from gateway.domain.log import LogUsage
from gateway.domain.quotas import Usage
from gateway.server.tenant_usage import TenantUsage
from gateway.translation.scheduling.quotas import Quotas
from tests.sessions.desk import Desk, api_key_of, desk
from tests.sessions.two_gateways import two
from tests.translation.stage import Log


def usage(d: Desk, quotas: Quotas, log_bytes: dict[str, int]) -> TenantUsage:
    class Full(Log):
        async def usage(self) -> LogUsage:
            return LogUsage(0, sum(log_bytes.values()), log_bytes)

    return TenantUsage(d.sessions, d.core.scheduler, quotas, Full())


def shown(tenant: str, quota: str) -> float | None:
    return REGISTRY.get_sample_value("gateway_tenant_usage", {"tenant": tenant, "quota": quota})


async def test_each_tenant_has_its_own() -> None:
    quotas = Quotas()
    async with desk() as d:
        used = usage(d, quotas, {"tenant:acme": 7, "tenant:other": 8, "10.0.0.1": 9, "10.0.0.2": 1})
        for meeting in ("a", "a", "b"):
            await d.join(grant=api_key_of("acme"), meeting=meeting)
        await d.join(grant=api_key_of("other"), meeting="a")
        quotas.translated("acme", "acme/a", "ja", 5)
        request = TranslationRequest(id="r", text="x", source="en", target="ja")
        running = d.core.scheduler.admit("acme/a", [request] * 40, account="tenant:acme")
        waiting = d.core.scheduler.waiting
        assert waiting
        assert await used.of("acme") == Usage(
            meetings=2, sessions=3, waiting=waiting, log_bytes=7, characters=5, minutes=1
        )
        assert await used.of("other") == Usage(meetings=1, sessions=1, log_bytes=8)
        assert await used.of("default") == Usage(log_bytes=10), "without tokens, accounts are addresses"
        assert await used.of("nobody") == Usage()
        for ticket in running:
            d.core.scheduler.withdraw(ticket)


async def test_sessions_and_meetings_are_those_at_every_gateway() -> None:
    async with two() as g:
        used = usage(g.here, Quotas(), {})
        await g.here.join(grant=api_key_of("acme"), meeting="a")
        await g.there.join(grant=api_key_of("acme"), meeting="a")
        await g.there.join(grant=api_key_of("acme"), meeting="b")
        assert await used.of("acme") == Usage(meetings=2, sessions=3)


async def test_metrics_name_the_tenants_that_use_something() -> None:
    log_bytes = {"tenant:one-of-a-test": 7}
    async with desk() as d:
        used = usage(d, Quotas(), log_bytes)
        await used.show()
        assert (shown("one-of-a-test", "log_bytes"), shown("one-of-a-test", "sessions")) == (7, 0)
        log_bytes.clear()
        await used.show()
        assert shown("one-of-a-test", "log_bytes") is None
