"""Pages in a real Chromium.

Every page is watched: an error on its console, a script that throws, a breach of the content security policy or
a request that leaves the gateway's origin fails the test at its end.
"""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, ConsoleMessage, Page, Request, WebSocket

from tests.patience import PATIENCE_MS

ROOT = Path(__file__).parents[1]


class Watch:
    """What happened on a page behind its user's back."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.sent: list[dict[str, Any]] = []
        self.received: list[dict[str, Any]] = []
        self._origin = urlsplit(url).netloc
        self._complaints: list[str] = []
        self._allowed: list[str] = []
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self._complaints.append(f"script error: {error}"))
        page.on("request", self._on_request)
        page.on("websocket", self._on_websocket)

    def allow(self, words: str) -> None:
        """Complaints with these words are expected in this test."""
        self._allowed.append(words)

    def complaints(self) -> list[str]:
        return [said for said in self._complaints if not any(words in said for words in self._allowed)]

    def finals(self) -> dict[str, str]:
        """Language → the newest translation that the gateway sent."""
        return {frame["lang"]: frame["text"] for frame in self.received if frame["type"] == "translation.final"}

    def _on_console(self, message: ConsoleMessage) -> None:
        address = str(message.location.get("url", ""))
        # What Playwright says of workers that a test does without.
        blocked = message.text.startswith("Service Worker registration blocked")
        # What a Chromium without its model says when the page asks whether it is there.
        unknowing = message.text.startswith("The language detection model was required")
        if message.type in ("error", "warning") and not (blocked or unknowing):
            self._complaints.append(f"console {message.type}: {message.text} ({address})")

    def _on_request(self, request: Request) -> None:
        if urlsplit(request.url).netloc != self._origin:
            self._complaints.append(f"request to another origin: {request.url}")

    def _on_websocket(self, socket: WebSocket) -> None:
        socket.on("framesent", lambda frame: self.sent.append(json.loads(frame)))
        socket.on("framereceived", lambda frame: self.received.append(json.loads(frame)))


OpenPage = Callable[..., AbstractAsyncContextManager[Watch]]


# A worker would stand between the page and what a test sees of its requests.
_USUAL: dict[str, Any] = {"locale": "en-US", "reduced_motion": "reduce", "service_workers": "block"}


@pytest.fixture
def open_page(browser: Browser) -> OpenPage:
    """Opens the page of a gateway; options are those of a browser context."""

    @asynccontextmanager
    async def opened(url: str, **options: Any) -> AsyncIterator[Watch]:
        context = await browser.new_context(**{**_USUAL, **options})
        context.set_default_timeout(PATIENCE_MS)
        try:
            page = await context.new_page()
            watch = Watch(page, url)
            await page.goto(url)
            yield watch
        finally:
            await context.close()
        assert watch.complaints() == []

    return opened


@pytest.fixture
def closed_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@pytest.fixture
def level_as_before() -> Iterator[None]:
    """For tests that change from which level on the gateway logs."""
    logger = logging.getLogger("gateway")
    before = logger.level
    yield
    logger.setLevel(before)
