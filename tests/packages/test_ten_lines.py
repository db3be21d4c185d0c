"""docs/ten-lines.md: its four programs, as they are, in one meeting."""

from __future__ import annotations

import asyncio
import re
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from gateway.client import connect
from gateway.protocol.messages import ParticipantJoined
from scripts.npm_package import NODE
from tests.browser.conftest import SCRIPT, StartGateway, start_gateway
from tests.browser.test_browser_docs import served
from tests.conftest import ROOT

__all__ = ["start_gateway"]

pytestmark = [pytest.mark.slow, pytest.mark.browser]

PAGE = (ROOT / "docs" / "ten-lines.md").read_text()
PROGRAMS = re.findall(r"^```(?:python|js|html)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
ADDRESS = "http://127.0.0.1:8000"


def test_each_has_at_most_ten_lines() -> None:
    assert len(PROGRAMS) == 4
    for program in PROGRAMS:
        assert len([line for line in program.splitlines() if line]) <= 10, program


async def test_the_four_programs(
    start_gateway: StartGateway, browser: Browser, node_project: Path, tmp_path: Path
) -> None:
    with served(tmp_path) as origin:
        gateway = start_gateway(f'allowed_origins = ["{origin}"]\n{SCRIPT}').ready()
        bot, hear, page_source, transcript = (program.replace(ADDRESS, gateway.url) for program in PROGRAMS)
        (tmp_path / "index.html").write_text(page_source)
        (node_project / "hear.mjs").write_text(hear)
        listening = await asyncio.create_subprocess_exec(sys.executable, "-c", bot, stdout=PIPE)
        try:
            async with await browser.new_page() as page:
                await page.goto(origin)
                # The recogniser begins once the bot and the page are there.
                async with connect(gateway.url, meeting="standup", reads=[]) as session:
                    others = len(session.started.participants)
                    while others < 2:
                        others += isinstance(await anext(session), ParticipantJoined)
                speaking = await asyncio.create_subprocess_exec(
                    NODE, "hear.mjs", stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=node_project
                )
                heard = b'{"partial": "good mor"}\n{"text": "good morning"}\n'
                out, err = await speaking.communicate(heard)
                assert (speaking.returncode, out, err) == (0, b"", b"")
                await expect(page.locator("main")).to_have_text("[ja] good morning")
            assert listening.stdout is not None
            assert await listening.stdout.readline() == b"Ana: [ja] good morning\n"
        finally:
            listening.kill()
            await listening.communicate()
        reading = await asyncio.create_subprocess_exec(sys.executable, "-c", transcript, stdout=PIPE)
        out, _ = await reading.communicate()
    assert out.decode() == "Ana: good morning → [ja] good morning\n"
    assert "Ana: good morning → [ja] good morning" in PAGE
    assert "Ana: [ja] good morning" in PAGE
