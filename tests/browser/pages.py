"""The page as its user goes about it: joining, choosing, saying, and where on it the answers stand.

Every function takes a Playwright page or a Watch over one. The simulated engine's "translation" is the source text
behind the target's tag: `[ja] Hello`.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

from playwright.async_api import Locator, Page, expect

from tests.conftest import Watch

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "device_scale_factor": 2}
SMALL_PHONE: dict[str, Any] = PHONE | {"viewport": {"width": 360, "height": 740}}
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 860}}

LANGUAGES = ("en", "ja", "es", "de", "fr", "zh")
SENTENCE = "Let's move the launch to Friday."

_meetings = itertools.count(1)


def new_meeting() -> str:
    """An id that no other test uses."""
    return f"test-{next(_meetings)}"


def meeting_of(page: Page) -> str:
    """The meeting in the page's address; empty where there is none."""
    return parse_qs(urlsplit(page.url).query).get("meeting", [""])[0]


async def connected(page: Page) -> None:
    await expect(page.get_by_test_id("status")).to_have_attribute("data-state", "good")


async def captions_connected(page: Page) -> None:
    """The same for the captions and for a room's wall, which have no status."""
    await expect(page.get_by_test_id("captions")).to_have_attribute("data-state", "open")


async def join(page: Page, name: str = "", *, reads: str = "en", speaks: bool = True) -> None:
    """Answer the question that a link leads to."""
    dialog = page.get_by_role("dialog", name="Join the meeting")
    await dialog.get_by_label("Your name").fill(name)
    await dialog.get_by_label("I read").select_option(reads)
    await dialog.get_by_label("speak and read" if speaks else "read along", exact=True).check()
    await dialog.get_by_role("button", name="Join").click()
    await connected(page)


async def show(page: Page, tab: str) -> Locator:
    """Open one of the panel's tabs; what is in it."""
    # Whether it is on the screen tells nothing: at first, nothing is.
    options = page.get_by_test_id("options")
    if await options.get_attribute("aria-expanded") == "false":
        await options.click()
    await page.get_by_test_id(f"tab-{tab}").click()
    pane = page.locator(f"#pane-{tab}")
    await expect(pane).to_be_visible()
    return pane


async def read(page: Page, *tags: str) -> None:
    """Choose the languages to read, and no others."""
    await connected(page)
    pane = await show(page, "reading")
    for tag in LANGUAGES:
        await pane.get_by_test_id(f"read-{tag}").set_checked(tag in tags)


async def choose_stability(page: Page, mode: str) -> None:
    await connected(page)
    pane = await show(page, "reading")
    await pane.get_by_test_id(f"stability-{mode}").check()


async def say(page: Page, text: str) -> Locator:
    """Type a text and send it; its row."""
    await page.get_by_test_id("text").fill(text)
    await page.get_by_test_id("send").click()
    return row(page, text)


def row(page: Page, text: str) -> Locator:
    """The row of an utterance with these words in one of its cells."""
    return page.get_by_test_id("utterance").filter(has_text=text)


def cell(within: Page | Locator, lang: str) -> Locator:
    """The text in the column of a language."""
    return within.get_by_test_id(f"cell-{lang}")


def original(within: Page | Locator) -> Locator:
    """What was said: in the column of its language, or above all columns."""
    return within.locator(":is(.original, .spoken) > .cell-text")


async def settled(utterance: Locator) -> None:
    await expect(utterance).to_have_attribute("data-state", "settled")


async def share_typing(page: Page) -> None:
    """The others see what is typed before it is sent."""
    # Also where a phone has no room for it while somebody types.
    await page.get_by_test_id("share-typing").evaluate("box => box.checked || box.click()")


async def type_words(watch: Watch, *words: str, into: str | None = None) -> None:
    """Type words, each once what was typed before it was sent and shown, and translated where a language is given.

    How much of a translation is shown follows from how many revisions were translated, which a busy machine takes
    its time for.
    """
    field = watch.page.get_by_test_id("text")
    await share_typing(watch.page)
    done = await partials_done(watch.page.url, into) - len(sent(watch, "utterance.partial")) if into else 0.0
    for word in words:
        text = f"{await field.input_value()} {word}".strip()
        await field.press_sequentially(f" {word}" if text != word else word)
        await until(lambda text=text: text in captions(watch))  # type: ignore[misc]
        while into and await partials_done(watch.page.url, into) < done + len(sent(watch, "utterance.partial")):
            await asyncio.sleep(0.02)


async def stop_the_clock(page: Page) -> None:
    """From now on time passes on the page with its clock's `run_for` alone, until that is resumed."""
    await page.clock.install()
    await page.clock.pause_at(await page.evaluate("Date.now() / 1000 + 60"))


async def pick_sentence(watch: Watch, index: int, lang: str, words: str) -> None:
    """Have a sample sentence said until these words of its translation are on the screen; the clock stands then.

    The next word is said once the one before is translated.
    """
    await stop_the_clock(watch.page)
    done = await partials_done(watch.page.url, lang) - len(sent(watch, "utterance.partial"))
    await watch.page.get_by_test_id("sentences").get_by_role("button").nth(index).click()
    translation = watch.page.get_by_test_id(f"cell-{lang}").last
    while True:
        assert sent(watch, "utterance.final") == [], "all of it was said, and too little of it was shown"
        while await partials_done(watch.page.url, lang) < done + len(sent(watch, "utterance.partial")):
            await asyncio.sleep(0.02)
        # For what has arrived to be drawn, and no other word.
        await watch.page.clock.run_for(100)
        if await translation.count() and words in await translation.inner_text():
            return
        await watch.page.clock.run_for(300)


async def partials_done(url: str, lang: str, outcome: str = "") -> float:
    """How many partials have an outcome of their translation into a language, or this outcome."""
    return await asyncio.to_thread(_partials_done, urlsplit(url).netloc, lang, outcome)


def _partials_done(address: str, lang: str, outcome: str) -> float:
    with urlopen(f"http://{address}/metrics") as response:
        lines = response.read().decode().splitlines()
    labels = (f'lang="{lang}"', f'outcome="{outcome}')
    found = [
        line
        for line in lines
        if line.startswith("gateway_partials_total{") and all(map(line.__contains__, labels))
    ]
    return sum(float(line.rsplit(" ", 1)[1]) for line in found)


async def seen_by(page: Page, testid: str) -> list[str]:
    """Every text that `witness` saw elements with this id show, the first one first."""
    seen: list[str] = await page.evaluate("(testid) => seen[testid]", testid)
    return seen


async def witness(page: Page, *testids: str) -> None:
    """Take note from now on of every other text that elements with these ids ever show."""
    await page.evaluate(_WITNESS, list(testids))


_WITNESS = """(testids) => {
    window.seen = Object.fromEntries(testids.map((testid) => [testid, []]));
    const all = (testid) => [...document.querySelectorAll(`[data-testid="${testid}"]`)];
    const shown = Object.fromEntries(testids.map((testid) => [testid, all(testid).at(-1)?.textContent]));
    const look = () => {
        for (const [testid, texts] of Object.entries(seen)) {
            for (const { textContent } of all(testid)) {
                if (textContent !== shown[testid]) texts.push((shown[testid] = textContent));
            }
        }
    };
    new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.02)


def captions(watch: Watch) -> list[str]:
    """What the gateway has shown of what was said, oldest first."""
    return [frame["text"] for frame in received(watch, "caption")]


def received(watch: Watch, kind: str) -> list[dict[str, Any]]:
    return [frame for frame in watch.received if frame["type"] == kind]


def sent(watch: Watch, kind: str) -> list[dict[str, Any]]:
    return [frame for frame in watch.sent if frame["type"] == kind]


async def overflow_px(page: Page) -> int:
    """How much wider than the viewport the page is."""
    width: int = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return width
