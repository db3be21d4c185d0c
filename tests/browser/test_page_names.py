"""Whoever opens a meeting is asked for a name there, and may leave it out."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.axe import scan
from tests.browser.pages import DESKTOP, PHONE, SENTENCE, connected, join, new_meeting, overflow_px, row, say, show
from tests.conftest import OpenPage
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser


async def test_host_is_asked_for_a_visible_name(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    async with open_page(gateway.url, **PHONE) as host:
        page = host.page
        await connected(page)
        ask = page.get_by_test_id("ask-name")
        await expect(ask).to_be_visible()
        await page.screenshot(path=artifacts / "page-host-phone.png")
        assert not (await scan(page)).serious
        assert await overflow_px(page) == 0
        await ask.get_by_label("Your name").fill("Ana")
        await ask.get_by_role("button", name="Save").click()
        await expect(ask).to_be_hidden()
        await expect(page.get_by_test_id("empty-speak")).to_be_focused()
        await connected(page)
        async with open_page(page.url, **DESKTOP) as guest:
            await join(guest.page, "Bo")
            people = await show(guest.page, "people")
            await expect(people.get_by_role("listitem").nth(1)).to_contain_text("Ana")
            # It is the host's alone to be asked there: guests were asked before they joined.
            await expect(guest.page.get_by_test_id("ask-name")).to_have_count(0)
        # It is known from then on.
        await page.goto(gateway.url)
        await connected(page)
        await expect(ask).to_be_hidden()


async def test_the_name_may_be_left_out(gateway: GatewayProcess, open_page: OpenPage, artifacts: Path) -> None:
    async with open_page(gateway.url, **DESKTOP) as host:
        await connected(host.page)
        await host.page.screenshot(path=artifacts / "page-host.png")
        await say(host.page, SENTENCE)
        await expect(row(host.page, SENTENCE)).to_contain_text("You")
        await expect(host.page.get_by_test_id("ask-name")).to_be_hidden()


async def test_who_only_reads_is_not_told_to_listen(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    async with open_page(f"{gateway.url}/?meeting={new_meeting()}", **PHONE) as guest:
        await guest.page.screenshot(path=artifacts / "page-join-phone.png")
        await join(guest.page, "Bo", speaks=False)
        await expect(guest.page.get_by_text("You are reading along.")).to_be_visible()
        await expect(guest.page.get_by_text("listen")).to_have_count(0)
