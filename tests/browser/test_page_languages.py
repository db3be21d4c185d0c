"""The page in its users' languages, and from right to left."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, ViewportSize, expect

from gateway.client import connect
from tests.browser.axe import scan
from tests.browser.pages import (
    DESKTOP,
    PHONE,
    SENTENCE,
    cell,
    new_meeting,
    original,
    overflow_px,
    read,
    row,
    say,
    show,
)
from tests.conftest import OpenPage
from tests.processes import GatewayProcess
from tests.test_page_words import LANGUAGES, messages

pytestmark = pytest.mark.browser

ON_ITS_SIDE: ViewportSize = {"width": 844, "height": 390}
# Long words, no spaces, from right to left; in other languages nothing else keeps people out.
SCANNED = ("de", "ja", "ar")


# All at one moment, once the page has answered to another size.
_SIDES = """async (parts) => {
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const boxes = parts.map((part) => part.getBoundingClientRect());
    return boxes.filter(({ width }) => width > 0).map(({ left, right }) => [left, right]);
}"""

# A line has a box for each direction of writing.
_LINES = """(parts) => parts.map((part) => {
    const text = document.createRange();
    text.selectNodeContents(part);
    let lines = 0, bottom = -Infinity;
    for (const box of [...text.getClientRects()].sort((a, b) => a.top - b.top)) {
        lines += box.top >= bottom - 2;
        bottom = Math.max(bottom, box.bottom);
    }
    return lines;
})"""


async def ready(page: Page, lang: str) -> None:
    """Connected, in words of this language."""
    await expect(page.get_by_test_id("status")).to_have_text(messages(lang)["status.connected"]["other"])
    await expect(page.locator("html")).to_have_attribute("lang", lang)


@pytest.mark.parametrize("lang", LANGUAGES)
async def test_the_page_speaks_the_browsers_language(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path, lang: str
) -> None:
    words = {key: forms["other"] for key, forms in messages(lang).items()}
    async with open_page(gateway.url, locale=f"{lang}-XX", **PHONE) as watch:
        page = watch.page
        await ready(page, lang)
        await expect(page.get_by_role("heading", level=2)).to_have_text(words["empty.title"])
        # A phone on its side has more room for a meeting than for what one could say in it.
        await page.set_viewport_size(ON_ITS_SIDE)
        assert await overflow_px(page) == 0
        assert await is_in_a_row(page)
        if await page.get_by_test_id("sentences").is_visible():
            box = await page.get_by_test_id("sentences").bounding_box()
            assert box is not None
            assert ON_ITS_SIDE["height"] - box["y"] < ON_ITS_SIDE["height"] / 8
        await page.screenshot(path=artifacts / f"page-{lang}-on-its-side.png")
        assert lang not in SCANNED or not (await scan(page)).serious
        for name, size in {"phone": PHONE, "desktop": DESKTOP}.items():
            await page.set_viewport_size(size["viewport"])
            assert await overflow_px(page) == 0
            # Whatever the state is, and however long its name.
            for state in (key for key in words if re.fullmatch(r"status\.(?!retry)\w+", key)):
                await page.get_by_test_id("status").evaluate(
                    "(status, words) => { status.textContent = words }", words[state]
                )
                assert await is_in_a_row(page), state
            await page.screenshot(path=artifacts / f"page-{lang}-{name}.png")
            for tab in ("people", "engine", "reading"):
                await show(page, tab)
                assert await page.locator(".strip > *").evaluate_all(_LINES) == [1, 1, 1]
                assert lang not in SCANNED or not (await scan(page)).serious
            assert await overflow_px(page) == 0
            await page.screenshot(path=artifacts / f"page-{lang}-{name}-reading.png")
            await page.get_by_test_id("close-panel").click()


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


async def test_missing_words_file_leaves_english(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(f"{gateway.url}/favicon.svg", locale="de-DE") as watch:
        watch.allow("favicon.ico")
        watch.allow("ERR_FAILED")
        await watch.page.route("**/words/de.js", lambda route: route.abort())
        await watch.page.goto(gateway.url)
        await ready(watch.page, "en")


async def test_the_page_from_right_to_left(gateway: GatewayProcess, open_page: OpenPage, artifacts: Path) -> None:
    words = {key: forms["other"] for key, forms in messages("ar").items()}
    async with open_page(f"{gateway.url}/?meeting={new_meeting()}", locale="ar", **PHONE) as watch:
        page = watch.page
        dialog = page.get_by_role("dialog", name=words["meeting.join"])
        await dialog.get_by_label(words["name.yours"]).fill("Ana")
        await dialog.get_by_label(words["join.speak"], exact=True).check()
        await dialog.get_by_role("button", name=words["join.action"]).click()
        await ready(page, "ar")
        await page.get_by_test_id("spoken-lang").select_option("en")
        await read(page, "de")
        await page.get_by_test_id("close-panel").click()
        await expect(await say(page, f"That will fail: {SENTENCE}")).to_have_attribute("data-state", "settled")
        send, chosen = page.get_by_test_id("send"), page.get_by_test_id("spoken-lang")
        note = page.locator(".cell-note")
        for name, size in {"phone": PHONE, "desktop": DESKTOP}.items():
            await page.set_viewport_size(size["viewport"])
            left, right = await send.bounding_box(), await chosen.bounding_box()
            assert left is not None
            assert right is not None
            assert left["x"] + left["width"] <= right["x"]
            # What was said keeps the direction of its language.
            original = row(page, SENTENCE).get_by_text(SENTENCE).first
            assert await original.evaluate("(part) => getComputedStyle(part).direction") == "ltr"
            # What the gateway says of it in English does, too, and stands where it would in Arabic.
            assert await note.evaluate("(part) => getComputedStyle(part).direction") == "ltr"
            assert await is_at_the_right(note)
            assert await overflow_px(page) == 0
            await page.screenshot(path=artifacts / f"page-rtl-{name}.png")
            await show(page, "people")
            assert not (await scan(page)).serious
            assert await overflow_px(page) == 0
            await page.screenshot(path=artifacts / f"page-rtl-{name}-people.png")
            await page.get_by_test_id("close-panel").click()
        # Latin names, and lists of them, change nothing around them.
        pane = await show(page, "people")
        badge = pane.locator(".badge", has_text=words["people.reader"].split(" ")[0])
        await expect(badge).to_have_text(words["people.reader"].format(languages="\u2068الألمانية\u2069"))


async def is_in_a_row(page: Page) -> bool:
    """Nothing in the header lies over anything else, whichever side it begins at."""
    seen: list[list[float]] = await page.locator(".bar > img, .actions > *, .status").evaluate_all(_SIDES)
    return all(end <= begin for (_, end), (begin, _) in pairwise(sorted(seen)))


async def test_title_of_another_script_begins_where_the_page_does(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    meeting = new_meeting()
    async with (
        connect(gateway.url, meeting=meeting, title="Weekly", reads=[]),
        open_page(f"{gateway.url}/?meeting={meeting}", locale="ar", **PHONE) as watch,
    ):
        assert await is_at_the_right(watch.page.get_by_role("dialog").get_by_role("heading", name="Weekly"))


async def test_what_was_said_begins_where_its_translation_does(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    meeting = new_meeting()
    async with (
        connect(gateway.url, meeting=meeting, reads=[], speaks="de") as ana,
        open_page(f"{gateway.url}/?meeting={meeting}", locale="ar", **PHONE) as watch,
    ):
        await watch.page.get_by_role("dialog").locator("button").click()
        await ready(watch.page, "ar")
        await ana.final("Guten Tag.")
        said = row(watch.page, "Guten Tag.")
        await expect(cell(said, "en")).to_have_text("[en] Guten Tag.")
        lefts = [await part.bounding_box() for part in (original(said), cell(said, "en"))]
        assert len({box["x"] for box in lefts if box}) == 1, lefts


async def test_times_of_day_are_in_the_language_of_the_page(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url, locale="en-US", **DESKTOP) as watch:
        page = watch.page
        said = await say(page, SENTENCE)
        await expect(said.locator("time")).to_have_text(re.compile(r"^\d?\d:\d\d\s[AP]M$"))
        await page.get_by_label("Language of this page").select_option("de")
        await expect(row(page, SENTENCE).locator("time")).to_have_text(re.compile(r"^\d\d:\d\d$"))


async def is_at_the_right(part: Locator) -> bool:
    """Whether its first line of text ends at the right of it."""
    return bool(
        await part.evaluate(
            """(part) => {
                const range = document.createRange();
                range.selectNodeContents(part);
                return Math.abs(range.getBoundingClientRect().right - part.getBoundingClientRect().right) < 1;
            }"""
        )
    )


async def test_changing_language_on_a_phone_stays_in_panel(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url, **PHONE) as watch:
        page = watch.page
        await ready(page, "en")
        pane = await show(page, "reading")
        await pane.get_by_test_id("page-language").select_option("ar")
        await ready(page, "ar")
        await expect(pane.get_by_test_id("page-language")).to_be_visible()
        # The bundled model does not translate into every language that the page speaks.
        await expect(pane.get_by_test_id("read-sources")).to_contain_text("العربية")
        await page.reload()
        await ready(page, "ar")
        await expect(pane).to_be_hidden()
