"""LibreTranslate's API with a client of it, against a gateway on a socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from libretranslatepy import LibreTranslateAPI

from gateway.config import Settings
from gateway.engines.simulated import Script
from gateway.protocol.limits import Limits
from tests.gateways import Running, running
from tests.keys import Keyring
from tests.over_http import serving


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
        ({"target": "tlh"}, 400, "'tlh'"),
        ({"format": "html"}, 400, "HTML"),
        ({"q": " "}, 400, "empty"),
        ({"q": "a" * 21}, 400, "21 characters"),
        ({"q": ["fine", "FAIL"]}, 502, "this text fails"),
        ({"q": 1}, 400, "Expected"),
        ({"target": None}, 400, "Expected"),
    ],
)
async def test_what_cannot_be_done_is_said_in_its_form(fields: dict[str, Any], status: int, message: str) -> None:
    async with serving(settings=Settings(limits=Limits(text_chars=20))) as (_, client):
        answer = await client.post("/translate", json={"q": "a", "source": "en", "target": "de", **fields})
    assert (answer.status_code, [*answer.json()]) == (status, ["error"])
    assert message in answer.json()["error"]


@pytest.mark.parametrize("path", ["/translate_file", "/suggest", "/frontend/settings"])
async def test_what_the_gateway_does_not_have(path: str) -> None:
    async with serving() as (_, client):
        answer = await client.post(path, json={})
    assert answer.status_code == 404
    assert "LibreTranslate" in answer.json()["error"]


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
                assert caught.value.code == 403
                assert b'"error"' in caught.value.read()
                caught.value.close()
        assert await asked(gateway, lambda client: client.languages())


async def test_what_may_work_later_says_when() -> None:
    async with serving(script=Script(max_running=1), settings=Settings(max_waiting=1)) as (_, client):
        answer = await client.post("/translate", json={"q": ["a"] * 9, "source": "en", "target": "de"})
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) >= 1
