"""What one chose elsewhere, and what this gateway or this meeting allows: nobody is locked out by it."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import expect

from tests.browser.conftest import SCRIPT, StartGateway
from tests.browser.pages import (
    DESKTOP,
    PHONE,
    connected,
    join,
    meeting_of,
    new_meeting,
    original,
    read,
    received,
    say,
    sent,
    settled,
    show,
    until,
)
from tests.conftest import OpenPage, Watch
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser


async def reopen(watch: Watch, **kept: str) -> None:
    """The page anew, in a browser that remembers these choices."""
    await watch.page.evaluate(
        "(kept) => Object.entries(kept).forEach(([k, v]) => localStorage.setItem(k, v))", kept
    )
    await watch.page.goto(watch.page.url.split("?")[0])


def reads(watch: Watch) -> Any:
    return sent(watch, "session.start")[-1]["reads"]


async def test_excess_languages_and_long_names_are_cut(start_gateway: StartGateway, open_page: OpenPage) -> None:
    gateway = start_gateway(SCRIPT + "\n[limits]\nlanguages = 2\nname_chars = 10").ready()
    async with open_page(gateway.url, **DESKTOP) as watch:
        await connected(watch.page)
        assert reads(watch) == ["en", "ja"]
        await reopen(watch, reads="en,ja,es,de", name="Bartholomew the Great")
        await connected(watch.page)
        assert reads(watch) == ["en", "ja"]
        assert sent(watch, "session.start")[-1]["name"] == "Bartholome"
        await settled(await say(watch.page, "Good morning."))


async def test_joining_a_full_meeting_reads_fewer_languages(
    start_gateway: StartGateway, open_page: OpenPage
) -> None:
    gateway = start_gateway(SCRIPT + "\n[limits]\nmeeting_languages = 2").ready()
    async with open_page(gateway.url, **DESKTOP) as ana:
        # Three that were read elsewhere are too many already; then one, and then two by hand.
        await connected(ana.page)
        await reopen(ana, reads="en,ja,de")
        await connected(ana.page)
        await expect(ana.page.get_by_test_id("alert")).to_contain_text("Not all of your languages")
        await read(ana.page, "en", "ja")
        await until(lambda: [each["reads"] for each in received(ana, "session.updated")][-1:] == [["en", "ja"]])
        # A third one is refused: the choice shows what is in force, and begins the next visit.
        await ana.page.get_by_test_id("read-de").click()
        await expect(ana.page.get_by_test_id("alert")).to_contain_text("meeting_languages")
        await expect(ana.page.get_by_test_id("read-de")).not_to_be_checked()
        await expect(ana.page.get_by_role("log").locator(".heading")).to_have_count(2)
        assert await ana.page.evaluate("localStorage.reads") == "en,ja"
        async with open_page(ana.page.url, **DESKTOP) as bo:
            await join(bo.page, "Bo", reads="fr")
            await expect(bo.page.get_by_test_id("alert")).to_contain_text("Not all of your languages")
            assert reads(bo) == []
            row = await say(ana.page, "Good morning.")
            await settled(row)
            await expect(original(bo.page)).to_have_text("Good morning.")


async def test_nothing_is_joined_before_the_question_is_answered(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    """Nothing is lost either."""
    async with open_page(f"{gateway.url}?meeting={new_meeting()}", **DESKTOP) as watch:
        page = watch.page
        await expect(page.get_by_role("dialog")).to_be_visible()
        await page.evaluate("dispatchEvent(new Event('online'))")
        async with page.expect_response("**/readyz*"):
            await page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
        await expect(page.get_by_test_id("status")).to_have_text("Not joined yet")
        assert sent(watch, "session.start") == []
        await join(page, "Bo", reads="de")
        await until(lambda: bool(sent(watch, "session.start")))
        assert (reads(watch), sent(watch, "session.start")[-1]["name"]) == (["de"], "Bo")


async def test_choices_during_the_sample_meeting_last(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url, **DESKTOP) as watch:
        page = watch.page
        await page.get_by_test_id("empty-play").click()
        pane = await show(page, "reading")
        await expect(pane.get_by_test_id("read-zh")).to_be_checked()
        await pane.get_by_test_id("read-de").uncheck()
        await page.get_by_test_id("sample").click()
        await expect(page.get_by_test_id("tab-people")).to_have_text("People 1")
        await expect(pane.get_by_test_id("read-de")).not_to_be_checked()
        await expect(pane.get_by_test_id("read-zh")).to_be_checked()


async def test_phone_sheet_tells_its_state_and_closes_outside(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    """Its button says whether it is open; a tap beside it closes it."""
    async with open_page(gateway.url, **PHONE) as watch:
        page = watch.page
        await connected(page)
        options = page.get_by_test_id("options")
        await expect(options).to_have_attribute("aria-expanded", "false")
        await options.tap()
        await expect(options).to_have_attribute("aria-expanded", "true")
        await expect(page.get_by_test_id("tab-reading")).to_be_focused()
        await page.touchscreen.tap(200, 120)
        await expect(page.get_by_test_id("side-panel")).to_be_hidden()
        await expect(options).to_have_attribute("aria-expanded", "false")


async def test_the_news_of_a_restart_goes_with_it(start_gateway: StartGateway, open_page: OpenPage) -> None:
    gateway = start_gateway().ready()
    async with open_page(gateway.url, **DESKTOP) as watch:
        watch.allow("ERR_CONNECTION_REFUSED")
        watch.allow("503")
        page = watch.page
        await connected(page)
        meeting = meeting_of(page)
        gateway.process.terminate()
        await expect(page.get_by_test_id("banner")).to_contain_text("The gateway is restarting.")
        await expect(page.get_by_test_id("status")).to_have_text("Restarting")
        await expect(page.get_by_test_id("alert")).to_be_hidden()
        port = gateway.port
        gateway.end()
        start_gateway(port=port).ready()
        await connected(page)
        await expect(page.get_by_test_id("alert")).to_be_hidden()
        await expect(page.get_by_test_id("banner")).to_be_hidden()
        assert meeting_of(page) == meeting
