"""`web_demo/client.js` by itself, in a real browser, against a real gateway process with the simulated engine.

What such a gateway does only when it is unlucky is played by a scripted one.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.protocol.messages import (
    Caption,
    ClientMessage,
    Participant,
    ParticipantJoined,
    Ping,
    Pong,
    Resume,
    SessionDraining,
    SessionStart,
    SessionUpdate,
    SessionUpdated,
    TranslationDelta,
    UtteranceCancel,
    UtteranceFinal,
    UtterancePartial,
)
from loadtest.soak.relay import Relay
from tests.browser.conftest import SCRIPT, StartGateway, kill
from tests.browser.pages import stop_the_clock
from tests.conftest import OpenPage, Watch
from tests.processes import GatewayProcess
from tests.scripted_gateway import (
    ANOTHER,
    STARTED,
    Peer,
    accepted,
    failed,
    refused,
    said,
    translated,
)
from tests.scripted_gateway import scripted_gateway as any_scripted_gateway

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

    async def own_clock(self) -> None:
        """From now on time passes when `later` is called, and else not."""
        await stop_the_clock(self._page)

    async def later(self, ms: int) -> None:
        await self._page.clock.run_for(ms)

    async def until(self, condition: str) -> None:
        await self._page.wait_for_function(condition)

    async def heard(self, kind: str) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = await self._page.evaluate("heard")
        return [event for event in events if event["type"] == kind]

    def sent(self) -> list[str]:
        """The messages' types, with the languages or the text that they carry; but for the ping of every start."""
        frames = [
            frame
            for before, frame in pairwise([{"type": ""}, *self._watch.sent])
            if (before["type"], frame["type"]) != ("session.start", "ping")
        ]
        return [
            " ".join([frame["type"], *frame.get("reads", []), *filter(None, [frame.get("text")])])
            for frame in frames
        ]

    def frames(self, kind: str) -> list[dict[str, Any]]:
        return [frame for frame in self._watch.sent if frame["type"] == kind]

    def revisions(self) -> list[tuple[str, int, str]]:
        """Kind, revision and text of every partial and final, in order."""
        return [
            (frame["type"].removeprefix("utterance."), frame["rev"], frame["text"])
            for frame in self._watch.sent
            if frame["type"] in ("utterance.partial", "utterance.final")
        ]

    @property
    def frames_seen(self) -> int:
        return len(self._watch.sent) + len(self._watch.received)

    def allow(self, words: str) -> None:
        self._watch.allow(words)


class Pinged(Peer):
    """What is asked at every start is answered in passing."""

    async def receive(self) -> ClientMessage:
        while isinstance(message := await super().receive(), Ping):
            await self.say(Pong(message.nonce))
        return message


def scripted_gateway(script: Callable[[Peer], Awaitable[None]]) -> AbstractAsyncContextManager[str]:
    """The address of a gateway that plays the script to every client."""
    return any_scripted_gateway(lambda peer: script(Pinged(peer.connection, peer.visit)))


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


# -------------------------------------------------------------------- a meeting


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


async def test_a_late_joiner_gets_the_recent_transcript_once_and_what_is_being_said(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
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


async def test_who_is_there_is_known_before_listeners_hear_of_it(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    bo, cy = (Participant(f"p-{name}", name, "en", ["fr"]) for name in ("Bo", "Cy"))

    async def play(peer: Peer) -> None:
        if peer.visit == 1:
            await peer.start(replace(STARTED, participants=[bo]))
            await peer.say(ParticipantJoined(cy.participant, cy.name, cy.speaks, cy.reads))
            await peer.expect(UtteranceFinal)
            peer.drop()
        else:
            await peer.expect(SessionStart)
            await peer.say(replace(ANOTHER, participants=[cy]))
            await peer.take()
            await peer.connection.wait_closed()

    async with scripted_gateway(play) as stream, client_of(gateway, stream, name="Ana", reads=["fr"]) as client:
        client.allow("ERR_")
        await client.do("""() => {
            window.seen = [];
            client.listen((event) => {
                if (!/^(session.started|participant)/.test(event.type)) return;
                const names = [...client.participants.values()].map(({ name }) => name).join("+");
                seen.push(`${event.type} ${event.name ?? ""}: ${client.participant} ${names}`);
            });
            client.connect();
        }""")
        await client.until("client.participants.size === 2")
        await client.do("""client.final({ text: "Anybody there?", lang: "en" })""")
        await client.until(f"{of('utterance.accepted')}.length === 1")
        # Bo left while nobody listened, and so did Ana herself, whose session is another one.
        assert await client.do("seen") == [
            "session.started : p1 Bo",
            "participant.joined Cy: p1 Bo+Cy",
            "session.started : p2 Cy",
            "participant.left Bo: p2 Cy",
            "participant.left Ana: p2 Cy",
        ]


async def test_a_new_name_is_told_the_others_and_loses_nothing(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async with (
        client_of(gateway, meeting="m-name", name="Ana", speaks="en", reads=["fr"]) as ana,
        client_of(gateway, meeting="m-name", name="Bo", reads=["fr"]) as bo,
    ):
        await ana.open()
        await bo.open()
        await ana.do("""() => {
            window.before = client.participant;
            client.final({ text: "One.", lang: "en" });
            client.rename("Anna");
            client.final({ text: "Two.", lang: "en" });
        }""")
        await bo.until(f"{of('translation.final')}.length === 2")
        assert await ana.do("[client.participant === before, client.name]") == [True, "Anna"]
        assert [update["name"] for update in await bo.heard("participant.updated")] == ["Anna"]
        assert await bo.do("[...client.participants.values()].map(({ name }) => name)") == ["Anna"]
        assert await bo.heard("participant.left") == []
        assert [final["text"] for final in await bo.heard("translation.final")] == ["[fr] One.", "[fr] Two."]
        assert [start["name"] for start in ana.frames("session.start")] == ["Ana", "Anna"]

        # So is that somebody speaks no language any more, which no update tells.
        await ana.do("client.speak(null)")
        await bo.until("[...client.participants.values()][0].speaks === null")
        assert ana.frames("session.update") == []


async def test_a_name_that_is_refused_leaves_the_one_before(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async with client_of(gateway, name="Ana", reads=["fr"]) as client:
        await client.open()
        await client.do("""client.rename("A".repeat(200))""")
        await client.until(f"{of('session.started')}.length === 2")
        assert [error["code"] for error in await client.heard("error")] == ["limit_exceeded"]
        assert await client.do("[client.name, client.state]") == ["Ana", "open"]
        assert {event["recovered"] for event in await client.heard("session.started")} == {None, True}


# -------------------------------------------------------------------- the connection


async def test_a_connection_killed_in_the_middle_of_an_utterance_loses_and_doubles_nothing(
    start_gateway: StartGateway, client_of: StartClient
) -> None:
    gateway = start_gateway(RELAYED).ready()
    async with (
        Relay(gateway.port) as relay,
        client_of(gateway, relay.url, meeting="m", name="Ana", speaks="en", reads=["fr"]) as ana,
        client_of(gateway, meeting="m", name="Bo", speaks="en", reads=["ja"]) as bo,
    ):
        ana.allow("ERR_")
        await bo.open()
        await ana.open()
        await ana.do("""() => { window.id = client.partial({ text: "Good morn", lang: "en" }); }""")
        await ana.until(f"{of('caption')}.length === 1")
        relay.refuse(True)
        relay.cut()
        await ana.until("client.state !== 'open'")
        await bo.do("""client.final({ text: "While she was away.", lang: "en" })""")
        await bo.until(f"{of('translation.final')}.length === 1")
        await ana.do("""client.final({ id, text: "Good morning.", lang: "en" })""")
        relay.refuse(False)
        await ana.do("client.connect()")

        await ana.until(f"{of('translation.final')}.length === 2")
        await bo.until(f"{of('translation.final')}.length === 2")
        for client, lang in ((ana, "fr"), (bo, "ja")):
            texts = [final["text"] for final in await client.heard("translation.final")]
            assert texts == [f"[{lang}] While she was away.", f"[{lang}] Good morning."]
        assert [event["recovered"] for event in await ana.heard("session.started")] == [None, True]
        assert len(await ana.heard("utterance.accepted")) == 1


async def test_a_gateway_that_is_restarted_is_gone_on_with(
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


async def test_what_is_said_while_offline_arrives_in_order_and_once(
    start_gateway: StartGateway, client_of: StartClient
) -> None:
    # So many at once are more than the rate lets through.
    gateway = start_gateway(RELAYED + "\n[limits]\nmessages_per_s = 40\nmessages_burst = 5").ready()
    async with (
        Relay(gateway.port) as relay,
        client_of(gateway, relay.url, meeting="m", name="Ana", speaks="en") as ana,
        client_of(gateway, meeting="m", reads=["en", "fr"]) as bo,
    ):
        ana.allow("ERR_")
        await bo.open()
        await ana.open()
        relay.refuse(True)
        relay.cut()
        await ana.until("client.state !== 'open'")
        await ana.do("""() => {
            for (let n = 0; n < 20; n += 1) client.final({ text: `Number ${n}.`, lang: "en" });
        }""")
        relay.refuse(False)
        await ana.do("client.connect()")
        await bo.until(f"{of('translation.final')}.length === 20")
        texts = [f"Number {n}." for n in range(20)]
        assert [caption["text"] for caption in await bo.heard("caption")] == texts
        assert {final["text"] for final in await bo.heard("translation.final")} == {
            f"[fr] {text}" for text in texts
        }
        # Ana's connection may lag behind Bo's.
        await ana.until(f"{of('utterance.accepted')}.length === 20")
        assert await ana.heard("error") == []


@pytest.mark.parametrize("seed", range(3))
async def test_however_often_the_connection_breaks_each_final_is_heard_once(
    start_gateway: StartGateway, client_of: StartClient, seed: int
) -> None:
    rng = random.Random(seed)
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


async def test_a_line_that_went_dead_without_a_word_is_found(
    start_gateway: StartGateway, client_of: StartClient
) -> None:
    gateway = start_gateway(RELAYED).ready()
    async with Relay(gateway.port) as relay, client_of(gateway, relay.url, reads=["fr"]) as client:
        await client.open()
        await client.until(f"{of('pong')}.length === 1")
        await client.own_clock()
        # From the next message on it is this clock that tells how long nobody has said anything.
        await client.do("client.connect()")
        await client.until(f"{of('pong')}.length === 2")
        await client.later(20_000)
        await client.until(f"{of('pong')}.length === 3")
        relay.freeze()
        await client.do("""client.final({ text: "Anybody there?", lang: "en" })""")
        # Its own message is not answered: that is asked about long before the next question would be due.
        await client.later(2_000)
        while client.sent().count("ping") < 4:
            await asyncio.sleep(0.02)
        assert await client.do("client.state") == "open"
        await client.later(2_500)
        late = (await client.heard("state"))[-1]
        assert (late["state"], late["code"], late["reason"]) == (
            "open",
            "unanswered",
            "The gateway does not answer.",
        )
        await client.later(7_500)
        await client.until("client.state !== 'open'")
        await client.do("client.connect()")
        await client.until(f"{of('translation.final')}.length === 1")
        states = [event["state"] for event in await client.heard("state")]
        assert states == ["connecting", "open", "open", "reconnecting", "connecting", "open"]
        assert [event["recovered"] for event in await client.heard("session.started")] == [None, True]


async def test_an_answer_that_is_late_is_told_and_takes_it_back(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async def play(peer: Peer) -> None:
        await peer.start()
        while not isinstance(message := await peer.receive(), UtteranceFinal):
            assert isinstance(message, Ping)
            await peer.say(Pong())
        await late.wait()
        await peer.say(accepted(message), said(message, 3), Pong())
        await peer.connection.wait_closed()

    late = asyncio.Event()
    async with any_scripted_gateway(play) as stream, client_of(gateway, stream, reads=["fr"]) as client:
        await client.open()
        await client.own_clock()
        while len(await client.heard("pong")) < 1 + client.sent().count("ping"):
            await asyncio.sleep(0.02)
        await client.do("""client.final({ text: "Anybody there?", lang: "en" })""")
        await client.later(2_000)
        await client.later(2_500)
        assert (await client.heard("state"))[-1]["code"] == "unanswered"
        # It is not known to have arrived.
        assert len(await client.heard("utterance.queued")) == 1
        late.set()
        await client.until(f"{of('caption')}.length === 1")
        last = (await client.heard("state"))[-1]
        assert (last["state"], last["code"], last["reason"]) == ("open", "", "")


async def test_a_session_that_another_connection_took_over_is_closed_and_says_why(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async with client_of(gateway, meeting="m-twice", reads=["fr"]) as client:
        await client.open()
        await client.do("""() => {
            const { session, epoch, offset } = heard.find((event) => event.type === "session.started");
            const thief = new WebSocket(new URL("/v1/stream", location.href.replace("http", "ws")));
            const resume = { session, epoch, offset };
            thief.onopen = () => thief.send(JSON.stringify({ type: "session.start", reads: [], resume }));
        }""")
        await client.until("client.state === 'closed'")
        last = (await client.heard("state"))[-1]
        assert (last["code"], bool(last["reason"])) == ("session_replaced", True)

        # What follows is a session of its own.
        await client.open()
        assert [event["recovered"] for event in await client.heard("session.started")] == [None, None]
        assert await client.do("client.meeting") == "m-twice"


async def test_a_lost_session_is_followed_by_another_which_is_told_what_was_not_accepted(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async def play(peer: Peer) -> None:
        if peer.visit == 1:
            await peer.start()
            one = await peer.take()
            await peer.say(said(one, 3), translated(one, "fr", "Un.", offset=7))
            await peer.expect(UtteranceFinal)
            peer.drop()
            return
        start = await peer.expect(SessionStart)
        assert (start.meeting, start.resume) == ("m1", Resume("s1", "e1", 7))
        await peer.say(ANOTHER)
        two = await peer.take()
        assert two.text == "Two."
        await peer.say(translated(two, "fr", "Deux."))
        await peer.connection.wait_closed()

    async with scripted_gateway(play) as stream, client_of(gateway, stream, reads=["fr"]) as client:
        client.allow("ERR_")
        await client.do("""() => {
            client.connect();
            window.ids = ["One.", "Two."].map((text) => client.final({ text, lang: "en" }));
        }""")
        await client.until(f"{of('translation.final')}.length === 2")
        finals = client.frames("utterance.final")
        assert [final["id"] for final in finals] == [(await client.do("ids"))[n] for n in (0, 1, 1)]


async def test_what_is_not_recorded_is_not_begun_again_as_something_else(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async def play(peer: Peer) -> None:
        if peer.visit == 1:
            await peer.start(replace(STARTED, record=False))
            peer.drop()
            return
        await peer.start(replace(ANOTHER, record=False))
        await peer.connection.wait_closed()

    async with scripted_gateway(play) as stream, client_of(gateway, stream, reads=["fr"]) as client:
        client.allow("ERR_")
        await client.do("client.connect()")
        await client.until(f"{of('session.started')}.length === 2")
        assert [start.get("record") for start in client.frames("session.start")] == [None, False]


async def test_a_replay_repeats_no_event_and_a_second_attempt_is_news(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async def play(peer: Peer) -> None:
        if peer.visit == 1:
            await peer.start()
            one = await peer.take()
            await peer.say(said(one, 1), failed(one, "fr", "No.", offset=2), failed(one, "de", "No.", offset=3))
            again = await peer.take()
            assert again == one
            await peer.say(translated(one, "fr", "Un.", offset=4), failed(one, "de", "No.", offset=5))
            await peer.expect(SessionUpdate)
            peer.drop()
        else:
            await peer.start()
            one = UtteranceFinal("u1", 1, "One.", "en")
            await peer.say(said(one, 1), failed(one, "fr", "No.", offset=2), failed(one, "de", "No.", offset=3))
            # Another translation of the same, at another offset, and what had been shown before.
            await peer.say(translated(one, "fr", "Un.", offset=4), translated(one, "fr", "Une.", offset=9))
            await peer.say(TranslationDelta("p1", "u1", "fr", 1, "U"), TranslationDelta("p1", "u1", "de", 1, "E"))
            await peer.say(Caption("p1", "u1", "", "en", 0, "On", False))
            await peer.connection.wait_closed()

    async with scripted_gateway(play) as stream, client_of(gateway, stream, reads=["fr", "de"]) as client:
        client.allow("ERR_")
        await client.do("""() => {
            client.listen((event) => {
                // Late words of a recogniser, and the same text to be tried once more.
                if (event.type !== "translation.failed" || event.offset !== 3) return;
                client.partial({ id: "u1", text: "One. And", lang: "en" });
                client.final({ id: "u1", text: "One.", lang: "en" });
            });
            client.listen((event) => { if (event.offset === 5) client.speak("en"); });
            client.connect();
            client.final({ id: "u1", text: "One.", lang: "en" });
        }""")
        await client.until(f"{of('translation.delta')}.length === 1")
        await client.do("client.connect()")  # asks whether anybody is there: nothing is behind the answer
        events = [
            (event["type"], event.get("lang"), event.get("offset"))
            for event in await client.do("heard")
            if event["type"] in ("caption", "translation.delta", "translation.final", "translation.failed")
        ]
        assert events == [
            ("caption", "en", 1),
            ("translation.failed", "fr", 2),
            ("translation.failed", "de", 3),
            ("translation.final", "fr", 4),
            ("translation.failed", "de", 5),
            ("translation.delta", "de", None),
        ]
        assert client.revisions() == [("final", 1, "One."), ("final", 1, "One.")]


async def test_while_the_gateway_is_draining_finals_wait_for_the_next(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    drained = asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.start()
        if peer.visit == 1:
            await peer.say(SessionDraining(1_000))
            await drained.wait()
            await peer.leave(1012, refused("draining", "The gateway restarts; reconnect.", retry_after_ms=10))
        else:
            await peer.take()
            await peer.connection.wait_closed()

    async with scripted_gateway(play) as stream, client_of(gateway, stream, reads=["fr"]) as client:
        await client.do("client.connect()")
        await client.until(f"{of('session.draining')}.length === 1")
        await client.do("""client.final({ text: "Too late?", lang: "en" })""")
        drained.set()
        await client.until(f"{of('utterance.accepted')}.length === 1")
        assert client.sent() == ["session.start fr", "session.start fr", "utterance.final Too late?"]
        assert [event["text"] for event in await client.heard("utterance.queued")] == ["Too late?"]


# -------------------------------------------------------------------- finals


async def test_a_final_that_is_refused_for_a_while_is_sent_again_and_none_overtakes_it(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async def play(peer: Peer) -> None:
        await peer.start()
        for code in ("too_many_in_flight", "overloaded", "rate_limited"):
            final = await peer.expect(UtteranceFinal)
            assert final.text == "One."
            await peer.say(refused(code, "Not now.", final.id, retry_after_ms=10))
        assert (await peer.take()).text == "One."
        final = await peer.expect(UtteranceFinal)
        await peer.say(refused("limit_exceeded", "Too long.", final.id))
        assert (await peer.take()).text == "Three."
        await peer.connection.wait_closed()

    async with scripted_gateway(play) as stream, client_of(gateway, stream, reads=["fr"]) as client:
        await client.do("""() => {
            for (const text of ["One.", "Two.", "Three."]) client.final({ text, lang: "en" });
            client.connect();
        }""")
        await client.until(f"{of('utterance.accepted')}.length === 2")
        assert [event["code"] for event in await client.heard("utterance.refused")] == ["limit_exceeded"]
        assert await client.heard("error") == []


async def test_what_the_gateway_could_not_name_is_refused_without_it(
    start_gateway: StartGateway, client_of: StartClient
) -> None:
    gateway = start_gateway(SCRIPT + "\n[limits]\nmessage_bytes = 1024").ready()
    async with client_of(gateway, speaks="en", reads=["fr"]) as client:
        await client.open()
        await client.do("""() => {
            client.final({ text: "long ".repeat(210), lang: "en" });
            client.final({ text: "Odd.", lang: "en", id: "x".repeat(65) });
            client.final({ text: "Fine.", lang: "en" });
        }""")
        await client.until(f"{of('translation.final')}.length === 1")
        codes = [event["code"] for event in await client.heard("utterance.refused")]
        assert codes == ["message_too_large", "message_too_large"]
        assert client.revisions() == [("final", 1, "Fine.")]


async def test_what_waits_is_bounded_and_what_was_taken_stays(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async with client_of(gateway, reads=["fr"]) as client:
        last = await client.do("""() => {
            for (let n = 0; n < 1000; n += 1) client.final({ text: `Number ${n}.`, lang: "en" });
            const last = client.final({ text: "One more.", lang: "en" });
            return [last, heard.length];
        }""")
        (refusal,) = await client.heard("utterance.refused")
        # Not before the caller had the id that it is about.
        assert last == [refusal["id"], 0]
        assert refusal["code"] == "queue_full"


async def test_cancel(gateway: GatewayProcess, client_of: StartClient) -> None:
    async with client_of(gateway, reads=["fr"]) as client:
        # Never sent: it is refused at once, and never sent later.
        await client.do("""client.cancel(client.final({ text: "No.", lang: "en" }))""")
        assert [event["code"] for event in await client.heard("utterance.refused")] == ["cancelled"]
        await client.open()
        # Accepted: the gateway says what became of it.
        await client.do("""() => { window.id = client.final({ text: "This one will stall", lang: "en" }); }""")
        await client.until(f"{of('utterance.accepted')}.length === 1")
        await client.do("client.cancel(id)")
        await client.until(f"{of('translation.failed')}.length === 1")
        assert [event["code"] for event in await client.heard("translation.failed")] == ["cancelled"]
        # Nothing to cancel, or sent in the same breath.
        await client.do("client.cancel(id)")
        await client.do("""() => {
            window.id = client.final({ text: "This one will stall, too", lang: "en" });
            queueMicrotask(() => client.cancel(id));
        }""")
        await client.until(f"{of('translation.failed')}.length === 2")
        assert client.sent().count("utterance.cancel") == 3
        assert await client.heard("error") == []
        assert len(await client.heard("utterance.refused")) == 1


async def test_what_is_given_up_before_it_is_final_leaves_nothing(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async with (
        client_of(gateway, meeting="m-up", name="Ana", speaks="en", reads=["fr"]) as ana,
        client_of(gateway, meeting="m-up", name="Bo", reads=["en"]) as bo,
        client_of(gateway, meeting="m-up", name="Cy", reads=["en", "fr"]) as cy,
    ):
        await bo.open()
        await ana.open()
        await ana.do("""() => { window.id = client.partial({ text: "We should", lang: "en" }); }""")
        await bo.until(f"{of('caption')}.length === 1")
        await ana.do("client.cancel(id)")
        await bo.until(f"{of('utterance.cancelled')}.length === 1")
        (cancelled,) = await bo.heard("utterance.cancelled")
        own = await ana.do("[client.participant, id]")
        assert [cancelled["participant"], cancelled["utterance"]] == own
        refusals = [(event["id"], event["code"]) for event in await ana.heard("utterance.refused")]
        assert refusals == [(own[1], "cancelled")]
        # Its own is told, too, and then there is nothing left that could be told after a lost connection.
        await ana.until(f"{of('utterance.cancelled')}.length === 1")
        assert await ana.heard("error") == []

        await cy.open()
        await cy.until(f"{of('pong')}.length === 1")
        assert [event["type"] for event in await cy.do("heard")] == [
            *("state", "session.started", "state", "pong"),
        ]


async def test_what_is_given_up_while_offline_is_told_when_the_session_goes_on(
    start_gateway: StartGateway, client_of: StartClient
) -> None:
    gateway = start_gateway(RELAYED).ready()
    async with (
        Relay(gateway.port) as relay,
        client_of(gateway, relay.url, meeting="m", name="Ana", speaks="en") as ana,
        client_of(gateway, meeting="m", reads=["en"]) as bo,
    ):
        ana.allow("ERR_")
        await bo.open()
        await ana.open()
        await ana.do("""() => { window.id = client.partial({ text: "We should", lang: "en" }); }""")
        await bo.until(f"{of('caption')}.length === 1")
        relay.refuse(True)
        relay.cut()
        await ana.until("client.state !== 'open'")
        await ana.do("client.cancel(id)")
        assert [event["code"] for event in await ana.heard("utterance.refused")] == ["cancelled"]
        assert await bo.heard("utterance.cancelled") == []
        relay.refuse(False)
        await ana.do("client.connect()")
        await bo.until(f"{of('utterance.cancelled', 'event.participant && event.utterance')}.length === 1")
        assert [event["recovered"] for event in await ana.heard("session.started")] == [None, True]
        assert await ana.heard("error") == []
        # Nor does it come back.
        assert ana.revisions() == [("partial", 1, "We should")]


async def test_a_final_without_a_session_is_queued_until_it_is_said_or_refused(
    start_gateway: StartGateway, client_of: StartClient
) -> None:
    gateway = start_gateway(RELAYED).ready()
    async with Relay(gateway.port) as relay, client_of(gateway, relay.url, meeting="m", reads=["en"]) as client:
        client.allow("ERR_")
        await client.open()
        await client.do("""client.final({ text: "One.", lang: "en" })""")
        await client.until(f"{of('caption')}.length === 1")
        assert await client.heard("utterance.queued") == []
        assert await client.do("client.unsent") == 0

        relay.refuse(True)
        relay.cut()
        await client.until("client.state !== 'open'")
        told = await client.do("""() => {
            window.before = heard.length;
            window.ids = ["Two.", "Three."].map((text) => client.final({ text, lang: "en" }));
            client.cancel(client.final({ text: "Never mind.", lang: "en" }));
            return heard.slice(before).map(({ type }) => type);
        }""")
        # Not before the id is known that it is about; and what was given up by then does not wait.
        assert told == ["utterance.refused"]
        ids = await client.do("ids")
        queued = [(event["id"], event["lang"], event["text"]) for event in await client.heard("utterance.queued")]
        assert queued == [(ids[0], "en", "Two."), (ids[1], "en", "Three.")]
        assert await client.do("client.unsent") == 2
        await client.do("client.cancel(ids[0])")
        assert await client.do("client.unsent") == 1
        relay.refuse(False)
        await client.do("client.connect()")
        await client.until(f"{of('caption')}.length === 2")
        (_, caption) = await client.heard("caption")
        assert (caption["utterance"], caption["participant"]) == (ids[1], await client.do("client.participant"))
        assert await client.do("client.unsent") == 0
        assert len(await client.heard("utterance.queued")) == 2


async def test_a_final_that_may_have_been_lost_waits_and_says_so_once(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async def play(peer: Peer) -> None:
        await peer.start()
        if peer.visit < 3:
            await peer.expect(UtteranceFinal)
            peer.drop()
        else:
            final = await peer.take()
            await peer.say(said(final, 1))
            await peer.connection.wait_closed()

    async with scripted_gateway(play) as stream, client_of(gateway, stream, reads=["fr"]) as client:
        client.allow("ERR_")
        await client.open()
        await client.do("""client.final({ text: "One.", lang: "en" })""")
        await client.until(f"{of('caption')}.length === 1")
        kinds = ("utterance.queued", "utterance.accepted", "caption")
        assert [event["type"] for event in await client.do("heard") if event["type"] in kinds] == list(kinds)


async def test_a_cancel_that_was_lost_on_its_way_is_told_again(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async def play(peer: Peer) -> None:
        await peer.start()
        if peer.visit == 1:
            await peer.take()
            await peer.expect(UtteranceCancel)
            final = await peer.expect(UtteranceFinal)
            await peer.expect(UtteranceCancel)
            await peer.say(accepted(replace(final, id="another")))
            peer.drop()
        else:
            cancel = await peer.expect(UtteranceCancel)
            other = await peer.expect(UtteranceCancel)
            await peer.say(refused("unknown_utterance", "It never came.", other.id))
            await peer.say(refused("rate_limited", "Not now.", cancel.id, retry_after_ms=10))
            assert await peer.expect(UtteranceCancel) == cancel != other
            await peer.say(refused("unknown_utterance", "It is done.", cancel.id))
            assert (await peer.take()).text == "Three."
            await peer.connection.wait_closed()

    async with scripted_gateway(play) as stream, client_of(gateway, stream, reads=["fr"]) as client:
        client.allow("ERR_")
        await client.do("""() => {
            client.listen((event) => {
                if (event.type === "utterance.accepted" && event.id === window.one) {
                    client.cancel(one);
                    const two = client.final({ text: "Two.", lang: "en" });
                    queueMicrotask(() => client.cancel(two));
                }
            });
            client.connect();
            window.one = client.final({ text: "One.", lang: "en" });
        }""")
        # Whether it was accepted nobody knows: it is not said again.
        await client.until(f"{of('utterance.refused')}.length === 1")
        while client.sent().count("utterance.cancel") < 5:
            await asyncio.sleep(0.02)
        await client.do("""client.final({ text: "Three.", lang: "en" })""")
        await client.until(f"{of('utterance.accepted')}.length === 2")
        assert await client.heard("error") == []


async def test_a_listener_that_fails_harms_nobody(gateway: GatewayProcess, client_of: StartClient) -> None:
    async with client_of(gateway, reads=["fr"]) as client:
        client.allow("a listener's mistake")
        await client.do("""() => {
            client.listen(() => { throw new Error("a listener's mistake"); });
            client.listen((event) => { window.last = event.type; });
            client.connect();
            client.final({ text: "One.", lang: "en" });
        }""")
        await client.until("window.last === 'translation.final'")


# -------------------------------------------------------------------- the end


async def test_a_connection_lost_after_close_is_not_opened_again(
    start_gateway: StartGateway, client_of: StartClient
) -> None:
    gateway = start_gateway().ready()
    async with client_of(gateway, reads=["fr"], speaks="en") as client:
        client.allow("ERR_")  # the browser notes every connection that breaks off
        await client.open()
        await client.do("""client.final({ text: "This one will stall for ever", lang: "en" })""")
        await client.until(f"{of('translation.delta')}.length > 0")

        await client.do("client.close()")
        refused = await client.do("""client.final({ text: "One more thing.", lang: "en" })""")
        kill(gateway)
        await client.until("client.state !== 'open'")

        states = [event["state"] for event in await client.heard("state")]
        assert states == ["connecting", "open", "closed"]
        assert [(event["id"], event["code"]) for event in await client.heard("utterance.refused")] == [
            (refused, "closed")
        ]
        assert client.sent()[-1] == "session.end"


async def test_close_sends_what_was_said_and_finishes_it_and_a_later_connect_begins_anew(
    start_gateway: StartGateway, client_of: StartClient
) -> None:
    # `session.end` comes too fast, and is repeated.
    gateway = start_gateway(SCRIPT + "\n[limits]\nmessages_per_s = 20\nmessages_burst = 3").ready()
    async with client_of(gateway, reads=["fr"], speaks="en") as client:
        await client.open()
        await client.do("""() => {
            client.final({ text: "Goodbye,", lang: "en" });
            client.final({ text: "everyone.", lang: "en" });
            client.close();
        }""")
        await client.until("client.state === 'closed'")
        finals = {final["text"] for final in await client.heard("translation.final")}
        assert finals == {"[fr] Goodbye,", "[fr] everyone."}
        assert await client.heard("utterance.refused") == []
        assert await client.heard("error") == []

        await client.open()
        assert [event["recovered"] for event in await client.heard("session.started")] == [None, None]


async def test_close_without_a_session_refuses_what_was_said(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async with client_of(gateway, reads=["fr"]) as client:
        await client.do("""() => { client.final({ text: "One.", lang: "en" }); client.close(); }""")
        assert [event["code"] for event in await client.heard("utterance.refused")] == ["closed"]


async def test_closing_twice_waits_for_nothing(gateway: GatewayProcess, client_of: StartClient) -> None:
    async with client_of(gateway, reads=["fr"]) as client:
        await client.open()
        await client.do("""client.final({ text: "This one will stall", lang: "en" })""")
        await client.until(f"{of('utterance.accepted')}.length === 1")
        await client.do("client.close()")
        assert await client.do("client.state") == "open"
        await client.do("client.close()")
        assert await client.do("client.state") == "closed"


async def test_connect_asks_an_open_connection_whether_it_is_one(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async with client_of(gateway, reads=["fr"]) as client:
        await client.open()
        await client.until(f"{of('pong')}.length === 1")
        await client.do("() => { client.connect(); client.connect(); }")
        await client.until(f"{of('pong')}.length === 2")
        assert client.sent() == ["session.start fr", "ping"]
        assert await client.do("client.state") == "open"


# -------------------------------------------------------------------- partials


def shown(partial: UtterancePartial) -> Caption:
    return Caption("p1", partial.id, "", partial.lang or "en", partial.rev, partial.text, False)


def delta(partial: UtterancePartial, lang: str, committed: str, tentative: str) -> TranslationDelta:
    return TranslationDelta("p1", partial.id, lang, partial.rev, committed, tentative)


async def test_of_partials_that_come_fast_the_newest_is_sent_and_none_behind_the_final(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async with client_of(gateway, reads=["fr"], speaks="en") as client:
        await client.open()
        await client.do(
            """() => {
                window.id = client.partial({ text: "Go", lang: "en" });
                client.partial({ id, text: "Good", lang: "en" });
            }"""
        )
        await client.do(
            """() => {
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
        await client.until(f"{of('translation.final')}.length === 1")
        # Whatever had been kept back would be sent by now: a second utterance waits as long as the first.
        await client.do(
            """() => {
                window.id = client.partial({ text: "And", lang: "en" });
                queueMicrotask(() => client.partial({ id, text: "And welcome", lang: "en" }));
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
        await client.until(f"{of('translation.final')}.length === 1")
        await client.do("""client.final({ id, text: "Good evening.", lang: "en" })""")
        await client.until(f"{of('translation.final')}.length === 2")
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
        await client.until(f"{of('translation.final')}.length === 1")

        assert client.revisions() == [
            ("partial", 1, "Good"),
            ("partial", 2, "Good morning all"),
            ("partial", 3, "Good morning all"),
            ("final", 4, "Good morning, all."),
        ]
        kinds = ("session.started", "translation.delta", "translation.final")
        told = [event["type"] for event in await client.do("heard") if event["type"] in kinds]
        assert told == ["session.started", "translation.delta"] * 3 + ["translation.final"]


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
        await client.open()
        await client.do("""() => {
            window.id = client.partial({ text: "Good", lang: "en" });
            queueMicrotask(() => client.partial({ id, text: "Good morning", lang: "en" }));
        }""")
        while len(client.revisions()) < 2:
            await asyncio.sleep(0.02)
        await client.do("""client.final({ id, text: "Good morning.", lang: "en" })""")
        await client.until(f"{of('translation.final')}.length === 1")
        await client.do("""() => {
            const id = client.partial({ text: "Bye", lang: "en" });
            queueMicrotask(() => client.final({ id, text: "Goodbye.", lang: "en" }));
        }""")
        await client.until(f"{of('translation.final')}.length === 2")
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
        assert (await peer.expect(UtteranceCancel)).id == partial.id
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


# -------------------------------------------------------------------- settings


async def test_changes_of_one_moment_are_one_update_and_others_wait_for_its_answer(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    answer = asyncio.Event()

    async def play(peer: Peer) -> None:
        start = await peer.start()
        assert (start.name, start.speaks, start.reads, start.stability) == ("Ana", "en", ["fr"], "stable")
        assert start.originals
        first = await peer.expect(SessionUpdate)
        assert first == SessionUpdate(stability="final", reads=["de"])
        # What is said does not wait: the gateway takes one after the other.
        await peer.take()
        await answer.wait()
        await peer.say(SessionUpdated(["de"], "en", "final"))
        assert await peer.expect(SessionUpdate) == SessionUpdate(speaks="fr", stability="stable")
        await peer.say(SessionUpdated(["de"], "fr", "stable"))
        await peer.take()
        await peer.connection.wait_closed()

    options: dict[str, Any] = {
        "name": "Ana",
        "speaks": "en",
        "reads": ["fr"],
        "stability": "stable",
        "originals": True,
    }
    async with scripted_gateway(play) as stream, client_of(gateway, stream, **options) as client:
        await client.open()
        await client.do("""() => {
            client.setStability("live");
            client.setStability("final");
            client.read(["de"]);
            client.final({ text: "One.", lang: "en" });
        }""")
        await client.until(f"{of('utterance.accepted')}.length === 1")
        await client.do("""() => {
            client.setStability("live");
            client.speak("fr");
            client.read(["ja"]);
            queueMicrotask(() => client.read(["de"]));
            client.setStability("stable");
        }""")
        answer.set()
        await client.until(f"{of('session.updated')}.length === 2")
        await client.do("""() => {
            client.read(["de"]);
            client.setStability("stable");
            client.final({ text: "Nothing is new.", lang: "en" });
        }""")
        await client.until(f"{of('utterance.accepted')}.length === 2")


async def test_a_change_that_is_refused_for_a_while_is_asked_for_again(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async def play(peer: Peer) -> None:
        await peer.start()
        update = await peer.expect(SessionUpdate)
        await peer.say(refused("rate_limited", "Not now.", retry_after_ms=10))
        assert await peer.expect(SessionUpdate) == update == SessionUpdate(stability="final")
        await peer.say(SessionUpdated(["fr"], None, "final"))
        await peer.connection.wait_closed()

    async with scripted_gateway(play) as stream, client_of(gateway, stream, reads=["fr"]) as client:
        await client.open()
        await client.do("""client.setStability("final")""")
        await client.until(f"{of('session.updated')}.length === 1")
        assert await client.heard("error") == []


async def test_a_change_that_is_refused_for_good_leaves_what_is_in_force_and_the_other_changes(
    start_gateway: StartGateway, client_of: StartClient
) -> None:
    gateway = start_gateway(SCRIPT + "\n[limits]\nlanguages = 2").ready()
    async with client_of(gateway, reads=["ja"], speaks="en") as client:
        await client.open()
        await client.do("""() => {
            client.listen((event) => { if (event.type === "error") window.inForce = client.reads; });
            client.read(["de", "fr", "es"]);
            client.setStability("stable");
        }""")
        await client.until(f"{of('session.updated')}.length === 1")
        assert [(error["code"], error["field"]) for error in await client.heard("error")] == [
            ("limit_exceeded", "reads")
        ]
        (updated,) = await client.heard("session.updated")
        assert (updated["reads"], updated["stability"]) == (["ja"], "stable")
        assert await client.do("[...client.reads, client.stability]") == ["ja", "stable"]
        assert await client.do("inForce") == ["ja"]
        # What was wanted meanwhile is not what was refused.
        await client.do("""() => {
            client.read(["de", "fr", "es"]);
            queueMicrotask(() => client.read(["de"]));
        }""")
        await client.until(f"{of('session.updated')}.length === 2")
        assert await client.do("client.reads") == ["de"]


async def test_a_change_made_without_a_connection_may_be_refused_too(
    start_gateway: StartGateway, client_of: StartClient
) -> None:
    gateway = start_gateway(RELAYED).ready()
    async with Relay(gateway.port) as relay, client_of(gateway, relay.url, reads=["ja"], speaks="en") as client:
        client.allow("ERR_")
        await client.open()
        relay.refuse(True)
        relay.cut()
        await client.until("client.state !== 'open'")
        await client.do("""() => { client.read(["t!h"]); client.setStability("final"); }""")
        relay.refuse(False)
        await client.do("client.connect()")
        await client.until("client.state === 'open'")
        assert [error["field"] for error in await client.heard("error")] == ["reads[0]"]
        starts = [(start["reads"], start["stability"]) for start in client.frames("session.start")]
        assert starts == [(["ja"], "live"), (["t!h"], "final"), (["ja"], "final")]
        assert client.frames("session.update") == []


async def test_a_start_that_cannot_be_mended_closes_and_says_why(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async with client_of(gateway, reads=["tlh"]) as client:
        await client.do("""() => { client.connect(); client.final({ text: "One.", lang: "en" }); }""")
        await client.until("client.state === 'closed'")
        assert (await client.heard("state"))[-1]["code"] == "unsupported_language"
        assert [event["code"] for event in await client.heard("utterance.refused")] == ["closed"]


async def closed(client: Client) -> tuple[str, str]:
    """It will not come back by itself: the code and the field of the error behind that."""
    await client.until("client.state === 'closed' && heard.at(-1).state === 'closed'")
    last = (await client.heard("state"))[-1]
    return last["code"], last["field"]


async def test_a_start_that_is_refused_can_be_mended(start_gateway: StartGateway, client_of: StartClient) -> None:
    limits = "\n[limits]\nlanguages = 2\nname_chars = 10\nmeeting_languages = 2"
    gateway = start_gateway(SCRIPT + limits).ready()
    told: dict[str, Any] = {
        "meeting": "m",
        "name": "A name that is long",
        "speaks": "tlh",
        "reads": ["de", "fr", "ja"],
    }
    async with client_of(gateway, meeting="m", reads=["de"]) as bo, client_of(gateway, **told) as ana:
        await bo.open()
        # What is remembered of another gateway may all be wrong for this one; which of it is said one by one.
        mend = {
            ("limit_exceeded", "name"): "client.rename('Ana')",
            ("unsupported_language", "speaks"): "client.speak(null)",
            ("limit_exceeded", "reads"): "client.read(client.reads.slice(1))",
        }
        for _ in range(len(mend) + 1):
            await ana.do("client.connect()")
            complaint = await closed(ana)
            if complaint not in mend:
                break
            before = await ana.do("[client.name, client.speaks, ...client.reads]")
            assert all(value in [told["name"], "tlh", None, "Ana", *told["reads"]] for value in before)
            await ana.do(mend.pop(complaint))
        assert mend == {}
        # Two more languages, in a meeting that has one and takes two.
        assert complaint == ("limit_exceeded", "reads")
        assert await ana.do("client.reads") == ["fr", "ja"]
        await ana.do("client.read(['fr'])")
        await ana.open()
        assert await ana.do("[client.name, client.speaks, client.reads]") == ["Ana", None, ["fr"]]
        assert [event["recovered"] for event in await ana.heard("session.started")] == [None]

        # Of a session that goes on what is in force stays so.
        await ana.do("""() => {
            client.listen((event) => { if (event.type === "error") window.inForce = client.reads; });
            client.read(["fr", "ja"]);
        }""")
        await ana.until("window.inForce !== undefined")
        assert await ana.do("[inForce, client.reads, client.state]") == [["fr"], ["fr"], "open"]


async def test_what_an_earlier_session_had_is_not_asked_of_a_later_one(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    unknown = replace(refused("unsupported_language", "The model does not know it."), field="reads[0]")
    starts = []

    async def play(peer: Peer) -> None:
        if peer.visit == 1:
            await peer.start()
            await peer.expect(UtteranceFinal)
            peer.drop()
            return
        # It comes back with another model.
        start = await peer.expect(SessionStart)
        starts.append((start.reads, start.resume is None))
        await peer.say(ANOTHER if start.reads == ["en"] else unknown)
        await peer.connection.wait_closed()

    async with scripted_gateway(play) as stream, client_of(gateway, stream, reads=["fr"]) as client:
        client.allow("ERR_")
        await client.open()
        await client.do("""client.final({ text: "One.", lang: "en" })""")
        assert await closed(client) == ("unsupported_language", "reads[0]")
        assert await client.do("client.reads") == ["fr"]
        await client.do("() => { client.read(['de']); client.connect(); }")
        await client.until(f"{of('state', 'event.state === `closed`')}.length === 2")
        assert await client.do("client.reads") == ["de"]
        await client.do("client.read(['en'])")
        await client.open()
        assert starts == [(["fr"], False), (["de"], True), (["en"], True)]
        assert [event["field"] for event in await client.heard("error")] == ["reads[0]"] * 2


async def test_whoever_connects_anew_in_answer_to_an_event_hears_it_before_what_comes_of_it(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async with client_of(gateway, reads=["tlh"]) as client:
        await client.do("""() => {
            const order = window.order = [];
            client.listen((event) => {
                if (event.state !== "closed") return;
                client.read(["fr"]);
                client.connect();
            });
            client.listen((event) => { if (event.type === "state") order.push(event.state); });
            client.connect();
        }""")
        await client.until("client.state === 'open'")
        assert await client.do("order") == ["connecting", "closed", "connecting", "open"]


async def test_a_ping_that_is_refused_is_sent_again(gateway: GatewayProcess, client_of: StartClient) -> None:
    async def play(peer: Peer) -> None:
        await peer.start()
        await peer.expect(Ping)
        await peer.say(refused("rate_limited", "Not now.", retry_after_ms=10))
        ping = await peer.expect(Ping)
        await peer.say(Pong(ping.nonce))
        await peer.connection.wait_closed()

    async with any_scripted_gateway(play) as stream, client_of(gateway, stream, reads=["fr"]) as client:
        await client.do("client.connect()")
        await client.until(f"{of('pong')}.length === 1")
        assert await client.heard("error") == []


async def test_while_the_engine_loads_the_start_is_repeated(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async def play(peer: Peer) -> None:
        for _ in range(2):
            await peer.expect(SessionStart)
            await peer.say(refused("engine_unavailable", "The engine is loading.", retry_after_ms=10))
        await peer.start()
        await peer.take()
        await peer.connection.wait_closed()

    async with scripted_gateway(play) as stream, client_of(gateway, stream, reads=["fr"]) as client:
        await client.do("""() => { client.connect(); client.final({ text: "One.", lang: "en" }); }""")
        await client.until(f"{of('utterance.accepted')}.length === 1")
        states = [(event["state"], event["reason"]) for event in await client.heard("state")]
        assert states == [("connecting", ""), ("loading", "The engine is loading."), ("open", "")]
