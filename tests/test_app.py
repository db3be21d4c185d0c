"""The whole application with several simulated engines: what clients see of them when one dies, comes or goes."""

from __future__ import annotations

import asyncio
from functools import partial

import httpx
import pytest
from msgspec.structs import replace
from prometheus_client import REGISTRY

from gateway.config import LaneSettings, Settings
from gateway.domain.engine import EngineState
from gateway.domain.errors import StartupError
from gateway.engines.pool.lane import Lane
from gateway.engines.pool.pool import Pool
from gateway.engines.simulated import Rule, Script, SimulatedEngine
from gateway.engines.supervisor import Supervisor
from gateway.protocol.messages import (
    LanguagesChanged,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
    UtteranceFinal,
    UtterancePartial,
)
from tests.gateways import Running, running
from tests.meetings import joined, say
from tests.over_http import NO_TLS

SCRIPT = Script(
    first_token_s=0.002,
    token_s=0.002,
    max_running=4,
    rules=(
        Rule(match="SLOW", token_s=0.1),
        Rule(match="KILL", crash_after=0, crashes=1_000),
    ),
)


def several(*lanes: LaneSettings) -> Settings:
    return Settings(engines=lanes, delta_interval_s=0)


def lane(name: str, *pairs: str, script: Script = SCRIPT) -> LaneSettings:
    pairs = pairs or ("*",)
    return LaneSettings(
        name=name, kind="simulated", pairs=pairs, script=script, restart_backoff_s=0.0, restart_backoff_max_s=0.0
    )


def pool_of(gateway: Running) -> Pool:
    assert isinstance(gateway.gateway.engine, Pool)
    return gateway.gateway.engine


def supervisor_of(gateway: Running, name: str) -> Supervisor:
    found = pool_of(gateway).lanes()[name]
    assert isinstance(found, Lane)
    assert isinstance(found.engine, Supervisor)
    return found.engine


def engine_of(gateway: Running, name: str) -> SimulatedEngine:
    """The one that a lane has now."""
    engine = supervisor_of(gateway, name).engine
    assert isinstance(engine, SimulatedEngine)
    return engine


def restarts(name: str) -> float:
    """How often a lane has died."""
    return REGISTRY.get_sample_value("gateway_engine_restarts_total", {"engine": name, "reason": "crash"}) or 0.0


def texts(received: list[object]) -> dict[tuple[str, str], str]:
    return {(m.utterance, m.lang): m.text for m in received if isinstance(m, TranslationFinal)}


async def ask(gateway: Running, path: str) -> httpx.Response:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.port}", verify=NO_TLS) as client:
        return await client.get(path)


async def ready(gateway: Running) -> None:
    """The suite's timeout is the bound."""
    while gateway.gateway.engine.health().state is not EngineState.READY:
        await asyncio.sleep(0.001)


async def test_pairs_are_translated_by_engines_that_have_them() -> None:
    settings = several(lane("japanese", "en-ja"), lane("others", "*-de", "fr-*"))
    async with running(settings) as gateway:
        await ready(gateway)
        async with joined(gateway, reads=["ja", "de", "fr"], speaks="en") as ana:
            await ana.peer.send(say("u1"))
            await ana.until(TranslationFinal, 2)
            [failed] = await ana.until(TranslationFailed)
        assert texts(ana.received) == {("u1", "ja"): "[ja] good morning", ("u1", "de"): "[de] good morning"}
        assert (failed.lang, failed.code) == ("fr", "unsupported_language")
        assert ana.started.targets == {
            "en": ["ja", "de"],
            "ja": ["de"],
            "es": ["de"],
            "fr": ["en", "ja", "es", "de", "zh"],
            "zh": ["de"],
        }
        assert (await ask(gateway, "/v1/languages")).json()["targets"] == ana.started.targets
        assert (await ask(gateway, "/readyz")).json()["engines"] == [
            {"name": name, "status": "ready", "reason": "", "running": 0, "waiting": 0, "seats": 4}
            for name in ("japanese", "others")
        ]
        page = (await ask(gateway, "/metrics")).text
        for name in ("japanese", "others"):
            assert f'gateway_engine_ready{{engine="{name}"}} 1.0' in page
            assert f'gateway_engine_running{{engine="{name}"}} 0.0' in page
            assert f'gateway_engine_restarts_total{{engine="{name}",reason="crash"}}' in page


async def test_killed_engine_costs_no_final_another_can_give() -> None:
    """Another engine has its pairs."""
    async with running(several(lane("a"), lane("b"))) as gateway:
        await ready(gateway)
        async with joined(gateway, reads=["ja", "de"], speaks="en") as ana:
            await ana.peer.send(*(say(f"u{n}", f"SLOW {n} has a few words") for n in range(4)))
            begun: set[tuple[str, str]] = set()
            while len(begun) < 8:
                message = await ana.receive()
                if isinstance(message, TranslationDelta):
                    begun.add((message.utterance, message.lang))
            on_a = engine_of(gateway, "a").capacity().running
            assert 0 < on_a < 8
            supervisor_of(gateway, "a")._build = lambda: SimulatedEngine(Script(load_s=3_600))
            # It does not come back while the test lasts.
            engine_of(gateway, "a").fail("killed by the test")
            await ana.until(TranslationFinal, 8)
            await ana.peer.send(say("after"))
            await ana.until(TranslationFinal, 10)
            status = (await ask(gateway, "/readyz")).json()
        assert not [m for m in ana.received if isinstance(m, TranslationFailed)]
        expected = {
            (f"u{n}", lang): f"[{lang}] SLOW {n} has a few words" for n in range(4) for lang in ("ja", "de")
        }
        expected |= {("after", lang): f"[{lang}] good morning" for lang in ("ja", "de")}
        assert texts(ana.received) == expected
        # What was shown was never taken back.
        shown: dict[tuple[str, str], str] = {}
        for message in ana.received:
            if isinstance(message, TranslationDelta):
                key = (message.utterance, message.lang)
                shown[key] = shown.get(key, "") + message.committed
        assert all(expected[key].startswith(text) for key, text in shown.items())
        assert status["status"] == "ready"
        assert status["engines"][0]["status"] == "restarting"
        assert status["reason"] == "Engine a: The engine died and is being started again."


@pytest.mark.parametrize("while_said", [False, True])
async def test_text_that_kills_engines_fails_alone(while_said: bool) -> None:
    """A lone engine stays."""
    script = replace(SCRIPT, max_running=8)
    async with running(several(lane("a", script=script), lane("b", script=script))) as gateway:
        await ready(gateway)
        before = sum(restarts(name) for name in "ab")
        first = {name: engine_of(gateway, name) for name in "ab"}
        async with (
            joined(gateway, meeting="m", reads=["ja"], speaks="en") as ana,
            joined(gateway, meeting="n", reads=["ja"], speaks="en") as bo,
        ):
            if while_said:
                await ana.peer.send(UtterancePartial("bad", 1, "this KILLs"))
                # It kills before it is final.
                while all(engine.health().state is EngineState.READY for engine in first.values()):
                    await asyncio.sleep(0.001)
            await ana.peer.send(UtteranceFinal("bad", 2, "this KILLs it"))
            for n in range(20):
                await bo.peer.send(say(f"u{n}", f"good morning {n}"))
                await asyncio.sleep(0)
            [failed] = await ana.until(TranslationFailed)
            await bo.until(TranslationFinal, 20)
            crashes = sum(restarts(name) for name in "ab") - before
        assert (failed.utterance, failed.code) == ("bad", "engine_failed")
        assert not [m for m in bo.received if isinstance(m, TranslationFailed)]
        deaths = {name: engine_of(gateway, name) is not engine for name, engine in first.items()}
        assert sorted(deaths.values()) == [False, True]
        assert crashes <= 3


async def test_engine_replacement_loses_no_sentence() -> None:
    async with running(several(lane("old", "en-ja", "ja-de"))) as gateway:
        await ready(gateway)
        async with joined(gateway, reads=["ja", "de"], speaks="en") as ana:
            await ana.peer.send(*(say(f"u{n}", f"SLOW {n} has a few words") for n in range(8)))
            await ana.until(TranslationDelta, 4)
            await gateway.gateway.change_engines(lambda _: [lane("new", "en-ja", "en-de")])
            await ana.peer.send(say("after"))
            japanese = {(f"u{n}", "ja") for n in range(8)}
            while not texts(ana.received).keys() >= {*japanese, ("after", "ja"), ("after", "de")}:
                await ana.receive()
        failed = [m for m in ana.received if isinstance(m, TranslationFailed)]
        # Nobody translated English into German at first.
        assert {(m.lang, m.code) for m in failed} <= {("de", "unsupported_language")}
        assert [each["name"] for each in (await ask(gateway, "/readyz")).json()["engines"]] == ["new"]
        page = (await ask(gateway, "/metrics")).text
        assert 'gateway_engine_ready{engine="new"} 1.0' in page
        assert 'gateway_engine_ready{engine="old"}' not in page


async def test_open_sessions_hear_only_of_changed_languages() -> None:
    german = lane("german", "en-de")
    async with running(several(lane("old", "en-ja"), german)) as gateway:
        await ready(gateway)
        async with joined(gateway, reads=["de"], speaks="en") as ana, joined(gateway, reads=["ja"]) as bo:
            await gateway.gateway.change_engines(lambda _: [lane("new", "en-ja"), german])
            engine_of(gateway, "german").fail("killed by the test")
            await gateway.gateway.change_engines(lambda _: [lane("new", "en-ja")])
            await gateway.gateway.change_engines(lambda _: [lane("new", "en-ja"), lane("french", "ja-fr")])
            for each in (ana, bo):
                assert await each.until(LanguagesChanged, 2) == [
                    LanguagesChanged(["en", "ja"], [], {"en": ["ja"]}),
                    LanguagesChanged(["en", "ja", "fr"], [], {"en": ["ja"], "ja": ["fr"]}),
                ]
            await ana.peer.send(say("u1"))
            [failed] = await ana.until(TranslationFailed)
            assert (failed.lang, failed.code) == ("de", "unsupported_language")


def _always(wanted: list[LaneSettings], _: object) -> list[LaneSettings]:
    return wanted


async def test_engine_that_cannot_start_removes_no_other() -> None:
    async with running(several(lane("old", "en-ja"))) as gateway:
        await ready(gateway)
        for wanted in ([lane("new", "ko-ja")], [lane("old", "en-de")], []):
            with pytest.raises(StartupError):
                await gateway.gateway.change_engines(partial(_always, wanted))
        async with joined(gateway, reads=["ja"], speaks="en") as ana:
            await ana.peer.send(say("u1"))
            await ana.until(TranslationFinal)
    async with running() as gateway:
        with pytest.raises(StartupError, match="one engine is made several"):
            await gateway.gateway.change_engines(lambda _: [lane("new", "en-ja")])


async def test_partials_give_way_to_a_late_engine_host() -> None:
    async with running(Settings()) as gateway:
        whole = gateway.gateway
        before = whole.engine.capacity()
        whole.engine.capacity = lambda: replace(before, lag_s=9.0)  # type: ignore[method-assign]
        assert whole.partials._lag_s() == 9.0
