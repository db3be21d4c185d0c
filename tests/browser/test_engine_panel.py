"""The engine panel and its models, in a real browser, against a real gateway process with the simulated engine."""

from __future__ import annotations

import asyncio
import math
import re
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from playwright.async_api import Locator, Page, Route, expect

from gateway.client import connect
from tests.browser.axe import scan
from tests.browser.conftest import SCRIPT, StartGateway
from tests.browser.pages import DESKTOP, PHONE, connected, overflow_px, show
from tests.conftest import OpenPage
from tests.patience import PATIENCE_MS
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser

# What does not come in this time never will.
_PATIENCE_S = PATIENCE_MS / 1_000

# The page's own frame and policy, empty, with the panel's style sheet in force.
_CLEAR = """() => new Promise((resolve) => {
    document.body.replaceChildren();
    const sheet = document.createElement("link");
    Object.assign(sheet, { rel: "stylesheet", href: "/page/engine/engine.css", onload: () => resolve() });
    document.head.append(sheet);
})"""

# What the page does with the panel: one client in a meeting, and simulated speakers beside it.
_SET_UP = """async () => {
    const { GatewayClient } = await import("/client.js");
    const { EnginePanel } = await import("/page/engine/engine_panel.js");
    const { UtteranceTracker, OWN_MEETING } = await import("/page/engine/utterance_tracker.js");
    const { Latency } = await import("/page/engine/latency.js");
    const { SimulatedSpeakers } = await import("/page/samples/simulated_speakers.js");
    const { languages } = await (await fetch("/v1/languages")).json();
    const stream = new URL("/v1/stream", location.href);
    stream.protocol = "ws:";
    const latency = new Latency();
    const tracker = new UtteranceTracker((timings, nowMs) => latency.add(timings, nowMs));
    const speakers = new SimulatedSpeakers({
        streamUrl: stream.href,
        languages,
        onEvent: (source, event) => tracker.onEvent(source, event, performance.now()),
    });
    const nameOf = (tag) => languages.find((language) => language.tag === tag).name;
    const panel = new EnginePanel({ tracker, latency, speakers, nameOf });
    const reads = ["ja", "de"];
    const client = new GatewayClient(stream.href, { meeting: crypto.randomUUID(), speaks: "en", reads });
    tracker.setReads(OWN_MEETING, reads);
    window.heard = [];
    client.listen((event) => {
        heard.push(event);
        tracker.onEvent(OWN_MEETING, event, performance.now());
        const open = client.state === "open";
        panel.connection = { state: open ? "good" : "busy", words: open ? "Connected" : "Connecting…" };
    });
    document.body.append(panel.element);
    client.connect();
    Object.assign(window, { client, tracker, latency, speakers, panel });
}"""

OpenPanel = Callable[..., AbstractAsyncContextManager[Page]]


@pytest.fixture
def blank(open_page: OpenPage) -> OpenPanel:
    """The page of a gateway, under its policy, with nothing in it."""

    @asynccontextmanager
    async def opened(gateway: GatewayProcess, **options: Any) -> AsyncIterator[Page]:
        async def nothing(route: Route) -> None:
            await route.fulfill(body="", content_type="text/javascript")

        async with open_page(f"{gateway.url}/favicon.svg", **options) as watch:
            watch.allow("favicon.ico")  # what a browser looks for beside a picture
            await watch.page.route("**/app.js", nothing)
            await watch.page.goto(gateway.url)
            await watch.page.evaluate(_CLEAR)
            yield watch.page

    return opened


@pytest.fixture
def open_panel(blank: OpenPanel) -> OpenPanel:
    """A page that holds the panel alone: `client`, `tracker`, `latency`, `speakers`, `panel` are its globals.

    paused: time passes with its clock's `run_for` alone.
    """

    @asynccontextmanager
    async def opened(gateway: GatewayProcess, paused: bool = False, **options: Any) -> AsyncIterator[Page]:
        async with blank(gateway, **options) as page:
            if paused:
                await page.clock.install()
            await page.evaluate(_SET_UP)
            await expect(page.get_by_test_id("engine-connection")).to_have_text("Connected")
            if paused:
                # Once it knows that it is seen.
                await expect(page.get_by_test_id("timeline")).to_have_accessible_name(re.compile(" 0 utterances"))
                await page.clock.pause_at(await page.evaluate("Date.now() / 1000 + 60"))
            yield page

    return opened


# -------------------------------------------------------------------- utterance_tracker.js

Script = list[tuple[dict[str, Any], float]]

_TRACK = """async ([script, reads, nowMs]) => {
    const { UtteranceTracker, OWN_MEETING } = await import("/page/engine/utterance_tracker.js");
    let translated = 0;
    const tracker = new UtteranceTracker(() => (translated += 1));
    tracker.setReads(OWN_MEETING, reads);
    for (const [event, ms] of script) tracker.onEvent(OWN_MEETING, event, ms);
    if (nowMs !== null) tracker.endSilent(nowMs);
    const seen = tracker.visible(0, 1e9).map((one) => ({ ...one, langs: Object.fromEntries(one.langs) }));
    const { inFlight, speaking, languagesRunning } = tracker;
    return { seen, inFlight, speaking, running: [...languagesRunning].sort(), translated };
}"""


async def track(page: Page, script: Script, *reads: str, now_ms: float | None = None) -> dict[str, Any]:
    """What the model makes of events that the meeting's client heard, with their times."""
    told: dict[str, Any] = await page.evaluate(_TRACK, [script, reads, now_ms])
    return told


def started(participant: str = "me", recovered: bool | None = None) -> dict[str, Any]:
    return {"type": "session.started", "participant": participant, "offset": 0, "recovered": recovered}


def caption(utterance: str, rev: int, *, final: bool = False, participant: str = "ana") -> dict[str, Any]:
    said = {"participant": participant, "utterance": utterance, "speaker": "Ana", "lang": "en"}
    return {"type": "caption", **said, "rev": rev, "text": "…", "final": final, "offset": 7 if final else None}


def delta(utterance: str, lang: str, rev: int) -> dict[str, Any]:
    said = {"participant": "ana", "utterance": utterance, "lang": lang, "rev": rev}
    return {"type": "translation.delta", **said, "committed": "…", "tentative": ""}


def translated(utterance: str, lang: str, first_ms: float, total_ms: float) -> dict[str, Any]:
    said = {"participant": "ana", "utterance": utterance, "speaker": "Ana", "lang": lang, "rev": 9, "text": "…"}
    timings = {"queue_ms": 1, "first_token_ms": first_ms, "total_ms": total_ms}
    return {"type": "translation.final", **said, "offset": 8, "timings": timings, "tokens": 3, "truncated": False}


def failed(utterance: str, lang: str) -> dict[str, Any]:
    said = {"participant": "ana", "utterance": utterance, "speaker": "Ana", "lang": lang, "rev": 9}
    return {"type": "translation.failed", **said, "code": "engine_failed", "message": "No.", "offset": 8}


async def test_utterance_times_are_the_gateways_own(gateway: GatewayProcess, blank: OpenPanel) -> None:
    """These are when it was spoken, when it was accepted, and when its translation begins and ends."""
    script: Script = [
        (caption("1", 1), 1000),
        (delta("1", "ja", 1), 1500),
        (caption("1", 9, final=True), 3000),
        (delta("1", "ja", 1), 3050),  # of the partial: no first token of the final
        (delta("1", "ja", 9), 3200),
    ]
    async with blank(gateway) as page:
        speaking = await track(page, script[:2], "ja", "de", "en")
        assert (speaking["speaking"], speaking["inFlight"], speaking["running"]) == (1, 0, ["ja"])

        accepted = await track(page, script, "ja", "de", "en")
        assert (accepted["speaking"], accepted["inFlight"], accepted["running"]) == (0, 1, ["de", "ja"])
        (utterance,) = accepted["seen"]
        times = ("spokenMs", "acceptedMs", "firstTokenMs", "endMs")
        assert [utterance[name] for name in times] == [1000, 3000, 3200, None]

        # It was accepted at 2980, and was on its way for 20 ms.
        script += [(translated("1", "ja", 180, 520), 3500), (translated("1", "fr", 1, 1), 3500)]
        half = await track(page, script, "ja", "de", "en")
        assert (half["inFlight"], half["running"], half["translated"]) == (1, ["de"], 1)

        script += [(failed("1", "de"), 3600), (delta("1", "ja", 9), 3700), (translated("1", "ja", 1, 1), 3700)]
        ended = await track(page, script, "ja", "de", "en")
        assert (ended["inFlight"], ended["speaking"], ended["running"], ended["translated"]) == (0, 0, [], 1)
        (utterance,) = ended["seen"]
        assert [utterance[name] for name in times] == [1000, 2980, 3160, 3600]
        assert utterance["failed"]
        assert utterance["langs"] == {
            "ja": {"firstTokenMs": 3160, "endMs": 3500, "outcome": "translated"},
            "de": {"firstTokenMs": None, "endMs": 3600, "outcome": "failed"},
        }
        assert not utterance["isSimulated"]


def utterance_script(utterance: str, random: Random) -> Script:
    """All that is heard of one utterance, in order."""
    at = random.uniform(0, 3000)
    script: Script = []
    for rev in range(1, random.randint(1, 4)):
        script.append((caption(utterance, rev), at := at + random.uniform(1, 400)))
        if random.random() < 0.5:
            script.append((delta(utterance, random.choice(["ja", "de"]), rev), at := at + random.uniform(1, 50)))
    script.append((caption(utterance, 9, final=True), at := at + random.uniform(1, 400)))
    accepted = at - random.uniform(0, 30)
    for lang in random.sample(["ja", "de"], 2):
        script.append((delta(utterance, lang, 9), at := at + random.uniform(1, 200)))
        if random.random() < 0.2:
            script.append((failed(utterance, lang), at := at + random.uniform(1, 300)))
        else:
            at += random.uniform(1, 300)
            script.append((translated(utterance, lang, random.uniform(1, 50), at - accepted), at))
    return script[: random.randint(1, len(script))]


async def test_however_utterances_interleave_they_are_tracked_alike(
    gateway: GatewayProcess, blank: OpenPanel
) -> None:
    async with blank(gateway) as page:
        for seed in range(30):
            random = Random(seed)
            scripts = [utterance_script(str(number), random) for number in range(random.randint(2, 6))]
            one_by_one = await track(page, [event for script in scripts for event in script], "ja", "de")
            mixed: Script = []
            while any(scripts):
                mixed.append(random.choice([script for script in scripts if script]).pop(0))
            together = await track(page, mixed, "ja", "de")
            # The older of two that began together may be either; nothing else depends on the order.
            assert together["seen"] == one_by_one["seen"], seed
            assert {**together, "seen": []} == {**one_by_one, "seen": []}, seed


async def test_reconnecting_neither_tracks_nor_adds_earlier_utterances(
    gateway: GatewayProcess, blank: OpenPanel
) -> None:
    history: Script = [
        (started(), 100),
        (caption("1", 9, final=True), 120),
        (translated("1", "ja", 5, 10), 121),
        (caption("2", 9, final=True), 122),
        (translated("1", "de", 5, 300), 900),  # made up for
        (delta("2", "de", 9), 950),
    ]
    async with blank(gateway) as page:
        assert (await track(page, history, "ja", "de"))["seen"] == []
        assert (await track(page, history, "ja", "de"))["translated"] == 0
        own = await track(page, [*history, (caption("a", 1, final=True, participant="me"), 960)], "ja")
        assert [utterance["participant"] for utterance in own["seen"]] == ["me"]
        # All that was missed is before the answer to the ping.
        for behind, seen in (([({"type": "pong", "nonce": ""}, 960)], ["meeting/ana/9"]), ([], [])):
            live = await track(page, [*history, *behind, (caption("9", 9, final=True), 2000)], "ja")
            assert [utterance["key"] for utterance in live["seen"]] == seen

        before: Script = [(started(), 0), (caption("1", 1), 2000), (caption("1", 9, final=True), 3000)]
        missed: Script = [
            (translated("1", "ja", 5, 500), 9010),
            (caption("2", 9, final=True), 9011),
            (translated("2", "ja", 5, 500), 9012),
        ]
        resumed = await track(page, [*before, (started(recovered=True), 9000), *missed], "ja")
        (utterance,) = resumed["seen"]
        assert (utterance["key"], utterance["acceptedMs"], utterance["endMs"]) == ("meeting/ana/1", 3000, 3500)
        anew = await track(page, [*before, (started("me2", recovered=False), 9000), *missed], "ja")
        assert anew["seen"] == []


async def test_abandoned_flights_end_and_unawaited_ones_land(gateway: GatewayProcess, blank: OpenPanel) -> None:
    """What is given up flies no longer, and what is not waited for has landed."""
    spoken: Script = [(started("ana"), 0), (caption("1", 1), 1000)]
    async with blank(gateway) as page:
        for end in (
            {"type": "participant.left", "participant": "ana"},
            {"type": "utterance.cancelled", "participant": "ana", "utterance": "1"},
            {"type": "utterance.refused", "id": "1", "code": "cancelled", "message": ""},
            {"type": "state", "state": "closed", "reason": ""},
        ):
            assert (await track(page, [*spoken, (end, 1500)], "ja"))["seen"] == []
        silent = await track(page, [*spoken, (caption("2", 1), 20_000)], "ja")
        assert [utterance["key"] for utterance in silent["seen"]] == ["meeting/ana/2"]
        landed = await track(page, [*spoken, (caption("1", 9, final=True), 1500)], "en")
        assert [utterance["endMs"] for utterance in landed["seen"]] == [1500]
        many = await track(page, [(caption(str(number), 9, final=True), number) for number in range(700)], "ja")
        assert len(many["seen"]) == 600


async def test_long_silent_utterances_are_no_longer_awaited(gateway: GatewayProcess, blank: OpenPanel) -> None:
    spoken: Script = [(caption("1", 1), 1000)]
    accepted: Script = [*spoken, (caption("1", 9, final=True), 2000), (translated("1", "ja", 100, 900), 2900)]
    async with blank(gateway) as page:
        assert (await track(page, spoken, "ja", now_ms=15_900))["speaking"] == 1
        assert (await track(page, spoken, "ja", now_ms=16_100))["speaking"] == 0
        # The gateway was asked for a language, and refused it.
        waiting = await track(page, accepted, "ja", "tlh", now_ms=17_800)
        assert (waiting["inFlight"], waiting["running"]) == (1, ["tlh"])
        over = await track(page, accepted, "ja", "tlh", now_ms=18_000)
        assert (over["inFlight"], over["running"], over["translated"]) == (0, [], 1)
        (utterance,) = over["seen"]
        assert utterance["langs"]["tlh"] == {"firstTokenMs": None, "endMs": 17_900, "outcome": "unknown"}
        assert (utterance["endMs"], utterance["failed"]) == (17_900, False)
        # One that comes late counts nevertheless.
        late: Script = [*accepted, (caption("2", 1), 30_000), (translated("1", "tlh", 100, 38_000), 40_000)]
        told = await track(page, late, "ja", "tlh")
        assert (told["inFlight"], told["translated"]) == (0, 2)
        assert told["seen"][0]["langs"]["tlh"] == {"firstTokenMs": 2100, "endMs": 40_000, "outcome": "translated"}


async def test_of_a_speaker_who_left_nothing_is_kept(gateway: GatewayProcess, blank: OpenPanel) -> None:
    async with blank(gateway) as page:
        said = caption("1", 9, final=True)
        in_flight = await page.evaluate(
            """async (said) => {
                const { UtteranceTracker, OWN_MEETING } = await import("/page/engine/utterance_tracker.js");
                const tracker = new UtteranceTracker();
                const counts = [];
                for (const source of ["Speaker 1", OWN_MEETING]) {
                    tracker.setReads(source, ["ja"]);
                    tracker.onEvent(source, { type: "state", state: "closed", reason: "", code: "" }, 1000);
                    tracker.onEvent(source, said, 2000);
                    counts.push(tracker.inFlight);
                }
                return counts;
            }""",
            said,
        )
        # What the meeting reads is told once, and holds when it is joined again.
        assert in_flight == [0, 1]


# -------------------------------------------------------------------- latency


def plain_percentile(values: list[float], percent: int) -> float:
    """The nearest rank."""
    return sorted(values)[math.ceil(len(values) * percent / 100) - 1]


async def test_percentiles_are_exact_over_the_last_minute(gateway: GatewayProcess, blank: OpenPanel) -> None:
    async with blank(gateway) as page:
        for seed, count in enumerate((1, 2, 3, 50, 99, 100, 101, 400)):
            random = Random(seed)
            times = sorted(random.uniform(0, 90_000) for _ in range(count))
            samples = [(random.uniform(1, 900), at) for at in times]
            told = await page.evaluate(
                """async ([samples, nowMs]) => {
                    const { Latency } = await import("/page/engine/latency.js");
                    const latency = new Latency();
                    for (const [ms, atMs] of samples) {
                        latency.add({ queue_ms: 0, first_token_ms: ms, total_ms: 2 * ms }, atMs);
                    }
                    return {
                        first: latency.summary("first_token_ms", nowMs),
                        total: latency.summary("total_ms", nowMs),
                        series: latency.series("first_token_ms", nowMs, 30),
                    };
                }""",
                [samples, 90_000],
            )
            recent = [ms for ms, at in samples if at >= 30_000]
            for name, values in (("first", recent), ("total", [2 * ms for ms in recent])):
                for percent in (50, 99):
                    expected = plain_percentile(values, percent) if values else None
                    assert told[name][f"p{percent}"] == expected, (name, percent, count)
            assert len(told["series"]) == 30
            for index, point in enumerate(told["series"]):
                first = 32_000 + 2_000 * index  # the slice that has just begun is the last
                within = [ms for ms, at in samples if first <= at < first + 2_000]
                assert point == ({"p50": plain_percentile(within, 50), "max": max(within)} if within else None)


# -------------------------------------------------------------------- the panel


def shown_ms(ms: float) -> str:
    return f"{math.floor(ms + 0.5):,} ms"


async def until(page: Page, condition: str) -> None:
    """Wait for something that scripts see; a string is no function under the page's policy."""
    async with asyncio.timeout(_PATIENCE_S):
        await page.evaluate(f"async () => {{ while (!({condition})) await new Promise(requestAnimationFrame); }}")


async def sessions(gateway: GatewayProcess, count: int) -> None:
    """Wait until the gateway has so many."""
    async with asyncio.timeout(_PATIENCE_S):
        while await asyncio.to_thread(gateway.metric, "gateway_sessions") != count:
            await asyncio.sleep(0.05)


async def drawn(canvas: Locator) -> set[str]:
    """The colours on it, transparent ones left out."""
    colours: list[str] = await canvas.evaluate(
        """({ width, height }) => {
            const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
            copy.drawImage(document.querySelector("canvas"), 0, 0);
            const { data } = copy.getImageData(0, 0, width, height);
            const bytes = (pixel) => [0, 8, 16, 24].map((bits) => (pixel >>> bits) & 255);
            return [...new Set(new Uint32Array(data.buffer))].map(bytes).filter((colour) => colour[3]).map(String);
        }"""
    )
    return set(colours)


async def test_numbers_are_those_of_the_utterances_that_were_translated(
    gateway: GatewayProcess, open_panel: OpenPanel
) -> None:
    async with open_panel(gateway) as page:
        for name in ("first-token-p50", "first-token-p99", "total-p50", "total-p99"):
            await expect(page.get_by_test_id(name)).to_have_text("–")
        await page.evaluate("""() => {
            for (const text of ["One.", "Two words.", "And three words."]) client.final({ text, lang: "en" });
        }""")
        await until(page, "heard.filter((event) => event.type === 'translation.final').length === 6")
        heard = await page.evaluate("heard")
        timings = [event["timings"] for event in heard if event["type"] == "translation.final"]
        for name, measure in (("first-token", "first_token_ms"), ("total", "total_ms")):
            values = [timing[measure] for timing in timings]
            for percent in (50, 99):
                expected = shown_ms(plain_percentile(values, percent))
                await expect(page.get_by_test_id(f"{name}-p{percent}")).to_have_text(expected)
        await expect(page.get_by_test_id("in-flight")).to_have_text("0")
        await expect(page.locator("[data-running]")).to_have_count(0)

        await page.evaluate("""window.id = client.final({ text: "This one will stall", lang: "en" })""")
        await expect(page.get_by_test_id("in-flight")).to_have_text("1")
        await expect(page.locator("[data-running]")).to_have_count(2)
        assert set(await page.locator("[data-running]").all_inner_texts()) == {"Japanese", "German"}
        await page.evaluate("""client.partial({ text: "And another", lang: "en" })""")
        await expect(page.get_by_test_id("speaking")).to_have_text("1")
        await page.evaluate("client.cancel(id)")
        await expect(page.get_by_test_id("in-flight")).to_have_text("0")


async def test_simulated_speakers_are_own_sessions_and_leave(
    gateway: GatewayProcess, open_panel: OpenPanel
) -> None:
    async with open_panel(gateway) as page:
        await sessions(gateway, 1)
        stop = page.get_by_test_id("load-stop")
        await expect(stop).to_be_disabled()
        await expect(page.get_by_test_id("load-count")).to_have_text("No simulated speakers")
        await page.get_by_test_id("load-add-5").click()
        await expect(page.get_by_test_id("load-count")).to_have_text("5 simulated speakers")
        await sessions(gateway, 6)
        await until(page, "tracker.visible(0, performance.now()).some((one) => one.isSimulated && one.endMs)")
        await expect(page.get_by_test_id("total-p50")).not_to_have_text("–")
        assert all(await page.evaluate("tracker.visible(0, performance.now()).map((one) => one.isSimulated)"))

        await stop.press("Enter")
        await expect(page.get_by_test_id("load-count")).to_have_text("No simulated speakers")
        await expect(stop).to_be_disabled()
        await expect(stop).to_be_focused()
        await sessions(gateway, 1)
        await until(page, "tracker.inFlight + tracker.speaking === 0")
        kinds = {event["type"] for event in await page.evaluate("heard")}
        assert not kinds & {"participant.joined", "caption", "translation.final"}
        assert await page.evaluate("client.state") == "open"


async def test_a_full_gateway_says_so_and_nobody_more_joins(
    start_gateway: StartGateway, open_panel: OpenPanel
) -> None:
    gateway = start_gateway("max_sessions = 3\n" + SCRIPT).ready()
    async with open_panel(gateway) as page:
        await page.get_by_test_id("load-add-20").click()
        await expect(page.get_by_test_id("load-problem")).to_have_text(re.compile(r"\w+.*\."))
        await expect(page.get_by_test_id("load-count")).to_have_text("2 simulated speakers")
        await sessions(gateway, 3)
        await page.get_by_test_id("load-stop").click()
        await expect(page.get_by_test_id("load-problem")).to_be_hidden()
        await sessions(gateway, 1)


async def test_no_more_than_fifty_join(gateway: GatewayProcess, open_panel: OpenPanel) -> None:
    async with open_panel(gateway) as page:
        for _ in range(3):
            await page.get_by_test_id("load-add-20").click()
        await expect(page.get_by_test_id("load-count")).to_have_text("50 simulated speakers")
        await expect(page.get_by_test_id("load-add-5")).to_be_disabled()
        await expect(page.get_by_test_id("load-add-20")).to_be_focused()
        await page.get_by_test_id("load-add-20").press("Enter")
        await expect(page.get_by_test_id("load-count")).to_have_text("50 simulated speakers")
        # The browser warns of a connection that is given up before it is open.
        await sessions(gateway, 51)
        await page.get_by_test_id("load-stop").click()


@pytest.mark.parametrize("offered", [["en"], ["en", "ja"]])
async def test_speakers_go_on_however_few_languages_there_are(
    gateway: GatewayProcess, open_panel: OpenPanel, offered: list[str]
) -> None:
    async with open_panel(gateway) as page:
        await page.evaluate("(tags) => { speakers.languages = tags.map((tag) => ({ tag })); }", offered)
        await page.evaluate("""() => {
            const { send } = WebSocket.prototype;
            window.finals = 0;
            WebSocket.prototype.send = function (data) {
                if (JSON.parse(data).type === "utterance.final") finals += 1;
                return send.call(this, data);
            };
        }""")
        await page.clock.install()
        await page.evaluate("speakers.add(1)")
        # More than may wait to be translated.
        async with asyncio.timeout(_PATIENCE_S):
            while await page.evaluate("finals") < 6:
                await page.clock.run_for(400)
        await page.evaluate("speakers.stop(true)")


async def test_speakers_leave_at_once_when_the_page_goes(gateway: GatewayProcess, open_panel: OpenPanel) -> None:
    async with open_panel(gateway) as page:
        await page.get_by_test_id("load-add-5").click()
        await sessions(gateway, 6)
        await until(page, "tracker.inFlight + tracker.speaking > 0")
        closed = await page.evaluate("""async () => {
            const { close } = WebSocket.prototype;
            const codes = [];
            WebSocket.prototype.close = function (code) {
                codes.push(code);
                return close.call(this, code);
            };
            speakers.stop(true);
            return codes;
        }""")
        assert closed == [1000] * 5


# Utterances of the last twenty seconds, every fourth of them the meeting's own and every tenth a failure.
_MANY = """(count) => {
    const nowMs = performance.now();
    for (let number = 0; number < count; number += 1) {
        const source = number % 4 ? "load" : "meeting";
        const beganMs = nowMs - 12_000 + (number / count) * 11_000;
        const utterance = `${nowMs} ${number}`;
        const said = { participant: "p", utterance, speaker: "Bo", lang: "en", rev: 1, text: "…" };
        tracker.setReads(source, ["ja"]);
        tracker.onEvent(source, { type: "caption", ...said, final: false, offset: null }, beganMs);
        tracker.onEvent(source, { type: "caption", ...said, final: true, offset: 1 }, beganMs + 600);
        const timings = { queue_ms: 1, first_token_ms: 200, total_ms: 300 };
        const outcome = number % 10 ? { type: "translation.final", timings } : { type: "translation.failed" };
        tracker.onEvent(source, { ...said, ...outcome, lang: "ja", offset: 2 }, beganMs + 900);
    }
}"""


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
async def test_timeline_is_as_high_as_needed(gateway: GatewayProcess, open_panel: OpenPanel, motion: str) -> None:
    options = {"viewport": {"width": 400, "height": 900}, "reduced_motion": motion}
    async with open_panel(gateway, paused=True, **options) as page:
        canvas = page.get_by_test_id("timeline")

        async def settled() -> int:
            """Its height when it does not change any more."""
            await page.clock.run_for(3_000)
            height: int = await canvas.evaluate("(canvas) => canvas.clientHeight")
            return height

        assert 0 < await settled() < 110
        await page.evaluate(_MANY, 6)
        assert await settled() < 110
        await page.evaluate(_MANY, 300)
        assert await settled() == 240


@pytest.mark.parametrize("width", [320, 1200])
async def test_timeline_draws_hundreds_of_utterances_in_page_colours(
    gateway: GatewayProcess, open_panel: OpenPanel, width: int
) -> None:
    viewport = {"width": width, "height": 900}
    options = {"viewport": viewport, "device_scale_factor": 2, "color_scheme": "light"}
    async with open_panel(gateway, paused=True, **options) as page:
        canvas = page.get_by_test_id("timeline")
        await expect(canvas).to_have_role("img")
        await page.clock.run_for(2_000)
        assert await drawn(canvas)
        await page.evaluate(_MANY, 300)
        await page.clock.run_for(6_000)
        words = re.compile(r"300 utterances, 0 being said, 0 in flight")
        await expect(canvas).to_have_accessible_name(words)
        await page.clock.resume()
        assert await canvas.evaluate("(canvas) => canvas.width === 2 * canvas.clientWidth")
        overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await page.evaluate(overflow) == 0

        async def solid() -> set[str]:
            """The legend's colours, as they are on the canvas."""
            legend = await page.locator(".swatch").evaluate_all(
                "(all) => all.slice(0, 3).map((one) => getComputedStyle(one).backgroundColor)"
            )
            wanted = {",".join([*re.findall(r"\d+", colour), "255"]) for colour in legend}
            assert len(wanted) == 3
            async with asyncio.timeout(_PATIENCE_S):
                while not wanted <= await drawn(canvas):
                    # Those from before may be too old to be seen by now.
                    await page.evaluate(_MANY, 30)
                    await asyncio.sleep(0.05)
            return wanted

        light = await solid()
        await page.emulate_media(color_scheme="dark")
        assert await solid() != light


# -------------------------------------------------------------------- several engines

GERMAN = """
[[engines]]
name = "german"
kind = "simulated"
pairs = ["en-de"]
[engines.script]
max_running = 2
[[engines.script.rules]]
match = "stay"
stall_after = 1
"""
JAPANESE = """
[[engines]]
name = "japanese"
kind = "simulated"
pairs = ["en-ja"]
max_restarts = 0
[[engines.script.rules]]
match = "KILL"
crash_after = 0
crashes = 1000
"""
SLOW = """
[[engines]]
name = "slow"
kind = "simulated"
pairs = ["en-fr"]
[engines.script]
load_s = 3600
"""


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
async def test_several_engines_are_each_told_of_in_plain_words(
    start_gateway: StartGateway, tmp_path: Path, open_page: OpenPage, size: dict[str, Any]
) -> None:
    gateway = start_gateway(GERMAN + JAPANESE).ready()

    def become(config: str) -> None:
        (tmp_path / "gateway.toml").write_text(config)
        gateway.process.send_signal(signal.SIGHUP)

    async with open_page(gateway.url, **size) as watch:
        page = watch.page
        await connected(page)
        pane = await show(page, "engine")
        lanes, queue = pane.get_by_test_id("lane"), pane.get_by_test_id("lanes-queue")
        free = "japanese ready, 0 of 16 seats taken"
        await shows(lanes, "german ready, 0 of 2 seats taken", free)
        async with connect(gateway.url, speaks="en", reads=["de"]) as ana:
            for n in range(6):
                await ana.final(f"{n} stay here", f"u{n}")
            await shows(lanes, "german ready, 2 of 2 seats taken, 2 waiting", free)
            await expect(queue).to_have_text("2 more wait for a seat.")
            assert (await scan(page)).serious == []
            assert await overflow_px(page) == 0
            for n in (4, 5):
                await ana.cancel(f"u{n}")
            await expect(queue).to_be_hidden()
            become(JAPANESE)
            await shows(lanes, "german finishing, then it leaves, 2 of 2 seats taken, 2 waiting", free)
            for n in range(4):
                await ana.cancel(f"u{n}")
            await shows(lanes, free)
            become(JAPANESE + SLOW)
            await shows(lanes, free, "slow loading the simulated engine is loading")
        async with connect(gateway.url, speaks="en", reads=["ja"]) as ana:
            await ana.final("KILL")
            await shows(lanes, re.compile(r"japanese\sfailed\s.+"), re.compile(r"slow\sloading"))
        assert (await scan(page)).serious == []


async def test_one_engine_has_no_list(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url, **DESKTOP) as watch:
        pane = await show(watch.page, "engine")
        await expect(pane.get_by_test_id("engine-connection")).to_have_text("Connected")
        await expect(pane.get_by_test_id("lanes")).to_be_hidden()


async def shows(lanes: Locator, *wanted: str | re.Pattern[str]) -> None:
    """What each engine's row says, its parts with a space between them."""
    await expect(lanes).to_have_count(len(wanted))
    for row, words in zip(await lanes.all(), wanted, strict=True):
        await expect(row).to_have_text(words, use_inner_text=True)
