"""LibreTranslate's API with a client of it, against a gateway on a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from libretranslatepy import LibreTranslateAPI
from msgspec.structs import replace

from gateway.config import Settings
from gateway.domain.engine import EngineHealth, EngineState
from gateway.engines.simulated import Script
from gateway.protocol.limits import Limits
from tests.gateways import Running, running
from tests.keys import Keyring
from tests.over_http import serving
from tests.server.http.test_usage import Acme


@pytest.fixture
async def gateway() -> AsyncIterator[Running]:
    async with running() as gateway:
        yield gateway


async def asked(gateway: Running, call: Callable[[LibreTranslateAPI], Any], key: str | None = None) -> Any:
    client = LibreTranslateAPI(f"http://127.0.0.1:{gateway.port}/", key)
    return await asyncio.to_thread(call, client)


async def test_a_client_translates_detects_and_lists(gateway: Running) -> None:
    assert await asked(gateway, lambda client: client.translate("good morning", "en", "ja")) == "[ja] good morning"
    detected = await asked(gateway, lambda client: client.detect("Können wir am Freitag anfangen?"))
    assert detected[0]["language"] == "de"
    assert 90 < detected[0]["confidence"] <= 100
    languages = await asked(gateway, lambda client: client.languages())
    assert languages[0] == {"code": "en", "name": "English", "targets": ["en", "ja", "es", "de", "fr", "zh"]}
    assert [item["code"] for item in languages] == ["en", "ja", "es", "de", "fr", "zh"]


async def test_a_language_that_is_detected_is_told() -> None:
    async with serving() as (_, client):
        one = await client.post(
            "/translate", json={"q": "Guten Morgen zusammen", "source": "auto", "target": "en"}
        )
        texts = ["Guten Morgen zusammen", "42"]
        several = await client.post("/translate", json={"q": texts, "source": "auto", "target": "en"})
        given = await client.post("/translate", json={"q": ["a", "b"], "source": "en", "target": "de"})
    assert one.json()["translatedText"] == "[en] Guten Morgen zusammen"
    assert one.json()["detectedLanguage"]["language"] == "de"
    assert several.json()["translatedText"] == ["[en] Guten Morgen zusammen", "42"]
    assert several.json()["detectedLanguage"][1] == {"language": "und", "confidence": 0.0}
    assert given.json() == {"translatedText": ["[de] a", "[de] b"]}


async def test_alternatives_are_none() -> None:
    async with serving() as (_, client):
        body = {"q": "a", "source": "en", "target": "de", "format": "text", "alternatives": 3}
        assert (await client.post("/translate", json=body)).json() == {
            "translatedText": "[de] a",
            "alternatives": [],
        }


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"target": "zz"}, 400, "zz is not supported"),
        ({"source": "zz"}, 400, "zz is not supported"),
        ({"target": "auto"}, 400, "auto is not supported"),
        ({"format": "markdown"}, 400, "markdown format is not supported"),
        ({"q": []}, 400, "Invalid request: missing q parameter"),
        ({"q": ""}, 400, "Invalid request: missing q parameter"),
        ({"q": None}, 400, "Invalid request: missing q parameter"),
        ({"target": None}, 400, "Invalid request: missing target parameter"),
        ({"alternatives": "many"}, 400, "Invalid request: alternatives parameter is not a number"),
        ({"q": "a" * 21}, 400, "Invalid request: request (21) exceeds text limit (20)"),
        ({"q": ["a"] * 65}, 400, "Invalid request: request (65) exceeds text limit (64)"),
        ({"q": "a" * 21, "format": "html"}, 400, "21 characters"),
        ({"q": " "}, 400, "empty"),
        ({"q": ["fine", "FAIL"]}, 502, "Cannot translate text: "),
        ({"q": 1}, 400, "Expected"),
    ],
)
async def test_what_cannot_be_done_is_said_in_its_form(fields: dict[str, Any], status: int, message: str) -> None:
    async with serving(settings=Settings(limits=Limits(text_chars=20))) as (_, client):
        answer = await client.post("/translate", json={"q": "a", "source": "en", "target": "de", **fields})
    assert (answer.status_code, [*answer.json()]) == (status, ["error"])
    assert message in answer.json()["error"]


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/translate_file", 403, "Files translation are disabled on this server."),
        ("/suggest", 403, "Suggestions are disabled on this server."),
    ],
)
async def test_what_the_gateway_does_not_have(path: str, status: int, said: str) -> None:
    async with serving() as (_, client):
        answer = await client.post(path, json={})
    assert answer.status_code == status
    assert said in answer.json()["error"]


async def test_pair_that_nothing_translates_is_named() -> None:
    async with serving() as (gateway, client):
        profile = replace(gateway.gateway.engine.profile(), pairs=frozenset({("de", "en"), ("en", "fr")}))
        gateway.gateway.engine.profile = lambda: profile  # type: ignore[method-assign]
        answer = await client.post("/translate", json={"q": "a", "source": "de", "target": "fr"})
    assert answer.json() == {"error": "French (fr) is not available as a target language from German (de)"}


async def test_health_follows_the_engine() -> None:
    async with serving() as (gateway, client):
        well = await client.get("/health")
        health = EngineHealth(EngineState.STARTING, "The model is loading.")
        gateway.gateway.engine.health = lambda: health  # type: ignore[method-assign]
        loading = await client.get("/health")
    assert (well.status_code, well.json()) == (200, {"status": "ok"})
    assert (loading.status_code, loading.json()) == (503, {"error": "The model is loading."})


async def test_the_settings_of_its_page() -> None:
    async with serving() as (_, client):
        settings = (await client.get("/frontend/settings")).json()
    assert (settings["charLimit"], settings["keyRequired"], settings["filesTranslation"]) == (2000, False, False)
    assert settings["language"]["target"] == {"code": "en", "name": "English"}


async def test_spec_names_what_is_served() -> None:
    async with serving() as (_, client):
        spec = (await client.get("/spec")).json()
        for path, operations in spec["paths"].items():
            for method in operations:
                assert (await client.request(method, path)).status_code != 404
    parameters = spec["paths"]["/translate"]["post"]["parameters"]
    assert {each["name"] for each in parameters if each["required"]} == {"q", "target"}
    assert {"source", "format", "alternatives", "api_key"} < {each["name"] for each in parameters}


async def test_keys(tmp_path: Path) -> None:
    keys = Keyring(tmp_path)
    calls: list[Callable[[LibreTranslateAPI], Any]] = [
        lambda client: client.translate("hi", "en", "ja"),
        lambda client: client.detect("Good morning"),
    ]
    async with running(keys.settings(), script=Script()) as gateway:
        for call in calls:
            assert await asked(gateway, call, keys.api_key)
            for key in (None, "wrong"):
                with pytest.raises(HTTPError) as caught:
                    await asked(gateway, call, key)
                said = json.loads(caught.value.read())["error"]
                caught.value.close()
                assert (caught.value.code, said) == (
                    (403, "Invalid API key")
                    if key
                    else (400, "Please contact the server operator to get an API key")
                )
        assert await asked(gateway, lambda client: client.languages())


async def test_everything_may_be_in_the_query(tmp_path: Path) -> None:
    keys = Keyring(tmp_path)
    async with serving(settings=keys.settings()) as (_, client):
        for key, status in [(keys.api_key, 200), ("wrong", 403)]:
            query = {"q": "hi", "source": "en", "target": "ja", "format": "text", "api_key": key}
            answer = await client.post("/translate", params=query)
            assert answer.status_code == status
            assert (await client.post("/detect", params=query)).status_code == status


async def test_call_with_too_much_waiting_is_slowed_down(tmp_path: Path) -> None:
    acme = Acme(tmp_path)
    acme.allow(waiting=0)
    async with serving(settings=acme.settings(), script=Script(max_running=1)) as (_, client):
        body = {"q": ["a"] * 6, "source": "en", "target": "de", "api_key": acme.api_key}
        answer = await client.post("/translate", json=body)
    assert answer.status_code == 429
    assert answer.json()["error"].startswith("Slowdown: ")


async def test_header_key_is_checked_before_the_body(tmp_path: Path) -> None:
    async with running(Keyring(tmp_path).settings()) as gateway:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(
            b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer wrong\r\n"
            b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
        )
        assert b" 403 " in await reader.readline()
        writer.close()


async def test_foreign_header_scheme_leaves_the_bodys_key(tmp_path: Path) -> None:
    keys = Keyring(tmp_path)
    async with serving(settings=keys.settings()) as (_, client):
        for key, status in [(keys.api_key, 200), ("wrong", 403), (None, 403)]:
            body = {"q": "a", "source": "en", "target": "de", "api_key": key}
            answer = await client.post("/translate", json=body, headers={"Authorization": "Basic abc"})
            assert answer.status_code == status


async def test_bodies_of_unknown_callers_are_bounded_per_address(
    tmp_path: Path,
) -> None:
    async with running(Keyring(tmp_path).settings()) as gateway:
        begun: list[str] = []
        enough, goes_on, first = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def call(address: str) -> None:
            async def receive() -> Any:
                begun.append(address)
                mine = first if len(begun) == 1 else goes_on
                if len(begun) >= 17:
                    enough.set()
                await mine.wait()
                return {"type": "http.disconnect"}

            scope = {
                "type": "http",
                "method": "POST",
                "path": "/detect",
                "query_string": b"",
                "headers": [(b"host", b"127.0.0.1")],
                "client": (address, 1),
            }
            await gateway.gateway.app(scope, receive, never_sent)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(17):
                tasks.create_task(call("1.1.1.1"))
            tasks.create_task(call("2.2.2.2"))
            await enough.wait()
            assert sorted(begun) == ["1.1.1.1"] * 16 + ["2.2.2.2"]
            enough.clear()
            first.set()
            await enough.wait()
            assert begun.count("1.1.1.1") == 17
            goes_on.set()


async def never_sent(message: Any) -> None:
    raise AssertionError(message)


async def test_what_may_work_later_says_when() -> None:
    async with serving(script=Script(max_running=1), settings=Settings(max_waiting=1)) as (_, client):
        answer = await client.post("/translate", json={"q": ["a"] * 9, "source": "en", "target": "de"})
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) >= 1
