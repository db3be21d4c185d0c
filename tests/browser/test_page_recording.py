"""A meeting of which nothing is kept, on the page: how it is begun, and what everybody in it sees."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import expect

from tests.browser.pages import SENTENCE, connected, join, read, say, settled, show
from tests.conftest import OpenPage
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser


async def test_nothing_is_kept_and_everybody_sees_it(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as ana:
        page = ana.page
        await connected(page)
        await expect(page.get_by_test_id("not-recorded")).to_be_hidden()
        people = await show(page, "people")
        await people.get_by_role("button", name="Start a meeting that is not recorded").click()
        await expect(page.get_by_test_id("not-recorded")).to_have_text("Not recorded")
        await connected(page)
        await read(page, "ja")
        await settled(await say(page, SENTENCE))
        people = await show(page, "people")
        await expect(people.get_by_test_id("download")).to_be_hidden()
        await expect(people.get_by_text("Nothing of this meeting is kept")).to_be_visible()
        await page.get_by_test_id("share").first.click()
        link = await page.get_by_test_id("link").input_value()
        assert parse_qs(urlsplit(link).query)["record"] == ["no"]
        # A link without it leads to the same meeting.
        for address in (link, link.replace("record=no", "")):
            async with open_page(address) as guest:
                await join(guest.page, "Bo", reads="ja")
                await expect(guest.page.get_by_test_id("not-recorded")).to_be_visible()
                await expect(guest.page.get_by_test_id("utterance")).to_have_count(0)
