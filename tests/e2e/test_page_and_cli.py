"""A newcomer's first minute: the page in Chromium and `websockets`' own client, on the real engine."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.pages import original
from tests.conftest import OpenPage
from tests.e2e.test_process import readiness
from tests.processes import GatewayProcess

pytestmark = pytest.mark.engine

SENTENCE = "Let's move the launch to Friday."


@pytest.mark.browser
@pytest.mark.timeout(1_800)
async def test_page_tells_of_loading_and_then_translates(
    starting_gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    # It answers at once, alive and not ready, and says why.
    assert json.loads(starting_gateway.get("/healthz"))["status"] == "alive"
    status, body = readiness(starting_gateway)
    assert (status, body["status"]) == (503, "starting")
    assert body["reason"]
    async with open_page(starting_gateway.url, viewport={"width": 1280, "height": 900}) as watch:
        page = watch.page
        await expect(page.get_by_test_id("loading")).to_be_visible()
        await expect(page.get_by_test_id("loading-reason")).not_to_be_empty()
        await page.screenshot(path=artifacts / "real-engine-loading.png")

        # Nobody reloads: the page turns by itself.
        await asyncio.to_thread(starting_gateway.ready)
        await expect(page.get_by_test_id("text")).to_be_enabled()
        assert (await asyncio.to_thread(readiness, starting_gateway))[0] == 200
        for lang in ("ja", "de", "fr"):
            await page.get_by_test_id(f"read-{lang}").check(force=True)
        for text in ("Can you see my screen?", SENTENCE):
            await page.get_by_test_id("text").fill(text)
            await page.get_by_test_id("send").click()
            row = page.get_by_test_id("utterance").last
            await expect(original(row)).to_have_text(text)
            await expect(row).to_have_attribute("data-state", "settled")
        await expect(row.get_by_test_id("cell-de")).to_contain_text("Freitag")
        await expect(row.get_by_test_id("cell-ja")).to_contain_text("金曜日")
        await expect(row.get_by_test_id("cell-ja")).to_have_attribute("data-first-token-ms", re.compile(r"^\d"))
        await page.screenshot(path=artifacts / "real-engine.png")


def test_the_websockets_command_line_client(real_gateway: GatewayProcess) -> None:
    url = real_gateway.url.replace("http://", "ws://") + "/v1/stream"
    client = subprocess.Popen(
        [sys.executable, "-m", "websockets", url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert client.stdin is not None
    assert client.stdout is not None
    guard = threading.Timer(300, client.kill)
    guard.start()
    try:
        for message in (
            {"type": "session.start", "speaks": "en", "reads": ["ja"]},
            {"type": "utterance.final", "id": "u1", "rev": 1, "text": SENTENCE},
        ):
            client.stdin.write(json.dumps(message) + "\n")
            client.stdin.flush()
        final = next(line for line in client.stdout if "translation.final" in line)
    finally:
        guard.cancel()
        client.stdin.close()
        client.terminate()
        client.wait()
        client.stdout.close()
    assert "金曜日" in final
