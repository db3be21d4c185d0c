"""The page on a phone on its side: for reading, with controls that are away and always at hand."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.browser.pages import PHONE, cell, join, overflow_px
from tests.browser.test_captions import meeting, speaker
from tests.conftest import OpenPage
from tests.processes import GatewayProcess

__all__ = ["meeting"]
pytestmark = pytest.mark.browser

ON_ITS_SIDE = PHONE | {"viewport": {"width": 844, "height": 390}}
SAID = (
    "Good morning, all.",
    "The north windows should be larger.",
    "The wall carries the roof.",
    "And the stairs?",
)

# Marks all translations as a stretch, and says in px where its line is in each row.
UNSURE_LINES = """(texts) => {
    texts.forEach((text, row) => (text.parentElement.dataset.unsure = row ? "continues" : "begins"));
    return texts.map((text) => {
        let around = text.parentElement;
        const style = getComputedStyle(around, "::before");
        const holds = ({ position, contentVisibility }) => position !== "static" || contentVisibility === "auto";
        while (!holds(getComputedStyle(around))) around = around.parentElement;
        const box = around.getBoundingClientRect();
        const [top, bottom, left] = ["top", "bottom", "left"].map((side) => parseFloat(style[side]));
        const words = text.getBoundingClientRect().left;
        return { top: box.top + top, bottom: box.bottom - bottom, left: box.left + left, text: words };
    });
}"""


async def bar_top(page: Page) -> float:
    """Where the bar with the controls begins, in px; below zero if it is away."""
    top: float = await page.locator(".bar").evaluate("(bar) => bar.getBoundingClientRect().bottom")
    return top


async def test_a_phone_on_its_side_shows_four_captions_and_no_bars(
    gateway: GatewayProcess, open_page: OpenPage, meeting: str, artifacts: Path
) -> None:
    async with (
        open_page(f"{gateway.url}/?meeting={meeting}", **ON_ITS_SIDE) as watch,
        speaker(gateway, meeting) as ana,
        speaker(gateway, meeting, "Bo") as bo,
    ):
        page = watch.page
        await join(page, reads="de", speaks=False)
        for number, text in enumerate(SAID):
            await (ana, bo)[number % 2].say(str(number), text)
            await expect(cell(page, "de").last).to_have_text(f"[de] {text}")
        whole = """(rows) => rows.map((row) => row.getBoundingClientRect())
            .filter(({ top, bottom }) => top >= 0 && bottom <= innerHeight).length"""
        assert await page.get_by_test_id("utterance").evaluate_all(whole) == len(SAID)
        assert await overflow_px(page) == 0
        # Names stand beside the words.
        name = await page.locator(".voice-name").last.bounding_box()
        words = await cell(page, "de").last.bounding_box()
        assert name
        assert words
        assert name["x"] + name["width"] <= words["x"]
        assert await bar_top(page) <= 0
        await page.screenshot(path=artifacts / "landscape.png")

        # A touch shows the controls, another one hides them.
        await cell(page, "de").last.tap()
        await expect(page.get_by_test_id("options")).to_be_in_viewport(ratio=1)
        await expect(page.get_by_test_id("speak-too")).to_be_in_viewport(ratio=1)
        # The text does not shine through them.
        for controls in (".bar", ".speaking"):
            await expect(page.locator(controls)).not_to_have_css("background-color", "rgba(0, 0, 0, 0)")
        await page.screenshot(path=artifacts / "landscape-controls.png")
        await cell(page, "de").last.tap()
        await expect(page.get_by_test_id("options")).not_to_be_in_viewport()
        # What has the focus is on the screen, and a screen reader has all of it at any time.
        await page.get_by_test_id("options").focus()
        await expect(page.get_by_test_id("options")).to_be_in_viewport(ratio=1)
        await expect(page.get_by_role("button", name="Options")).to_have_count(1)
        await page.get_by_test_id("speak-too").focus()
        await expect(page.get_by_test_id("speak-too")).to_be_in_viewport(ratio=1)
        await expect(page.get_by_test_id("options")).not_to_be_in_viewport()

        # The line along unsure translations stays beside the words, in one piece.
        lines = await cell(page, "de").evaluate_all(UNSURE_LINES)
        assert all(0 <= line["text"] - line["left"] <= 16 for line in lines), lines
        assert all(below["top"] - above["bottom"] <= 1 for above, below in pairwise(lines)), lines

        await page.set_viewport_size({"width": 390, "height": 844})
        await expect(page.get_by_test_id("options")).to_be_in_viewport(ratio=1)
