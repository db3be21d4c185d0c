"""The page for everybody: by keyboard alone, with a screen reader, on phones, in every colour scheme."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.axe import scan
from tests.browser.conftest import StartGateway
from tests.browser.pages import (
    DESKTOP,
    LANGUAGES,
    PHONE,
    SENTENCE,
    SMALL_PHONE,
    cell,
    connected,
    join,
    meeting_of,
    new_meeting,
    original,
    overflow_px,
    read,
    row,
    say,
    settled,
    show,
    type_words,
)
from tests.conftest import OpenPage, Watch
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser

LONG = "<b>Averylongwordwithoutanyspacesinitthatwouldotherwisemakethepagescrollsideways</b>"


async def accessible(page: Page) -> None:
    found = await scan(page)
    assert not found.serious, found


@asynccontextmanager
async def busy_meeting(open_page: OpenPage, url: str, **options: Any) -> AsyncIterator[Watch]:
    """A page with rows in several languages: settled, failed, running, and being said."""
    async with open_page(url, **options) as watch:
        page = watch.page
        await read(page, "ja", "es", "zh")
        if not (await page.evaluate("matchMedia('(min-width: 64rem)').matches")):
            await page.get_by_test_id("close-panel").click()
        await settled(await say(page, "The contract isn't ready yet because Anna is out sick."))
        await settled(await say(page, "This one will fail after its first words."))
        running = await say(page, "Sometimes a sentence will stall while it is being translated.")
        await expect(cell(running, "ja")).to_contain_text("Sometimes a sentence")
        await type_words(watch, "We", "move", "the", "launch")
        yield watch


# -------------------------------------------------------------------- by keyboard alone


_STOP = """() => {
    const focused = document.activeElement;
    if (focused === document.body) return null;
    window.stops ??= [];
    const again = stops.indexOf(focused);
    if (again < 0) stops.push(focused);
    const shows = (found) => {
        const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(found);
        return (outlineStyle !== "none" && parseFloat(outlineWidth) >= 1) || boxShadow !== "none";
    };
    // A chip shows the focus of the box in it, the frame around it that of the field.
    const frames = [focused, focused.closest("label"), focused.closest("fieldset")].filter(Boolean);
    const named = focused.ariaLabel || focused.getAttribute("aria-labelledby") || focused.textContent.trim()
        || [...focused.labels ?? []].map((label) => label.textContent).join("").trim();
    return {
        again: again >= 0, visible: frames.some(shows), named: Boolean(named),
        html: focused.outerHTML.slice(0, 120),
    };
}"""
_MISSED = """() => [...document.querySelectorAll(
        "button, input, select, textarea, a[href], summary, [tabindex]:not([tabindex='-1'])")]
    .filter((control) => control.checkVisibility({ visibilityProperty: true }) && !control.disabled)
    .filter((control) => control.tabIndex >= 0 && !window.stops.includes(control))
    // Of one choice one is reached by Tab, the others by arrow keys.
    .filter((control) => control.type !== "radio" || !stops.some((stop) => stop.name === control.name))
    .map((control) => control.outerHTML.slice(0, 120))"""


async def walk(page: Page) -> None:
    """Tab through the whole page and around: every control is a stop, each has a name and shows its focus."""
    await page.evaluate("() => { document.activeElement.blur(); window.stops = []; }")
    for _ in range(120):
        await page.keyboard.press("Tab")
        stop = await page.evaluate(_STOP)
        if stop is None:
            continue  # past the last one, on the way around
        if stop["again"]:
            break
        assert stop["visible"], stop
        assert stop["named"], stop
    else:
        pytest.fail("The walk through the page has no end.")
    assert await page.evaluate(_MISSED) == []


async def test_tab_reaches_every_control_and_shows_where_it_is(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with open_page(gateway.url, **DESKTOP) as watch:
        page = watch.page
        await connected(page)
        await walk(page)  # the welcome
        await read(page, "fr")
        running = await say(page, "This one will stall for ever")
        await expect(cell(running, "fr")).to_have_text("[fr] This one will")
        for tab in ("reading", "people", "engine"):
            await show(page, tab)
            await walk(page)


async def test_a_meeting_by_keyboard_alone(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url, **DESKTOP) as watch:
        page = watch.page
        keys = page.keyboard

        async def tab_to(testid: str, key: str = "Tab") -> None:
            target = page.get_by_test_id(testid)
            for _ in range(80):
                if await target.evaluate("target => target === document.activeElement"):
                    return
                await keys.press(key)
            pytest.fail(f"{key} does not lead to {testid}.")

        # What one came for is where one begins: in the field.
        await connected(page)
        await expect(page.get_by_test_id("text")).to_be_focused()
        # Languages and stability.
        await tab_to("read-fr")
        await keys.press("Space")
        await expect(page.get_by_test_id("read-fr")).to_be_checked()
        await tab_to("stability-live")
        await keys.press("ArrowRight")
        await expect(page.get_by_test_id("stability-stable")).to_be_checked()
        await expect(page.get_by_test_id("stability-stable")).to_be_focused()
        # The language one speaks.
        await tab_to("spoken-lang", "Shift+Tab")
        await keys.type("Spanish")
        await expect(page.get_by_test_id("spoken-lang")).to_have_value("es")
        await tab_to("text")
        await keys.type("Hola a todos.")
        await keys.press("Enter")
        await expect(cell(row(page, "Hola a todos."), "fr")).to_have_text("[fr] Hola a todos.")
        await expect(page.get_by_test_id("text")).to_be_focused()
        # A translation that runs is cancelled; the focus is not lost with its button.
        await keys.type("This one will stall for ever")
        await keys.press("Enter")
        stalled = row(page, "stall")
        await expect(cell(stalled, "fr")).to_contain_text("[fr] This one")
        await keys.press("Shift+Tab")
        for _ in range(20):
            if await page.evaluate("document.activeElement.dataset.testid === 'cancel'"):
                break
            await keys.press("Shift+Tab")
        await keys.press("Enter")
        await expect(stalled).to_contain_text("The utterance was cancelled.")
        await expect(page.get_by_test_id("transcript")).to_be_focused()
        # The share dialog gives the focus back.
        await tab_to("share", "Shift+Tab")
        await keys.press("Enter")
        share = page.get_by_role("dialog", name="Share this meeting")
        await expect(share).to_be_visible()
        await keys.press("Escape")
        await expect(share).to_have_count(0)
        await expect(page.locator("button[data-testid=share]")).to_be_focused()
        # Tabs of the panel: one stop, arrow keys between them, around the end too.
        await tab_to("tab-reading")
        for tab in ("people", "engine", "reading", "people"):
            await keys.press("ArrowRight")
            await expect(page.get_by_test_id(f"tab-{tab}")).to_be_focused()
            await expect(page.locator(f"#pane-{tab}")).to_be_visible()
            await expect(page.get_by_role("tabpanel")).to_have_count(1)
        await keys.press("ArrowLeft")
        await keys.press("ArrowRight")
        # The transcript as a file.
        await tab_to("download")
        async with page.expect_download() as downloading:
            await keys.press("Enter")
        download = await downloading.value
        assert "Hola a todos." in (await download.path()).read_text()
        # The panel closes and comes back by its button.
        await tab_to("options", "Shift+Tab")
        await keys.press("Enter")
        await expect(page.get_by_test_id("side-panel")).to_be_hidden()
        await expect(page.get_by_test_id("options")).to_be_focused()
        await keys.press("Enter")
        await expect(page.get_by_test_id("tab-people")).to_have_attribute("aria-selected", "true")


async def test_a_dialog_keeps_the_focus_until_it_is_closed(gateway: GatewayProcess, open_page: OpenPage) -> None:
    inside = "document.activeElement === document.body || document.activeElement.closest('dialog') !== null"
    async with open_page(gateway.url, **DESKTOP) as watch:
        page = watch.page
        await connected(page)
        await page.get_by_test_id("share").click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        for _ in range(15):
            await page.keyboard.press("Tab")
            assert await page.evaluate(inside)


# -------------------------------------------------------------------- as axe sees it


_DOT = "(status) => getComputedStyle(status, '::before').backgroundColor.match(/[\\d.]+/g).slice(0, 3).map(Number)"
SCHEMES: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "contrast-light": {"color_scheme": "light"},
    "contrast-dark": {"color_scheme": "dark"},
}


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_nothing_keeps_people_out(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path, scheme: str
) -> None:
    async with open_page(gateway.url, **DESKTOP, **SCHEMES[scheme]) as watch:
        page = watch.page
        await connected(page)
        if scheme.startswith("contrast"):
            await page.get_by_label("High contrast").check()
            await expect(page.locator("html")).to_have_attribute("data-contrast", "high")
        # The dot beside "Connected" is green, and full.
        red, green, blue = await page.get_by_test_id("status").evaluate(_DOT)
        assert green > 1.3 * max(red, blue)
        await page.screenshot(path=artifacts / f"page-welcome-{scheme}.png")
        await accessible(page)

        await read(page, *LANGUAGES)
        await settled(await say(page, "The contract isn't ready yet because Anna is out sick."))
        await settled(await say(page, "This one will fail after its first words."))
        running = await say(page, "Sometimes a sentence will stall while it is being translated.")
        await expect(cell(running, "ja")).to_contain_text("Sometimes a sentence")
        await type_words(watch, "We", "move", "the", "launch", "to", "next", "Friday")
        await page.screenshot(path=artifacts / f"page-six-languages-{scheme}.png")
        for tab in ("reading", "people", "engine"):
            await show(page, tab)
            await page.screenshot(path=artifacts / f"page-{tab}-{scheme}.png")
            await accessible(page)
        await page.get_by_test_id("share").click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        await page.screenshot(path=artifacts / f"page-share-{scheme}.png")
        await accessible(page)


@pytest.mark.parametrize("device", ["desktop", "phone"])
async def test_nothing_keeps_people_out_on_their_way_in(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path, device: str
) -> None:
    options = {"desktop": DESKTOP, "phone": PHONE}[device]
    async with open_page(f"{gateway.url}/healthz", **options) as watch:
        page = watch.page
        watch.allow("favicon.ico")
        refusal = {"status": "starting", "reason": "the engine is loading its weights"}

        async def loading(route: Route) -> None:
            await route.fulfill(json=refusal)

        await page.route("**/readyz*", loading)
        await page.goto(f"{gateway.url}/?meeting={new_meeting()}")
        await expect(page.get_by_test_id("loading")).to_contain_text("The engine is loading its weights.")
        await accessible(page)
        await page.unroute("**/readyz*")
        await expect(page.get_by_role("dialog", name="Join the meeting")).to_be_visible()
        await page.screenshot(path=artifacts / f"page-join-{device}.png")
        await accessible(page)
        assert await overflow_px(page) == 0


async def test_nothing_keeps_people_out_of_captions(gateway: GatewayProcess, open_page: OpenPage) -> None:
    meeting = new_meeting()
    async with (
        open_page(f"{gateway.url}/?meeting={meeting}") as host,
        open_page(f"{gateway.url}/?meeting={meeting}&view=captions&lang=ja") as wall,
    ):
        await join(host.page, "Ana")
        await say(host.page, SENTENCE)
        await expect(wall.page.get_by_test_id("captions-ja")).to_contain_text(f"[ja] {SENTENCE}")
        await accessible(wall.page)


# -------------------------------------------------------------------- with a screen reader


async def test_a_screen_reader_hears_whole_sentences_in_one_language(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with open_page(gateway.url) as host:
        await connected(host.page)
        await settled(await say(host.page, "Said before anybody came."))
        async with open_page(f"{gateway.url}/?meeting={meeting_of(host.page)}") as guest:
            page = guest.page
            await join(page, reads="fr", speaks=False)
            await read(page, "fr", "de")
            await expect(cell(row(page, "before anybody"), "fr")).to_contain_text("[fr] Said before")
            announcer = page.get_by_test_id("announcer")
            await expect(announcer).to_have_attribute("aria-live", "polite")
            # What was said before is history.
            await expect(announcer).to_be_empty()
            await say(host.page, "Can you hear me?")
            await expect(announcer).to_have_text("Guest: [fr] Can you hear me?")
            paragraphs = announcer.locator("p")
            heard = await paragraphs.count()

            await type_words(host, "We", "move", "the", "launch", into="fr")
            await expect(cell(row(page, "move"), "fr")).to_contain_text("[fr] We move")
            # Nobody who listens to the page hears what may change.
            await expect(paragraphs).to_have_count(heard)
            await host.page.keyboard.press("Enter")
            await settled(row(page, "move"))
            await expect(paragraphs).to_have_count(heard + 1)
            await expect(paragraphs.last).to_have_text("Guest: [fr] We move the launch")
            await expect(paragraphs.last.locator("[lang]")).to_have_attribute("lang", "fr")

            pane = await show(page, "reading")
            await pane.get_by_label("Screen reader announces").select_option("de")
            await say(host.page, SENTENCE)
            await expect(paragraphs).to_have_count(heard + 2)
            await expect(paragraphs.last).to_have_text(f"Guest: [de] {SENTENCE}")
            await expect(announcer).not_to_contain_text("before anybody")
            # The transcript itself says nothing by itself.
            transcript = page.get_by_test_id("transcript")
            await expect(transcript).to_have_attribute("aria-live", "off")
            await expect(transcript.locator("[aria-live]:not([aria-live=off]), [role=status]")).to_have_count(0)


# -------------------------------------------------------------------- on a phone


_SMALL = """() => [...document.querySelectorAll("button, select, textarea, input")]
    .filter((control) => control.checkVisibility({ visibilityProperty: true }))
    .map((control) => [control, (control.closest("label") ?? control).getBoundingClientRect()])
    .filter(([, { width, height }]) => width < 44 || height < 43.9)
    .map(([control, { width, height }]) => `${width} x ${height}: ${control.outerHTML.slice(0, 120)}`)"""
_FINE = """() => [...document.querySelectorAll("select, textarea, input:not([type=checkbox], [type=radio])")]
    .filter((control) => control.checkVisibility() && parseFloat(getComputedStyle(control).fontSize) < 16)
    .map((control) => `${getComputedStyle(control).fontSize}: ${control.outerHTML.slice(0, 120)}`)"""


_CROWDED = """() => {
    const parts = [...document.querySelectorAll("header :is(img, h1, button, .status)")]
        .filter((part) => part.checkVisibility()).map((part) => [part, part.getBoundingClientRect()])
        .filter(([, { width }]) => width > 1); // the title of a phone is for screen readers
    const outside = parts.filter(([, { left, right }]) => left < 0 || right > innerWidth);
    const upon = parts.flatMap(([part, one], index) => parts.slice(index + 1)
        .filter(([, other]) => one.left < other.right && other.left < one.right
            && one.top < other.bottom && other.top < one.bottom)
        .map(([other]) => `${part.outerHTML} ${other.outerHTML}`));
    return [...outside.map(([part]) => part.outerHTML), ...upon];
}"""


async def fits(page: Page) -> None:
    """Nothing is wider than the screen, too small for a finger, or so small that a phone zooms in on it."""
    assert await overflow_px(page) == 0
    assert await page.evaluate(_CROWDED) == []
    assert await page.evaluate(_SMALL) == []
    assert await page.evaluate(_FINE) == []


@pytest.mark.parametrize(("name", "device"), [("360", SMALL_PHONE), ("390", PHONE)])
async def test_phone(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path, name: str, device: dict[str, Any]
) -> None:
    async with open_page(gateway.url, **device) as watch:
        page = watch.page
        await connected(page)
        await expect(page.get_by_test_id("side-panel")).to_be_hidden()
        await page.screenshot(path=artifacts / f"page-phone-{name}-welcome.png")
        await fits(page)

        # A sheet opens over the lower part, and closes.
        await page.get_by_test_id("options").tap()
        sheet = page.get_by_test_id("side-panel")
        await expect(sheet).to_be_visible()
        for tab in ("people", "engine", "reading"):
            await page.get_by_test_id(f"tab-{tab}").tap()
            await page.screenshot(path=artifacts / f"page-phone-{name}-{tab}.png")
            await fits(page)
        await page.get_by_test_id("read-zh").tap()
        await expect(page.get_by_test_id("read-zh")).to_be_checked()
        await page.keyboard.press("Escape")
        await expect(sheet).to_be_hidden()
        await page.get_by_test_id("options").tap()
        await page.get_by_test_id("close-panel").tap()
        await expect(sheet).to_be_hidden()

        await page.get_by_test_id("sentences").get_by_role("button").nth(0).tap()
        await settled(page.get_by_test_id("utterance"))
        await page.get_by_test_id("text").tap()
        await page.keyboard.type(LONG)
        await page.get_by_test_id("send").tap()
        await settled(page.get_by_test_id("utterance").nth(1))
        await page.get_by_test_id("shown-zh").tap()
        await expect(cell(page, "zh").last).to_contain_text(LONG)
        await page.screenshot(path=artifacts / f"page-phone-{name}.png")
        await fits(page)
        await page.get_by_test_id("share").tap()
        await expect(page.get_by_role("dialog")).to_be_visible()
        await page.screenshot(path=artifacts / f"page-phone-{name}-share.png")
        await fits(page)


async def test_nothing_keeps_people_out_on_a_phone(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    async with busy_meeting(open_page, gateway.url, **PHONE, color_scheme="dark") as watch:
        page = watch.page
        await page.screenshot(path=artifacts / "page-phone-dark.png")
        await accessible(page)
        await fits(page)
        for tab in ("reading", "people", "engine"):
            await show(page, tab)
            await accessible(page)
        await page.screenshot(path=artifacts / "page-phone-dark-engine.png")
        await page.get_by_test_id("close-panel").click()
        await page.get_by_test_id("share").click()
        await accessible(page)


@pytest.mark.parametrize(("width", "font"), [(680, 100), (700, 100), (1280, 200), (1024, 200)])
async def test_the_title_gives_way(gateway: GatewayProcess, open_page: OpenPage, width: int, font: int) -> None:
    async with open_page(gateway.url, viewport={"width": width, "height": 800}) as watch:
        page = watch.page
        await connected(page)
        await page.evaluate(f"document.documentElement.style.fontSize = '{font}%'")
        assert await page.evaluate(_CROWDED) == []
        assert await overflow_px(page) == 0
        # The line of sentences fades out where it goes on, and not at its end.
        line = page.get_by_test_id("sentences")
        await line.evaluate("(line) => line.scrollTo({ left: line.scrollWidth, behavior: 'instant' })")
        last = await line.get_by_role("button").last.bounding_box()
        whole = await line.bounding_box()
        assert last is not None
        assert whole is not None
        fading_px = 48 * font / 100
        assert last["x"] + last["width"] <= whole["x"] + whole["width"] - fading_px + 1
        assert "gradient" in await line.evaluate("(line) => getComputedStyle(line).maskImage")


# -------------------------------------------------------------------- as it is written


async def test_right_to_left_text_is_shown_so(
    start_gateway: StartGateway, open_page: OpenPage, artifacts: Path
) -> None:
    script = '[engine]\nkind = "simulated"\n[engine.script]\nlanguages = ["en", "ar", "he"]'
    gateway = start_gateway(script).ready()
    async with open_page(gateway.url, **DESKTOP, locale="ar-EG") as watch:
        page = watch.page
        await connected(page)
        pane = await show(page, "reading")
        await expect(pane.get_by_test_id("read-ar")).to_be_checked()
        await pane.get_by_test_id("read-en").set_checked(True)
        await page.get_by_test_id("spoken-lang").select_option("ar")
        said = await say(page, "صباح الخير جميعا")
        await settled(said)
        await expect(original(said)).to_have_css("direction", "rtl")
        await expect(cell(said, "ar")).to_have_css("direction", "rtl")
        await expect(cell(said, "en")).to_have_css("direction", "ltr")
        assert await overflow_px(page) == 0
        await page.screenshot(path=artifacts / "page-right-to-left.png")
        await accessible(page)


async def test_the_first_stops_lead_to_transcript_and_languages(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with open_page(gateway.url, **PHONE) as watch:
        page = watch.page
        await connected(page)
        skip = page.get_by_test_id("skip-transcript")
        await page.keyboard.press("Tab")
        await expect(skip).to_be_focused()
        await expect(skip).to_be_in_viewport(ratio=1)
        await accessible(page)
        await page.keyboard.press("Enter")
        await expect(page.get_by_test_id("transcript")).to_be_focused()
        await skip.focus()
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(page.locator("#pane-reading input").first).to_be_focused()
