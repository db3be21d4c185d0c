"""The page as a listener meets it, on each size of screen.

In languages with long words, without spaces, and from right to left.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from gateway.client import connect
from tests.browser.axe import scan
from tests.browser.pages import PHONE, cell, connected, new_meeting, original, overflow_px, show
from tests.browser.test_earlier import hold_a_meeting
from tests.conftest import OpenPage
from tests.processes import GatewayProcess, gateway_process

pytestmark = pytest.mark.browser

SCRIPT = """
[engine]
kind = "simulated"
[engine.script]
languages = ["en", "ja", "de", "ar"]
"""
SIZES = [(390, 844), (844, 390), (680, 900), (1360, 860)]
# Long words, Latin letters and figures.
SENTENCES = {
    "de": "Die Donaudampfschifffahrtsgesellschaft hat heute Vormittag über den Starttermin entschieden.",
    "ja": "来週の金曜日にGateway 2.0を公開することに決めました。",
    "ar": "قررنا إطلاق Gateway 2.0 يوم الجمعة (الساعة 10:30).",
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    file = tmp_path_factory.mktemp("gateway") / "gateway.toml"
    file.write_text(SCRIPT)
    with gateway_process("--config", str(file), "--log-level", "warning") as process:
        yield process.ready()


async def resize(page: Page, size: tuple[int, int]) -> None:
    """This size, once everything has its place on it."""
    await page.set_viewport_size({"width": size[0], "height": size[1]})
    await page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


async def is_fine(page: Page, size: tuple[int, int]) -> None:
    """Nothing is too wide; on the narrowest screen and the widest one, nothing keeps anybody out either."""
    assert await overflow_px(page) == 0
    if size in (min(SIZES), max(SIZES)):
        found = await scan(page)
        assert (found.serious, found.moderate) == ([], [])


async def is_wide(text: Locator, place: Locator) -> bool:
    """As wide as there is room, or as is good to read."""
    box, room = await text.bounding_box(), await place.bounding_box()
    assert box is not None
    assert room is not None
    return box["width"] >= min(room["width"], 704) - 1


@pytest.mark.parametrize("lang", sorted(SENTENCES))
async def test_listener_reads_their_browsers_language_on_every_screen(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path, lang: str
) -> None:
    meeting = new_meeting()
    await hold_a_meeting(gateway.url, meeting, lang, utterances=40)
    async with (
        connect(gateway.url, meeting=meeting, name="Bo", reads=[], speaks=lang) as bo,
        # On a phone, where the panel is closed at first.
        open_page(f"{gateway.url}/?meeting={meeting}", **PHONE, locale=lang) as watch,
    ):
        page = watch.page
        dialog = page.get_by_role("dialog")
        await expect(dialog.get_by_test_id("join-lang")).to_have_value(lang)
        for size in SIZES:
            await resize(page, size)
            await is_fine(page, size)
            await expect(dialog.locator("button")).to_be_in_viewport(ratio=1)
            await page.screenshot(path=artifacts / f"join-{lang}-{size[0]}.png")
        await dialog.locator("button").click()
        await connected(page)
        rows = page.get_by_test_id("utterance")
        await expect(rows).to_have_count(30)

        # Who reads what is spoken sees it once.
        await bo.final(SENTENCES[lang])
        last = rows.last
        await expect(last).to_have_attribute("data-state", "settled")
        await expect(original(last)).to_have_text(SENTENCES[lang])
        await expect(last.locator(".cell")).to_have_count(1)
        await expect(original(last)).to_have_css("direction", "rtl" if lang == "ar" else "ltr")
        await expect(page.locator("html")).to_have_attribute("dir", "rtl" if lang == "ar" else "ltr")
        for size in SIZES:
            await resize(page, size)
            await expect(last).to_be_in_viewport()
            assert await is_wide(cell(last, lang), last.locator(".cells"))
            await is_fine(page, size)
            await page.screenshot(path=artifacts / f"listener-{lang}-{size[0]}.png")
        await page.get_by_test_id("transcript").evaluate("(region) => { region.scrollTop = 0 }")
        await page.get_by_test_id("earlier").click()
        await expect(rows).to_have_count(41)

        # Several languages: side by side where there is room, and one at a time on a phone.
        pane = await show(page, "reading")
        for tag in ("ja", "de", "en"):
            await pane.get_by_test_id(f"read-{tag}").check()
        for size in reversed(SIZES):
            await resize(page, size)
            if size[0] < 1024 and await pane.is_visible():
                await page.get_by_test_id("close-panel").click()
            await expect(page.get_by_test_id("language-switch")).to_be_visible(visible=size[0] < 500)
            await is_fine(page, size)
            await page.screenshot(path=artifacts / f"listener-several-{lang}-{size[0]}.png")
