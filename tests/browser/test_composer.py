"""`web_demo/page/speaking` in a page that else holds nothing, against a real gateway process.

The browser's recogniser is played by a script: a real one needs a microphone and its maker's servers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.pages import connected, join, new_meeting, row, settled, stop_the_clock, until
from tests.conftest import OpenPage, Watch
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser

_SET_UP = """async ({ reads, demo }) => {
    const { GatewayClient } = await import("/client.js");
    const { Composer } = await import("/page/speaking/composer.js");
    const { gatewaysDetector } = await import("/page/speaking/other_language.js");
    const url = new URL("/v1/stream", location.href);
    url.protocol = "ws:";
    window.heard = [];
    window.objections = [];
    window.spoken = [];
    window.client = new GatewayClient(url.href, { reads });
    client.listen((event) => heard.push(event));
    window.composer = new Composer({
        client,
        onProblem: (words) => objections.push(words),
        onLang: (lang) => spoken.push(lang),
        detect: gatewaysDetector(null),
    });
    document.getElementById("main").append(composer.element);
    client.connect();
    const { languages } = await (await fetch("/v1/languages")).json();
    composer.offer(languages, { demo });
}"""

# What a test says is heard; `recognisers` are all that were ever made.
_RECOGNISER = """
    window.recognisers = [];
    window.SpeechRecognition = class {
        constructor() { recognisers.push(this); }
        start() { this.running = true; queueMicrotask(() => this.onstart?.()); }
        stop() { this.stopped = true; }
        abort() { this.end(); }
        end() { this.running = false; setTimeout(() => this.onend?.()); }
        hear(resultIndex, ...results) {
            const list = results.map(([transcript, isFinal, confidence]) =>
                Object.assign([{ transcript, confidence }], { isFinal }));
            this.onresult?.({ resultIndex, results: list });
        }
    };
"""
_NO_RECOGNISER = "delete window.SpeechRecognition; delete window.webkitSpeechRecognition;"

Frame = dict[str, Any]


class Composing:
    """A page with a composer, and what it sends."""

    def __init__(self, watch: Watch) -> None:
        self.page = watch.page
        self.text = self.page.get_by_test_id("text")
        self.note = self.page.get_by_test_id("composer-note")
        self.sharing = self.page.get_by_test_id("share-typing")
        self.microphone = self.page.get_by_test_id("microphone")
        self.watch = watch

    def frames(self) -> list[Frame]:
        kinds = ("utterance.partial", "utterance.final", "utterance.cancel")
        return [frame for frame in self.watch.sent if frame["type"] in kinds]

    def partials(self) -> list[str]:
        return [frame["text"] for frame in self.frames() if frame["type"] == "utterance.partial"]

    def finals(self) -> list[str]:
        return [frame["text"] for frame in self.frames() if frame["type"] == "utterance.final"]

    async def until(self, condition: Callable[[], bool]) -> None:
        await until(condition)

    async def sent(self, *texts: str) -> None:
        """These finals, in this order."""
        await self.until(lambda: len(self.finals()) >= len(texts))
        assert self.finals() == list(texts)

    async def hear(
        self, index: int, *results: tuple[str, bool] | tuple[str, bool, float], recogniser: int = -1
    ) -> None:
        """Every segment since the recogniser began; `index` is the first that changed."""
        await self.page.evaluate(
            "([at, index, results]) => recognisers.at(at).hear(index, ...results)",
            [recogniser, index, [list(result) for result in results]],
        )

    async def recognisers(self, count: int) -> None:
        """So many were made, and the last one listens."""
        listens = "(count) => recognisers.length >= count && recognisers.at(-1).running"
        while not await self.page.evaluate(listens, count):
            await asyncio.sleep(0.02)
        assert await self.page.evaluate("recognisers.length") == count


OpenComposer = Callable[..., AbstractAsyncContextManager[Composing]]


@pytest.fixture
def open_composer(gateway: GatewayProcess, open_page: OpenPage) -> OpenComposer:
    @asynccontextmanager
    async def opened(
        script: str = _RECOGNISER,
        reads: tuple[str, ...] = ("ja",),
        demo: bool = True,
        expected: str = "en",
        shares: bool = True,
        **options: Any,
    ) -> AsyncIterator[Composing]:
        async with open_page(f"{gateway.url}/favicon.svg", **options) as watch:
            watch.allow("favicon.ico")  # what a browser looks for where no page names an icon
            page = watch.page
            await page.add_init_script(script)
            if shares:
                await page.evaluate("localStorage.setItem('share-typing', 'yes')")
            await page.route("**/app.js", _nothing)
            await page.goto(gateway.url)
            await page.evaluate(_SET_UP, {"reads": list(reads), "demo": demo})
            await expect(page.get_by_test_id("spoken-lang")).to_have_value(expected)
            composing = Composing(watch)
            await composing.until(lambda: any(frame["type"] == "session.started" for frame in watch.received))
            yield composing

    return opened


async def _nothing(route: Route) -> None:
    await route.fulfill(body="", content_type="text/javascript")


def one_utterance(frames: list[Frame]) -> bool:
    return len({frame["id"] for frame in frames}) == 1 and all(
        one["rev"] < other["rev"] for one, other in pairwise(frames)
    )


# -------------------------------------------------------------------- typing


async def test_what_is_typed_stays_here_until_it_is_sent(open_composer: OpenComposer) -> None:
    async with open_composer(shares=False) as composer:
        await composer.text.press_sequentially("My boss is, well, ")
        await composer.text.fill("My boss is, well, kind.")
        await composer.text.press("Enter")
        await composer.sent("My boss is, well, kind.")
        assert composer.partials() == []

        # Sharing can be stopped while one types: what the others saw disappears.
        await composer.sharing.check()
        await composer.text.press_sequentially("Not for ")
        await composer.until(lambda: composer.partials()[-1:] == ["Not for"])
        await composer.sharing.uncheck()
        await composer.until(lambda: composer.frames()[-1]["type"] == "utterance.cancel")
        seen = composer.partials()
        await composer.text.press_sequentially("them. ")
        await composer.page.reload()
        await composer.page.evaluate(_SET_UP, {"reads": [], "demo": False})
        await expect(composer.sharing).not_to_be_checked()
        assert composer.partials() == seen


async def test_shared_typing_streams_at_word_ends_and_enter_sends(open_composer: OpenComposer) -> None:
    """A pause in the typing streams it, too."""
    async with open_composer() as composer:
        # Not key by key: on a busy machine the time between two keys may be a pause.
        await composer.text.fill("Let's ")
        await composer.until(lambda: composer.partials() == ["Let's"])
        await composer.text.fill("Let's mov")
        await composer.until(lambda: composer.partials() == ["Let's", "Let's mov"])
        await composer.text.press_sequentially("e on.")
        await composer.text.press("Enter")
        await composer.sent("Let's move on.")

        assert one_utterance(composer.frames())
        assert {frame["lang"] for frame in composer.frames()} == {"en"}
        await expect(composer.text).to_have_value("")
        await expect(composer.text).to_be_focused()


async def test_shift_enter_begins_a_line_and_the_field_grows(open_composer: OpenComposer) -> None:
    async with open_composer() as composer:
        low = await composer.text.bounding_box()
        await composer.text.press_sequentially("One")
        await composer.text.press("Shift+Enter")
        await composer.text.press_sequentially("two")
        await expect(composer.text).to_have_value("One\ntwo")
        high = await composer.text.bounding_box()
        assert low is not None
        assert high is not None
        assert high["height"] > low["height"]
        await composer.text.press("Enter")
        await composer.sent("One\ntwo")


async def test_what_is_cleared_is_given_up(open_composer: OpenComposer) -> None:
    async with open_composer() as composer:
        await composer.text.press_sequentially("Never mind ")
        await composer.until(lambda: composer.partials()[-1:] == ["Never mind"])
        await composer.text.press("Escape")
        await expect(composer.text).to_have_value("")
        given_up = composer.frames()[0]["id"]

        await composer.text.press_sequentially("Never mind.")
        await composer.text.press("Enter")
        await composer.sent("Never mind.")
        assert composer.frames()[-1]["id"] != given_up
        assert await composer.page.evaluate("objections") == []


async def test_another_text_in_its_place_is_another_utterance(open_composer: OpenComposer) -> None:
    async with open_composer() as composer:
        await composer.text.fill("Let's move the launch.")
        await composer.until(lambda: len(composer.partials()) == 1)
        await composer.text.fill("Who is taking notes?")
        await composer.until(lambda: len(composer.partials()) == 2)
        await composer.text.fill("Who is taking the notes?")
        await composer.until(lambda: len(composer.partials()) == 3)

        first, second, third = [frame for frame in composer.frames() if frame["type"] == "utterance.partial"]
        assert first["id"] != second["id"]
        assert second["id"] == third["id"]


async def test_input_method_text_waits_until_composed(open_composer: OpenComposer) -> None:
    async with open_composer(reads=("en",)) as composer:
        await composer.page.get_by_test_id("spoken-lang").select_option("ja")
        await composer.text.focus()
        typing = await composer.page.context.new_cdp_session(composer.page)
        # What ends a word is due at once.
        for text in ("か", "かい", "かい、"):
            await typing.send("Input.imeSetComposition", {"text": text, "selectionStart": 3, "selectionEnd": 3})
        enter = (
            "new KeyboardEvent('keydown', { key: 'Enter', isComposing: true, bubbles: true, cancelable: true })"
        )
        await composer.text.evaluate(f"(field) => field.dispatchEvent({enter})")
        await expect(composer.text).to_have_value("かい、")
        await typing.send("Input.insertText", {"text": "会議"})
        await composer.until(lambda: composer.partials() == ["会議"])
        assert composer.finals() == []

        await composer.text.press("Enter")
        await composer.sent("会議")


async def test_enter_ending_a_safari_composition_sends_nothing(open_composer: OpenComposer) -> None:
    async with open_composer() as composer:
        await composer.text.fill("会議")
        # Behind `compositionend`, so that nothing is composed any more.
        key = "{ key: 'Enter', keyCode: 229, isComposing: false, bubbles: true, cancelable: true }"
        passed = await composer.text.evaluate(
            f"(field) => field.dispatchEvent(new KeyboardEvent('keydown', {key}))"
        )
        assert passed
        await expect(composer.text).to_have_value("会議")
        assert composer.finals() == []
        await composer.text.press("Enter")
        await composer.sent("会議")


async def test_too_long_text_stays_and_cannot_be_sent(open_composer: OpenComposer) -> None:
    async with open_composer() as composer:
        send, count = composer.page.get_by_test_id("send"), composer.page.get_by_test_id("count")
        await composer.page.evaluate("composer.limits = { ...client.limits, text_chars: 20 }")
        await composer.text.fill("Seventeen letters")
        await expect(count).to_have_text("17 of 20")
        await expect(composer.note).to_have_text("")

        await composer.text.fill("This is more than twenty.")
        await expect(count).to_have_text("25 of 20")
        await expect(composer.note).to_contain_text("Too long to send")
        await expect(send).to_be_disabled()
        await composer.text.press("Enter")
        await expect(composer.text).to_have_value("This is more than twenty.")
        assert "This is more than twenty." not in [*composer.partials(), *composer.finals()]

        await composer.text.fill("This is short.")
        await expect(composer.note).to_have_text("")
        await send.click()
        await composer.sent("This is short.")


async def test_enter_with_nothing_typed_gives_a_hint(open_composer: OpenComposer) -> None:
    async with open_composer() as composer:
        await composer.text.press("Enter")
        await expect(composer.note).to_have_text("Type something first, or pick a sentence.")
        await composer.text.press_sequentially("A")
        await expect(composer.note).to_have_text("")
        assert composer.finals() == []


async def test_a_text_that_the_gateway_refuses_is_told(open_composer: OpenComposer) -> None:
    async with open_composer() as composer:
        await composer.page.evaluate("composer.limits = null")
        await composer.text.fill("a" * 70_000)
        await composer.text.press("Enter")
        await composer.page.evaluate(
            "async () => { while (!objections.length) await new Promise((r) => setTimeout(r, 20)); }"
        )
        assert len(await composer.page.evaluate("objections")) == 1


# -------------------------------------------------------------------- languages and sentences


async def test_a_refused_correction_leaves_its_text_to_be_said(open_composer: OpenComposer) -> None:
    async with open_composer() as composer:
        field = composer.text
        correct = "composer.correct({ utterance: 'forgotten', text: 'On Tuesday.', lang: 'en' })"
        await composer.page.evaluate(correct)
        await field.fill("On Thursday.")
        await field.press("Enter")
        await expect(field).to_have_value("On Thursday.")
        await composer.until(lambda: composer.finals() == ["On Thursday."])
        await expect(composer.page.get_by_test_id("correcting")).to_be_hidden()
        assert await composer.page.evaluate("objections") == ["This was said too long ago to be changed."]
        assert (await composer.page.evaluate("sessionStorage.getItem('draft')")).endswith(" On Thursday.")
        # What is typed meanwhile stays behind it.
        await composer.page.evaluate(correct)
        await field.fill("On Friday.")
        await field.press("Enter")
        await expect(field).to_have_value("On Friday.\nOn Thursday.")


async def test_the_spoken_language_is_remembered_and_told(open_composer: OpenComposer) -> None:
    async with open_composer() as composer:
        await composer.text.fill("Guten Morgen")
        await composer.until(lambda: len(composer.partials()) == 1)
        await composer.page.get_by_test_id("spoken-lang").select_option("de")
        await expect(composer.text).to_have_attribute("lang", "de")
        await composer.until(lambda: len(composer.partials()) == 2)
        english, german = [frame for frame in composer.frames() if frame["type"] == "utterance.partial"]
        assert (english["lang"], german["lang"]) == ("en", "de")
        assert english["id"] != german["id"]

        assert await composer.page.evaluate("spoken") == ["en", "de"]
        await expect(composer.page.get_by_test_id("sentences")).to_contain_text("Uns läuft die Zeit davon.")
        assert await composer.page.evaluate("localStorage.getItem('speaks')") == "de"


async def test_sentences_are_said_word_by_word_in_parallel(open_composer: OpenComposer) -> None:
    async with open_composer() as composer:
        await expect(composer.page.get_by_test_id("demo-model")).to_be_visible()
        await composer.text.fill("Meanwhile")
        one, other = "We're running out of time.", "Could you repeat that, please?"
        # A word that the page said late would go with the next one.
        await stop_the_clock(composer.page)
        await composer.page.get_by_role("button", name=one).click()
        await composer.page.get_by_role("button", name=other).click()
        while len(composer.finals()) < 2:
            await composer.page.clock.run_for(400)

        finals = {frame["text"]: frame["id"] for frame in composer.frames() if frame["type"] == "utterance.final"}
        assert set(finals) == {one, other}
        for text, id in finals.items():
            said = [frame for frame in composer.frames() if frame["id"] == id]
            assert one_utterance(said)
            assert [text.startswith(frame["text"]) for frame in said] == [True] * len(said)
            assert len(said) > 3
        await expect(composer.text).to_have_value("Meanwhile")


async def test_without_a_demo_model_nothing_is_said_of_one(open_composer: OpenComposer) -> None:
    async with open_composer(demo=False) as composer:
        await expect(composer.page.get_by_test_id("demo-model")).to_be_hidden()


async def test_everything_is_reached_by_keyboard(open_composer: OpenComposer) -> None:
    async with open_composer() as composer:
        await composer.page.evaluate("composer.focus()")
        await composer.text.press("Shift+Tab")
        await expect(composer.page.get_by_test_id("spoken-lang")).to_be_focused()
        await composer.page.keyboard.press("Tab")
        await composer.page.keyboard.press("Tab")
        await expect(composer.microphone).to_be_focused()
        await composer.page.keyboard.press("Tab")
        await composer.page.keyboard.press("Tab")
        await expect(composer.sharing).to_be_focused()
        await composer.page.keyboard.press("Tab")
        await expect(composer.page.get_by_test_id("sentences").get_by_role("button").first).to_be_focused()
        await composer.page.keyboard.press("Enter")
        await composer.sent("Let's move the launch to Friday.")


async def test_while_nothing_can_be_said_the_text_is_kept(open_composer: OpenComposer) -> None:
    async with open_composer() as composer:
        await expect(composer.text).to_have_attribute("placeholder", "Type what you say")
        await composer.text.fill("Later")
        await composer.page.evaluate("composer.enabled = false")
        await expect(composer.text).to_be_disabled()
        await expect(composer.text).to_have_attribute("placeholder", "Disconnected")
        await expect(composer.microphone).to_be_disabled()
        await expect(composer.page.get_by_test_id("sentences").get_by_role("button").first).to_be_disabled()
        await composer.page.evaluate("composer.enabled = true")
        await expect(composer.text).to_have_value("Later")
        await expect(composer.text).to_be_enabled()
        await expect(composer.text).to_have_attribute("placeholder", "Type what you say")


async def test_what_is_spoken_or_played_ends_with_the_session(open_composer: OpenComposer) -> None:
    async with open_composer() as composer:
        page = composer.page
        await composer.microphone.click()
        await composer.recognisers(1)
        await composer.hear(0, ("let's move", False))
        # Nothing more is said before it is interrupted.
        await stop_the_clock(page)
        await page.get_by_role("button", name="We're running out of time.").click()
        await composer.until(lambda: {"let's move", "We're"} <= set(composer.partials()))
        await page.evaluate(
            """() => {
                client.listen((event) => { composer.enabled = event.state !== "closed"; });
                client.close();
                client.close();
            }"""
        )
        await expect(composer.microphone).to_have_attribute("aria-pressed", "false")
        # A recogniser has its last words all the same.
        await page.evaluate("recognisers[0].onresult?.({ results: [] })")
        await page.clock.run_for(10_000)
        assert await page.evaluate("[client.unsent, recognisers.length, recognisers[0].running]") == [0, 1, False]
        assert composer.finals() == []

        await page.evaluate("client.connect(); composer.enabled = true")
        await composer.microphone.click()
        await composer.recognisers(2)
        await composer.hear(0, ("here again", True))
        await composer.sent("here again")


@pytest.mark.parametrize("phone", [True, False])
async def test_sentences_make_room_while_typing_on_a_phone(open_composer: OpenComposer, phone: bool) -> None:
    """The room goes to the transcript."""
    options: dict[str, Any] = {"viewport": {"width": 360, "height": 640}} if phone else {}
    async with open_composer(has_touch=phone, is_mobile=phone, **options) as composer:
        sentences, label = (composer.page.get_by_test_id(name) for name in ("sentences", "try"))
        await expect(sentences).to_be_visible()
        too_long = "(all) => all.filter((each) => each.scrollWidth > each.clientWidth).length"
        assert await sentences.get_by_role("button").evaluate_all(too_long) == 0
        await composer.text.focus()
        for part in (sentences, label):
            await expect(part).to_be_visible(visible=not phone)
        await composer.text.fill("Let's move on")
        await composer.text.blur()
        for part in (sentences, label):
            await expect(part).to_be_visible(visible=not phone)
        await composer.text.fill("")
        await composer.text.blur()
        await expect(sentences).to_be_visible()


async def test_narrow_window_hides_sentences_behind_text_only(
    open_composer: OpenComposer,
) -> None:
    """The window has no keyboard of its own, so the focus alone hides nothing."""
    async with open_composer(viewport={"width": 600, "height": 640}) as composer:
        sentences = composer.page.get_by_test_id("sentences")
        await composer.text.focus()
        await expect(sentences).to_be_visible()
        await composer.text.fill("Let's move on")
        await expect(sentences).to_be_hidden()


# -------------------------------------------------------------------- the microphone


async def test_every_segment_that_is_heard_is_an_utterance(open_composer: OpenComposer) -> None:
    async with open_composer() as composer:
        await composer.microphone.click()
        await expect(composer.microphone).to_have_attribute("aria-pressed", "true")
        await expect(composer.note).to_contain_text("may send what it hears to its maker")
        await composer.hear(0, ("let's move", False))
        await composer.until(lambda: composer.partials() == ["let's move"])
        # The certain beginning and the rest, of which the rest alone has changed.
        await composer.hear(1, ("let's move the", False), (" lunch", False))
        await composer.until(lambda: composer.partials()[-1] == "let's move the lunch")
        await composer.hear(0, ("let's move the launch", True), (" who is", False))
        await composer.hear(1, ("let's move the launch", True), (" who is taking notes", True))
        await composer.hear(2, ("let's move the launch", True), (" who is taking notes", True), ("", True))
        await composer.sent("let's move the launch", "who is taking notes")

        first, second = [frame["id"] for frame in composer.frames() if frame["type"] == "utterance.final"]
        assert first != second
        assert {frame["id"] for frame in composer.frames() if "move" in frame["text"]} == {first}

        settings = "({ lang, continuous, interimResults }) => [lang, continuous, interimResults]"
        assert await composer.page.evaluate(f"({settings})(recognisers[0])") == ["en-US", True, True]


async def test_a_recogniser_that_ends_goes_on_with_the_sentence(open_composer: OpenComposer) -> None:
    async with open_composer() as composer:
        await stop_the_clock(composer.page)
        await composer.microphone.click()
        await composer.recognisers(1)
        await composer.hear(0, ("we're running out of", False))
        await composer.page.evaluate("recognisers[0].end()")
        await composer.page.clock.run_for(100)
        await composer.recognisers(2)
        # Its results are counted from 0 again.
        await composer.hear(0, ("time", True))
        await composer.sent("we're running out of time")
        assert one_utterance(composer.frames())
        await composer.page.evaluate("recognisers[1].onerror({ error: 'no-speech' }); recognisers[1].end()")
        await composer.page.clock.run_for(100)
        await composer.recognisers(3)
        await expect(composer.microphone).to_have_attribute("aria-pressed", "true")
        await expect(composer.note).to_have_text("Listening…")


async def test_a_sentence_of_which_no_more_is_heard_ends(open_composer: OpenComposer) -> None:
    async with open_composer() as composer:
        await stop_the_clock(composer.page)
        await composer.microphone.click()
        await composer.hear(0, ("this was cut", False))
        await composer.page.evaluate("recognisers[0].end()")
        await composer.page.clock.run_for(2_900)
        assert composer.finals() == []
        await composer.page.clock.run_for(200)
        await composer.sent("this was cut")


async def test_after_a_stop_the_last_words_still_come(open_composer: OpenComposer) -> None:
    async with open_composer() as composer:
        await stop_the_clock(composer.page)
        await composer.microphone.click()
        await composer.recognisers(1)
        await composer.hear(0, ("the last", False))
        await composer.microphone.click()
        await expect(composer.microphone).to_have_attribute("aria-pressed", "false")
        await expect(composer.note).to_have_text("The microphone is off.")
        assert await composer.page.evaluate("recognisers[0].stopped")
        await composer.hear(0, ("the last words", False))
        await composer.hear(0, ("the last words", True), (" are not all", False))
        await composer.hear(0, ("the last words", True), (" are not all", True))
        await composer.sent("the last words")
        assert "the last words" not in composer.partials()
        # The next one is the user's.
        await composer.microphone.click()
        await composer.recognisers(2)
        await composer.hear(0, ("here again", True))
        await composer.sent("the last words", "here again")


async def test_shown_text_is_said_without_last_words(open_composer: OpenComposer) -> None:
    """Where the recogniser gives no last words in time, the text that was shown is final."""
    async with open_composer() as composer:
        await stop_the_clock(composer.page)
        await composer.microphone.click()
        await composer.hear(0, ("the last", False))
        await composer.until(lambda: composer.partials() == ["the last"])
        await composer.microphone.click()
        await composer.hear(0, ("the last words are secret", False))
        await composer.page.clock.run_for(2_000)
        await composer.hear(0, ("the last words are secret", True))
        await composer.sent("the last")
        assert composer.partials() == ["the last"]


_SAFARI = (
    _RECOGNISER
    + """
    Object.defineProperty(navigator, "vendor", { value: "Apple Computer, Inc." });
    SpeechRecognition.prototype.stop = SpeechRecognition.prototype.abort = () => {};
    window.webkitSpeechRecognition = SpeechRecognition;
    delete window.SpeechRecognition;
"""
)


async def test_in_safari_nothing_is_sent_after_a_stop(open_composer: OpenComposer) -> None:
    async with open_composer(_SAFARI) as composer:
        await composer.microphone.click()
        await composer.recognisers(1)
        await composer.hear(0, ("good morning", False))
        await composer.until(lambda: composer.partials() == ["good morning"])
        await composer.microphone.click()
        await expect(composer.note).to_have_text("The microphone is off.")
        # It goes on, and never says that it has ended.
        for is_final in (False, True):
            await composer.hear(0, ("good morning this is a secret", is_final))
        await composer.sent("good morning")

        await composer.microphone.click()
        await composer.recognisers(2)
        await expect(composer.microphone).to_have_attribute("aria-pressed", "true")
        await composer.hear(0, ("here again", True))
        await composer.hear(0, ("a secret", True), recogniser=0)
        await composer.sent("good morning", "here again")
        assert composer.partials() == ["good morning"]


async def test_on_android_a_sentence_is_said_once_and_whole(open_composer: OpenComposer) -> None:
    agent = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 Chrome/140.0.0.0 Mobile Safari/537.36"
    async with open_composer(user_agent=agent) as composer:
        await composer.microphone.click()
        await composer.recognisers(1)
        heard: list[tuple[str, bool, float]] = []
        for text in ("let's", "let's move", "let's move the lunch"):
            heard.append((text, True, 0.0))
            await composer.hear(len(heard) - 1, *heard)
        for _ in range(2):
            heard.append(("let's move the launch", True, 0.94))
            await composer.hear(len(heard) - 1, *heard)
        await composer.page.evaluate("recognisers[0].end()")
        await composer.recognisers(2)
        await composer.hear(0, ("yes", True, 0.9))
        await composer.sent("let's move the launch", "yes")
        assert await composer.page.evaluate("recognisers[1].continuous") is False


async def test_an_unreachable_service_is_tried_again_and_told(open_composer: OpenComposer) -> None:
    async with open_composer() as composer:
        await stop_the_clock(composer.page)
        await composer.microphone.click()
        await composer.recognisers(1)
        await composer.hear(0, ("we're running", False))
        await composer.page.evaluate("recognisers[0].onerror({ error: 'network' }); recognisers[0].end()")
        await composer.page.clock.run_for(100)
        await composer.recognisers(2)
        await expect(composer.note).to_contain_text("hears nothing. Trying again…")
        await expect(composer.note).to_have_class("hint composer-note bad")
        await expect(composer.microphone).to_have_attribute("data-hearing", "retrying")
        await expect(composer.microphone).to_have_attribute("aria-pressed", "true")
        await composer.hear(0, ("late", True))
        await composer.sent("we're running late")
        await expect(composer.note).to_have_text("Listening…")


async def test_another_language_is_listened_for_at_once(open_composer: OpenComposer) -> None:
    async with open_composer() as composer:
        await composer.microphone.click()
        await composer.recognisers(1)
        await composer.hear(0, ("good morning", False))
        await composer.page.get_by_test_id("spoken-lang").select_option("ja")
        await composer.sent("good morning")
        await composer.recognisers(2)
        assert await composer.page.evaluate("recognisers[1].lang") == "ja-JP"
        await composer.hear(0, ("おはよう", True))
        await composer.sent("good morning", "おはよう")
        assert [f["lang"] for f in composer.frames() if f["type"] == "utterance.final"] == ["en", "ja"]


async def test_recogniser_that_ends_at_once_restarts_less_eagerly(
    open_composer: OpenComposer,
) -> None:
    failing = _RECOGNISER + "SpeechRecognition.prototype.start = function () { this.end(); };"
    async with open_composer(failing) as composer:
        # On the page's clock a minute passes at once: no answer comes in it, and the page connects again.
        composer.watch.allow("WebSocket is closed before the connection is established")
        await stop_the_clock(composer.page)
        await composer.microphone.click()
        await composer.page.clock.run_for(60_000)
        # After 0, 0, 1.2, 2.4, 4.8, 9.6, and then every 10 seconds.
        assert 8 <= await composer.page.evaluate("recognisers.length") <= 11
        await expect(composer.microphone).to_have_attribute("aria-pressed", "true")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("not-allowed", "blocked for this page"),
        ("audio-capture", "No microphone was found"),
        ("language-not-supported", "does not recognise speech in this language"),
    ],
)
async def test_what_ends_it_is_said_in_words(open_composer: OpenComposer, error: str, words: str) -> None:
    async with open_composer() as composer:
        await composer.microphone.click()
        await composer.recognisers(1)
        await composer.page.evaluate(
            "(error) => { recognisers[0].onerror({ error }); recognisers[0].end(); }", error
        )
        await expect(composer.note).to_contain_text(words)
        await expect(composer.microphone).to_have_attribute("aria-pressed", "false")


async def test_unsupported_browser_says_which_have_a_recogniser(open_composer: OpenComposer) -> None:
    async with open_composer(_NO_RECOGNISER) as composer:
        await composer.microphone.click()
        await expect(composer.note).to_contain_text("This browser has no speech recognition")
        await expect(composer.microphone).to_have_attribute("aria-pressed", "false")


async def test_a_page_from_an_insecure_place_says_so(open_composer: OpenComposer) -> None:
    insecure = _RECOGNISER + "Object.defineProperty(window, 'isSecureContext', { value: false });"
    async with open_composer(insecure) as composer:
        await composer.microphone.click()
        await expect(composer.note).to_contain_text("https")
        assert await composer.page.evaluate("recognisers.length") == 0


async def test_languages_get_the_region_that_recognisers_want(open_composer: OpenComposer) -> None:
    tags = ["en", "ja", "es", "de", "fr", "zh", "zh-hant", "ko", "pt", "ar", "tlh"]
    async with open_composer(locale="en-GB") as composer:
        page: Page = composer.page
        regional = await page.evaluate(
            "async (tags) => tags.map((await import('/page/speaking/microphone.js')).regionalTag)", tags
        )
    assert regional == [
        *("en-GB", "ja-JP", "es-ES", "de-DE", "fr-FR", "zh-CN", "zh-TW", "ko-KR", "pt-BR", "ar-EG", "tlh"),
    ]


async def test_what_is_detected_is_told(open_composer: OpenComposer) -> None:
    async with open_composer() as composer:
        await composer.page.get_by_test_id("spoken-lang").select_option(label="Detect")
        await expect(composer.text).to_have_attribute("lang", "")
        await composer.text.fill("Wir verschieben das auf Freitag.")
        await composer.page.keyboard.press("Enter")
        await expect(composer.note).to_have_text("Sent as German.")
        await composer.text.fill("ภาษาไทย")
        await composer.page.keyboard.press("Enter")
        await expect(composer.note).to_contain_text("Its language was not recognised")
        assert {frame["lang"] for frame in composer.frames()} == {"auto"}
        # What is mostly spoken is told for the session, and is what the microphone listens for.
        assert await composer.page.evaluate("spoken.at(-1)") == "en"
        await composer.microphone.click()
        await composer.recognisers(1)
        assert (await composer.page.evaluate("recognisers[0].lang")).startswith("en-")
        await composer.hear(0, ("good morning", True))
        await composer.until(lambda: composer.finals()[-1] == "good morning")
        assert composer.frames()[-1]["lang"] == "en"
        assert await composer.page.evaluate("localStorage.getItem('speaks')") == "auto"


_NO_DETECTOR = f"{_RECOGNISER} delete window.LanguageDetector;"
_DETECTOR = (
    _RECOGNISER
    + """
    window.LanguageDetector = class {
        static async availability() { return "available"; }
        static async create() { return new this(); }
        async detect(text) {
            const isGerman = /verschieben/.test(text);
            return [{ detectedLanguage: isGerman ? "de" : "en", confidence: 0.97 }];
        }
    };
"""
)


@pytest.mark.parametrize(
    ("script", "chosen", "text", "note"),
    [
        (
            _RECOGNISER,
            "en",
            "会議は金曜日です",
            "This does not look like English. Choose what you speak, or “Detect”.",
        ),
        (_RECOGNISER, "ja", "See you tomorrow", "This does not look like Japanese."),
        (_RECOGNISER, "en", "See you tomorrow, 明日", ""),
        (_RECOGNISER, "ja", "今日はZoomで", ""),
        (_DETECTOR, "en", "Wir verschieben das auf Freitag.", "This looks like German, but English is chosen."),
        (_DETECTOR, "de", "Wir verschieben das auf Freitag.", ""),
    ],
)
async def test_a_text_in_another_language_than_chosen_is_told(
    script: str, chosen: str, text: str, note: str, open_composer: OpenComposer
) -> None:
    async with open_composer(script) as composer:
        await composer.page.get_by_test_id("spoken-lang").select_option(chosen)
        await composer.text.fill(text)
        await composer.until(lambda: composer.partials()[-1:] == [text])
        if note:
            await expect(composer.note).to_contain_text(note)
        await composer.page.keyboard.press("Enter")
        await composer.sent(text)
        await expect(composer.note).to_contain_text(note) if note else await expect(composer.note).to_have_text("")


async def test_the_gateway_tells_that_what_was_sent_is_in_another_language(open_composer: OpenComposer) -> None:
    """Where the browser has no detector; the text is the gateway's by then."""
    async with open_composer(_NO_DETECTOR) as composer:
        page, switch = composer.page, composer.page.get_by_test_id("switch-language")
        await composer.text.fill("Wir verschieben das auf Freitag.")
        await composer.text.press("Enter")
        await expect(composer.note).to_have_text("This looks like German, but English is chosen.")
        # It stays while the next one is typed.
        await composer.text.fill("Dann sehen wir uns")
        await expect(composer.note).to_have_text("This looks like German, but English is chosen.")
        await expect(switch).to_have_text("Speak German")
        await switch.click()
        await expect(composer.note).to_have_text("")
        await composer.text.press("Enter")
        await composer.sent("Wir verschieben das auf Freitag.", "Dann sehen wir uns")
        assert composer.frames()[-1]["lang"] == "de"
        # Another sentence that is sent takes it away.
        async with page.expect_response("**/detect"):
            await composer.text.fill("So Friday is fine for everybody.")
            await composer.text.press("Enter")
        await expect(composer.note).to_contain_text("This looks like English")
        async with page.expect_response("**/detect"):
            await composer.text.fill("Das ist für alle in Ordnung so.")
            await composer.text.press("Enter")
        await expect(composer.note).to_have_text("")


# What a text looks like where English is chosen.
_LOOKS_LIKE = """async (texts) => {
    const { gatewaysDetector, otherLanguage } = await import("/page/speaking/other_language.js");
    const { languages } = await (await fetch("/v1/languages")).json();
    const detect = gatewaysDetector(null);
    const found = {};
    for (const text of texts) found[text] = (await otherLanguage(text, "en", languages, detect))?.tag ?? "";
    return found;
}"""


async def test_names_numbers_and_mixed_texts_look_like_no_other_language(open_composer: OpenComposer) -> None:
    unclear = [
        "Gesundheit!",
        "Okay, Hans-Peter Müller.",
        "Anna Schmidt, Jürgen Weber, Berlin Hauptbahnhof",
        "12.345,67 EUR, 24.12.2025",
        "https://example.com/de/ueber-uns",
        "Meeting at the Hauptbahnhof, then Bratwurst and Brezeln",
        "He said: guten Tag, and left the room.",
        "ok ok ok ok ok ok",
        "Pizza Margherita, Spaghetti Carbonara",
        "Thanks, merci, danke, gracias",
        "María García López",
        "Siemens AG, Deutsche Bank AG, Zürich",
        "I will send das Dokument tomorrow",
    ]
    async with open_composer(_NO_DETECTOR) as composer:
        assert await composer.page.evaluate(_LOOKS_LIKE, unclear) == dict.fromkeys(unclear, "")
        clear = {
            "Kannst du das bitte schicken?": "de",
            "On se voit demain matin": "fr",
            "We meet on Friday then": "",
        }
        assert await composer.page.evaluate(_LOOKS_LIKE, list(clear)) == clear


async def test_a_gateway_whose_detector_is_not_reached_is_asked_once(open_composer: OpenComposer) -> None:
    async with open_composer(_NO_DETECTOR) as composer:
        asked: list[str] = []

        async def refuse(route: Route) -> None:
            asked.append(route.request.post_data or "")
            await route.fulfill(status=404, json={"detail": "Not Found"})

        composer.watch.allow("404")
        await composer.page.route("**/detect", refuse)
        texts = ["Wir verschieben das auf Freitag.", "Dann sehen wir uns am Montag."]
        assert await composer.page.evaluate(_LOOKS_LIKE, texts) == dict.fromkeys(texts, "")
        assert asked == ['{"q":"verschieben das auf"}']


@pytest.mark.parametrize(
    ("script", "text", "offer", "lang"),
    [
        (_DETECTOR, "Wir verschieben das auf Freitag.", "Speak German", "de"),
        (_RECOGNISER, "会議は金曜日です", "Detect", "auto"),
    ],
)
async def test_one_button_speaks_the_language_that_a_text_looks_like(
    script: str, text: str, offer: str, lang: str, open_composer: OpenComposer
) -> None:
    async with open_composer(script) as composer:
        page, switch = composer.page, composer.page.get_by_test_id("switch-language")
        await expect(switch).to_be_hidden()
        await composer.text.fill(text)
        await expect(switch).to_have_text(offer)
        await switch.click()
        await expect(page.get_by_test_id("spoken-lang")).to_have_value(lang)
        await expect(switch).to_be_hidden()
        await expect(composer.note).to_have_text("")
        assert await page.evaluate("localStorage.getItem('speaks')") == lang
        await expect(composer.text).to_be_focused()
        await page.keyboard.press("Enter")
        await composer.sent(text)
        assert composer.frames()[-1]["lang"] == lang


@pytest.mark.parametrize(
    ("locale", "lang"), [("iw-IL", "en"), ("cmn-Hans-CN", "zh"), ("zh-TW", "zh"), ("es-419", "es")]
)
async def test_what_the_browser_prefers_is_known(locale: str, lang: str, open_composer: OpenComposer) -> None:
    own = f"Object.defineProperty(navigator, 'languages', {{ value: [{locale!r}] }});"
    async with open_composer(_RECOGNISER + own, expected=lang) as composer:
        await expect(composer.page.get_by_test_id("spoken-lang")).to_have_value(lang)


async def test_a_draft_is_kept_when_the_page_is_loaded_again(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(f"{gateway.url}/?meeting={new_meeting()}") as watch:
        page, text = watch.page, watch.page.get_by_test_id("text")
        await join(page, "Ana")
        await text.fill("Not said  yet,\nand not sent")
        await page.reload()
        await connected(page)
        await expect(text).to_have_value("Not said  yet,\nand not sent")
        await page.keyboard.press("Enter")
        await settled(row(page, "Not said yet"))
        await page.reload()
        await connected(page)
        await expect(text).to_have_value("")
        # Elsewhere it would not be the same.
        await text.fill("For these")
        await page.goto(f"{gateway.url}/?meeting={new_meeting()}")
        await join(page, "Ana")
        await expect(text).to_have_value("")


@asynccontextmanager
async def meeting_with_a_recogniser(
    gateway: GatewayProcess, open_page: OpenPage
) -> AsyncIterator[tuple[Page, Composing]]:
    async with open_page(f"{gateway.url}/healthz") as watch:
        watch.allow("favicon.ico")
        page, composer = watch.page, Composing(watch)
        await page.add_init_script(_RECOGNISER)
        await page.goto(f"{gateway.url}/?meeting={new_meeting()}")
        await join(page, "Ana")
        yield page, composer


async def test_half_a_sentence_that_was_heard_is_kept_when_the_page_is_loaded_again(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with meeting_with_a_recogniser(gateway, open_page) as (page, composer):
        await composer.text.fill("Typed before")
        await composer.microphone.click()
        await composer.recognisers(1)
        await composer.hear(0, ("we meet on Friday", False))
        await page.reload()
        await connected(page)
        await expect(composer.text).to_have_value("Typed before\nwe meet on Friday")
        assert composer.finals() == []
        await composer.text.press("Enter")
        await settled(row(page, "we meet on Friday"))
        await page.reload()
        await connected(page)
        await expect(composer.text).to_have_value("")


async def test_what_was_heard_to_its_end_or_accepted_already_is_not_kept(
    gateway: GatewayProcess, open_page: OpenPage
) -> None:
    async with meeting_with_a_recogniser(gateway, open_page) as (page, composer):
        await composer.microphone.click()
        await composer.recognisers(1)
        await composer.hear(0, ("Good morning.", True))
        await settled(row(page, "Good morning."))
        # The gateway takes a sentence while the utterance goes on.
        await composer.hear(1, ("Good morning.", True), ("We meet on Friday. The plan", False))
        await composer.hear(1, ("Good morning.", True), ("We meet on Friday. The plan is ready", False))
        await settled(row(page, "We meet on Friday."))
        await page.reload()
        await connected(page)
        await expect(composer.text).to_have_value("The plan is ready")
