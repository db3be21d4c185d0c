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

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900)]

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


# The fuzzing client gives a server a second, which is little where others take the processor. This one a minute.
_PATIENT = """
from autobahntestsuite import fuzzing, wstest
for name in ("closeAfter", "killAfter"):
    def patient(self, delay, within=getattr(fuzzing.FuzzingProtocol, name).im_func):
        within(self, 60 * delay)
    setattr(fuzzing.FuzzingProtocol, name, patient)
wstest.run()
"""


async def fuzz(wstest: list[str], url: str, cases: list[str], folder: Path) -> dict[str, dict[str, str]]:
    """What becomes of each case."""
    folder.mkdir()  # noqa: ASYNC240 -- nobody else waits
    reports = {"outdir": str(folder / "reports"), "servers": [{"agent": "gateway", "url": url}]}
    spec = folder / "fuzz.json"
    spec.write_text(json.dumps({**reports, "cases": cases, "exclude-cases": [], "exclude-agent-cases": {}}))
    fuzzing = await asyncio.create_subprocess_exec(
        *(*wstest, "-m", "fuzzingclient", "-s", str(spec)), stdout=asyncio.subprocess.PIPE, cwd=folder
    )
    said, _ = await fuzzing.communicate()
    assert fuzzing.returncode == 0, said
    results: dict[str, dict[str, str]] = json.loads((folder / "reports" / "index.json").read_text())["gateway"]
    return results


def wrong(results: dict[str, dict[str, str]]) -> set[str]:
    """Cases that are not answered as the protocol says."""
    return {
        case
        for case, result in results.items()
        if not {result["behavior"], result["behaviorClose"]} <= GOOD and case not in NOT_OURS
    }


async def test_every_case_is_answered_as_the_protocol_says(wstest: str, tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as sock:
        own = server_config(Gateway(Settings(), SimulatedEngine))
        config = uvicorn.Config(
            echo, http=own.http, ws=own.ws, ws_max_size=own.ws_max_size, lifespan="off", log_config=None
        )
        config.ws_per_message_deflate = own.ws_per_message_deflate
        server = SideServer(config)
        serving = asyncio.create_task(server.serve(sockets=[sock]))
        url = f"ws://127.0.0.1:{sock.getsockname()[1]}"
        results = await fuzz([wstest], url, CASES, tmp_path / "all")
        assert len(results) > 200
        if late := wrong(results):
            patient = [str(Path(wstest).with_name("python")), "-c", _PATIENT]
            results = await fuzz(patient, url, sorted(late), tmp_path / "late")
            assert set(results) == late
            assert not wrong(results), results
        server.stop()
        await serving
