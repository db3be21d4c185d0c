"""Two real engines behind one gateway: one of them is killed while people speak, and nobody loses a sentence."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from gateway.client import connect
from gateway.protocol.messages import TranslationFailed, TranslationFinal
from tests.processes import GatewayProcess, engine_processes, gateway_process

pytestmark = pytest.mark.engine

TWO = """
[[engines]]
name = "one"
pairs = ["en-ja", "en-de"]

[[engines]]
name = "two"
pairs = ["en-ja", "en-de", "ja-en"]
"""
SENTENCES = ("Let's move the launch to Friday.", "Can you hear me?", "Please send the report before Monday.")


def status(gateway: GatewayProcess) -> dict[str, str]:
    """Lane → its state."""
    return {each["name"]: each["status"] for each in json.loads(gateway.get("/readyz"))["engines"]}


async def a_meeting(gateway: GatewayProcess) -> None:
    finals: dict[tuple[str, str], str] = {}
    failed: list[TranslationFailed] = []
    sent = 6
    killed = False
    async with connect(gateway.url, speaks="en", reads=["ja", "de"]) as session:
        for n in range(sent):
            await session.final(SENTENCES[n % len(SENTENCES)])
        async for message in session:
            match message:
                case TranslationFailed():
                    failed.append(message)
                case TranslationFinal():
                    finals[message.utterance, message.lang] = message.text
                    if len(finals) % 2 == 0 and sent < 60:
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
    for language in ("ja", "de"):
        assert len({text for (_, lang), text in finals.items() if lang == language}) == len(SENTENCES)


def test_an_engine_that_is_killed_while_people_speak_costs_no_sentence(tmp_path: Path) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text(TWO)
    with gateway_process("--config", str(config)) as gateway:
        gateway.ready()
        assert status(gateway) == {"one": "ready", "two": "ready"}
        answer = json.loads(gateway.get("/v1/languages"))
        assert answer["targets"] == {"en": ["ja", "de"], "ja": ["en"]}
        page = gateway.get("/metrics")
        for name in ("one", "two"):
            assert f'gateway_engine_ready{{engine="{name}"}} 1.0' in page
            assert f'vllm:num_requests_running{{engine="{name}"' in page
        asyncio.run(a_meeting(gateway))
        assert gateway.end() == 0
