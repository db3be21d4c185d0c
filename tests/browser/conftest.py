"""A real gateway process with the simulated engine, and a real Chromium on its page.

Every page is watched: an error on its console, a script that throws, a breach of the content security policy or
a request that leaves the gateway's origin fails the test at its end.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, ConsoleMessage, Page, Request, WebSocket, async_playwright

ROOT = Path(__file__).parents[2]

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

# As fast as it goes, and texts that ask for trouble.
SCRIPT = """
[engine]
kind = "simulated"
[engine.script]
first_token_s = 0.02
token_s = 0.01
[[engine.script.rules]]
match = "stall"
stall_after = 4
[[engine.script.rules]]
match = "fail"
fail_after = 2
"""


class GatewayProcess:
    """`gateway serve` as a process of its own. `url` is where its page is, known before the engine is ready."""

    def __init__(self, config: Path, port: int = 0) -> None:
        program = str(Path(sys.executable).with_name("gateway"))
        # Few words after it is ready, because nobody reads them any more.
        options = ["--config", str(config), "--port", str(port), "--log-level", "warning"]
        self._process = subprocess.Popen([program, "serve", *options], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        self.url = next(word for word in self._read_until("http://").split() if word.startswith("http://"))

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port is not None
        return port

    def wait_until_ready(self) -> None:
        self._read_until("Ready:")

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Gone without a word, as after a crash."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if self._process.poll() is None:
            self._process.send_signal(number)
        # A gateway that does not leave must not outlive the test.
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def _read_until(self, words: str) -> str:
        said = []
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if words in line:
                return line
            said.append(line)
        pytest.fail(f"The gateway ended without saying {words!r}: {''.join(said)}")


StartGateway = Callable[..., GatewayProcess]


@pytest.fixture
def start_gateway(tmp_path: Path) -> Iterator[StartGateway]:
    """Starts gateways that end with the test."""
    with ExitStack() as running:

        def start(config: str = SCRIPT, port: int = 0) -> GatewayProcess:
            file = tmp_path / "gateway.toml"
            file.write_text(config)
            gateway = GatewayProcess(file, port)
            running.callback(gateway.stop)
            return gateway

        yield start


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """One gateway that is ready, for tests that leave it as it was."""
    file = tmp_path_factory.mktemp("gateway") / "gateway.toml"
    file.write_text(SCRIPT)
    process = GatewayProcess(file)
    process.wait_until_ready()
    yield process
    process.stop()


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


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.fail("There is no Chromium on the PATH; scripts/system_packages.sh installs one.")
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=path, args=_ARGS)
        yield chromium
        await chromium.close()


@pytest.fixture
def open_page(browser: Browser) -> OpenPage:
    """Opens the page of a gateway; options are those of a browser context."""

    @asynccontextmanager
    async def opened(url: str, **options: Any) -> AsyncIterator[Watch]:
        context = await browser.new_context(**{"locale": "en-US", "reduced_motion": "reduce", **options})
        page = await context.new_page()
        watch = Watch(page, url)
        await page.goto(url)
        yield watch
        await context.close()
        assert watch.complaints() == []

    return opened


@pytest.fixture(scope="session")
def artifacts() -> Path:
    """Where screenshots go."""
    folder = ROOT / "artifacts"
    folder.mkdir(exist_ok=True)
    (folder / ".gitignore").write_text("*\n")
    return folder
