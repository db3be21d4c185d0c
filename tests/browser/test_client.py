"""`web_demo/client.js` by itself, in a real browser, against a real gateway process with the simulated engine.

What such a gateway does only when it is unlucky is played by a scripted one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from gateway.messages import (
    Caption,
    SessionUpdate,
    SessionUpdated,
    TranslationDelta,
    UtteranceFinal,
    UtterancePartial,
)
from tests.browser.conftest import SCRIPT, StartGateway, kill
from tests.conftest import OpenPage, Watch
from tests.processes import GatewayProcess
from tests.scripted_gateway import Peer, refused, scripted_gateway, translated

pytestmark = pytest.mark.browser

# One message a second and not one more: what follows `session.start` at once is refused, and says until when.
STRICT = SCRIPT + "\n[limits]\nmessages_per_s = 1\nmessages_burst = 1"

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

    def frames(self, kind: str) -> list[dict[str, Any]]:
        return [frame for frame in self._watch.sent if frame["type"] == kind]

    def revisions(self) -> list[tuple[str, int, str]]:
        """Type, revision and text of every partial and final, in order."""
        return [
            (frame["type"].removeprefix("utterance."), frame["rev"], frame["text"])
            for frame in self._watch.sent
            if frame["type"] in ("utterance.partial", "utterance.final")
        ]

    def allow(self, words: str) -> None:
        self._watch.allow(words)


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


# -------------------------------------------------------------------- partials


def shown(partial: UtterancePartial) -> Caption:
    return Caption("p1", partial.id, "", partial.lang or "en", partial.rev, partial.text, False)


def delta(partial: UtterancePartial, lang: str, committed: str, tentative: str) -> TranslationDelta:
    return TranslationDelta("p1", partial.id, lang, partial.rev, committed, tentative)


async def test_of_partials_that_come_fast_the_newest_is_sent_and_none_behind_the_final(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async with client_of(gateway, reads=["fr"], speaks="en") as client:
        await client.do("client.connect()")
        await client.until("client.state === 'open'")
        await client.do(
            """() => {
                window.id = client.partial({ text: "Good", lang: "en" });
                client.partial({ id, text: "Good mor", lang: "en" });
                client.partial({ id, text: "Good morning", lang: "en" });
            }"""
        )
        await client.until("heard.some((event) => event.type === 'caption' && event.rev === 2)")
        assert client.revisions() == [("partial", 1, "Good"), ("partial", 2, "Good morning")]

        same = await client.do(
            """() => {
                client.partial({ id, text: "Good morning every", lang: "en" });
                const said = client.final({ id, text: "Good morning, everyone.", lang: "en" });
                client.partial({ id, text: "Good morning every bo", lang: "en" });
                return said === id;
            }"""
        )
        assert same
        await client.until("heard.some((event) => event.type === 'utterance.settled')")
        # Whatever had been kept back would be sent by now: a second utterance waits as long as the first.
        await client.do(
            """() => {
                window.id = client.partial({ text: "And", lang: "en" });
                client.partial({ id, text: "And welcome", lang: "en" });
            }"""
        )
        await client.until("heard.some((event) => event.type === 'caption' && event.text === 'And welcome')")
        assert client.revisions()[2:] == [
            ("final", 3, "Good morning, everyone."),
            ("partial", 1, "And"),
            ("partial", 2, "And welcome"),
        ]
        assert await client.heard("error") == []
        assert [final["text"] for final in await client.heard("translation.final")] == [
            "[fr] Good morning, everyone."
        ]


async def test_an_empty_partial_withdraws_what_was_not_sent_yet_and_none_changes_a_final(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async with client_of(gateway, reads=["fr"], speaks="en") as client:
        await client.do(
            """() => {
                window.id = client.partial({ text: "Never mind", lang: "en" });
                client.partial({ id, text: " ", lang: "en" });
                const another = client.partial({ text: "Good morn", lang: "en" });
                client.final({ id: another, text: "Good morning.", lang: "en" });
                client.partial({ id: another, text: "Good morn ing", lang: "en" });
                client.connect();
            }"""
        )
        await client.until("heard.some((event) => event.type === 'utterance.settled')")
        await client.do("""client.final({ id, text: "Good evening.", lang: "en" })""")
        await client.until("heard.filter((event) => event.type === 'utterance.settled').length === 2")
        assert client.revisions() == [("final", 1, "Good morning."), ("final", 1, "Good evening.")]
        assert await client.heard("error") == []


async def test_after_a_lost_connection_unfinished_text_is_void_and_the_newest_partial_is_sent(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    revised = asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.start()
        partial = await peer.expect(UtterancePartial)
        await peer.say(shown(partial), delta(partial, "fr", "Bon", "jour"))
        if peer.visit < 3:
            await revised.wait()
            peer.drop()
            return
        final = await peer.take()
        await peer.say(translated(final, "fr", "Bonjour à tous."))
        await peer.connection.wait_closed()

    async with (
        scripted_gateway(play) as stream,
        client_of(gateway, stream, reads=["fr"], speaks="en") as client,
    ):
        client.allow("ERR_")  # the browser notes every connection that breaks off
        await client.do("""() => {
            window.id = client.partial({ text: "Good", lang: "en" });
            client.connect();
        }""")
        await client.until("heard.some((event) => event.type === 'translation.delta')")
        # Said while the connection breaks off, and while there is none.
        await client.do("""() => {
            client.listen((event) => {
                if (event.state !== "reconnecting" || heard.some((event) => event.rev === 2)) return;
                client.partial({ id, text: "Good morning", lang: "en" });
                client.partial({ id, text: "Good morning all", lang: "en" });
            });
        }""")
        revised.set()
        await client.until("heard.filter((event) => event.type === 'translation.delta').length === 3")
        await client.do("""client.final({ id, text: "Good morning, all.", lang: "en" })""")
        await client.until("heard.some((event) => event.type === 'utterance.settled')")

        assert client.revisions() == [
            ("partial", 1, "Good"),
            ("partial", 2, "Good morning all"),
            ("partial", 3, "Good morning all"),
            ("final", 4, "Good morning, all."),
        ]
        kinds = ("translation.delta", "utterance.restarted", "translation.final")
        told = [event["type"] for event in await client.do("heard") if event["type"] in kinds]
        again = ["utterance.restarted", "translation.delta"]
        assert told == ["translation.delta", *again, *again, "translation.final"]


async def test_a_partial_that_is_refused_is_dropped_and_the_final_behind_it_is_not(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async def play(peer: Peer) -> None:
        await peer.start()
        first = await peer.expect(UtterancePartial)
        await peer.say(refused("rate_limited", "Too many.", first.id, retry_after_ms=10))
        second = await peer.expect(UtterancePartial)
        assert (second.rev, second.text) == (2, "Good morning")
        final = await peer.take()
        # As if it had been under way when the final was sent, and behind that an answer that has crossed it.
        stale = refused("stale_revision", "Not newer.", second.id)
        await peer.say(stale, translated(final, "fr", "Bonjour."))
        third = await peer.expect(UtterancePartial)
        final = await peer.expect(UtteranceFinal)
        await peer.say(refused("limit_exceeded", "Too long.", third.id))
        again = await peer.take()
        assert again == final
        await peer.say(translated(again, "fr", "Au revoir."))
        fourth = await peer.expect(UtterancePartial)
        await peer.say(shown(fourth))
        final = await peer.expect(UtteranceFinal)
        await peer.say(refused("limit_exceeded", "Too long.", final.id))
        await peer.connection.wait_closed()

    async with (
        scripted_gateway(play) as stream,
        client_of(gateway, stream, reads=["fr"], speaks="en") as client,
    ):
        await client.do("client.connect()")
        await client.until("client.state === 'open'")
        await client.do("""() => {
            window.id = client.partial({ text: "Good", lang: "en" });
            client.partial({ id, text: "Good morning", lang: "en" });
        }""")
        while len(client.revisions()) < 2:
            await asyncio.sleep(0.02)
        await client.do("""client.final({ id, text: "Good morning.", lang: "en" })""")
        await client.until("heard.filter((event) => event.type === 'utterance.settled').length === 1")
        await client.do("""() => {
            const id = client.partial({ text: "Bye", lang: "en" });
            client.final({ id, text: "Goodbye.", lang: "en" });
        }""")
        await client.until("heard.filter((event) => event.type === 'utterance.settled').length === 2")
        assert await client.heard("error") == []
        assert await client.heard("utterance.refused") == []

        # What was answered already cannot be what is refused.
        await client.do("""() => {
            const id = client.partial({ text: "One", lang: "en" });
            client.listen((event) => {
                if (event.type === "caption") client.final({ id, text: "One more.", lang: "en" });
            });
        }""")
        await client.until("heard.some((event) => event.type === 'utterance.refused')")
        assert [event["code"] for event in await client.heard("utterance.refused")] == ["limit_exceeded"]


async def test_a_refusal_of_a_partial_that_was_given_up_is_no_news(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async def play(peer: Peer) -> None:
        await peer.start()
        partial = await peer.expect(UtterancePartial)
        await peer.say(shown(partial))
        await peer.expect(SessionUpdate)
        await peer.say(refused("rate_limited", "Too many.", partial.id), SessionUpdated(["fr"], "en", "stable"))
        await peer.connection.wait_closed()

    async with (
        scripted_gateway(play) as stream,
        client_of(gateway, stream, reads=["fr"], speaks="en") as client,
    ):
        await client.do("""() => {
            window.id = client.partial({ text: "Good", lang: "en" });
            client.connect();
        }""")
        await client.until("heard.some((event) => event.type === 'caption')")
        await client.do("""() => {
            client.cancel(id);
            client.setStability("stable");
        }""")
        await client.until("heard.some((event) => event.type === 'session.updated')")
        assert [event["code"] for event in await client.heard("utterance.refused")] == ["cancelled"]
        assert await client.heard("error") == []


async def test_languages_that_a_partial_is_refused_for_leave_its_final_to_say_so(
    start_gateway: StartGateway, client_of: StartClient
) -> None:
    gateway = start_gateway(SCRIPT + "\n[limits]\nlanguages = 2").ready()
    async with client_of(gateway, reads=["ja"], speaks="en") as client:
        await client.do("client.connect()")
        await client.until("client.state === 'open'")
        await client.do("""() => {
            client.read(["de", "fr", "es"]);
            window.id = client.partial({ text: "Too", lang: "en" });
            client.read(["fr"]);
            client.final({ text: "One.", lang: "en" });
        }""")
        await client.until("heard.some((event) => event.type === 'utterance.settled')")
        assert await client.heard("utterance.refused") == []
        await client.do("""() => {
            client.read(["de", "fr", "es"]);
            client.final({ id, text: "Too many.", lang: "en" });
        }""")
        await client.until("heard.some((event) => event.type === 'utterance.refused')")
        assert client.revisions() == [("final", 1, "One.")]


# -------------------------------------------------------------------- stability


async def test_a_session_starts_with_its_stability_and_is_told_of_another(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async with client_of(gateway, reads=["fr"], stability="stable") as client:
        await client.do("""() => {
            client.listen((event) => {
                // While it is on its way there is a change of mind, and another.
                if (event.type === "state" && event.state === "open") {
                    client.setStability("final");
                    client.setStability("live");
                    client.setStability("stable");
                }
            });
            client.connect();
        }""")
        await client.until("heard.filter((event) => event.type === 'session.updated').length === 2")
        starts = [frame["stability"] for frame in client.frames("session.start")]
        assert starts == ["stable"]
        assert [frame["stability"] for frame in client.frames("session.update")] == ["final", "stable"]
        assert [event["stability"] for event in await client.heard("session.updated")] == ["final", "stable"]


async def test_a_stability_that_is_refused_for_a_while_is_asked_for_again(
    start_gateway: StartGateway, client_of: StartClient
) -> None:
    gateway = start_gateway(STRICT).ready()
    async with client_of(gateway, reads=["fr"]) as client:
        await client.do("client.connect()")
        await client.until("client.state === 'open'")
        await client.do("""client.setStability("final")""")
        await client.until("heard.some((event) => event.type === 'session.updated')")
        assert len(client.frames("session.update")) >= 2
        assert await client.heard("error") == []


async def test_each_update_is_answered_for_itself(gateway: GatewayProcess, client_of: StartClient) -> None:
    answer = asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.start()
        assert (await peer.expect(SessionUpdate)).stability == "final"
        assert (await peer.expect(SessionUpdate)).reads == ["de"]
        await peer.say(SessionUpdated(["fr"], "en", "final"))
        await answer.wait()
        await peer.say(SessionUpdated(["de"], "en", "final"))
        await peer.say(translated(await peer.take(), "de", "Hallo."))
        await peer.connection.wait_closed()

    async with (
        scripted_gateway(play) as stream,
        client_of(gateway, stream, reads=["fr"], speaks="en") as client,
    ):
        await client.do("client.connect()")
        await client.until("client.state === 'open'")
        await client.do("""() => {
            client.setStability("final");
            client.read(["de"]);
            client.final({ text: "Hello.", lang: "en" });
        }""")
        await client.until("heard.some((event) => event.type === 'session.updated')")
        assert client.revisions() == []
        answer.set()
        await client.until("heard.some((event) => event.type === 'utterance.settled')")
        assert client.revisions() == [("final", 1, "Hello.")]
