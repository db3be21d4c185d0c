"""The page in its users' languages, and from right to left."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.axe import scan
from tests.browser.pages import DESKTOP, PHONE, SENTENCE, join, new_meeting, overflow_px, row, say, show
from tests.conftest import OpenPage
from tests.processes import GatewayProcess
from tests.test_page_words import LANGUAGES, messages

pytestmark = pytest.mark.browser


async def ready(page: Page, lang: str) -> None:
    """Connected, in words of this language."""
    await expect(page.get_by_test_id("status")).to_have_text(messages(lang)["status.connected"]["other"])
    await expect(page.locator("html")).to_have_attribute("lang", lang)


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("lang", LANGUAGES)
async def test_the_page_speaks_the_browsers_language(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path, lang: str, size: dict[str, Any]
) -> None:
    words = {key: forms["other"] for key, forms in messages(lang).items()}
    async with open_page(gateway.url, locale=f"{lang}-XX", **size) as watch:
        page = watch.page
        await ready(page, lang)
        await expect(page.get_by_role("heading", level=2)).to_have_text(words["empty.title"])
        assert await overflow_px(page) == 0
        # Nothing in the header lies over anything else.
        boxes = [await each.bounding_box() for each in await page.locator(".bar > img, .actions > *").all()]
        seen = [box for box in boxes if box is not None]
        assert all(a["x"] + a["width"] <= b["x"] for a, b in pairwise(seen))
        name = "phone" if size is PHONE else "desktop"
        await page.screenshot(path=artifacts / f"page-{lang}-{name}.png")
        for tab in ("people", "engine", "reading"):
            await show(page, tab)
            assert not (await scan(page)).serious
        assert await overflow_px(page) == 0
        await page.screenshot(path=artifacts / f"page-{lang}-{name}-reading.png")


async def test_another_language_is_chosen_in_the_page_and_stays(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with open_page(gateway.url, **DESKTOP) as watch:
        page = watch.page
        await ready(page, "en")
        pane = await show(page, "reading")
        await pane.get_by_label("Language of this page").select_option("ja")
        await ready(page, "ja")
        await page.goto(gateway.url)
        await ready(page, "ja")
        # Languages have their names in it, too.
        pane = await show(page, "reading")
        await expect(pane.get_by_label("ドイツ語")).to_have_count(1)
        await pane.get_by_test_id("page-language").select_option(label="English")
        await ready(page, "en")


async def test_a_browser_in_another_language_gets_english(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url, locale="nl-NL") as watch:
        await ready(watch.page, "en")


async def test_a_file_of_words_that_does_not_come_leaves_english(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with open_page(f"{gateway.url}/favicon.svg", locale="de-DE") as watch:
        watch.allow("favicon.ico")
        watch.allow("ERR_FAILED")
        await watch.page.route("**/words/de.js", lambda route: route.abort())
        await watch.page.goto(gateway.url)
        await ready(watch.page, "en")


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
async def test_the_page_from_right_to_left(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path, size: dict[str, Any]
) -> None:
    """None of the languages is written so yet: the layout is turned round as such a one would turn it."""
    async with open_page(f"{gateway.url}/?meeting={new_meeting()}", **size) as watch:
        page = watch.page
        await join(page, "Ana")
        await page.evaluate("document.documentElement.dir = 'rtl'")
        await expect(await say(page, SENTENCE)).to_be_visible()
        send, chosen = page.get_by_test_id("send"), page.get_by_test_id("spoken-lang")
        left, right = await send.bounding_box(), await chosen.bounding_box()
        assert left is not None
        assert right is not None
        assert left["x"] + left["width"] <= right["x"]
        # What was said keeps the direction of its language.
        original = row(page, SENTENCE).get_by_text(SENTENCE, exact=True).first
        assert await original.evaluate("(part) => getComputedStyle(part).direction") == "ltr"
        assert await overflow_px(page) == 0
        name = "phone" if size is PHONE else "desktop"
        await page.screenshot(path=artifacts / f"page-rtl-{name}.png")
        await show(page, "people")
        assert not (await scan(page)).serious
        assert await overflow_px(page) == 0
        await page.screenshot(path=artifacts / f"page-rtl-{name}-people.png")
