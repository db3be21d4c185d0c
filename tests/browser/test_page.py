"""The page at `/` as one person uses it, in a real browser against a real gateway process."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.conftest import SCRIPT, StartGateway, kill
from tests.browser.pages import (
    DESKTOP,
    LANGUAGES,
    PHONE,
    SENTENCE,
    captions,
    captions_connected,
    cell,
    choose_stability,
    connected,
    join,
    meeting_of,
    new_meeting,
    original,
    overflow_px,
    read,
    received,
    row,
    say,
    seen_by,
    sent,
    settled,
    share_typing,
    show,
    stop_the_clock,
    type_words,
    until,
    witness,
)
from tests.conftest import OpenPage, Watch
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser

WORDS = ("We", "move", "the", "launch", "to", "next", "Friday")
TYPED = " ".join(WORDS)


async def chosen(page: Page) -> set[str]:
    """The languages that are chosen to be read."""
    pane = await show(page, "reading")
    return {tag for tag in LANGUAGES if await pane.get_by_test_id(f"read-{tag}").is_checked()}


# -------------------------------------------------------------------- the first minute


async def test_a_sample_meeting_is_one_click_away(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    async with open_page(gateway.url, **DESKTOP) as watch:
        page = watch.page
        await connected(page)
        assert re.fullmatch(r"[a-z2-9]{4}(-[a-z2-9]{4}){2}", meeting_of(page))
        await expect(page.get_by_role("heading", level=2)).to_contain_text("Everyone speaks their language")
        before = await chosen(page)
        await choose_stability(page, "stable")

        await page.get_by_role("button", name="Play a sample meeting").click()
        rows = page.get_by_test_id("utterance")
        await expect(page.get_by_test_id("tab-people")).to_have_text(re.compile("People [3-9]"))
        await expect(rows.nth(2)).to_be_visible()
        await expect(page.get_by_role("heading", level=2)).to_be_hidden()
        first = rows.first
        for lang in LANGUAGES:
            text = cell(first, lang)
            await expect(text).to_have_attribute("data-state", "final")
            # What was said stands in the column of its own language.
            spoken = await first.get_by_text(", as spoken").count()
            assert spoken == 1
        speakers = {await rows.nth(index).locator(".voice-name").inner_text() for index in range(3)}
        assert len(speakers) >= 2
        await page.screenshot(path=artifacts / "page-sample.png")

        await page.get_by_role("button", name="Stop sample").click()
        await expect(page.get_by_test_id("tab-people")).to_have_text("People 1")
        await expect(page.get_by_role("button", name="Sample meeting")).to_be_visible()
        # One reads what one read before.
        assert await chosen(page) == before
        await expect(page.get_by_test_id("stability-stable")).to_be_checked()
        await expect(rows.first.locator("[data-testid^=cell-]")).to_have_count(len(before))
        await expect(page.get_by_test_id("alert")).to_be_hidden()


async def test_the_welcome_leads_to_speaking_and_to_inviting(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await connected(page)
        await page.get_by_role("button", name="Invite people").click()
        share = page.get_by_role("dialog", name="Share this meeting")
        await expect(share.get_by_label("Meeting link", exact=True)).to_have_value(page.url)
        await expect(share.get_by_role("img", name="QR code of the meeting link")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(share).to_have_count(0)
        await page.get_by_role("button", name="Say something").click()
        await expect(page.get_by_test_id("text")).to_be_focused()


async def test_a_typed_sentence_is_translated_into_the_chosen_languages(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    async with open_page(gateway.url, **DESKTOP) as watch:
        page = watch.page
        await read(page, "ja", "de")
        said = await say(page, SENTENCE)
        await settled(said)

        assert watch.finals() == {"ja": f"[ja] {SENTENCE}", "de": f"[de] {SENTENCE}"}
        await expect(original(said)).to_have_text(SENTENCE)
        await expect(original(said)).to_have_attribute("lang", "en")
        for lang, text in watch.finals().items():
            translation = cell(said, lang)
            await expect(translation).to_have_text(text)
            await expect(translation).to_have_attribute("lang", lang)
            [final] = [frame for frame in received(watch, "translation.final") if frame["lang"] == lang]
            first_ms = await translation.get_attribute("data-first-token-ms")
            assert float(first_ms or "nan") == final["timings"]["first_token_ms"]
            await expect(translation).to_have_attribute("title", re.compile(rf"{final['tokens']} tokens"))
        await expect(said.locator("[data-testid^=cell-]")).to_have_count(2)
        await expect(said.get_by_test_id("cancel")).to_be_hidden()
        await expect(page.get_by_test_id("text")).to_have_value("")
        await expect(page.get_by_test_id("alert")).to_be_hidden()
        await page.screenshot(path=artifacts / "page-meeting.png")


# -------------------------------------------------------------------- waiting for the engine


async def test_page_announces_engine_loading_and_opens_by_itself(
    start_gateway: StartGateway, open_page: OpenPage, artifacts: Path
) -> None:
    gateway = start_gateway('[engine]\nkind = "simulated"\n[engine.script]\nload_s = 3_600')
    async with open_page(gateway.url, **DESKTOP) as watch:
        watch.allow("ERR_CONNECTION_REFUSED")
        page = watch.page
        await expect(page.get_by_test_id("loading")).to_contain_text("The engine is loading")
        await expect(page.get_by_test_id("loading-reason")).to_contain_text("The simulated engine is loading")
        await expect(page.get_by_test_id("loading-elapsed")).to_have_text(re.compile(r"^[1-9]\d* s$"))
        await expect(page.get_by_test_id("status")).to_have_text("Engine loading")
        await expect(page.get_by_test_id("composer")).to_be_hidden()
        await page.screenshot(path=artifacts / "page-loading.png")

        # However long this test has taken: there is one that has loaded.
        kill(gateway)
        start_gateway(port=gateway.port)
        await connected(page)
        await expect(page.get_by_test_id("composer")).to_be_visible()
        await expect(page.get_by_test_id("loading")).to_be_hidden()
        await read(page, "fr")
        await settled(await say(page, SENTENCE))


def unready(status: str, reason: str) -> dict[str, Any]:
    return {"status": 200, "json": {"status": status, "reason": reason}}


async def test_a_loading_engine_is_asked_less_and_less_often(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(f"{gateway.url}/healthz") as watch:
        watch.allow("favicon.ico")
        page = watch.page
        asked: list[str] = []

        async def loading(route: Route) -> None:
            asked.append(route.request.url)
            await route.fulfill(**unready("starting", "still loading"))

        async def passed_until_asked(times: int) -> int:
            """How many ms pass on the page, 100 at once."""
            passed_ms = 0
            while len(asked) < times:
                await page.clock.run_for(100)
                passed_ms += 100
            return passed_ms

        await page.route("**/readyz*", loading)
        await page.goto(gateway.url)
        await stop_the_clock(page)
        # The first pause may have begun before the clock stood.
        await passed_until_asked(2)
        for least_ms in (2_000, 3_000, 3_000):
            assert await passed_until_asked(len(asked) + 1) >= least_ms - 100


async def test_a_failed_engine_is_shown_with_its_reason(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    async with open_page(f"{gateway.url}/healthz", **PHONE) as watch:
        page = watch.page
        watch.allow("favicon.ico")
        await page.route(
            "**/readyz*", lambda route: route.fulfill(**unready("failed", "the engine ran out of memory"))
        )
        await page.goto(gateway.url)
        await expect(page.get_by_test_id("loading")).to_contain_text("The engine has failed")
        await expect(page.get_by_test_id("loading-reason")).to_have_text("The engine ran out of memory.")
        await expect(page.get_by_test_id("status")).to_have_text("Engine failed")
        assert await overflow_px(page) == 0
        await page.screenshot(path=artifacts / "page-phone-failed.png")

        await page.unroute("**/readyz*")
        await connected(page)
        await expect(page.get_by_test_id("loading")).to_be_hidden()


async def test_an_engine_that_dies_in_the_meeting_loses_nothing(
    start_gateway: StartGateway, open_page: OpenPage
) -> None:
    rules = '[[engine.script.rules]]\nmatch = "crash"\ncrash_after = 1\n'
    gateway = start_gateway(SCRIPT + rules).ready()
    async with open_page(gateway.url) as watch:
        page = watch.page
        await read(page, "fr")
        await say(page, "This one will crash it")
        # The gateway starts it again, and nothing that was accepted is lost.
        await expect(cell(row(page, "crash it"), "fr")).to_have_text("[fr] This one will crash it")
        await settled(await say(page, SENTENCE))


# -------------------------------------------------------------------- saying something


async def test_a_sentence_is_picked_and_said_word_by_word(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await page.get_by_test_id("spoken-lang").select_option("ja")
        await read(page, "en", "zh")
        chip = page.get_by_test_id("sentences").get_by_role("button").nth(5)
        sentence = await chip.inner_text()
        await chip.focus()
        # So that it cannot be said to its end before anybody looks.
        await stop_the_clock(page)
        await page.keyboard.press("Enter")
        said = page.get_by_test_id("utterance")
        await until(lambda: bool(captions(watch)))
        await page.clock.run_for(100)
        await expect(said).to_have_attribute("data-state", "speaking")
        await page.clock.resume()
        await settled(said)
        await expect(cell(said, "zh")).to_have_text(f"[zh] {sentence}")
        await expect(cell(said, "en")).to_have_text(f"[en] {sentence}")
        await expect(original(said)).to_have_text(sentence)
        await expect(original(said)).to_have_attribute("lang", "ja")
        # A word longer each time; its last word once.
        partials = [frame["text"] for frame in sent(watch, "utterance.partial")]
        assert len(partials) > 1
        assert all(later.startswith(earlier) for earlier, later in pairwise([*partials, sentence]))
        assert [frame["text"] for frame in sent(watch, "utterance.final")] == [sentence]


async def test_enter_sends_and_shift_enter_begins_a_new_line(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await connected(page)
        text = page.get_by_test_id("text")
        await text.fill("One")
        await text.press("Shift+Enter")
        await text.press_sequentially("Two")
        await expect(text).to_have_value("One\nTwo")
        await text.press("Enter")
        await expect(original(page)).to_have_text(["One", "Two"])
        await text.press("Enter")
        await expect(page.get_by_test_id("composer-note")).to_contain_text("Type something first")
        assert len(sent(watch, "utterance.final")) == 1


async def test_what_an_input_method_composes_is_no_text_yet(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await connected(page)
        await page.get_by_test_id("spoken-lang").select_option("ja")
        await read(page, "en")
        await share_typing(page)
        await page.get_by_test_id("text").focus()
        typing = await page.context.new_cdp_session(page)
        for text in ("k", "か", "かい", "かいぎ"):
            await typing.send("Input.imeSetComposition", {"text": text, "selectionStart": 1, "selectionEnd": 1})
        await typing.send("Input.insertText", {"text": "会議"})
        await until(lambda: bool(captions(watch)))
        await page.keyboard.press("Enter")
        await settled(row(page, "会議"))
        assert {frame["text"] for frame in sent(watch, "utterance.partial")} == {"会議"}
        assert [frame["text"] for frame in sent(watch, "utterance.final")] == ["会議"]


async def test_markup_is_shown_as_text(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await read(page, "fr")
        typed = ("<img src=x onerror=document.title=1>", *(f"<b>{word}</b>" for word in WORDS))
        said = page.get_by_test_id("utterance")
        await type_words(watch, *typed, into="fr")
        # What stays, and what may change.
        await expect(cell(said, "fr")).to_contain_text("[fr] <img src=x onerror")
        await expect(original(said)).to_have_text(" ".join(typed))
        await page.keyboard.press("Enter")
        await settled(said)
        await expect(cell(said, "fr")).to_have_text(f"[fr] {' '.join(typed)}")
        markup = '<img src=x onerror="document.title=1"> &amp; <script>document.title=2</script>'
        await page.get_by_test_id("text").fill(markup)
        await page.keyboard.press("Enter")
        await settled(said.nth(1))
        await expect(cell(said.nth(1), "fr")).to_have_text(f"[fr] {markup}")
        await expect(said.locator("img, b, script")).to_have_count(0)
        await expect(page).to_have_title("Translation Gateway")


async def test_a_running_translation_can_be_cancelled(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await read(page, "fr")
        said = await say(page, "This one will stall for ever")
        await expect(cell(said, "fr")).to_have_text("[fr] This one will")
        await said.get_by_role("button", name="Cancel this translation").click()
        await expect(said).to_contain_text("The utterance was cancelled.")
        await settled(said)
        await expect(said.get_by_test_id("cancel")).to_be_hidden()
        # What was there stays to be read, and the next utterance goes through.
        await expect(cell(said, "fr")).to_have_text("[fr] This one will")
        await settled(await say(page, SENTENCE))
        await expect(page.get_by_test_id("alert")).to_be_hidden()


async def test_a_translation_that_fails_says_why(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await read(page, "fr")
        said = await say(page, "This one will fail")
        await settled(said)
        [failed] = received(watch, "translation.failed")
        await expect(said).to_contain_text(failed["message"])
        await expect(cell(said, "fr")).to_have_attribute("data-state", "failed")


async def test_what_cannot_be_sent_is_said_in_an_alert(start_gateway: StartGateway, open_page: OpenPage) -> None:
    gateway = start_gateway(SCRIPT + "\n[limits]\nmessage_bytes = 4096").ready()
    async with open_page(gateway.url) as watch:
        page = watch.page
        await read(page, "fr")
        await page.get_by_test_id("text").fill("語" * 1999)
        await page.get_by_test_id("send").click()
        alert = page.get_by_test_id("alert")
        await expect(alert).to_contain_text("too long to be sent")
        assert sent(watch, "utterance.final") == []
        await alert.get_by_role("button", name="Dismiss").click()
        await expect(alert).to_be_hidden()
        await settled(await say(page, SENTENCE))


@pytest.mark.parametrize("device", ["desktop", "phone"])
async def test_too_long_text_stays_in_the_field(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path, device: str
) -> None:
    async with open_page(gateway.url, **{"desktop": DESKTOP, "phone": PHONE}[device]) as watch:
        page = watch.page
        text, send, note = (page.get_by_test_id(name) for name in ("text", "send", "composer-note"))
        await connected(page)
        await expect(note).to_be_empty()
        await text.fill("x" * 2001)
        await expect(page.get_by_test_id("count")).to_have_text("2001 of 2000")
        await expect(note).to_contain_text("Too long to send")
        await expect(text).to_have_attribute("aria-invalid", "true")
        await expect(send).to_be_disabled()
        await text.press("Enter")
        await expect(text).to_have_value("x" * 2001)
        await expect(page.get_by_test_id("utterance")).to_have_count(0)
        assert await overflow_px(page) == 0
        await page.screenshot(path=artifacts / f"page-too-long-{device}.png")

        await text.press("Backspace")
        await expect(note).to_be_empty()
        await expect(text).to_have_attribute("aria-invalid", "false")
        # What surrounds a text is not sent.
        await text.press("Shift+Enter")
        await send.click()
        # It has no end, and so it is shown in parts.
        await expect(page.get_by_test_id("utterance")).not_to_have_count(0)
        while "".join(await original(page).all_text_contents()) != "x" * 2000:
            await page.wait_for_timeout(20)
        assert [frame["text"] for frame in sent(watch, "utterance.final")] == ["x" * 2000]
        assert await overflow_px(page) == 0


async def test_bundled_model_is_said_to_know_sample_sentences(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with open_page(gateway.url, **PHONE) as watch:
        page = watch.page
        demo_model, line = page.get_by_test_id("demo-model"), page.locator(".empty-state").get_by_test_id("model")
        await connected(page)
        await expect(demo_model).to_be_hidden()
        await expect(line).to_have_text("Translated by simulated.")

        async def bundled(route: Route) -> None:
            response = await route.fetch()
            await route.fulfill(response=response, json=await response.json() | {"family": "bundled"})

        await page.route("**/v1/languages", bundled)
        await page.reload()
        await expect(demo_model).to_be_visible()
        await expect(demo_model).to_contain_text("what it is not certain of, it marks as unsure.")
        await connected(page)
        command = "make demo MODEL=tencent/HY-MT1.5-1.8B"
        await expect(line).to_have_text(
            f"Translated by the small demo model. For a real one, in a terminal: {command}"
        )
        await expect(line.locator(".model-next")).to_be_hidden()
        assert await overflow_px(page) == 0
        await expect((await show(page, "engine")).get_by_test_id("model")).to_contain_text(command)
        # A guest has not started the gateway.
        async with open_page(f"{gateway.url}/?meeting={new_meeting()}", **PHONE) as guest:
            await guest.page.route("**/v1/languages", bundled)
            await guest.page.reload()
            await join(guest.page, "Bo")
            await expect(guest.page.locator(".empty-state").get_by_test_id("model")).to_have_text(
                "Translated by the small demo model."
            )


# -------------------------------------------------------------------- while it is being said


async def test_typing_shows_a_translation_before_enter(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await read(page, "fr")
        await witness(page, "cell-fr", "tentative-fr")
        await type_words(watch, *WORDS, into="fr")

        said = page.get_by_test_id("utterance")
        await expect(said).to_have_count(1)
        await expect(original(said)).to_have_text(TYPED)
        await expect(original(said)).to_have_attribute("data-state", "growing")
        await expect(cell(said, "fr")).to_contain_text("[fr] We move the launch")
        # What may change is marked as such.
        assert any(await seen_by(page, "tentative-fr"))
        colours = await page.evaluate("""() => {
            const tail = document.querySelector('[data-testid="tentative-fr"]');
            return [getComputedStyle(tail).color, getComputedStyle(tail.parentElement).color];
        }""")
        assert colours[0] != colours[1]
        assert sent(watch, "utterance.final") == []

        await page.keyboard.press("Enter")
        await settled(said)
        await expect(said).to_have_count(1)
        await expect(cell(said, "fr")).to_have_text(f"[fr] {TYPED}")
        await expect(said.get_by_test_id("tentative-fr")).to_be_empty()
        await expect(original(said)).to_have_attribute("data-state", "final")
        [final] = sent(watch, "utterance.final")
        revisions = [partial["rev"] for partial in sent(watch, "utterance.partial")]
        assert {partial["id"] for partial in sent(watch, "utterance.partial")} == {final["id"]}
        assert revisions == list(range(1, final["rev"]))


async def test_changed_stability_applies_at_once_and_is_remembered(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await read(page, "fr")
        await expect(page.get_by_test_id("stability-live")).to_be_checked()
        modes = page.get_by_role("group", name="Show translations")
        await expect(modes).to_contain_text("may change")
        await type_words(watch, *WORDS, into="fr")
        translation = cell(page, "fr")
        tail = page.get_by_test_id("tentative-fr")
        newest = sent(watch, "utterance.partial")[-1]["rev"]
        await until(lambda: any(delta["rev"] == newest for delta in received(watch, "translation.delta")))
        stays = "".join(delta["committed"] for delta in received(watch, "translation.delta"))
        early = stays + received(watch, "translation.delta")[-1]["tentative"]
        assert len(early) >= len(stays) > 0
        await expect(translation).to_have_text(early)

        await page.get_by_test_id("stability-stable").check()
        await expect(modes).to_contain_text("none is taken back")
        # More of it stays each time that readers have waited for four seconds.
        await expect(translation).to_have_text(re.compile(rf"^\s*{re.escape(stays.strip())}"))
        await expect(tail).to_be_empty()
        # At once, and not when the gateway has heard of it.
        at_once = await page.evaluate(
            """() => {
                document.querySelector("[data-testid=stability-final]").click();
                return document.querySelector("[data-testid=cell-fr]").textContent;
            }"""
        )
        assert at_once == ""
        await expect(modes).to_contain_text("Nothing before the sentence is finished")
        await expect(translation).to_be_empty()
        await until(lambda: [frame["stability"] for frame in received(watch, "session.updated")][-1] == "final")
        await page.get_by_test_id("stability-live").check()
        await expect(translation).to_have_text(re.compile(rf"^\s*{re.escape(early.strip())}"))

        await page.get_by_test_id("stability-stable").check()
        await until(lambda: [frame["stability"] for frame in received(watch, "session.updated")][-1] == "stable")
        await page.reload()
        await connected(page)
        await expect(page.get_by_test_id("stability-stable")).to_be_checked()
        assert await chosen(page) == {"fr"}
        assert [start["stability"] for start in sent(watch, "session.start")] == ["live", "stable"]


async def test_a_field_that_is_cleared_leaves_nothing_behind(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await read(page, "fr")
        rows = page.get_by_test_id("utterance")
        await type_words(watch, *WORDS, into="fr")
        await expect(cell(page, "fr")).to_contain_text("[fr] We move the launch")
        await page.get_by_test_id("text").clear()
        await expect(rows).to_have_count(0)

        # A correction goes on with the same utterance; another sentence is another one.
        await type_words(watch, "Could", "you", "repaet")
        for _ in "aet":
            await page.keyboard.press("Backspace")
        await page.keyboard.type("eat that")
        await until(lambda: captions(watch)[-1] == "Could you repeat that")
        await expect(rows).to_have_count(1)
        await expect(cell(page, "fr")).not_to_contain_text("launch")
        await page.keyboard.press("ControlOrMeta+A")
        await page.keyboard.type("Nothing at all")
        await until(lambda: captions(watch)[-1] == "Nothing at all")
        await page.keyboard.press("Enter")
        await settled(rows)
        await expect(cell(page, "fr")).to_have_text("[fr] Nothing at all")

        ids = list(dict.fromkeys(partial["id"] for partial in sent(watch, "utterance.partial")))
        assert len(ids) == 3
        assert [final["id"] for final in sent(watch, "utterance.final")] == ids[2:]
        await expect(page.get_by_test_id("alert")).to_be_hidden()


async def test_languages_can_be_chosen_while_something_is_being_typed(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await read(page, "fr", "es")
        await type_words(watch, *WORDS, into="fr")
        await expect(cell(page, "fr")).to_contain_text("[fr] We move the launch")
        await page.get_by_test_id("read-es").uncheck()
        await page.get_by_test_id("read-de").check()
        await expect(cell(page, "es")).to_have_count(0)
        await until(lambda: received(watch, "session.updated")[-1]["reads"] == ["fr", "de"])
        await type_words(watch, "good", "morning", into="de")
        await expect(cell(page, "fr")).to_contain_text("[fr] We move the launch")
        await expect(cell(page, "de")).to_contain_text("[de] We move")
        await page.get_by_test_id("send").click()
        await settled(page.get_by_test_id("utterance"))
        await expect(cell(page, "de")).to_have_text(f"[de] {TYPED} good morning")


# -------------------------------------------------------------------- the engine at work, and the page itself


async def test_the_engine_is_seen_at_work_under_load(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    async with open_page(gateway.url, **DESKTOP) as watch:
        page = watch.page
        await read(page, "fr")
        await settled(await say(page, SENTENCE))
        pane = await show(page, "engine")
        for measure in ("first-token-p50", "total-p99"):
            await expect(pane.get_by_test_id(measure)).to_have_text(re.compile(r"\d ms$"))
        await pane.get_by_role("button", name="Add 5 speakers").click()
        await expect(pane.get_by_test_id("load-count")).to_have_text("5 simulated speakers")
        await expect(pane.get_by_test_id("languages-running").get_by_role("listitem").nth(1)).to_be_visible()
        await page.screenshot(path=artifacts / "page-engine.png")
        # They talk in meetings of their own.
        await expect(page.get_by_test_id("utterance")).to_have_count(1)
        # The browser complains of one that is stopped while it connects.
        while sum(message["type"] == "session.started" for message in watch.received) < 1 + 5:
            await asyncio.sleep(0.05)
        await pane.get_by_role("button", name="Stop").click()
        await expect(pane.get_by_test_id("load-count")).to_have_text("No simulated speakers")
        await expect(page.get_by_test_id("alert")).to_be_hidden()


async def test_blocked_markup_script_fails_the_test(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async def visit(body: str) -> Watch:
        async with open_page(f"{gateway.url}/healthz") as watch:
            watch.allow("favicon.ico")
            watch.allow("WebSocket")  # a document that did not come from the network may not open one

            async def tampered(route: Route) -> None:
                response = await route.fetch()
                await route.fulfill(response=response, body=(await response.text()).replace("<body>", body))

            await watch.page.route(f"{gateway.url}/", tampered)
            await watch.page.goto(gateway.url)
            await watch.page.get_by_role("heading", level=1).click()
            await expect(watch.page).to_have_title("Translation Gateway")
        return watch

    with pytest.raises(AssertionError, match="Content Security Policy"):
        await visit('<body onclick="document.title = 1">')
    assert (await visit("<body>")).complaints() == []


async def test_page_comes_in_few_small_files(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        await connected(watch.page)
        await watch.page.evaluate("document.fonts.ready.then(() => true)")
        # A picture that stands twice on the page comes once.
        sizes: dict[str, int] = await watch.page.evaluate(
            """Object.fromEntries(performance.getEntries()
                .filter((entry) => entry.initiatorType !== "fetch" && entry.encodedBodySize > 0)
                .map((entry) => [entry.name, entry.encodedBodySize]))"""
        )
        assert 3 < len(sizes) <= 8
        faces = sum(size for name, size in sizes.items() if name.endswith(".woff2"))
        assert sum(sizes.values()) - faces < 85_000
        assert 0 < faces < 38_000


async def test_frame_stands_until_the_scripts_come(gateway: GatewayProcess, open_page: OpenPage) -> None:
    come = asyncio.Event()

    async def late(route: Route) -> None:
        await come.wait()
        await route.continue_()

    async with open_page(f"{gateway.url}/healthz", **PHONE) as watch:
        page = watch.page
        watch.allow("favicon.ico")
        frame, header = page.locator(".skeleton"), page.locator(".bar")
        await page.route("**/app.js", late)
        await page.goto(f"{gateway.url}/?view=captions&meeting={new_meeting()}&lang=en", wait_until="commit")
        await expect(frame).to_be_attached()
        await expect(frame).to_be_hidden()
        await expect(header).to_be_hidden()
        await page.goto(f"{gateway.url}/?meeting={new_meeting()}", wait_until="commit")
        await expect(frame).to_be_visible()
        await expect(header).to_be_visible()
        assert await overflow_px(page) == 0
        come.set()
        await expect(page.get_by_test_id("join")).to_be_visible()
        await expect(frame).to_be_hidden()
        await join(page)
        await expect(frame).to_be_hidden()


# -------------------------------------------------------------------- languages that are not translated into all

FEW_PAIRS = """
[[engines]]
name = "one"
kind = "simulated"
pairs = ["en-ja", "de-ja", "ja-en"]
"""


async def test_a_reader_sees_from_which_languages_one_is_translated(
    start_gateway: StartGateway, open_page: OpenPage
) -> None:
    gateway = start_gateway(FEW_PAIRS).ready()
    async with open_page(gateway.url, **DESKTOP) as watch:
        page = watch.page
        await connected(page)
        pane = await show(page, "reading")
        for tag in ("en", "ja", "de"):
            await pane.get_by_test_id(f"read-{tag}").set_checked(tag == "ja")
        await expect(pane.get_by_test_id("read-sources")).to_have_text(
            "Japanese: translated from English, German."
        )
        await pane.get_by_test_id("read-de").check()
        await expect(pane.get_by_test_id("read-sources")).to_have_text(
            "Japanese: translated from English, German. German: nothing is translated."
        )


async def test_full_language_coverage_is_not_mentioned(gateway: GatewayProcess, open_page: OpenPage) -> None:
    """Where all languages are translated into all, the page says nothing about it."""
    async with open_page(gateway.url, **DESKTOP) as watch:
        await connected(watch.page)
        pane = await show(watch.page, "reading")
        await expect(pane.get_by_test_id("read-ja")).to_be_visible()
        await expect(pane.get_by_test_id("read-sources")).to_have_text("")


def engine(name: str, *pairs: str) -> str:
    return f'[[engines]]\nname = "{name}"\nkind = "simulated"\npairs = {json.dumps(pairs)}\n'


async def test_whoever_is_there_sees_which_languages_come_and_go(
    start_gateway: StartGateway, open_page: OpenPage, tmp_path: Path
) -> None:
    japanese = engine("japanese", "en-ja")
    gateway = start_gateway(japanese + engine("german", "en-de", "de-en")).ready()
    async with open_page(gateway.url, **DESKTOP) as watch:
        page = watch.page
        await connected(page)
        link = f"{gateway.url}/?meeting={meeting_of(page)}"
        async with open_page(link, **PHONE) as guest, open_page(f"{link}&view=captions&lang=ja,de") as wall:
            await join(guest.page, reads="ja", speaks=False)
            await captions_connected(wall.page)
            message = wall.page.get_by_test_id("captions-message")
            await expect(message).to_be_hidden()
            pane = await show(page, "reading")
            for tag in ("en", "ja", "de"):
                await pane.get_by_test_id(f"read-{tag}").set_checked(tag != "en")
            await expect(pane.get_by_test_id("read-fr")).to_have_count(0)
            await settled(await say(page, "Hello."))

            (tmp_path / "gateway.toml").write_text(japanese + engine("french", "en-fr", "ja-fr"))
            gateway.process.send_signal(signal.SIGHUP)
            gone = (
                "Nothing is translated into German here any more. Choose other languages under Options, Reading."
            )
            await expect(page.get_by_test_id("alert")).to_contain_text(gone)
            await expect(pane.get_by_test_id("read-de")).to_be_checked()
            await expect(pane.get_by_test_id("read-sources")).to_have_text(
                "Japanese: translated from English. German: nothing is translated."
            )
            await expect(message).to_have_text("Nothing is translated into German here any more.")
            said = await say(page, "Still here.")
            await expect(cell(said, "ja")).to_have_text("[ja] Still here.")
            await expect(said).to_contain_text("There is no translation.")
            # What is gone keeps nobody from choosing something else, and is gone for good once it is left out.
            await pane.get_by_test_id("read-fr").check()
            await pane.get_by_test_id("read-de").uncheck()
            await expect(cell(await say(page, "And on."), "fr")).to_have_text("[fr] And on.")
            await expect(page.get_by_test_id("spoken-lang").get_by_role("option")).to_have_text(
                ["English", "Japanese", "French", "Detect"]
            )

            # A wall screen shows on what there is, and stops saying so once the language is back.
            await expect(wall.page.get_by_test_id("captions-ja")).to_contain_text("[ja] And on.")
            (tmp_path / "gateway.toml").write_text(japanese + engine("german", "en-de", "de-en"))
            gateway.process.send_signal(signal.SIGHUP)
            await expect(message).to_be_hidden()
            (tmp_path / "gateway.toml").write_text(japanese + engine("french", "en-fr", "ja-fr"))
            gateway.process.send_signal(signal.SIGHUP)
            await expect(message).to_be_visible()

            # A guest who listens is asked nothing, and still only listens.
            await expect(guest.page.get_by_test_id("alert")).to_be_hidden()
            await expect((await show(guest.page, "reading")).get_by_test_id("read-fr")).to_be_visible()
            assert {start["speaks"] for start in sent(guest, "session.start")} == {None}
            assert sent(guest, "session.update") == []


async def test_host_keeps_a_translation_after_early_reload(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url, **DESKTOP) as watch:
        page = watch.page
        await connected(page)
        pane = await show(page, "reading")
        for _ in range(2):
            await expect(pane.get_by_test_id("read-en")).to_be_checked()
            await expect(pane.get_by_test_id("read-ja")).to_be_checked()
            # As if the gateway had not answered yet: what one reads is saved once it has.
            await page.evaluate("localStorage.removeItem('reads')")
            await page.reload()
            await connected(page)
            pane = await show(page, "reading")
