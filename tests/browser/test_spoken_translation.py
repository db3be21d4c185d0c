"""Translations read aloud. The browser's voices are stubbed at its edge: tested is what they are given to say."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from gateway.client import ClientSession, connect
from tests.browser.axe import scan
from tests.browser.pages import PHONE, connected, join, meeting_of, new_meeting, settled, show
from tests.conftest import OpenPage
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser

# Voices that say nothing, and end when told to. How long a translation has waited goes by `window.now`, in ms.
_VOICES = """(langs) => {
    performance.now = () => window.now ?? 0;
    window.spoken = [];
    window.SpeechSynthesisUtterance = class extends EventTarget {
        constructor(text) { super(); Object.assign(this, { text, lang: "", voice: null }); }
    };
    const synthesis = {
        speaking: false, pending: false, cancelled: 0,
        getVoices: () => langs.map((lang) => ({ lang, localService: !lang.endsWith("-net") })),
        speak(utterance) {
            spoken.push(Object.assign(utterance, { within: event?.isTrusted ? event.type : "" }));
            this.speaking = utterance.text !== "";
        },
        cancel() {
            this.cancelled += 1;
            this.speaking = false;
        },
    };
    window.ended = () => {
        synthesis.speaking = false;
        spoken.at(-1).dispatchEvent(new Event("end"));
    };
    Object.defineProperty(window, "speechSynthesis", { value: synthesis });
}"""


async def with_voices(page: Page, *langs: str) -> None:
    await page.add_init_script(f"({_VOICES})({list(langs)})")
    await page.reload()


async def spoken(page: Page) -> list[list[Any]]:
    """Text, language and voice of each, as they were given to the browser."""
    said: list[list[Any]] = await page.evaluate("spoken.map(({ text, lang, voice }) => [text, lang, voice?.lang])")
    return said


async def test_whole_translations_are_read_one_after_another_until_stopped(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    meeting = new_meeting()
    async with connect(gateway.url, meeting=meeting, name="Ana", reads=[], speaks="en") as ana:
        await ana.final("Before anybody listened.", "0")
        async with open_page(f"{gateway.url}/?meeting={meeting}", **PHONE) as watch:
            page = watch.page
            await with_voices(page, "en-US", "de-AT-net", "de-DE")
            await join(page, "Bo", reads="de", speaks=True)
            rows = page.get_by_test_id("utterance")
            await settled(rows.first)
            pane = await show(page, "reading")
            choice = pane.get_by_label("Read translations aloud")
            await expect(choice).to_have_value("")
            await ana.final("Nobody asked.", "1")
            await settled(rows.nth(1))
            assert await spoken(page) == []

            # Nothing, within the tap that opens the choice: iPhones want that before they speak later.
            await choice.click()
            nothing = await page.evaluate("spoken.splice(0).map(({ text, within }) => [text, within])")
            assert nothing == [["", "click"]]
            await choice.select_option("de")
            await page.get_by_test_id("close-panel").click()
            notice = page.get_by_text("Reading aloud: German")
            await expect(notice).to_be_visible()
            await ana.partial("One is not", "2")
            await ana.partial("One is not yet", "2")
            assert await spoken(page) == []
            await ana.final("One.", "2")
            await ana.final("Two.", "3")
            for row in (2, 3):
                await settled(rows.nth(row))
            # One's own words one knows.
            await page.get_by_test_id("text").fill("Mine.")
            await page.get_by_test_id("send").click()
            await settled(rows.nth(4))
            # On this device, whose voice tells nobody else what is said.
            assert await spoken(page) == [["[de] One.", "de", "de-DE"]]
            await page.evaluate("ended()")
            assert [text for text, *_ in await spoken(page)] == ["[de] One.", "[de] Two."]
            await page.evaluate("ended()")
            assert len(await spoken(page)) == 2
            await page.screenshot(path=artifacts / "spoken-translation.png")
            found = await scan(page)
            assert (found.serious, found.moderate) == ([], [])

            await ana.final("Three.", "4")
            await settled(rows.nth(5))
            assert await page.evaluate("speechSynthesis.speaking") is True
            stop = page.get_by_test_id("stop-reading-aloud")
            await stop.click()
            assert await page.evaluate("speechSynthesis.speaking") is False
            await expect(notice).to_be_hidden()
            await page.evaluate("ended()")
            await ana.final("Four.", "5")
            await settled(rows.nth(6))
            assert len(await spoken(page)) == 3
            await show(page, "reading")
            await expect(choice).to_have_value("")


@asynccontextmanager
async def reading_aloud(gateway: GatewayProcess, open_page: OpenPage) -> AsyncIterator[tuple[Page, ClientSession]]:
    """A page that reads aloud how Ana is translated."""
    async with open_page(gateway.url) as watch:
        page = watch.page
        await with_voices(page, "ja-JP")
        await connected(page)
        pane = await show(page, "reading")
        await pane.get_by_label("Read translations aloud").select_option("ja")
        async with connect(gateway.url, meeting=meeting_of(page), reads=[], speaks="en") as ana:
            yield page, ana


async def test_what_comes_too_late_is_skipped(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with reading_aloud(gateway, open_page) as (page, ana):
        rows = page.get_by_test_id("utterance")
        for number, (text, now_ms) in enumerate([("One.", 0), ("Two.", 1_000), ("Three.", 9_000)]):
            await page.evaluate(f"window.now = {now_ms}")
            await ana.final(text, str(number))
            await settled(rows.nth(number))
        # The first took its time.
        await page.evaluate("window.now = 17_000")
        await page.evaluate("ended()")
        assert [text for text, *_ in await spoken(page)] == ["[ja] One.", "[ja] Three."]
        # A browser that forgets to say that it ended does not end the reading.
        await page.evaluate("speechSynthesis.speaking = false")
        await ana.final("Four.", "4")
        await settled(rows.nth(3))
        assert [text for text, *_ in await spoken(page)][-1] == "[ja] Four."


async def test_translations_are_read_in_the_order_spoken(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with reading_aloud(gateway, open_page) as (page, ana):
        rows = page.get_by_test_id("utterance")
        for number, text in enumerate(["This one is going to stall.", "Two.", "Three."]):
            await ana.final(text, str(number))
            await expect(rows).to_have_count(number + 1)
        await settled(rows.nth(1))
        await settled(rows.nth(2))
        assert await spoken(page) == []
        await ana.cancel("0")
        # A function, as the page's policy lets no string be looked at a second time.
        await page.wait_for_function("() => spoken.length > 0")
        await page.evaluate("ended()")
        assert [text for text, *_ in await spoken(page)] == ["[ja] Two.", "[ja] Three."]
        await page.evaluate("ended()")

        # Also for what has not even begun; for three seconds, and no longer.
        await ana.final("This one will never begin.", "3")
        await ana.final("Five.", "4")
        await settled(rows.nth(4))
        assert len(await spoken(page)) == 2
        await page.evaluate("window.now = 3_000")
        await ana.final("Six.", "5")
        await settled(rows.nth(5))
        assert [text for text, *_ in await spoken(page)][2:] == ["[ja] Five."]


async def test_without_any_voice_nothing_is_offered(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        await with_voices(watch.page)
        await connected(watch.page)
        pane = await show(watch.page, "reading")
        await expect(pane.get_by_label("Read translations aloud")).to_be_hidden()


async def test_a_language_without_a_voice_is_not_offered(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await with_voices(page, "en-US")
        await connected(page)
        pane = await show(page, "reading")
        choice = pane.get_by_label("Read translations aloud")
        await pane.get_by_test_id("read-en").check()
        await pane.get_by_test_id("read-ja").check()
        await expect(choice.locator("option")).to_have_text(["Off", "English"])
        await choice.select_option("en")
        await expect(page.get_by_text("Reading aloud: English")).to_be_visible()
        # What is not read any more is not read aloud.
        await pane.get_by_test_id("read-en").uncheck()
        await expect(page.get_by_text("Reading aloud: English")).to_be_hidden()
        # With no voice for any language that is read, there is no choice.
        await expect(choice).to_be_hidden()
