"""The host's page: who may end the meeting, remove participants and lock it, and what the others see then."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from playwright.async_api import Page, WebSocketRoute, expect

from gateway.client import SessionClosed, SessionRefused, connect
from tests.browser.axe import scan
from tests.browser.pages import (
    DESKTOP,
    PHONE,
    SENTENCE,
    connected,
    join,
    meeting_of,
    new_meeting,
    overflow_px,
    received,
    row,
    say,
    settled,
    show,
    until,
)
from tests.conftest import OpenPage, Watch
from tests.processes import GatewayProcess
from tests.qr_codes import read_qr_code

pytestmark = pytest.mark.browser


async def confirm(page: Page, heading: str, action: str) -> None:
    dialog = page.get_by_role("dialog", name=heading)
    await dialog.get_by_role("button", name=action).click()
    await expect(dialog).to_have_count(0)


@asynccontextmanager
async def host_and_bo(gateway: GatewayProcess, open_page: OpenPage) -> AsyncIterator[tuple[Watch, Watch]]:
    """A host at a desk, and Bo on a phone, who has joined by the host's address."""
    async with open_page(gateway.url, **DESKTOP) as host, open_page(f"{gateway.url}/healthz", **PHONE) as guest:
        guest.allow("favicon.ico")
        await connected(host.page)
        await guest.page.goto(host.page.url)
        await join(guest.page, "Bo")
        yield host, guest


async def test_host_ends_the_meeting_for_everyone(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    async with host_and_bo(gateway, open_page) as (host, guest):
        await settled(await say(host.page, SENTENCE))
        pane = await show(guest.page, "people")
        await expect(pane.get_by_test_id("host")).to_be_hidden()
        await expect(pane.get_by_test_id("remove-person")).to_have_count(0)

        pane = await show(host.page, "people")
        end = pane.get_by_role("button", name="End for everyone")
        await end.click()
        dialog = host.page.get_by_role("dialog", name="End the meeting for everyone?")
        await expect(dialog).to_contain_text("you too")
        await host.page.screenshot(path=artifacts / "host-end.png")
        found = await scan(host.page)
        assert (found.serious, found.moderate) == ([], [])
        await host.page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)
        await expect(end).to_be_focused()
        await end.click()
        await confirm(host.page, "End the meeting for everyone?", "End for everyone")
        for page in (host.page, guest.page):
            last = page.get_by_test_id("last-screen")
            await expect(last.get_by_role("heading", name="The meeting has ended")).to_be_visible()
            await expect(row(page, SENTENCE)).to_be_visible()
            await expect(row(page, SENTENCE).get_by_test_id("correct").filter(visible=True)).to_have_count(0)


async def test_removed_participant_is_told_and_not_led_back(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with host_and_bo(gateway, open_page) as (host, guest):
        pane = await show(host.page, "people")
        await pane.get_by_role("button", name="Remove Bo").click()
        await expect(host.page.get_by_role("dialog")).to_contain_text("lock the meeting")
        await confirm(host.page, "Remove Bo from the meeting?", "Remove")
        await expect(pane.get_by_text("Bo", exact=True)).to_have_count(0)
        last = guest.page.get_by_test_id("last-screen")
        await expect(last.get_by_role("heading", name="You were removed from this meeting")).to_be_visible()
        await expect(last.get_by_test_id("join-again")).to_be_hidden()
        await expect(guest.page.get_by_test_id("status")).to_have_text("Removed")
        await expect(guest.page.get_by_role("alert")).to_be_hidden()


async def test_removed_participant_is_told_again_after_a_reload(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    async with host_and_bo(gateway, open_page) as (host, guest):
        pane = await show(host.page, "people")
        await pane.get_by_role("button", name="Remove Bo").click()
        dialog = host.page.get_by_role("dialog", name="Remove Bo from the meeting?")
        await expect(dialog).to_contain_text("with another browser")
        await host.page.screenshot(path=artifacts / "host-remove.png")
        await confirm(host.page, "Remove Bo from the meeting?", "Remove")
        await expect(guest.page.get_by_test_id("status")).to_have_text("Removed")
        another = await guest.page.context.new_page()
        for page, goes in ((guest.page, guest.page.reload), (another, partial(another.goto, host.page.url))):
            await goes()
            last = page.get_by_test_id("last-screen")
            await expect(last.get_by_role("heading", name="You were removed from this meeting")).to_be_visible()
            await expect(page.get_by_test_id("status")).to_have_text("Removed")
            await expect(page.get_by_role("dialog")).to_have_count(0)
        await guest.page.screenshot(path=artifacts / "removed-reloaded.png")
        found = await scan(guest.page)
        assert (found.serious, found.moderate) == ([], [])
        await expect(pane.get_by_text("Bo", exact=True)).to_have_count(0)
        # It is the host's word that counts: they may let somebody in again.
        await last.get_by_role("button", name="Join again").click()
        await join(another, "Bo")
        await connected(another)
        await expect(pane.get_by_text("Bo", exact=True)).to_have_count(1)
        await another.reload()
        await connected(another)


async def test_all_pages_follow_the_lock(gateway: GatewayProcess, open_page: OpenPage, artifacts: Path) -> None:
    async with open_page(gateway.url, **DESKTOP) as host, open_page(f"{gateway.url}/healthz", **PHONE) as guest:
        guest.allow("favicon.ico")
        await connected(host.page)
        joined = await host.page.evaluate("sessionStorage.getItem('joined')")
        await guest.page.goto(host.page.url)
        await join(guest.page, "Bo", speaks=False)
        pane = await show(guest.page, "people")
        note = pane.get_by_test_id("lock-note")
        await expect(note).to_be_hidden()
        lock = (await show(host.page, "people")).get_by_role("checkbox", name="Lock the meeting")
        async with connect(
            gateway.url, meeting=meeting_of(host.page), host=joined.split(" ")[-1], reads=[]
        ) as other_host:
            await other_host.lock()
            await expect(lock).to_be_checked()
            await expect(note).to_contain_text("nobody else can join")
            await guest.page.screenshot(path=artifacts / "locked-guest.png")
            assert (await scan(guest.page)).serious == []
            await expect(host.page.get_by_test_id("lock-note")).to_be_hidden()
            await other_host.lock(False)
            await expect(lock).not_to_be_checked()
            await expect(note).to_be_hidden()


async def test_muted_participant_is_told_and_stays_so_after_a_reload(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    async with host_and_bo(gateway, open_page) as (host, guest):
        await settled(await say(guest.page, SENTENCE))
        await guest.page.get_by_test_id("text").fill("Half a sen")
        pane = await show(host.page, "people")
        await pane.get_by_role("button", name="Mute Bo", exact=True).click()
        person = pane.get_by_role("listitem").filter(has_text="Bo")
        await expect(person.get_by_text("Muted by the host")).to_be_visible()
        await host.page.screenshot(path=artifacts / "host-muted.png")
        unmute = await person.get_by_test_id("mute-person").bounding_box()
        remove = await person.get_by_test_id("remove-person").bounding_box()
        assert unmute is not None
        assert remove is not None
        assert 0 < remove["x"] - (unmute["x"] + unmute["width"]) < 20  # side by side, whatever the name is
        for _ in range(2):
            await expect(guest.page.get_by_test_id("composer-note")).to_have_text(
                "The host has muted you: what you say is not sent."
            )
            await expect(guest.page.get_by_test_id("text")).to_be_disabled()
            await expect(guest.page.get_by_test_id("microphone")).to_be_disabled()
            await expect(row(guest.page, SENTENCE)).to_be_visible()  # what was said stays, as it is
            await expect(guest.page.get_by_test_id("correct").filter(visible=True)).to_have_count(0)
            await guest.page.screenshot(path=artifacts / "muted.png")
            found = await scan(guest.page)
            assert (found.serious, found.moderate) == ([], [])
            await guest.page.reload()
            await connected(guest.page)
        await expect(pane.get_by_role("listitem").filter(has_text="Bo")).to_have_count(1)
        await pane.get_by_role("button", name="Unmute Bo").click()
        await expect(guest.page.get_by_test_id("composer-note")).to_have_text("You can speak again.")
        await expect(guest.page.get_by_test_id("text")).to_have_value("Half a sen")
        await say(guest.page, "And now aloud.")


async def test_title_is_told_before_and_after_one_has_joined(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    async with open_page(gateway.url, **DESKTOP) as host, open_page(f"{gateway.url}/healthz", **PHONE) as guest:
        guest.allow("favicon.ico")
        page = host.page
        await connected(page)
        people = await show(page, "people")
        await people.get_by_test_id("rename").click()
        await people.get_by_label("Your name").fill("Ana")
        await people.get_by_test_id("own").get_by_role("button", name="Save").click()
        await connected(page)
        await people.get_by_label("Title of the meeting").fill("Weekly")
        await people.get_by_test_id("host").get_by_role("button", name="Save").click()
        heading = page.get_by_role("heading", level=1)
        await expect(heading).to_have_text("Weekly held by Ana")
        await expect(page).to_have_title("Weekly · Translation Gateway")
        await page.screenshot(path=artifacts / "title.png")
        await page.get_by_test_id("share").click()
        await expect(page.get_by_test_id("share").last).to_contain_text("Weekly · held by Ana")
        await page.screenshot(path=artifacts / "title-share.png")
        await page.get_by_test_id("share-fill").click()
        await expect(page.get_by_test_id("qr-screen")).to_contain_text("Weekly · held by Ana")
        await page.screenshot(path=artifacts / "title-qr.png")
        await page.get_by_test_id("qr-close").click()
        await page.get_by_test_id("share-close").click()

        await guest.page.goto(page.url)
        dialog = guest.page.get_by_role("dialog", name="Join the meeting")
        await expect(dialog.get_by_role("heading", name="Weekly")).to_be_visible()
        await expect(dialog).to_contain_text("held by Ana")
        await guest.page.screenshot(path=artifacts / "title-join.png")
        found = await scan(guest.page)
        assert (found.serious, found.moderate) == ([], [])
        await join(guest.page, "Bo")
        await expect(guest.page.get_by_role("heading", level=1)).to_have_text("Weekly held by Ana")
        await guest.page.screenshot(path=artifacts / "title-phone.png")
        found = await scan(guest.page)
        assert (found.serious, found.moderate) == ([], [])
        assert await overflow_px(guest.page) == 0
        await people.get_by_label("Title of the meeting").fill("")
        await people.get_by_test_id("host").get_by_role("button", name="Save").click()
        for each in (page, guest.page):
            await expect(each.locator("h1")).to_have_text("Translation Gateway")


async def test_title_is_held_by_the_name_that_its_host_has_now(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with open_page(gateway.url, **DESKTOP) as host:
        page = host.page
        await connected(page)
        people = await show(page, "people")
        await people.get_by_label("Title of the meeting").fill("Weekly")
        await people.get_by_test_id("host").get_by_role("button", name="Save").click()
        heading = page.get_by_role("heading", level=1)
        await expect(heading).to_have_text("Weekly")
        for name in ("Ana", "Anna"):
            await people.get_by_test_id("rename").click()
            await people.get_by_label("Your name").fill(name)
            await people.get_by_test_id("own").get_by_role("button", name="Save").click()
            await expect(heading).to_have_text(f"Weekly held by {name}")


async def test_title_that_a_host_is_typing_stays(gateway: GatewayProcess, open_page: OpenPage) -> None:
    lines: list[WebSocketRoute] = []

    async def pass_on(line: WebSocketRoute) -> None:
        line.connect_to_server()
        lines.append(line)

    async with open_page(f"{gateway.url}/healthz", **DESKTOP) as host:
        host.allow("favicon.ico")
        page = host.page
        await page.route_web_socket("**/v1/stream", pass_on)
        await page.goto(gateway.url)
        await connected(page)
        heading = page.get_by_role("heading", level=1)
        field = (await show(page, "people")).get_by_label("Title of the meeting")
        await field.fill("Weekl")
        lines[-1].send(json.dumps({"type": "meeting.titled", "title": "Daily", "held_by": "Bo"}))
        await expect(heading).to_have_text("Daily held by Bo")
        assert await field.input_value() == "Weekl"
        await lines[-1].close(code=1012)
        await expect(heading).to_have_text("Translation Gateway")  # as the gateway says when it is back
        assert await field.input_value() == "Weekl"
        await field.press("y")
        await field.press("Enter")
        await expect(heading).to_have_text("Weekly")
        # Not typed any more.
        lines[-1].send(json.dumps({"type": "meeting.titled", "title": "Daily", "held_by": "Bo"}))
        await expect(heading).to_have_text("Daily held by Bo")
        await expect(field).to_have_value("Daily")


async def test_first_link_names_a_meeting(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(f"{gateway.url}/?meeting=first-link&title=Weekly") as first:
        await join(first.page, "Ana")
        await expect(first.page.get_by_role("heading", level=1)).to_have_text("Weekly held by Ana")
        async with connect(gateway.url, meeting="first-link", title="Another", reads=[]) as session:
            assert session.started.title == "Weekly"
    async with open_page(f"{gateway.url}/?meeting=long-title&title={'Weekly ' * 20}") as watch:
        await join(watch.page, "Ana")  # a link that somebody else wrote lets everybody in
        await expect(watch.page.locator("h1 bdi")).to_have_text(("Weekly " * 20)[:80].strip())


async def test_person_who_comes_back_without_a_goodbye_is_one(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with open_page(gateway.url, **DESKTOP) as host:
        await connected(host.page)
        meeting = meeting_of(host.page)
        pane = await show(host.page, "people")
        joined = partial(connect, gateway.url, meeting=meeting, reads=["de"])
        async with (
            joined(name="Bo", guest="bo"),
            joined(name="Bo", guest="bo") as again,
            joined(name="Bo", guest="other"),
            joined(name="Cy", guest="bo"),
        ):
            named = pane.get_by_test_id("people").get_by_text("Bo", exact=True)
            await expect(named).to_have_count(3)
            await expect(named.filter(visible=True)).to_have_count(2)
            await expect(pane.get_by_test_id("people-count")).to_have_text("4")
            await again.end()
            await expect(named).to_have_count(2)
            await expect(named.filter(visible=True)).to_have_count(2)
            await expect(pane.get_by_test_id("people-count")).to_have_text("4")


async def test_locked_meeting_lets_nobody_in_and_the_host_stays_host_after_a_reload(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with open_page(gateway.url, **DESKTOP) as host, open_page(f"{gateway.url}/healthz", **PHONE) as late:
        late.allow("favicon.ico")
        page = host.page
        await connected(page)
        meeting = meeting_of(page)
        async with connect(gateway.url, meeting=meeting, name="Bo", reads=["de"]):
            lock = (await show(page, "people")).get_by_role("checkbox", name="Lock the meeting")
            await lock.check()
            # As the host wants it; whether it is so, the gateway says.
            await until(lambda: any(each["locked"] for each in received(host, "meeting.locked")))
            await page.reload()
            await connected(page)
            lock = (await show(page, "people")).get_by_role("checkbox", name="Lock the meeting")
            await expect(lock).to_be_checked()
            with pytest.raises(SessionRefused, match="locked"):
                async with connect(gateway.url, meeting=meeting, reads=[]):
                    pass
            await late.page.goto(page.url)
            dialog = late.page.get_by_role("dialog", name="Join the meeting")
            await dialog.get_by_role("button", name="Join").click()
            await expect(late.page.get_by_role("alert")).to_contain_text("The host has locked this meeting")
            speak = late.page.get_by_test_id("speak-too")
            await expect(speak).to_be_hidden()
            # What is not known is not told: whether anybody has spoken.
            await expect(late.page.get_by_test_id("empty-state")).to_be_hidden()
            # Its link would lead others nowhere.
            await expect(late.page.get_by_test_id("share")).to_be_hidden()
            await lock.uncheck()
            await until(lambda: not received(host, "meeting.locked")[-1]["locked"])
            await late.page.get_by_role("button", name="Try now").click()
            await connected(late.page)
            await expect(late.page.get_by_test_id("share")).to_be_visible()
            await expect(speak).to_be_visible()
            await expect(late.page.get_by_test_id("empty-state")).to_be_visible()


async def test_the_switch_says_what_the_gateway_said_last(gateway: GatewayProcess, open_page: OpenPage) -> None:
    """A lock that is refused, or that is asked for without a connection, is none."""
    lines: list[WebSocketRoute] = []
    refusal = {"type": "error", "code": "log_unavailable", "message": "Not now.", "retryable": False}
    refusal |= {"retry_after_ms": None, "utterance": None, "field": None}

    async def refuse_locks(line: WebSocketRoute) -> None:
        server = line.connect_to_server()
        lines.append(line)

        def pass_on(frame: str | bytes) -> None:
            if json.loads(frame)["type"] == "meeting.lock":
                line.send(json.dumps(refusal))
            else:
                server.send(frame)

        line.on_message(pass_on)

    async with open_page(f"{gateway.url}/healthz", **DESKTOP) as host:
        host.allow("favicon.ico")
        host.allow("net::ERR")
        host.allow("WebSocket connection")
        page = host.page
        await page.route_web_socket("**/v1/stream", refuse_locks)
        await page.goto(gateway.url)
        await connected(page)
        lock = (await show(page, "people")).get_by_role("checkbox", name="Lock the meeting")
        await lock.click()
        await expect(lock).not_to_be_checked()
        await page.context.set_offline(True)
        await lines[0].close(code=1012)
        await expect(page.get_by_test_id("status")).not_to_have_attribute("data-state", "good")
        await lock.click()
        await expect(lock).not_to_be_checked()


async def test_unnamed_readers_are_counted_shown_and_removed(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url, **PHONE) as host:
        page = host.page
        await connected(page)
        async with connect(gateway.url, meeting=meeting_of(page), reads=["fr"]) as wall:
            pane = await show(page, "people")
            unnamed = pane.get_by_test_id("people-unnamed")
            await expect(unnamed).to_have_text("and 1 reader")
            await unnamed.click()
            await expect(pane.get_by_text("Reader · French")).to_be_visible()
            assert await overflow_px(page) == 0
            await pane.get_by_role("button", name="Remove Guest").click()
            await confirm(page, "Remove Guest from the meeting?", "Remove")
            await expect(unnamed).to_be_hidden()
            with pytest.raises(SessionClosed):
                async for _ in wall:
                    pass


async def test_nobody_is_host_of_a_meeting_with_an_id_of_ones_own(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with open_page(f"{gateway.url}/?meeting={new_meeting()}", **DESKTOP) as watch:
        await join(watch.page, "Ana")
        pane = await show(watch.page, "people")
        await expect(pane.get_by_test_id("host")).to_be_hidden()


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_code_fills_the_screen_and_can_be_scanned(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path, screen: dict[str, object]
) -> None:
    async with open_page(gateway.url, **screen) as watch:
        page = watch.page
        await connected(page)
        await page.get_by_test_id("share").click()
        dialog = page.get_by_role("dialog", name="Share this meeting")
        await expect(dialog).not_to_contain_text("--")
        await dialog.get_by_role("button", name="Fill the screen").click()
        full = page.get_by_test_id("qr-screen")
        await expect(full.get_by_role("img")).to_be_visible()
        await expect(full).to_contain_text(page.url)
        picture = await page.screenshot(path=artifacts / f"host-qr-{len(screen)}.png")
        assert read_qr_code(picture) == page.url
        # White to the edges.
        grey = Image.open(BytesIO(picture)).convert("L")
        width, height = grey.size
        edges = [(0, 0, 1, height), (width - 1, 0, width, height), (0, 0, width, 1)]
        assert [grey.crop(edge).getextrema() for edge in edges] == [(255, 255)] * 3
        size = await full.get_by_role("img").evaluate(
            "image => image.getBoundingClientRect().height / Math.min(innerHeight, innerWidth / .92)"
        )
        assert size == pytest.approx(0.92, abs=0.01)  # four fifths of it are the code
        await full.get_by_role("button", name="Close").click()
        await expect(full).to_have_count(0)
        await expect(dialog).to_be_visible()
