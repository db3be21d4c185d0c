"""Who may run a demo in a meeting: whoever opened it, while nobody else is there, where the gateway offers it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.browser.axe import scan
from tests.browser.conftest import SCRIPT, StartGateway
from tests.browser.pages import DESKTOP, PHONE, connected, join, new_meeting, sent, show
from tests.conftest import OpenPage
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser

CONTROLS = ("empty-play", "sample", "load-add-5", "load-add-20")


async def offers(page: Page, *, demo: bool) -> None:
    """Whether the page has buttons that start a demo."""
    await show(page, "engine")
    for testid in CONTROLS:
        await expect(page.get_by_test_id(testid)).to_be_visible(visible=demo)


async def test_guest_in_empty_meeting_is_offered_no_demo(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    async with open_page(f"{gateway.url}/?meeting={new_meeting()}", **PHONE) as guest:
        await join(guest.page, "Bo")
        await expect(guest.page.get_by_test_id("empty-speak")).to_be_visible()
        for testid in ("empty-play", "sample"):
            await expect(guest.page.get_by_test_id(testid)).to_be_hidden()
        await guest.page.screenshot(path=artifacts / "page-guest-empty.png")
        await show(guest.page, "engine")
        await expect(guest.page.get_by_test_id("load-add-20")).to_be_hidden()


async def test_lone_host_is_offered_a_demo_after_reload(gateway: GatewayProcess, open_page: OpenPage) -> None:
    """The demo is offered before the reload as well."""
    async with open_page(gateway.url, **DESKTOP) as host:
        await connected(host.page)
        await offers(host.page, demo=True)
        await host.page.reload()
        await connected(host.page)
        await offers(host.page, demo=True)
        async with open_page(host.page.url, **DESKTOP) as guest:
            await join(guest.page, "Bo")
            await offers(host.page, demo=False)
            await offers(guest.page, demo=False)
        await expect(host.page.get_by_test_id("tab-people")).to_have_text("People 1")
        await offers(host.page, demo=True)
        # Who is there already when the host comes back counts as well.
        async with open_page(host.page.url, **DESKTOP) as guest:
            await join(guest.page, "Bo")
            await host.page.reload()
            await connected(host.page)
            await offers(host.page, demo=False)


async def test_joining_guest_stops_the_sample_meeting_until_resumed(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    """The host resumes it."""
    async with open_page(gateway.url, **DESKTOP) as host:
        page, alert = host.page, host.page.get_by_test_id("alert")
        await connected(page)
        await page.get_by_test_id("empty-play").click()
        await expect(page.get_by_test_id("utterance").first).to_be_visible()
        # Its own speakers are nobody for whom it stops.
        await expect(page.get_by_test_id("tab-people")).to_have_text("People 6")
        await expect(alert).to_be_hidden()
        async with open_page(page.url, **DESKTOP) as guest:
            await join(guest.page, "Bo")
            await expect(alert).to_contain_text("Bo has joined, so the sample meeting has stopped.")
            await expect(page.get_by_test_id("sample")).to_be_hidden()
            # Only the two people are left.
            await expect(page.get_by_test_id("tab-people")).to_have_text("People 2")
            await page.screenshot(path=artifacts / "page-demo-stopped.png")
            assert not (await scan(page)).serious

            await page.get_by_role("button", name="Go on with it").click()
            await expect(alert).to_be_hidden()
            await expect(page.get_by_test_id("tab-people")).to_have_text("People 7")
            # The next one is asked about again.
            async with open_page(page.url, **DESKTOP) as another:
                await join(another.page, "Cy")
                await expect(alert).to_contain_text("Cy has joined, so the sample meeting has stopped.")
                await expect(page.get_by_test_id("tab-people")).to_have_text("People 3")
                await page.get_by_role("button", name="Go on with it").click()
                await expect(page.get_by_test_id("tab-people")).to_have_text("People 8")
                await page.get_by_role("button", name="Stop sample").click()
                await expect(page.get_by_test_id("sample")).to_be_hidden()


async def test_simulated_speakers_leave_when_somebody_joins(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url, **DESKTOP) as host:
        await connected(host.page)
        pane = await show(host.page, "engine")
        await pane.get_by_test_id("load-add-5").click()
        # The browser complains of one that is stopped while it connects.
        await expect(pane.get_by_test_id("load-count")).to_have_text("5 simulated speakers")
        host.allow("WebSocket is closed before the connection is established")
        async with open_page(host.page.url) as guest:
            await join(guest.page)
            alert = host.page.get_by_test_id("alert")
            await expect(alert).to_contain_text("Somebody has joined, so the demo has stopped.")
            await expect(pane.get_by_test_id("load-stop")).to_be_hidden()
            await host.page.get_by_test_id("alert-action").click()
            await expect(pane.get_by_test_id("load-count")).to_have_text("5 simulated speakers")
            await pane.get_by_test_id("load-stop").click()
            await expect(pane.get_by_test_id("load-stop")).to_be_hidden()


async def test_a_gateway_without_demo_controls_offers_none(
    start_gateway: StartGateway, open_page: OpenPage, artifacts: Path
) -> None:
    gateway = start_gateway("demo_controls = false\n" + SCRIPT).ready()
    async with open_page(gateway.url, **DESKTOP) as host:
        page = host.page
        await connected(page)
        await offers(page, demo=False)
        await expect(page.get_by_test_id("sentences")).to_be_hidden()
        await expect(page.get_by_test_id("empty-speak")).to_be_visible()
        await page.screenshot(path=artifacts / "page-without-demo.png")
        await page.get_by_test_id("send").click()
        await expect(page.get_by_test_id("composer-note")).to_have_text(re.compile(r"^Type something first\.$"))
        assert sent(host, "utterance.final") == []
