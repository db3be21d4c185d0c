"""The page at `/`, in a real browser, against a real gateway process with the simulated engine.

The simulated engine's "translation" is the source text behind the target's tag: `[ja] Hello`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.browser.conftest import SCRIPT, StartGateway, kill
from tests.conftest import ROOT, OpenPage, Watch
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser

SENTENCE = "Let's move the launch to Friday."
PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "device_scale_factor": 2}
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 860}}


async def choose_targets(page: Page, *tags: str) -> None:
    boxes = page.get_by_role("checkbox")
    await expect(boxes).not_to_have_count(0)
    for box in await boxes.all():
        if await box.is_enabled():
            await box.set_checked(await box.get_attribute("value") in tags)


async def say(page: Page, text: str) -> Locator:
    """Type a text and send it; its card."""
    await page.get_by_test_id("text").fill(text)
    await page.get_by_test_id("send").click()
    card = page.get_by_test_id("utterance").first
    await expect(card.get_by_test_id("original")).to_have_text(text)
    return card


async def settled(card: Locator) -> None:
    await expect(card).to_have_attribute("data-state", "settled")


async def overflow_px(page: Page) -> int:
    """How much wider than the viewport the page is."""
    width: int = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return width


async def test_a_typed_sentence_is_translated_into_the_chosen_languages(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await expect(page.get_by_test_id("status")).to_have_text("Connected")
        await choose_targets(page, "ja", "de")

        card = await say(page, SENTENCE)
        await settled(card)

        assert watch.finals() == {"ja": f"[ja] {SENTENCE}", "de": f"[de] {SENTENCE}"}
        for lang, text in watch.finals().items():
            translation = card.get_by_test_id(f"translation-{lang}")
            await expect(translation).to_have_text(text)
            await expect(translation).to_have_attribute("lang", lang)
            final = next(f for f in watch.received if f["type"] == "translation.final" and f["lang"] == lang)
            shown_ms = await card.get_by_test_id(f"first-token-{lang}").inner_text()
            assert shown_ms == f"{final['timings']['first_token_ms'] + 1e-9:.0f} ms"
            await expect(card.get_by_test_id(f"tokens-{lang}")).to_have_text(str(final["tokens"]))
        await expect(card.locator("[data-testid^=translation-]")).to_have_count(2)
        await expect(page.get_by_test_id("text")).to_have_value("")
        await expect(page.get_by_test_id("notice")).to_be_hidden()


async def test_a_sentence_can_be_picked_in_the_spoken_language_with_the_keyboard_alone(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await page.get_by_test_id("source-lang").select_option("ja")
        await expect(page.get_by_test_id("target-ja")).to_be_disabled()
        await choose_targets(page, "en", "zh")

        chip = page.get_by_test_id("sentences").get_by_role("button").first
        sentence = await chip.inner_text()
        await chip.focus()
        await page.keyboard.press("Enter")
        await expect(page.get_by_test_id("text")).to_have_value(sentence)
        await expect(page.get_by_test_id("send")).to_be_focused()
        await page.keyboard.press("Enter")

        card = page.get_by_test_id("utterance")
        await expect(card.get_by_test_id("translation-zh")).to_have_text(f"[zh] {sentence}")
        await expect(card.get_by_test_id("translation-en")).to_have_text(f"[en] {sentence}")
        await expect(card.get_by_test_id("original")).to_have_attribute("lang", "ja")


async def test_enter_sends_and_shift_enter_begins_a_new_line(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        text = watch.page.get_by_test_id("text")
        await text.fill("One")
        await text.press("Shift+Enter")
        await text.press_sequentially("Two")
        await expect(text).to_have_value("One\nTwo")
        await text.press("Enter")
        await expect(watch.page.get_by_test_id("original")).to_have_text("One\nTwo")


async def test_the_page_says_that_the_engine_loads_and_opens_by_itself(
    start_gateway: StartGateway, open_page: OpenPage, artifacts: Path
) -> None:
    gateway = start_gateway('[engine]\nkind = "simulated"\n[engine.script]\nload_s = 5')
    async with open_page(gateway.url, **DESKTOP) as watch:
        page = watch.page
        await expect(page.get_by_test_id("loading")).to_contain_text("The engine is loading")
        await expect(page.get_by_test_id("loading-reason")).to_contain_text("The simulated engine is loading")
        await expect(page.get_by_test_id("loading-elapsed")).to_have_text(re.compile(r"^[1-9]\d* s$"))
        await expect(page.get_by_test_id("status")).to_have_text("Engine loading")
        await expect(page.get_by_test_id("speak")).to_be_hidden()
        await page.screenshot(path=artifacts / "page-loading.png")

        await expect(page.get_by_test_id("speak")).to_be_visible(timeout=30_000)
        await expect(page.get_by_test_id("loading")).to_be_hidden()
        await expect(page.get_by_test_id("status")).to_have_text("Connected")
        await settled(await say(page, SENTENCE))


async def test_a_loading_engine_is_asked_less_and_less_often(
    start_gateway: StartGateway, open_page: OpenPage
) -> None:
    gateway = start_gateway('[engine]\nkind = "simulated"\n[engine.script]\nload_s = 60')
    async with open_page(gateway.url) as watch:
        asked: list[float] = []
        while len(asked) < 5:
            await asyncio.sleep(0.2)
            asked = await watch.page.evaluate(
                """performance.getEntriesByType("resource")
                    .filter((entry) => entry.name.endsWith("/readyz"))
                    .map((entry) => entry.startTime)"""
            )
        pauses = [later - earlier for earlier, later in pairwise(asked[:5])]
        assert all(pause > least for pause, least in zip(pauses, (990, 1_990, 2_990, 2_990), strict=True)), pauses
        assert max(pauses) < 6_000


async def test_a_failed_engine_is_shown_with_its_reason(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    async with open_page(gateway.url, **PHONE) as watch:
        page = watch.page

        async def fail(route: Route) -> None:
            await route.fulfill(status=503, json={"status": "failed", "reason": "the engine ran out of memory"})

        await page.route("**/readyz", fail)
        await page.reload()
        await expect(page.get_by_test_id("loading")).to_contain_text("The engine has failed")
        await expect(page.get_by_test_id("loading-reason")).to_have_text("The engine ran out of memory.")
        await expect(page.get_by_test_id("status")).to_have_text("Engine failed")
        await page.screenshot(path=artifacts / "page-failed-phone.png")

        await page.unroute("**/readyz")
        await expect(page.get_by_test_id("speak")).to_be_visible()


async def test_markup_is_shown_as_text(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        markup = '<img src=x onerror="document.title=1"><b>bold</b> &amp; <script>document.title=2</script>'
        card = await say(page, markup)
        await settled(card)
        await expect(card.get_by_test_id("translation-ja")).to_have_text(f"[ja] {markup}")
        await expect(card.locator("img, b, script")).to_have_count(0)
        await expect(page).to_have_title("Translation Gateway")


async def test_a_running_translation_can_be_cancelled(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await choose_targets(page, "fr")
        card = await say(page, "This one will stall for ever")
        await expect(card.get_by_test_id("translation-fr")).to_have_text("[fr] This one will")
        await card.get_by_test_id("cancel").click()
        await expect(card.get_by_test_id("failed-fr")).to_have_text("The utterance was cancelled.")
        await settled(card)
        await expect(card.get_by_test_id("cancel")).to_be_hidden()
        # What was there stays to be read, and the next utterance goes through.
        await expect(card.get_by_test_id("translation-fr")).to_have_text("[fr] This one will")
        await settled(await say(page, SENTENCE))


async def test_a_translation_that_fails_says_why(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        card = await say(watch.page, "This one will fail")
        await settled(card)
        failed = next(frame for frame in watch.received if frame["type"] == "translation.failed")
        await expect(card.get_by_test_id(f"failed-{failed['lang']}")).to_have_text(failed["message"])


async def test_what_cannot_be_sent_is_said_in_a_notice(start_gateway: StartGateway, open_page: OpenPage) -> None:
    gateway = start_gateway(SCRIPT + "\n[limits]\nmessage_bytes = 4096").ready()
    async with open_page(gateway.url) as watch:
        page = watch.page
        await expect(page.get_by_test_id("status")).to_have_text("Connected")
        await page.get_by_test_id("text").fill("語" * 2000)
        await page.get_by_test_id("send").click()
        notice = page.get_by_test_id("notice")
        await expect(notice).to_contain_text("The text is too long to be sent.")
        await settled(page.get_by_test_id("utterance"))
        await page.get_by_test_id("notice-dismiss").click()
        await expect(notice).to_be_hidden()

        await page.get_by_test_id("send").click()
        await expect(notice).to_contain_text("There is nothing to translate yet")
        await page.keyboard.press("Escape")
        await expect(notice).to_be_hidden()


@pytest.mark.parametrize("device", ["desktop", "phone"])
async def test_a_text_that_is_too_long_stays_in_the_field(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path, device: str
) -> None:
    async with open_page(gateway.url, **{"desktop": DESKTOP, "phone": PHONE}[device]) as watch:
        page = watch.page
        text, send, too_long = (page.get_by_test_id(name) for name in ("text", "send", "too-long"))
        await expect(page.get_by_test_id("status")).to_have_text("Connected")
        await expect(too_long).to_be_empty()
        await text.fill("x" * 2001)
        await expect(page.get_by_test_id("count")).to_have_text("2001 of 2000 characters")
        await expect(too_long).to_have_text("Too long to translate:")
        await expect(text).to_have_attribute("aria-invalid", "true")
        await expect(send).to_be_disabled()
        await text.press("Enter")
        await expect(text).to_have_value("x" * 2001)
        await expect(page.get_by_test_id("utterance")).to_have_count(0)
        await expect(page.get_by_test_id("notice")).to_be_hidden()
        assert await overflow_px(page) == 0
        await page.screenshot(path=artifacts / f"page-too-long-{device}.png", full_page=True)

        await text.press("Backspace")
        await expect(too_long).to_be_empty()
        await expect(text).to_have_attribute("aria-invalid", "false")
        # What surrounds a text is not sent.
        await text.press("Shift+Enter")
        await send.click()
        await settled(page.get_by_test_id("utterance"))
        assert [frame["text"] for frame in watch.sent if frame["type"] == "utterance.final"] == ["x" * 2000]


@pytest.mark.parametrize("device", ["desktop", "phone"])
async def test_the_bundled_model_is_said_to_know_little(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path, device: str
) -> None:
    async with open_page(gateway.url, **{"desktop": DESKTOP, "phone": PHONE}[device]) as watch:
        page = watch.page
        demo_model = page.get_by_test_id("demo-model")
        await expect(page.get_by_test_id("status")).to_have_text("Connected")
        await expect(demo_model).to_be_hidden()

        async def bundled(route: Route) -> None:
            response = await route.fetch()
            await route.fulfill(response=response, json=await response.json() | {"family": "bundled"})

        await page.route("**/v1/languages", bundled)
        await page.reload()
        await expect(demo_model).to_be_visible()
        await expect(demo_model).to_have_text(
            "Demo model: it knows meeting sentences like these, and little else. "
            "For real meetings, start the gateway with your own model."
        )
        await expect(page.get_by_test_id("status")).to_have_text("Connected")
        assert await overflow_px(page) == 0
        await page.screenshot(path=artifacts / f"page-demo-model-{device}.png")


async def test_an_unfinished_utterance_survives_a_crash_of_the_gateway(
    start_gateway: StartGateway, open_page: OpenPage
) -> None:
    gateway = start_gateway()
    gateway.ready()
    async with open_page(gateway.url) as watch:
        page = watch.page
        watch.allow("ERR_")  # the browser notes every connection that is refused or breaks off
        await choose_targets(page, "fr")
        await settled(await say(page, SENTENCE))
        card = await say(page, "This one will stall for ever")
        await expect(card.get_by_test_id("translation-fr")).to_have_text("[fr] This one will")

        kill(gateway)
        await expect(page.get_by_test_id("status")).to_have_text("Not reachable")
        await expect(page.get_by_test_id("utterance")).to_have_count(2)
        start_gateway(SCRIPT.replace('"stall"', '"no longer"'), port=gateway.port).ready()

        await expect(page.get_by_test_id("status")).to_have_text("Connected", timeout=60_000)
        await settled(card)
        await expect(card.get_by_test_id("translation-fr")).to_have_text("[fr] This one will stall for ever")
        resent = [frame["text"] for frame in watch.sent if frame["type"] == "utterance.final"]
        assert resent == [SENTENCE, "This one will stall for ever", "This one will stall for ever"]


async def test_a_card_has_one_height_from_the_first_word_to_the_last(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with open_page(gateway.url, **DESKTOP) as watch:
        page = watch.page
        await choose_targets(page, "es", "fr", "de")
        await page.evaluate(
            """() => {
                window.heights = [];
                const sizes = new ResizeObserver(([card]) => heights.push(card.borderBoxSize[0].blockSize));
                const list = document.getElementById("utterances");
                const cards = new MutationObserver(() => sizes.observe(list.firstElementChild));
                cards.observe(list, { childList: true });
            }"""
        )
        await settled(await say(page, SENTENCE))
        await expect(page.get_by_test_id("tokens-de")).to_be_visible()
        assert len(set(await page.evaluate("heights"))) == 1


async def test_every_control_has_a_name(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await settled(await say(page, SENTENCE))
        nameless = await page.evaluate(
            """[...document.querySelectorAll("button, input, select, textarea")]
                .filter((control) => !control.getAttribute("aria-label") && !control.textContent.trim()
                    && ![...control.labels ?? []].some((label) => label.textContent.trim()))
                .map((control) => control.outerHTML)"""
        )
        assert nameless == []
        # Whole translations are announced, their growing is not.
        live = page.locator("[aria-live=polite]")
        await expect(live).to_contain_text(f"[ja] {SENTENCE}")
        await expect(page.get_by_test_id("utterance").locator("[aria-live]")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_desktop(gateway: GatewayProcess, open_page: OpenPage, artifacts: Path, scheme: str) -> None:
    async with open_page(gateway.url, **DESKTOP, color_scheme=scheme) as watch:
        page = watch.page
        await expect(page.get_by_test_id("status")).to_have_text("Connected")
        await page.screenshot(path=artifacts / f"page-desktop-{scheme}-empty.png")
        await choose_targets(page, "ja", "es", "zh")
        await settled(await say(page, "The contract isn't ready yet because Anna is out sick."))
        await settled(await say(page, "This one will fail after its first words."))
        card = await say(page, "Sometimes a sentence will stall while it is being translated.")
        await expect(card.get_by_test_id("translation-zh")).to_contain_text("Sometimes a sentence")
        assert await overflow_px(page) == 0
        await page.screenshot(path=artifacts / f"page-desktop-{scheme}.png", full_page=True)


async def test_phone(gateway: GatewayProcess, open_page: OpenPage, artifacts: Path) -> None:
    async with open_page(gateway.url, **PHONE) as watch:
        page = watch.page
        await expect(page.get_by_test_id("status")).to_have_text("Connected")
        assert await overflow_px(page) == 0
        await page.screenshot(path=artifacts / "page-phone-empty.png")
        await page.get_by_test_id("source-lang").select_option("ja")
        await choose_targets(page, "en", "zh")
        await page.get_by_test_id("sentences").get_by_role("button").nth(1).click()
        await page.get_by_test_id("send").click()
        await settled(page.get_by_test_id("utterance"))
        await say(page, "<b>Averylongwordwithoutanyspacesinitthatwouldotherwisemakethepagescrollsideways</b>")
        await settled(page.get_by_test_id("utterance").first)
        assert await overflow_px(page) == 0
        await page.screenshot(path=artifacts / "page-phone.png", full_page=True)
        await page.get_by_test_id("send").click()
        await expect(page.get_by_test_id("notice")).to_be_visible()
        assert await overflow_px(page) == 0
        await page.screenshot(path=artifacts / "page-phone-notice.png")


def test_the_page_is_light() -> None:
    assert sum(file.stat().st_size for file in (ROOT / "web_demo").iterdir()) < 100_000


# -------------------------------------------------------------------- while it is being said

# Notes every text that an element ever shows, from its first one on.
_WITNESS = """(selector) => {
    window.seen = [];
    const look = () => {
        for (const found of document.querySelectorAll(selector)) {
            if (found.textContent !== seen.at(-1)) seen.push(found.textContent);
        }
    };
    new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""


async def choose_stability(page: Page, mode: str) -> None:
    await expect(page.get_by_test_id("status")).to_have_text("Connected")
    await page.get_by_test_id(f"stability-{mode}").check()


async def type_words(watch: Watch, *words: str) -> None:
    """Type words, each once what was typed before it was sent and shown."""
    field = watch.page.get_by_test_id("text")
    for word in words:
        text = f"{await field.input_value()} {word}".strip()
        await field.press_sequentially(f" {word}" if text != word else word)
        while text not in captions(watch):
            await asyncio.sleep(0.02)


def captions(watch: Watch) -> list[str]:
    """What the gateway has shown of what was said, oldest first."""
    return [frame["text"] for frame in received(watch, "caption")]


def received(watch: Watch, kind: str) -> list[dict[str, Any]]:
    return [frame for frame in watch.received if frame["type"] == kind]


def changes(watch: Watch) -> list[str]:
    """What the gateway has confirmed of the stability, without repetitions."""
    modes = ["live", *(frame["stability"] for frame in received(watch, "session.updated"))]
    return [mode for before, mode in pairwise(modes) if before != mode]


def sent(watch: Watch, kind: str) -> list[dict[str, Any]]:
    return [frame for frame in watch.sent if frame["type"] == kind]


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.02)


WORDS = ("We", "move", "the", "launch", "to", "next", "Friday")


async def test_typing_shows_a_translation_before_enter(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await choose_stability(page, "live")
        await choose_targets(page, "fr")
        await type_words(watch, *WORDS)

        card = page.get_by_test_id("utterance")
        await expect(card).to_have_count(1)
        await expect(card.get_by_test_id("original")).to_have_text("We move the launch to next Friday")
        await expect(card.get_by_test_id("original")).to_have_class("words tentative")
        await expect(card.get_by_test_id("tentative-fr")).not_to_be_empty()
        translation = card.get_by_test_id("translation-fr")
        await expect(translation).to_contain_text("[fr] We move the launch")
        tail = await card.get_by_test_id("tentative-fr").inner_text()
        assert (await translation.inner_text()).endswith(tail)
        assert sent(watch, "utterance.final") == []
        # Nobody who listens to the page hears what may change.
        await expect(page.locator("[aria-live=polite]")).to_be_empty()

        await page.keyboard.press("Enter")
        await settled(card)
        await expect(card).to_have_count(1)
        await expect(translation).to_have_text("[fr] We move the launch to next Friday")
        await expect(card.get_by_test_id("tentative-fr")).to_be_empty()
        await expect(card.get_by_test_id("original")).to_have_class("words")
        await expect(page.locator("[aria-live=polite]")).to_contain_text("[fr] We move the launch to next Friday")
        [final] = sent(watch, "utterance.final")
        revisions = [partial["rev"] for partial in sent(watch, "utterance.partial")]
        assert {partial["id"] for partial in sent(watch, "utterance.partial")} == {final["id"]}
        assert revisions == list(range(1, final["rev"]))


async def test_stable_shows_what_stays_and_nothing_that_may_change(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await choose_stability(page, "stable")
        await choose_targets(page, "fr")
        await page.evaluate(_WITNESS, "[data-testid=translation-fr]")
        await type_words(watch, *WORDS)
        card = page.get_by_test_id("utterance")
        await expect(card.get_by_test_id("translation-fr")).to_contain_text("[fr] We move")
        assert sent(watch, "utterance.final") == []
        await page.keyboard.press("Enter")
        await settled(card)

        assert [frame for frame in watch.received if frame.get("tentative")] == []
        seen = await page.evaluate("seen")
        assert len(seen) > 2
        assert all(later.startswith(earlier) for earlier, later in pairwise(seen)), seen
        assert seen[-1] == "[fr] We move the launch to next Friday"


async def test_final_shows_nothing_before_the_whole_sentence(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await choose_stability(page, "final")
        await choose_targets(page, "fr")
        await page.evaluate(_WITNESS, "[data-testid=translation-fr]")
        await type_words(watch, *WORDS)
        card = page.get_by_test_id("utterance")
        await expect(card).to_contain_text("Waiting for the whole sentence")
        await page.keyboard.press("Enter")
        await settled(card)
        assert await page.evaluate("seen") == ["", "[fr] We move the launch to next Friday"]
        assert received(watch, "translation.delta") == []


async def test_another_stability_applies_to_what_is_being_said_and_is_remembered(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        hint = page.get_by_test_id("stability-hint")
        await expect(page.get_by_test_id("stability-live")).to_be_checked()
        await expect(hint).to_contain_text("may change")
        await expect(page.get_by_test_id("status")).to_have_text("Connected")
        await choose_targets(page, "fr")
        await type_words(watch, *WORDS)
        card = page.get_by_test_id("utterance")
        translation, tail = card.get_by_test_id("translation-fr"), card.get_by_test_id("tentative-fr")
        newest = sent(watch, "utterance.partial")[-1]["rev"]
        await until(lambda: any(delta["rev"] == newest for delta in received(watch, "translation.delta")))
        stays = "".join(delta["committed"] for delta in received(watch, "translation.delta"))
        early = stays + received(watch, "translation.delta")[-1]["tentative"]
        assert len(early) > len(stays) > 0
        await expect(translation).to_have_text(early)

        await page.get_by_test_id("stability-stable").check()
        await expect(hint).to_contain_text("none is taken back")
        await expect(translation).to_have_text(stays)
        await expect(tail).to_be_empty()
        # At once, and not when the gateway has heard of it.
        at_once = await page.evaluate(
            """() => {
                document.querySelector("[data-testid=stability-final]").click();
                return document.querySelector("[data-testid=translation-fr]").textContent;
            }"""
        )
        assert at_once == ""
        await expect(hint).to_contain_text("Nothing before the sentence is finished")
        await expect(translation).to_be_empty()
        await until(lambda: len(changes(watch)) == 2)
        await page.get_by_test_id("stability-live").check()
        await expect(translation).to_have_text(early)

        await page.get_by_test_id("stability-stable").check()
        await until(lambda: changes(watch) == ["stable", "final", "live", "stable"])
        await page.reload()
        await expect(page.get_by_test_id("stability-stable")).to_be_checked()
        await expect(page.get_by_test_id("status")).to_have_text("Connected")
        assert [start["stability"] for start in sent(watch, "session.start")] == ["live", "stable"]


async def test_a_field_that_is_cleared_leaves_nothing_behind(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await expect(page.get_by_test_id("status")).to_have_text("Connected")
        await choose_targets(page, "fr")
        await type_words(watch, *WORDS)
        await expect(page.get_by_test_id("translation-fr")).to_contain_text("[fr] We move the launch")
        await page.get_by_test_id("text").clear()
        await expect(page.get_by_test_id("utterance")).to_have_count(0)

        # A correction goes on with the same utterance; another sentence is another one.
        await type_words(watch, "Could", "you", "repaet")
        for _ in "aet":
            await page.keyboard.press("Backspace")
        await page.keyboard.type("eat that")
        await until(lambda: captions(watch)[-1] == "Could you repeat that")
        await expect(page.get_by_test_id("utterance")).to_have_count(1)
        await expect(page.get_by_test_id("translation-fr")).not_to_contain_text("launch")
        await page.keyboard.press("ControlOrMeta+A")
        await page.keyboard.type("Nothing at all")
        await until(lambda: captions(watch)[-1] == "Nothing at all")
        await page.keyboard.press("Enter")
        await settled(page.get_by_test_id("utterance"))
        await expect(page.get_by_test_id("translation-fr")).to_have_text("[fr] Nothing at all")

        ids = list(dict.fromkeys(partial["id"] for partial in sent(watch, "utterance.partial")))
        assert len(ids) == 3
        assert [final["id"] for final in sent(watch, "utterance.final")] == ids[2:]
        await expect(page.get_by_test_id("notice")).to_be_hidden()


async def test_languages_can_be_chosen_while_something_is_being_typed(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await expect(page.get_by_test_id("status")).to_have_text("Connected")
        await choose_targets(page, "fr", "es")
        await type_words(watch, *WORDS)
        shown = page.get_by_test_id("translation-fr")
        await expect(shown).to_contain_text("[fr] We move the launch")
        await page.get_by_test_id("target-es").uncheck()
        await page.get_by_test_id("target-de").check()
        await expect(page.get_by_test_id("translation-es")).to_have_count(0)
        await expect(shown).to_contain_text("[fr] We move the launch")
        await expect(page.get_by_test_id("translation-de")).to_contain_text("[de] We move")
        await page.get_by_test_id("send").click()
        await settled(page.get_by_test_id("utterance"))
        await expect(page.get_by_test_id("translation-de")).to_have_text("[de] We move the launch to next Friday")


async def test_markup_is_shown_as_text_while_it_is_typed(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await expect(page.get_by_test_id("status")).to_have_text("Connected")
        await choose_targets(page, "fr")
        markup = ("<img src=x onerror=document.title=1>", *(f"<b>{word}</b>" for word in WORDS))
        card = page.get_by_test_id("utterance")
        await type_words(watch, *markup)
        await expect(card.get_by_test_id("original")).to_have_text(" ".join(markup))
        # What stays, and what may change.
        await expect(card.get_by_test_id("translation-fr")).to_contain_text("[fr] <img src=x onerror")
        await expect(card.get_by_test_id("tentative-fr")).to_contain_text("<b>Friday")
        await expect(card.locator("img, b")).to_have_count(0)
        await expect(page).to_have_title("Translation Gateway")


async def test_a_sentence_can_be_said_word_by_word(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await expect(page.get_by_test_id("status")).to_have_text("Connected")
        await choose_targets(page, "fr")
        await page.get_by_test_id("sentences").get_by_role("button").nth(2).click()
        assert sent(watch, "utterance.partial") == []  # it is picked, and not said
        await page.get_by_test_id("play").click()
        await expect(page.get_by_test_id("text")).to_have_value("")
        card = page.get_by_test_id("utterance")
        await expect(card).to_have_attribute("data-state", "spoken")
        await settled(card)
        assert [partial["text"] for partial in sent(watch, "utterance.partial")] == [
            "What",
            "What time",
            "What time works",
            "What time works best",
            "What time works best for",
            "What time works best for you?",
        ]
        [final] = sent(watch, "utterance.final")
        assert (final["rev"], final["text"]) == (7, "What time works best for you?")
        await expect(card.get_by_test_id("translation-fr")).to_have_text("[fr] What time works best for you?")

        # Where no spaces are written, words are found all the same.
        await page.get_by_test_id("source-lang").select_option("ja")
        await page.get_by_test_id("text").fill("もう一度お願いできますか？")
        await page.get_by_test_id("play").click()
        spoken = page.get_by_test_id("utterance").first
        await expect(spoken.get_by_test_id("original")).to_have_text(re.compile("^もう一度お願い"))
        await spoken.get_by_test_id("cancel").click()
        await settled(spoken)
        await expect(spoken.get_by_test_id("failed-fr")).to_have_text("The utterance was cancelled.")
        # Another one is said to its end; of the one that was cancelled nothing more.
        cancelled = sent(watch, "utterance.partial")[-1]["id"]
        begun = len(sent(watch, "utterance.partial"))
        await page.get_by_test_id("text").fill("時間です。")
        await page.get_by_test_id("play").click()
        await settled(page.get_by_test_id("utterance").first)
        [_, whole] = sent(watch, "utterance.final")
        assert whole["text"] == "時間です。"
        rest = [(partial["id"], partial["text"]) for partial in sent(watch, "utterance.partial")[begun:]]
        assert [text for id, text in rest if id == whole["id"]] == ["時間", "時間です。"]
        assert cancelled not in dict(rest)


@pytest.mark.engine
@pytest.mark.parametrize("device", ["desktop", "phone"])
async def test_a_real_engine_translates_while_a_sentence_is_being_said(
    real_gateway: GatewayProcess, open_page: OpenPage, artifacts: Path, device: str
) -> None:
    async with open_page(real_gateway.url, **{"desktop": DESKTOP, "phone": PHONE}[device]) as watch:
        page = watch.page
        await choose_stability(page, "live")
        await choose_targets(page, "es", "fr")
        await page.get_by_test_id("sentences").get_by_role("button").nth(1).click()
        await page.get_by_test_id("play").click()
        card = page.get_by_test_id("utterance")
        await expect(card.get_by_test_id("translation-es")).to_contain_text("El contrato")
        await expect(card).to_have_attribute("data-state", "spoken")
        assert sent(watch, "utterance.final") == []
        await page.screenshot(path=artifacts / f"real-engine-live-{device}.png")
        await settled(card)
        for lang, text in watch.finals().items():
            await expect(card.get_by_test_id(f"translation-{lang}")).to_have_text(text)


_CONTRAST = """(selector) => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const light = (colour) => {
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((byte) => byte / 255)
            .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    return [...document.querySelectorAll(selector)].map((found) => {
        let ground = found;
        while (getComputedStyle(ground).backgroundColor === "rgba(0, 0, 0, 0)") ground = ground.parentElement;
        const [more, less] = [getComputedStyle(found).color, getComputedStyle(ground).backgroundColor]
            .map(light).sort((one, other) => other - one);
        return (more + 0.05) / (less + 0.05);
    });
}"""


@pytest.mark.parametrize("device", ["desktop", "phone"])
@pytest.mark.parametrize("mode", ["live", "stable", "final"])
async def test_what_may_change_is_lighter_and_can_be_read(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path, mode: str, device: str
) -> None:
    options = {"desktop": DESKTOP, "phone": PHONE}[device]
    scheme = {"live": "light", "stable": "dark", "final": "light"}[mode]
    async with open_page(gateway.url, **options, color_scheme=scheme) as watch:
        page = watch.page
        await choose_stability(page, mode)
        await choose_targets(page, "es", "fr")
        await settled(await say(page, "Good morning, everyone."))
        await type_words(watch, *WORDS)
        if mode == "live":
            await expect(page.get_by_test_id("tentative-fr").first).not_to_be_empty()
        if mode == "stable":
            await expect(page.get_by_test_id("translation-fr").first).not_to_be_empty()
        contrasts = await page.evaluate(_CONTRAST, ".tentative, .note, .hint, .own-name, h3")
        assert len(contrasts) > 8
        assert min(contrasts) >= 4.5
        marked = await page.evaluate("getComputedStyle(document.querySelector('.tentative')).textDecorationLine")
        assert marked == "underline"
        assert await overflow_px(page) == 0
        await page.screenshot(path=artifacts / f"page-typing-{mode}-{device}.png", full_page=True)
