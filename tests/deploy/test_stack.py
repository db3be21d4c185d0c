"""`make stack`: what deploy/compose.yaml runs, as processes; with simulated engines, which start at once."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import pytest
import websockets
from websockets.typing import Origin

from gateway.client import connect
from gateway.protocol.messages import TranslationFinal
from loadtest.systems.server import free_port
from tests.cli.commands import ROOT
from tests.processes import DEFAULT_SIGNALS, alive, descendants

pytestmark = [pytest.mark.slow, pytest.mark.long]


class Stack:
    """It runs, and everything that it says is in `said`. signals: what decides how it is told of signals."""

    def __init__(self, folder: Path, signals: Sequence[str] = DEFAULT_SIGNALS) -> None:
        self.certificate = folder / "tls" / "fullchain.pem"
        self.port, self.prometheus_port = free_port(), free_port()
        ports = {"--port": self.port, "--plain-port": free_port(), "--prometheus-port": self.prometheus_port}
        words = [str(word) for pair in ports.items() for word in pair]
        self.process = subprocess.Popen(
            [*signals, sys.executable, "-m", "scripts.stack", "--folder", str(folder), *words],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "GATEWAY__ENGINE__KIND": "simulated"},
        )
        self.said = ""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            if line.startswith("Ctrl-C"):
                break

    def end(self, number: signal.Signals) -> int:
        """Its exit status, once nothing is left of it."""
        below = descendants(self.process.pid)
        self.process.send_signal(number)
        self.said += self.process.communicate()[0]
        while any(map(alive, below)):
            time.sleep(0.05)
        return self.process.returncode

    def targets(self) -> dict[str, str]:
        """Instance → whether Prometheus finds it up."""
        url = f"http://127.0.0.1:{self.prometheus_port}/api/v1/targets"
        with urllib.request.urlopen(url) as answer:
            found = json.load(answer)["data"]["activeTargets"]
        return {each["labels"]["instance"]: each["health"] for each in found}

    def token(self) -> str:
        """What is in the file that is named."""
        (file,) = re.findall(r"--token-file (\S+)", self.said)
        return Path(file).read_text().strip()

    def linked_page(self) -> int:
        """How the page answers under the link that is printed."""
        (link,) = re.findall(r"https://localhost:\S+#\S+", self.said)
        trusting = ssl.create_default_context(cafile=str(self.certificate))
        with urllib.request.urlopen(link, context=trusting) as page:  # noqa: S310 -- our own address
            status: int = page.status
        return status


async def test_a_meeting_is_translated_behind_the_proxy_and_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = set()
    # By a person, and by a script, which starts it in the background.
    for signals, number in ((DEFAULT_SIGNALS, signal.SIGINT), (["env", "--ignore-signal=INT"], signal.SIGTERM)):
        stack = Stack(tmp_path / "stack", signals)
        try:
            monkeypatch.setenv("SSL_CERT_FILE", str(stack.certificate))
            tokens.add(token := stack.token())
            url = f"wss://localhost:{stack.port}/v1/stream"
            # As the page does it.
            async with websockets.connect(url, origin=Origin(f"https://localhost:{stack.port}")) as page:
                await page.send("{}")
                assert json.loads(await page.recv())["code"] == "invalid_message"  # not "foreign_origin"
            async with connect(url, token=token, meeting="standup", speaks="en", reads=["de"]) as session:
                await session.final("good morning")
                async for message in session:
                    if isinstance(message, TranslationFinal):
                        assert message.text == "[de] good morning"
                        break
            assert stack.linked_page() == 200
            # It reads the list of them and asks them in its own time, and again if one did not answer.
            while stack.targets() != {"gateway-1:9100": "up", "gateway-2:9100": "up"}:
                await asyncio.sleep(0.1)
        finally:
            status = stack.end(number)
        assert status == 0, stack.said
        assert not list((tmp_path / "stack").glob("*.pid"))
    assert len(tokens) == 1  # links and keys of the first start hold at the second one
