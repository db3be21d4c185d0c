"""What was said before one came, or before what the page holds: loaded when asked for, and smooth to scroll."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import Page, Route, expect

from gateway.client import connect
from gateway.protocol.limits import Limits
from gateway.protocol.messages import TranslationFinal
from tests.browser.conftest import SCRIPT, StartGateway
from tests.browser.pages import DESKTOP, PHONE, cell, connected, join, new_meeting, overflow_px, read
from tests.browser.test_transcript import OpenReader, caption, final, open_reader, started
from tests.conftest import OpenPage
from tests.processes import GatewayProcess

__all__ = ["open_reader"]

pytestmark = pytest.mark.browser

# The gateway sends a latecomer the newest 30.
UTTERANCES = 240

# As many as may be in flight.
_AT_ONCE = Limits().utterances_in_flight


async def hold_a_meeting(url: str, meeting: str, *reads: str, utterances: int = UTTERANCES) -> None:
    """Ana says so much that a latecomer does not get all of it, and is read in these languages."""
    async with connect(url, meeting=meeting, name="Ana", reads=list(reads), speaks="en") as ana:
        done = 0
        for number in range(utterances):
            await ana.final(f"Sentence {number}.")
            # One that is refused, because too many are in flight, would come behind later ones.
            if (number + 1) % _AT_ONCE and number + 1 < utterances:
                continue
            async for message in ana:
                done += isinstance(message, TranslationFinal)
                if done == (number + 1) * len(reads):
                    break


async def numbers(page: Page) -> list[int]:
    """Which sentences are on the page, from the top."""
    texts = await page.get_by_test_id("cell-ja").all_text_contents()
    return [int(text.removeprefix("[ja] Sentence ").removesuffix(".")) for text in texts]


async def test_a_latecomer_goes_back_to_the_beginning(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    meeting = new_meeting()
    await hold_a_meeting(gateway.url, meeting, "ja")
    async with open_page(f"{gateway.url}/?meeting={meeting}", **PHONE) as watch:
        page = watch.page
        await join(page, "Bo", reads="ja", speaks=False)
        utterances = page.get_by_test_id("utterance")
        await expect(utterances).to_have_count(30)
        earlier = page.get_by_role("button", name="Earlier")
        transcript = page.get_by_test_id("transcript")
        await transcript.evaluate("(region) => { region.scrollTop = 0 }")
        await expect(page.get_by_test_id("jump")).to_be_visible()
        top = page.locator("[data-key]").first
        key = await top.get_attribute("data-key")
        before = await top.bounding_box()
        await earlier.tap()
        await expect(utterances).to_have_count(130)
        # What is being read stays where it is.
        now = await page.locator(f'[data-key="{key}"]').bounding_box()
        assert before is not None
        assert now is not None
        assert now["y"] == pytest.approx(before["y"], abs=2)
        await page.screenshot(path=artifacts / "earlier.png")
        await earlier.click()
        await expect(utterances).to_have_count(230)
        await earlier.click()
        await expect(utterances).to_have_count(UTTERANCES)
        assert await numbers(page) == list(range(UTTERANCES))
        await expect(earlier).to_be_hidden()
        await expect(page.get_by_text("The meeting began here.")).to_be_focused()
        first = utterances.first
        await first.scroll_into_view_if_needed()
        await expect(first.locator("time")).to_be_visible()
        await expect(first).to_have_attribute("data-state", "settled")
        # One name stands for all that one person said.
        assert await page.locator(".utterance:not(.follows)").count() == 1
        assert await overflow_px(page) == 0
        # What comes now is the newest, once.
        async with connect(gateway.url, meeting=meeting, name="Ana", reads=[], speaks="en") as ana:
            await ana.final("Sentence 1000.")
            await expect(utterances).to_have_count(UTTERANCES + 1)
            await expect(page.get_by_test_id("cell-ja").last).to_have_text("[ja] Sentence 1000.")


async def test_what_the_gateway_does_not_keep_is_said(start_gateway: StartGateway, open_page: OpenPage) -> None:
    gateway = start_gateway(SCRIPT + "\n[event_log]\nmax_publications = 120").ready()
    await hold_a_meeting(gateway.url, "long", "ja", utterances=100)
    async with open_page(f"{gateway.url}/?meeting=long", **DESKTOP) as watch:
        page = watch.page
        await join(page, "Bo", reads="ja", speaks=False)
        await page.get_by_role("button", name="Earlier").click()
        await expect(page.get_by_text("The gateway does not keep what was said before.")).to_be_visible()
        await expect(page.get_by_role("button", name="Earlier")).to_be_hidden()


async def test_a_gateway_that_gives_nothing_is_asked_again(gateway: GatewayProcess, open_page: OpenPage) -> None:
    meeting = new_meeting()
    await hold_a_meeting(gateway.url, meeting, "ja", utterances=40)
    async with open_page(f"{gateway.url}/?meeting={meeting}", **DESKTOP) as watch:
        page = watch.page
        await join(page, "Bo", reads="ja", speaks=False)
        asked: list[str] = []

        async def busy(route: Route) -> None:
            asked.append(route.request.url)
            await route.fulfill(status=429, json={"detail": "4 transcripts are under way."})

        watch.allow("429")
        await page.route("**/transcript.json*", busy)
        earlier = page.get_by_role("button", name="Earlier")
        await earlier.click()
        await expect(page.get_by_test_id("alert")).to_contain_text("4 transcripts are under way.")
        query = parse_qs(urlsplit(asked[0]).query)
        assert query["lang"] == ["ja"]
        assert query["last"] == ["100"]
        await page.unroute("**/transcript.json*")
        await page.get_by_test_id("alert-dismiss").click()
        await earlier.click()
        await expect(page.get_by_test_id("utterance")).to_have_count(40)


async def test_earlier_translations_keep_their_mark(gateway: GatewayProcess, open_page: OpenPage) -> None:
    meeting = new_meeting()
    await hold_a_meeting(gateway.url, meeting, "ja", utterances=40)
    async with open_page(f"{gateway.url}/?meeting={meeting}", **DESKTOP) as watch:
        page = watch.page
        await join(page, "Bo", reads="ja", speaks=False)

        async def doubtful(route: Route) -> None:
            answer = await (await route.fetch()).json()
            for said in answer["utterances"][2:5]:
                said["translations"]["ja"]["unsure"] = True
            await route.fulfill(json=answer)

        await page.route("**/transcript.json*", doubtful)
        await page.get_by_role("button", name="Earlier").click()
        await expect(page.get_by_test_id("utterance")).to_have_count(40)
        # One sign for all three.
        await expect(page.get_by_test_id("unsure-sign")).to_have_count(1)
        await expect(page.get_by_test_id("utterance").nth(2).get_by_test_id("unsure-sign")).to_be_visible()


async def test_where_nothing_was_said_before_nothing_is_offered(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    meeting = new_meeting()
    await hold_a_meeting(gateway.url, meeting, "ja", utterances=3)
    async with open_page(f"{gateway.url}/?meeting={meeting}", **DESKTOP) as watch:
        await join(watch.page, "Bo", reads="ja", speaks=False)
        await connected(watch.page)
        await expect(watch.page.get_by_test_id("utterance")).to_have_count(3)
        await expect(watch.page.get_by_role("button", name="Earlier")).to_be_hidden()


async def test_a_long_transcript_is_laid_out_where_seen(open_reader: OpenReader) -> None:
    """1,000 utterances in six languages: what one step of scrolling costs does not grow with them."""
    six = ("ja", "de", "ar", "fr", "es", "ko")
    async with open_reader(*six, viewport={"width": 1360, "height": 800}) as reader:
        events = [started()]
        for number in range(1_000):
            text = f"This is sentence {number} of the meeting, and it has a few words."
            events.append(caption(f"p{number % 6}", str(number), text))
            events += [final(f"p{number % 6}", str(number), lang, f"[{lang}] {text}") for lang in six]
        await reader.hear(*events)
        assert await reader.rows.count() == 1_000
        assert await reader.from_end() < 1
        laid_out = """() => [...document.querySelectorAll("[data-testid=utterance] .cells")]
            .filter((cells) => cells.checkVisibility({ contentVisibilityAuto: true })).length"""
        for step in range(0, 20):
            await reader.region.evaluate("(r, part) => { r.scrollTop = r.scrollHeight * part }", step / 20)
            await reader.hear()
            assert await reader.page.evaluate(laid_out) < 60
        # The browser finds what is far out of sight, and a selection has it.
        assert await reader.page.evaluate("window.find('[ko] This is sentence 3 of', false, false, true)")
        found = "getSelection().anchorNode.parentElement.closest('[data-key]').dataset.key"
        assert await reader.page.evaluate(found) == "p3/3"
        whole = await reader.page.evaluate(
            "getSelection().selectAllChildren(document.querySelector('.rows')), String(getSelection())"
        )
        assert "[de] This is sentence 500 of" in whole


async def test_a_language_chosen_later_is_filled_in_from_the_log(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    meeting = new_meeting()
    await hold_a_meeting(gateway.url, meeting, "ja", "fr", utterances=20)
    async with (
        connect(gateway.url, meeting=meeting, name="Ana", reads=["ja"], speaks="en") as ana,
        open_page(f"{gateway.url}/?meeting={meeting}", **DESKTOP) as watch,
    ):
        page = watch.page
        await join(page, "Bo", reads="ja", speaks=False)
        # Nobody reads French now.
        await ana.final("Sentence 20.")
        await expect(cell(page, "ja").last).to_have_text("[ja] Sentence 20.")
        await read(page, "ja", "fr")
        french = [f"[fr] Sentence {number}." for number in range(20)]
        await expect(cell(page, "fr")).to_have_text([*french, ""])
        # What is not in the log is not left open.
        last = page.get_by_test_id("utterance").last
        await expect(last).to_contain_text("Translations into French begin after this.")
        assert await page.get_by_text("Translations into French begin after this.").count() == 1
        await ana.final("Sentence 21.")
        await expect(cell(page, "fr").last).to_have_text("[fr] Sentence 21.")


async def test_a_gateway_that_does_not_fill_in_changes_nothing(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    meeting = new_meeting()
    await hold_a_meeting(gateway.url, meeting, "ja", "fr", utterances=3)
    async with open_page(f"{gateway.url}/?meeting={meeting}", **DESKTOP) as watch:
        page = watch.page
        await join(page, "Bo", reads="ja", speaks=False)
        watch.allow("429")
        await page.route("**/transcript.json*", lambda route: route.fulfill(status=429, json={"detail": "Later."}))
        await read(page, "ja", "fr")
        last = page.get_by_test_id("utterance").last
        await expect(last).to_contain_text("Translations into French begin after this.")
        await expect(page.get_by_role("alert")).to_be_hidden()
