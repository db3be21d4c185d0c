"""`GET /v1/usage`, and quotas as a tenant's users and backend meet them."""

from __future__ import annotations

import asyncio
import secrets
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace
from prometheus_client import REGISTRY

from gateway.config import AuthSettings, EventLogSettings, Settings, StoreSettings
from gateway.domain.engine import TranslationRequest
from gateway.domain.log import LogUsage
from gateway.domain.quotas import Quota, Usage
from gateway.identity import key_file
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Error,
    SessionStart,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
)
from gateway.server.http.usage import TenantUsage
from gateway.translation.scheduling.quotas import Quotas
from tests.gateways import Running
from tests.keys import Keyring
from tests.meetings import close_of, joined, say
from tests.over_http import check_problem, serving
from tests.redis_server import shared_server
from tests.sessions.desk import Desk, api_key_of, desk
from tests.translation.stage import Log

TEXT = {"text": "12345", "source_lang": "en", "target_lang": "ja"}


class Acme(Keyring):
    """The keys of a tenant, and its quota."""

    def allow(self, **quota: Any) -> None:
        key_file.save(self.path, replace(key_file.load(self.path), quotas={"acme": Quota(**quota)}))

    async def allow_in(self, gateway: Running, **quota: Any) -> None:
        self.allow(**quota)
        while gateway.gateway.quotas.quota_of("acme") != Quota(**quota):
            await asyncio.sleep(0.01)

    @property
    def header(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.api_key}"}


@pytest.fixture
def acme(tmp_path: Path) -> Acme:
    return Acme(tmp_path)


async def usage(client: httpx.AsyncClient, acme: Acme) -> dict[str, Any]:
    response = await client.get("/v1/usage", headers=acme.header)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def test_what_a_tenant_uses_and_may_use(acme: Acme) -> None:
    acme.allow(sessions=5, characters=1_000, joins=100, languages=3)
    async with serving(settings=acme.settings()) as (gateway, client):
        async with joined(gateway, token=acme.token(), speaks="en", reads=["ja", "de"]) as ana:
            await ana.peer.send(say("1", "1234567"))
            await ana.until(TranslationFinal, 2)
            used = await usage(client, acme)
        assert (await client.post("/v1/translate", json=TEXT, headers=acme.header)).status_code == 200
        later = await usage(client, acme)
    resets_at = datetime.fromisoformat(used.pop("resets_at")).timestamp()
    assert resets_at % 86_400 == 0
    assert resets_at - 86_400 <= time.time() <= resets_at
    assert used.pop("log_bytes")["used"] > 1_000
    assert used == {
        "tenant": "acme",
        "meetings": {"used": 1, "quota": None},
        "sessions": {"used": 1, "quota": 5},
        "waiting": {"used": 0, "quota": None},
        "characters": {"used": 14, "quota": 1_000},
        "minutes": {"used": 2, "quota": None},
        "joins": 100,
        "languages": 3,
    }
    assert later["characters"]["used"] == 19
    assert later["minutes"]["used"] == 2, "a call over HTTP is no meeting"


async def test_usage_is_told_to_whoever_has_an_api_key(acme: Acme) -> None:
    async with serving(settings=acme.settings()) as (_, client):
        check_problem(await client.get("/v1/usage"), 401, "unauthenticated")
        admin = acme.bearer(roles=frozenset({"admin"}))
        check_problem(await client.get("/v1/usage", headers=admin), 403, "forbidden")


async def test_exhausted_quota_is_told_and_recovers(acme: Acme) -> None:
    acme.allow(characters=5)
    async with (
        serving(settings=acme.settings()) as (gateway, client),
        joined(gateway, token=acme.token(), speaks="en", reads=["ja"]) as ana,
    ):
        await ana.peer.send(say("1", "goes over"))
        await ana.until(TranslationFinal)
        await ana.peer.send(say("2", "too late"))
        [failed] = await ana.until(TranslationFailed)
        assert (failed.utterance, failed.lang, failed.code) == ("2", "ja", "daily_quota_exceeded")
        assert "quota characters is 5" in failed.message
        refused = await client.post("/v1/translate", json=TEXT, headers=acme.header)
        check_problem(refused, 429, "daily_quota_exceeded")
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        assert 1 <= refused.json()["retry_after_ms"] <= 60_000
        await acme.allow_in(gateway, characters=100)
        await ana.peer.send(say("2", "too late"))
        await ana.until(TranslationFinal, 2)
        assert (await usage(client, acme))["characters"] == {"used": 17, "quota": 100}


@pytest.mark.parametrize(
    ("quota", "start", "closes"),
    [
        ("sessions", {"meeting": "m"}, "quota_exceeded"),
        ("meetings", {"meeting": "n"}, "quota_exceeded"),
        ("languages", {"meeting": "m", "reads": ["de"]}, None),
        ("joins", {"meeting": "m"}, None),
    ],
)
async def test_a_session_that_a_quota_has_no_room_for(
    acme: Acme, quota: str, start: dict[str, Any], closes: str | None
) -> None:
    acme.allow(**{quota: 1})
    async with (
        serving(settings=acme.settings()) as (gateway, _),
        joined(gateway, token=acme.api_key, reads=["ja"]),
        gateway.peer() as peer,
    ):
        await peer.send(SessionStart(**{"reads": [], "token": acme.api_key, **start}))
        error: Any
        if closes is not None:
            code, error = await close_of(peer)
            assert (code, error.code) == (4509, closes)
        else:
            error = await peer.receive()
        assert isinstance(error, Error)
        assert f"quota {quota} is 1" in error.message


@pytest.mark.parametrize("in_redis", [False, True], ids=["memory", "redis"])
async def test_tenants_log_stays_within_quota_and_in_metrics(acme: Acme, in_redis: bool) -> None:
    acme.allow(log_bytes=2**20)
    text = "x" * 8_000
    store = StoreSettings(url=shared_server().url, prefix=secrets.token_hex(4)) if in_redis else StoreSettings()

    async def shown(name: str, most: float) -> None:
        """Returns once it is there, and no more. It is looked at now and then, also between an entry and what it
        pushes out."""
        labels = {"tenant": "acme", "quota": name}
        while not 0 < (REGISTRY.get_sample_value("gateway_tenant_usage", labels) or 0) <= most:
            await asyncio.sleep(0.01)

    limits = Limits(messages_burst=10_000, messages_per_s=10_000, text_chars=16_000)
    async with (
        serving(settings=acme.settings(limits=limits, segment_chars=8_000, store=store)) as (gateway, client),
        joined(gateway, token=acme.token(), speaks="en") as ana,
    ):
        for n in range(150):
            await ana.peer.send(say(str(n), text))
            await ana.until(UtteranceAccepted, n + 1)
        assert 2**19 < (await usage(client, acme))["log_bytes"]["used"] <= 2**20
        await shown("sessions", 1)
        await shown("log_bytes", 2**20)
        page = await gateway.gateway.log.read("acme/m", 0, 1)
        assert page.first > 1, "its own oldest entries went"


async def test_usage_and_promises_survive_a_restart(acme: Acme, tmp_path: Path) -> None:
    acme.allow(characters=8)
    auth = AuthSettings(keys_file=str(acme.path))
    settings = Settings(auth=auth, drain_s=0, event_log=EventLogSettings(handover_file=str(tmp_path / "handover")))
    async with (
        serving(settings=settings) as (gateway, _),
        joined(gateway, token=acme.token(max_s=600), speaks="en", reads=["ja"]) as ana,
    ):
        await ana.peer.send(say("1", "used up."))
        await ana.until(TranslationFinal)
        await acme.allow_in(gateway, characters=9)
        await ana.peer.send(say("2", "STALL promised"))
        await ana.until(UtteranceAccepted, 2)
        await acme.allow_in(gateway, characters=8)
        await gateway.gateway.drain()
    async with (
        serving(settings=settings) as (gateway, client),
        joined(gateway, token=acme.token(), reads=["ja"], resume=ana.resume()) as again,
    ):
        assert again.started.recovered
        assert (await usage(client, acme))["characters"]["used"] == 8
        scheduler = gateway.gateway.scheduler
        while not scheduler.running:
            await asyncio.sleep(0.01)


async def test_exhausted_day_holds_everywhere_and_after_restart(acme: Acme) -> None:
    acme.allow(characters=9)
    store = StoreSettings(url=shared_server().url, prefix=secrets.token_hex(4))
    settings = acme.settings(store=store)
    async with serving(settings=settings) as (one, _), serving(settings=settings) as (another, client):
        async with joined(one, token=acme.token(), speaks="en", reads=["ja"]) as ana:
            await ana.peer.send(say("1", "used up.."))
            await ana.until(TranslationFinal)
        while (await usage(client, acme))["characters"]["used"] != 9:
            await asyncio.sleep(0.01)
        async with joined(another, token=acme.token(), speaks="en", reads=["ja"]) as bo:
            await bo.peer.send(say("2", "too late"))
            [failed] = await bo.until(TranslationFailed)
            assert (failed.utterance, failed.code) == ("2", "daily_quota_exceeded")
        refused = await client.post("/v1/translate", json=TEXT, headers=acme.header)
        check_problem(refused, 429, "daily_quota_exceeded")
    async with serving(settings=settings) as (_, client):
        used = await usage(client, acme)
        assert (used["characters"]["used"], used["minutes"]["used"]) == (9, 1)
        refused = await client.post("/v1/translate", json=TEXT, headers=acme.header)
        check_problem(refused, 429, "daily_quota_exceeded")


async def test_stopping_gateway_tells_what_it_translated(acme: Acme) -> None:
    store = StoreSettings(url=shared_server().url, prefix=secrets.token_hex(4))
    for used in (5, 10):
        async with serving(settings=acme.settings(store=store)) as (_, client):
            assert (await client.post("/v1/translate", json=TEXT, headers=acme.header)).status_code == 200
            assert (await usage(client, acme))["characters"]["used"] == used


def usage_of(d: Desk, quotas: Quotas, log_bytes: dict[str, int]) -> TenantUsage:
    class Full(Log):
        async def usage(self) -> LogUsage:
            return LogUsage(0, sum(log_bytes.values()), log_bytes)

    return TenantUsage(d.sessions, d.core.scheduler, quotas, Full())


def shown(tenant: str, quota: str) -> float | None:
    return REGISTRY.get_sample_value("gateway_tenant_usage", {"tenant": tenant, "quota": quota})


async def test_each_tenant_has_its_own() -> None:
    quotas = Quotas()
    async with desk() as d:
        used = usage_of(d, quotas, {"tenant:acme": 7, "tenant:other": 8, "10.0.0.1": 9, "10.0.0.2": 1})
        for meeting in ("a", "a", "b"):
            await d.join(grant=api_key_of("acme"), meeting=meeting)
        await d.join(grant=api_key_of("other"), meeting="a")
        quotas.translated("acme", "acme/a", "ja", 5)
        request = TranslationRequest(id="r", text="x", source="en", target="ja")
        running = d.core.scheduler.admit("acme/a", [request] * 40, account="tenant:acme")
        waiting = d.core.scheduler.waiting
        assert waiting
        assert await used.used_by("acme") == Usage(
            meetings=2, sessions=3, waiting=waiting, log_bytes=7, characters=5, minutes=1
        )
        assert await used.used_by("other") == Usage(meetings=1, sessions=1, log_bytes=8)
        assert await used.used_by("default") == Usage(log_bytes=10), "without tokens, accounts are addresses"
        assert await used.used_by("nobody") == Usage()
        for ticket in running:
            d.core.scheduler.withdraw(ticket)


async def test_metrics_name_the_tenants_that_use_something() -> None:
    log_bytes = {"tenant:one-of-a-test": 7}
    async with desk() as d:
        used = usage_of(d, Quotas(), log_bytes)
        await used.show()
        assert (shown("one-of-a-test", "log_bytes"), shown("one-of-a-test", "sessions")) == (7, 0)
        log_bytes.clear()
        await used.show()
        assert shown("one-of-a-test", "log_bytes") is None
