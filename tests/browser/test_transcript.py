"""The transcript: what becomes of messages in whatever order, and how it reads on a page. Events are scripted."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.pages import PHONE
from tests.conftest import OpenPage
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser

Event = dict[str, Any]

_HTML = """<!doctype html><html lang="en"><head><title>Transcript</title>
<link rel="icon" href="/favicon.svg"><link rel="stylesheet" href="/page/tokens.css">
<link rel="stylesheet" href="/page/style.css">
<link rel="stylesheet" href="/page/transcript/transcript.css"></head><body></body></html>"""

_SET_UP = """async (shown) => {
    const { Transcript } = await import("/page/transcript/transcript.js");
    const { TranscriptView } = await import("/page/transcript/transcript_view.js");
    const { ScreenReaderAnnouncer } = await import("/page/transcript/screen_reader_announcer.js");
    const names = new Intl.DisplayNames(["en"], { type: "language" });
    Object.assign(window, { Transcript, changes: [], cancelled: [] });
    window.transcript = new Transcript();
    transcript.listen(({ entry, lang, what }) => changes.push([what, entry.key, lang].join(" ").trim()));
    window.announcer = new ScreenReaderAnnouncer({ transcript });
    const nameOf = (tag) => names.of(tag);
    window.view = new TranscriptView({ transcript, nameOf, onCancel: (entry) => cancelled.push(entry.key) });
    view.empty.textContent = "Welcome.";
    view.element.style.setProperty("height", "100vh");
    view.show(shown);
    document.body.append(view.element, announcer.element);
    window.result = (transcript) => Object.fromEntries([...transcript.entries].map(([key, entry]) => {
        const { speaker, lang, text, final, own, reason } = entry;
        const cells = [...entry.cells.values()].map((cell) =>
            [cell.lang, [cell.state, cell.text || cell.committed, cell.tentative, cell.reason]]);
        return [key, { speaker, lang, text, final, own, reason, cells: Object.fromEntries(cells.sort()) }];
    }).sort());
}"""


class Reader:
    """A page that holds a transcript, its view and its announcer."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.rows = page.get_by_test_id("utterance")
        self.jump = page.get_by_test_id("jump")
        self.region = page.get_by_role("log", name="Transcript")

    async def hear(self, *events: Event) -> None:
        """All of them, and the frame behind them."""
        await self.page.evaluate(
            """(events) => new Promise((done) => {
                for (const event of events) transcript.onEvent(event);
                requestAnimationFrame(() => requestAnimationFrame(done));
            })""",
            events,
        )

    async def entries(self) -> dict[str, Any]:
        entries: dict[str, Any] = await self.page.evaluate("result(transcript)")
        return entries

    async def changes(self) -> list[str]:
        changes: list[str] = await self.page.evaluate("changes.splice(0)")
        return changes

    async def show(self, *reads: str, originals: bool = False, stability: str = "live") -> None:
        shown = {"reads": reads, "originals": originals, "stability": stability}
        await self.page.evaluate("(shown) => view.show(shown)", shown)

    def cell(self, key: str, lang: str) -> Locator:
        return self.page.locator(f'[data-key="{key}"]').get_by_test_id(f"cell-{lang}")

    async def from_end(self) -> float:
        """How far from its end the transcript is scrolled, in px."""
        distance: float = await self.region.evaluate("(r) => r.scrollHeight - r.scrollTop - r.clientHeight")
        return distance

    async def at_rest(self) -> None:
        """Until scrolling, which a browser does step by step, has come to its end."""
        await self.region.evaluate(
            """async (region) => {
                for (let same = 0, top = -1; same < 10; top = region.scrollTop) {
                    await new Promise(requestAnimationFrame);
                    same = region.scrollTop === top ? same + 1 : 0;
                }
            }"""
        )

    async def top_of(self, key: str) -> float:
        row = self.page.locator(f'[data-key="{key}"]')
        return float(await row.evaluate("(row) => row.getBoundingClientRect().top"))


OpenReader = Callable[..., AbstractAsyncContextManager[Reader]]


@pytest.fixture
def open_reader(open_page: OpenPage, gateway: GatewayProcess) -> OpenReader:
    """Options are those of a browser context."""

    @asynccontextmanager
    async def opened(
        *reads: str, originals: bool = False, stability: str = "live", **options: Any
    ) -> AsyncIterator[Reader]:
        # A document of the gateway's origin in which the modules can be used by themselves.
        async with open_page(f"{gateway.url}/v1/languages", bypass_csp=True, **options) as watch:
            watch.allow("favicon.ico")  # what a browser looks for where no page names an icon
            await watch.page.set_content(_HTML)
            shown = {"reads": reads, "originals": originals, "stability": stability}
            await watch.page.evaluate(_SET_UP, shown)
            yield Reader(watch.page)

    return opened


# -------------------------------------------------------------------- what is heard


def started(participant: str = "me", recovered: bool | None = None, epoch: str = "e1") -> Event:
    return {"type": "session.started", "participant": participant, "recovered": recovered, "epoch": epoch}


def pong() -> Event:
    return {"type": "pong", "nonce": ""}


def cancelled(who: str, utterance: str) -> Event:
    return {"type": "utterance.cancelled", "participant": who, "utterance": utterance}


def queued(utterance: str, text: str, lang: str = "en", **corrected: str) -> Event:
    return {"type": "utterance.queued", "id": utterance, "lang": lang, "text": text, **corrected}


def caption(who: str, utterance: str, text: str, *, lang: str = "en", rev: int = 1, final: bool = True) -> Event:
    said = {"participant": who, "utterance": utterance, "speaker": who.title(), "lang": lang, "rev": rev}
    return {"type": "caption", **said, "text": text, "final": final, "offset": 1 if final else None}


def partial(who: str, utterance: str, text: str, rev: int = 1, lang: str = "en") -> Event:
    return caption(who, utterance, text, lang=lang, rev=rev, final=False)


def delta(who: str, utterance: str, lang: str, committed: str, tentative: str = "") -> Event:
    words = {"lang": lang, "rev": 1, "committed": committed, "tentative": tentative}
    return {"type": "translation.delta", "participant": who, "utterance": utterance, **words}


def final(
    who: str, utterance: str, lang: str, text: str, *, truncated: bool = False, unsure: bool = False
) -> Event:
    said = {"participant": who, "utterance": utterance, "speaker": who.title(), "lang": lang, "rev": 9}
    timings = {"queue_ms": 1.5, "first_token_ms": 210.4, "total_ms": 12_480.0}
    rest = {"text": text, "offset": 2, "timings": timings, "tokens": 9, "truncated": truncated}
    trust = {"confidence": 0.1, "unsure": True} if unsure else {}
    return {"type": "translation.final", **said, **rest, **trust}


def replaced(who: str, *utterances: str, by: str | None) -> Event:
    return {"type": "utterance.replaced", "participant": who, "utterances": utterances, "by": by}


def failed(who: str, utterance: str, lang: str, message: str) -> Event:
    said = {"participant": who, "utterance": utterance, "speaker": who.title(), "lang": lang, "rev": 9}
    return {"type": "translation.failed", **said, "code": "engine_failed", "message": message, "offset": 3}


def left(who: str) -> Event:
    return {"type": "participant.left", "participant": who, "name": "", "speaks": None, "reads": []}


def updated(*reads: str, stability: str = "live") -> Event:
    return {"type": "session.updated", "reads": reads, "speaks": None, "stability": stability, "originals": True}


def refused(utterance: str, code: str, message: str) -> Event:
    return {"type": "utterance.refused", "id": utterance, "code": code, "message": message}


def many(count: int, *langs: str) -> list[Event]:
    """Whole utterances."""
    said = [f"This is sentence {number} of the meeting, and it has a few words." for number in range(count)]
    return [
        event
        for number, text in enumerate(said)
        for event in [
            caption("ana", str(number), text),
            *(final("ana", str(number), lang, f"[{lang}] {text}") for lang in langs),
        ]
    ]


async def test_utterance_grows_until_final_and_tells_changes_once(open_reader: OpenReader) -> None:
    async with open_reader("ja") as reader:
        await reader.hear(started(), partial("ana", "1", "Good"), delta("ana", "1", "ja", "[ja]", " Go"))
        await reader.hear(partial("ana", "1", "Good mor", 2), delta("ana", "1", "ja", " Good"))
        assert (await reader.entries())["ana/1"] == {
            "speaker": "Ana",
            "lang": "en",
            "text": "Good mor",
            "final": False,
            "own": False,
            "reason": "",
            "cells": {"ja": ["growing", "[ja] Good", "", ""]},
        }
        told = ["new ana/1", "original ana/1", "translation ana/1 ja"]
        assert await reader.changes() == [*told, "original ana/1", "translation ana/1 ja"]

        done = [caption("ana", "1", "Good morning.", rev=3), final("ana", "1", "ja", "[ja] Good morning.")]
        await reader.hear(*done)
        assert await reader.changes() == ["original ana/1", "translation ana/1 ja"]
        before = await reader.entries()
        await reader.hear(*done, partial("ana", "1", "Good", 4), delta("ana", "1", "ja", " more"))
        await reader.hear(failed("ana", "1", "ja", "Too late."))
        assert await reader.changes() == []
        assert await reader.entries() == before
        assert before["ana/1"]["text"] == "Good morning."
        assert before["ana/1"]["cells"] == {"ja": ["final", "[ja] Good morning.", "", ""]}


async def test_translation_without_caption_makes_an_entry(open_reader: OpenReader) -> None:
    async with open_reader("ja") as reader:
        await reader.hear(started(), delta("bo", "1", "ja", "[ja]"))
        assert (await reader.entries())["bo/1"]["speaker"] == ""
        await expect(reader.rows).to_contain_text("Guest")
        await reader.hear(final("bo", "1", "ja", "[ja] Hello."))
        assert (await reader.entries())["bo/1"]["speaker"] == "Bo"
        await expect(reader.rows).to_contain_text("Bo")
        await expect(reader.rows).to_have_attribute("data-state", "settled")


async def test_what_failed_may_be_translated_later(open_reader: OpenReader) -> None:
    async with open_reader("ja") as reader:
        await reader.hear(started(), caption("bo", "1", "Hello."), failed("bo", "1", "ja", "The engine failed."))
        assert (await reader.entries())["bo/1"]["cells"] == {"ja": ["failed", "", "", "The engine failed."]}
        await reader.hear(final("bo", "1", "ja", "[ja] Hello."))
        assert (await reader.entries())["bo/1"]["cells"] == {"ja": ["final", "[ja] Hello.", "", ""]}
        await expect(reader.cell("bo/1", "ja")).to_have_text("[ja] Hello.")


async def test_messages_in_any_order_reach_the_same_finals(open_reader: OpenReader) -> None:
    """It holds for any number of messages."""
    said: list[Event] = []
    for who, utterance in [("ana", "1"), ("ana", "2"), ("bo", "1"), ("me", "1")]:
        text = f"{who} says {utterance}."
        said += [
            partial(who, utterance, text[:4]),
            delta(who, utterance, "ja", "[ja]", " a"),
            partial(who, utterance, text[:6], 2),
            delta(who, utterance, "ja", " b"),
            delta(who, utterance, "de", "[de]"),
            caption(who, utterance, text, rev=3),
            final(who, utterance, "ja", f"[ja] {text}"),
            failed(who, utterance, "de", "The engine failed."),
            failed(who, utterance, "fr", "The engine failed."),
            final(who, utterance, "fr", f"[fr] {text}"),
        ]
    orders = []
    for seed in range(60):
        chance = random.Random(seed)
        order = said + chance.sample(said, chance.randrange(len(said)))
        chance.shuffle(order)
        orders.append(order)
    async with open_reader() as reader:
        plain, *others = await reader.page.evaluate(
            """([started, orders]) => orders.map((order) => {
                const transcript = new Transcript();
                transcript.onEvent(started);
                for (const event of order) transcript.onEvent(event);
                const ends = result(transcript);
                // How far a failed one had come is no part of it.
                for (const { cells } of Object.values(ends)) cells.de[1] = "";
                return ends;
            })""",
            [started(), [said, *orders]],
        )
        assert list(plain) == ["ana/1", "ana/2", "bo/1", "me/1"]
        assert plain["me/1"]["own"]
        assert [words[0] for words in plain["bo/1"]["cells"].values()] == ["failed", "final", "final"]
        for seed, other in enumerate(others):
            assert other == plain, f"order {seed}"


async def test_unfinished_text_stays_after_reconnecting_until_replaced(open_reader: OpenReader) -> None:
    async with open_reader("ja", "de") as reader:
        await reader.hear(started(), partial("ana", "1", "Good"))
        await reader.hear(delta("ana", "1", "ja", "[ja] Go", "od"))
        await reader.hear(delta("ana", "1", "de", "[de] Go"))
        await reader.hear(started())
        await expect(reader.cell("ana/1", "ja")).to_have_text("[ja] Good")
        await reader.hear(delta("ana", "1", "ja", "[ja] Good mor"))
        await reader.hear(delta("ana", "1", "ja", "ning"))
        await expect(reader.cell("ana/1", "ja")).to_have_text("[ja] Good morning")
        await expect(reader.cell("ana/1", "de")).to_have_text("[de] Go")

        # A language that is left, and read again.
        await reader.hear(updated("ja"), updated("ja", "de"))
        await reader.hear(delta("ana", "1", "ja", ", all"), delta("ana", "1", "de", "[de] Good mor"))
        await expect(reader.cell("ana/1", "ja")).to_have_text("[ja] Good morning, all")
        await expect(reader.cell("ana/1", "de")).to_have_text("[de] Good mor")
        # Whole sentences for a while.
        await reader.hear(updated("ja", "de", stability="final"), updated("ja", "de"))
        await reader.hear(delta("ana", "1", "ja", "[ja]"))
        await expect(reader.cell("ana/1", "ja")).to_have_text("[ja]")


async def test_what_somebody_was_saying_goes_with_them(open_reader: OpenReader) -> None:
    async with open_reader("ja") as reader:
        await reader.hear(started(), caption("ana", "1", "Said."), partial("ana", "2", "And"))
        await reader.hear(final("ana", "3", "ja", "Said, too."), delta("ana", "4", "ja", "Ne"))
        await reader.hear(partial("bo", "1", "Oh"))
        await reader.changes()
        await reader.hear(left("ana"))
        assert await reader.changes() == ["gone ana/2", "gone ana/4"]
        await expect(reader.rows).to_have_count(3)


async def test_removed_row_returning_at_once_is_new(open_reader: OpenReader) -> None:
    async with open_reader("ja") as reader:
        await reader.hear(started(), partial("ana", "1", "Wel"), partial("bo", "1", "Oh"))
        await reader.hear(
            left("ana"), left("bo"), caption("ana", "1", "Well."), final("ana", "1", "ja", "[ja] Well.")
        )
        await expect(reader.rows).to_have_count(1)
        await expect(reader.cell("ana/1", "ja")).to_have_text("[ja] Well.")
        # Said and gone between two frames.
        await reader.hear(partial("carl", "1", "Hm"), left("carl"))
        await expect(reader.rows).to_have_count(1)


async def test_what_the_gateway_will_not_take_ends(open_reader: OpenReader) -> None:
    async with open_reader("ja") as reader:
        await reader.hear(started(), caption("me", "1", "Said."), partial("me", "2", "And"), started("me-2"))
        await reader.hear(refused("2", "cancelled", "The utterance was cancelled."))
        await reader.hear(refused("1", "closed", "The session has ended."), refused("9", "closed", "Unknown."))
        assert list(await reader.entries()) == ["me/1"]
        await expect(reader.rows).to_have_attribute("data-state", "settled")
        await expect(reader.rows).to_contain_text("The session has ended.")
        await reader.hear(final("me", "1", "ja", "[ja] Said."), caption("me-2", "3", "Mine."))
        await expect(reader.cell("me/1", "ja")).to_have_text("[ja] Said.")
        assert (await reader.entries())["me-2/3"]["own"]


async def test_language_chosen_later_is_owed_nothing_said_before(open_reader: OpenReader) -> None:
    async with open_reader("ja") as reader:
        await reader.hear(started(), pong(), caption("me", "1", "One."), partial("ana", "1", "And"))
        await reader.hear(final("me", "1", "ja", "[ja] One."), caption("me", "2", "Two."))
        await expect(reader.rows.nth(0)).to_have_attribute("data-state", "settled")
        await expect(reader.rows.nth(2)).to_have_attribute("data-state", "running")

        await reader.show("ja", "de")
        # On its way while the gateway had not heard of it.
        await reader.hear(caption("me", "3", "Three."), final("me", "3", "ja", "[ja] Three."))
        await reader.hear(updated("ja", "de"), caption("ana", "1", "And so on.", rev=2))
        for key in ("me/1", "me/2", "me/3"):
            await expect(reader.cell(key, "de")).to_have_attribute("data-state", "none")
            content = await reader.cell(key, "de").evaluate("(text) => getComputedStyle(text, '::before').content")
            assert content == "none"
        for key, state in (("me/1", "settled"), ("me/2", "running"), ("me/3", "settled")):
            await expect(reader.page.locator(f'[data-key="{key}"]')).to_have_attribute("data-state", state)
        await expect(reader.cell("ana/1", "de")).to_have_attribute("data-state", "waiting")
        await expect(reader.cell("me/2", "ja")).to_have_attribute("data-state", "waiting")

        # The gateway makes up for some of it.
        await reader.hear(delta("me", "1", "de", "[de] O"))
        await expect(reader.cell("me/1", "de")).to_have_attribute("data-state", "growing")
        await expect(reader.rows.nth(0)).to_have_attribute("data-state", "running")
        await reader.hear(final("me", "1", "de", "[de] One."), failed("me", "2", "de", "The engine failed."))
        await expect(reader.cell("me/1", "de")).to_have_text("[de] One.")
        await expect(reader.rows.nth(2)).to_contain_text("The engine failed.")


async def test_language_dropped_and_resumed_is_not_waited_for(
    open_reader: OpenReader,
) -> None:
    """The translation that had begun before the language was dropped will not come."""
    async with open_reader("ja", "de") as reader:
        await reader.hear(started(), pong(), partial("me", "1", "O"), delta("me", "1", "de", "[de] O"))
        await reader.show("ja")
        await reader.hear(updated("ja"), caption("me", "1", "One.", rev=2), final("me", "1", "ja", "[ja] One."))
        await reader.show("ja", "de")
        await reader.hear(updated("ja", "de"))
        await expect(reader.cell("me/1", "de")).to_have_attribute("data-state", "none")
        await expect(reader.rows).to_have_attribute("data-state", "settled")


async def test_utterances_before_joining_are_owed_nothing(
    open_reader: OpenReader,
) -> None:
    """Their time is known if it is given."""
    async with open_reader("ja", "de") as reader:
        await reader.hear(started(), caption("ana", "1", "Early."), final("ana", "1", "ja", "[ja] Early."))
        await reader.hear(final("cy", "1", "ja", "[ja] Earlier.") | {"at_ms": 12_480})
        await reader.hear(pong(), caption("bo", "1", "Now."))
        await expect(reader.rows.first).to_have_attribute("data-state", "settled")
        await expect(reader.cell("ana/1", "de")).to_have_attribute("data-state", "none")
        await expect(reader.cell("bo/1", "de")).to_have_attribute("data-state", "waiting")
        await expect(reader.rows.first.locator("time")).to_be_hidden()
        await expect(reader.rows.last.locator("time")).to_be_visible()
        # Without a caption, the translation tells when its utterance was accepted.
        earlier = reader.rows.filter(has_text="Earlier.").locator("time")
        await expect(earlier).to_have_attribute("datetime", "1970-01-01T00:00:00.000Z")
        # A language that was asked for while there was no connection.
        await reader.show("ja", "de", "fr")
        await reader.hear(started(recovered=True), caption("bo", "2", "Meanwhile."), pong())
        await expect(reader.cell("bo/2", "fr")).to_have_attribute("data-state", "none")
        await expect(reader.cell("bo/2", "de")).to_have_attribute("data-state", "waiting")
        await expect(reader.cell("bo/1", "de")).to_have_attribute("data-state", "waiting")


@pytest.mark.parametrize(
    ("epoch", "reason"),
    [
        ("e2", "Interrupted: the gateway was restarted."),
        ("e1", "Interrupted: the connection was lost for too long."),
    ],
)
async def test_utterances_unknown_to_another_session_are_not_awaited(
    open_reader: OpenReader, epoch: str, reason: str
) -> None:
    async with open_reader("ja", "de") as reader:
        await reader.hear(started(), pong(), caption("me", "1", "One."), delta("me", "1", "ja", "[ja] O"))
        await reader.hear(caption("ana", "1", "Two."), delta("ana", "1", "ja", "[ja]"))
        await reader.hear(final("ana", "1", "de", "[de] Two."))
        await reader.hear(partial("ana", "2", "Un"), partial("bo", "1", "Still"), delta("bo", "1", "ja", "[ja]"))
        await reader.hear(queued("2", "Offline."))
        await reader.page.get_by_test_id("cancel").first.focus()

        await reader.hear(started("me-2", recovered=False, epoch=epoch))
        await expect(reader.cell("me/1", "ja")).to_have_attribute("data-state", "growing")
        await reader.hear(partial("bo", "1", "Still", 2), delta("ana", "1", "ja", "[ja] Tw"), pong())
        await expect(reader.rows).to_have_count(4)
        assert (await reader.entries())["me/1"]["cells"] == {
            "ja": ["failed", "[ja] O", "", reason],
            "de": ["failed", "", "", reason],
        }
        own = reader.page.locator('[data-key="me/1"]')
        await expect(own).to_have_attribute("data-state", "settled")
        await expect(own.get_by_test_id("cancel")).to_be_hidden()
        await expect(reader.region).to_be_focused()
        await expect(reader.cell("ana/1", "ja")).to_have_attribute("data-state", "growing")
        await expect(reader.cell("ana/1", "de")).to_have_text("[de] Two.")
        await expect(reader.page.locator('[data-key="bo/1"]')).to_have_attribute("data-state", "speaking")
        await expect(reader.page.locator('[data-key="/2"]')).to_have_attribute("data-state", "unsent")
        await reader.hear(caption("me-2", "2", "Offline."), delta("me-2", "2", "ja", "[ja]"), pong())
        await expect(reader.page.locator('[data-key="me-2/2"]')).to_have_attribute("data-state", "running")
        await expect(reader.rows).to_have_count(4)


async def test_what_resumes_after_reconnecting_is_waited_for(open_reader: OpenReader) -> None:
    async with open_reader("ja") as reader:
        await reader.hear(started(), pong(), caption("me", "1", "One."), caption("me", "2", "Two."))
        await reader.hear(delta("me", "2", "ja", "[ja]"), partial("me", "3", "Thr"))
        await reader.hear(started(recovered=True), pong())
        for row in (0, 1):
            await expect(reader.rows.nth(row)).to_have_attribute("data-state", "running")
        # A draft is one's own to finish.
        await expect(reader.rows.nth(2)).to_have_attribute("data-state", "speaking")


async def test_incomplete_lost_session_leaves_nothing_waiting(open_reader: OpenReader) -> None:
    """The session was lost before it had told all."""
    async with open_reader("ja") as reader:
        await reader.hear(started(), pong(), caption("me", "1", "One."))
        await reader.hear(started("me-2", recovered=False, epoch="e2"), caption("ana", "1", "Early."))
        await reader.hear(started("me-2", recovered=True, epoch="e2"), pong())
        await expect(reader.rows.nth(0)).to_contain_text("Interrupted: the gateway was restarted.")
        await expect(reader.cell("ana/1", "ja")).to_have_attribute("data-state", "none")

        await reader.hear(caption("me-2", "1", "Two."))
        await reader.hear(started("me-3", recovered=False, epoch="e3"), caption("ana", "2", "Early."))
        await reader.hear(started("me-4", recovered=False, epoch="e4"), pong())
        await expect(reader.rows.nth(2)).to_contain_text("Interrupted: the gateway was restarted.")
        await expect(reader.cell("ana/2", "ja")).to_have_attribute("data-state", "none")


async def test_offline_text_is_seen_at_once(open_reader: OpenReader) -> None:
    async with open_reader("ja") as reader:
        await reader.page.evaluate("announcer.lang = 'en'; announcer.start()")
        await reader.hear(queued("1", "First."), queued("2", "Second."))
        await expect(reader.rows).to_have_count(2)
        first = reader.rows.first
        await expect(first).to_have_attribute("data-state", "unsent")
        await expect(first).to_contain_text("You")
        await expect(first).to_contain_text("Not sent yet")
        # Nowhere else would it be seen.
        await expect(first.get_by_test_id("original")).to_have_text("First.")
        await expect(first.get_by_test_id("cancel")).to_be_hidden()
        await reader.show("ja", "en", "de")
        await expect(first.get_by_test_id("cell-en")).to_have_text("First.")
        await expect(first.get_by_test_id("cell-ja")).to_have_attribute("data-state", "none")

        # What was said meanwhile goes before it.
        await reader.hear(started(), caption("ana", "1", "Hello."), pong(), caption("me", "1", "First."))
        texts = reader.page.get_by_test_id("cell-en")
        assert await texts.all_inner_texts() == ["Hello.", "First.", "Second."]
        await expect(reader.page.locator('[data-key="me/1"]')).to_have_attribute("data-state", "running")
        await expect(reader.page.get_by_text("Not sent yet")).to_have_count(1)
        await reader.hear(caption("me", "2", "Second."), queued("1", "First."))
        await expect(reader.page.get_by_text("Not sent yet")).to_have_count(0)
        await expect(reader.rows).to_have_count(3)
        # Read out is what others say.
        assert await reader.page.get_by_test_id("announcer").inner_text() == "Ana: Hello."


async def test_offline_correction_is_seen_below_what_it_corrects(open_reader: OpenReader) -> None:
    async with open_reader("en") as reader:
        await reader.hear(started(), caption("me", "1", "Tuesday."), caption("me", "1~2", "My number."), pong())
        await reader.hear(queued("2", "Thursday.", replaces="1~1"), queued("3", "", replaces="1~2"))
        await expect(reader.rows.nth(0)).to_contain_text("Not sent yet · Thursday.")
        await expect(reader.cell("me/1", "en")).to_have_text("Tuesday.")
        await expect(reader.rows.nth(1)).to_contain_text("Not sent yet · Take back")
        await reader.hear(refused("3", "unknown_utterance", "It is not known."))
        await expect(reader.rows.nth(1)).not_to_contain_text("Not sent yet")
        await reader.hear(replaced("me", "1", by="2"), caption("me", "2", "Thursday."))
        await expect(reader.cell("me/2", "en")).to_have_text("Thursday.")
        await expect(reader.page.get_by_text("Not sent yet")).to_have_count(0)


async def test_draft_finished_offline_is_one_row(open_reader: OpenReader) -> None:
    async with open_reader("ja", "en") as reader:
        await reader.hear(started(), pong(), partial("me", "1", "Go"), delta("me", "1", "ja", "[ja] Go"))
        await reader.hear(queued("1", "Good morning."), queued("1", "Good morning."))
        await expect(reader.rows).to_have_count(1)
        await expect(reader.rows).to_have_attribute("data-state", "unsent")
        await expect(reader.page.get_by_test_id("cell-en")).to_have_text("Good morning.")
        # What was translated of it stays.
        await expect(reader.cell("me/1", "ja")).to_have_text("[ja] Go")
        # The gateway has only heard the beginning, and repeats what became of it.
        await reader.hear(started(recovered=True), partial("me", "1", "Go"), delta("me", "1", "ja", "[ja] Go"))
        await reader.hear(pong())
        await expect(reader.rows).to_have_attribute("data-state", "unsent")
        await expect(reader.page.get_by_test_id("cell-en")).to_have_text("Good morning.")
        await reader.hear(caption("me", "1", "Good morning.", rev=2), delta("me", "1", "ja", "od"))
        await expect(reader.rows).to_have_attribute("data-state", "running")
        await expect(reader.cell("me/1", "ja")).to_have_text("[ja] Good")
        await expect(reader.rows).to_have_count(1)


async def test_gateway_may_know_the_beginning_of_unsent_text(open_reader: OpenReader) -> None:
    async with open_reader("ja") as reader:
        # The connection was lost before the answer to its first words.
        await reader.hear(started(), pong(), queued("1", "Good morning."), queued("2", "Bye."))
        heard = [partial("me", "1", "Go"), delta("me", "1", "ja", "[ja] Go")]
        await reader.hear(started(recovered=True), *heard, pong())
        await expect(reader.page.locator('[data-state="unsent"]')).to_have_count(2)
        await expect(reader.cell("me/1", "ja")).to_have_text("[ja] Go")
        await expect(reader.page.locator('[data-key="me/1"]')).to_contain_text("Good morning.")
        # A language that is chosen before it is sent is owed for it, too.
        await reader.show("ja", "de")
        await reader.hear(updated("ja", "de"), caption("me", "1", "Good morning.", rev=2))
        await reader.hear(delta("me", "1", "ja", "od"))
        await expect(reader.cell("me/1", "ja")).to_have_text("[ja] Good")
        await expect(reader.cell("me/1", "de")).to_have_attribute("data-state", "waiting")
        # A new session begins it again.
        await reader.hear(queued("3", "And"), started("me-2", recovered=False), left("me"))
        await reader.hear(final("me-2", "2", "ja", "[ja] Bye."), partial("me-2", "3", "A"), pong())
        assert sorted(await reader.entries()) == ["me-2/2", "me-2/3", "me/1"]
        await expect(reader.page.locator('[data-key="me-2/2"]')).not_to_contain_text("Not sent yet")


async def test_unsent_text_tells_why_it_stays_unsent(open_reader: OpenReader) -> None:
    async with open_reader("en") as reader:
        await reader.hear(queued("1", "First."), queued("2", "Second."), queued("3", "Third."))
        await reader.hear(refused("1", "closed", "The session has ended."))
        await reader.hear(refused("2", "cancelled", "The utterance was cancelled."))
        await expect(reader.rows).to_have_count(2)
        await expect(reader.rows.first).to_have_attribute("data-state", "settled")
        await expect(reader.rows.first).to_contain_text("First.")
        await expect(reader.rows.first).to_contain_text("The session has ended.")
        await expect(reader.page.get_by_text("Not sent yet")).to_have_count(1)
        # Tried once more, in another session.
        await reader.hear(started("me-2"), caption("me-2", "1", "First."), pong())
        assert list(await reader.entries()) == ["/3", "me-2/1"]


async def test_late_words_of_cancelled_utterances_are_hidden(open_reader: OpenReader) -> None:
    async with open_reader("ja", "en") as reader:
        given_up = refused("1", "cancelled", "The utterance was cancelled.")
        late = [partial("me", "1", "Good", 2), delta("me", "1", "ja", "[ja] Good")]
        await reader.hear(started(), pong(), partial("me", "1", "Go"), given_up, *late)
        # Nor of what nothing was seen of yet.
        await reader.hear(refused("2", "cancelled", "The utterance was cancelled."), partial("me", "2", "Go"))
        await reader.hear(started(recovered=True), *late, pong())
        assert await reader.entries() == {}
        # Behind the answer the id may be used again.
        await reader.hear(cancelled("me", "1"), partial("me", "1", "New", 3))
        assert list(await reader.entries()) == ["me/1"]
        # What was said in spite of it is seen by everybody.
        await reader.hear(given_up, caption("me", "1", "New words.", rev=4), delta("me", "1", "ja", "[ja]"))
        assert (await reader.entries())["me/1"]["cells"] == {"ja": ["growing", "[ja]", "", ""]}
        # Those of others are their own to give up.
        await reader.hear(partial("ana", "2", "Hm"), cancelled("ana", "2"), partial("ana", "2", "Hm", 2))
        assert list(await reader.entries()) == ["ana/2", "me/1"]


async def test_of_two_thousand_entries_the_oldest_settled_ones_go(open_reader: OpenReader) -> None:
    async with open_reader("ja") as reader:
        await reader.hear(started(), partial("bo", "1", "Well"), *many(2_002, "ja"))
        keys = list(await reader.page.evaluate("[...transcript.entries.keys()]"))
        assert len(keys) == 2_000
        assert keys[:2] == ["bo/1", "ana/3"]
        assert [change for change in await reader.changes() if change.startswith("gone")] == [
            "gone ana/0",
            "gone ana/1",
            "gone ana/2",
        ]
        await expect(reader.rows).to_have_count(2_000)


async def test_unsent_text_is_kept_longer_than_said_text(open_reader: OpenReader) -> None:
    async with open_reader("ja") as reader:
        await reader.hear(queued("1", "Offline."), started(), *many(2_000, "ja"))
        keys = list(await reader.page.evaluate("[...transcript.entries.keys()]"))
        assert len(keys) == 2_000
        assert keys[:2] == ["/1", "ana/1"]


# -------------------------------------------------------------------- rows and columns


async def test_a_row_names_speaker_and_has_all_cells(open_reader: OpenReader) -> None:
    """There is a cell for each column."""
    async with open_reader("ja", "en") as reader:
        await expect(reader.page.get_by_text("Welcome.")).to_be_visible()
        await reader.hear(started(), caption("ana", "1", "Hello."))
        await reader.hear(final("ana", "1", "ja", "[ja] Hello."))
        await reader.hear(caption("ana", "2", "All well?"), caption("me", "1", "Ja.", lang="de"))
        await reader.hear(caption("ana", "3", "Good."))
        await expect(reader.page.get_by_text("Welcome.")).to_be_hidden()
        headings = reader.page.locator(".heading")
        assert await headings.all_inner_texts() == ["Japanese 日本語", "English"]
        own_name = headings.first.locator("span").last
        await expect(own_name).to_have_attribute("lang", "ja")

        first = reader.rows.first
        await expect(first.get_by_text("Ana", exact=True)).to_be_visible()
        await expect(first.locator(".row-head")).to_contain_text("English")
        await expect(reader.cell("ana/1", "ja")).to_have_text("[ja] Hello.")
        # What was said stands in the column of its language.
        await expect(reader.cell("ana/1", "en")).to_have_text("Hello.")
        await expect(reader.cell("me/1", "en")).to_have_attribute("data-state", "waiting")
        own = reader.page.locator('[data-key="me/1"]')
        await expect(own).to_contain_text("You")
        # A speaker who goes on is not named again, and looks the same when they come back.
        heads = reader.page.locator(".row-head")
        named = await heads.evaluate_all(
            "(heads) => heads.map((head) => getComputedStyle(head).clipPath === 'none')"
        )
        assert named == [True, False, True, True]
        names = reader.page.locator(".voice-name")
        colours = await names.evaluate_all("(names) => names.map((name) => getComputedStyle(name).color)")
        assert colours[0] == colours[1] == colours[3] != colours[2]


async def test_speakers_have_colours_and_shapes_by_the_order_in_which_they_first_spoke(
    open_reader: OpenReader,
) -> None:
    async with open_reader("ja") as reader:
        people = [f"speaker-{number}" for number in range(36)]
        await reader.hear(started(), *(caption(who, "1", "Hello.") for who in people))
        # Who speaks again looks as before.
        await reader.hear(caption("speaker-6", "2", "Again."))
        voice = "(rows) => rows.map((row) => [row.style.getPropertyValue('--voice'), row.dataset.shape])"
        voices = [tuple(each) for each in await reader.rows.evaluate_all(voice)]
        assert voices[:6] == [(f"var(--voice-{number})", str(number)) for number in range(1, 7)]
        assert voices[6] == voices[36] == ("var(--voice-1)", "2")
        assert len(set(voices[:36])) == 36
        looks = """(names) => names.slice(0, 6).map((name) => {
            const { borderRadius, clipPath, height } = getComputedStyle(name, "::before");
            return [getComputedStyle(name).color, `${borderRadius} ${clipPath} ${height}`];
        })"""
        colours, shapes = zip(*await reader.page.locator(".voice-name").evaluate_all(looks), strict=True)
        assert len(set(colours)) == len(set(shapes)) == 6


async def test_a_name_turns_nothing_around_it(open_reader: OpenReader) -> None:
    name = "Bo\u202e\u2067"
    async with open_reader("ja") as reader:
        await reader.page.evaluate("announcer.lang = 'ja'; announcer.start()")
        await reader.hear(started(), pong(), {**final("bo", "1", "ja", "Hello."), "speaker": name})
        await expect(reader.rows.locator(".voice-name bdi")).to_have_text(name)
        await expect(reader.page.get_by_test_id("announcer").locator("p > bdi")).to_have_text(name)


async def test_welcome_is_centred_and_hands_on_focus(open_reader: OpenReader) -> None:
    async with open_reader("ja", viewport={"width": 800, "height": 800}) as reader:
        await reader.page.evaluate(
            """() => {
                const welcome = document.createElement("button");
                welcome.textContent = "Begin";
                welcome.style.setProperty("margin", "auto");
                view.empty.replaceChildren(welcome);
                welcome.focus();
            }"""
        )
        box = await reader.page.get_by_role("button", name="Begin").bounding_box()
        assert box is not None
        assert box["y"] + box["height"] / 2 == pytest.approx(400, abs=20)
        assert await reader.from_end() < 1
        await reader.hear(started(), caption("ana", "1", "Hello."))
        await expect(reader.region).to_be_focused()


async def test_original_stands_above_columns_that_lack_it(open_reader: OpenReader) -> None:
    async with open_reader("ja", originals=True) as reader:
        await reader.hear(started(), caption("ana", "1", "مرحبا", lang="ar"))
        await reader.hear(final("ana", "1", "ja", "こんにちは"))
        original = reader.rows.get_by_test_id("original")
        await expect(original).to_have_text("مرحبا")
        await expect(original).to_have_attribute("lang", "ar")
        await expect(original).to_have_attribute("dir", "auto")
        await expect(reader.cell("ana/1", "ja")).to_have_attribute("lang", "ja")
        assert await reader.page.locator(".heading").all_inner_texts() == ["Japanese 日本語"]
        # Above the translation, smaller, and where the lines of its reader begin, whatever its direction.
        boxes = [await part.bounding_box() for part in (original, reader.cell("ana/1", "ja"))]
        assert boxes[0] is not None
        assert boxes[1] is not None
        assert boxes[0]["x"] == pytest.approx(boxes[1]["x"])
        assert boxes[0]["width"] < boxes[1]["width"] == pytest.approx(704)
        assert [box["y"] for box in boxes if box] == sorted(box["y"] for box in boxes if box)
        # What is read is not said twice.
        await reader.hear(caption("bo", "1", "はい", lang="ja"))
        await expect(reader.rows.last).to_have_text("BoJapanese" + "Japanese, as spokenはい")

        await reader.show("ar", "ja")
        await expect(original).to_have_count(0)
        await expect(reader.cell("ana/1", "ar")).to_have_text("مرحبا")
        await reader.hear(final("bo", "1", "ar", "نعم"))
        await expect(reader.rows.last.get_by_test_id("original")).to_have_count(0)
        await expect(reader.cell("bo/1", "ar")).to_have_attribute("dir", "rtl")
        # Nobody who chose no language sees nothing.
        await reader.show()
        await expect(reader.rows.first.get_by_test_id("original")).to_have_text("مرحبا")
        await reader.hear(caption("ana", "2", "Good."))
        await expect(reader.rows.last.get_by_test_id("original")).to_have_text("Good.")


async def test_unstable_text_differs_by_its_colour_and_is_shown_as_asked(open_reader: OpenReader) -> None:
    async with open_reader("ja") as reader:
        await reader.hear(started(), partial("ana", "1", "Good"), delta("ana", "1", "ja", "[ja] Go", " od"))
        tentative = reader.page.get_by_test_id("tentative-ja")
        await expect(tentative).to_have_text("od")
        style = "(text) => [getComputedStyle(text).textDecoration, getComputedStyle(text).color]"
        line, colour = await tentative.evaluate(style)
        assert "none" in line
        assert colour != (await reader.cell("ana/1", "ja").evaluate(style))[1]
        # Where there are few colours, a line says it.
        await reader.page.emulate_media(forced_colors="active")
        assert "dotted" in (await tentative.evaluate(style))[0]
        await reader.page.emulate_media(forced_colors="none")
        await expect(reader.rows).to_have_attribute("data-state", "speaking")

        await reader.show("ja", stability="stable")
        await expect(reader.cell("ana/1", "ja")).to_have_text("[ja] Go")
        await reader.show("ja", originals=True, stability="final")
        await expect(reader.cell("ana/1", "ja")).to_have_attribute("data-state", "waiting")
        await expect(reader.rows.get_by_test_id("original")).to_be_empty()
        await reader.hear(caption("ana", "1", "Good.", rev=2), final("ana", "1", "ja", "[ja] Good."))
        await expect(reader.cell("ana/1", "ja")).to_have_text("[ja] Good.")
        await expect(reader.rows.get_by_test_id("original")).to_have_text("Good.")


async def test_cells_tell_timings_failures_and_truncation(
    open_reader: OpenReader,
) -> None:
    async with open_reader("ja", "de", "fr") as reader:
        await reader.hear(started(), caption("ana", "1", "Hello."), final("ana", "1", "ja", "[ja] Hello."))
        await reader.hear(delta("ana", "1", "de", "[de] Hel", "lo"))
        await reader.hear(failed("ana", "1", "de", "The engine failed."))
        await reader.hear(final("ana", "1", "fr", "[fr]", truncated=True))
        cell = reader.cell("ana/1", "ja")
        await expect(cell).to_have_attribute("data-first-token-ms", "210.4")
        await expect(cell).to_have_attribute("data-total-ms", "12480")
        await expect(cell).to_have_attribute("title", "First token 210 ms, total 12.5 s, 9 tokens")
        await expect(reader.cell("ana/1", "de")).to_have_attribute("data-state", "failed")
        await expect(reader.cell("ana/1", "de")).to_have_text("[de] Hel")
        assert await reader.page.locator(".cell-note").all_inner_texts() == [
            "The engine failed.",
            "Cut short: the translation is longer than the output limit.",
        ]
        await expect(reader.rows).to_have_attribute("data-state", "settled")


async def test_a_stretch_of_unsure_translations_has_one_sign(open_reader: OpenReader) -> None:
    async with open_reader("ja", "de", "fr") as reader:
        sign = reader.page.get_by_test_id("unsure-sign")

        async def begins() -> list[str]:
            """Where a stretch begins."""
            found: list[str] = await sign.evaluate_all(
                """(signs) => signs.map((sign) => sign.closest("[data-key]").dataset.key + " "
                    + sign.parentElement.querySelector("[data-testid]:not(details)").dataset.testid)"""
            )
            return found

        await reader.hear(started(), caption("ana", "1", "Hello."), final("ana", "1", "ja", "[ja] Hello."))
        await expect(sign).to_have_count(0)
        for number in "23":
            await reader.hear(
                caption("ana", number, "So."),
                *(final("ana", number, lang, "?", unsure=lang != "ja") for lang in ("ja", "de", "fr")),
            )
        assert await begins() == ["ana/2 cell-de", "ana/2 cell-fr"]
        # The first one says what it means, the others when asked.
        what = sign.get_by_text("The model may be wrong along the dotted line.")
        await expect(what).to_have_count(2)
        await expect(what.first).to_be_visible()
        await expect(what.last).to_be_hidden()
        await sign.last.locator("summary").click()
        await expect(what.last).to_be_visible()
        line = "(cell) => getComputedStyle(cell.parentElement, '::before').borderInlineStartStyle"
        lines = [await reader.cell(f"ana/{row}", lang).evaluate(line) for row in "123" for lang in ("ja", "de")]
        assert lines == ["none", "none", "none", "dotted", "none", "dotted"]
        # No gap between the lines of two rows.
        gap = """() => { const [above, below] = ["ana/2", "ana/3"].map((key) => {
            const cell = document.querySelector(`[data-key="${key}"] [data-testid="cell-de"]`).parentElement;
            const [box, style] = [cell.getBoundingClientRect(), getComputedStyle(cell, "::before")];
            return { top: box.top + parseFloat(style.top), bottom: box.bottom - parseFloat(style.bottom) };
        }); return below.top - above.bottom; }"""
        assert await reader.page.evaluate(gap) <= 1
        # A sure one ends it.
        await reader.hear(caption("bo", "4", "Yes."), final("bo", "4", "de", "Ja."))
        await reader.hear(caption("bo", "5", "Yes."), final("bo", "5", "de", "?", unsure=True))
        assert await begins() == ["ana/2 cell-de", "ana/2 cell-fr", "bo/5 cell-de"]
        # What comes late joins what is around it.
        await reader.hear(caption("bo", "6", "A."), caption("bo", "7", "B."))
        await reader.hear(final("bo", "7", "de", "?", unsure=True))
        assert (await begins())[2:] == ["bo/5 cell-de", "bo/7 cell-de"]
        await reader.hear(final("bo", "6", "de", "?", unsure=True))
        assert (await begins())[2:] == ["bo/5 cell-de"]
        # A column that is not shown has no sign.
        await reader.show("ja")
        await expect(sign).to_have_count(0)
        await reader.show("de", originals=True)
        assert await begins() == ["ana/2 cell-de", "bo/5 cell-de"]
        # In every column, the line passes the name and what was said.
        height = "(cell) => parseFloat(getComputedStyle(cell.parentElement, '::before').height)"
        for columns in (("de",), ("ja", "de")):
            await reader.show(*columns, originals=True)
            row = await reader.page.locator('[data-key="bo/6"]').evaluate("(row) => row.clientHeight")
            assert await reader.cell("bo/6", "de").evaluate(height) >= row - 1


async def test_the_line_passes_a_longer_text_beside_it(open_reader: OpenReader) -> None:
    async with open_reader("de", "ja", viewport={"width": 900, "height": 700}) as reader:
        await reader.hear(started(), caption("ana", "1", "So."), final("ana", "1", "de", "?", unsure=True))
        await reader.hear(final("ana", "1", "ja", "とても長い翻訳です。" * 9))
        await reader.hear(caption("ana", "2", "So."), final("ana", "2", "de", "?", unsure=True))
        gap = await reader.page.evaluate(
            """() => {
                const [above, below] = document.querySelectorAll("[data-key]");
                const cell = above.querySelector('[data-testid="cell-de"]').parentElement;
                const bottom = parseFloat(getComputedStyle(cell, "::before").bottom);
                return below.getBoundingClientRect().top - (cell.getBoundingClientRect().bottom - bottom);
            }"""
        )
        assert abs(gap) <= 4


async def test_a_stretch_of_unsure_translations_is_announced_once(open_reader: OpenReader) -> None:
    async with open_reader("de") as reader:
        await reader.page.evaluate("announcer.lang = 'de'; announcer.start()")
        await reader.hear(started())
        for number, unsure in enumerate([False, True, True, False, False]):
            await reader.hear(
                caption("ana", str(number), "So."), final("ana", str(number), "de", "Also.", unsure=unsure)
            )
        assert await reader.page.get_by_test_id("announcer").locator("p").all_text_contents() == [
            "Ana: Also.",
            "Ana (unsure from here): Also.",
            "Ana: Also.",
            "Ana (sure again): Also.",
            "Ana: Also.",
        ]


async def test_an_own_translation_that_runs_can_be_cancelled(open_reader: OpenReader) -> None:
    async with open_reader("ja", "de") as reader:
        await reader.hear(started(), caption("me", "1", "Hello."), caption("ana", "1", "Hello."))
        await expect(reader.rows.first).to_have_attribute("data-state", "running")
        await expect(reader.page.get_by_test_id("cancel")).to_have_count(1)
        await reader.page.get_by_test_id("cancel").focus()
        await reader.page.keyboard.press("Enter")
        assert await reader.page.evaluate("cancelled") == ["me/1"]
        await expect(reader.page.get_by_test_id("cancel")).to_be_disabled()
        await reader.hear(*(failed("me", "1", lang, "The utterance was cancelled.") for lang in ("ja", "de")))
        await expect(reader.rows.first).to_have_attribute("data-state", "settled")
        await expect(reader.page.get_by_test_id("cancel")).to_be_hidden()
        await expect(reader.region).to_be_focused()


async def test_cancel_button_takes_room_only_while_cancelling_possible(open_reader: OpenReader) -> None:
    async with open_reader("ja", has_touch=True, is_mobile=True) as reader:
        await reader.hear(started(), caption("ana", "1", "Hello."), caption("me", "1", "Hello."))
        heights = "(heads) => heads.map((head) => head.offsetHeight)"
        other, own = await reader.page.locator(".row-head").evaluate_all(heights)
        assert own >= 44 > other
        await reader.page.get_by_test_id("cancel").focus()
        await reader.hear(final("me", "1", "ja", "[ja] Hello."))
        assert await reader.page.locator(".row-head").evaluate_all(heights) == [other, other]
        await expect(reader.region).to_be_focused()
        # With its row it goes, too.
        await reader.hear(caption("me", "2", "Bye."), *many(1_998))
        await reader.page.locator('[data-key="me/2"]').get_by_test_id("cancel").focus()
        await reader.hear(*(caption("bo", str(number), "Hello.") for number in range(3)))
        await expect(reader.page.locator('[data-key="me/2"]')).to_have_count(0)
        await expect(reader.region).to_be_focused()


async def test_words_are_text_whatever_they_look_like(open_reader: OpenReader) -> None:
    text = '<img src=x onerror="document.title=1"><b>bold</b>'
    async with open_reader("ja", originals=True) as reader:
        await reader.page.evaluate("announcer.lang = 'ja'; announcer.start()")
        await reader.hear(started(), caption(text, "1", text), delta(text, "1", "ja", text, text))
        await expect(reader.page.get_by_test_id("tentative-ja")).to_have_text(text)
        await reader.hear(final(text, "1", "ja", text), failed(text, "2", "ja", text))
        await expect(reader.rows.first.get_by_test_id("original")).to_have_text(text)
        await expect(reader.rows.first.get_by_test_id("cell-ja")).to_have_text(text)
        assert await reader.page.locator("body img, body b").count() == 0


@pytest.mark.parametrize("width", [520, 700, 1000, 1440])
async def test_six_columns_stand_side_by_side_while_readable(
    open_reader: OpenReader, width: int, artifacts: Path
) -> None:
    six = ("ja", "de", "ar", "fr", "es", "ko")
    long = "Donaudampfschifffahrtsgesellschaftskapitänswitwe " * 2
    async with open_reader(*six, viewport={"width": width, "height": 700}) as reader:
        await reader.hear(started(), caption("ana", "1", "Hello."))
        await reader.hear(*(final("ana", "1", lang, f"[{lang}] {long}") for lang in six))
        cells = [await reader.cell("ana/1", lang).bounding_box() for lang in six]
        tops = [box["y"] for box in cells if box]
        side_by_side = width >= 1000
        # On one baseline, where scripts stand higher or lower.
        assert (max(tops) - min(tops) < 10) == side_by_side
        assert await reader.page.locator(".heading").first.is_visible() == side_by_side
        label = reader.page.locator(".cell-label").first
        await expect(label).to_have_text("Japanese")
        assert (await label.evaluate("(label) => label.offsetWidth") > 1) != side_by_side
        assert min(box["width"] for box in cells if box) >= 140
        scroll, client = await reader.region.evaluate("(region) => [region.scrollWidth, region.clientWidth]")
        assert scroll <= client
        await reader.page.screenshot(path=artifacts / f"transcript-{width}.png")

        # Larger text needs more room.
        if width == 1000:
            await reader.page.evaluate("document.documentElement.style.setProperty('--text-scale', 2)")
            await expect(reader.page.locator(".transcript")).to_have_attribute("data-layout", "stacked")


async def test_a_phone_shows_one_language_and_a_switch(open_reader: OpenReader, artifacts: Path) -> None:
    async with open_reader("ja", "ar", "de", originals=True, **PHONE) as reader:
        switch = reader.page.get_by_role("group", name="Language shown")
        await expect(switch).to_be_hidden()  # there is nothing to show yet
        await reader.hear(started(), caption("ana", "1", "Hello."))
        await reader.hear(*(final("ana", "1", lang, f"[{lang}] Hello.") for lang in ("ja", "ar", "de")))
        await expect(switch).to_have_text("日本語العربيةDeutsch")
        await expect(switch.locator('[lang="ar"]')).to_have_attribute("dir", "rtl")
        await expect(switch.get_by_label("日本語")).to_be_checked()
        await expect(reader.cell("ana/1", "ja")).to_be_visible()
        await expect(reader.cell("ana/1", "de")).to_have_count(0)
        await switch.get_by_label("Deutsch").tap()
        await expect(reader.cell("ana/1", "de")).to_have_text("[de] Hello.")
        await expect(reader.cell("ana/1", "ja")).to_have_count(0)
        await expect(reader.rows.get_by_test_id("original")).to_have_text("Hello.")
        await reader.page.screenshot(path=artifacts / "transcript-phone.png")
        # All of them are read, and none of them is missing where there is room.
        await reader.hear(caption("ana", "2", "Good."), final("ana", "2", "de", "[de] Good."))
        await expect(reader.rows.last).to_have_attribute("data-state", "running")
        await reader.page.set_viewport_size({"width": 844, "height": 390})
        await expect(switch).to_be_hidden()
        for lang in ("ja", "ar", "de"):
            await expect(reader.cell("ana/1", lang)).to_have_text(f"[{lang}] Hello.")
        # A language that is left is not the one that is shown.
        await reader.page.set_viewport_size({"width": 390, "height": 844})
        await expect(reader.cell("ana/1", "de")).to_be_visible()
        await reader.show("ja", "ar")
        await expect(reader.cell("ana/1", "ja")).to_be_visible()
        await expect(switch).to_have_text("日本語العربية")
        await reader.show("ar")
        await expect(switch).to_be_hidden()
        await expect(reader.cell("ana/1", "ar")).to_have_text("[ar] Hello.")


async def test_many_deltas_change_one_cell_per_frame(open_reader: OpenReader) -> None:
    six = ("ja", "de", "ar", "fr", "es", "ko")
    async with open_reader(*six) as reader:
        await reader.hear(started(), *many(50, *six), partial("bo", "1", "Well"), delta("bo", "1", "ja", "[ja]"))
        await reader.page.evaluate(
            """() => {
                window.seen = [];
                const options = { subtree: true, childList: true, characterData: true, attributes: true };
                window.watching = new MutationObserver((records) => seen.push(...records));
                watching.observe(view.element, options);
            }"""
        )
        await reader.hear(*(delta("bo", "1", "ja", f" {number}") for number in range(100)))
        assert await reader.page.evaluate("[...seen, ...watching.takeRecords()].map((record) => record.type)") == [
            "characterData"
        ]
        await expect(reader.cell("bo/1", "ja")).to_have_text("[ja] " + " ".join(map(str, range(100))))


# -------------------------------------------------------------------- where the reader is


async def test_newest_stays_in_view_until_scrolling_up(open_reader: OpenReader) -> None:
    async with open_reader("ja", viewport={"width": 800, "height": 400}) as reader:
        await reader.hear(started(), *many(30, "ja"))
        assert await reader.from_end() < 1
        await expect(reader.jump).to_be_hidden()
        # What grows at the end, and a window that shrinks, change nothing about that.
        await reader.hear(partial("bo", "1", "Well"), delta("bo", "1", "ja", "[ja] word" * 100))
        assert await reader.from_end() < 1
        await reader.page.set_viewport_size({"width": 500, "height": 300})
        await reader.hear()
        assert await reader.from_end() < 1

        await reader.region.focus()
        await reader.page.keyboard.press("ArrowUp")
        await expect(reader.jump).to_be_visible()
        await expect(reader.jump).to_have_text("Newest ↓")
        await reader.at_rest()
        top = await reader.top_of("ana/29")
        await reader.hear(*(caption("carl", str(number), "New.") for number in range(3)))
        await expect(reader.jump).to_have_text("Newest ↓ (3 new)")
        assert await reader.top_of("ana/29") == pytest.approx(top, abs=1)

        await reader.jump.click()
        await expect(reader.jump).to_be_hidden()
        assert await reader.from_end() < 1
        await expect(reader.region).to_be_focused()

        await reader.page.mouse.move(200, 150)
        await reader.page.mouse.wheel(0, -300)
        await expect(reader.jump).to_be_visible()
        await reader.page.mouse.wheel(0, 3000)
        await expect(reader.jump).to_be_hidden()
        await reader.at_rest()
        await reader.hear(caption("carl", "9", "New."))
        assert await reader.from_end() < 1


async def test_what_is_being_read_stays_where_it_is(open_reader: OpenReader) -> None:
    async with open_reader("ja", viewport={"width": 800, "height": 400}) as reader:
        await reader.hear(started(), partial("bo", "1", "Well"), *many(1_999, "ja"))
        row = reader.page.locator('[data-key="ana/1000"]')
        await row.evaluate("(row) => row.scrollIntoView({ block: 'center' })")
        await expect(reader.jump).to_be_visible()
        top = await reader.top_of("ana/1000")

        # An earlier row grows, the oldest ones leave, new ones come.
        await reader.hear(delta("bo", "1", "ja", "[ja] word" * 200))
        assert await reader.top_of("ana/1000") == pytest.approx(top, abs=1)
        await reader.hear(*(caption("carl", str(number), "New.") for number in range(20)))
        await expect(reader.rows).to_have_count(2_000)
        await expect(reader.page.locator('[data-key="ana/0"]')).to_have_count(0)
        assert await reader.top_of("ana/1000") == pytest.approx(top, abs=1)
        # As many as leave, and as high.
        await reader.hear(*(caption("carl", str(number), "New.") for number in range(20, 30)))
        assert await reader.top_of("ana/1000") == pytest.approx(top, abs=1)
        await reader.hear(left("bo"))
        assert await reader.top_of("ana/1000") == pytest.approx(top, abs=1)


async def test_long_speaker_is_named_at_the_top(open_reader: OpenReader) -> None:
    async with open_reader("ja", viewport={"width": 390, "height": 400}) as reader:
        top = reader.page.get_by_test_id("top-speaker")
        await reader.hear(started(), caption("bo", "1", "Please, Ana."), *many(30))
        await expect(top).to_have_text("Ana")
        await expect(reader.page.locator('[data-key="ana/0"] .voice-name')).not_to_be_in_viewport()
        # One's own words have another name, and no name is shown twice.
        await reader.region.evaluate("(region) => { region.scrollTop = 0 }")
        await expect(top).to_be_hidden()
        await reader.hear(caption("me", "1", "言葉。" * 300, lang="ja"))
        await reader.jump.click()
        await expect(top).to_have_text("You")


async def test_no_name_at_top_once_all_rows_have_room(open_reader: OpenReader) -> None:
    async with open_reader("ja", viewport={"width": 390, "height": 400}) as reader:
        await reader.hear(started(), *many(12))
        top = reader.page.get_by_test_id("top-speaker")
        await expect(top).to_have_text("Ana")
        # Firefox has no event for it.
        await reader.page.evaluate("addEventListener('scroll', (event) => event.stopImmediatePropagation(), true)")
        await reader.page.set_viewport_size({"width": 390, "height": 1_600})
        await expect(top).to_be_hidden()


async def test_name_at_top_matches_words_below(open_reader: OpenReader) -> None:
    async with open_reader("ja", viewport={"width": 390, "height": 400}) as reader:
        await reader.hear(started(), *many(12), caption("bo", "1", "言葉。" * 300, lang="ja"))
        top, name = reader.page.get_by_test_id("top-speaker"), reader.page.locator('[data-key="bo/1"] .row-head')
        await reader.region.evaluate("(region) => { region.scrollTop = 100 }")
        await expect(top).to_have_text("Ana")
        # The next speaker's name goes behind the one that is shown, whose last words are behind it, too.
        bottom = await top.evaluate("(name) => name.getBoundingClientRect().bottom")
        await name.evaluate(
            """(name, bottom) => {
                const region = document.querySelector("[data-testid=transcript]");
                region.scrollTop += name.getBoundingClientRect().bottom - bottom + 1;
            }""",
            bottom,
        )
        await reader.at_rest()
        await expect(top).to_have_text("Bo")


async def test_long_speaker_shows_time_and_language_again(open_reader: OpenReader) -> None:
    async with open_reader("ja") as reader:
        said = [("en", 0), ("en", 100), ("en", 299), ("en", 301), ("de", 302), ("de", 310)]
        captions = [
            caption("ana", str(number), "Hm.", lang=lang) | {"at_ms": at_s * 1_000}
            for number, (lang, at_s) in enumerate(said)
        ]
        await reader.hear(started(), *captions)
        follows = await reader.rows.evaluate_all("(rows) => rows.map((row) => row.classList.contains('follows'))")
        assert follows == [False, True, True, False, False, True]


async def test_where_translations_into_a_language_begin_is_said(open_reader: OpenReader) -> None:
    async with open_reader("ja") as reader:
        await reader.hear(started(), pong())
        for number in "12":
            await reader.hear(caption("ana", number, "Hm."), final("ana", number, "ja", "うん。"))
        await reader.show("ja", "de")
        begins = reader.page.get_by_text("Translations into German begin after this.")
        await expect(begins).to_have_count(1)
        row = reader.page.locator('[data-key="ana/2"]')
        await expect(row).to_contain_text("Translations into German begin after this.")
        both = [final("ana", "3", "ja", "はい。"), final("ana", "3", "de", "Ja.")]
        await reader.hear(caption("ana", "3", "Yes."), *both)
        await expect(row).to_contain_text("Translations into German begin after this.")
        await expect(begins).to_have_count(1)
        # What comes late moves it.
        await reader.hear(final("ana", "2", "de", "Hm."))
        await expect(reader.page.locator('[data-key="ana/1"]')).to_contain_text("begin after this.")
        await expect(begins).to_have_count(1)
        await reader.show("ja")
        await expect(begins).to_have_count(0)


@pytest.mark.parametrize(
    ("lang", "text"),
    [
        ("en", "Good morning, everyone."),
        ("ja", "おはようございます、皆さん。"),
        ("ja", "今月の利益率はわずか12%"),
        ("zh", "大家早上好，会议开始了。"),
        ("zh", "本月的利润率仅为12%"),
    ],
)
async def test_full_stop_and_caret_never_stand_alone(open_reader: OpenReader, lang: str, text: str) -> None:
    async with open_reader(lang, viewport={"width": 800, "height": 400}) as reader:
        await reader.hear(
            started(), partial("ana", "1", text[:-1], lang=lang), delta("bo", "1", lang, text[:-1], text[-1])
        )
        lines = """async ([growing, tentative, done]) => {
            const top = (node, from, to) => {
                const range = document.createRange();
                range.setStart(node, from);
                range.setEnd(node, to);
                return range.getBoundingClientRect().top;
            };
            const alone = [];
            for (let width = 140; width < 320; width += 1) {
                for (const cell of [growing, tentative, done]) cell.style.width = `${width}px`;
                if (growing.offsetHeight !== done.offsetHeight) alone.push(["caret", width]);
                const [words, tail] = tentative.childNodes;
                const last = words.data.length;
                if (top(words, last - 1, last) !== top(tail.firstChild, 0, 1)) alone.push(["stop", width]);
            }
            return alone;
        }"""
        growing = await reader.cell("ana/1", lang).element_handle()
        tentative = await reader.cell("bo/1", lang).element_handle()
        done = await reader.page.evaluate_handle(
            """(cell) => {
                const copy = cell.cloneNode(true);
                copy.dataset.state = "final";
                cell.after(copy);
                return copy;
            }""",
            growing,
        )
        assert await reader.page.evaluate(lines, [growing, tentative, done]) == []


# -------------------------------------------------------------------- read out


async def test_whole_sentences_of_one_language_are_read_out_once(open_reader: OpenReader) -> None:
    async with open_reader() as reader:
        said = reader.page.get_by_test_id("announcer").locator("p")
        await reader.page.evaluate("announcer.lang = 'ja'")
        await reader.hear(started(), caption("ana", "0", "History."))
        await reader.hear(final("ana", "0", "ja", "[ja] History."))
        await reader.page.evaluate("announcer.start()")
        await reader.hear(partial("ana", "1", "Hel"), delta("ana", "1", "ja", "[ja] Hel"))
        await reader.hear(caption("ana", "1", "Hello."))
        await reader.hear(final("ana", "1", "de", "[de] Hello."), *2 * [final("ana", "1", "ja", "[ja] Hello.")])
        await reader.hear(partial("bo", "1", "こん", lang="ja"))
        await reader.hear(*2 * [caption("bo", "1", "こんにちは。", lang="ja", rev=2)])
        await reader.hear(failed("ana", "2", "ja", "No."), final("ana", "0", "ja", "[ja] History."))
        await reader.hear(caption("me", "1", "はい。", lang="ja"), final("me", "2", "ja", "[ja] Mine."))
        assert await said.all_inner_texts() == ["Ana: [ja] Hello.", "Bo: こんにちは。", "You: [ja] Mine."]
        await expect(said.first.locator("span")).to_have_attribute("lang", "ja")

        await reader.page.evaluate("announcer.lang = ''")
        await reader.hear(final("ana", "3", "ja", "[ja] Nobody listens."))
        await expect(said).to_have_count(3)
        await reader.page.evaluate("announcer.lang = 'de'")
        await reader.hear(*many(25, "de"))
        await expect(said).to_have_count(20)
        await expect(said.last).to_contain_text("[de] This is sentence 24")


async def test_a_person_keeps_the_colour_after_a_reload(open_reader: OpenReader) -> None:
    """As another participant, of the same name."""
    async with open_reader("ja") as reader:
        ana, again = caption("p1", "1", "Hello."), caption("p7", "1", "I am back.")
        await reader.hear(started(), {**ana, "speaker": "Ana"}, caption("bo", "1", "Hi."))
        await reader.hear({**again, "speaker": "Ana"})
        voices = await reader.rows.evaluate_all(
            "(rows) => rows.map((row) => row.style.getPropertyValue('--voice'))"
        )
        assert voices[0] == voices[2] != voices[1]
    # And in another window, where the other one has not spoken.
    async with open_reader("ja") as other:
        await other.hear(started(), {**again, "speaker": "Ana"})
        assert await other.rows.evaluate_all("(rows) => rows[0].style.getPropertyValue('--voice')") == voices[0]


async def test_a_language_without_translation_is_told_in_the_words_of_the_page(open_reader: OpenReader) -> None:
    async with open_reader("ja") as reader:
        missing = {**failed("ana", "1", "ja", "The model knows no ja."), "code": "unsupported_language"}
        await reader.hear(started(), caption("ana", "1", "Hello."), missing)
        await expect(reader.page.locator(".cell-note")).to_have_text("There is no translation.")


async def test_what_a_translation_took_covers_no_other_row(open_reader: OpenReader) -> None:
    async with open_reader("ja") as reader:
        await reader.hear(started(), *many(2, "ja"))
        await reader.cell("ana/0", "ja").hover()
        after = "(text) => getComputedStyle(text, '::after').content"
        assert await reader.cell("ana/0", "ja").evaluate(after) == "none"
        await expect(reader.cell("ana/0", "ja")).to_have_attribute(
            "title", "First token 210 ms, total 12.5 s, 9 tokens"
        )
