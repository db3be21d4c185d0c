"""Meetings on the page, on the real engine: a newcomer's first minute, two windows, a connection that is lost."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.pages import pick_sentence, share_typing
from tests.conftest import OpenPage
from tests.e2e.capture import captured
from tests.processes import GatewayProcess

pytestmark = [pytest.mark.engine, pytest.mark.browser]

DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 720}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "device_scale_factor": 2}
LANGUAGES = ("en", "ja", "es", "de", "fr", "zh")
SENTENCE = "Let's move the launch to Friday."


async def read(page: Page, *tags: str) -> None:
    """Choose the languages to read."""
    await expect(page.get_by_test_id("status")).to_have_attribute("data-state", "good")
    for tag in LANGUAGES:
        await page.get_by_test_id(f"read-{tag}").set_checked(tag in tags, force=True)


async def join(page: Page, name: str, lang: str, *, speak: bool = False) -> None:
    # In whatever language the page is.
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("textbox").fill(name)
    await dialog.get_by_test_id("join-lang").select_option(lang)
    if speak:
        await dialog.get_by_test_id("join-speak").check(force=True)
    await dialog.get_by_role("button").click()
    await expect(page.get_by_test_id("status")).to_have_attribute("data-state", "good")


async def say(page: Page, text: str) -> None:
    await page.get_by_test_id("text").fill(text)
    await page.get_by_test_id("send").click()


def row_of(page: Page, text: str) -> Locator:
    return page.get_by_test_id("utterance").filter(has_text=text)


async def settled(row: Locator) -> None:
    await expect(row).to_have_attribute("data-state", "settled")


async def test_one_click_shows_a_meeting_in_six_languages(
    real_gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    async with open_page(real_gateway.url, **DESKTOP) as watch:
        page = watch.page
        play = page.get_by_test_id("empty-play")
        await expect(play).to_be_visible()
        rows = page.get_by_test_id("utterance")
        async with captured(page) as capture:
            await play.click()
            await page.mouse.move(1, 1)
            await settled(rows.nth(6))
        capture.save(artifacts / "sample-meeting.webp")
        await page.screenshot(path=artifacts / "real-engine-sample.png")

        speakers = set()
        for index in range(5):
            row = rows.nth(index)
            for lang in LANGUAGES:
                cell = row.get_by_test_id(f"cell-{lang}")
                await expect(cell).not_to_be_empty()
                await expect(cell).not_to_have_attribute("data-state", "failed")
            speakers.add((await row.get_attribute("data-key") or "").split("/")[0])
        assert len(speakers) >= 3
        # What is seen is what the gateway sent, and translated: no two languages say the same.
        for final in (frame for frame in watch.received if frame["type"] == "translation.final"):
            row = page.locator(f'[data-key="{final["participant"]}/{final["utterance"]}"]')
            await expect(row.get_by_test_id(f"cell-{final['lang']}")).to_have_text(final["text"])
        # Also where it is out of sight by now.
        texts = [await rows.nth(0).get_by_test_id(f"cell-{lang}").text_content() for lang in LANGUAGES]
        assert len(set(texts)) == len(LANGUAGES)

        await page.get_by_test_id("sample").click()
        await expect(page.get_by_test_id("tab-people")).to_have_text("People 1")


async def test_each_window_reads_the_other_in_its_language(
    real_gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    async with open_page(real_gateway.url, **DESKTOP) as ana:
        await read(ana.page, "en", "de")
        link = ana.page.url
        assert "meeting=" in link
        async with open_page(link, locale="ja-JP", **PHONE) as bo:
            await join(bo.page, "Bo", "ja")
            await say(ana.page, SENTENCE)
            for watch, lang, word in ((ana, "de", "Freitag"), (bo, "ja", "金曜日")):
                row = row_of(watch.page, SENTENCE)
                await settled(row)
                await expect(row.get_by_test_id(f"cell-{lang}")).to_contain_text(word)
            await bo.page.screenshot(path=artifacts / "real-engine-phone.png")

            async with open_page(link, locale="es-ES") as late:
                await join(late.page, "Cy", "es", speak=True)
                row = row_of(late.page, SENTENCE)
                await settled(row)
                await expect(row.get_by_test_id("cell-es")).to_contain_text("viernes")
                await late.page.get_by_test_id("spoken-lang").select_option("es")
                await say(late.page, "¿Podría repetirlo, por favor?")
                for watch, lang in ((ana, "de"), (bo, "ja")):
                    answer = row_of(watch.page, "¿Podría repetirlo")
                    await settled(answer)
                    await expect(answer.get_by_test_id(f"cell-{lang}")).to_have_text(watch.finals()[lang])


async def test_a_connection_lost_in_mid_utterance_loses_nothing(
    real_gateway: GatewayProcess, open_page: OpenPage
) -> None:
    said = "The contract isn't ready yet because Anna is out sick."
    async with open_page(real_gateway.url, **DESKTOP) as ana:
        await read(ana.page, "en", "es")
        async with open_page(ana.page.url) as bo:
            await join(bo.page, "Bo", "es")
            await share_typing(ana.page)
            field = ana.page.get_by_test_id("text")
            for word in said.split()[:6]:
                await field.press_sequentially(f"{word} ")
            for watch in (ana, bo):
                await expect(watch.page.get_by_test_id("cell-es").last).not_to_be_empty()
            for watch in (ana, bo):
                watch.allow("ERR_INTERNET_DISCONNECTED")
                await watch.page.context.set_offline(True)
            # Either finds out by itself, when nobody has answered for half a minute.
            for watch in (ana, bo):
                await expect(watch.page.get_by_test_id("banner")).to_be_visible()
            await field.fill(said)
            await ana.page.get_by_test_id("send").click()
            await say(ana.page, "Thank you.")
            for watch in (bo, ana):
                await watch.page.context.set_offline(False)
            for watch in (ana, bo):
                rows = watch.page.get_by_test_id("utterance")
                await settled(rows.nth(1))
                await settled(rows.nth(0))
                await expect(rows).to_have_count(2)
                await expect(rows.nth(0)).to_contain_text(said)
                await expect(rows.nth(0).get_by_test_id("cell-es")).to_have_text(re.compile("^El contrato"))
                await expect(rows.nth(1).get_by_test_id("cell-es")).to_have_text("Gracias.")
                await expect(watch.page.get_by_test_id("banner")).to_be_hidden()


@pytest.mark.parametrize("mode", ["live", "stable", "final"])
async def test_three_ways_to_read_what_is_being_said(
    real_gateway: GatewayProcess, open_page: OpenPage, artifacts: Path, mode: str
) -> None:
    async with open_page(real_gateway.url, **DESKTOP) as watch:
        page = watch.page
        await read(page, "es", "fr")
        await page.get_by_test_id(f"stability-{mode}").check(force=True)
        row = page.get_by_test_id("utterance")
        if mode == "final":
            await page.get_by_test_id("sentences").get_by_role("button").nth(1).click()
        else:
            await pick_sentence(watch, 1, "es", "El contrato")
            await expect(row).to_have_attribute("data-state", "speaking")
            assert not [frame for frame in watch.sent if frame["type"] == "utterance.final"]
            await page.screenshot(path=artifacts / f"real-engine-{mode}.png")
            await page.clock.resume()
        await settled(row)
        kinds = {bool(frame["tentative"]) for frame in watch.received if frame["type"] == "translation.delta"}
        assert kinds <= {"live": {True, False}, "stable": {False}, "final": set()}[mode]
        for lang in ("es", "fr"):
            await expect(row.get_by_test_id(f"cell-{lang}")).to_have_text(watch.finals()[lang])


async def test_captions_for_an_overlay(real_gateway: GatewayProcess, open_page: OpenPage, artifacts: Path) -> None:
    async with open_page(real_gateway.url, **DESKTOP) as ana:
        await expect(ana.page.get_by_test_id("status")).to_have_attribute("data-state", "good")
        async with open_page(f"{ana.page.url}&view=captions&lang=ja", **DESKTOP) as overlay:
            await expect(overlay.page.locator("body")).to_have_text(re.compile(r"^\s*$"))
            await say(ana.page, SENTENCE)
            await expect(overlay.page.locator("body")).to_contain_text("金曜日")
            await overlay.page.screenshot(path=artifacts / "real-engine-captions.png", omit_background=True)
