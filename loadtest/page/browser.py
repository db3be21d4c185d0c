"""The page in a real Chromium, and what Chromium can tell about it.

Knows: Playwright, Chromium's DevTools protocol, the page's addresses and marks.
Must not know: what is said in the meeting, what is made of the numbers.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct

from demo_model import LANGUAGES
from loadtest.page.result import Device, Request
from loadtest.results import LoadtestError

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, CDPSession, Page, WebSocket

__all__ = ["CHROMIUM_ARGS", "CHROMIUM_NAMES", "OpenPage", "Reading", "chromium", "context_of", "opened", "preset"]

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_PATIENCE_MS = 60_000

# The page in use; a row of its transcript.
_READY = '[data-testid="status"][data-state="good"]'
_ROW = '[data-testid="utterance"]'

# Answers of the gateway's API; everything else is a file of the page.
_API = re.compile(r"^/(v1/|readyz$|healthz$)")

# Runs before the page's own scripts. The loop that counts frames begins when it is asked to.
_WATCH = """(() => {
    const watch = { tasks: [], ready: null, frames: 0, gap: 0, counting: false };
    Object.defineProperty(window, "loadtest", { value: watch });
    new PerformanceObserver((list) => {
        for (const { startTime, duration } of list.getEntries()) watch.tasks.push([startTime, duration]);
    }).observe({ type: "longtask", buffered: true });
    const look = () => {
        if (watch.ready === null && document.querySelector(READY)) watch.ready = performance.now();
    };
    new MutationObserver(look).observe(document, { subtree: true, childList: true, attributes: true });
    watch.count = () => {
        let last = performance.now();
        Object.assign(watch, { frames: 0, gap: 0, counting: true });
        requestAnimationFrame(function frame(now) {
            if (!watch.counting) return;
            watch.frames += 1;
            watch.gap = Math.max(watch.gap, now - last);
            last = now;
            requestAnimationFrame(frame);
        });
    };
})();""".replace("READY", json.dumps(_READY))


def preset(meeting: str) -> str:
    """A script that leaves no question between the address and the meeting, and has all languages read."""
    kept = {"name": "Bench", "reads": ",".join(LANGUAGES), "stability": "live", "originals": "yes"}
    return (
        f"if (location.origin !== 'null') {{ sessionStorage.setItem('joined', {json.dumps(f'{meeting} speak')});"
        f"for (const [key, value] of Object.entries({json.dumps(kept)})) localStorage.setItem(key, value); }}"
    )


class Reading(Struct, frozen=True):
    """Counters of a page at one moment. now_ms: on the page's clock; the others grow, in seconds."""

    now_ms: float
    task_s: float
    script_s: float
    layout_s: float
    nodes: int
    messages: dict[str, int]


class OpenPage:
    """The page, open. complaints: errors and warnings on its console, and scripts that threw."""

    def __init__(self, page: Page, session: CDPSession, url: str) -> None:
        self.complaints: list[str] = []
        self._page = page
        self._session = session
        self._url = url
        self._messages: Counter[str] = Counter()
        self._requests: dict[str, dict[str, Any]] = {}
        self._in_memory: set[str] = set()
        page.on("console", lambda message: self._heard(message.type, message.text))
        page.on("pageerror", lambda error: self.complaints.append(f"script error: {error}"))
        page.on("websocket", self._on_websocket)
        session.on("Network.responseReceived", self._on_response)
        session.on("Network.requestServedFromCache", self._on_cached)
        session.on("Network.dataReceived", self._on_data)
        session.on("Network.loadingFinished", self._on_finished)

    async def go(self, meeting: str) -> None:
        """Open the meeting and wait until one is in it. Raises `LoadtestError`."""
        await self._page.goto(f"{self._url}/?meeting={meeting}")
        try:
            await self._page.wait_for_selector(_READY, timeout=_PATIENCE_MS)
        except Exception as error:
            if type(error).__name__ != "TimeoutError":
                raise
            said = "; ".join(self.complaints) or "nothing on its console"
            raise LoadtestError(f"The page did not get into the meeting: {said}.") from None

    # ------------------------------------------------------------ opening

    def requests(self) -> list[Request]:
        """What was fetched so far; a file that was used twice is listed once."""
        first: dict[str, dict[str, Any]] = {}
        for each in self._requests.values():
            first.setdefault(each["path"], each)
        return [
            Request(
                path=re.sub(r"/assets/[^/]+/", "/assets/…/", path),
                wire=0 if each["cached"] else round(each["wire"]),
                decoded=each["decoded"],
                cached=each["cached"],
                file=not _API.match(path),
            )
            for path, each in first.items()
        ]

    async def opening_ms(self) -> tuple[float, float, float]:
        """First paint, first contentful paint, ready."""
        await self._page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
        found: list[float] = await self._page.evaluate(
            "[...['first-paint', 'first-contentful-paint'].map("
            "(name) => performance.getEntriesByName(name)[0]?.startTime ?? 0), loadtest.ready]"
        )
        return found[0], found[1], found[2]

    # ------------------------------------------------------------ running

    async def rows(self) -> int:
        return await self._page.locator(_ROW).count()

    async def until_rows(self, count: int, timeout_ms: float = _PATIENCE_MS) -> bool:
        """Wait for so many rows; false when they did not come."""
        try:
            await self._page.wait_for_function(
                "([row, count]) => document.querySelectorAll(row).length >= count",
                arg=[_ROW, count],
                timeout=timeout_ms,
                polling=200,
            )
        except Exception as error:
            if type(error).__name__ != "TimeoutError":
                raise
            return False
        return True

    async def heap_mib(self) -> float:
        """JavaScript's objects that live."""
        await self._session.send("HeapProfiler.collectGarbage")
        return float((await self._metrics())["JSHeapUsedSize"]) / 2**20

    async def reading(self) -> Reading:
        metrics = await self._metrics()
        return Reading(
            now_ms=await self._page.evaluate("performance.now()"),
            task_s=metrics["TaskDuration"],
            script_s=metrics["ScriptDuration"],
            layout_s=metrics["LayoutDuration"] + metrics["RecalcStyleDuration"],
            nodes=int(metrics["Nodes"]),
            messages=dict(self._messages),
        )

    async def count_frames(self) -> None:
        await self._page.evaluate("loadtest.count()")

    async def frames(self) -> tuple[int, float]:
        """How many since `count_frames`, and the longest time between two; the counting ends."""
        found: list[float] = await self._page.evaluate(
            "loadtest.counting = false, [loadtest.frames, loadtest.gap]"
        )
        return round(found[0]), found[1]

    async def tasks(self) -> list[tuple[float, float]]:
        """(start, duration) of every long task, on the page's clock."""
        found: list[list[float]] = await self._page.evaluate("loadtest.tasks")
        return [(began, lasted) for began, lasted in found]

    async def _metrics(self) -> dict[str, float]:
        answer = await self._session.send("Performance.getMetrics")
        return {each["name"]: each["value"] for each in answer["metrics"]}

    # ------------------------------------------------------------ what Chromium reports

    def _heard(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(f"console {kind}: {text}")

    def _on_websocket(self, socket: WebSocket) -> None:
        socket.on("framereceived", lambda frame: self._messages.update([_kind(frame)]))

    def _on_response(self, event: dict[str, Any]) -> None:
        response = event["response"]
        if not response["url"].startswith(self._url):
            return
        self._requests[event["requestId"]] = {
            "path": urlsplit(response["url"]).path,
            "wire": response.get("encodedDataLength", 0),
            "decoded": 0,
            "cached": bool(response.get("fromDiskCache")) or event["requestId"] in self._in_memory,
        }

    def _on_cached(self, event: dict[str, Any]) -> None:
        # Told before the answer itself.
        self._in_memory.add(event["requestId"])

    def _on_data(self, event: dict[str, Any]) -> None:
        if (request := self._requests.get(event["requestId"])) is not None:
            request["decoded"] += event["dataLength"]

    def _on_finished(self, event: dict[str, Any]) -> None:
        if (request := self._requests.get(event["requestId"])) is not None:
            request["wire"] = event["encodedDataLength"]


def _kind(frame: str | bytes) -> str:
    """The type of a message; of captions also whether they are final."""
    message = json.loads(frame)
    kind: str = message["type"]
    return "caption.final" if kind == "caption" and message["final"] else kind


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """A Chromium of our own. Raises `LoadtestError`."""
    try:
        # A tool of developers: the other load tests do without.
        from playwright.async_api import Error, async_playwright
    except ImportError:
        raise LoadtestError("Playwright is not installed; `make install-dev` does that.") from None
    path = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if path is None:
        raise LoadtestError("There is no Chromium on the PATH; scripts/system_packages.sh installs one.")
    async with async_playwright() as playwright:
        try:
            browser = await playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGS)
        except Error as error:
            raise LoadtestError(f"Chromium cannot be started: {error.message.splitlines()[0]}") from None
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def context_of(browser: Browser, device: Device, meeting: str) -> AsyncIterator[BrowserContext]:
    """A browser that was never here: nothing in its cache."""
    context = await browser.new_context(
        viewport={"width": device.width, "height": device.height},
        is_mobile=device.mobile,
        has_touch=device.mobile,
        locale="en-US",
    )
    try:
        await context.add_init_script(preset(meeting))
        await context.add_init_script(_WATCH)
        yield context
    finally:
        await context.close()


@asynccontextmanager
async def opened(context: BrowserContext, device: Device, url: str) -> AsyncIterator[OpenPage]:
    """A tab with nothing in it yet."""
    page = await context.new_page()
    session = await page.context.new_cdp_session(page)
    for command, options in (
        ("Network.enable", {}),
        ("Performance.enable", {"timeDomain": "timeTicks"}),
        ("Emulation.setCPUThrottlingRate", {"rate": device.throttle}),
    ):
        await session.send(command, options)
    try:
        yield OpenPage(page, session, url)
    finally:
        await page.close()
