"""How the page looks to one who comes: its faces, the cover before a meeting, and the first rows on a phone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from gateway.client import connect
from tests.browser.pages import PHONE, connected, join, new_meeting, original, overflow_px, row
from tests.conftest import OpenPage
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser

# The sum of all layout shifts that nobody asked for.
WATCH_SHIFTS = """() => {
    window.shifted = 0;
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) shifted += entry.value;
    }).observe({ type: "layout-shift" });
}"""
MOST_SHIFT = 0.02


async def faces(page: Page) -> list[str]:
    """Those that are there."""
    script = "[...document.fonts].filter((face) => face.status === 'loaded').map((face) => face.family)"
    loaded: list[str] = await page.evaluate(script)
    return sorted({family.strip('"') for family in loaded})


async def test_nothing_waits_for_the_face_and_nothing_moves_when_it_comes(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with open_page(f"{gateway.url}/healthz", **PHONE) as watch:
        watch.allow("favicon.ico")
        page, come = watch.page, asyncio.Event()

        async def late(route: Route) -> None:
            await come.wait()
            await route.continue_()

        await page.route("**/*.woff2", late)
        meeting = new_meeting()
        # The load event waits for the face; nothing else does.
        await page.goto(f"{gateway.url}/?meeting={meeting}", wait_until="domcontentloaded")
        await join(page, "Bo", reads="de", speaks=False)
        async with connect(gateway.url, meeting=meeting, name="Ana", reads=[], speaks="en") as ana:
            await ana.final("The launch moves to Friday, as everybody has asked for.")
            await expect(row(page, "[de] The launch")).to_have_attribute("data-state", "settled")
            assert "Commissioner" not in await faces(page)
            await page.evaluate(WATCH_SHIFTS)
            come.set()
            await page.evaluate("document.fonts.ready.then(() => true)")
            assert "Commissioner" in await faces(page)
            # Once it is painted.
            await page.evaluate(
                "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
            )
            assert await page.evaluate("shifted") <= MOST_SHIFT


@pytest.mark.parametrize(("locale", "comes"), [("en", False), ("ar", True)])
async def test_arabic_has_its_face_where_it_is_read(
    gateway: GatewayProcess, open_page: OpenPage, locale: str, comes: bool
) -> None:
    async with open_page(gateway.url, **PHONE, locale=locale) as watch:
        await connected(watch.page)
        await watch.page.evaluate("document.fonts.ready.then(() => true)")
        assert ("Vazirmatn" in await faces(watch.page)) == comes
        assert "Commissioner" in await faces(watch.page)


async def test_cover_names_the_languages_and_underlines_the_readers(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    meeting = new_meeting()
    async with open_page(f"{gateway.url}/?meeting={meeting}", **PHONE, locale="de") as watch:
        page, dialog = watch.page, watch.page.get_by_test_id("join")
        tongues = dialog.locator(".tongues")
        await expect(tongues.locator("b")).to_have_text(["Deutsch"])
        await expect(tongues).to_contain_text("日本語")
        await expect(tongues.get_by_text("日本語")).to_have_attribute("lang", "ja")
        await expect(dialog).to_contain_text(meeting)
        await dialog.get_by_test_id("join-lang").select_option("ja")
        await expect(tongues.locator("b")).to_have_text(["日本語"])
        # All of the screen, with the questions at the thumb.
        box: Any = await dialog.bounding_box()
        assert (box["width"], box["height"]) == (390, 844)
        await page.screenshot(path=artifacts / "page-cover.png")
        # A screen keyboard takes room from the cover, not from the button.
        await page.set_viewport_size({"width": 390, "height": 420})
        await expect(dialog.locator("button")).to_be_in_viewport(ratio=1)
        assert await overflow_px(page) == 0


async def test_sample_meeting_shows_on_a_phone_that_it_is_translated(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    async with open_page(gateway.url, **PHONE) as watch:
        page = watch.page
        await connected(page)
        await page.get_by_test_id("empty-play").click()
        hola = row(page, "[en] Hola a todos.")
        await expect(hola).to_be_visible()
        # What was said stands small above what is read.
        await expect(original(hola)).to_have_text("Hola a todos.")
        sizes = await hola.locator(".cell-text").evaluate_all(
            "(texts) => texts.map((text) => parseFloat(getComputedStyle(text).fontSize))"
        )
        assert len(sizes) == 2
        assert sizes[0] < sizes[1]
        await page.screenshot(path=artifacts / "page-sample-phone.png")
