"""The page as a listener meets it, on each size of screen, in languages with long words and without spaces."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from gateway.client import connect
from tests.browser.axe import scan
from tests.browser.pages import cell, connected, new_meeting, original, overflow_px, read
from tests.browser.test_earlier import hold_a_meeting
from tests.conftest import OpenPage
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser

SIZES = [(390, 844), (844, 390), (680, 900), (1360, 860)]
SENTENCE = "Die Donaudampfschifffahrtsgesellschaft hat heute Vormittag über den Starttermin entschieden."


@pytest.mark.parametrize("lang", ["ja", "de"])
@pytest.mark.parametrize(("width", "height"), SIZES)
async def test_a_listener_reads_the_language_of_their_browser(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path, width: int, height: int, lang: str
) -> None:
    meeting = new_meeting()
    await hold_a_meeting(gateway.url, meeting, lang, utterances=40)
    screen = {"viewport": {"width": width, "height": height}, "has_touch": width < 1000, "locale": lang}
    async with open_page(f"{gateway.url}/?meeting={meeting}", **screen) as watch:
        page = watch.page
        dialog = page.get_by_role("dialog")
        await expect(dialog.get_by_test_id("join-lang")).to_have_value(lang)
        found = await scan(page)
        assert (found.serious, found.moderate) == ([], [])
        await dialog.locator("button").click()
        await connected(page)
        rows = page.get_by_test_id("utterance")
        await expect(rows).to_have_count(30)
        async with connect(gateway.url, meeting=meeting, name="Bo", reads=[], speaks="de") as bo:
            await bo.final(SENTENCE)
            last = rows.last
            await expect(last).to_have_attribute("data-state", "settled")
            # Who reads what is spoken sees it once, and as wide as there is room.
            words = original(last)
            await expect(words).to_have_count(1)
            await expect(last.locator(".cell")).to_have_count(1 if lang == "de" else 2)
            box, room = await cell(last, lang).bounding_box(), await last.bounding_box()
            assert box is not None
            assert room is not None
            assert box["width"] >= min(room["width"], 704) - 1
        assert await overflow_px(page) == 0
        await page.get_by_test_id("transcript").evaluate("(region) => { region.scrollTop = 0 }")
        await page.get_by_test_id("earlier").click()
        await expect(rows).to_have_count(41)
        found = await scan(page)
        assert (found.serious, found.moderate) == ([], [])
        assert await overflow_px(page) == 0
        await page.screenshot(path=artifacts / f"listener-{lang}-{width}.png")

        # Several languages: side by side where there is room, and one at a time on a phone.
        await read(page, "ja", "de", "en")
        if await page.get_by_test_id("close-panel").is_visible() and width < 1024:
            await page.get_by_test_id("close-panel").click()
        await expect(page.get_by_test_id("language-switch")).to_be_visible(visible=width < 500)
        found = await scan(page)
        assert (found.serious, found.moderate) == ([], [])
        assert await overflow_px(page) == 0
        await page.screenshot(path=artifacts / f"listener-several-{lang}-{width}.png")
