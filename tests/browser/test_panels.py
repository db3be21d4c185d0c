"""What stands around a meeting, each part by itself on a page that holds nothing else: what is read, how the page
looks, who is there, how one joins, how others do, and the transcript as a file.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.browser.axe import scan
from tests.conftest import OpenPage
from tests.processes import GatewayProcess
from tests.qr_codes import read_qr_code

pytestmark = pytest.mark.browser

_SET_UP = """async () => {
    const heading = Object.assign(document.createElement("h1"), { textContent: "Panels" });
    const before = Object.assign(document.createElement("button"), { id: "before", textContent: "before" });
    const main = document.createElement("main");
    main.className = "tab";
    main.append(heading, before);
    document.documentElement.dataset.view = "meeting";
    document.body.replaceChildren(main);
    const load = (name) => import(new URL(`/${name}.js`, location.href));
    const panels = [
        "settings/reading_settings", "settings/display_settings", "people/people_list", "people/join_dialog",
        "people/share_dialog", "transcript/transcript_download",
    ].map((path) => `page/${path}`);
    Object.assign(window, ...await Promise.all(["client", ...panels].map(load)));
    const names = { en: "English", ja: "Japanese", es: "Spanish", de: "German", fr: "French", zh: "Chinese" };
    window.languages = Object.entries(names).map(([tag, name]) => ({ tag, name }));
    window.nameOf = (tag) => languages.find((language) => language.tag === tag)?.name ?? tag;
    window.place = (part) => { document.querySelector("main").append(part.element); return part; };
    window.changes = [];
    window.objections = [];
    window.heard = (client, type) =>
        new Promise((resolve) => client.listen((event) => event.type === type && resolve()));
    window.connected = async (options) => {
        const url = new URL("/v1/stream", location.href);
        url.protocol = "ws:";
        const client = new GatewayClient(url.href, options);
        client.connect();
        await heard(client, "session.started");
        return client;
    };
}"""
_READING = """() => {
    window.reading = place(new ReadingSettings({ languages, nameOf, onChange: (value) => changes.push(value) }));
}"""
_PEOPLE = """async (options) => {
    window.client = await connected(options);
    window.people = place(new PeopleList({ client, nameOf }));
}"""
_DOWNLOADS = """(meeting) => place(new TranscriptDownload({
    meeting: () => meeting, languages: () => languages, nameOf, reads: () => ["ja", "en"],
    onProblem: (problem) => objections.push(problem),
}))"""
_SHARE = """(meeting) => {
    const share = new ShareDialog({
        meeting: () => meeting, languages: () => languages, onProblem: (problem) => objections.push(problem),
    });
    document.querySelector("#before").addEventListener("click", () => share.open());
}"""
_JOIN = """(meeting) => {
    window.answer = null;
    void askToJoin({ languages, nameOf, meeting, ...window.limits }).then((answer) => { window.answer = answer; });
}"""
MARKUP = "<img src=x onerror=alert(1)><b>Bo</b>"

OpenBlank = Callable[..., AbstractAsyncContextManager[Page]]


async def blank(page: Page, url: str) -> None:
    """The real page, with its styles and under its policy, but without its script and what is in it."""

    async def nothing(route: Route) -> None:
        await route.fulfill(body="", content_type="text/javascript")

    await page.route("**/app.js", nothing)
    await page.goto(f"{url}/")
    await page.evaluate(_SET_UP)


@pytest.fixture
def open_blank(open_page: OpenPage, gateway: GatewayProcess) -> OpenBlank:
    """A blank page with every part at hand; options are those of a browser context."""

    @asynccontextmanager
    async def opened(*allowed: str, **options: Any) -> AsyncIterator[Page]:
        async with open_page(f"{gateway.url}/healthz", **options) as watch:
            for words in ("favicon.ico", *allowed):
                watch.allow(words)
            await blank(watch.page, gateway.url)
            yield watch.page

    return opened


async def again(page: Page) -> None:
    await page.reload()
    await page.evaluate(_SET_UP)


async def no_objections(page: Page, within: str) -> None:
    found = await scan(page, within)
    assert not found.serious, found
    assert not found.moderate, found


# ---------------------------------------------------------------- reading_settings.js


async def test_what_is_read_is_chosen_by_keyboard_and_remembered(open_blank: OpenBlank) -> None:
    async with open_blank(locale="de-AT") as page:
        await page.evaluate(_READING)
        assert await page.evaluate("reading.value") == {
            "reads": ["de"],
            "stability": "live",
            "originals": True,
            "announce": "de",
        }
        await expect(page.get_by_role("checkbox", name="German Deutsch")).to_be_checked()

        await page.get_by_role("checkbox", name="Japanese 日本語").press("Space")
        await page.get_by_role("radio", name="as early as possible").press("ArrowRight")
        await expect(page.get_by_text("once they can stay")).to_be_visible()
        await page.get_by_role("checkbox", name="Show what was said, too").press("Space")
        await page.get_by_label("Screen reader announces").select_option("Japanese")
        await page.get_by_role("checkbox", name="German Deutsch").press("Space")

        chosen = {"reads": ["ja"], "stability": "stable", "originals": False, "announce": "ja"}
        changes = await page.evaluate("changes")
        assert [change["reads"] for change in changes] == [["de", "ja"]] * 4 + [["ja"]]
        assert changes[-1] == chosen
        # What one begins with next time is what the gateway has taken.
        assert await page.evaluate("localStorage.getItem('reads')") is None
        await page.evaluate("reading.saveLanguages()")
        await again(page)
        await page.evaluate(_READING)
        assert await page.evaluate("reading.value") == chosen
        await no_objections(page, "main")


async def test_without_the_browsers_language_first_two_are_read(open_blank: OpenBlank) -> None:
    async with open_blank(locale="th-TH") as page:
        await page.evaluate(_READING)
        assert await page.evaluate("reading.value.reads") == ["en", "ja"]


async def test_nothing_may_be_read_and_stays_so(open_blank: OpenBlank) -> None:
    async with open_blank(locale="fr-FR") as page:
        await page.evaluate(_READING)
        await page.get_by_test_id("read-fr").uncheck()
        await expect(page.get_by_text("Nothing is translated for you.")).to_be_visible()
        await page.evaluate("reading.saveLanguages()")
        await again(page)
        await page.evaluate(_READING)
        assert await page.evaluate("reading.value.reads") == []
        await page.get_by_test_id("read-es").check()
        assert await page.evaluate("reading.value.announce") == "es"


async def test_a_screen_reader_may_be_kept_quiet(open_blank: OpenBlank) -> None:
    async with open_blank() as page:
        await page.evaluate(_READING)
        await page.get_by_label("Screen reader announces").select_option("Nothing")
        await again(page)
        await page.evaluate(_READING)
        await page.get_by_test_id("read-de").check()
        assert await page.evaluate("reading.value.announce") == ""


async def test_no_more_languages_than_the_gateway_takes(open_blank: OpenBlank) -> None:
    async with open_blank() as page:
        await page.evaluate(_READING)
        await page.evaluate("reading.set({ reads: ['de', 'xx', 'ja', 'en'] })")
        assert await page.evaluate("[reading.value.reads, changes, localStorage.length]") == [
            ["de", "ja", "en"],
            [],
            0,
        ]

        await page.evaluate("reading.limit = 2")
        assert await page.evaluate("[reading.value.reads, changes]") == [["de", "ja"], []]
        await expect(page.get_by_test_id("read-en")).to_be_disabled()
        await expect(page.get_by_test_id("read-ja")).to_be_enabled()
        await expect(page.get_by_role("status")).to_have_text(
            "2 at a time is the most: leave one out to choose another."
        )
        await page.get_by_test_id("read-ja").uncheck()
        await expect(page.get_by_test_id("read-en")).to_be_enabled()
        await expect(page.get_by_role("status")).to_be_empty()


# ---------------------------------------------------------------- display_settings.js


async def test_the_appearance_is_applied_and_remembered(open_blank: OpenBlank) -> None:
    look = """[
        document.documentElement.style.getPropertyValue("--text-scale"),
        document.documentElement.dataset.theme,
        document.documentElement.dataset.contrast ?? null,
    ]"""
    async with open_blank() as page:
        await page.evaluate("place(new DisplaySettings())")
        assert await page.evaluate(look) == ["1", "auto", None]
        larger = page.get_by_role("button", name="Larger text")
        for _ in range(5):
            await larger.press("Enter")
        await expect(page.get_by_role("status")).to_have_text("200 %")
        await expect(larger).to_be_focused()
        await expect(larger).to_have_attribute("aria-disabled", "true")
        await page.get_by_role("button", name="Smaller text").press("Enter")
        await page.get_by_role("radio", name="Automatic").press("ArrowLeft")
        await page.get_by_role("checkbox", name="High contrast").press("Space")
        assert await page.evaluate(look) == ["1.5", "dark", "high"]
        await no_objections(page, "main")

        await again(page)
        await page.evaluate("place(new DisplaySettings())")
        assert await page.evaluate(look) == ["1.5", "dark", "high"]
        await page.get_by_role("checkbox", name="High contrast").press("Space")
        assert await page.evaluate(look) == ["1.5", "dark", None]


# ---------------------------------------------------------------- people_list.js


async def test_who_is_there_and_what_they_do(open_blank: OpenBlank) -> None:
    async with open_blank() as page:
        await page.evaluate(_PEOPLE, {"meeting": "crowd", "name": "Ana", "speaks": "en", "reads": ["ja", "de"]})
        rows = page.get_by_role("list", name="People").get_by_role("listitem")
        await expect(rows).to_have_text(
            ["Ana (you) Rename Speaker · English Reader · Japanese, German"], use_inner_text=True
        )

        await page.evaluate("async () => { window.bo = await connected({ meeting: 'crowd', reads: ['fr'] }); }")
        markup = {"meeting": "crowd", "name": MARKUP, "speaks": "ja"}
        await page.evaluate("async (options) => { window.eve = await connected(options); }", markup)
        await expect(rows).to_have_count(2)
        await expect(rows.nth(1)).to_have_text(f"{MARKUP}Speaker · Japanese")
        await expect(page.get_by_role("heading", name="People 2")).to_be_visible()
        # Captions on a screen are nobody's guest.
        unnamed = page.get_by_test_id("people-unnamed")
        await expect(unnamed).to_have_text("and 1 reader")
        assert await page.locator("main img, main b").count() == 0
        await no_objections(page, "main")

        await page.evaluate("bo.speak('fr')")
        await expect(rows.nth(2)).to_have_text("GuestSpeaker · FrenchReader · French")
        await expect(unnamed).to_have_text("")
        await page.evaluate("bo.read(['es'])")
        await expect(rows.nth(2)).to_have_text("GuestSpeaker · FrenchReader · Spanish")
        await page.evaluate("client.speak(null)")
        await expect(rows.nth(0)).to_have_text("Ana (you) Rename Reader · Japanese, German", use_inner_text=True)
        await page.evaluate("eve.close()")
        await expect(rows).to_have_count(2)
        assert await page.evaluate("people.count") == 2
        await expect(page.get_by_test_id("people-count")).to_have_text("2")


async def test_one_is_renamed_in_place(open_blank: OpenBlank) -> None:
    async with open_blank() as page:
        await page.evaluate(_PEOPLE, {"meeting": "renamed", "name": "", "reads": []})
        await page.evaluate(
            """async () => {
                window.other = await connected({ meeting: "renamed", name: "Bo" });
                window.names = () => [...other.participants.values()].map(({ name }) => name);
            }"""
        )
        own = page.get_by_test_id("own")
        await expect(own).to_contain_text("You")
        await page.get_by_role("button", name="Add your name").press("Enter")
        field = page.get_by_role("textbox", name="Your name")
        await expect(field).to_be_focused()
        await field.fill("Nobody")
        await field.press("Escape")
        await expect(page.get_by_role("button", name="Add your name")).to_be_focused()

        await page.keyboard.press("Enter")
        await field.fill(f" {MARKUP} ")
        await field.press("Enter")
        await expect(page.get_by_role("button", name="Rename")).to_be_focused()
        await expect(own).to_contain_text(f"{MARKUP} (you)")
        assert await page.evaluate("localStorage.getItem('name')") == MARKUP
        while await page.evaluate("names()") != [MARKUP]:
            await asyncio.sleep(0.01)
        assert await page.locator("main img, main b").count() == 0


async def test_a_name_turns_nothing_but_itself(open_blank: OpenBlank) -> None:
    async with open_blank() as page:
        await page.evaluate(_PEOPLE, {"meeting": "turned", "name": "Ana \u202e", "reads": []})
        await page.evaluate("connected({ meeting: 'turned', name: ' ', speaks: 'en' })")
        own = page.get_by_test_id("own")
        places = """(row) => {
            const text = row.querySelector("span").lastChild;
            return ["(", "y", ")"].map((letter) => {
                const at = text.data.indexOf(letter);
                const range = document.createRange();
                range.setStart(text, at);
                range.setEnd(text, at + 1);
                return range.getBoundingClientRect().left;
            });
        }"""
        letters = await own.evaluate(places)
        assert letters == sorted(letters)
        await expect(own.locator("span").first).to_have_text("Ana \u202e (you)")
        rows = page.get_by_role("list", name="People").get_by_role("listitem")
        await expect(rows.nth(1)).to_have_text("GuestSpeaker · English")


async def test_a_crowd_is_not_listed_whole(open_blank: OpenBlank) -> None:
    async with open_blank() as page:
        await page.evaluate(
            """() => {
                const one = { name: "Bo", speaks: null, reads: [] };
                const participants = new Map(["b", "c"].map((id) => [id, { ...one, participant: id }]));
                const limits = { participants_shown: 3, name_chars: 80 };
                place(new PeopleList({ client: { ...one, participants, limits, listen() {} }, nameOf }));
            }"""
        )
        await expect(page.get_by_role("heading", name="People 3+")).to_be_visible()
        await expect(page.get_by_text("and others: no more than 3 are listed.")).to_be_visible()


# ---------------------------------------------------------------- join_dialog.js


async def test_joining_takes_one_answer_then_one_key(open_blank: OpenBlank) -> None:
    """One key is enough the next time."""
    async with open_blank(locale="ja-JP") as page:
        await page.evaluate(_JOIN, "stand-up")
        dialog = page.get_by_role("dialog", name="Join the meeting")
        await expect(dialog).to_contain_text("stand-up")
        name = dialog.get_by_role("textbox", name="Your name")
        await expect(name).to_be_focused()
        await expect(dialog.get_by_role("combobox", name="I read")).to_have_value("ja")
        await no_objections(page, "dialog")
        await name.fill(" Ana ")
        await dialog.get_by_role("combobox", name="I read").select_option("Spanish (español)")
        await dialog.get_by_test_id("join-listen").press("ArrowRight")
        await dialog.get_by_role("button", name="Join").press("Enter")
        await expect(dialog).to_have_count(0)
        answer = {"name": "Ana", "lang": "es", "speaks": True}
        assert await page.evaluate("answer") == answer

        await again(page)
        await page.evaluate(_JOIN, "")
        await expect(name).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(dialog).to_have_count(0)
        assert await page.evaluate("answer") == answer


async def test_a_name_is_no_longer_than_the_gateway_takes(open_blank: OpenBlank) -> None:
    async with open_blank() as page:
        await page.evaluate("localStorage.setItem('name', 'A name that is long')")
        await page.evaluate(_JOIN, "stand-up")
        name = page.get_by_role("dialog").get_by_role("textbox", name="Your name")
        await expect(name).to_have_value("A name that is long")
        await expect(name).to_have_attribute("maxlength", "80")
        await page.evaluate("document.querySelector('dialog').remove()")
        await page.evaluate("window.limits = { nameChars: 6 }")
        await page.evaluate(_JOIN, "stand-up")
        await expect(name).to_have_value("A name")
        await expect(name).to_have_attribute("maxlength", "6")


async def test_joining_needs_an_answer_and_keeps_the_focus(open_blank: OpenBlank) -> None:
    async with open_blank() as page:
        await page.evaluate(_JOIN, "stand-up")
        dialog = page.get_by_role("dialog")
        for _ in range(3):
            await page.keyboard.press("Escape")
            await expect(dialog).to_be_visible()
        await page.mouse.click(5, 5)
        await expect(dialog).to_be_visible()
        assert await focused(page, 8) <= {"dialog", "browser"}
        assert await page.evaluate("answer") is None


async def test_joining_fits_a_phone_with_its_keyboard_open(open_blank: OpenBlank) -> None:
    async with open_blank(viewport={"width": 360, "height": 340}, has_touch=True, is_mobile=True) as page:
        await page.evaluate(_JOIN, "stand-up")
        dialog = page.get_by_role("dialog")
        for control in (dialog.get_by_role("textbox"), dialog.get_by_role("button", name="Join")):
            await expect(control).to_be_in_viewport(ratio=1)
            box = await control.bounding_box()
            assert box is not None
            assert box["height"] >= 44
        assert await page.evaluate("document.documentElement.scrollWidth") == 360
        await dialog.get_by_role("button", name="Join").tap()
        await expect(dialog).to_have_count(0)


@pytest.mark.parametrize(("width", "height"), [(844, 390), (667, 320), (390, 844), (360, 340)])
async def test_join_covers_no_choice(open_blank: OpenBlank, width: int, height: int, artifacts: Path) -> None:
    async with open_blank(viewport={"width": width, "height": height}, has_touch=True) as page:
        await page.evaluate(_JOIN, "stand-up")
        dialog = page.get_by_role("dialog")
        await page.screenshot(path=artifacts / f"join-{width}.png")
        choice = dialog.get_by_text("speak and read", exact=True)
        await choice.scroll_into_view_if_needed()
        box = await choice.bounding_box()
        assert box is not None
        await page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        await expect(dialog).to_be_visible()
        await expect(dialog.get_by_label("speak and read")).to_be_checked()
        join = dialog.get_by_role("button", name="Join")
        await expect(join).to_be_in_viewport(ratio=1)
        await join.tap()
        await expect(dialog).to_have_count(0)


async def focused(page: Page, tabs: int) -> set[str]:
    """Where the focus goes: into the dialog, to the browser's own controls, or to the page behind."""
    places = set()
    for _ in range(tabs):
        await page.keyboard.press("Tab")
        places.add(
            await page.evaluate(
                """document.activeElement.closest("dialog") ? "dialog"
                    : document.activeElement === document.body ? "browser" : "behind" """
            )
        )
    return places


# ---------------------------------------------------------------- share_dialog.js


async def test_the_link_is_copied_and_drawn(open_blank: OpenBlank, gateway: GatewayProcess) -> None:
    async with open_blank(permissions=["clipboard-read", "clipboard-write"]) as page:
        await page.evaluate(_SHARE, "stand-up")
        before = page.locator("#before")
        await before.press("Enter")
        dialog = page.get_by_role("dialog", name="Share this meeting")
        link = f"{gateway.url}/?meeting=stand-up"
        await expect(dialog.get_by_role("textbox", name="Meeting link")).to_have_value(link)
        code = dialog.get_by_role("img", name="QR code of the meeting link")
        assert await read_code(code) == link
        await dialog.get_by_role("button", name="Copy: Meeting link").press("Enter")
        await expect(dialog.get_by_role("status").filter(has_text="Copied")).to_have_count(1)
        assert await page.evaluate("navigator.clipboard.readText()") == link
        await expect(dialog.get_by_test_id("share-warning")).to_contain_text("on this computer alone")
        await no_objections(page, "dialog")


async def read_code(image: Locator) -> str:
    return read_qr_code(await image.screenshot())


async def test_wall_captions_have_a_link_of_their_own(open_blank: OpenBlank, gateway: GatewayProcess) -> None:
    async with open_blank() as page:
        await page.evaluate(_SHARE, "stand-up")
        await page.locator("#before").click()
        captions = page.get_by_role("textbox", name="Captions link")
        await page.get_by_label("Language").select_option("German (Deutsch)")
        await page.get_by_label("Lines").select_option("3")
        await page.get_by_label("Text size").select_option("Large")
        await expect(captions).to_have_value(
            f"{gateway.url}/?meeting=stand-up&view=captions&lang=de&lines=3&size=3.5"
        )


async def test_without_a_clipboard_the_link_is_selected(open_blank: OpenBlank) -> None:
    async with open_blank() as page:
        await page.evaluate(_SHARE, "stand-up")
        await page.evaluate(
            """() => {
                Object.defineProperty(navigator, "clipboard", { value: undefined });
                document.execCommand = () => false;
            }"""
        )
        await page.locator("#before").click()
        # It takes its place when it comes, and what is below it moves.
        await expect(page.get_by_role("img", name="QR code of the meeting link")).to_be_visible()
        await page.get_by_role("button", name="Copy: Captions link").click()
        await expect(page.get_by_text("Selected: press Ctrl+C")).to_be_visible()
        captions = page.get_by_role("textbox", name="Captions link")
        await expect(captions).to_be_focused()
        assert await captions.evaluate(
            "(field) => field.selectionEnd - field.selectionStart === field.value.length"
        )


async def test_sharing_closes_every_way_and_gives_the_focus_back(open_blank: OpenBlank) -> None:
    async with open_blank() as page:
        await page.evaluate(_SHARE, "stand-up")
        before = page.locator("#before")
        dialog = page.get_by_role("dialog")

        async def by_key() -> None:
            await page.keyboard.press("Escape")

        async def by_button() -> None:
            await page.get_by_role("button", name="Close").press("Enter")

        async def beside() -> None:
            await page.mouse.click(5, 5)

        for close in (by_key, by_button, beside):
            await before.press("Enter")
            await expect(dialog).to_be_visible()
            assert await focused(page, 12) <= {"dialog", "browser"}
            await close()
            await expect(dialog).to_have_count(0)
            await expect(before).to_be_focused()

        await before.press("Enter")
        await page.get_by_role("heading", name="Captions for OBS").hover()
        await page.mouse.down()
        await page.mouse.move(5, 5)
        await page.mouse.up()
        await expect(dialog).to_be_visible()


@pytest.mark.parametrize("width", [320, 360])
async def test_sharing_fits_a_phone(open_blank: OpenBlank, width: int) -> None:
    async with open_blank(viewport={"width": width, "height": 640}, has_touch=True, is_mobile=True) as page:
        await page.evaluate(_SHARE, "stand-up")
        await page.locator("#before").tap()
        dialog = page.get_by_role("dialog")
        # What comes late moves what is below it.
        await expect(page.get_by_role("img", name="QR code of the meeting link")).to_be_visible()
        assert await dialog.evaluate("(dialog) => dialog.scrollWidth - dialog.clientWidth") == 0
        await dialog.evaluate("(dialog) => dialog.scrollTo(0, dialog.scrollHeight)")
        await expect(page.get_by_role("button", name="Close")).to_be_in_viewport(ratio=1)


# ---------------------------------------------------------------- transcript_download.js


async def hold_meeting(page: Page, meeting: str) -> None:
    """One sentence is said in a meeting, and translated."""
    await page.evaluate(
        """async (meeting) => {
            const client = await connected({ meeting, name: "Ana", speaks: "en", reads: ["ja"] });
            client.final({ text: "Good morning.", lang: "en" });
            await heard(client, "translation.final");
            client.close();
        }""",
        meeting,
    )


async def download(page: Page) -> tuple[str, str]:
    """The file's name and what is in it."""
    async with page.expect_download() as started:
        await page.get_by_role("button", name="Download").click()
    file = await started.value
    return file.suggested_filename, (await asyncio.to_thread(Path(await file.path()).read_text))


async def test_transcript_is_saved_under_its_own_name(open_blank: OpenBlank) -> None:
    async with open_blank() as page:
        await hold_meeting(page, "saved")
        await page.evaluate(_DOWNLOADS, "saved")
        await no_objections(page, "main")
        assert await download(page) == ("saved.txt", "[00:00:00] Ana: Good morning.\n")
        await expect(page.get_by_role("status")).to_have_text("Saved as saved.txt")

        await page.get_by_label("Format").select_option("Web subtitles (.vtt)")
        await page.get_by_label("Language").select_option("Japanese")
        async with page.expect_request("**/transcript.vtt*") as asked:
            name, content = await download(page)
        assert (name, content.splitlines()[-1]) == ("saved.ja.vtt", "<v Ana>[ja] Good morning.")
        # Which translations are unsure is in every format.
        assert "mark=unsure" in (await asked.value).url

        await page.get_by_label("Language").select_option("All I read, side by side")
        await page.get_by_label("Format").select_option("Text (.txt)")
        name, content = await download(page)
        assert name == "saved.ja-en.txt"
        assert content == "[00:00:00] Ana\n  [ja] [ja] Good morning.\n  [en] Good morning.\n\n"

        await page.get_by_label("Format").select_option("Data (.json)")
        await page.get_by_label("Language").select_option("Every language")
        name, content = await download(page)
        assert (name, json.loads(content)["languages"]) == ("saved.json", ["ja"])
        assert await page.evaluate("objections") == []


async def test_what_cannot_be_saved_is_said(open_blank: OpenBlank) -> None:
    async with open_blank("404") as page:
        await page.evaluate(_DOWNLOADS, "nobody-came")
        await page.get_by_role("button", name="Download").press("Enter")
        while not (said := await page.evaluate("objections")):
            await asyncio.sleep(0.01)
        assert said == ["There is no log of a meeting 'nobody-came': it never existed, or has expired."]
        await expect(page.get_by_role("status")).to_be_empty()


async def test_lost_gateway_and_future_meeting_are_announced(open_blank: OpenBlank) -> None:
    async with open_blank("ERR_INTERNET_DISCONNECTED") as page:
        await page.evaluate(_DOWNLOADS, "")
        await page.get_by_role("button", name="Download").click()
        assert await page.evaluate("objections") == ["There is no meeting yet."]
        await page.evaluate("document.querySelector('.panel').remove()")
        await page.evaluate(_DOWNLOADS, "stand-up")
        await page.context.set_offline(True)
        await page.get_by_role("button", name="Download").click()
        while len(said := await page.evaluate("objections")) < 2:
            await asyncio.sleep(0.01)
        assert said[1] == "The gateway does not answer."
