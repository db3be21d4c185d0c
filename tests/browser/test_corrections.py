"""What one has sent is corrected or taken back on the page, in place for everybody, by mouse and by keyboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from gateway.client import connect, fetch_transcript
from gateway.protocol.messages import UtteranceAccepted
from tests.browser.axe import scan
from tests.browser.pages import DESKTOP, PHONE, cell, connected, join, new_meeting, original, row, say, settled
from tests.browser.test_earlier import hold_a_meeting
from tests.conftest import OpenPage
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser


async def rows_of(page: Page, lang: str) -> list[str]:
    return await cell(page, lang).all_text_contents()


async def test_a_correction_changes_the_row_in_place_for_everybody(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    address = f"{gateway.url}/?meeting={new_meeting()}"
    async with open_page(address, **DESKTOP) as anas, open_page(address, **PHONE) as bos:
        ana, bo = anas.page, bos.page
        await join(ana, "Ana", reads="en")
        await join(bo, "Bo", reads="ja", speaks=False)
        for text in ("We meet on Tuesday.", "Bring the slides."):
            await settled(await say(ana, text))
        field = ana.get_by_test_id("text")
        await field.fill("And another th")
        tuesday = row(ana, "Tuesday")
        await tuesday.get_by_role("button", name="Correct this sentence").press("Enter")
        await expect(field).to_be_focused()
        await expect(field).to_have_value("We meet on Tuesday.")
        correcting = ana.get_by_role("status").filter(has_text="You are correcting what you said.")
        await expect(correcting).to_be_visible()
        await ana.screenshot(path=artifacts / "correcting.png")
        assert (await scan(ana)).serious == []
        await field.fill("We meet on Thursday.")
        await field.press("Enter")
        await expect(correcting).to_be_hidden()
        await expect(field).to_have_value("And another th")
        await expect(cell(bo, "ja")).to_have_text(["[ja] We meet on Thursday.", "[ja] Bring the slides."])
        await expect(cell(ana, "en")).to_have_text(["We meet on Thursday.", "Bring the slides."])
        await expect(row(bo, "Thursday").get_by_test_id("corrected")).to_be_visible()
        await expect(bo.get_by_role("button", name="Correct this sentence")).to_have_count(0)
        await bo.screenshot(path=artifacts / "corrected-phone.png")
        # A correction can be corrected again.
        await row(ana, "Thursday").get_by_test_id("correct").click()
        await field.fill("We meet on Friday.")
        await ana.get_by_test_id("send").click()
        await expect(cell(bo, "ja").first).to_have_text("[ja] We meet on Friday.")
        await ana.screenshot(path=artifacts / "corrected.png")
        assert (await scan(bo)).serious == []


async def test_latecomers_see_a_correction_where_and_when_the_first_text_was(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    meeting = new_meeting()
    address = f"{gateway.url}/?meeting={meeting}"
    async with open_page(address, **DESKTOP) as anas, open_page(f"{gateway.url}/healthz", **PHONE) as bos:
        bos.allow("favicon.ico")
        ana, bo = anas.page, bos.page
        await join(ana, "Ana", reads="ja")
        for text in ("We meet on Tuesday.", "Bring the slides."):
            await settled(await say(ana, text))
        said_at = await row(ana, "Tuesday").locator("time").get_attribute("datetime")
        await row(ana, "Tuesday").get_by_test_id("correct").click()
        await ana.get_by_test_id("text").fill("We meet on Thursday.")
        await ana.get_by_test_id("send").click()
        await settled(row(ana, "Thursday"))
        await settled(await say(ana, "Any questions?"))
        await bo.goto(address)
        await join(bo, "Bo", reads="ja", speaks=False)
        for page in (ana, bo):
            expected = ["[ja] We meet on Thursday.", "[ja] Bring the slides.", "[ja] Any questions?"]
            await expect(cell(page, "ja")).to_have_text(expected)
            await expect(row(page, "Thursday").locator("time")).to_have_attribute("datetime", str(said_at))
            await expect(row(page, "Thursday").get_by_test_id("corrected")).to_be_visible()
        await expect(bo.get_by_test_id("earlier")).to_be_hidden()  # there is nothing before it
        await bo.screenshot(path=artifacts / "corrected-latecomer.png")
        # An overlay begins with what was said last, not with what was corrected last.
        await row(ana, "Thursday").get_by_test_id("correct").click()
        await ana.get_by_test_id("text").fill("We meet on Friday.")
        await ana.get_by_test_id("send").click()
        await expect(cell(bo, "ja").first).to_have_text("[ja] We meet on Friday.")
        await bo.goto(f"{gateway.url}/?view=captions&meeting={meeting}&lang=ja")
        await expect(bo.get_by_test_id("captions-ja")).to_contain_text("Any questions?")


async def test_what_one_said_before_a_reload_can_be_corrected_and_taken_back(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    address = f"{gateway.url}/?meeting={new_meeting()}"
    async with open_page(address, **DESKTOP) as anas, open_page(address, **PHONE) as bos:
        ana, bo = anas.page, bos.page
        await join(ana, "Ana", reads="en")
        await join(bo, "Bo", reads="ja")
        for text in ("We meet on Tuesday.", "My number is 1234.", "Bring the slides."):
            await settled(await say(ana, text))
        for _ in range(2):
            await ana.reload()
            await connected(ana)
        await ana.screenshot(path=artifacts / "reloaded.png")
        await row(ana, "Tuesday").get_by_role("button", name="Correct this sentence").click()
        await ana.get_by_test_id("text").fill("We meet on Thursday.")
        await ana.get_by_test_id("send").click()
        await row(ana, "1234").get_by_role("button", name="Take back this sentence").click()
        await ana.get_by_test_id("confirm-action").click()
        await expect(cell(bo, "ja")).to_have_text(["[ja] We meet on Thursday.", "[ja] Bring the slides."])
        await expect(cell(ana, "en")).to_have_text(["We meet on Thursday.", "Bring the slides."])
        # The correction is one's own as well.
        await row(ana, "Thursday").get_by_test_id("correct").click()
        await ana.get_by_test_id("text").fill("We meet on Friday.")
        await ana.get_by_test_id("send").click()
        await expect(cell(bo, "ja").first).to_have_text("[ja] We meet on Friday.")
        await ana.screenshot(path=artifacts / "reloaded-corrected.png")
        # Nobody else's words: also not of those who were reloaded.
        await bo.reload()
        await connected(bo)
        await expect(row(bo, "Friday")).to_be_visible()
        await expect(bo.get_by_test_id("correct").filter(visible=True)).to_have_count(0)


async def test_a_correction_is_given_up(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(f"{gateway.url}/?meeting={new_meeting()}", **DESKTOP) as watch:
        page = watch.page
        await join(page, "Ana", reads="en")
        await settled(await say(page, "We meet on Tuesday."))
        field = page.get_by_test_id("text")
        for give_up in ("keep", "Escape"):
            await page.get_by_test_id("correct").click()
            await field.fill("We meet on Thursday.")
            if give_up == "keep":
                await page.get_by_test_id("keep").click()
            else:
                await field.press("Escape")
            await expect(page.get_by_test_id("correcting")).to_be_hidden()
            await expect(field).to_have_value("")
            await expect(field).to_be_focused()
        assert await rows_of(page, "en") == ["We meet on Tuesday."]
        # What is taken back meanwhile is not said again as one more line.
        await page.get_by_test_id("correct").click()
        await page.get_by_test_id("take-back").click()
        await page.get_by_test_id("confirm-action").click()
        await expect(page.get_by_test_id("correcting")).to_be_hidden()
        await expect(field).to_have_value("")


async def test_what_is_taken_back_goes_from_every_screen(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    meeting = new_meeting()
    address = f"{gateway.url}/?meeting={meeting}"
    async with open_page(address, **DESKTOP) as anas, open_page(address, **PHONE) as bos:
        ana, bo = anas.page, bos.page
        await join(ana, "Ana", reads="en")
        await join(bo, "Bo", reads="ja", speaks=False)
        for text in ("My number is 1234.", "Bring the slides."):
            await settled(await say(ana, text))
        await row(ana, "1234").get_by_role("button", name="Take back this sentence").click()
        dialog = ana.get_by_test_id("confirm")
        await expect(dialog).to_contain_text("My number is 1234.")
        await ana.screenshot(path=artifacts / "take-back.png")
        await dialog.get_by_test_id("confirm-cancel").click()
        await expect(dialog).to_have_count(0)
        await row(ana, "1234").get_by_test_id("take-back").click()
        await dialog.get_by_test_id("confirm-action").click()
        for page, lang in ((ana, "en"), (bo, "ja")):
            await expect(cell(page, lang)).to_have_count(1)
        transcript = await fetch_transcript(gateway.url, meeting)
        assert [said.text for said in transcript.utterances] == ["Bring the slides."]


async def test_one_segment_of_a_talk_is_corrected_alone(gateway: GatewayProcess, open_page: OpenPage) -> None:
    meeting = new_meeting()
    sentence = (
        "This is sentence {}, which goes on for quite a while, until at last it comes to its end, as they all do. "
    )
    async with open_page(f"{gateway.url}/?meeting={meeting}", **DESKTOP) as watch:
        page = watch.page
        await join(page, "Ana", reads="en")
        await say(page, "".join(sentence.format(n) for n in ("one", "two", "three")))
        for text in ("one", "three"):
            await row(page, f"sentence {text},").get_by_test_id("correct").click()
            await page.get_by_test_id("text").fill(f"Short {text}.")
            await page.get_by_test_id("send").click()
        await expect(cell(page, "en")).to_have_text(["Short one.", sentence.format("two").strip(), "Short three."])


async def test_what_was_said_earlier_is_as_it_was_corrected(gateway: GatewayProcess, open_page: OpenPage) -> None:
    meeting = new_meeting()
    async with connect(gateway.url, meeting=meeting, name="Eve", speaks="en", reads=[]) as eve:
        await eve.final("First of all.", "1")
        await eve.final("A mistake.", "2")
        async for event in eve:
            if isinstance(event, UtteranceAccepted) and event.id == "2":
                break
        await hold_a_meeting(gateway.url, meeting, "ja", utterances=40)
        await eve.final("No mistake.", "3", replaces="2")
        async for event in eve:
            if isinstance(event, UtteranceAccepted) and event.id == "3":
                break
        async with open_page(f"{gateway.url}/?meeting={meeting}", **PHONE) as watch:
            page = watch.page
            await join(page, "Bo", reads="en", speaks=False)
            await connected(page)
            # It is older than what a latecomer gets, and stands before that.
            await expect(cell(page, "en").first).to_have_text("No mistake.")
            await expect(cell(page, "en").last).to_have_text("Sentence 39.")
            await page.get_by_test_id("earlier").click()
            await expect(cell(page, "en").first).to_have_text("First of all.")
            texts = await rows_of(page, "en")
            assert texts[:3] == ["First of all.", "No mistake.", "Sentence 0."]
            assert texts.count("No mistake.") == 1
            await eve.final("", "4", replaces="3")
            await expect(original(row(page, "No mistake."))).to_have_count(0)
