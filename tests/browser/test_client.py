"""`web_demo/client.js` by itself, in a real browser, against a real gateway process with the simulated engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from tests.browser.conftest import SCRIPT, StartGateway, kill
from tests.conftest import OpenPage, Watch
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser

# One message a second and not one more: what follows `session.start` at once is refused, and says until when.
STRICT = SCRIPT + "\n[limits]\nmessages_per_s = 1\nmessages_burst = 1"

_SET_UP = """async (options) => {
    const { GatewayClient } = await import(new URL("/client.js", location.href));
    const url = new URL("/v1/stream", location.href);
    url.protocol = "ws:";
    window.heard = [];
    window.client = new GatewayClient(url.href, options);
    client.listen((event) => heard.push(event));
}"""


class Client:
    """A `GatewayClient` in a page that holds nothing else."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._page = watch.page

    async def do(self, script: str) -> Any:
        """Run a script; `client` is the client, `heard` are its events so far."""
        return await self._page.evaluate(script)

    async def until(self, condition: str) -> None:
        await self._page.wait_for_function(condition)

    async def heard(self, kind: str) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = await self._page.evaluate("heard")
        return [event for event in events if event["type"] == kind]

    def sent(self) -> list[str]:
        """The messages' types, with the languages or the text that they carry."""
        return [
            " ".join([frame["type"], *frame.get("reads", []), *filter(None, [frame.get("text")])])
            for frame in self._watch.sent
        ]

    def allow(self, words: str) -> None:
        self._watch.allow(words)


StartClient = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def client_of(open_page: OpenPage) -> StartClient:
    """Makes a client of a gateway; options are those of its session."""

    @asynccontextmanager
    async def made(gateway: GatewayProcess, **options: Any) -> AsyncIterator[Client]:
        # Any page of the gateway but its own; its policy would not let `wait_for_function` evaluate a string.
        async with open_page(f"{gateway.url}/favicon.svg", bypass_csp=True) as watch:
            watch.allow("favicon.ico")  # what a browser looks for where no page names an icon
            await watch.page.evaluate(_SET_UP, options)
            yield Client(watch)

    return made


async def test_a_refused_update_is_sent_again_and_what_is_said_waits_for_it(
    start_gateway: StartGateway, client_of: StartClient
) -> None:
    gateway = start_gateway(STRICT).ready()
    async with client_of(gateway, reads=["ja"], speaks="en") as client:
        await client.do(
            """() => {
                client.listen((event) => {
                    if (event.type !== "session.started") return;
                    client.read(["de"]);
                    client.final({ text: "One.", lang: "en" });
                });
                client.connect();
            }"""
        )
        await client.until("heard.some((event) => event.type === 'utterance.settled')")

        assert await client.heard("translation.failed") == []
        assert [final["text"] for final in await client.heard("translation.final")] == ["[de] One."]
        sent = client.sent()
        assert sent[:3] == ["session.start ja", "session.update de", "session.update de"]
        assert set(sent[3:-1]) <= {"session.update de", "utterance.final One."}
        assert sent[-1] == "utterance.final One."


async def test_languages_that_are_refused_for_good_refuse_what_was_said_for_them_and_nothing_else(
    start_gateway: StartGateway, client_of: StartClient
) -> None:
    gateway = start_gateway(SCRIPT + "\n[limits]\nlanguages = 2").ready()
    async with client_of(gateway, reads=["ja"], speaks="en") as client:
        await client.do("client.connect()")
        await client.until("client.state === 'open'")
        await client.do(
            """() => {
                client.read(["de", "fr", "es"]);
                client.final({ text: "Too many.", lang: "en" });
                client.read(["fr"]);
                client.final({ text: "One.", lang: "en" });
                client.read(["ja"]);
                client.final({ text: "Two.", lang: "en" });
            }"""
        )
        await client.until("heard.filter((event) => event.type === 'utterance.settled').length === 2")

        assert [refused["code"] for refused in await client.heard("utterance.refused")] == ["limit_exceeded"]
        assert await client.heard("translation.failed") == []
        finals = {final["text"] for final in await client.heard("translation.final")}
        assert finals == {"[fr] One.", "[ja] Two."}
        assert client.sent() == [
            "session.start ja",
            "session.update de fr es",
            "session.update fr",
            "utterance.final One.",
            "session.update ja",
            "utterance.final Two.",
        ]


async def test_a_connection_lost_after_close_is_not_opened_again(
    start_gateway: StartGateway, client_of: StartClient
) -> None:
    gateway = start_gateway().ready()
    async with client_of(gateway, reads=["fr"], speaks="en") as client:
        client.allow("ERR_")  # the browser notes every connection that breaks off
        await client.do("client.connect()")
        await client.until("client.state === 'open'")
        await client.do("""client.final({ text: "This one will stall for ever", lang: "en" })""")
        await client.until("heard.some((event) => event.type === 'translation.delta')")

        await client.do("client.close()")
        kill(gateway)
        await client.until("client.state !== 'open'")

        states = [event["state"] for event in await client.heard("state")]
        assert states == ["connecting", "open", "closed"]
        assert [refused["code"] for refused in await client.heard("utterance.refused")] == ["closed"]
        assert client.sent()[-1] == "session.end"


async def test_close_finishes_what_was_accepted_and_a_later_connect_begins_anew(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async with client_of(gateway, reads=["fr"], speaks="en") as client:
        await client.do("client.connect()")
        await client.until("client.state === 'open'")
        await client.do("""client.final({ text: "Goodbye, everyone.", lang: "en" })""")
        await client.until("heard.some((event) => event.type === 'utterance.accepted')")
        await client.do("client.close()")
        await client.until("client.state === 'closed'")
        assert [final["text"] for final in await client.heard("translation.final")] == ["[fr] Goodbye, everyone."]

        await client.do("client.connect()")
        await client.until("client.state === 'open'")
