"""Several people in one meeting, each with a window of their own, against a real gateway process."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from loadtest.soak.relay import Relay
from tests.browser.conftest import StartGateway, kill
from tests.browser.pages import (
    DESKTOP,
    SENTENCE,
    captions_connected,
    cell,
    choose_stability,
    connected,
    join,
    meeting_of,
    new_meeting,
    original,
    read,
    received,
    row,
    say,
    seen_by,
    sent,
    settled,
    show,
    type_words,
    until,
    witness,
)
from tests.conftest import OpenPage, Watch
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser

WORDS = ("We", "move", "the", "launch", "to", "next", "Friday")
TYPED = " ".join(WORDS)


async def originals(page: Page) -> list[str]:
    """What was said, row by row."""
    return await original(page).all_inner_texts()


async def begin(watch: Watch, *tags: str, name: str = "Ana") -> str:
    """Be the first in a meeting of one's own, reading some languages; the link for others."""
    page = watch.page
    await read(page, *tags)
    people = await show(page, "people")
    await people.get_by_role("button", name="Add your name").click()
    await people.get_by_label("Your name").fill(name)
    await people.get_by_test_id("own").get_by_role("button", name="Save").click()
    await expect(people.get_by_test_id("own")).to_contain_text(f"{name} (you)")
    return page.url


# -------------------------------------------------------------------- when it was said


async def test_latecomers_see_the_original_time_of_utterances(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with open_page(gateway.url) as host:
        link = await begin(host, "fr")
        said = await say(host.page, SENTENCE)
        await settled(said)
        (caption,) = [frame for frame in received(host, "caption") if frame["final"]]
        accepted = datetime.fromtimestamp(caption["at_ms"] / 1_000, UTC).isoformat(timespec="milliseconds")
        when = accepted.replace("+00:00", "Z")
        await expect(said.locator("time")).to_have_attribute("datetime", when)
        async with open_page(link) as guest:
            await join(guest.page, reads="ja")
            heard = row(guest.page, SENTENCE)
            await expect(heard.locator("time")).to_have_attribute("datetime", when)
            await expect(heard.locator("time")).to_have_text(re.compile(r"^\d?\d:\d\d"))


# -------------------------------------------------------------------- who is there


async def test_link_visitor_joins_reads_and_is_seen(gateway: GatewayProcess, open_page: OpenPage) -> None:
    """They are seen until they leave."""
    async with open_page(gateway.url) as host:
        link = await begin(host, "fr")
        people = host.page.get_by_test_id("people").get_by_role("listitem")
        async with open_page(link, locale="ja-JP") as guest:
            page = guest.page
            dialog = page.get_by_role("dialog", name="会議に参加")
            await expect(dialog).to_contain_text(meeting_of(host.page))
            # Nobody takes part before they said so.
            await expect(dialog.get_by_label("あなたの名前")).to_be_focused()
            assert sent(guest, "session.start") == []
            # The browser's language is chosen already; one key is enough.
            await expect(dialog.get_by_label("読む言語")).to_have_value("ja")
            await page.keyboard.type("Bo")
            await page.keyboard.press("Enter")
            await expect(dialog).to_have_count(0)
            await connected(page)
            assert meeting_of(page) == meeting_of(host.page)

            await expect(people).to_have_count(2)
            await expect(people.nth(0)).to_contain_text("Ana (you)")
            await expect(people.nth(0)).to_contain_text("Speaker · English")
            await expect(people.nth(0)).to_contain_text("Reader · French")
            await expect(people.nth(1)).to_contain_text("Bo")
            await expect(people.nth(1)).to_contain_text("Reader · Japanese")
            await expect(people.nth(1)).not_to_contain_text("Speaker")
            await expect(host.page.get_by_test_id("tab-people")).to_have_text("People 2")

            said = await say(host.page, SENTENCE)
            await settled(said)
            heard = row(page, SENTENCE)
            await settled(heard)
            await expect(heard).to_contain_text("Ana")
            await expect(original(heard)).to_have_text(SENTENCE)
            await expect(original(heard)).to_have_attribute("lang", "en")
            await expect(cell(heard, "ja")).to_have_text(f"[ja] {SENTENCE}")
            await expect(cell(heard, "ja")).to_have_attribute("lang", "ja")
            await expect(heard.get_by_test_id("cancel")).to_have_count(0)  # it is not theirs
            await expect(cell(heard, "fr")).to_have_count(0)

            own = await show(page, "people")
            await own.get_by_role("button", name="名前を変更").click()
            await own.get_by_label("あなたの名前").fill("Bo the second")
            await page.keyboard.press("Enter")
            await expect(people.nth(1)).to_contain_text("Bo the second")
            await read(page, "de", "es")
            await expect(people.nth(1)).to_contain_text("Reader · Spanish, German")

        await expect(people).to_have_count(1)
        await expect(host.page.get_by_test_id("tab-people")).to_have_text("People 1")


async def test_readers_have_no_composer_until_they_speak(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url) as host:
        link = await begin(host, "en")
        others = host.page.get_by_test_id("people").get_by_role("listitem").filter(has_text="Léa")
        async with open_page(link) as guest:
            page = guest.page
            await join(page, "Léa", reads="fr", speaks=False)
            await expect(page.get_by_test_id("composer")).to_be_hidden()
            assert [start["speaks"] for start in sent(guest, "session.start")] == [None]
            await expect(others).not_to_contain_text("Speaker")

            await page.get_by_role("button", name="Speak, too").click()
            await expect(page.get_by_test_id("composer")).to_be_visible()
            await expect(page.get_by_test_id("text")).to_be_focused()
            await expect(page.get_by_role("button", name="Speak, too")).to_be_hidden()
            await page.get_by_test_id("spoken-lang").select_option("fr")
            await expect(others).to_contain_text("Speaker · French")
            await say(page, "Bonjour à tous.")
            heard = row(host.page, "Bonjour à tous.")
            await expect(heard).to_contain_text("Léa")
            await expect(cell(heard, "en")).to_have_text("[en] Bonjour à tous.")


async def test_latecomers_see_the_past_once_and_unspoken(gateway: GatewayProcess, open_page: OpenPage) -> None:
    """They hear none of it."""
    texts = [f"Sentence number {number}." for number in range(1, 6)]
    async with open_page(gateway.url) as host:
        link = await begin(host, "fr")
        for text in texts:
            await settled(await say(host.page, text))
        async with open_page(link) as guest:
            page = guest.page
            await join(page, reads="es")
            rows = page.get_by_test_id("utterance")
            await expect(rows).to_have_count(len(texts))
            for text in texts:
                await expect(cell(row(page, text), "es")).to_have_text(f"[es] {text}")
            assert await originals(page) == texts
            await say(host.page, "This is new.")
            await expect(cell(row(page, "This is new."), "es")).to_have_text("[es] This is new.")
            await expect(rows).to_have_count(len(texts) + 1)
            assert Counter(await originals(page)) == Counter([*texts, "This is new."])


@pytest.mark.parametrize("speaks", [True, False], ids=["speaker", "listener"])
async def test_a_reload_stays_in_the_meeting_and_asks_nothing(
    gateway: GatewayProcess, open_page: OpenPage, speaks: bool
) -> None:
    async with open_page(gateway.url) as host:
        link = await begin(host, "en")
        await settled(await say(host.page, SENTENCE))
        async with open_page(link) as guest:
            page = guest.page
            await join(page, "Bo", reads="fr", speaks=speaks)
            await expect(cell(row(page, SENTENCE), "fr")).to_have_text(f"[fr] {SENTENCE}")
            await page.reload()
            await connected(page)
            await expect(page.get_by_role("dialog")).to_have_count(0)
            await expect(page.get_by_test_id("composer")).to_be_visible(visible=speaks)
            await expect(row(page, SENTENCE)).to_have_count(1)
            await expect(cell(row(page, SENTENCE), "fr")).to_have_text(f"[fr] {SENTENCE}")
            people = await show(page, "people")
            await expect(people.get_by_test_id("own")).to_contain_text("Bo (you)")
            await expect(people.get_by_role("listitem")).to_have_count(2)
            starts = sent(guest, "session.start")
            assert {start["meeting"] for start in starts} == {meeting_of(host.page)}
            assert [start["reads"] for start in starts] == [["fr"], ["fr"]]
            assert [start["speaks"] for start in starts] == ["en" if speaks else None] * 2


async def test_a_speaker_without_a_name_is_known_again_after_a_reload(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with open_page(gateway.url) as watch:
        page = watch.page
        await settled(await say(page, SENTENCE))
        for _ in range(2):
            await page.reload()
            await connected(page)
            await expect(row(page, SENTENCE).locator(".voice-name")).to_have_text("You")
        # Also what another session of theirs has said can be corrected.
        await expect(row(page, SENTENCE).get_by_test_id("correct")).to_be_visible()


# -------------------------------------------------------------------- how early one reads


async def test_each_reader_sees_as_early_as_they_chose(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with (
        open_page(gateway.url) as host,
        open_page(f"{gateway.url}/?meeting={(meeting := new_meeting())}") as live,
        open_page(f"{gateway.url}/?meeting={meeting}") as stable,
        open_page(f"{gateway.url}/?meeting={meeting}") as final,
    ):
        await host.page.goto(f"{gateway.url}/?meeting={meeting}")
        await join(host.page, "Ana")
        for mode, reader in {"live": live, "stable": stable, "final": final}.items():
            await join(reader.page, reads="fr", speaks=False)
            await read(reader.page, "fr")
            await choose_stability(reader.page, mode)
            await witness(reader.page, "cell-fr", "tentative-fr")
        # What they chose is in force.
        await until(lambda: bool(received(final, "session.updated")) and bool(received(stable, "session.updated")))

        await type_words(host, *WORDS, into="fr")
        await expect(cell(live.page, "fr")).to_contain_text("[fr] We move the launch")
        await expect(cell(stable.page, "fr")).to_contain_text("[fr] We move")
        await expect(final.page.get_by_test_id("utterance")).to_have_count(1)
        await expect(cell(final.page, "fr")).to_be_empty()

        await host.page.keyboard.press("Enter")
        for reader in (live, stable, final):
            await settled(reader.page.get_by_test_id("utterance"))
            await expect(cell(reader.page, "fr")).to_have_text(f"[fr] {TYPED}")
            await expect(reader.page.get_by_test_id("tentative-fr")).to_be_empty()

        # Of what stays nothing was ever taken back, in every text that was ever on the screen.
        seen = await seen_by(stable.page, "cell-fr")
        assert len(seen) > 1
        assert all(later.startswith(earlier) for earlier, later in pairwise(seen)), seen
        assert await seen_by(stable.page, "tentative-fr") == [""]
        assert [frame for frame in stable.received if frame.get("tentative")] == []
        assert len(await seen_by(live.page, "tentative-fr")) > 1
        assert await seen_by(final.page, "cell-fr") == ["", f"[fr] {TYPED}"]
        assert received(final, "translation.delta") == []


# -------------------------------------------------------------------- when the connection is lost


async def test_a_lost_connection_loses_and_doubles_nothing(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with Relay(gateway.port) as relay, open_page(gateway.url) as host:
        link = await begin(host, "fr")
        async with open_page(f"{relay.url}/?meeting={meeting_of(host.page)}") as guest:
            guest.allow("ERR_")  # the browser notes every connection that is refused or breaks off
            page = guest.page
            assert link != page.url
            await join(page, "Bo", reads="fr")
            await settled(await say(host.page, "Said before."))
            await type_words(host, *WORDS, into="fr")
            await expect(cell(row(page, "launch"), "fr")).to_contain_text("[fr] We move the launch")
            await type_words(guest, "I", "was")

            relay.refuse(True)
            relay.cut()
            banner = page.get_by_test_id("banner")
            await expect(banner).to_be_visible()
            await expect(banner).to_contain_text("The connection is lost")
            await expect(banner.get_by_role("button", name="Try now")).to_be_visible()
            await expect(page.get_by_test_id("status")).to_have_text("Reconnecting…")
            # What was there stays to be read.
            await expect(cell(row(page, "launch"), "fr")).to_contain_text("[fr] We move the launch")
            # Meanwhile both go on.
            await host.page.keyboard.press("Enter")
            await settled(row(host.page, TYPED))
            await say(host.page, "Said meanwhile.")
            await page.get_by_test_id("text").press_sequentially(" cut off")
            await page.keyboard.press("Enter")
            await expect(page.get_by_test_id("text")).to_have_value("")

            relay.refuse(False)
            # It may come back by itself first, and the button be gone with the banner.
            await page.get_by_test_id("retry").dispatch_event("click")
            await connected(page)
            await expect(banner).to_be_hidden()
            both = ["Said before.", TYPED, "Said meanwhile.", "I was cut off"]
            for shown in (page, host.page):
                for text in both:
                    await expect(row(shown, text)).to_have_count(1)
                    await settled(row(shown, text))
                    await expect(cell(row(shown, text), "fr")).to_have_text(f"[fr] {text}")
                assert Counter(await originals(shown)) == Counter(both)
            assert (
                sum(start["resume"] is not None for start in sent(guest, "session.start") if "resume" in start) > 0
            )


async def test_page_recovers_from_gateway_crash_in_mid_sentence(
    start_gateway: StartGateway, open_page: OpenPage
) -> None:
    gateway = start_gateway().ready()
    async with open_page(gateway.url) as host:
        link = await begin(host, "fr")
        async with open_page(link) as guest:
            host.allow("ERR_")
            guest.allow("ERR_")
            await join(guest.page, "Bo", reads="fr")
            await settled(await say(host.page, SENTENCE))
            await type_words(host, *WORDS, into="fr")
            await expect(cell(row(guest.page, "next"), "fr")).to_contain_text("[fr] We move")

            kill(gateway)
            for watch in (host, guest):
                await expect(watch.page.get_by_test_id("banner")).to_be_visible()
                await expect(watch.page.get_by_test_id("utterance")).to_have_count(2)
                await expect(cell(row(watch.page, "next"), "fr")).to_contain_text("[fr] We move")
            await host.page.keyboard.press("Enter")
            await say(host.page, "Said to nobody.")
            start_gateway(port=gateway.port).ready()
            for watch in (host, guest):
                page = watch.page
                await connected(page)
                await expect(page.get_by_test_id("banner")).to_be_hidden()
                for text in (SENTENCE, TYPED, "Said to nobody."):
                    await expect(cell(row(page, text), "fr")).to_have_text(f"[fr] {text}")
                assert Counter(await originals(page)) == Counter([SENTENCE, TYPED, "Said to nobody."])
        assert [frame["text"] for frame in sent(host, "utterance.final")] == [SENTENCE, TYPED, "Said to nobody."]


# -------------------------------------------------------------------- captions alone


async def test_captions_stand_alone_over_any_background(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    async with open_page(gateway.url) as host:
        await begin(host, "fr")
        address = f"{gateway.url}/?meeting={meeting_of(host.page)}&view=captions&lang=ja&lines=3"
        async with open_page(address, **DESKTOP) as wall:
            page = wall.page
            await captions_connected(page)
            await say(host.page, SENTENCE)
            plate = page.get_by_test_id("captions-ja")
            await expect(plate.locator(".caption-read")).to_have_text(f"[ja] {SENTENCE}")
            await expect(plate.locator(".caption-name")).to_contain_text("Ana")
            await say(host.page, "Kenji will send the numbers.")
            await expect(page.get_by_test_id("captions-ja")).to_contain_text("Kenji will send")

            await expect(page.get_by_role("dialog")).to_have_count(0)
            await expect(page.locator("header, main, button, input, textarea")).to_have_count(0)
            grounds = await page.evaluate(
                "['html', 'body', '.captions'].map((found) => "
                "getComputedStyle(document.querySelector(found)).backgroundColor)"
            )
            assert set(grounds) == {"rgba(0, 0, 0, 0)"}
            # As a video would be behind it.
            await page.evaluate("document.documentElement.style.setProperty('background', 'seagreen')")
            await page.screenshot(path=artifacts / "page-captions.png")
            # Whoever watches a wall is nobody's reader by name, yet somebody reads there.
            unnamed = host.page.get_by_test_id("people-unnamed")
            await expect(unnamed).to_have_text("and 1 reader")
            await expect(host.page.get_by_test_id("tab-people")).to_have_text("People 1")


async def test_a_captions_address_that_cannot_be_says_why(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(f"{gateway.url}/?view=captions") as watch:
        await expect(watch.page.get_by_test_id("captions-message")).to_contain_text("“meeting” is missing")
        assert watch.sent == []
