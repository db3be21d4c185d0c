"""`web_demo/client.js` by itself, in a real browser, against a real gateway process with the simulated engine.

What needs no browser is in `tests/web_client`, and in the conformance kit, which both clients keep to.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from loadtest.soak.relay import Relay
from tests.browser.conftest import SCRIPT, StartGateway
from tests.conftest import OpenPage, Watch
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser

# Whoever connects through a relay has another address than the gateway's own.
RELAYED = 'allowed_origins = ["*"]' + SCRIPT

_SET_UP = """async ({ stream, options }) => {
    const { GatewayClient } = await import(new URL("/client.js", location.href));
    const url = new URL("/v1/stream", stream ?? location.href);
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

    async def do(self, script: str, argument: Any = None) -> Any:
        """Run a script; `client` is the client, `heard` are its events so far."""
        return await self._page.evaluate(script, argument)

    async def open(self) -> None:
        await self.do("client.connect()")
        await self.until("client.state === 'open'")

    async def until(self, condition: str) -> None:
        await self._page.wait_for_function(condition)

    async def heard(self, kind: str) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = await self._page.evaluate("heard")
        return [event for event in events if event["type"] == kind]

    @property
    def frames_seen(self) -> int:
        return len(self._watch.sent) + len(self._watch.received)

    def allow(self, words: str) -> None:
        self._watch.allow(words)


def of(kind: str, condition: str = "true") -> str:
    """The events of a kind so far, as an expression; the condition is about `event`."""
    return f"heard.filter((event) => event.type === '{kind}' && ({condition}))"


StartClient = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def client_of(open_page: OpenPage) -> StartClient:
    """Makes a client of a gateway, or of another `stream` than its own; options are those of its session."""

    @asynccontextmanager
    async def made(gateway: GatewayProcess, stream: str | None = None, **options: Any) -> AsyncIterator[Client]:
        # Any page of the gateway but its own; its policy would not let `wait_for_function` evaluate a string.
        async with open_page(f"{gateway.url}/favicon.svg", bypass_csp=True) as watch:
            watch.allow("favicon.ico")  # what a browser looks for where no page names an icon
            await watch.page.evaluate(_SET_UP, {"stream": stream, "options": options})
            yield Client(watch)

    return made


async def test_two_clients_in_one_meeting_hear_each_other(gateway: GatewayProcess, client_of: StartClient) -> None:
    async with (
        client_of(gateway, meeting="m-hear", name="Ana", speaks="en", reads=["fr"]) as ana,
        client_of(gateway, meeting="m-hear", name="Bo", speaks="de", reads=["ja"], originals=True) as bo,
    ):
        await ana.open()
        await bo.open()
        assert await ana.do("client.meeting") == "m-hear"
        await ana.until("client.participants.size === 1")
        assert await ana.do("[...client.participants.values()].map(({ name }) => name)") == ["Bo"]
        assert await bo.do("[...client.participants.values()].map(({ name }) => name)") == ["Ana"]

        await ana.do("""client.final({ text: "Good morning.", lang: "en" })""")
        await bo.do("""client.final({ text: "Guten Morgen.", lang: "de" })""")
        for client, langs in ((ana, ["fr", "fr"]), (bo, ["ja", "ja"])):
            await client.until(f"{of('translation.final')}.length === 2")
            finals = await client.heard("translation.final")
            assert [final["lang"] for final in finals] == langs
            assert {final["speaker"]: final["text"].split("] ")[1] for final in finals} == {
                "Ana": "Good morning.",
                "Bo": "Guten Morgen.",
            }
        assert {caption["text"] for caption in await bo.heard("caption")} == {"Good morning.", "Guten Morgen."}
        assert {caption["text"] for caption in await ana.heard("caption")} == {"Good morning."}
        assert await ana.do("client.participant") != await bo.do("client.participant")

        await bo.do("client.close()")
        await ana.until("client.participants.size === 0")
        assert [left["name"] for left in await ana.heard("participant.left")] == ["Bo"]


async def test_latecomer_gets_the_recent_transcript_once(gateway: GatewayProcess, client_of: StartClient) -> None:
    async with (
        client_of(gateway, meeting="m-late", name="Ana", speaks="en", reads=["fr"]) as ana,
        client_of(gateway, meeting="m-late", reads=["fr", "ja"], originals=True) as bo,
    ):
        await ana.open()
        await ana.do("""client.final({ text: "One.", lang: "en" })""")
        await ana.until(f"{of('translation.final')}.length === 1")
        await ana.do("""client.partial({ text: "And then", lang: "en" })""")
        await ana.until(f"{of('caption', '!event.final')}.length === 1")

        await bo.open()
        await bo.until(f"{of('translation.final')}.length === 2")
        await bo.until(f"{of('caption')}.length === 2")
        assert [caption["text"] for caption in await bo.heard("caption")] == ["One.", "And then"]
        assert {final["text"] for final in await bo.heard("translation.final")} == {"[fr] One.", "[ja] One."}

        # A session begun anew is sent all of it again.
        await bo.do("client.close()")
        await bo.until("client.state === 'closed'")
        await bo.open()
        await bo.until(f"{of('caption', '!event.final')}.length === 2")
        assert len(await bo.heard("translation.final")) == 2
        assert len(await bo.heard("caption")) == 3


async def test_restarted_gateway_resumes_the_session(
    start_gateway: StartGateway, client_of: StartClient, tmp_path: Path
) -> None:
    config = SCRIPT + f'[event_log]\nhandover_file = "{tmp_path / "handover"}"\n'
    gateway = start_gateway(config).ready()
    async with client_of(gateway, meeting="m", name="Ana", speaks="en", reads=["fr"]) as client:
        client.allow("ERR_")
        client.allow("503")
        await client.open()
        await client.do("""client.final({ text: "Before.", lang: "en" })""")
        await client.until(f"{of('translation.final')}.length === 1")
        await asyncio.to_thread(gateway.end, signal.SIGTERM)
        await client.until("client.state === 'reconnecting'")
        assert len(await client.heard("session.draining")) == 1
        reasons = [event["code"] for event in await client.heard("state") if event["state"] == "reconnecting"]
        assert reasons[0] == "draining"
        await client.do("""client.final({ text: "Meanwhile.", lang: "en" })""")
        start_gateway(config, gateway.port).ready()
        await client.do("client.connect()")

        await client.until(f"{of('translation.final')}.length === 2")
        assert [event["recovered"] for event in await client.heard("session.started")] == [None, True]
        texts = [final["text"] for final in await client.heard("translation.final")]
        assert texts == ["[fr] Before.", "[fr] Meanwhile."]


async def test_breaking_connections_lose_and_double_nothing(
    start_gateway: StartGateway, client_of: StartClient
) -> None:
    rng = random.Random(1)
    count = 25
    gateway = start_gateway(RELAYED).ready()
    async with (
        Relay(gateway.port) as relay,
        client_of(gateway, relay.url, meeting="m", name="Ana", speaks="en", reads=["fr"]) as ana,
        client_of(gateway, meeting="m", reads=["en", "ja"]) as bo,
    ):
        ana.allow("ERR_")
        await bo.open()
        await ana.do(
            """(gaps) => {
                client.listen((event) => {
                    if (event.state === "reconnecting") setTimeout(() => client.connect());
                });
                client.connect();
                const say = (n) => {
                    if (n === gaps.length) return;
                    const id = n % 2 ? client.partial({ text: "Number", lang: "en" }) : undefined;
                    client.final({ id, text: `Number ${n}.`, lang: "en" });
                    setTimeout(() => say(n + 1), gaps[n]);
                };
                say(0);
            }""",
            [rng.choice([0, 5, 20, 60]) for _ in range(count)],
        )
        for _ in range(12):
            mark = ana.frames_seen + rng.randrange(1, 14)
            while ana.frames_seen < mark and len(await ana.heard("translation.final")) < count:
                await asyncio.sleep(0.003)
            relay.cut()
        texts = [f"Number {n}." for n in range(count)] + ["The end."]
        await bo.until(f"{of('translation.final')}.length >= {count}")
        await ana.until(f"{of('translation.final')}.length >= {count}")
        # Whatever is doubled would come before the answer to what is asked last.
        await ana.until("client.state === 'open'")
        await ana.do("""client.final({ text: "The end.", lang: "en" })""")
        for client, lang in ((ana, "fr"), (bo, "ja")):
            await client.until(f"{of('translation.final', 'event.text.endsWith(`The end.`)')}.length === 1")
            finals = [final["text"] for final in await client.heard("translation.final")]
            assert sorted(finals) == sorted(f"[{lang}] {text}" for text in texts)
        assert [caption["text"] for caption in await bo.heard("caption") if caption["final"]] == texts
        assert len(await ana.heard("utterance.accepted")) == count + 1
        assert {event["recovered"] for event in await ana.heard("session.started")} == {None, True}


async def test_failing_listener_harms_no_other(gateway: GatewayProcess, client_of: StartClient) -> None:
    async with client_of(gateway, reads=["fr"]) as client:
        client.allow("a listener's mistake")
        await client.do("""() => {
            client.listen(() => { throw new Error("a listener's mistake"); });
            client.listen((event) => { window.last = event.type; });
            client.connect();
            client.final({ text: "One.", lang: "en" });
        }""")
        await client.until("window.last === 'translation.final'")
