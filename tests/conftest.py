"""A real Chromium for the tests of the page.

Every page is watched: an error on its console, a script that throws, a breach of the content security policy or
a request that leaves the gateway's origin fails the test at its end.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, ConsoleMessage, Page, Request, WebSocket, async_playwright

ROOT = Path(__file__).parents[1]

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


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
        # The browser itself notes every 503, which is how the gateway says that its engine is loading.
        loading = address.endswith("/readyz") and "503" in message.text
        if message.type in ("error", "warning") and not loading:
            self._complaints.append(f"console {message.type}: {message.text} ({address})")

    def _on_request(self, request: Request) -> None:
        if urlsplit(request.url).netloc != self._origin:
            self._complaints.append(f"request to another origin: {request.url}")

    def _on_websocket(self, socket: WebSocket) -> None:
        socket.on("framesent", lambda frame: self.sent.append(json.loads(frame)))
        socket.on("framereceived", lambda frame: self.received.append(json.loads(frame)))


OpenPage = Callable[..., AbstractAsyncContextManager[Watch]]

# Chromium draws the popup of its address bar as two pages of its own for every window, which nobody sees here and
# which take as long as the page under test. The last list holds, so it names what Playwright turns off, too.
NOT_NEEDED = (
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup"),
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades"),
    *("HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding"),
    *("ThirdPartyStoragePartitioning", "AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints"),
    *("NetworkTimeServiceQuerying", "AimEnabled", "PreconnectToSearch"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            # What Playwright gives can only be used in the event loop that it began in.
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One Chromium for all tests; each has contexts of its own, which share no storage, cache or cookies."""
    path = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if path is None:
        pytest.fail("There is no Chromium on the PATH; scripts/system_packages.sh installs one.")
    async with async_playwright() as playwright:
        args = [*CHROMIUM_ARGS, f"--disable-features={','.join(NOT_NEEDED)}"]
        chromium = await playwright.chromium.launch(executable_path=path, args=args)
        yield chromium
        await chromium.close()


@pytest.fixture
def open_page(browser: Browser) -> OpenPage:
    """Opens the page of a gateway; options are those of a browser context."""

    @asynccontextmanager
    async def opened(url: str, **options: Any) -> AsyncIterator[Watch]:
        context = await browser.new_context(**{"locale": "en-US", "reduced_motion": "reduce", **options})
        try:
            page = await context.new_page()
            watch = Watch(page, url)
            await page.goto(url)
            yield watch
        finally:
            await context.close()
        assert watch.complaints() == []

    return opened


@pytest.fixture(scope="session")
def artifacts() -> Path:
    """Where screenshots go."""
    folder = ROOT / "artifacts"
    folder.mkdir(exist_ok=True)
    return folder
