"""The examples, against a real gateway with the simulated engine."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from gateway.client import ClientSession, connect
from gateway.protocol.messages import ParticipantJoined
from tests.browser.conftest import SCRIPT, StartGateway, start_gateway
from tests.browser.test_browser_docs import served
from tests.conftest import ROOT
from tests.packages.node import node
from tests.processes import GatewayProcess

__all__ = ["start_gateway"]

pytestmark = pytest.mark.slow

EXAMPLES = ROOT / "examples"


@asynccontextmanager
async def ana(gateway: GatewayProcess, meeting: str) -> AsyncIterator[ClientSession]:
    """Ana speaks English in the meeting."""
    async with connect(gateway.url, meeting=meeting, name="Ana", speaks="en", reads=["ja"]) as session:
        yield session


async def joined(session: ClientSession) -> None:
    """Somebody else is in the meeting."""
    if session.started.participants:
        return
    async for event in session:
        if isinstance(event, ParticipantJoined):
            return


async def said(session: ClientSession, *texts: str) -> None:
    """Each is said, one after the other, and the session ends once all is translated."""
    for text in texts:
        await session.final(text)
    await session.end()
    async for _ in session:
        pass


async def test_the_minutes_have_what_was_said(gateway: GatewayProcess, tmp_path: Path) -> None:
    minutes = tmp_path / "minutes.md"
    command = [sys.executable, EXAMPLES / "minutes.py", gateway.url, "minutes", "ja", minutes]
    process = await asyncio.create_subprocess_exec(*map(str, command), stderr=asyncio.subprocess.PIPE)
    async with ana(gateway, "minutes") as session:
        await joined(session)
        await said(session, "Good morning.", "Let us begin.")
    while not minutes.exists() or minutes.read_text().count("\n") < 2:
        await asyncio.sleep(0.02)
    process.send_signal(2)
    _, err = await process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert minutes.read_text() == "- **Ana**: [ja] Good morning.\n- **Ana**: [ja] Let us begin.\n"


VOSK = [
    {"partial": ""},
    {"partial": "good"},
    {"partial": "good morning"},
    {
        "result": [
            {"conf": 1.0, "start": 0.4, "end": 0.8, "word": "good"},
            {"conf": 0.9, "start": 0.8, "end": 1.3, "word": "morning"},
        ],
        "text": "good morning",
    },
    {"text": ""},
    {"partial": "let us begin"},
    {"text": "let us begin"},
]


def line(text: str | None, start: str, end: str, speaker: int = 1) -> dict[str, Any]:
    return {"speaker": speaker, "text": text, "start": start, "end": end}


WHISPER = [
    {"type": "config", "useAudioWorklet": True, "mode": "full"},
    {"status": "active_transcription", "lines": [], "buffer_transcription": "good", "buffer_diarization": ""},
    {
        "status": "active_transcription",
        "lines": [line("Good", "0:00:00", "0:00:01")],
        "buffer_transcription": "morning",
    },
    {
        "status": "active_transcription",
        "lines": [line("Good morning.", "0:00:00", "0:00:02"), line(None, "0:00:02", "0:00:05", -2)],
        "buffer_transcription": "",
    },
    {
        "status": "active_transcription",
        "lines": [
            line("Good morning.", "0:00:00", "0:00:02"),
            line(None, "0:00:02", "0:00:05", -2),
            line("Let us begin.", "0:00:05", "0:01:07"),
        ],
        "buffer_transcription": "",
    },
    {"type": "ready_to_stop"},
]


@pytest.mark.parametrize(
    ("name", "results", "expected"),
    [
        ("vosk", VOSK, [("good morning", 400, 1300), ("let us begin", None, None)]),
        ("whisper", WHISPER, [("Good morning.", 0, 2000), ("Let us begin.", 5000, 67_000)]),
    ],
    ids=["vosk", "whisper"],
)
async def test_what_a_recogniser_hears_is_said(
    gateway: GatewayProcess, name: str, results: Sequence[dict[str, Any]], expected: list[Any]
) -> None:
    command = [sys.executable, EXAMPLES / "recogniser.py", gateway.url, f"heard-{name}", "en", "Ana"]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*map(str, command), stdin=pipe, stderr=pipe)
    spoken = "".join(json.dumps(result) + "\n" for result in results)
    _, err = await process.communicate(spoken.encode())
    assert (process.returncode, err) == (0, b"")
    log = json.loads(gateway.get(f"/v1/meetings/heard-{name}/transcript.json"))
    assert [(each["text"], each["start_ms"], each["end_ms"]) for each in log["utterances"]] == expected
    assert {each["speaker"] for each in log["utterances"]} == {"Ana"}


class _Chat(BaseHTTPRequestHandler):
    """An incoming webhook, which is out of order at first."""

    def __init__(self, posts: list[str], *args: Any) -> None:
        self.posts = posts
        super().__init__(*args)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.posts.append(body["text"])
        self.send_response(500 if len(self.posts) == 1 else 200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


async def test_the_chat_gets_what_is_said_in_order(gateway: GatewayProcess, node_project: Path) -> None:
    posts: list[str] = []
    chat = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Chat, posts))
    thread = Thread(target=chat.serve_forever)
    thread.start()
    program = (EXAMPLES / "chat_bot.mjs").read_text()
    try:
        webhook = f"http://127.0.0.1:{chat.server_port}/hook"
        async with node(node_project, program, gateway.url, "chat", "ja", webhook) as bot:
            async with ana(gateway, "chat") as session:
                await joined(session)
                await said(session, "One.", "Two.", "Three.")
            while len(posts) < 3:
                await asyncio.sleep(0.02)
            bot.send_signal(2)
            _, err = await bot.communicate()
    finally:
        chat.shutdown()
        thread.join()
        chat.server_close()
    assert posts == ["*Ana*: [ja] One.", "*Ana*: [ja] Two.", "*Ana*: [ja] Three."]
    assert (bot.returncode, err.decode()) == (0, "The chat answers with status 500.\n")


@pytest.mark.browser
async def test_the_overlay_shows_the_last_sentences(
    start_gateway: StartGateway,
    browser: Browser,
    tmp_path: Path,
    artifacts: Path,
) -> None:
    (tmp_path / "obs_overlay.html").write_text((EXAMPLES / "obs_overlay.html").read_text())
    with served(tmp_path) as origin:
        gateway = start_gateway(f'allowed_origins = ["{origin}"]\n{SCRIPT}').ready()
        async with await browser.new_page(viewport={"width": 1280, "height": 360}) as page:
            complaints: list[str] = []
            page.on("pageerror", lambda error: complaints.append(str(error)))
            await page.goto(f"{origin}/obs_overlay.html?gateway={gateway.url}&meeting=show&lang=ja")
            async with ana(gateway, "show") as session:
                await joined(session)
                await said(session, "One.", "Two.", "Let us move the launch to Friday.")
            lines = page.locator("p")
            await expect(lines).to_have_text(["[ja] Two.", "[ja] Let us move the launch to Friday."])
            await page.screenshot(path=artifacts / "obs_overlay.png", omit_background=True)
            assert complaints == []
