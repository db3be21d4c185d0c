"""The WebSocket protocol as Autobahn's fuzzing client checks it, against the gateway's own settings and guard."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from gateway.app import Gateway
from gateway.config import Settings
from gateway.engines.simulated import SimulatedEngine
from gateway.server.uvicorn_server import SideServer, listen
from gateway.serving import server_config
from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# Framing, pings, reserved bits, opcodes, fragments, UTF-8, closing, and messages in many pieces.
CASES = ["1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "10.*"]
# 7.1.5: the client closes in the middle of a fragmented message. websockets answers 1002 instead of 1000.
NOT_OURS = {"7.1.5"}
GOOD = {"OK", "NON-STRICT", "INFORMATIONAL"}


async def echo(scope: dict[str, Any], receive: Any, send: Any) -> None:
    assert scope["type"] == "websocket"
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        kind = "text" if message.get("text") is not None else "bytes"
        await send({"type": "websocket.send", kind: message[kind]})


@pytest.fixture(scope="module")
def wstest() -> str:
    """Autobahn's fuzzing client, installed by our own script."""
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "autobahn.py"], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode == 2 and not os.environ.get("CI"):
        pytest.skip("Autobahn needs a Python 2.7")
    assert done.returncode == 0
    return done.stdout.strip()


async def test_every_case_is_answered_as_the_protocol_says(wstest: str, tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as sock:
        own = server_config(Gateway(Settings(), SimulatedEngine))
        config = uvicorn.Config(
            echo, http=own.http, ws=own.ws, ws_max_size=own.ws_max_size, lifespan="off", log_config=None
        )
        config.ws_per_message_deflate = own.ws_per_message_deflate
        server = SideServer(config)
        serving = asyncio.create_task(server.serve(sockets=[sock]))
        spec = tmp_path / "fuzz.json"
        address = f"ws://127.0.0.1:{sock.getsockname()[1]}"
        reports = {"outdir": str(tmp_path / "reports"), "servers": [{"agent": "gateway", "url": address}]}
        spec.write_text(json.dumps({**reports, "cases": CASES, "exclude-cases": [], "exclude-agent-cases": {}}))
        fuzzing = await asyncio.create_subprocess_exec(
            *(wstest, "-m", "fuzzingclient", "-s", str(spec)), stdout=asyncio.subprocess.PIPE, cwd=tmp_path
        )
        said, _ = await fuzzing.communicate()
        server.stop()
        await serving
    assert fuzzing.returncode == 0, said
    results = json.loads((tmp_path / "reports" / "index.json").read_text())["gateway"]
    assert len(results) > 200
    wrong = {case: result["behavior"] for case, result in results.items() if result["behavior"] not in GOOD}
    assert set(wrong) <= NOT_OURS, wrong
    closed = {case for case, result in results.items() if result["behaviorClose"] not in GOOD}
    assert closed <= NOT_OURS, closed
