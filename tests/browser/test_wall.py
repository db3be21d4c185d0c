"""The captions of a room's wall, as its projector opens them."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.async_api import Locator, Page, WebSocketRoute, expect

from gateway.client import connect
from tests.browser.axe import scan
from tests.browser.pages import captions_connected, received, stop_the_clock, until
from tests.browser.test_captions import meeting, speaker
from tests.conftest import OpenPage
from tests.processes import GatewayProcess

__all__ = ["meeting"]
pytestmark = pytest.mark.browser

LONG = " ".join(f"Wish {number} was light from the north for all who read." for number in range(30))


def address(gateway: GatewayProcess, **query: str) -> str:
    return f"{gateway.url}/?{urlencode({'view': 'reading', **query})}"


def rows(page: Page) -> Locator:
    """The rows that are on the screen, oldest first."""
    return page.locator(".said:visible")


def column(page: Page, lang: str) -> Locator:
    """What is on the screen in one language, oldest first."""
    return rows(page).get_by_test_id(f"column-{lang}")


async def voice(said: Locator) -> tuple[str, str]:
    """The shape and the colour of its speaker, which the sign before the name has."""
    shape, colour, sign = await said.evaluate(
        """(row) => {
            const sign = getComputedStyle(row.querySelector(".said-name"), "::before");
            const { dataset, style } = row;
            return [dataset.shape, style.getPropertyValue("--voice"), sign.content];
        }"""
    )
    assert sign == '""'
    return shape, colour


async def boxes(found: Locator) -> list[dict[str, float]]:
    shown: list[dict[str, float]] = await found.evaluate_all(
        """(parts) => parts.map((part) => {
            const { left, top, right, bottom } = part.getBoundingClientRect();
            return { left, top, right, bottom };
        })"""
    )
    return shown


@pytest.mark.parametrize(("width", "height"), [(1920, 1080), (844, 390), (390, 844)])
async def test_the_wall_shows_whole_rows_over_all_columns(
    gateway: GatewayProcess, open_page: OpenPage, meeting: str, artifacts: Path, width: int, height: int
) -> None:
    query = address(gateway, meeting=meeting, lang="ja,de")
    async with (
        open_page(query, viewport={"width": width, "height": height}) as watch,
        speaker(gateway, meeting) as ana,
        speaker(gateway, meeting, "Bo") as bo,
    ):
        page = watch.page
        await captions_connected(page)
        for number in range(12):
            who = (ana, bo)[number % 2]
            await who.say(str(number), f"Sentence {number} of a speech that goes on for a while.")
            await expect(column(page, "ja").last).to_contain_text(f"[ja] Sentence {number}")
            await expect(column(page, "de").last).to_contain_text(f"[de] Sentence {number}")
        assert await page.locator(".wall-head").all_inner_texts() == ["日本語", "Deutsch"]

        (book,) = await boxes(page.locator(".wall-book"))
        shown = await boxes(rows(page))
        assert len(shown) >= 2
        assert all(box["top"] >= book["top"] and box["bottom"] <= book["bottom"] for box in shown)
        assert book["bottom"] - shown[-1]["bottom"] < 0.05 * height  # the newest is at the bottom
        japanese, german = await boxes(column(page, "ja")), await boxes(column(page, "de"))
        heads = await boxes(page.locator(".wall-head"))
        for one, other in zip(japanese, german, strict=True):
            if width < height:  # one below the other
                assert other["left"] == one["left"]
                assert other["top"] >= one["bottom"]
            else:  # rows and heads stand on the same lines
                assert [one["left"], other["left"]] == pytest.approx([head["left"] for head in heads], abs=1)
                assert other["top"] == pytest.approx(one["top"], abs=0.04 * height)

        voices = {await voice(said) for said in await rows(page).all()}
        assert voices == {("1", "var(--voice-1)"), ("2", "var(--voice-2)")}
        assert set(await page.locator(".said-name:visible bdi").all_inner_texts()) == {"Ana", "Bo"}
        size = await column(page, "de").last.evaluate("(words) => parseFloat(getComputedStyle(words).fontSize)")
        unit = min(height / 100, 0.5625 * width / 100)
        assert size == pytest.approx(max(22, 4.3 * unit), abs=0.5)
        await page.screenshot(path=artifacts / f"wall-{width}.png")

        # No words lie below the button.
        (fill,) = await boxes(page.get_by_test_id("full-screen"))
        assert fill["top"] >= book["bottom"]
        for scheme in ("light", "dark") if width == 1920 else ("light",):
            await page.emulate_media(color_scheme=scheme)
            found = await scan(page)
            assert (found.serious, found.moderate) == ([], [])


async def test_the_foot_is_as_legible_on_a_large_screen(gateway: GatewayProcess, open_page: OpenPage) -> None:
    query = address(gateway, meeting="large", lang="ja,de,fr,es")
    async with open_page(query, viewport={"width": 3840, "height": 2160}) as watch:
        await captions_connected(watch.page)
        px = "(part) => parseFloat(getComputedStyle(part).fontSize)"
        fill, foot = watch.page.get_by_test_id("full-screen"), watch.page.locator(".wall-foot")
        assert await fill.evaluate(px) >= 0.7 * float(await foot.evaluate(px))
        invitation, others, button = await boxes(foot.locator("> *"))
        assert others["left"] - invitation["right"] >= await foot.evaluate(px)
        assert button["bottom"] <= 2160


async def test_the_foot_says_what_is_read_and_how_to_read_it_elsewhere(
    gateway: GatewayProcess, open_page: OpenPage, artifacts: Path
) -> None:
    query = address(gateway, meeting="foot", lang="ja,de", stability="live")
    async with (
        connect(gateway.url, meeting="foot", name="Ana", title="Weekly", reads=[], speaks="en") as ana,
        open_page(query, viewport={"width": 1920, "height": 1080}) as watch,
    ):
        page = watch.page
        await captions_connected(page)
        foot = page.locator(".wall-foot")
        await expect(foot).to_contain_text("Weekly · held by Ana")
        await expect(foot).to_contain_text("foot")
        await expect(foot).to_contain_text(f"Read along: {gateway.url.removeprefix('http://')}/?meeting=foot")
        await ana.partial("One two three", id="u1")
        said = rows(page).last
        await expect(said).to_contain_text("from English")
        (before,) = await boxes(said)
        words = "One two three four five six seven eight nine ten eleven twelve"
        await ana.partial(words, id="u1")
        await expect(said).to_contain_text("eight")
        assert await boxes(said) == [before]  # the second line has its room from the beginning
        await page.screenshot(path=artifacts / "wall-foot.png")
        found = await scan(page)
        assert (found.serious, found.moderate) == ([], [])


async def test_more_than_three_languages_take_turns_at_the_end_of_a_sentence(
    gateway: GatewayProcess, open_page: OpenPage, meeting: str
) -> None:
    query = address(gateway, meeting=meeting, lang="ja,de,fr,zh,es,en")
    async with (
        open_page(query, viewport={"width": 1920, "height": 1080}) as watch,
        speaker(gateway, meeting) as ana,
    ):
        page = watch.page
        heads, later = page.locator(".wall-head"), page.locator(".wall-others > span")
        await captions_connected(page)
        await ana.say("1", "Good morning.")
        await expect(column(page, "fr")).to_have_text("[fr] Good morning.")
        await stop_the_clock(page)
        await page.clock.run_for(100)
        first, second = ["日本語", "Deutsch", "Français"], ["中文", "Español", "English"]
        if await heads.all_inner_texts() != first:  # a turn has passed before the clock stood still
            await page.clock.run_for(14_000)
        await expect(heads).to_have_text(first)
        await expect(later).to_have_text(second)
        await page.clock.run_for(14_000)
        await expect(heads).to_have_text(second)
        await expect(later).to_have_text(first)
        await expect(column(page, "es")).to_have_text("[es] Good morning.")
        # In the middle of a sentence it waits, though not for ever.
        await ana.send("utterance.partial", id="2", rev=1, text="And now we")
        await until(lambda: any(frame["text"] == "And now we" for frame in received(watch, "caption")))
        await page.clock.run_for(15_000)
        await expect(column(page, "en").last).to_have_text("And now we")
        await expect(heads).to_have_text(second)
        await ana.say("2", "And now we begin.")
        await until(lambda: any(frame["text"] == "And now we begin." for frame in received(watch, "caption")))
        await until(
            lambda: sum("we begin" in frame["text"] for frame in received(watch, "translation.final")) == 5
        )
        await page.clock.run_for(1_500)
        await expect(heads).to_have_text(first)


async def test_no_word_of_a_text_longer_than_the_screen_is_left_out(
    gateway: GatewayProcess, open_page: OpenPage, meeting: str, artifacts: Path
) -> None:
    query = address(gateway, meeting=meeting, lang="en,de")
    async with (
        open_page(query, viewport={"width": 1280, "height": 720}) as watch,
        speaker(gateway, meeting) as ana,
    ):
        page = watch.page
        await captions_connected(page)
        await stop_the_clock(page)
        await ana.say("1", LONG)
        await ana.say("2", "That is all.")
        await until(lambda: any("That is all." in frame["text"] for frame in received(watch, "translation.final")))
        turns: list[str] = []
        while "That is all." not in await column(page, "en").all_inner_texts():
            assert len(turns) < 60
            await page.clock.run_for(500)
            for text in await column(page, "en").all_inner_texts():
                if text not in turns and text:
                    turns.append(text)
            (book,) = await boxes(page.locator(".wall-book"))
            assert all(
                box["top"] >= book["top"] and box["bottom"] <= book["bottom"] for box in await boxes(rows(page))
            )
        said = " ".join(each for each in turns if each != "That is all.")
        assert len(turns) > 2
        assert said == LONG


async def test_a_seventh_speaker_has_a_colour_again_and_another_shape(
    gateway: GatewayProcess, open_page: OpenPage, meeting: str
) -> None:
    query = address(gateway, meeting=meeting, lang="en")
    async with AsyncExitStack() as entered:
        watch = await entered.enter_async_context(open_page(query))
        await captions_connected(watch.page)
        for number in range(8):
            each = await entered.enter_async_context(speaker(gateway, meeting, f"P{number}"))
            await each.say("1", f"I am number {number}.")
            await expect(column(watch.page, "en").last).to_have_text(f"I am number {number}.")
        # The eighth has the second colour again, with another shape.
        assert await voice(rows(watch.page).last) == ("3", "var(--voice-2)")


@pytest.mark.parametrize(("locale", "name"), [("en-US", "from German"), ("fr-FR", "original : allemand")])
async def test_the_language_that_is_spoken_is_named_in_the_words_of_the_page(
    gateway: GatewayProcess, open_page: OpenPage, meeting: str, locale: str, name: str
) -> None:
    async with (
        open_page(address(gateway, meeting=meeting, lang="ja"), locale=locale) as watch,
        speaker(gateway, meeting) as ana,
    ):
        await captions_connected(watch.page)
        await ana.send("session.update", speaks="de")
        await ana.say("1", "Guten Morgen.")
        await expect(rows(watch.page).locator("small")).to_have_text(name)


@pytest.mark.parametrize("view", ["reading", "captions"])
async def test_one_line_goes_along_all_of_an_unsure_translation(
    gateway: GatewayProcess, open_page: OpenPage, meeting: str, view: str
) -> None:
    async def doubt(line: WebSocketRoute) -> None:
        server = line.connect_to_server()

        def pass_on(frame: str | bytes) -> None:
            message = json.loads(frame)
            doubts = {"confidence": 0.1, "unsure": True} if message["type"] == "translation.final" else {}
            line.send(json.dumps(message | doubts))

        server.on_message(pass_on)

    async with open_page(f"{gateway.url}/healthz", viewport={"width": 800, "height": 600}) as watch:
        watch.allow("favicon.ico")
        page = watch.page
        await page.route_web_socket("**/v1/stream", doubt)
        await page.goto(address(gateway, meeting=meeting, lang="de", view=view))
        await captions_connected(page)
        async with speaker(gateway, meeting) as ana:
            await ana.say("1", "The customer wants an answer by Monday, so please write it down for all.")
            await expect(page.locator(".unsure")).to_contain_text("[de] The customer wants")
            # It is as high as the words, and nothing cuts it off.
            words, line, clip = await page.locator(".unsure").evaluate(
                """(words) => {
                    const [box, style] = [words.getBoundingClientRect(), getComputedStyle(words, "::before")];
                    const clip = words.closest(".wall-book, .captions").getBoundingClientRect();
                    const left = box.left + parseFloat(style.left);
                    return [box.height, [style.borderInlineStartStyle, parseFloat(style.height), left], clip.left];
                }"""
            )
            style, height, left = line
            assert style == "dotted"
            assert height > 0.8 * words
            assert left > clip
            assert (
                await page.locator(".unsure").evaluate("(e) => getComputedStyle(e).textDecorationLine") == "none"
            )
