"""What the page shows when a meeting is over, silent, or not to be had: its link or its network is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page, Route, expect

from gateway.client import connect
from gateway.protocol.messages import ParticipantLeft
from loadtest.soak.relay import Relay
from tests.browser.axe import scan
from tests.browser.pages import (
    DESKTOP,
    PHONE,
    SENTENCE,
    captions_connected,
    cell,
    connected,
    join,
    meeting_of,
    new_meeting,
    overflow_px,
    row,
    say,
    sent,
    settled,
    show,
    until,
)
from tests.browser.test_page_invites import ENDED, Line
from tests.conftest import ROOT, OpenPage
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser

OFFLINE = ROOT / "web_demo" / "offline" / "offline.html"


async def pictured(page: Page, artifacts: Path, name: str) -> None:
    """On a screen and a phone, light and dark, with nothing wrong in it."""
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        for width, height in ((1280, 800), (390, 844)):
            await page.set_viewport_size({"width": width, "height": height})
            await page.screenshot(path=artifacts / f"{name}-{width}-{scheme}.png")
            assert await overflow_px(page) == 0
    await page.set_viewport_size(DESKTOP["viewport"])
    found = await scan(page)
    assert (found.serious, found.moderate) == ([], [])


# ---------------------------------------------------------------- over


async def test_left_meeting_ends_quietly_and_leads_back(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    async with open_page(gateway.url, **DESKTOP) as watch:
        page, last = watch.page, watch.page.get_by_test_id("last-screen")
        await connected(page)
        async with connect(gateway.url, meeting=meeting_of(page), name="Bo", reads=["ja"]) as bo:
            await settled(await say(page, SENTENCE))
            pane = await show(page, "people")
            await expect(pane).to_contain_text("Bo")
            await pane.get_by_role("button", name="Leave the meeting").click()
            async for message in bo:
                if isinstance(message, ParticipantLeft):
                    break
            await expect(last.get_by_role("heading", name="You have left the meeting")).to_be_focused()
            await expect(last).to_contain_text("The meeting goes on.")
            await expect(last).to_contain_text("You were there for ")
            await expect(page.get_by_test_id("status")).to_have_text("Left")
            await expect(page.get_by_test_id("status")).to_have_attribute("data-state", "over")
            for testid in ("alert", "banner", "composer", "side-panel", "share"):
                await expect(page.get_by_test_id(testid)).to_be_hidden()
            # What was said stays, to be read and to be saved.
            await expect(row(page, SENTENCE)).to_be_visible()
            async with page.expect_download() as saved:
                await last.get_by_test_id("download").click()
            assert SENTENCE in (await (await saved.value).path()).read_text()
            await pictured(page, artifacts, "left")
            await last.get_by_role("button", name="Join again").click()
            await connected(page)
            await expect(last).to_be_hidden()
            pane = await show(page, "people")
            await expect(pane.get_by_test_id("download")).to_be_visible()
            await expect(page.get_by_test_id("composer")).to_be_visible()


async def test_ended_meeting_says_so_and_does_not_reconnect(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    async with open_page(f"{gateway.url}/healthz", **DESKTOP) as watch:
        watch.allow("favicon.ico")
        page, line, last = watch.page, Line(), watch.page.get_by_test_id("last-screen")
        await page.route_web_socket("**/v1/stream", line)
        await page.goto(gateway.url)
        await settled(await say(page, SENTENCE))
        line.say(ENDED)
        await expect(last.get_by_role("heading")).to_have_text(
            ["The meeting has ended", "Download the transcript"]
        )
        await expect(last).to_contain_text("It was ended for everyone at ")
        await expect(page.get_by_test_id("status")).to_have_text("Ended")
        await expect(page.get_by_role("alert")).to_be_hidden()
        await expect(page.get_by_test_id("banner")).to_be_hidden()
        await pictured(page, artifacts, "ended")
        await page.clock.install()
        await page.clock.run_for(60_000)
        assert len(line.sockets) == 1
        await last.get_by_role("button", name="Join again").click()
        await connected(page)


async def test_captions_of_an_ended_meeting_say_so(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(f"{gateway.url}/healthz", **DESKTOP) as watch:
        watch.allow("favicon.ico")
        page, line = watch.page, Line()
        await page.route_web_socket("**/v1/stream", line)
        await page.goto(f"{gateway.url}/?view=captions&meeting={new_meeting()}&lang=ja")
        await captions_connected(page)
        line.say(ENDED)
        await expect(page.get_by_test_id("captions-message")).to_have_text("The meeting has ended")


# ---------------------------------------------------------------- silent


async def test_silent_meeting_says_whether_anybody_is_there(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    meeting = new_meeting()
    async with open_page(f"{gateway.url}/?meeting={meeting}", **DESKTOP) as watch:
        page, empty = watch.page, watch.page.get_by_test_id("empty-state")
        await join(page, "Bo", speaks=False)
        await expect(empty.get_by_role("heading")).to_have_text("Nobody else is here yet.")
        await expect(empty).to_contain_text("Everyone with this link can start the meeting by speaking, you too.")
        await expect(page.get_by_test_id("empty-speak")).to_be_hidden()
        async with connect(gateway.url, meeting=meeting, name="Ana", reads=["ja"]):
            await expect(empty.get_by_role("heading")).to_have_text("Nobody has spoken yet.")
            await expect(page.get_by_test_id("empty-speak")).to_be_hidden()
            await pictured(page, artifacts, "silent")
            await page.get_by_test_id("speak-too").click()
            await expect(page.get_by_test_id("empty-speak")).to_be_visible()
        await expect(empty.get_by_role("heading")).to_have_text("Nobody else is here yet.")


# ---------------------------------------------------------------- a wrong link


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("a%20b%20c", "The meeting's id in it is “a b c”."),
        ("a" * 80, "has 80 characters; 64 are the most."),
        ("..", "and not only dots."),
        ("", "The meeting's id is missing"),
    ],
)
async def test_mangled_link_opens_nothing_before_asked(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path, link: str, problem: str
) -> None:
    async with open_page(f"{gateway.url}/?meeting={link}&record=no", **DESKTOP) as watch:
        page, card = watch.page, watch.page.get_by_test_id("bad-link")
        await expect(card.get_by_role("heading")).to_have_text("This link does not lead to a meeting")
        await expect(card).to_contain_text(problem)
        if link.startswith("a%"):
            await pictured(page, artifacts, "bad-link")
        async with page.expect_response("**/readyz*"):
            await page.evaluate("window.dispatchEvent(new Event('online'))")
        assert watch.sent == []
        await expect(page.get_by_role("alert")).to_be_hidden()
        await card.get_by_role("button", name="Open a meeting of my own").click()
        await connected(page)
        await expect(card).to_be_hidden()
        assert len(meeting_of(page)) == len("abcd-efgh-ijkm")


# ---------------------------------------------------------------- a wrong network


async def test_readers_are_not_told_that_words_are_kept(gateway: GatewayProcess, open_page: OpenPage) -> None:
    meeting = new_meeting()
    async with Relay(gateway.port) as relay, open_page(f"{relay.url}/?meeting={meeting}", **PHONE) as watch:
        watch.allow("ERR_")
        page, banner = watch.page, watch.page.get_by_test_id("banner")
        await join(page, "Bo", speaks=False)
        await until(lambda: len(sent(watch, "ping")) > 0)
        relay.freeze()
        await page.context.set_offline(True)
        await expect(banner).to_contain_text("This device is offline. What you miss comes when it is back.")
        await page.get_by_test_id("speak-too").click()
        await expect(banner).to_contain_text("What you say is kept and sent; what you miss comes.")
        await page.context.set_offline(False)
        await page.close()


# A handshake that is answered like any other request, as a proxy does that does not know WebSockets.
WITHOUT_WEBSOCKETS = """
    const Real = window.WebSocket;
    const address = (url) => url.replace(window.through ?? "/v1/stream", "/healthz");
    window.WebSocket = function (url, protocol) { return new Real(address(url), protocol); };
"""


async def test_proxy_without_websockets_is_named(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(f"{gateway.url}/healthz", **DESKTOP) as watch:
        watch.allow("favicon.ico")
        watch.allow("WebSocket connection")
        page, banner = watch.page, watch.page.get_by_test_id("banner")
        await page.add_init_script(WITHOUT_WEBSOCKETS)
        await page.goto(gateway.url)
        await expect(page.get_by_test_id("status")).to_have_text("Blocked on the way")
        await expect(banner).to_contain_text("a proxy or firewall on the way does not let WebSockets through")
        # It tries again by itself.
        await page.evaluate("window.through = 'nothing'")
        await connected(page)
        await expect(banner).to_be_hidden()


async def test_unreachable_gateway_is_not_taken_for_a_proxy(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(f"{gateway.url}/healthz", **DESKTOP) as watch:
        for words in ("favicon.ico", "WebSocket connection", "ERR_"):
            watch.allow(words)
        page = watch.page
        await page.add_init_script(WITHOUT_WEBSOCKETS)
        asked = 0

        async def answer(route: Route) -> None:
            nonlocal asked
            asked += 1
            await (route.continue_() if asked == 1 else route.abort())

        await page.route("**/readyz*", answer)
        await page.goto(gateway.url)
        await until(lambda: asked > 4)
        await expect(page.get_by_test_id("status")).to_have_text("Reconnecting…")


async def test_offline_page_asks_less_and_less_often(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(f"{gateway.url}/healthz", **DESKTOP) as watch:
        watch.allow("favicon.ico")
        page = watch.page
        # In the place of the page, as its links are relative to the address of the page.
        await page.route(f"{gateway.url}/", lambda route: route.fulfill(path=OFFLINE))
        await page.add_init_script("window.asked = 0; window.fetch = async () => ({ ok: !(window.asked += 1) });")
        # From the first moment on, time passes with `run_for` alone.
        await page.clock.install(time=0)
        await page.clock.pause_at(1)
        await page.goto(gateway.url)
        await expect(page.get_by_role("heading")).to_have_text("The meeting cannot be reached")
        for minute in range(1, 6):
            await page.clock.run_for(60_000)
            assert await page.evaluate("window.asked") <= 2 + minute
        assert await page.evaluate("window.asked") >= 5
        # At once where the browser says that there is a network again.
        asked = await page.evaluate("window.asked")
        await page.evaluate("window.dispatchEvent(new Event('online'))")
        assert await page.evaluate("window.asked") == asked + 1


async def test_phone_keeps_the_transcript_after_the_end(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(f"{gateway.url}/?meeting={new_meeting()}", **PHONE) as watch:
        page = watch.page
        await join(page, "Bo", reads="fr")
        await settled(await say(page, SENTENCE))
        pane = await show(page, "people")
        await pane.get_by_test_id("leave").click()
        await expect(page.get_by_test_id("last-screen")).to_be_visible()
        await expect(cell(row(page, SENTENCE), "fr")).to_have_text(f"[fr] {SENTENCE}")
