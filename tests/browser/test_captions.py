"""The captions alone, as a video mixer opens them; a room's wall is in test_wall.py."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from playwright.async_api import Locator, Page, expect
from websockets.asyncio.client import ClientConnection, connect

from tests.browser.conftest import SCRIPT, StartGateway, kill
from tests.browser.pages import captions as captions_received
from tests.browser.pages import captions_connected, seen_by, stop_the_clock, until, witness
from tests.conftest import OpenPage
from tests.patience import PATIENCE_MS
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser

# What does not come in this time is not on its way.
_PATIENCE_S = PATIENCE_MS / 1_000
# The steps in which a clock that stands is put forward, in ms.
_STEP_MS = 100


@pytest.fixture
def meeting() -> str:
    return uuid4().hex


def address(gateway: GatewayProcess, **query: str) -> str:
    return f"{gateway.url}/?{urlencode({'view': 'captions', **query})}"


@asynccontextmanager
async def speaker(gateway: GatewayProcess, meeting: str, name: str = "Ana") -> AsyncIterator[Speaker]:
    async with connect(f"ws://127.0.0.1:{gateway.port}/v1/stream") as connection:
        speaking = Speaker(connection)
        await speaking.send("session.start", meeting=meeting, name=name, speaks="en", reads=[])
        await speaking.hear("session.started")  # who joins from now on is told
        yield speaking


class Speaker:
    """Somebody else in the meeting."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    async def send(self, kind: str, **fields: object) -> None:
        await self._connection.send(json.dumps({"type": kind, **fields}))

    async def say(self, identifier: str, text: str) -> None:
        await self.send("utterance.final", id=identifier, rev=9, text=text)

    async def hear(self, *kinds: str) -> dict[str, Any]:
        """The next message of one of these kinds."""
        while (message := json.loads(await self._connection.recv()))["type"] not in kinds:
            pass
        heard: dict[str, Any] = message
        return heard

    async def ended(self) -> None:
        async for _ in self._connection:
            pass


def captions(page: Page, lang: str = "ja") -> Locator:
    """The words on the plate of a language."""
    return page.get_by_test_id(f"captions-{lang}").locator(".caption-read")


def name_tag(page: Page, lang: str = "ja") -> Locator:
    return page.get_by_test_id(f"captions-{lang}").locator(".caption-name")


async def shown_turns(page: Page, lang: str, until: str) -> list[tuple[str, int]]:
    """What the plate showed one after the other, and for how many ms, until it showed this; its clock stands."""
    turns: list[tuple[str, int]] = []
    while not turns or until not in turns[-1][0]:
        assert len(turns) < 50, turns
        await page.clock.run_for(_STEP_MS)
        text = " ".join(await captions(page, lang).all_inner_texts())
        if turns and turns[-1][0] == text:
            turns[-1] = (text, turns[-1][1] + _STEP_MS)
        elif text:
            turns.append((text, _STEP_MS))
    return turns


async def background(page: Page, selector: str) -> str:
    return str(await page.locator(selector).first.evaluate("(part) => getComputedStyle(part).backgroundColor"))


async def test_spoken_text_stays_until_the_next(
    gateway: GatewayProcess, open_page: OpenPage, meeting: str, artifacts: Path
) -> None:
    async with open_page(address(gateway, meeting=meeting, lang="ja", lines="1")) as watch:
        page = watch.page
        view = page.get_by_test_id("captions")
        await expect(view).to_have_attribute("data-state", "open")
        # Nothing but what is said, and the video behind it.
        await expect(page.locator("body")).to_have_text("")
        assert await background(page, "html") == "rgba(0, 0, 0, 0)"
        assert await background(page, "body") == "rgba(0, 0, 0, 0)"
        assert await page.locator("button, input, select, a, header").count() == 0

        async with speaker(gateway, meeting) as ana:
            await ana.say("1", "Good morning.")
            await expect(captions(page)).to_have_text("[ja] Good morning.")
            assert await background(page, ".caption-plate") == "rgba(23, 18, 22, 0.92)"
            await ana.say("3", "Let us begin.")
            await expect(captions(page)).to_have_text("[ja] Let us begin.")
            words = captions(page)
            await expect(words).to_have_attribute("lang", "ja")
            await page.evaluate("document.body.style.setProperty('background', 'linear-gradient(#357, #fb8)')")
            await page.screenshot(path=artifacts / "captions.png")
        starts = [frame for frame in watch.sent if frame["type"] == "session.start"]
        assert [(start["reads"], start["stability"]) for start in starts] == [(["ja"], "stable")]


async def test_left_aligns_left_in_any_browser_language(
    gateway: GatewayProcess, open_page: OpenPage, meeting: str
) -> None:
    query = address(gateway, meeting=meeting, lang="ja", lines="1", align="left")
    async with open_page(query, locale="ar") as watch, speaker(gateway, meeting) as ana:
        await ana.say("1", "Good morning.")
        await expect(captions(watch.page)).to_have_text("[ja] Good morning.")
        await expect(watch.page.locator("html")).to_have_attribute("dir", "rtl")
        box = await watch.page.locator(".caption").bounding_box()
        assert box is not None
        assert box["x"] < 100


async def test_markup_is_text_on_a_plate_that_keeps_its_height(
    gateway: GatewayProcess, open_page: OpenPage, meeting: str
) -> None:
    async with (
        open_page(address(gateway, meeting=meeting, lang="en", names="0", lines="3")) as watch,
        speaker(gateway, meeting) as ana,
    ):
        await ana.say("1", text := '<b onclick="x">bold</b>')
        await expect(captions(watch.page, "en")).to_have_text(text)
        assert await watch.page.locator(".caption b").count() == 0
        await expect(name_tag(watch.page, "en")).to_have_count(0)
        lines = await captions(watch.page, "en").evaluate(
            "(words) => words.clientHeight / parseFloat(getComputedStyle(words).lineHeight)"
        )
        assert lines == pytest.approx(3, abs=0.05)


LONG = "We had {} wishes when we began, and I would like to go through them once more before we decide. " * 5
WIDE = "私たちには三つの願いがありました。決める前にもう一度それらを振り返りたいと思います。" * 4


@pytest.mark.parametrize(
    ("text", "per_second"),
    [(LONG.format(*("three", "four", "five", "six", "seven")).strip(), 17), (WIDE, 17 / 2)],
    ids=["latin", "wide"],
)
async def test_every_word_of_a_long_final_stays_long_enough_to_be_read(
    gateway: GatewayProcess, open_page: OpenPage, meeting: str, text: str, per_second: float, artifacts: Path
) -> None:
    """It is longer than the plate has room for. What was said after it waits."""
    query = address(gateway, meeting=meeting, lang="en")
    async with (
        open_page(query, viewport={"width": 1280, "height": 720}) as watch,
        speaker(gateway, meeting) as ana,
    ):
        page = watch.page
        await captions_connected(page)
        await stop_the_clock(page)
        await ana.say("1", text)
        await ana.say("2", "That is all.")
        await until(lambda: "That is all." in captions_received(watch))
        *turns, (last, _) = await shown_turns(page, "en", "That is all.")
        assert last == "That is all."
        assert len(turns) > 2
        together = "".join(shown for shown, _ in turns)
        assert together.replace(" ", "") == text.replace(" ", "")
        for shown, ms in turns:
            assert set(shown.split()) <= set(text.split()) or per_second < 17  # no word is cut
            assert ms >= max(1_000, len(shown) / per_second * 1_000) - _STEP_MS
        await page.screenshot(path=artifacts / "captions-long.png")


async def test_words_that_are_spoken_wait_ten_seconds_at_most(
    gateway: GatewayProcess, open_page: OpenPage, meeting: str
) -> None:
    async with (
        open_page(address(gateway, meeting=meeting, lang="en")) as watch,
        speaker(gateway, meeting) as ana,
        speaker(gateway, meeting, "Bo") as bo,
    ):
        page = watch.page
        await captions_connected(page)
        await stop_the_clock(page)
        await ana.say("1", LONG.format(*("three", "four", "five", "six", "seven")).strip())
        await until(lambda: bool(captions_received(watch)))
        await page.clock.run_for(1_000)
        await bo.send("utterance.partial", id="1", rev=1, text="May I")
        await until(lambda: "May I" in captions_received(watch))
        turns = await shown_turns(page, "en", "May I")
        assert 9_500 <= sum(ms for _, ms in turns[:-1]) <= 11_000
        await expect(name_tag(page, "en")).to_have_text("Bo")
        # Nothing of what was left out comes back.
        await page.clock.run_for(20_000)
        await expect(captions(page, "en")).to_have_text("May I")


async def test_the_name_tag_is_bright_while_its_speaker_speaks(
    gateway: GatewayProcess, open_page: OpenPage, meeting: str
) -> None:
    async with (
        open_page(address(gateway, meeting=meeting, lang="ja", stability="live")) as watch,
        speaker(gateway, meeting) as ana,
    ):
        page = watch.page
        await captions_connected(page)
        await ana.send("utterance.partial", id="1", rev=1, text="Good morning to all of you here")
        await expect(captions(page)).to_contain_text("[ja]")
        # The spoken language, in the reader's.
        await expect(name_tag(page)).to_have_text("Ana英語")
        await expect(name_tag(page)).to_have_css("background-color", "rgb(245, 182, 58)")
        await ana.say("1", "Good morning to all of you here.")
        await expect(captions(page)).to_have_text("[ja] Good morning to all of you here.")
        await expect(name_tag(page)).to_have_css("background-color", "rgba(23, 18, 22, 0.92)")


async def test_two_languages_get_a_block_each(gateway: GatewayProcess, open_page: OpenPage, meeting: str) -> None:
    """Originals are shown where they are asked for."""
    query = {
        "meeting": meeting,
        "lang": "ja,de-AT",
        "original": "1",
        "align": "center",
        "position": "top",
        "box": "0",
    }
    async with open_page(address(gateway, **query)) as watch, speaker(gateway, meeting) as ana:
        for number in range(3):
            await ana.say(str(number), f"Sentence {number}.")
        for lang in ("ja", "de"):
            await expect(captions(watch.page, lang)).to_have_text(f"[{lang}] Sentence 2.")
        # Another one is under way, and has no word yet that stays.
        await ana.send("utterance.partial", id="3", rev=1, text="Hm")
        while not any(frame["type"] == "caption" and frame["text"] == "Hm" for frame in watch.received):
            await asyncio.sleep(0.02)
        await watch.page.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        await expect(watch.page.locator(".caption-original")).to_have_text(["Sentence 2."] * 2)
        assert await background(watch.page, ".caption-plate") == "rgba(23, 18, 22, 0)"
        blocks = [await watch.page.get_by_test_id(f"captions-{lang}").bounding_box() for lang in ("ja", "de")]
        tops = [box["y"] for box in blocks if box]
        assert tops == sorted(tops)
        assert tops[0] < 60


async def test_wrong_parameters_are_named(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(address(gateway)) as watch:
        message = watch.page.get_by_test_id("captions-message")
        await expect(message).to_contain_text("“meeting”")
        await expect(message).to_contain_text("“lang”")
    wrong = {
        "meeting": "a b",
        "lang": "ja;de",
        "lines": "7",
        "size": "huge",
        "align": "right",
        "position": "left",
        "stability": "firm",
        "names": "yes",
        "original": "2",
        "box": "101",
        "linger": "-1",
        "line": "2",
    }
    async with open_page(address(gateway, **wrong)) as watch:
        message = watch.page.get_by_test_id("captions-message")
        for name in wrong:
            await expect(message).to_contain_text(f"“{name}”")
        await expect(message).to_contain_text("“box” has to be a number from 0 to 100.")
        await expect(message).to_contain_text("“stability” has to be stable, live, or final.")
        await expect(message).to_contain_text("There is no “line”; there are meeting, lang, lines, size, align,")
        assert watch.sent == []
    # In the language of the browser, the name of the parameter aside.
    async with open_page(address(gateway, meeting="m", lines="7"), locale="de") as watch:
        message = watch.page.get_by_test_id("captions-message")
        await expect(message).to_contain_text("„lang“ fehlt: eine Sprache oder mehrere (etwa ja,en).")
        await expect(message).to_contain_text("„lines“ muss eine Zahl von 1 bis 6 sein.")


@pytest.mark.parametrize("lines", ["2", "7"])
async def test_unknown_languages_are_told_with_all_else_that_is_wrong(
    gateway: GatewayProcess, open_page: OpenPage, meeting: str, lines: str
) -> None:
    wanted = "“lang” has to be a language, or several, of en,ja,es,de,fr,zh (not tlh,xx)."
    async with open_page(address(gateway, meeting=meeting, lang="tlh,ja,xx", lines=lines)) as watch:
        message = watch.page.get_by_test_id("captions-message")
        await expect(message).to_contain_text(wanted)
        if lines == "7":
            await expect(message).to_contain_text("“lines” has to be a number from 1 to 6.")


async def test_a_caption_stays_while_the_connection_is_lost(
    start_gateway: StartGateway, open_page: OpenPage, meeting: str
) -> None:
    gateway = start_gateway().ready()
    async with open_page(address(gateway, meeting=meeting, lang="ja")) as watch:
        watch.allow("ERR_")  # the browser notes every connection that breaks off
        watch.allow("WebSocket")
        page = watch.page
        view = page.get_by_test_id("captions")
        async with speaker(gateway, meeting) as ana:
            await ana.say("1", "Good morning.")
            await expect(captions(page)).to_have_text("[ja] Good morning.")
            kill(gateway)
        await expect(view).to_have_attribute("data-state", "reconnecting")
        await expect(captions(page)).to_have_text("[ja] Good morning.")
        dot = await view.evaluate("(view) => getComputedStyle(view, '::after').content")
        assert dot == '""'
        again = start_gateway(port=gateway.port).ready()
        await expect(view).to_have_attribute("data-state", "open")
        await expect(captions(page)).to_have_text("[ja] Good morning.")
        async with speaker(again, meeting) as ana:
            await ana.say("1", "Here we are again.")
            await expect(captions(page).last).to_have_text("[ja] Here we are again.")


async def test_who_closes_it_reads_no_longer(gateway: GatewayProcess, open_page: OpenPage, meeting: str) -> None:
    async with speaker(gateway, meeting) as ana, open_page(address(gateway, meeting=meeting, lang="de")) as watch:
        view = watch.page.get_by_test_id("captions")
        await expect(view).to_have_attribute("data-state", "open")
        async with asyncio.timeout(_PATIENCE_S):
            joined = await ana.hear("participant.joined")
        assert joined["reads"] == ["de"]
        await watch.page.reload()
        # At once: what nobody has left is kept for minutes. The new page may be there before the old one is gone.
        async with asyncio.timeout(_PATIENCE_S):
            told = [await ana.hear("participant.left", "participant.joined") for _ in range(2)]
        ((again, left),) = [(a, b) for a, b in (told, told[::-1]) if b["type"] == "participant.left"]
        assert left["participant"] == joined["participant"]
        assert again["reads"] == ["de"]
        await expect(view).to_have_attribute("data-state", "open")
        # Not from within the page: closing the window in the middle of that hung, one time in ten.
        await watch.page.goto("about:blank")
        async with asyncio.timeout(_PATIENCE_S):
            assert (await ana.hear("participant.left"))["participant"] == again["participant"]


async def test_a_refused_screen_retries_until_there_is_room(
    start_gateway: StartGateway, open_page: OpenPage, meeting: str
) -> None:
    gateway = start_gateway("max_sessions = 2\n" + SCRIPT).ready()
    async with open_page(f"{gateway.url}/favicon.svg") as watch:
        watch.allow("favicon.ico")  # what a browser looks for beside a picture
        watch.allow("ERR_")  # the browser notes every connection that breaks off
        watch.allow("WebSocket")
        page = watch.page
        view = page.get_by_test_id("captions")
        message = page.get_by_test_id("captions-message")
        await page.clock.install()

        async def pass_by() -> None:
            """Half a minute, in no time."""
            tries = len([frame for frame in watch.sent if frame["type"] == "session.start"])
            await page.clock.fast_forward(31_000)
            async with asyncio.timeout(_PATIENCE_S):
                while len([frame for frame in watch.sent if frame["type"] == "session.start"]) == tries:
                    await asyncio.sleep(0.02)

        async with speaker(gateway, meeting) as ana, speaker(gateway, meeting) as bo:
            await page.goto(address(gateway, meeting=meeting, lang="ja"))
            for _ in range(2):
                await expect(view).to_have_attribute("data-state", "closed")
                await expect(message).to_have_text(re.compile(r"\w+ \w+.*\."))
                await pass_by()
            await expect(view).to_have_attribute("data-state", "closed")
            for each in (ana, bo):
                await each.send("session.end")
                await each.ended()
        await pass_by()
        await expect(view).to_have_attribute("data-state", "open")
        await expect(message).to_be_hidden()
        async with speaker(gateway, meeting) as ana:
            await ana.say("1", "Good morning.")
            await expect(captions(page)).to_have_text("[ja] Good morning.")

            # Somebody else is faster when the gateway is back.
            await page.clock.pause_at(await page.evaluate("Date.now() / 1000 + 60"))
            kill(gateway)
            await expect(view).to_have_attribute("data-state", "reconnecting")
        again = start_gateway("max_sessions = 1\n" + SCRIPT, port=gateway.port).ready()
        async with speaker(again, meeting) as bo:
            await page.clock.resume()
            await expect(view).to_have_attribute("data-state", "closed")
            await expect(message).to_be_visible()
            await expect(captions(page)).to_have_text("[ja] Good morning.")
            await bo.send("session.end")
            await bo.ended()
        await pass_by()
        await expect(view).to_have_attribute("data-state", "open")


async def test_what_cannot_succeed_is_not_tried_again(
    gateway: GatewayProcess, open_page: OpenPage, meeting: str
) -> None:
    async with open_page(f"{gateway.url}/favicon.svg") as watch:
        watch.allow("favicon.ico")  # what a browser looks for beside a picture
        page = watch.page
        await page.clock.install()
        await page.goto(address(gateway, meeting=meeting, lang="tlh"))
        await expect(page.get_by_test_id("captions")).to_have_attribute("data-state", "closed")
        await page.clock.run_for(100_000)
        await expect(page.get_by_test_id("captions")).to_have_attribute("data-state", "closed")
        assert len(watch.sent) == 1


@pytest.mark.parametrize("linger", ["0", "0.2"])
async def test_what_is_given_up_goes(
    gateway: GatewayProcess, open_page: OpenPage, meeting: str, linger: str
) -> None:
    query = {"meeting": meeting, "lang": "ja,en", "stability": "live", "linger": linger}
    async with open_page(address(gateway, **query)) as watch, speaker(gateway, meeting) as ana:
        page = watch.page
        await ana.say("1", "Good morning.")
        await expect(captions(page)).to_have_text("[ja] Good morning.")
        if linger != "0":
            for lang in ("ja", "en"):
                await expect(page.get_by_test_id(f"captions-{lang}")).to_have_css("opacity", "0")
        await ana.send("utterance.partial", id="2", rev=1, text="I did not mean that")
        await expect(captions(page, "en").last).to_have_text("I did not mean that")
        await expect(captions(page).last).to_contain_text("[ja] I")
        await ana.send("utterance.cancel", id="2")
        for lang in ("ja", "en"):
            await expect(captions(page, lang)).to_have_count(0)


async def test_a_correction_of_what_is_not_shown_any_more_is_not_shown(
    gateway: GatewayProcess, open_page: OpenPage, meeting: str
) -> None:
    # What was said last stays, however long the correction takes.
    query = address(gateway, meeting=meeting, lang="ja", linger="0")
    async with open_page(query) as watch, speaker(gateway, meeting) as ana:
        page = watch.page
        await captions_connected(page)
        for number, text in enumerate(("On Tuesday.", "Bring the slides.")):
            await ana.say(str(number), text)
            await expect(captions(page)).to_have_text(f"[ja] {text}")
        await witness(page, "captions-ja")
        await ana.send("utterance.final", id="2", rev=1, text="On Thursday.", replaces="0")
        await until(lambda: watch.finals()["ja"] == "[ja] On Thursday.")
        await ana.send("utterance.final", id="3", rev=1, text="Bring the books.", replaces="1")
        await expect(captions(page)).to_have_text("[ja] Bring the books.")
        await ana.say("4", "That is all.")
        await expect(captions(page)).to_have_text("[ja] That is all.")
        assert not [text for text in await seen_by(page, "captions-ja") if "Thursday" in text]


async def test_what_is_finished_fades_when_nobody_speaks(
    gateway: GatewayProcess, open_page: OpenPage, meeting: str
) -> None:
    async with (
        open_page(address(gateway, meeting=meeting, lang="en", linger="0.2")) as watch,
        speaker(gateway, meeting) as ana,
    ):
        block = watch.page.get_by_test_id("captions-en")
        await ana.say("1", "Good morning.")
        await expect(captions(watch.page, "en")).to_have_text("Good morning.")
        await expect(block).to_have_css("opacity", "0")
        # Somebody speaks: that stays as long as it takes.
        await ana.send("utterance.partial", id="2", rev=1, text="And on")
        await expect(captions(watch.page, "en")).to_have_text("And on")
        await expect(block).to_have_css("opacity", "1")


async def test_who_speaks_is_told_from_the_first_words_on(
    gateway: GatewayProcess, open_page: OpenPage, meeting: str
) -> None:
    """A reader of a translation hears the name with the whole sentence; until then the list of people tells it."""
    async with (
        open_page(address(gateway, meeting=meeting, lang="ja")) as watch,
        speaker(gateway, meeting) as ana,
    ):
        await captions_connected(watch.page)
        await ana.say("1", "These words will stall on their way.")
        await expect(captions(watch.page)).to_contain_text(["[ja] These"])
        assert not any(frame["type"] == "translation.final" for frame in watch.received)
        await expect(name_tag(watch.page)).to_have_text("Ana英語")
        await ana.send("utterance.cancel", id="1")
        await ana.hear("translation.failed", "utterance.accepted")
        await expect(captions(watch.page)).to_have_count(0)
