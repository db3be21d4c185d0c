"""Real engines behind one gateway: two have different models, one is replaced by a newer one, one is killed.

People go on speaking meanwhile, and nobody loses a sentence.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from demo_model import SMALL_MODEL
from gateway.client import ClientSession, connect
from gateway.protocol.messages import TranslationFailed, TranslationFinal
from tests.e2e.test_process import drain, sigterm
from tests.processes import IN_A_TERMINAL, UNHURRIED, GatewayProcess, engine_processes, gateway_process, parent

pytestmark = [pytest.mark.engine, pytest.mark.long]

SENTENCES = ("Let's move the launch to Friday.", "Can you hear me?", "Please send the report before Monday.")


def status(gateway: GatewayProcess) -> dict[str, str]:
    """Lane → its state."""
    return {each["name"]: each["status"] for each in json.loads(gateway.get("/readyz"))["engines"]}


async def a_meeting(gateway: GatewayProcess) -> None:
    """The process that hosts one of two engines for English into Japanese is killed in the middle of it."""
    finals: dict[str, str] = {}
    failed: list[TranslationFailed] = []
    sent = 12
    killed = False
    async with connect(gateway.url, speaks="en", reads=["ja"]) as session:
        for n in range(sent):
            await session.final(SENTENCES[n % len(SENTENCES)])
        async for message in session:
            match message:
                case TranslationFailed():
                    failed.append(message)
                case TranslationFinal():
                    finals[message.utterance] = message.text
                    if sent < 120:
                        await session.final(SENTENCES[sent % len(SENTENCES)])
                        sent += 1
                    if len(finals) == 40 and not killed:
                        killed = True
                        os.kill(parent(engine_processes(gateway)[0]), signal.SIGKILL)
            if len(finals) + len(failed) == 120:
                break
    assert killed
    assert failed == []
    # Whichever engine it was, and however often it was begun: each sentence has one translation.
    assert len(set(finals.values())) == len(SENTENCES)


# -------------------------------------------------------------------- different models


BOTH = """
[[engines]]
name = "bundled"
pairs = ["en-ja", "en-fr"]
"""
GERMAN = """
[[engines]]
name = "german"
model = "{model}"
pairs = ["en-de"]
"""
NEWER = """
[[engines]]
name = "german-2"
pairs = ["en-de", "en-ja", "ja-en"]
"""
# A day in each language, as the bundled model has it; the other model is a day late.
DAYS = {"ja": "金曜日", "fr": "vendredi", "de": "Freitag"}
LATE = "Samstag"


@pytest.fixture
def other_model(tmp_path: Path) -> Path:
    """The bundled model with two words of its vocabulary exchanged, so that a text says which model it is of."""
    folder = tmp_path / "model"
    shutil.copytree(SMALL_MODEL, folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    words = tokenizer["model"]["vocab"]
    words[DAYS["de"]], words[LATE] = words[LATE], words[DAYS["de"]]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    return folder


async def translations(session: ClientSession) -> dict[str, str]:
    """Language → what is made of a sentence in it."""
    await session.final(SENTENCES[0])
    found: dict[str, str] = {}
    async for message in session:
        assert not isinstance(message, TranslationFailed), message
        if isinstance(message, TranslationFinal):
            found[message.lang] = message.text
        if len(found) == len(DAYS):
            break
    return found


def names(translations: dict[str, str], days: dict[str, str]) -> bool:
    return all(day in translations[lang] for lang, day in days.items())


# Three engines that load one after another.
@pytest.mark.timeout(1_800)
def test_meeting_outlives_a_replaced_and_a_killed_model(tmp_path: Path, other_model: Path) -> None:
    """One is replaced and the other killed while people speak."""
    config = tmp_path / "gateway.toml"
    config.write_text(BOTH + GERMAN.format(model=other_model))

    async def meeting() -> None:
        async with connect(gateway.url, speaks="en", reads=[*DAYS]) as session:
            assert names(await translations(session), DAYS | {"de": LATE})
            config.write_text(BOTH + NEWER)
            gateway.process.send_signal(signal.SIGHUP)
            rounds = 0
            while "the engines are those of the settings now" not in gateway.said:
                found = await translations(session)
                # Whichever model it was.
                assert names(found, DAYS) or names(found, DAYS | {"de": LATE})
                rounds += 1
                await asyncio.sleep(1)  # people pause, and the new engine needs the cores to load
            assert rounds > 1
            assert names(await translations(session), DAYS)

    with gateway_process("--config", str(config), env=UNHURRIED, prefix=IN_A_TERMINAL) as gateway:
        gateway.ready()
        assert json.loads(gateway.get("/v1/languages"))["targets"] == {"en": ["ja", "de", "fr"]}
        asyncio.run(meeting())
        assert status(gateway) == {"bundled": "ready", "german-2": "ready"}
        targets = json.loads(gateway.get("/v1/languages"))["targets"]
        assert targets == {"en": ["ja", "de", "fr"], "ja": ["en"]}
        page = gateway.get("/metrics")
        for name in ("bundled", "german-2"):
            assert f'gateway_engine_ready{{engine="{name}"}} 1.0' in page
            assert f'vllm:num_requests_running{{engine="{name}"' in page
        asyncio.run(a_meeting(gateway))
        # One of the two may still load.
        asyncio.run(drain(gateway, sigterm, "ja"))
