"""The page's sample meeting player in a page that else holds nothing, against a real gateway process.

The simulated engine's "translation" is the source text behind the target's tag.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from secrets import token_hex
from typing import Any

import pytest
from playwright.async_api import Page

from tests.browser.conftest import StartGateway, kill
from tests.conftest import OpenPage, Watch
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser

ANA, KENJI, WEI = {"name": "Ana", "lang": "en"}, {"name": "Kenji", "lang": "ja"}, {"name": "Wei", "lang": "zh"}
# Ana is misheard at first, Kenji says yes while she speaks, and Wei has the last word, after 1.45 s.
SCRIPT: dict[str, Any] = {
    "speakers": [ANA, KENJI, WEI],
    "utterances": [
        [0, 50, [[300, 0, "Price in"], [300, 4, "ing"], [300, 0, " first"], [300, 0, "."]]],
        [1, -700, [[100, 0, "はい"], [300, 0, "。"]]],
        [2, 100, [[100, 0, "好"], [300, 0, "的。"]]],
    ],
}

_SET_UP = """async ({ script, meeting }) => {
    const { GatewayClient } = await import("/client.js");
    const { SampleMeetingPlayer } = await import("/page/samples/sample_meeting_player.js");
    const url = new URL("/v1/stream", location.href);
    url.protocol = "ws:";
    window.heard = [];
    window.states = [];
    window.objections = [];
    window.opened = 0;
    const { connect } = GatewayClient.prototype;
    GatewayClient.prototype.connect = function () {
        // Behind the listeners that it has already.
        this.listen((event) => { if (event.state === "open") opened += 1; });
        return connect.call(this);
    };
    window.reader = new GatewayClient(url.href, { meeting, reads: ["de"] });
    reader.listen((event) => heard.push(event));
    window.player = new SampleMeetingPlayer({
        streamUrl: url.href,
        meeting: () => meeting,
        onChange: (playing) => states.push(playing),
        onProblem: (words) => objections.push(words),
        pauseMs: 100,
        script,
    });
    window.of = (type) => heard.filter((event) => event.type === type);
    window.said = [];
    const { send } = WebSocket.prototype;
    WebSocket.prototype.send = function (data) {
        said.push(JSON.parse(data));
        return send.call(this, data);
    };
    reader.connect();
}"""


class Sample:
    """A page with a player and somebody who reads along; `heard` is what that one hears."""

    def __init__(self, watch: Watch) -> None:
        self.page: Page = watch.page
        self.allow = watch.allow

    async def do(self, script: str) -> Any:
        return await self.page.evaluate(script)

    async def until(self, condition: str) -> None:
        await self.page.wait_for_function(condition)

    async def begin(self, *languages: str) -> None:
        """Everybody is there and silent; from now on time passes with `later` and `sleep` alone."""
        await self.page.clock.install()
        await self.page.clock.pause_at(await self.do("Date.now() / 1000 + 60"))
        await self.page.evaluate("(languages) => { opened = 0; player.start(languages); }", list(languages))
        await self.until(f"opened === {len(languages)}")

    async def later(self, ms: int) -> None:
        await self.page.clock.run_for(ms)

    async def sleep(self, ms: int) -> None:
        """As a computer does: what would have been done meanwhile is done once, when it is over."""
        await self.page.clock.fast_forward(ms)

    async def heard(self, kind: str) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = await self.page.evaluate("(kind) => of(kind)", kind)
        return events

    async def said(self) -> list[dict[str, Any]]:
        """What was sent of utterances."""
        return [frame for frame in await self.page.evaluate("said") if frame["type"].startswith("utterance.")]

    async def words(self) -> list[tuple[str, str]]:
        """Of what was sent of utterances, the kind and the text."""
        return [(frame["type"].removeprefix("utterance."), frame["text"]) for frame in await self.said()]


OpenSample = Callable[..., AbstractAsyncContextManager[Sample]]


@pytest.fixture
def open_sample(open_page: OpenPage) -> OpenSample:
    @asynccontextmanager
    async def opened(gateway: GatewayProcess, script: dict[str, Any] = SCRIPT) -> AsyncIterator[Sample]:
        # Any page of the gateway but its own; its policy would not let `wait_for_function` evaluate a string.
        async with open_page(f"{gateway.url}/favicon.svg", bypass_csp=True) as watch:
            watch.allow("favicon.ico")  # what a browser looks for where no page names an icon
            await watch.page.evaluate(_SET_UP, {"script": script, "meeting": token_hex(8)})
            sample = Sample(watch)
            await sample.until("reader.state === 'open'")
            yield sample
            await sample.do("player.stop()")

    return opened


async def test_everybody_joins_speaks_and_leaves(gateway: GatewayProcess, open_sample: OpenSample) -> None:
    async with open_sample(gateway) as sample:
        await sample.begin("en", "ja", "zh")
        await sample.later(1_500)
        await sample.until("of('translation.final').length >= 3")
        await sample.do("player.stop()")
        assert await sample.do("states") == [True, False]
        await sample.until("of('participant.left').length === 3")

        joined = await sample.heard("participant.joined")
        assert {(one["name"], one["speaks"]) for one in joined} == {("Ana", "en"), ("Kenji", "ja"), ("Wei", "zh")}
        assert all(one["reads"] == [] for one in joined)
        finals = await sample.heard("translation.final")
        assert {(final["speaker"], final["text"]) for final in finals} == {
            ("Ana", "[de] Pricing first."),
            ("Kenji", "[de] はい。"),
            ("Wei", "[de] 好的。"),
        }
        # Kenji did not wait for Ana.
        assert [text for kind, text in await sample.words() if kind == "final"] == [
            *("はい。", "Pricing first.", "好的。"),
        ]


async def test_what_is_said_grows_before_it_is_final(gateway: GatewayProcess, open_sample: OpenSample) -> None:
    async with open_sample(gateway) as sample:
        await sample.begin("en")
        await sample.later(1_300)
        await sample.until("of('translation.final').length >= 1")
        said = await sample.said()
        assert len({frame["id"] for frame in said}) == 1
        assert await sample.words() == [
            ("partial", "Price in"),
            ("partial", "Pricing"),
            ("partial", "Pricing first"),
            ("final", "Pricing first."),
        ]


async def test_it_goes_on_round_after_round_with_new_utterances(
    gateway: GatewayProcess, open_sample: OpenSample
) -> None:
    async with open_sample(gateway) as sample:
        await sample.begin("en", "ja", "zh")
        for count in (3, 6, 9):
            await sample.later(1_550)
            await sample.until(f"of('translation.final').length >= {count}")
        finals = await sample.heard("translation.final")
        keys = {(final["participant"], final["utterance"]) for final in finals}
        assert len(keys) == len(finals)
        assert len({final["participant"] for final in finals}) == 3
        assert [final["text"] for final in finals].count("[de] Pricing first.") == 3


async def test_speakers_of_languages_not_offered_are_left_out(
    gateway: GatewayProcess, open_sample: OpenSample
) -> None:
    async with open_sample(gateway) as sample:
        await sample.do("player.start(['zh', 'fr'])")
        await sample.until("of('translation.final').length >= 2")
        assert {final["text"] for final in await sample.heard("translation.final")} == {"[de] 好的。"}
        assert [one["name"] for one in await sample.heard("participant.joined")] == ["Wei"]

        await sample.do("player.stop(); player.start(['ko'])")
        assert await sample.do("player.isPlaying") is False
        assert await sample.do("objections") == ["This gateway knows none of the languages of the sample meeting."]


async def test_a_page_that_slept_paces_its_sentences(gateway: GatewayProcess, open_sample: OpenSample) -> None:
    """It does not say everything at once when it wakes."""
    one = [[300, 0, "One"], [300, 0, " two"], [300, 0, "."]]
    other = [[300, 0, "Three"], [300, 0, " four"], [300, 0, "."]]
    script = {"speakers": [ANA], "utterances": [[0, 0, one], [0, 0, other]]}
    async with open_sample(gateway, script) as sample:
        await sample.begin("en")
        await sample.later(600)
        # For longer than both take.
        await sample.sleep(5_000)
        await sample.until("of('translation.final').length === 1")
        assert await sample.words() == [("partial", "One"), ("partial", "One two"), ("final", "One two.")]
        # The second one is spoken, word by word, now that the page is awake again.
        await sample.later(950)
        await sample.until("of('translation.final').length === 2")
        assert (await sample.words())[3:] == [
            ("partial", "Three"),
            ("partial", "Three four"),
            ("final", "Three four."),
        ]
        first, second = await sample.heard("translation.final")
        assert (first["text"], second["text"]) == ("[de] One two.", "[de] Three four.")


async def test_a_lost_connection_is_waited_for(start_gateway: StartGateway, open_sample: OpenSample) -> None:
    gateway = start_gateway().ready()
    async with open_sample(gateway) as sample:
        sample.allow("ERR_")  # the browser notes every connection that breaks off
        await sample.do("player.start(['en', 'ja', 'zh'])")
        await sample.until("of('translation.final').length >= 1")
        kill(gateway)
        await sample.until("reader.state === 'reconnecting'")
        start_gateway(port=gateway.port).ready()
        await sample.do("heard.length = 0")
        await sample.until("reader.state === 'open' && of('translation.final').length >= 4")
        assert await sample.do("player.isPlaying")
        assert await sample.do("objections") == []


async def test_when_the_page_goes_everybody_leaves_at_once(
    gateway: GatewayProcess, open_sample: OpenSample
) -> None:
    async with open_sample(gateway) as sample:
        await sample.do("player.start(['en', 'ja', 'zh'])")
        await sample.until("of('translation.final').length >= 1")
        closed = await sample.do(
            """() => {
                const { close } = WebSocket.prototype;
                const codes = [];
                WebSocket.prototype.close = function (code) {
                    codes.push(code);
                    return close.call(this, code);
                };
                player.stop(true);
                return codes;
            }"""
        )
        assert closed == [1000] * 3
        await sample.until("of('participant.left').length === 3")
