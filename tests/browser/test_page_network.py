"""What the page says of its network: through a black hole, without a network, and never two things at once.

Time passes by the page's own clock, so that nothing rests on how fast the machine is.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from loadtest.soak.relay import Relay
from tests.browser.axe import scan
from tests.browser.pages import (
    DESKTOP,
    PHONE,
    connected,
    overflow_px,
    read,
    received,
    row,
    seen_by,
    sent,
    settled,
    stop_the_clock,
    type_words,
    until,
    witness,
)
from tests.conftest import OpenPage, Watch
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser

# So soon people have to know that nobody answers them.
SOON_MS = 5_000


async def is_answered(watch: Watch) -> None:
    """Everything that was asked is."""
    await until(lambda: len(received(watch, "pong")) == len(sent(watch, "ping")) > 0)


async def test_black_hole_is_noticed_within_five_seconds(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    """The five seconds count from what is said."""
    async with Relay(gateway.port) as relay, open_page(relay.url, **PHONE) as watch:
        watch.allow("ERR_")
        page, banner = watch.page, watch.page.get_by_test_id("banner")
        await connected(page)
        await stop_the_clock(page)
        await is_answered(watch)
        await witness(page, "status")
        relay.freeze()
        await page.get_by_test_id("text").fill("Anybody there?")
        await page.keyboard.press("Enter")
        await until(lambda: len(sent(watch, "utterance.final")) == 1)
        await expect(page.get_by_test_id("status")).to_have_text("Connected")
        await page.clock.run_for(SOON_MS)
        await expect(page.get_by_test_id("status")).to_have_text("No answer")
        await expect(banner).to_contain_text("The gateway does not answer.")
        await expect(row(page, "Anybody there?")).to_contain_text("Not sent yet")
        await page.screenshot(path=artifacts / "page-no-answer-phone.png")
        assert await overflow_px(page) == 0
        assert not (await scan(page)).serious
        # It is given up in the end; the next connection gets through, with what was said.
        await page.clock.resume()
        await connected(page)
        await expect(banner).to_be_hidden()
        await settled(row(page, "Anybody there?"))
        await expect(page.get_by_test_id("utterance")).to_have_count(1)
        # One thing after another, and every attempt to connect a part of the same wait.
        assert await seen_by(page, "status") == ["No answer", "Reconnecting…", "Connected"]


async def test_earlier_translations_survive_a_black_hole(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with Relay(gateway.port) as relay, open_page(relay.url, **DESKTOP) as watch:
        watch.allow("ERR_")
        page = watch.page
        await read(page, "ja")
        begun = ("Everybody", "who", "was", "away", "last")
        await type_words(watch, *begun, into="ja")
        translation = page.get_by_test_id("cell-ja")
        await expect(translation).to_contain_text("[ja] Everybody who")
        await witness(page, "cell-ja")
        await stop_the_clock(page)
        relay.freeze()
        await page.get_by_test_id("text").press_sequentially(" week is back, and so we can begin")
        await page.keyboard.press("Enter")
        await until(lambda: len(sent(watch, "utterance.final")) == 1)
        await page.clock.run_for(SOON_MS)
        await expect(page.get_by_test_id("utterance")).to_have_attribute("data-state", "unsent")
        await expect(translation).to_contain_text("[ja] Everybody who")
        await page.clock.resume()
        await settled(page.get_by_test_id("utterance"))
        await expect(translation).to_have_text(f"[ja] {' '.join(begun)} week is back, and so we can begin")
        # At no time without its beginning.
        seen = await seen_by(page, "cell-ja")
        assert [text for text in seen if not text.startswith("[ja] Everybody who")] == []


async def test_a_device_without_a_network_says_so_at_once(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    async with Relay(gateway.port) as relay, open_page(relay.url, **DESKTOP) as watch:
        watch.allow("ERR_")
        page, banner = watch.page, watch.page.get_by_test_id("banner")
        await connected(page)
        await is_answered(watch)
        await stop_the_clock(page)
        await is_answered(watch)
        relay.freeze()
        await page.context.set_offline(True)
        await expect(page.get_by_test_id("status")).to_have_text("Offline")
        await expect(banner).to_contain_text("This device is offline.")
        await page.screenshot(path=artifacts / "page-offline.png")
        # As long as it lasts nothing else is said, whatever becomes of the connection.
        await witness(page, "status")
        await page.clock.run_for(20_000)
        assert await seen_by(page, "status") == []
        await page.context.set_offline(False)
        await page.clock.resume()
        await connected(page)
        await expect(banner).to_be_hidden()


async def test_local_gateway_is_reached_without_a_network(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        await connected(watch.page)
        await witness(watch.page, "status")
        await watch.page.evaluate("() => { window.dispatchEvent(new Event('offline')) }")
        await until(lambda: len(received(watch, "pong")) >= 2)
        await connected(watch.page)
        assert await seen_by(watch.page, "status") == ["Offline", "Connected"]
