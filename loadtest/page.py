"""`python -m loadtest page`: today's page beside that of another checkout, in turns, in one Chromium.

How fast the form to join is there on a slow phone, and how a transcript of 1,000 rows in three languages keeps up
with 20 captions a second. What others do on the machine falls on both pages; CPU time is of the page's own thread.

Knows: Playwright, Chromium's DevTools protocol, what both pages have in common, the bars. Must not know: how a
result looks.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import count, cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.client import ClientSession, connect
from loadtest.options import Command, Say, add_options, between
from loadtest.results import LoadtestError, nearest_rank, spread
from loadtest.systems.server import Server, free_port, serving
from loadtest.talk.scenario import Words
from loadtest.trial.content import Table, number
from loadtest.trial.values import Finding, Results

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, CDPSession, Page

BEFORE, NOW = "before", "now"

_ARGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
_PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
_DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 860}}
_SLOW = {"offline": False, "latency": 400, "downloadThroughput": 50_000, "uploadThroughput": 50_000}

# Spoken in turn, and read all three: a final text in each of them is a caption.
_LANGUAGES = ("en", "ja", "es")
_WORDS, _REVISIONS, _REVISION_S = 11, 5, 0.25
# Rows that come before anything is measured, a second.
_FILLING_PER_S = 45
_IDLE_S = 5.0
_UP_S = 10.0
_PATIENCE_MS = 120_000

_ROWS = "document.querySelectorAll('[data-testid=utterance]').length"
_READ_UP = """() => {
    document.querySelector("[data-testid=transcript]").scrollTop -= 3_000;
    return new Promise((done) => setTimeout(done, 500)).then(loadtest.count);
}"""
_JOINED = """if (location.origin !== "null") {
    sessionStorage.setItem("joined", "MEETING listen");
    Object.assign(localStorage, { name: "Ben", reads: "READS", stability: "live", originals: "yes" });
}"""
_WATCH = """(() => {
    const seen = { usable: null, shifts: [], frames: [] };
    Object.defineProperty(window, "loadtest", { value: seen });
    new PerformanceObserver((list) => {
        for (const { startTime, value, hadRecentInput } of list.getEntries()) {
            if (!hadRecentInput) seen.shifts.push([startTime, value]);
        }
    }).observe({ type: "layout-shift", buffered: true });
    const look = () => {
        if (document.querySelector("dialog[open] button.primary:enabled")) seen.usable ??= performance.now();
    };
    new MutationObserver(look).observe(document, { subtree: true, childList: true, attributes: true });
    seen.count = () => {
        seen.frames = [];
        seen.shifts = [];
        const ours = seen.frames;
        let last = null;
        requestAnimationFrame(function frame(now) {
            if (ours !== seen.frames) return;
            if (last !== null) ours.push(now - last);
            last = now;
            requestAnimationFrame(frame);
        });
    };
})();"""

# What is measured, by its key in a round: its name, the most that is allowed, the most as a share of `before`.
_MEASURED: dict[str, tuple[str, float | None, float | None]] = {
    # An empty page in its colour is a paint, too, but nothing to look at.
    "empty_ms": ("slow phone: first paint of anything, ms", None, None),
    "paint_ms": ("slow phone: first paint of contents, ms", None, 0.3),
    "usable_ms": ("slow phone: form to join, ms", None, 0.35),
    "requests": ("slow phone: files and answers until then", 10, None),
    "opening_shift": ("slow phone: layout shift until then", 0.02, None),
    "longest_ms": ("busy transcript: longest task, ms of CPU", 50, None),
    "p95_ms": ("busy transcript: time between frames, p95, ms", 20, None),
    "idle_p95_ms": ("the same before anybody speaks", None, None),
    "most_ms": ("busy transcript: longest time between frames, ms", None, None),
    "shift": ("busy transcript: layout shift for who reads further up", 0.02, None),
    # Chromium counts rows below one that grows, although the scrolling that follows keeps them in their places.
    "shift_at_end": ("busy transcript: layout shift at its end, as Chromium counts", None, None),
    "cpu": ("busy transcript: CPU of the page's thread, cores", None, None),
    "script": ("its scripts, cores", None, None),
    "layout": ("its styles and layout, cores", None, None),
    "messages_per_s": ("messages that arrived, a second", None, None),
    "rows": ("rows at the end", None, None),
}


def layout_shift(shifts: Sequence[tuple[float, float]]) -> float:
    """The cumulative layout shift: that of the worst session window (https://web.dev/articles/cls).

    shifts: milliseconds and score of each, in order. A window ends with a second without any, and after five.
    """
    worst = score = 0.0
    began_ms = last_ms = float("-inf")
    for at_ms, value in shifts:
        if at_ms - last_ms >= 1_000 or at_ms - began_ms >= 5_000:
            score, began_ms = 0.0, at_ms
        last_ms = at_ms
        score += value
        worst = max(worst, score)
    return worst


def longest_task_ms(trace: bytes) -> float:
    """CPU time of the longest task on the page's thread, of a trace of Chromium.

    The page's thread is the busiest that draws a page. Raises `LoadtestError` where none is in the trace.
    """
    events = json.loads(trace)["traceEvents"]
    main = {
        (each["pid"], each["tid"])
        for each in events
        if each["name"] == "thread_name" and each["args"]["name"] == "CrRendererMain"
    }
    tasks: defaultdict[tuple[int, int], list[float]] = defaultdict(list)
    for each in events:
        if "tdur" in each and (thread := (each["pid"], each["tid"])) in main:
            tasks[thread].append(each["tdur"] / 1000)
    if not tasks:
        raise LoadtestError("Chromium's trace has no tasks of the page.")
    return max(max(tasks.values(), key=sum))


# ---------------------------------------------------------------- one page


class _Pages:
    def __init__(self, browser: Browser, options: argparse.Namespace) -> None:
        self._browser = browser
        self._options = options
        self._meetings = count(1)

    async def opening(self, url: str) -> dict[str, float]:
        """A first visit on a slow phone, up to the form that a link leads to."""
        async with await self._context(_PHONE) as context:
            page, devtools = await _tab(context)
            await devtools.send("Network.emulateNetworkConditions", _SLOW)
            # One that is used again is in the browser's memory.
            requests: set[str] = set()
            page.on("request", lambda request: requests.add(request.url))
            await page.goto(f"{url}/?meeting=opening-{next(self._meetings)}", wait_until="commit")
            await page.wait_for_function("() => loadtest.usable", timeout=_PATIENCE_MS)
            asked = [each for each in requests if each.startswith(url)]
            empty_ms, paint_ms, usable_ms, shifts = await page.evaluate(
                """[
                    ...["first-paint", "first-contentful-paint"].map(
                        (name) => performance.getEntriesByName(name)[0].startTime,
                    ),
                    loadtest.usable,
                    loadtest.shifts,
                ]"""
            )
        return {
            **{"empty_ms": empty_ms, "paint_ms": paint_ms, "usable_ms": usable_ms},
            **{"requests": len(asked), "opening_shift": layout_shift(shifts)},
        }

    async def captions(self, url: str) -> dict[str, float]:
        """A transcript that is long already, while people speak."""
        options, id = self._options, f"captions-{next(self._meetings)}"
        arrived: list[object] = []
        async with AsyncExitStack() as stack:
            context = await stack.enter_async_context(await self._context(_DESKTOP))
            script = _JOINED.replace("MEETING", id).replace("READS", ",".join(_LANGUAGES))
            await context.add_init_script(script)
            page, devtools = await _tab(context)
            await devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
            page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: arrived.append(frame)))
            await page.goto(f"{url}/?meeting={id}")
            await page.wait_for_selector('[data-testid="status"][data-state="good"]', timeout=_PATIENCE_MS)
            people = [
                await stack.enter_async_context(
                    connect(url, meeting=id, name=f"Speaker of {lang}", reads=[], speaks=lang)
                )
                for lang in _LANGUAGES
            ]
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            hearing = [tasks.create_task(_hear(each)) for each in people]
            meeting = _Meeting(people)
            await meeting.speak(options.rows, _FILLING_PER_S, revised=False)
            await page.wait_for_function(f"() => {_ROWS} >= {options.rows}", timeout=_PATIENCE_MS)
            await page.evaluate("loadtest.count()")
            await asyncio.sleep(_IDLE_S)
            idle: list[float] = await page.evaluate("loadtest.frames")
            await self._browser.start_tracing(page=page, categories=["-*", "toplevel"])
            before, many = await _cpu_s(devtools), len(arrived)
            await page.evaluate("loadtest.count()")
            per_s = options.captions_per_s / len(_LANGUAGES)
            await meeting.speak(round(per_s * options.seconds), per_s, revised=True)
            frames, at_end = await page.evaluate("[loadtest.frames, loadtest.shifts]")
            used = {name: value - before[name] for name, value in (await _cpu_s(devtools)).items()}
            trace = await self._browser.stop_tracing()
            came, rows = len(arrived) - many, await page.evaluate(_ROWS)
            await page.evaluate(_READ_UP)
            await meeting.speak(round(per_s * _UP_S), per_s, revised=True)
            shifts = await page.evaluate("loadtest.shifts")
            for each in hearing:
                each.cancel()
        seconds = sum(frames) / 1000
        return {
            "longest_ms": longest_task_ms(trace),
            **{"p95_ms": nearest_rank(frames, 0.95), "idle_p95_ms": nearest_rank(idle, 0.95)},
            **{"most_ms": max(frames), "shift": layout_shift(shifts), "shift_at_end": layout_shift(at_end)},
            **{name: value / seconds for name, value in used.items()},
            **{"messages_per_s": came / seconds, "rows": rows},
        }

    async def _context(self, device: Mapping[str, Any]) -> BrowserContext:
        """A browser that was never here."""
        context = await self._browser.new_context(locale="en-US", **device)
        await context.add_init_script(_WATCH)
        return context


async def _tab(context: BrowserContext) -> tuple[Page, CDPSession]:
    page = await context.new_page()
    devtools = await context.new_cdp_session(page)
    await devtools.send("Network.enable")
    return page, devtools


async def _cpu_s(devtools: CDPSession) -> dict[str, float]:
    answer = await devtools.send("Performance.getMetrics")
    told = {each["name"]: float(each["value"]) for each in answer["metrics"]}
    layout = told["LayoutDuration"] + told["RecalcStyleDuration"]
    return {"cpu": told["TaskDuration"], "script": told["ScriptDuration"], "layout": layout}


class _Meeting:
    """One speaker for each language, in turns."""

    def __init__(self, people: Sequence[ClientSession]) -> None:
        drawn = [Words(lang, lang) for lang in _LANGUAGES]
        self._turns = zip(count(1), cycle(zip(people, drawn, strict=True)), strict=False)

    async def speak(self, utterances: int, per_s: float, *, revised: bool) -> None:
        """On schedule, whether the page keeps up or not. revised: each shown while it grows."""
        clock = asyncio.get_running_loop().time
        began_s = clock()
        async with asyncio.TaskGroup() as speaking:
            for turn, (utterance, (person, words)) in enumerate(islice(self._turns, utterances)):
                await asyncio.sleep(began_s + turn / per_s - clock())
                text = words.draw(_WORDS)
                speaking.create_task(_utter(person, str(utterance), text, _REVISIONS if revised else 0))


async def _utter(person: ClientSession, id: str, text: str, revisions: int) -> None:
    for revision in range(1, revisions + 1):
        await person.partial(text[: len(text) * revision // (revisions + 1)], id)
        await asyncio.sleep(_REVISION_S)
    await person.final(text, id)


async def _hear(session: ClientSession) -> None:
    async for _ in session:
        pass


# ---------------------------------------------------------------- both


def results(rounds: Sequence[Mapping[str, Mapping[str, float]]], revision: str, browser: str) -> Results:
    """rounds: what was measured, by page. revision: of the page `before`."""
    findings, rows = [], []
    for key, (name, most, share) in _MEASURED.items():
        both = [(each[BEFORE][key], each[NOW][key]) for each in rounds if key in each[NOW]]
        if not both:
            continue
        now = spread([now for _, now in both])
        ratios = spread([now / before for before, now in both if before] or [0.0])
        cells = [f"{number(each.median)} ({number(each.low)}–{number(each.high)})" for each in (now, ratios)]
        was = spread([before for before, _ in both])
        rows.append([name, f"{number(was.median)} ({number(was.low)}–{number(was.high)})", *cells])
        if most is not None:
            findings.append(Finding(name, cells[0], f"<= {most:g}", now.median <= most))
        if share is not None:
            findings.append(Finding(f"{name}, now ÷ before", cells[1], f"<= {share:g}", ratios.median <= share))
    caption = (
        f"Before: revision {revision}. Medians of {len(rounds)} rounds, in each of which both pages had a turn, "
        "with the lowest and the highest; the last column is of both in one round. Cores: CPU time of the page's "
        f"own thread in a second. {browser}."
    )
    table = Table("", ("", "before", "now", "now ÷ before"), rows, caption)
    return Results(model="simulated", findings=findings, parts=[table], details={"rounds": list(rounds)})


async def _run(options: argparse.Namespace, say: Say) -> Results:
    try:
        # A tool of developers: the other load tests do without.
        from playwright.async_api import async_playwright
    except ImportError:
        raise LoadtestError("Playwright is not installed; `make install-dev` does that.") from None
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    git = ["git", "-C", str(options.before), "rev-parse", "--short", "HEAD"]
    told = subprocess.run(git, capture_output=True, text=True, check=False)  # noqa: ASYNC221 -- before anything runs
    if told.returncode or chromium is None:
        raise LoadtestError(
            f"{options.before} is no checkout." if told.returncode else "There is no Chromium here."
        )
    rounds: list[dict[str, dict[str, float]]] = []
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="loadtest-page-")))
        checkouts = {BEFORE: options.before.resolve(), NOW: Path(__file__).parents[1]}
        urls = {
            name: (await stack.enter_async_context(serving(_gateway(checkout, folder / name), name, say))).url
            for name, checkout in checkouts.items()
        }
        playwright = await stack.enter_async_context(async_playwright())
        browser = await playwright.chromium.launch(executable_path=chromium, args=_ARGS)
        stack.push_async_callback(browser.close)
        pages, version = _Pages(browser, options), f"Chromium {browser.version}"
        for turn in range(options.rounds):
            rounds.append({BEFORE: {}, NOW: {}})
            for part in (pages.opening, pages.captions) if options.seconds else (pages.opening,):
                for name, url in urls.items():
                    say(f"round {turn + 1} of {options.rounds}, {part.__name__}: {name}")
                    rounds[-1][name].update(await part(url))
    return results(rounds, told.stdout.strip(), version)


def _gateway(checkout: Path, log: Path) -> Server:
    """That of a checkout, whose page it serves."""
    script = {"MAX_RUNNING": "1000", "TOKEN_S": "0.02"}
    environment = {f"GATEWAY__ENGINE__SCRIPT__{name}": value for name, value in script.items()}
    port = free_port()
    serve = ("serve", "--engine", "simulated", "--host", "127.0.0.1", "--port", str(port))
    return Server(
        "The gateway",
        # Without the folder that this runs in on its path.
        [sys.executable, "-P", "-m", "gateway", *serve],
        port,
        log.with_suffix(".log"),
        environment={**os.environ, **environment, "PYTHONPATH": str(checkout)},
    )


def _add(parser: argparse.ArgumentParser) -> None:
    add_options(parser, "--out")
    parser.add_argument(
        "--before", type=Path, required=True, metavar="FOLDER", help="a checkout with another page"
    )
    for name, default, what in (
        ("--rounds", 5, "rounds, in each of which both pages have their turn"),
        ("--seconds", 60, "how long people speak; 0: only how the page opens"),
        ("--rows", 1_000, "rows of the transcript before they do"),
        ("--captions-per-s", 20, "final texts a second, in all languages"),
    ):
        lowest = 0 if name == "--seconds" else 1
        parser.add_argument(name, type=between(lowest, 10_000), default=default, metavar="N", help=what)


PAGE = Command(
    name="page",
    help="the page beside that of another checkout: how it opens on a slow phone, and a busy transcript",
    description="Two gateways with simulated engines, one of them another checkout's (git worktree add --detach), "
    "and one Chromium that opens the page of each in turn. Exit status 1 unless every bar was cleared.",
    add=_add,
    run=_run,
)
