"""The page keeps its budget of work while 20 captions a second arrive.

No bound here is in milliseconds, since others may be using the machine: updates are counted in frames, and work in
rows that the same browser draws. The budget of bytes is in `tests/server/test_page.py`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from playwright.async_api import expect

from gateway.client import ClientSession, connect
from tests.browser.pages import DESKTOP, LANGUAGES, connected, meeting_of, read, received, row
from tests.conftest import OpenPage, Watch
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser

TEXT = "We move the launch to next Friday, when everybody is back"
CAPTIONS_PER_S = 20
# A final text in each language, the original included, is a caption.
UTTERANCE_EVERY_S = len(LANGUAGES) / CAPTIONS_PER_S
REVISION_EVERY_S = 0.25
UTTERANCES = 24

# How much CPU a caption may cost, with its share of what was shown before and of the frames between: that of so
# many rows, each laid out by itself. 20 to 25 were seen.
MOST_ROWS = 60

# Counts frames, and how often the transcript changed.
COUNT = """() => {
    const counted = { frames: 0, changes: 0, going: true };
    window.counted = counted;
    requestAnimationFrame(function frame() {
        counted.frames += 1;
        if (counted.going) requestAnimationFrame(frame);
    });
    const changed = () => { counted.changes += 1; };
    const main = document.querySelector('[data-testid="utterance"]').parentElement;
    new MutationObserver(changed).observe(main, { subtree: true, childList: true, characterData: true });
}"""

# Draws rows with a cell for each language, each row laid out before the next.
DRAW = """([rows, cells, text]) => {
    const list = document.createElement("div");
    document.body.append(list);
    for (let number = 0; number < rows; number += 1) {
        const row = document.createElement("div");
        row.style.display = "grid";
        row.style.gridTemplateColumns = `repeat(${cells}, 1fr)`;
        for (let cell = 0; cell < cells; cell += 1) {
            row.append(Object.assign(document.createElement("p"), { textContent: `${number} ${text}` }));
        }
        list.append(row);
        list.getBoundingClientRect();
    }
    list.remove();
}"""
ROWS = 200


async def speak(session: ClientSession) -> None:
    """So many captions a second, each shown while it grows."""
    words = TEXT.split()

    async def utter(number: int) -> None:
        for count in range(2, len(words), 2):
            await session.partial(f"{number}: {' '.join(words[:count])}", str(number))
            await asyncio.sleep(REVISION_EVERY_S)
        await session.final(f"{number}: {TEXT}.", str(number))

    async with asyncio.TaskGroup() as speaking:
        for number in range(UTTERANCES):
            speaking.create_task(utter(number))
            await asyncio.sleep(UTTERANCE_EVERY_S)


async def hear(session: ClientSession) -> None:
    async for _ in session:
        pass


async def cpu_s(devtools: Any) -> float:
    """CPU time of the page's main thread so far; what others used meanwhile is not in it."""
    answer = await devtools.send("Performance.getMetrics")
    return float({each["name"]: each["value"] for each in answer["metrics"]}["TaskDuration"])


async def row_s(watch: Watch, devtools: Any) -> float:
    """What one row costs here."""
    before_s = await cpu_s(devtools)
    await watch.page.evaluate(DRAW, [ROWS, len(LANGUAGES), TEXT])
    return (await cpu_s(devtools) - before_s) / ROWS


async def test_captions_are_drawn_once_a_frame_cheaply(gateway: GatewayProcess, open_page: OpenPage) -> None:
    """Drawing costs about as much as the few rows that changed."""
    async with open_page(gateway.url, **DESKTOP) as watch:
        page = watch.page
        await connected(page)
        await read(page, *LANGUAGES)
        devtools = await page.context.new_cdp_session(page)
        await devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        async with (
            connect(gateway.url, meeting=meeting_of(page), name="Ana", reads=[], speaks="en") as speaker,
            asyncio.TaskGroup() as tasks,
        ):
            hearing = tasks.create_task(hear(speaker))
            await speaker.final("Let's begin.")
            await expect(row(page, "[zh] Let's begin.")).to_be_visible()
            await page.evaluate(COUNT)
            one_row_s = await row_s(watch, devtools)
            before, before_s = len(watch.received), await cpu_s(devtools)
            await speak(speaker)
            await expect(row(page, f"[zh] {UTTERANCES - 1}: {TEXT}.")).to_be_visible()
            counted = await page.evaluate("(counted.going = false, counted)")
            used_s = await cpu_s(devtools) - before_s
            hearing.cancel()
        arrived = len(watch.received) - before
        finals = len(received(watch, "translation.final"))
    assert finals >= UTTERANCES * (len(LANGUAGES) - 1)
    # Much more than a page would have to draw that draws what arrived between two frames together.
    assert arrived > 10 * UTTERANCES
    assert counted["changes"] <= counted["frames"] + 1
    assert used_s / (UTTERANCES * len(LANGUAGES)) <= MOST_ROWS * one_row_s
