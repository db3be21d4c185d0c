"""Real engines behind one gateway: one is killed, two have different models, one is replaced by a newer one.

People go on speaking meanwhile, and nobody loses a sentence.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from demo_model.generate import phrases
from gateway.client import ClientSession, connect
from gateway.protocol.messages import TranslationFailed, TranslationFinal
from tests.e2e.test_process import UNHURRIED, drain, sigterm
from tests.processes import DEFAULT_SIGNALS, GatewayProcess, engine_processes, gateway_process

pytestmark = pytest.mark.engine

SENTENCES = ("Let's move the launch to Friday.", "Can you hear me?", "Please send the report before Monday.")


def status(gateway: GatewayProcess) -> dict[str, str]:
    """Lane → its state."""
    return {each["name"]: each["status"] for each in json.loads(gateway.get("/readyz"))["engines"]}


async def a_meeting(gateway: GatewayProcess) -> None:
    """One of two engines for English into Japanese is killed in the middle of it."""
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
                        os.kill(engine_processes(gateway)[0], signal.SIGKILL)
            if len(finals) + len(failed) == 120:
                break
    assert killed
    assert failed == []
    # Whichever engine it was, and however often it was begun: each sentence has one translation.
    assert len(set(finals.values())) == len(SENTENCES)


# -------------------------------------------------------------------- different models


ROOT = Path(__file__).parents[2]
BUNDLED = ROOT / "gateway" / "bundled_model"
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
# What the small model knows, and what only the bundled one does.
KNOWN = {pattern.templates["en"].parts[0]: pattern.templates["de"].parts[0] for pattern in phrases(40)}
SAID = [str(text) for text in list(KNOWN)[:12]]
UNKNOWN = "Good morning, everyone."


@pytest.fixture(scope="module")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of 1 MB for English into German, which knows forty sentences by heart; half a minute of one core."""
    folder = tmp_path_factory.mktemp("small") / "model"
    command = [
        sys.executable,
        "-m",
        "demo_model.train",
        str(folder),
        "--tiny",
        "--pair",
        "en-de",
        "--steps",
        "400",
    ]
    one_core = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, cwd=ROOT, env=one_core, check=True, capture_output=True)
    return folder


def alone(folder: Path, target: str, texts: Sequence[str]) -> dict[tuple[str, str], Any]:
    """(text, language) → what a model makes of it without the gateway, and without vLLM."""
    import torch

    from demo_model.evaluate import Item, translate
    from demo_model.model import load
    from demo_model.tokenizer import load_tokenizer

    items = [Item("", "en", target, True, text, "") for text in texts]
    answers = translate(load(folder), load_tokenizer(folder), items, torch.device("cpu"))
    return {(text, target): answer for text, answer in zip(texts, answers, strict=True)}


async def translations(session: ClientSession, texts: Sequence[str]) -> dict[tuple[str, str], str]:
    """Say these texts; each in every language that the session reads."""
    said = {await session.final(text): text for text in texts}
    found: dict[tuple[str, str], str] = {}
    async for message in session:
        assert not isinstance(message, TranslationFailed), message
        if isinstance(message, TranslationFinal):
            found[said[message.utterance], message.lang] = message.text
        if len(found) == 3 * len(said):
            break
    return found


# Training, and four engines that load one after another.
@pytest.mark.timeout(1_800)
def test_two_models_at_once_one_that_is_replaced_and_one_that_is_killed_while_people_speak(
    tmp_path: Path, small_model: Path
) -> None:
    expected = {(text, "de"): KNOWN[text] for text in SAID}
    for target in ("ja", "fr"):
        expected |= alone(BUNDLED, target, SAID)
    config = tmp_path / "gateway.toml"
    config.write_text(BOTH + GERMAN.format(model=small_model))

    async def meeting() -> None:
        async with connect(gateway.url, speaks="en", reads=["ja", "de", "fr"]) as session:
            assert await translations(session, SAID) == expected
            before = await translations(session, [UNKNOWN])
            nonsense = alone(small_model, "de", [UNKNOWN])[UNKNOWN, "de"]
            # The gateway's texts begin with no space.
            assert before[UNKNOWN, "de"] == nonsense.strip()
            assert "Guten Morgen" not in before[UNKNOWN, "de"]
            config.write_text(BOTH + NEWER)
            gateway.process.send_signal(signal.SIGHUP)
            rounds = 0
            while "the engines are those of the settings now" not in gateway.said:
                found = await translations(session, SAID[:4])
                # Whichever model it was.
                assert {text for text, _ in found} == set(SAID[:4])
                rounds += 1
            assert rounds > 1
            assert "Guten Morgen" in (await translations(session, [UNKNOWN]))[UNKNOWN, "de"]

    with gateway_process("--config", str(config), env=UNHURRIED, prefix=("setsid", *DEFAULT_SIGNALS)) as gateway:
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
        while set(status(gateway).values()) != {"ready"}:
            time.sleep(0.5)
        asyncio.run(drain(gateway, sigterm))
